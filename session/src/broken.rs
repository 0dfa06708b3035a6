//! Panics: faults of grind itself. They are caught where they cost least (`grind_engine` calls the runner and the sinks with care,
//! [`caught`] does the rest), told once, and never end grind by a status that could be the program's.
//!
//! Invariant: the default hook's text does not get among the program's own output, unless a backtrace is asked for.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::guard::message;

/// grind's own status where it has failed itself, and the program did not end by itself.
pub const STATUS: u8 = 125;

/// What has panicked first, and where.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Keeps what panics say, instead of showing it at once.
pub fn keep_quiet() {
    let shown = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = message(info.payload());
        let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
        FIRST.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| one_line(&text) + &place);
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|wanted| wanted != "0") {
            shown(info);
        }
    }));
}

/// What panicked first, in one line; `otherwise` if nothing did.
#[must_use]
pub fn first(otherwise: &str) -> String {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(|| one_line(otherwise))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A panic that is to go on when what has to be kept has been put back.
pub type Panic = Box<dyn Any + Send>;

/// Does `act`.
///
/// # Errors
/// Its panic.
pub fn caught<T>(act: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(act))
}

/// What the user is told; `goes_on`: whether the program does, if it has begun.
#[must_use]
pub fn notice(what: &str, goes_on: Option<bool>) -> String {
    let mut text = format!("error: grind has failed: {what}\n");
    text.push_str(match goes_on {
        Some(true) => {
            "       The program goes on. What was recorded of it up to here is in its profile, marked as `incomplete`.\n"
        }
        Some(false) => {
            "       The program was killed. What was recorded of it is in its profile, marked as `incomplete`.\n"
        }
        None => "",
    });
    text.push_str("       This is a fault of grind: please report it, with the command line and these lines.");
    text
}

/// The description of a profile that is not all that it should be.
#[must_use]
pub fn description(what: &str) -> Vec<u8> {
    format!("incomplete: grind has failed: {what}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_one_line_each() {
        assert_eq!(one_line("a\n  b\tc "), "a b c");
        assert_eq!(description("x (y.rs:1)"), b"incomplete: grind has failed: x (y.rs:1)");
        assert!(
            notice("x", Some(false)).lines().all(|line| line.starts_with("error: ") || line.starts_with("       "))
        );
    }
}
