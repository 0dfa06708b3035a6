//! Exit codes, and how a program ends.
//!
//! A program ends in one place, so that every failure is told on standard error as `program: error: cause`, and a
//! reader that went away (`| head`) is no failure at all.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Everything was done.
pub const SUCCESS: u8 = 0;
/// An input could not be read or is wrong, or the output could not be written.
pub const FAILURE: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// `--fail-above` found a growth above its bound; the report was printed all the same.
pub const GATE: u8 = 3;

/// Ends a program: tells the error, if any, and picks the exit code.
///
/// A broken pipe ends quietly and counts as success, as the reader has seen what it wanted.
#[must_use]
pub fn finish(program: &str, result: anyhow::Result<u8>) -> ExitCode {
    let code = match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => SUCCESS,
        Err(error) => {
            // Nothing is left to do if standard error is gone as well.
            let _ = writeln!(io::stderr(), "{program}: error: {error:#}");
            FAILURE
        }
    };
    ExitCode::from(code)
}

/// Whether the reader of the output went away.
#[must_use]
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_broken_pipe_is_found_below_its_context() {
        let pipe = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("standard output").unwrap_err();
        assert!(is_broken_pipe(&pipe));
        assert!(!is_broken_pipe(&anyhow::anyhow!("other")));
    }
}
