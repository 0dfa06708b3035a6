//! The reference's output, byte for byte.

#[path = "../../tests/golden/runner.rs"]
mod runner;

#[test]
fn golden_cases() {
    runner::run("cg_diff", env!("CARGO_BIN_EXE_cg_diff"));
}
