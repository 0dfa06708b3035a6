//! Makes profiles for measurements: of any size, the same for the same seed, shaped like real ones.
//!
//! About ten lines a function and thirty functions a file, paths and names of usual lengths, many zeros and small counts.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Thirteen events, as of a run with both simulations.
pub(crate) const ALL_EVENTS: &str = "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim";

/// What to generate.
pub(crate) struct Shape {
    /// Names of events, separated by blanks.
    pub(crate) events: &'static str,
    /// The size in bytes, about.
    pub(crate) size: u64,
    /// Distinct files; when they are used up the same keys come again. 0: never.
    pub(crate) files: u64,
    /// Another seed gives other counts; keys depend on it only where lines are left out.
    pub(crate) seed: u64,
}

/// Writes a profile without counts.
pub(crate) fn generate_empty(path: &Path, events: &str) -> io::Result<()> {
    let zeros = vec!["0"; events.split(' ').count()].join(" ");
    std::fs::write(path, format!("cmd: ./generated\nevents: {events}\nsummary: {zeros}\n"))
}

/// Writes a profile.
pub(crate) fn generate(path: &Path, shape: &Shape) -> io::Result<()> {
    let mut out = Counted { out: BufWriter::with_capacity(1 << 20, File::create(path)?), bytes: 0 };
    let width = shape.events.split(' ').count();
    let mut random = Random(shape.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut total = vec![0_i128; width];
    writeln!(
        out,
        "desc: generated for a measurement\ncmd: ./generated --seed {}\nevents: {}",
        shape.seed, shape.events
    )?;
    let mut text = String::new();
    for file in 0.. {
        if out.bytes >= shape.size {
            break;
        }
        let file = if shape.files == 0 { file } else { file % shape.files };
        let mut keys = Random(file * 7_919 + 1);
        writeln!(out, "fl=/home/user/project/src/module{:03}/component{file:06}.c", file % 211)?;
        for function in 0..20 + keys.next() % 20 {
            writeln!(out, "fn=component{file:06}_operation_{function:02}(int, char const*)")?;
            let mut line = 40 * function + 1;
            for _ in 0..5 + keys.next() % 10 {
                line += 1 + keys.next() % 3;
                if random.next().is_multiple_of(16) {
                    continue;
                }
                text.clear();
                text.push_str(&line.to_string());
                for sum in &mut total {
                    let kind = random.next() % 8;
                    let count = match kind {
                        0..=3 => 0,
                        4 | 5 => random.next() % 100,
                        6 => random.next() % 100_000,
                        _ => random.next() % 1_000_000_000,
                    };
                    *sum += i128::from(count);
                    text.push(' ');
                    text.push_str(&count.to_string());
                }
                text.push('\n');
                out.write_all(text.as_bytes())?;
            }
        }
    }
    let total: Vec<String> = total.iter().map(i128::to_string).collect();
    writeln!(out, "summary: {}", total.join(" "))?;
    out.flush()
}

struct Counted {
    out: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Xorshift: plenty for this, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }
}
