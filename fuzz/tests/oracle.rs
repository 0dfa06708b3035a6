//! Names made by the grammar, as `c++filt` shows them. `NAMES=1000000 SEED=7 cargo test --release -p grind-fuzz --test oracle`
//! is a long run.

use std::collections::HashSet;
use std::env;
use std::io::Write;
use std::process::{Command, Stdio};

use grind_fuzz::grammar;
use grind_fuzz::mutate::Random;
use itanium_demangle::demangle;

/// One name in so many may differ: those with packs in scopes and expressions of kinds that only newer compilers write, for which
/// the oracle and the reference differ, and a few of a hundred parts.
const SHARE: u64 = 500;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What the oracle makes of each name; the name itself where that is nothing. It is asked for some at a time, and for each
/// alone where it dies of one of them; of that one there is nothing to say. `None`: it is not installed.
fn oracle(names: &[String]) -> Option<Vec<Option<String>>> {
    let mut filter =
        Command::new("c++filt").arg("--no-verbose").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut input = filter.stdin.take().expect("it was asked for");
    let text = names.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = filter.wait_with_output().expect("it ends");
    let _ = writer.join().expect("no panic");
    if output.status.success() {
        let text = String::from_utf8(output.stdout).expect("text");
        return Some(text.lines().map(|line| Some(line.to_owned())).collect());
    }
    match names {
        [name] => {
            eprintln!("c++filt: {}: {name}", output.status);
            Some(vec![None])
        }
        _ => {
            let (some, others) = names.split_at(names.len() / 2);
            Some([oracle(some)?, oracle(others)?].concat())
        }
    }
}

#[test]
fn names_are_shown_as_by_cxxfilt() {
    let mut random = Random::new(number("SEED").unwrap_or(1));
    let count = number("NAMES").unwrap_or(20_000);
    let (mut right, mut refused, mut all) = (0, 0, 0);
    let mut wrong: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    while all < count {
        let names: Vec<String> = (0..10_000.min(count - all))
            .map(|_| {
                let budget = 3 + random.below(40);
                String::from_utf8(grammar::name(&mut random, budget)).expect("names are text")
            })
            .collect();
        all += names.len() as u64;
        let Some(expected) = oracle(&names) else {
            assert!(env::var_os("CI").is_none(), "c++filt is missing");
            eprintln!("skipped: c++filt is not installed");
            return;
        };
        assert_eq!(expected.len(), names.len());
        for (name, expected) in names.iter().zip(&expected) {
            let Some(expected) = expected else { continue };
            let ours = demangle(name.as_bytes()).map(|text| String::from_utf8_lossy(&text).into_owned());
            let shown = ours.as_deref().unwrap_or(name);
            if shown == expected {
                if ours.is_some() {
                    right += 1;
                } else {
                    refused += 1;
                }
            } else if seen.insert(name.clone()) {
                wrong.push(format!("{name}\n  ours {shown}\n  c++filt {expected}"));
            }
        }
    }
    wrong.sort_by_key(String::len);
    eprintln!("{all} names: {right} equal, {refused} refused by both, {} differ", wrong.len());
    assert!(right > all / 8, "the grammar makes too few names that are right");
    let shown = &wrong[..wrong.len().min(number("SHOWN").unwrap_or(20) as usize)];
    assert!(wrong.len() as u64 * SHARE <= right, "{} of {all} differ:\n{}", wrong.len(), shown.join("\n"));
}
