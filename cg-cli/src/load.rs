//! Reads profiles given on a command line, adding them up, on as many cores as there are.
//!
//! The result does not depend on the number of cores: each core takes a run of neighbouring inputs, and the runs are
//! added in the order of the command line. The error reported is that of the first faulty input.

use std::ffi::OsString;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, bail};
use cg_format::cachegrind::{Header, MergeError, Profile, ReadErrorKind, ReadOptions, Summary, read_more};

use crate::input;
use crate::progress::Counter;

/// Inputs, added up.
#[derive(Debug)]
pub struct Loaded {
    /// The sum; its header is that of the first input.
    pub profile: Profile,
    /// The header of each input.
    pub headers: Vec<Header>,
    /// What the `summary:` line of each input was like.
    pub summaries: Vec<Summary>,
}

/// Below this many bytes a second thread costs more than it brings.
const WORTH_A_THREAD: u64 = 1 << 18;

/// Refuses a list that names standard input twice: the second time nothing would be left of it.
///
/// # Errors
/// `-` is named twice.
pub fn check_stdin(paths: &[OsString]) -> anyhow::Result<()> {
    if paths.iter().filter(|path| *path == "-").count() > 1 {
        bail!("standard input (`-`) can be read only once");
    }
    Ok(())
}

/// Reads and adds up `paths`, of which there must be at least one.
///
/// # Errors
/// The first input that cannot be read or does not match the ones before.
pub fn sum(paths: &[OsString], options: &ReadOptions, counter: &Arc<Counter>) -> anyhow::Result<Loaded> {
    let sizes: Vec<u64> = paths.iter().map(|path| std::fs::metadata(path).map_or(0, |meta| meta.len())).collect();
    let whole: u64 = sizes.iter().sum();
    let most = paths.len().min(usize::try_from(whole / WORTH_A_THREAD).unwrap_or(usize::MAX));
    // Asking for the number of cores reads half a dozen files.
    let cores = if most > 1 { thread::available_parallelism().map_or(1, NonZero::get).min(most) } else { 1 };
    let runs = split(&sizes, cores);
    let mut parts = thread::scope(|scope| {
        let mut rest = paths;
        let mut threads = Vec::new();
        let mut own = None;
        for (i, length) in runs.iter().enumerate() {
            let (run, after) = rest.split_at(*length);
            rest = after;
            if i + 1 == runs.len() {
                own = Some(sum_run(run, options, counter));
            } else {
                threads.push(scope.spawn(move || sum_run(run, options, counter)));
            }
        }
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread failed"))));
        joined.chain(own).collect::<Vec<_>>()
    })
    .into_iter();
    let mut loaded = parts.next().unwrap_or_else(|| Err(anyhow!("no input files")))?;
    for part in parts {
        let part = part?;
        let name = input::name(&paths[loaded.headers.len()]);
        loaded.profile.merge(&part.profile).map_err(|error| match error {
            MergeError::EventsDiffer => events_differ(&name, &part.profile.header, paths, &loaded.headers),
            MergeError::TooLarge => anyhow!("{name}: {error}"),
        })?;
        loaded.headers.extend(part.headers);
        loaded.summaries.extend(part.summaries);
    }
    Ok(loaded)
}

/// Reads two profiles side by side.
///
/// # Errors
/// The first of them that cannot be read.
pub fn pair(
    [first, second]: [&OsString; 2],
    options: &ReadOptions,
    counter: &Arc<Counter>,
) -> anyhow::Result<[Loaded; 2]> {
    let one = |path| sum_run(std::slice::from_ref(path), options, counter);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| one(first));
        let second = one(second);
        (first.join().unwrap_or_else(|_| Err(anyhow!("a thread failed"))), second)
    });
    Ok([first?, second?])
}

/// Adds the second of two profiles to the first after changing the first one's signs: second minus first.
///
/// # Errors
/// They do not count the same events.
pub fn subtract([first, second]: &mut [Loaded; 2], names: [&OsString; 2]) -> anyhow::Result<()> {
    let [old, new] = names.map(|name| input::name(name));
    let [before, after] = [&*first, &*second].map(|loaded| loaded.profile.header.events.join(" "));
    if before != after {
        return Err(anyhow!("{new}: events in data files don't match: `{after}` here, `{before}` in {old}"));
    }
    first.profile.negate();
    first.profile.merge(&second.profile).with_context(|| new)
}

/// Lengths of at most `count` runs of neighbours with about equal sums.
fn split(sizes: &[u64], count: usize) -> Vec<usize> {
    let whole: u64 = sizes.iter().sum();
    let mut runs = Vec::new();
    let (mut length, mut taken) = (0, 0);
    for (i, size) in sizes.iter().enumerate() {
        length += 1;
        taken += size;
        let due = (runs.len() as u64 + 1) * whole / count as u64;
        if runs.len() + 1 < count && taken >= due && i + 1 < sizes.len() {
            runs.push(std::mem::take(&mut length));
        }
    }
    runs.push(length);
    runs
}

fn sum_run(paths: &[OsString], options: &ReadOptions, counter: &Arc<Counter>) -> anyhow::Result<Loaded> {
    let mut profile = None;
    let (mut headers, mut summaries) = (Vec::<Header>::new(), Vec::new());
    for path in paths {
        let name = input::name(path);
        let input = input::open_profile(path, counter).map_err(|why| anyhow!("{name}: {why}"))?;
        match read_more(&mut profile, input, &name, options) {
            Ok(outcome) => {
                headers.push(outcome.header);
                summaries.push(outcome.summary);
            }
            Err(error) => match &error.kind {
                ReadErrorKind::EventsDiffer(events) => {
                    let header = Header { events: events.clone(), ..Header::default() };
                    return Err(events_differ(&name, &header, paths, &headers));
                }
                _ => return Err(error.into()),
            },
        }
    }
    let profile = profile.context("no input files")?;
    Ok(Loaded { profile, headers, summaries })
}

/// The refusal to add profiles of different events.
fn events_differ(name: &str, header: &Header, paths: &[OsString], before: &[Header]) -> anyhow::Error {
    let (first, events) = (input::name(&paths[0]), before.first().map(|header| header.events.join(" ")));
    let events = events.unwrap_or_default();
    anyhow!("{name}: events in data files don't match: `{}` here, `{events}` in {first}", header.events.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_all_inputs_evenly() {
        assert_eq!(split(&[5, 5, 5, 5], 2), [2, 2]);
        assert_eq!(split(&[5, 5, 5, 5], 1), [4]);
        assert_eq!(split(&[100, 1, 1], 2), [1, 2]);
        assert_eq!(split(&[1, 1, 100], 2), [3]);
        assert_eq!(split(&[0, 0], 2), [1, 1]);
        assert_eq!(split(&[7], 8), [1]);
        for count in 1..6 {
            let sizes: Vec<u64> = (0..17).map(|i| i * i % 11).collect();
            let runs = split(&sizes, count);
            assert_eq!(runs.iter().sum::<usize>(), sizes.len());
            assert!(runs.len() <= count);
        }
    }
}
