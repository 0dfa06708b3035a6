//! Stack distances as they are shown: what caches of some sizes would miss, of the program, its functions and its lines. Of bounds each
//! count is two: at least, and at most.
//!
//! Whatever is left out is said. Sums are those of the file; nothing is estimated but where the file itself tells of a sample.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cg_cli::json::Json;
use cg_format::mem::reuse::{Reuse, ReuseHead, of_all_objects};
use cg_format::mem::{Kind, Mem, Object};

use cg_format::show::commas as thousands;

/// The smallest and the largest cache in the table, as powers of two in bytes.
const SIZES: std::ops::RangeInclusive<u32> = 12..=26;

/// Those that functions and lines are shown for.
const FEW: [u32; 5] = [12, 15, 18, 21, 24];

/// By whose misses rows are ordered, and which are below the threshold.
const ORDER: u32 = 15;

/// Rows of a kind, the most important first, and how many more there are.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) shown: Vec<Reuse>,
    pub(crate) hidden: usize,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Distances {
    pub(crate) head: ReuseHead,
    pub(crate) program: Reuse,
    pub(crate) functions: Rows,
    pub(crate) lines: Rows,
    /// By data object, named by [`Reuse::function`], if the file tells them apart.
    pub(crate) objects: Option<Rows>,
}

/// As the power of two of lines, a cache of 2^`size` bytes; one that is smaller than a line has one.
fn lines(head: &ReuseHead, size: u32) -> u32 {
    size.saturating_sub(head.line.max(1).ilog2())
}

/// `32K`.
fn size_name(size: u32) -> String {
    if size < 20 { format!("{}K", 1 << (size - 10)) } else { format!("{}M", 1 << (size - 20)) }
}

/// What an object is called.
fn name(object: &Object) -> String {
    match object.kind {
        Kind::Stack => format!("[stack] {}", object.name),
        Kind::Heap => format!("heap@{}:{}", object.file.rsplit('/').next().unwrap_or_default(), object.line),
        _ => object.name.clone(),
    }
}

impl Distances {
    /// Those of a file, if it has any: rows with at least `threshold` percent of what a cache of 32 KiB would miss (of the accesses,
    /// if that is nothing).
    pub(crate) fn new(mem: &Mem, threshold: f64) -> Option<Self> {
        let head = mem.head.reuse.clone()?;
        let mut program = Reuse::default();
        let mut functions: BTreeMap<(&str, &str), Reuse> = BTreeMap::new();
        let mut objects: BTreeMap<usize, Reuse> = BTreeMap::new();
        for row in &mem.reuse {
            if let Some((n, object)) = row.object.and_then(|n| Some((n, mem.objects.get(n)?))) {
                let new = || Reuse { function: name(object), object: row.object, ..Reuse::default() };
                objects.entry(n).or_insert_with(new).add(row);
            }
            program.add(row);
            let new = || Reuse { function: row.function.clone(), file: row.file.clone(), ..Reuse::default() };
            functions.entry((&row.file, &row.function)).or_insert_with(new).add(row);
        }
        // (What has bounds has missed a cache.)
        let missed = |row: &Reuse| if head.hits.is_some() { row.accesses() } else { row.misses(lines(&head, ORDER)) };
        let weight = |row: &Reuse| if missed(&program) > 0 { missed(row) } else { row.accesses() };
        let whole = weight(&program) as f64;
        let choose = |mut all: Vec<Reuse>| {
            let before = all.len();
            all.retain(|row| weight(row) > 0 && weight(row) as f64 * 100.0 >= threshold * whole);
            all.sort_by_key(|row| std::cmp::Reverse((weight(row), row.accesses())));
            Rows { hidden: before - all.len(), shown: all }
        };
        let (functions, lines) = (choose(functions.into_values().collect()), choose(of_all_objects(mem.reuse.clone())));
        let objects = (!objects.is_empty()).then(|| choose(objects.into_values().collect()));
        Some(Self { head, program, functions, lines, objects })
    }

