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
pub(super) fn demangle(raw: &[u8]) -> Option<String> {
    if !(raw.starts_with(b"_Z") || raw.starts_with(b"_R")) {
        return None;
    }
    let text = str::from_utf8(raw).ok()?;
    rust(text).or_else(|| cpp(raw))
}

fn rust(text: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(text).ok()?;
    let mut out = Bounded(String::new());
    // The alternate form leaves out the hash, as the reference does.
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn cpp(raw: &[u8]) -> Option<String> {
    let symbol = cpp_demangle::Symbol::new_with_options(raw, &cpp_demangle::ParseOptions::default()).ok()?;
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default()).ok()?;
    Some(out.0)
}
