//! The wildcards of `--trace-children-skip=`: `*` for any text, `?` for any one byte.
//!
//! Matching is on bytes, of the whole text, and takes time linear in pattern times text, whatever the pattern.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<u8>);

impl Pattern {
    /// The pattern that `text` writes.
    #[must_use]
    pub fn new(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }

    /// Whether all of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &OsStr) -> bool {
        let (pattern, text) = (&self.0, text.as_bytes());
        let (mut p, mut t) = (0, 0);
        // Where to go on after a mismatch: one byte more for the last star.
        let mut retry: Option<(usize, usize)> = None;
        while t < text.len() {
            match pattern.get(p) {
                Some(b'*') => {
                    retry = Some((p + 1, t));
                    p += 1;
                }
                Some(&c) if c == b'?' || c == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => match retry {
                    Some((after_star, from)) => {
                        retry = Some((after_star, from + 1));
                        p = after_star;
                        t = from + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&c| c == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, without regard to time.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some(b'*'), _) => naive(&pattern[1..], text) || !text.is_empty() && naive(pattern, &text[1..]),
            (Some(b'?'), Some(_)) => naive(&pattern[1..], &text[1..]),
            (Some(a), Some(b)) => a == b && naive(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn whole_texts_match() {
        let matches = |p: &str, t: &str| Pattern::new(OsStr::new(p)).matches(OsStr::new(t));
        assert!(matches("*/ls", "/usr/bin/ls"));
        assert!(!matches("ls", "/usr/bin/ls"));
        assert!(matches("/usr/bin/??", "/usr/bin/ls"));
        assert!(!matches("*/l", "/usr/bin/ls"));
    }

    #[test]
    fn agrees_with_the_definition() {
        let words = |alphabet: &[u8], longest: u32| {
            let mut all = vec![Vec::new()];
            let mut last = vec![Vec::new()];
            for _ in 0..longest {
                last = last
                    .iter()
                    .flat_map(|w: &Vec<u8>| alphabet.iter().map(move |&c| [w.as_slice(), &[c]].concat()))
                    .collect();
                all.extend(last.iter().cloned());
            }
            all
        };
        for pattern in words(b"ab*?", 4) {
            for text in words(b"ab", 5) {
                let fast = Pattern(pattern.clone()).matches(OsStr::from_bytes(&text));
                assert_eq!(fast, naive(&pattern, &text), "{pattern:?} {text:?}");
            }
        }
    }
}
