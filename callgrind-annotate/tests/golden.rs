//! The reference's output: the same lines, and those that are not its random order's in the same order.

#[path = "../../tests/golden/runner.rs"]
mod runner;

#[test]
fn golden_cases() {
    runner::run("callgrind_annotate", env!("CARGO_BIN_EXE_callgrind_annotate"));
}
