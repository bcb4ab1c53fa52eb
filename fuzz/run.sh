#!/bin/bash
# run.sh SECONDS [target...]: builds all (or the given) fuzz targets and runs each
# for SECONDS, starting from seeds/ and the corpus/ of earlier runs. Exits with 1 on
# a crash and writes the input to artifacts/. SEED=n sets the random seed.
# SANITIZE=address builds with AddressSanitizer, which takes longer and finds more.
#
# Needs only stable Rust and a C++ compiler: the flags below enable the same coverage
# as cargo-fuzz.
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
# More than any target needs: what is bounded stays so.
rss_limit_mb=512
if [ "${SANITIZE:-}" = address ]; then
    runtimes=("$(rustc --print sysroot)/lib/rustlib/$host/lib/"librustc-*_rt.asan.a)
    if [ -e "${runtimes[0]}" ]; then
        # The sanitizer is an unstable flag; the toolchain is that of everything else.
        export RUSTC_BOOTSTRAP=1 RUSTFLAGS="$RUSTFLAGS -Zsanitizer=address"
        CARGO_TARGET_DIR+=/address
        # It keeps what was freed, to see it used.
        rss_limit_mb=4096
    else
        echo "Left out: AddressSanitizer, which this toolchain lacks" >&2
    fi
fi
# --target keeps the flags from build scripts and macros.
cargo build --locked --release --target "$host" "${targets[@]/#/--bin=}"

failed=()
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target" "seeds/$target"
    echo "== $target, ${seconds} s, SEED=$seed"
    log="artifacts/$target/log"
    if "$CARGO_TARGET_DIR/$host/release/$target" -seed="$seed" -max_total_time="$seconds" \
        -timeout=10 -rss_limit_mb="$rss_limit_mb" -print_final_stats=1 -verbosity=0 \
        -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" >"$log" 2>&1; then
        grep -E '^stat::(number_of_executed_units|average_exec_per_sec|new_units_added)' "$log"
    else
        tail -n 40 "$log" >&2
        echo "== $target FAILED; replay: SEED=$seed $0 $seconds $target" >&2
        failed+=("$target")
    fi
done
if [ ${#failed[@]} != 0 ]; then
    # Again at the end, which is what is seen of a long output.
    for target in "${failed[@]}"; do
        echo "== $target FAILED: $(grep -aE '^SUMMARY|panicked at' "artifacts/$target/log" | tail -n 1)" >&2
    done
    exit 1
fi
