//! `grind PROGRAM ARGS…`: runs a program and writes the profile of its instructions.
//!
//! Only turns the ending of the run into the ending of this process.

use std::process::ExitCode;

use grind::os;
use grind::run;
use grind::supervisor::Ending;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    match run::main(&args) {
        Ending::Code(code) => ExitCode::from(code),
        Ending::Signal(signal) => {
            os::die_by(signal);
            // Only if the signal did not kill: what a shell would show.
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(255))
        }
    }
}
