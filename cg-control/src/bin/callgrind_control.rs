//! `callgrind_control`: see the library of this package.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cg_control_programs::callgrind_control()
}
