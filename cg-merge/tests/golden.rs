//! The reference's output, byte for byte.

#[path = "../../tests/golden/runner.rs"]
mod runner;

#[test]
fn golden_cases() {
    runner::run("cg_merge", env!("CARGO_BIN_EXE_cg_merge"));
}
