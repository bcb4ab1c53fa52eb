#!/bin/bash
# run.sh SECONDS [target...]: builds every fuzz target and runs each for that many
# seconds, starting from seeds/ and what earlier runs found in corpus/. Exits with
# 1 on a crash; the input that crashed lies in artifacts/. SEED=n replays a seed.
#
# Needs only stable Rust and a C++ compiler: the compiler flags below are the
# coverage that cargo-fuzz would ask for.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:?usage: run.sh SECONDS [target...]}
shift
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for file in targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
export RUSTFLAGS="--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# With --target the flags are not used for build scripts and macros.
cargo build --locked --release --target "$host" "${targets[@]/#/--bin=}"

failed=0
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target" "seeds/$target"
    echo "== $target, ${seconds} s, SEED=$seed"
    log="artifacts/$target/log"
    if "$CARGO_TARGET_DIR/$host/release/$target" -seed="$seed" -max_total_time="$seconds" \
        -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" >"$log" 2>&1; then
        grep -E '^stat::(number_of_executed_units|average_exec_per_sec|new_units_added)' "$log"
    else
        tail -n 40 "$log" >&2
        echo "== $target FAILED; replay: SEED=$seed $0 $seconds $target" >&2
        failed=1
    fi
done
exit $failed
