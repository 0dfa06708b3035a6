//! What it costs to measure how well cache lines are used (callgrind's `--cacheuse=yes`): a code on a grid that misses the first
//! level often, natively, under grind with and without costs of calls, and under the reference, which has no costs of calls.

use anyhow::Result;

use crate::measure::{Cost, cost, median};
use crate::{Ways, set};

/// Prints the table; returns how many programs failed. `repeats`: runs of each way but the reference, of which `valgrind`.
pub(crate) fn table(ways: &Ways, set: &[set::Program], repeats: u32, valgrind: u32) -> Result<usize> {
    println!(
        "\ncallgrind with --cacheuse=yes: slowdowns; CPU: processor time of all threads, over native; self: --cacheuse=self"
    );
    println!(
        "{:<16} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "program", "native s", "grind", "CPU", "self", "self CPU", "valgrind"
    );
    let callgrind = |profiler: &[String], name: &str, option: &str| -> Vec<String> {
        let words = profiler.iter().filter(|w| !w.contains("-out-file=") && !w.contains("-sim=")).cloned();
        let out = format!("--callgrind-out-file={}/{name}.%p", ways.dir.display());
        words.chain(["--tool=callgrind".to_owned(), out, format!("--cacheuse={option}")]).collect()
    };
    let (all, own) = (callgrind(&ways.grind, "all", "yes"), callgrind(&ways.grind, "self", "self"));
    let reference = ways.valgrind.as_deref().map(|v| callgrind(v, "reference", "yes"));
    let mut failed = 0;
    for program in set.iter().filter(|p| p.name == "hydro") {
        let words = &program.words;
        let measure = || -> Result<[Vec<Cost>; 4]> {
            // One run that does not count fills the page cache.
            cost(words, &ways.dir)?;
            let mut found: [Vec<Cost>; 4] = Default::default();
            for round in 0..repeats.max(valgrind) {
                if round < repeats {
                    found[0].push(cost(words, &ways.dir)?);
                    found[1].push(cost(&Ways::under(&all, words), &ways.dir)?);
                    found[2].push(cost(&Ways::under(&own, words), &ways.dir)?);
                }
                if let Some(profiler) = reference.as_ref().filter(|_| round < valgrind) {
                    found[3].push(cost(&Ways::under(profiler, words), &ways.dir)?);
                }
            }
            Ok(found)
        };
        match measure() {
            Ok(found) => {
                let wall = |n: usize| median(&found[n].iter().map(|c| c.wall).collect::<Vec<_>>());
                let cpu = |n: usize| median(&found[n].iter().map(|c| c.cpu).collect::<Vec<_>>());
                let reference = if found[3].is_empty() { "-".into() } else { format!("{:.1}", wall(3) / wall(0)) };
                println!(
                    "{:<16} {:>9.3} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {reference:>9}",
                    program.name,
                    wall(0),
                    wall(1) / wall(0),
                    cpu(1) / cpu(0),
                    wall(2) / wall(0),
                    cpu(2) / cpu(0),
                );
            }
            Err(e) => {
                failed += 1;
                println!("{:<16} failed: {e:#}", program.name);
            }
        }
    }
    Ok(failed)
}
