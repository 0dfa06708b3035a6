//! Two profiles whose files differ by nothing but the folder that they were built in.
//!
//! Then no function of one meets that of the other, and a difference shows everything twice. The pair of prefixes is guessed from
//! the names alone, and only told, or applied where that was asked for; a guess needs most of the files that differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use cg_format::cachegrind::Profile;

use crate::substitute::{SubstituteError, Substitution};

/// Prefixes in whose place files of two profiles have the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// That of the first profile; ends with `/` or is empty.
    pub before: String,
    /// That of the second.
    pub after: String,
    /// How many files they join.
    pub files: usize,
}

/// Files of one name that are compared at most; there are thousands of `mod.rs` and `index.c`.
const MOST: usize = 64;

/// The prefixes by which files of two profiles differ, if most of those that only one of them has do so.
#[must_use]
pub fn differing(before: &Profile, after: &Profile) -> Option<Prefixes> {
    let names = |profile: &Profile| -> BTreeSet<String> {
        let names = profile.files().filter_map(|file| String::from_utf8(file.name().to_vec()).ok());
        names.filter(|name| name.contains('/')).collect()
    };
    let (before, after) = (names(before), names(after));
    let only =
        |own: &BTreeSet<String>, other: &BTreeSet<String>| own.difference(other).cloned().collect::<BTreeSet<_>>();
    let (before, after) = (only(&before, &after), only(&after, &before));
    let mut by_base: HashMap<&str, Vec<&str>> = HashMap::new();
    for name in &after {
        by_base.entry(base(name)).or_default().push(name);
    }
    let mut votes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for name in &before {
        let others = by_base.get(base(name)).into_iter().flatten().take(MOST);
        if let Some((length, other)) = others.map(|other| (common_end(name, other), other)).max() {
            *votes.entry((&name[..name.len() - length], &other[..other.len() - length])).or_default() += 1;
        }
    }
    // Of equal ones the first by name, whatever the order of the votes.
    let ((old, new), _) = votes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)))?;
    let joined = |name: &&String| name.strip_prefix(old).is_some_and(|rest| after.contains(&format!("{new}{rest}")));
    let files = before.iter().filter(joined).count();
    let enough = files * 2 > before.len().min(after.len());
    enough.then(|| Prefixes { before: old.to_owned(), after: new.to_owned(), files })
}

/// How to rename files that differ by a prefix alone, if that is `wanted`; else, if there are such, standard error says, in
/// the name of `program`, how to ask for it.
///
/// # Errors
/// None in practice: the expression is one.
pub fn matching(
    program: &str,
    wanted: bool,
    [before, after]: [&Profile; 2],
) -> Result<Option<Substitution>, SubstituteError> {
    // Nobody may be there to read it.
    let tell = |text: String| _ = writeln!(io::stderr(), "{program}: {text}");
    let Some(prefixes) = differing(before, after) else {
        if wanted {
            tell(
                "--match-paths: files of the two profiles do not differ by a folder alone; none is renamed".to_owned(),
            );
        }
        return Ok(None);
    };
    let substitution = prefixes.substitution();
    let Prefixes { before, after, files } = prefixes;
    let what = format!("{files} source files differ only by a folder, '{before}' and '{after}'");
    if wanted {
        tell(format!("{what}: as with --mod-filename='{substitution}'"));
        return Substitution::parse(&substitution).map(Some);
    }
    tell(format!("{what}: --match-paths compares them, and so does --mod-filename='{substitution}'"));
    Ok(None)
}

impl Prefixes {
    /// The value of `--mod-filename` that takes them away.
    #[must_use]
    pub fn substitution(&self) -> String {
        let mut prefixes: Vec<&str> =
            [&*self.before, &*self.after].into_iter().filter(|text| !text.is_empty()).collect();
        // What is the beginning of the other must not be tried first.
        prefixes.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let literals: Vec<String> = prefixes.into_iter().map(literal).collect();
        match &literals[..] {
            [one] => format!("s/^{one}//"),
            more => format!("s/^(?:{})//", more.join("|")),
        }
    }
}

/// `text` as an expression that matches just it, between slashes.
fn literal(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' | '/') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The length of what both end with, in whole components.
fn common_end(a: &str, b: &str) -> usize {
    let same = a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b);
    let length: usize = same.map(|(part, _)| part.len() + 1).sum();
    // The slash before the first of them is not theirs, nor is there one if that is all of a name.
    length.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(files: &[&str]) -> Profile {
        let mut profile = Profile::new(["Ir"]);
        for file in files {
            profile.add(file.as_bytes(), b"f", 1, &[1]).unwrap();
        }
        profile
    }

    #[test]
    fn folders_of_two_builds_are_found_and_taken_away() {
        for (before, after, expected) in [
            (
                &["/b/old/src/a.c", "/b/old/src/b.c", "/usr/x.h", "???"][..],
                &["/b/new/src/a.c", "/b/new/src/b.c", "/usr/x.h"][..],
                Some(("/b/old/", "/b/new/", 2)),
            ),
            (&["v1/a.c"], &["v2/a.c"], Some(("v1/", "v2/", 1))),
            (
                &["src/a.c", "src/b.c"],
                &["/w/x.1/src/a.c", "/w/x.1/src/b.c", "/w/x.1/src/new.c"],
                Some(("", "/w/x.1/", 2)),
            ),
            (&["/a/b/x.c", "/a/b/y.c"], &["/a/x.c", "/a/y.c"], Some(("/a/b/", "/a/", 2))),
            (&["/a/x.c", "/a/y.c", "/a/z.c"], &["/b/x.c", "/b/1.c", "/b/2.c"], None),
            (&["/a/x.c"], &["/a/x.c"], None),
            (&["/a/x.c"], &["/a/y.c"], None),
            (&[], &["/a/y.c"], None),
        ] {
            let found = differing(&profile(before), &profile(after));
            let shown = found.as_ref().map(|found| (&found.before[..], &found.after[..], found.files));
            assert_eq!(shown, expected, "{before:?}");
            let Some(found) = found else { continue };
            let substitution = Substitution::parse(&found.substitution()).unwrap();
            let renamed = |names: &[&str]| -> BTreeSet<Vec<u8>> {
                names.iter().map(|name| substitution.apply(name.as_bytes()).unwrap()).collect()
            };
            let joined = renamed(before).intersection(&renamed(after)).count();
            assert!(joined >= found.files, "{}", found.substitution());
        }
    }
}