    /// What stands behind a heading where only a sample of lines was looked at.
    fn sampled(&self) -> String {
        match self.head.sample {
            0 | 1 => String::new(),
            rate => format!(", sampled 1/{rate}"),
        }
    }

    /// A count of the sample as one of all.
    fn scaled(&self, n: u64) -> u64 {
        n.saturating_mul(self.head.sample.max(1))
    }

    /// What a cache of 2^`size` bytes would miss of a row: at least, and at most.
    fn missed(&self, row: &Reuse, size: u32) -> [u64; 2] {
        let bits = lines(&self.head, size);
        let least = row.misses(bits);
        [least, if self.head.hits.is_some() { row.misses_at_most(bits) } else { least }]
    }

    /// The sections of the report.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn print(
        &self,
        out: &mut dyn Write,
        section: &dyn Fn(&mut dyn Write, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let (line, sampled, bounds) = (self.head.line, self.sampled(), self.head.hits.is_some());
        let what = if bounds { "Bounds of misses" } else { "Misses" };
        section(out, &format!("{what} by cache size{sampled}"))?;
        let which = if bounds { "What misses D1 of each" } else { "Each" };
        writeln!(out, "{which} thread's data accesses in a fully associative LRU cache, lines of {line} bytes\n")?;
        if let Some(hits) = self.head.hits {
            let text = thousands(hits.into());
            writeln!(out, "(Caches see every access; of the {text} that hit D1, what they miss is not known.)\n")?;
        }
        let all = self.program.accesses();
        let name = if bounds { "misses of D1" } else { "accesses" };
        let mut table = vec![(name.to_owned(), [all; 2])];
        table.extend(SIZES.map(|size| (size_name(size), self.missed(&self.program, size))));
        table.push(("any (first)".to_owned(), [self.program.first; 2]));
        self.table(out, &table)?;
        section(out, &format!("Distances{sampled}"))?;
        writeln!(out, "Other lines that the thread has accessed since it accessed the line last\n")?;
        let (least, most) = (&self.program.bins, if bounds { &self.program.most } else { &self.program.bins });
        let of = |bins: &[u64], bin: usize| bins.get(bin).copied().unwrap_or(0);
        let all_bins = (0..least.len().max(most.len())).map(|bin| (range(bin), [of(least, bin), of(most, bin)]));
        let mut table: Vec<_> = all_bins.filter(|(_, n)| *n != [0; 2]).collect();
        table.push(("first".to_owned(), [self.program.first; 2]));
        if bounds {
            writeln!(out, "(by the least that they can be, and by the most)\n")?;
        }
        self.table(out, &table)?;
        let objects = self.objects.iter().map(|rows| ("object", rows));
        for (of, rows) in [("function", &self.functions), ("line", &self.lines)].into_iter().chain(objects) {
            section(out, &format!("{what} by {of} and cache size{sampled}"))?;
            self.rows(out, of, rows)?;
        }
        Ok(())
    }

    fn table(&self, out: &mut dyn Write, rows: &[(String, [u64; 2])]) -> io::Result<()> {
        let all = self.program.accesses();
        let share = |n: u64| n as f64 * 100.0 / (all.max(1)) as f64;
        let names = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let text = |n: u64| thousands(self.scaled(n).into());
        let counts = rows.iter().flat_map(|(_, n)| n.map(|n| text(n).len())).max().unwrap_or(0);
        for (name, [least, most]) in rows {
            write!(out, "{name:>names$}  {:>counts$} ({:.2}%)", text(*least), share(*least))?;
            match self.head.hits {
                Some(_) => {
                    let gap = 6usize.saturating_sub(format!("{:.2}", share(*least)).len());
                    writeln!(out, "{:gap$}  {:>counts$} ({:.2}%)", "", text(*most), share(*most))?;
                }
                None => writeln!(out)?,
            }
        }
        writeln!(out)
    }

