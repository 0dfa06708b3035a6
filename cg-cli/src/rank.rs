//! Which rank of a parallel program a profile is of, by the name of its file.
//!
//! A launcher tells each process its rank, and `--callgrind-out-file=cg.%q{OMPI_COMM_WORLD_RANK}` puts it into the name
//! somewhere. It is found by what names say, never by their order: a wrong rank would blame a wrong machine. So where it is
//! not clear there is none.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, anyhow};

use crate::input;
use crate::substitute::Substitution;

/// The rank of each file.
///
/// With a rule, what it makes of each name (the path as it was given) is the rank. Without, it is the number behind `rank`
/// in the file's name (`cg.rank3.out`, `cg.rank-3`), if all names have one. Else, of two or more names that only differ in
/// their numbers, it is the number that counts from 0 without gaps: exactly one of them must.
///
/// # Errors
/// The rule makes no number of a name.
pub fn ranks<S: AsRef<OsStr>>(paths: &[S], rule: Option<&Substitution>) -> anyhow::Result<Vec<Option<u64>>> {
    if let Some(rule) = rule {
        let by_rule = |path: &S| {
            let path = path.as_ref();
            let text = rule.apply(path.as_bytes()).with_context(|| input::name(path))?;
            let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
            let text = String::from_utf8_lossy(&text).into_owned();
            number
                .map(Some)
                .ok_or_else(|| anyhow!("{}: --rank makes `{text}` of it, which is no rank", input::name(path)))
        };
        return paths.iter().map(by_rule).collect();
    }
    let names: Vec<&[u8]> =
        paths.iter().map(|path| Path::new(path.as_ref()).file_name().map_or(&b""[..], OsStrExt::as_bytes)).collect();
    let marked: Vec<Option<u64>> = names.iter().map(|name| marked(name)).collect();
    if !marked.is_empty() && marked.iter().all(Option::is_some) {
        return Ok(marked);
    }
    Ok(counted(&names).unwrap_or_else(|| vec![None; names.len()]))
}

/// The number behind the last `rank`.
fn marked(name: &[u8]) -> Option<u64> {
    let lower = name.to_ascii_lowercase();
    let at = lower.windows(4).rposition(|window| window == b"rank")? + 4;
    let rest = &lower[at..];
    let rest = rest.strip_prefix(b"-").or(rest.strip_prefix(b"_")).or(rest.strip_prefix(b".")).unwrap_or(rest);
    let rest = rest.strip_prefix(b"=").unwrap_or(rest);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// The one number in the names that counts from 0 without gaps.
fn counted(names: &[&[u8]]) -> Option<Vec<Option<u64>>> {
    if names.len() < 2 {
        return None;
    }
    let parts: Vec<(Vec<&[u8]>, Vec<u64>)> = names.iter().map(|name| numbers(name)).collect::<Option<_>>()?;
    let (text, fields) = (&parts[0].0, parts[0].1.len());
    if parts.iter().any(|(other, _)| other != text) {
        return None;
    }
    let counts = |field: usize| {
        let mut seen = vec![false; names.len()];
        parts.iter().all(|(_, numbers)| {
            let at = usize::try_from(numbers[field]).unwrap_or(usize::MAX);
            seen.get_mut(at).is_some_and(|seen| !std::mem::replace(seen, true))
        })
    };
    let mut found = (0..fields).filter(|field| counts(*field));
    let field = found.next()?;
    // Two fields that count alike say the same.
    found
        .all(|other| parts.iter().all(|(_, numbers)| numbers[other] == numbers[field]))
        .then(|| parts.iter().map(|(_, numbers)| Some(numbers[field])).collect())
}

/// A name without its numbers, and the numbers.
fn numbers(name: &[u8]) -> Option<(Vec<&[u8]>, Vec<u64>)> {
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let mut rest = name;
    loop {
        let text = rest.iter().take_while(|byte| !byte.is_ascii_digit()).count();
        texts.push(&rest[..text]);
        rest = &rest[text..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Some((texts, numbers));
        }
        numbers.push(std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?);
        rest = &rest[digits..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<Option<u64>> {
        ranks(names, None).unwrap()
    }

    #[test]
    fn ranks_are_found_where_names_are_clear() {
        assert_eq!(found(&["a/cg.rank7.out"]), [Some(7)]);
        assert_eq!(found(&["cg.rank-1.881", "cg.Rank_0.12.gz"]), [Some(1), Some(0)]);
        assert_eq!(found(&["cg.2", "cg.0", "cg.1"]), [Some(2), Some(0), Some(1)]);
        assert_eq!(found(&["d1/cg.1.4711", "d1/cg.0.4712"]), [Some(1), Some(0)], "process ids do not count from 0");
        assert_eq!(found(&["0.0", "1.1"]), [Some(0), Some(1)]);
    }

    #[test]
    fn what_is_not_clear_is_no_rank() {
        assert_eq!(found(&["cg.5", "cg.6"]), [None, None]);
        assert_eq!(found(&["cg.0"]), [None]);
        assert_eq!(found(&["cg.0", "cg.0"]), [None, None]);
        assert_eq!(found(&["0.1", "1.0"]), [None, None], "either could be it");
        assert_eq!(found(&["a0", "b1"]), [None, None]);
        assert_eq!(found(&["cg.rank1", "cg.x"]), [None, None]);
        assert_eq!(found(&["cg.99999999999999999999", "cg.0"]), [None, None]);
    }

    #[test]
    fn a_rule_decides_or_fails() {
        let rule = Substitution::parse(r"s/.*node(\d+)-.*/\1/").unwrap();
        assert_eq!(ranks(&["x/node12-7"], Some(&rule)).unwrap(), [Some(12)]);
        let error = ranks(&["x/7"], Some(&rule)).unwrap_err().to_string();
        assert_eq!(error, "x/7: --rank makes `x/7` of it, which is no rank");
    }
}
