//! Reports, byte by byte.

#[path = "../../tests/golden/runner.rs"]
mod runner;

#[test]
fn golden_cases() {
    runner::run("mem_annotate", env!("CARGO_BIN_EXE_mem_annotate"));
}
