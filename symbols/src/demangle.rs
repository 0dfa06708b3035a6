//! Names of C++ and Rust functions as written in the source.
//!
//! A mangled name can stand for an exponentially long text; both the effort and the result are bounded, and a name that
//! exceeds them stays mangled.

use std::fmt::{self, Write};

/// Longer results are of no use to a reader.
const MAX_LENGTH: usize = 256 << 10;

/// Text that refuses to grow beyond [`MAX_LENGTH`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        if self.0.len() + s.len() > MAX_LENGTH {
            return Err(fmt::Error);
        }
        self.0.push_str(s);
        Ok(())
    }
}

/// The readable form of `raw`, if it is a mangled name.
#[must_use]
pub fn demangle(raw: &[u8]) -> Option<Vec<u8>> {
    if let Some(text) = rust_part(raw) {
        return rust(text).map(String::into_bytes);
    }
    itanium_demangle::demangle(raw)
}

/// The mangled name proper if it is one of Rust's: without the suffixes of copies of a function (`.cold`), which the
/// reference does not show.
fn rust_part(raw: &[u8]) -> Option<&str> {
    let text = str::from_utf8(raw).ok()?;
    if text.starts_with("_R") {
        return text.split('.').next();
    }
    // The older scheme looks like C++ but ends in a hash.
    const HASH: &str = "17h0123456789abcdefE";
    let end = text.find(".llvm.").unwrap_or(text.len());
    let name = text.starts_with("_ZN").then_some(&text[..end])?;
    let name = match name.rfind("E.") {
        Some(end) => &name[..end + 1],
        None => name,
    };
    let hash = name.get(name.len().checked_sub(HASH.len())?..)?;
    let digits = hash.strip_prefix("17h")?.strip_suffix('E')?;
    digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).then_some(name)
}

fn rust(text: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(text).ok()?;
    let mut out = Bounded(String::new());
    // The alternate form leaves out the hash, as the reference does.
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}
