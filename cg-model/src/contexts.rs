//! Contexts that names of functions hold: `f'2'g'main` is `f` at the second level of recursion, called by `g`, called by
//! `main`.
//!
//! Names may have apostrophes of their own (`operator'`, lifetimes of Rust). So an apostrophe only ends a name where all
//! that follows consists of names that functions of the same profile have: a caller has calls of its own and is in the
//! profile. Where several ways of cutting remain, the one with the shortest names is taken.

use std::collections::HashSet;

/// A name, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context<'a> {
    /// The function, with its level of recursion if that is above 1.
    pub head: &'a [u8],
    /// Its callers, the nearest first.
    pub callers: Vec<&'a [u8]>,
}

/// The names that a function of the profile may have without its context.
#[derive(Clone, Debug, Default)]
pub struct Heads<'a> {
    known: HashSet<&'a [u8]>,
}

impl<'a> Heads<'a> {
    /// What the names of all functions of a profile begin with.
    pub fn new(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut known = HashSet::new();
        for name in names {
            known.extend(apostrophes(name).map(|at| &name[..at]).filter(|head| !head.is_empty()));
            known.insert(name);
        }
        Self { known }
    }

    /// Takes a name apart.
    #[must_use]
    pub fn split<'n>(&self, name: &'n [u8]) -> Context<'n> {
        for at in apostrophes(name).filter(|at| *at > 0) {
            let (start, rest) = (at, &name[at + 1..]);
            let level = rest.split(|byte| *byte == b'\'').next().unwrap_or_default();
            let is_level = !level.is_empty() && level.iter().all(u8::is_ascii_digit);
            let end = if is_level { start + 1 + level.len() } else { start };
            let mut callers = Vec::new();
            let rest = &name[end..];
            let whole = match rest.split_first() {
                None => true,
                Some((_, callers_text)) => self.tile(callers_text, &mut callers),
            };
            if whole {
                return Context { head: &name[..end], callers };
            }
        }
        Context { head: name, callers: Vec::new() }
    }

    /// A name without its callers and its level of recursion.
    #[must_use]
    pub fn plain<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        let head = self.split(name).head;
        match apostrophes(head).last() {
            Some(at) if at > 0 && head[at + 1..].iter().all(u8::is_ascii_digit) && at + 1 < head.len() => &head[..at],
            _ => head,
        }
    }

    /// Cuts `text` into known names, without going back: each is the shortest that is known and leaves a rest that can be
    /// cut as well, which the next steps find out.
    fn tile<'n>(&self, text: &'n [u8], into: &mut Vec<&'n [u8]>) -> bool {
        // Where pieces may begin, from the end: `next[i]` is the end of the piece that begins at `i`.
        let starts: Vec<usize> = std::iter::once(0).chain(apostrophes(text).map(|at| at + 1)).collect();
        let ends: Vec<usize> = apostrophes(text).chain(std::iter::once(text.len())).collect();
        let mut next: Vec<Option<usize>> = vec![None; starts.len() + 1];
        for i in (0..starts.len()).rev() {
            next[i] = (i..ends.len()).find(|end| {
                let good = *end + 1 == starts.len() || next[*end + 1].is_some();
                good && self.known.contains(&text[starts[i]..ends[*end]])
            });
        }
        let mut i = 0;
        while i < starts.len() {
            let Some(end) = next[i] else {
                into.clear();
                return false;
            };
            into.push(&text[starts[i]..ends[end]]);
            i = end + 1;
        }
        true
    }
}

fn apostrophes(name: &[u8]) -> impl Iterator<Item = usize> {
    name.iter().enumerate().filter(|(_, byte)| **byte == b'\'').map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'n>(names: &[&'n str], name: &'n str) -> (String, Vec<String>) {
        let heads = Heads::new(names.iter().map(|name| name.as_bytes()));
        let context = heads.split(name.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(context.head), context.callers.into_iter().map(text).collect())
    }

    #[test]
    fn callers_and_levels_are_found() {
        let names = ["main", "g'main", "f'2'g'main", "f'g'main", "h'2"];
        let of = |name: &'static str| split(&names, name);
        assert_eq!(of("main"), ("main".into(), vec![]));
        assert_eq!(of("g'main"), ("g".into(), vec!["main".into()]));
        assert_eq!(of("f'2'g'main"), ("f'2".into(), vec!["g".into(), "main".into()]));
        assert_eq!(of("h'2"), ("h'2".into(), vec![]));
        let heads = Heads::new(names.iter().map(|name| name.as_bytes()));
        let plain = |name: &'static str| heads.plain(name.as_bytes());
        assert_eq!(
            ["f'2'g'main", "h'2", "main", "x's", "f'", "'2"].map(plain),
            [&b"f"[..], b"h", b"main", b"x's", b"f'", b"'2"]
        );
    }

    #[test]
    fn apostrophes_of_names_are_no_contexts() {
        let names =
            ["main", "call<for<'a> fn(&'a u8)>", "call<for<'a> fn(&'a u8)>'main", "it's'call<for<'a> fn(&'a u8)>'main"];
        let of = |name: &'static str| split(&names, name);
        assert_eq!(of(names[1]), (names[1].into(), vec![]));
        assert_eq!(of(names[2]), (names[1].into(), vec!["main".into()]));
        assert_eq!(of("x's"), ("x's".into(), vec![]), "nobody is called s");
        assert_eq!(of("'"), ("'".into(), vec![]));
        assert_eq!(of("f'"), ("f'".into(), vec![]));
    }
}
