//! `--map-source=OLD=NEW`: where sources are that a profile knows by the names they had when they were compiled.
//!
//! Only files that are opened are looked for elsewhere; names in reports stay those of the profile.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A prefix of files' names, and what stands in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Mapping {
    /// Reads `OLD=NEW`; the first `=` divides.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &OsStr) -> Result<Self, String> {
        let bytes = text.as_bytes();
        match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => Ok(Self { old: bytes[..at].to_vec(), new: bytes[at + 1..].to_vec() }),
            None => Err("it must have the form OLD=NEW, such as /build/prog=/home/me/prog".to_owned()),
        }
    }
}

/// Where to look for the file that a profile calls `name`: the last mapping that fits decides. A prefix ends where a
/// component of the name does.
#[must_use]
pub fn place(mappings: &[Mapping], name: &[u8]) -> PathBuf {
    let mapped = mappings.iter().rev().find_map(|Mapping { old, new }| {
        let rest = name.strip_prefix(&old[..])?;
        let whole = old.is_empty() || old.ends_with(b"/") || rest.is_empty() || rest.starts_with(b"/");
        whole.then(|| [&new[..], rest].concat())
    });
    PathBuf::from(OsString::from_vec(mapped.unwrap_or_else(|| name.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn prefixes_are_whole_components_and_the_last_mapping_wins() {
        let mappings =
            ["/build=/home", "/build/a=/x", "rel/=/r/"].map(|text| Mapping::parse(OsStr::new(text)).unwrap());
        let place = |name: &str| place(&mappings, name.as_bytes());
        assert_eq!(place("/build/b/c.c"), Path::new("/home/b/c.c"));
        assert_eq!(place("/build/a/c.c"), Path::new("/x/c.c"));
        assert_eq!(place("/build/ab/c.c"), Path::new("/home/ab/c.c"));
        assert_eq!(place("/builds/c.c"), Path::new("/builds/c.c"));
        assert_eq!(place("rel/c.c"), Path::new("/r/c.c"));
        let all = [Mapping::parse(OsStr::new("=/root/")).unwrap()];
        assert_eq!(super::place(&all, b"a.c"), Path::new("/root/a.c"));
        assert!(Mapping::parse(OsStr::new("/build")).is_err());
    }
}
