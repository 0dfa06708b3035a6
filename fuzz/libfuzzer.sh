#!/bin/sh
# Builds a target with libFuzzer on stable Rust and runs it: fuzz/libfuzzer.sh TARGET [libFuzzer's options...]
# New inputs go to target/fuzz/corpus/TARGET; the kept ones are read. Needs a C++ compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$1
shift
build=${CARGO_TARGET_DIR:-$here/../target}/fuzz
# What cargo-fuzz passes, but for the address sanitizer, which needs nightly and finds nothing in safe code.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags="$flags -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
flags="$flags -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 --cfg fuzzing"
RUSTFLAGS="$flags" cargo build --manifest-path "$here/Cargo.toml" --release --features libfuzzer --bin "$target" \
    --target x86_64-unknown-linux-gnu --target-dir "$build"
mkdir -p "$build/corpus/$target"
exec "$build/x86_64-unknown-linux-gnu/release/$target" -max_len=${MAX_LEN:-65536} -timeout=${TIMEOUT:-10} -rss_limit_mb=2048 \
    -artifact_prefix="$build/" "$@" "$build/corpus/$target" "$here/corpus/$target"
