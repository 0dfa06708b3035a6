//! Why something could not be read or written, as it is shown to users. Nothing is added to what the system says.

use std::io;

/// The text of an error without Rust's "(os error N)".
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(code) => text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned(),
        None => text,
    }
}