    /// A count, or its bounds.
    fn cell(&self, [least, most]: [u64; 2]) -> String {
        let text = |n: u64| thousands(self.scaled(n).into());
        if least == most { text(least) } else { format!("{}..{}", text(least), text(most)) }
    }

    fn rows(&self, out: &mut dyn Write, what: &str, rows: &Rows) -> io::Result<()> {
        let cells = |row: &Reuse| -> Vec<String> {
            let misses = FEW.map(|size| self.missed(row, size));
            let all = [[row.accesses(); 2]].into_iter().chain(misses).chain([[row.first; 2]]);
            all.map(|n| self.cell(n)).collect()
        };
        let first = if self.head.hits.is_some() { "misses" } else { "accesses" };
        let names = [first.to_owned()].into_iter().chain(FEW.map(size_name)).chain(["first".to_owned()]);
        let mut widths: Vec<usize> = names.clone().map(|name| name.len()).collect();
        for row in &rows.shown {
            widths.iter_mut().zip(cells(row)).for_each(|(width, cell)| *width = (*width).max(cell.len()));
        }
        let head: String = names.zip(&widths).map(|(name, width)| format!("{name:_>width$}  ")).collect();
        writeln!(out, "{head}{what}\n")?;
        for row in &rows.shown {
            let text: String =
                cells(row).into_iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  ")).collect();
            let file = row.file.rsplit('/').next().unwrap_or_default();
            let place = match (what, row.line) {
                ("object", _) => row.function.clone(),
                ("function", _) | (_, 0) => format!("{file}:{}", row.function),
                (_, line) => format!("{file}:{line} {}", row.function),
            };
            writeln!(out, "{text}{place}")?;
        }
        if rows.hidden > 0 {
            writeln!(out, "\n{} more below the threshold", thousands(rows.hidden as i128))?;
        }
        writeln!(out)
    }

    /// The same for programs.
    pub(crate) fn json(&self, json: &mut Json) {
        json.begin_object();
        for (key, n) in [("line", self.head.line), ("sample", self.head.sample), ("accesses", self.head.accesses)] {
            json.key(key);
            json.integer(n.into());
        }
        if let Some(hits) = self.head.hits {
            json.key("hits_of_d1");
            json.integer(hits.into());
        }
        let bounds = self.head.hits.is_some();
        json.key("program");
        histogram(json, &self.program, bounds);
        let objects = self.objects.iter().map(|rows| ("objects", rows));
        for (key, rows) in [("functions", &self.functions), ("lines", &self.lines)].into_iter().chain(objects) {
            json.key(key);
            json.begin_array();
            rows.shown.iter().for_each(|row| histogram(json, row, bounds));
            json.end_array();
            json.key(&format!("{key}_below_threshold"));
            json.integer(rows.hidden as i128);
        }
        json.end_object();
    }
}

fn histogram(json: &mut Json, row: &Reuse, bounds: bool) {
    json.begin_object();
    if row.object.is_some() {
        json.name("object", row.function.as_bytes());
    } else if !row.function.is_empty() {
        json.name("file", row.file.as_bytes());
        json.key("line");
        json.integer(row.line.into());
        json.name("function", row.function.as_bytes());
    }
    json.key("first");
    json.integer(row.first.into());
    json.integers("bins", row.bins.iter().map(|n| i128::from(*n)));
    if bounds {
        json.integers("bins_at_most", row.most.iter().map(|n| i128::from(*n)));
    }
    json.end_object();
}

