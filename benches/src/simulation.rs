//! What simulating caches and branches costs: slowdowns in wall-clock and in processor time (the simulation has a thread of
//! its own, so they differ), beside the reference's.

use anyhow::Result;

use crate::measure::{Cost, cost, median};
use crate::{Ways, mean, set};

/// What is simulated, its name in recorded times, and the options for it.
const KINDS: [(&str, &str, &[&str]); 2] = [
    ("caches", "cache", &["--cache-sim=yes"]),
    ("caches and branches", "cache+branch", &["--cache-sim=yes", "--branch-sim=yes"]),
];

/// Prints a table for each kind of simulation; returns how many programs failed.
pub(crate) fn tables(ways: &Ways, set: &[set::Program], repeats: u32, valgrind: u32) -> Result<usize> {
    let mut failed = 0;
    for (kind, metric, options) in KINDS {
        // Of the call graph this is a measure of its own.
        let calls = ways.grind.iter().any(|w| w == "--tool=callgrind");
        let metric = match (calls, metric) {
            (false, metric) => metric,
            (true, "cache") => "calls+cache",
            (true, _) => "calls+cache+branch",
        };
        println!("\nsimulating {kind}: slowdowns; CPU: processor time of all threads, over native");
        println!("{:<16} {:>9} {:>9} {:>9} {:>9}", "program", "native s", "grind", "CPU", "valgrind");
        let with = |profiler: &[String]| -> Vec<String> {
            // The reference has been told not to simulate; the last word counts.
            profiler.iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect()
        };
        let grind = with(&ways.grind);
        let reference = ways.valgrind.as_deref().map(with);
        let (mut own_ratios, mut reference_ratios) = (Vec::new(), Vec::new());
        for program in set {
            match row(ways, metric, (&grind, reference.as_deref()), program, repeats, valgrind) {
                Ok(Row { native, own, valgrind }) => {
                    let ratio = own.wall / native.wall;
                    let theirs = valgrind.map(|t| t / native.wall);
                    println!(
                        "{:<16} {:>9.3} {ratio:>9.2} {:>9.2} {:>9}",
                        program.name,
                        native.wall,
                        own.cpu / native.cpu,
                        theirs.map_or_else(|| "-".into(), |r| format!("{r:.1}"))
                    );
                    if program.in_mean {
                        own_ratios.push(ratio);
                        reference_ratios.extend(theirs);
                    }
                }
                Err(e) => {
                    failed += 1;
                    println!("{:<16} failed: {e:#}", program.name);
                }
            }
        }
        println!("geometric mean: grind {}, Valgrind {}", mean(&own_ratios), mean(&reference_ratios));
    }
    Ok(failed)
}

/// Medians for one program.
struct Row {
    native: Cost,
    own: Cost,
    valgrind: Option<f64>,
}

fn row(
    ways: &Ways,
    metric: &'static str,
    (grind, reference): (&[String], Option<&[String]>),
    program: &set::Program,
    repeats: u32,
    valgrind: u32,
) -> Result<Row> {
    let words = &program.words;
    // One run that does not count fills the page cache.
    cost(words, &ways.dir)?;
    let note = |by, cost: Cost| Cost { wall: ways.noted(program.name, metric, by, cost.wall), ..cost };
    let (mut native, mut own, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..repeats.max(valgrind) {
        if round < repeats {
            native.push(note("native", cost(words, &ways.dir)?));
            own.push(note("grind", cost(&Ways::under(grind, words), &ways.dir)?));
        }
        if let Some(profiler) = reference.filter(|_| round < valgrind) {
            theirs.push(note("valgrind", cost(&Ways::under(profiler, words), &ways.dir)?).wall);
        }
    }
    let middle = |costs: &[Cost]| Cost {
        wall: median(&costs.iter().map(|c| c.wall).collect::<Vec<_>>()),
        cpu: median(&costs.iter().map(|c| c.cpu).collect::<Vec<_>>()),
    };
    let valgrind = (!theirs.is_empty()).then(|| median(&theirs));
    Ok(Row { native: middle(&native), own: middle(&own), valgrind })
}
