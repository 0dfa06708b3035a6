//! The reference's output, byte for byte.

#[path = "../../tests/golden/runner.rs"]
mod runner;

#[test]
fn golden_cases() {
    runner::run("cg_annotate", env!("CARGO_BIN_EXE_cg_annotate"));
}
