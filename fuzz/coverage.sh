#!/bin/bash
# coverage.sh RUSTC ARGUMENT...: compiles the crates of this project with the coverage that
# cargo-fuzz asks for, others without. Cargo says whose crate it is.
set -euo pipefail
if [[ "${CARGO_PKG_NAME:-}" == latewood* && " $* " == *" --target "* ]]; then
    set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
        -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
fi
exec "$@"
