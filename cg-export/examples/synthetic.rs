//! Writes made-up profiles of a parallel program over a year of commits, to try stores and merges with.
//!
//! ```text
//! cargo run --release -p cg-export --example synthetic -- FOLDER COMMITS [RANKS [FUNCTIONS]]
//! ```
//!
//! Profiles are the same whenever they are made, and have what queries should find: `regressed` takes a fifth more from the
//! middle commit on, `creeping` grows a little at every commit, and the last rank does twice as much of `solve` as others.
#![allow(dead_code)]

use std::fmt::Write;
use std::path::Path;

/// Commits of a year, and what each of them is measured with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Year {
    /// How many commits there are.
    pub(crate) commits: u64,
    /// How many ranks the program has.
    pub(crate) ranks: u64,
    /// How many functions there are besides those that queries should find.
    pub(crate) functions: u64,
}

impl Year {
    /// What a function costs.
    pub(crate) fn cost(self, function: &str, commit: u64, rank: u64) -> u64 {
        match function {
            "regressed" if commit >= self.commits / 2 => 1_200_000,
            "regressed" => 1_000_000,
            "creeping" => 500_000 + 700_000 * commit / self.commits,
            "solve" if rank + 1 == self.ranks => 4_000_000,
            "solve" => 2_000_000,
            // As noisy as real ones: a few in a thousand, either way.
            _ => {
                let seed = function
                    .bytes()
                    .fold(commit << 8 | rank, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
                let weight = function.bytes().map(u64::from).sum::<u64>() * 97 % 1000;
                10_000 + weight * 100 + (seed >> 32) % 50
            }
        }
    }

    /// The profile of a rank at a commit, in the format of cachegrind: three lines a function.
    pub(crate) fn profile(self, commit: u64, rank: u64) -> String {
        let mut text = format!("cmd: ./model --steps 100\nevents: Ir\nfl=model{}.c\n", 0);
        let mut total = 0;
        let made_up = (0..self.functions).map(|number| format!("function_{number}"));
        for (i, name) in ["regressed", "creeping", "solve"].map(str::to_owned).into_iter().chain(made_up).enumerate() {
            if i % 50 == 49 {
                let _ = writeln!(text, "fl=model{}.c", i / 50);
            }
            let cost = self.cost(&name, commit, rank);
            total += cost;
            let (first, second) = (cost / 2, cost / 3);
            let line = i * 10 + 1;
            let _ = writeln!(
                text,
                "fn={name}\n{line} {first}\n{} {second}\n{} {}",
                line + 1,
                line + 2,
                cost - first - second
            );
        }
        let _ = writeln!(text, "summary: {total}");
        text
    }

    /// The time of a commit, in seconds since 1970.
    pub(crate) fn time(self, commit: u64) -> u64 {
        1_750_000_000 + commit * 364 * 86_400 / self.commits
    }

    /// The name of a commit. Some are all digits, as real ones may be.
    pub(crate) fn commit(commit: u64) -> String {
        format!("{:07x}", commit.wrapping_mul(2_654_435_761) % (1 << 28))
    }

    /// Writes the profiles of a commit to a folder of its own; gives their files.
    pub(crate) fn write(self, folder: &Path, commit: u64) -> std::io::Result<Vec<std::path::PathBuf>> {
        let folder = folder.join(Self::commit(commit));
        std::fs::create_dir_all(&folder)?;
        let one = |rank| {
            let path = folder.join(format!("cg.rank{rank}"));
            std::fs::write(&path, self.profile(commit, rank)).map(|()| path)
        };
        (0..self.ranks).map(one).collect()
    }
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let Some(folder) = args.get(1) else {
        eprintln!("usage: synthetic FOLDER COMMITS [RANKS [FUNCTIONS]]");
        std::process::exit(2);
    };
    let year = Year { commits: number(2, 100), ranks: number(3, 4), functions: number(4, 100) };
    for commit in 0..year.commits {
        year.write(Path::new(folder), commit)?;
        println!("{} {}", Year::commit(commit), year.time(commit));
    }
    Ok(())
}
