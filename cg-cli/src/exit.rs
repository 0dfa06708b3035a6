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
            let _ = writeln!(io::stderr(), "{program}: error: {}", plain(&format!("{error:#}")));
            FAILURE
        }
    };
    ExitCode::from(code)
}

/// `text` without the numbers that Rust adds to the system's errors, as in `No such file or directory (os error 2)`.
#[must_use]
pub fn plain(text: &str) -> String {
    const START: &str = " (os error ";
    let mut parts = text.split(START);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                plain.push_str(rest);
            }
            _ => plain.extend([START, part]),
        }
    }
    plain
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
    fn numbers_of_system_errors_are_left_out() {
        let error = anyhow::Error::new(io::Error::from_raw_os_error(2)).context("a.out");
        assert_eq!(plain(&format!("{error:#}")), "a.out: No such file or directory");
        assert_eq!(plain("a (os error 2), b (os error 13): c"), "a, b: c");
        assert_eq!(plain("a (os error x) b (os error "), "a (os error x) b (os error ");
    }

    #[test]
    fn a_broken_pipe_is_found_below_its_context() {
        let pipe = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("standard output").unwrap_err();
        assert!(is_broken_pipe(&pipe));
        assert!(!is_broken_pipe(&anyhow::anyhow!("other")));
    }
}