/// The distances of a bin.
fn range(bin: usize) -> String {
    let text = |n: u64| thousands(n.into());
    match bin {
        0 => "0".into(),
        1 => "1".into(),
        _ if bin + 1 >= cg_format::mem::reuse::BINS => format!("{} and more", text(1 << (bin - 1))),
        _ => format!("{}..{}", text(1 << (bin - 1)), text((1 << bin) - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(function: &str, line: u64, first: u64, bins: &[u64]) -> Reuse {
        Reuse { function: function.into(), file: "t.c".into(), line, first, bins: bins.into(), ..Reuse::default() }
    }

    #[test]
    fn functions_are_their_lines_and_the_program_its_functions() {
        let mut mem =
            Mem { reuse: vec![row("f", 1, 2, &[5]), row("f", 2, 0, &[0, 7]), row("g", 9, 0, &[1])], ..Mem::default() };
        assert!(Distances::new(&mem, 0.0).is_none());
        mem.head.reuse = Some(ReuseHead { count: 3, line: 64, sample: 1, accesses: 15, hits: None });
        let all = Distances::new(&mem, 0.0).expect("distances");
        assert_eq!((all.program.first, &*all.program.bins), (2, &[6, 7][..]));
        assert_eq!(all.functions.shown, [row("f", 0, 2, &[5, 7])], "g misses nothing at 32 KiB");
        assert_eq!((all.lines.shown.len(), all.lines.hidden, all.functions.hidden), (1, 2, 1));
        mem.reuse[0].first = 0;
        // Nothing is missed at all: accesses count.
        let all = Distances::new(&mem, 10.0).expect("distances");
        assert_eq!((all.lines.shown.len(), all.lines.hidden, all.lines.shown[0].line), (2, 1, 2));
    }

    #[test]
    fn a_sample_is_shown_as_what_it_stands_for() {
        let mut mem = Mem { reuse: vec![row("f", 1, 2, &[5, 0, 1])], ..Mem::default() };
        mem.head.reuse = Some(ReuseHead { count: 1, line: 64, sample: 8, accesses: 8, hits: None });
        let mut text = Vec::new();
        let all = Distances::new(&mem, 0.0).expect("distances");
        all.print(&mut text, &|out, name| writeln!(out, "== {name}")).expect("memory");
        let text = String::from_utf8(text).expect("text");
        for expected in
            ["== Misses by cache size, sampled 1/8\n", "accesses  64 (100.00%)", "2..3   8 (12.50%)", "16  t.c:1 f"]
        {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
    }

    #[test]
    fn bounds_are_shown_as_two_counts() {
        let most = vec![0, 1, 4, 1];
        let mut mem = Mem { reuse: vec![Reuse { most, ..row("f", 1, 2, &[0, 3, 3]) }], ..Mem::default() };
        mem.head.reuse = Some(ReuseHead { count: 1, line: 2048, sample: 1, accesses: 8, hits: Some(1000) });
        let mut text = Vec::new();
        let all = Distances::new(&mem, 0.0).expect("distances");
        all.print(&mut text, &|out, name| writeln!(out, "== {name}")).expect("memory");
        let text = String::from_utf8(text).expect("text");
        for expected in [
            "== Bounds of misses by cache size\n",
            "of the 1,000 that hit D1",
            "misses of D1  8 (100.00%)  8 (100.00%)\n",
            "8K  2 (25.00%)   3 (37.50%)\n",
            "2..3  3 (37.50%)   4 (50.00%)\n",
            "4..7  0 (0.00%)    1 (12.50%)\n",
            "     8  5..7    2     2   2    2      2  t.c:1 f",
        ] {
            assert!(text.contains(expected), "{expected}:\n{text}");
        }
        let mut json = Json::default();
        all.json(&mut json);
        let json = json.finish();
        let json: String = json.chars().filter(|c| !c.is_whitespace()).collect();
        assert!(json.contains("\"hits_of_d1\":1000") && json.contains("\"bins_at_most\":[0,1,4,1]"), "{json}");
    }

    #[test]
    fn sizes_and_ranges_have_names() {
        assert_eq!([12, 15, 19, 20, 26].map(size_name), ["4K", "32K", "512K", "1M", "64M"]);
        assert_eq!(
            [0, 1, 2, 3, 12, 39].map(range),
            ["0", "1", "2..3", "4..7", "2,048..4,095", "274,877,906,944 and more"]
        );
        let head = |line| ReuseHead { line, ..ReuseHead::default() };
        assert_eq!([lines(&head(64), 12), lines(&head(8192), 12), lines(&head(0), 12)], [6, 0, 12]);
    }
}
