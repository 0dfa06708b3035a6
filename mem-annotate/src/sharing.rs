//! Lines that threads share as they are shown: who has used which bytes of them, truly or falsely shared; of two files what is
//! different.
//!
//! Whatever is left out is said. Rows are those of the file; only of two files those are one that share the same objects in the same
//! way, since threads and bytes may be others.

mod said;

use std::collections::BTreeMap;
use std::io::{self, Write};

use cg_cli::json::Json;
use cg_format::mem::sharing::{Shared, SharedUse, SharingHead, Which};
use cg_format::mem::{Kind, Mem};

use cg_format::show::commas as thousands;

use crate::source::Sources;
use said::{Said, said_of_order, table, title};

/// What two files differ in: lines of the same objects that are shared in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) which: Which,
    /// The names of the objects, each once.
    pub(crate) names: Vec<String>,
    /// Lines, and what is counted beside them ([`Counted`]), that were added.
    pub(crate) counts: [i128; 3],
}

/// What is counted of lines, beside how many they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    /// Nothing.
    Lines,
    /// How often they are read and written.
    Accesses,
    /// How often they go from one thread to another, and are taken from those that have read them.
    Moves,
}

impl Counted {
    /// What all of these files have.
    fn of(heads: &[Option<&SharingHead>]) -> Self {
        let all = |has: fn(&SharingHead) -> bool| heads.iter().flatten().all(|head| has(head));
        match () {
            () if all(|head| head.order.is_some()) => Self::Moves,
            () if all(|head| !head.uncounted) => Self::Accesses,
            () => Self::Lines,
        }
    }

    /// The counts of a row.
    fn row(self, row: &Shared) -> [u64; 3] {
        let [reads, writes, upgrades] = row.moved();
        match self {
            Self::Moves => [row.lines, reads.saturating_add(writes), upgrades],
            Self::Lines | Self::Accesses => [row.lines, row.reads(), row.writes()],
        }
    }

    /// The same of a use, without lines.
    fn used(self, used: &SharedUse) -> [u64; 2] {
        let [reads, writes, upgrades] = used.moved();
        match self {
            Self::Moves => [reads.saturating_add(writes), upgrades],
            Self::Lines | Self::Accesses => [used.reads, used.writes],
        }
    }

    /// What rows are compared and left out by.
    fn weight(self, counts: [u128; 3]) -> u128 {
        if self == Self::Lines { counts[0] } else { counts[1].saturating_add(counts[2]) }
    }

    /// What stands above the counts.
    fn titles(self) -> &'static [&'static str] {
        match self {
            Self::Lines => &["lines"],
            Self::Accesses => &["lines", "reads", "writes"],
            Self::Moves => &["lines", "moves", "upgrades"],
        }
    }
}

/// What is shown.
#[derive(Debug)]
pub(crate) enum Rows {
    /// Of one file: numbers of rows.
    Each(Vec<usize>),
    /// Of two files.
    Differences(Vec<Difference>),
    /// Only one of two files has any.
    OneSided,
}

/// See the module's description.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(crate) head: SharingHead,
    pub(crate) rows: Rows,
    /// How many rows are below the threshold.
    pub(crate) hidden: usize,
    counted: Counted,
}

/// What lies there, without the source's help: the same text in both files of a difference.
fn plain_name(mem: &Mem, used: &SharedUse) -> String {
    match used.object.and_then(|n| mem.objects.get(n)) {
        Some(object) if object.kind == Kind::Stack => format!("[stack] {}", object.name),
        Some(object) if object.kind == Kind::Heap => format!("heap@{}:{}", object.file, object.function),
        Some(object) => object.name.clone(),
        None => "line".to_owned(),
    }
}

fn differences(before: &Mem, after: &Mem, counted: Counted) -> Vec<Difference> {
    let mut all: BTreeMap<(Which, Vec<String>), [i128; 3]> = BTreeMap::new();
    for (mem, sign) in [(before, -1), (after, 1)] {
        for row in &mem.sharing {
            let mut names: Vec<String> = row.uses.iter().map(|used| plain_name(mem, used)).collect();
            names.sort();
            names.dedup();
            let sums = all.entry((row.which, names)).or_default();
            let counts = counted.row(row);
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += sign * i128::from(n));
        }
    }
    all.into_iter().map(|((which, names), counts)| Difference { which, names, counts }).collect()
}

impl Sharing {
    /// Those of a file, or of two, if there are any: rows with at least `threshold` percent of the accesses to shared lines, or of their moves;
    /// of the lines, if a file has counted neither.
    pub(crate) fn new(before: Option<&Mem>, mem: &Mem, threshold: f64) -> Option<Self> {
        let heads = [before.and_then(|mem| mem.head.sharing.as_ref()), mem.head.sharing.as_ref()];
        let head = heads[1].or(heads[0])?.clone();
        let counted = Counted::of(&heads);
        let weight = |counts: [u128; 3]| counted.weight(counts);
        let of_row = |row: &Shared| weight(counted.row(row).map(u128::from));
        let sum = |mem: &Mem| mem.sharing.iter().map(of_row).sum();
        let whole = before.into_iter().chain([mem]).map(sum).max().unwrap_or(0u128);
        let above = |n: u128| n > 0 && n as f64 * 100.0 >= threshold * whole as f64;
        let (rows, all) = match (before, &heads) {
            (Some(before), [Some(_), Some(_)]) => {
                let mut rows = differences(before, mem, counted);
                rows.retain(|row| row.counts != [0; 3]);
                let all = rows.len();
                let weight = |row: &Difference| weight(row.counts.map(i128::unsigned_abs));
                rows.retain(|row| above(weight(row)));
                rows.sort_by_key(|row| std::cmp::Reverse(weight(row)));
                (Rows::Differences(rows), all)
            }
            (Some(_), _) => (Rows::OneSided, 0),
            (None, _) => {
                let weight = |n: &usize| of_row(&mem.sharing[*n]);
                let mut rows: Vec<usize> = (0..mem.sharing.len()).filter(|n| above(weight(n))).collect();
                rows.sort_by_key(|n| std::cmp::Reverse(weight(n)));
                (Rows::Each(rows), mem.sharing.len())
            }
        };
        let shown = match &rows {
            Rows::Each(rows) => rows.len(),
            Rows::Differences(rows) => rows.len(),
            Rows::OneSided => 0,
        };
        Some(Self { head, rows, hidden: all - shown, counted })
    }

    /// The section of the report.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn print(&self, out: &mut dyn Write, mem: &Mem, sources: &mut Sources<'_>) -> io::Result<()> {
        let SharingHead { line, threads, others, .. } = &self.head;
        let rows = match &self.rows {
            Rows::OneSided => return writeln!(out, "Only one of the files has shared lines: they are not compared\n"),
            Rows::Each(rows) => {
                rows.iter().flat_map(|n| said::of_row(&mem.sharing[*n], self.counted, mem, *line, sources)).collect()
            }
            Rows::Differences(rows) => {
                let counts = |row: &Difference| row.counts.map(thousands).map(Some);
                let of = |row: &Difference| Said { counts: counts(row), text: title(row.which, &row.names) };
                rows.iter().map(of).collect::<Vec<Said>>()
            }
        };
        writeln!(
            out,
            "Lines of {line} bytes that a thread wrote while another one that uses them lived ({threads} threads)\n"
        )?;
        match (&self.rows, rows.is_empty() && self.hidden == 0) {
            (_, false) => table(out, &rows, self.counted)?,
            (Rows::Differences(_), true) => writeln!(out, "Nothing is different")?,
            (_, true) => writeln!(out, "There is none")?,
        }
        if self.hidden > 0 {
            writeln!(out, "\n{} more below the threshold", thousands(self.hidden as i128))?;
        }
        match (&self.head.order, &self.rows) {
            (Some(order), Rows::Each(_)) => said_of_order(out, order)?,
            (Some(_), Rows::Differences(_)) if self.counted == Counted::Moves => {
                writeln!(out, "\nMoves are those of two runs, each as its threads took turns")?;
            }
            _ => {}
        }
        if *others > 0 {
            let others = thousands((*others).into());
            writeln!(out, "\n{others} lines are in no row, since there were too many ways of sharing")?;
        }
        writeln!(out)
    }

    /// The same for programs.
    pub(crate) fn json(&self, json: &mut Json, mem: &Mem, sources: &mut Sources<'_>) {
        let integer = |json: &mut Json, key: &str, n: i128| {
            json.key(key);
            json.integer(n);
        };
        let counted = self.counted == Counted::Accesses;
        let moves = self.counted == Counted::Moves;
        let count = |json: &mut Json, key: &str, n: i128| {
            json.key(key);
            if counted || key == "lines" { json.integer(n) } else { json.null() }
        };
        let moved = |json: &mut Json, of: [i128; 3]| {
            for (key, n) in ["moved_by_reads", "moved_by_writes", "upgrades"].into_iter().zip(of).filter(|_| moves) {
                integer(json, key, n);
            }
        };
        json.begin_object();
        for (key, n) in [("line", self.head.line), ("threads", self.head.threads), ("others", self.head.others)] {
            integer(json, key, n.into());
        }
        count(json, "reads", self.head.reads.into());
        count(json, "writes", self.head.writes.into());
        if let Some(order) = self.head.order.as_ref().filter(|_| moves) {
            moved(json, order.moves.map(i128::from));
            json.key("handed_over");
            json.begin_array();
            order.handed_over.iter().for_each(|n| json.integer((*n).into()));
            json.end_array();
            integer(json, "unplaced", order.unplaced.into());
        }
        json.key("rows");
        json.begin_array();
        match &self.rows {
            Rows::OneSided => {}
            Rows::Differences(rows) => {
                for row in rows {
                    json.begin_object();
                    json.name("sharing", row.which.word().as_bytes());
                    json.key("objects");
                    json.begin_array();
                    row.names.iter().for_each(|name| json.string(name.as_bytes()));
                    json.end_array();
                    let [lines, first, second] = row.counts;
                    for (key, n) in [("lines", lines), ("reads", first), ("writes", second)] {
                        count(json, key, n);
                    }
                    for (key, n) in [("moves", first), ("upgrades", second)].into_iter().filter(|_| moves) {
                        integer(json, key, n);
                    }
                    json.end_object();
                }
            }
            Rows::Each(rows) => {
                for row in rows.iter().map(|n| &mem.sharing[*n]) {
                    json.begin_object();
                    json.name("sharing", row.which.word().as_bytes());
                    for (key, n) in [("lines", row.lines), ("reads", row.reads()), ("writes", row.writes())] {
                        count(json, key, n.into());
                    }
                    moved(json, row.moved().map(i128::from));
                    json.key("uses");
                    json.begin_array();
                    row.uses.iter().for_each(|used| use_json(json, used, mem, sources, counted));
                    json.end_array();
                    json.end_object();
                }
            }
        }
        json.end_array();
        integer(json, "rows_below_threshold", self.hidden as i128);
        json.end_object();
    }
}

fn use_json(json: &mut Json, used: &SharedUse, mem: &Mem, sources: &mut Sources<'_>, counted: bool) {
    json.begin_object();
    json.key("thread");
    json.integer(used.thread.into());
    match used.object.and_then(|n| mem.objects.get(n)) {
        Some(object) => {
            json.name("kind", object.kind.word().as_bytes());
            json.name("name", object.name.as_bytes());
            json.name("variable", sources.variable(object).as_bytes());
        }
        None => {
            json.key("kind");
            json.null();
        }
    }
    for (key, n) in [("offset", i128::from(used.offset)), ("reads", used.reads.into()), ("writes", used.writes.into())]
    {
        json.key(key);
        if counted || key == "offset" {
            json.integer(n);
        } else {
            json.null();
        }
    }
    for (key, bytes) in [("read", &used.read), ("written", &used.written)] {
        json.key(key);
        json.begin_array();
        bytes.iter().flat_map(|(from, to)| [*from, *to]).for_each(|n| json.integer(n.into()));
        json.end_array();
    }
    json.key("places");
    json.begin_array();
    for place in &used.places {
        json.begin_object();
        json.name("file", place.file.as_bytes());
        json.key("line");
        json.integer(place.line.into());
        json.name("function", place.function.as_bytes());
        json.end_object();
    }
    json.end_array();
    if !used.moves.is_empty() || used.upgrades > 0 {
        json.key("moves");
        json.begin_array();
        for moved in &used.moves {
            json.begin_object();
            for (key, n) in [("from", moved.from), ("reads", moved.reads), ("writes", moved.writes)] {
                json.key(key);
                json.integer(n.into());
            }
            json.end_object();
        }
        json.end_array();
        json.key("upgrades");
        json.integer(used.upgrades.into());
    }
    json.end_object();
}

#[cfg(test)]
mod tests {
    use cg_format::mem::sharing::{Moved, Order};

    use super::*;
    use cg_format::mem::Object;
    use cg_format::mem::sharing::SourceLine;

    fn used(thread: u64, read: &[(u64, u64)], written: &[(u64, u64)], writes: u64) -> SharedUse {
        SharedUse {
            thread,
            object: Some(0),
            offset: 64,
            read: read.into(),
            written: written.into(),
            reads: 1000,
            writes,
            places: vec![SourceLine { file: "/a/b.c".into(), line: 9, function: "f".into() }],
            ..SharedUse::default()
        }
    }

    fn mem(sharing: Vec<Shared>) -> Mem {
        let object = Object {
            kind: Kind::Variable,
            name: "counts".into(),
            file: String::new(),
            line: 0,
            function: String::new(),
            bytes: 0,
            blocks: 0,
            peak_bytes: 0,
            callers: Vec::new(),
            fields: Vec::new(),
            members: None,
            counts: vec![],
        };
        let mut mem = Mem { objects: vec![object], sharing, ..Mem::default() };
        mem.head.sharing = Some(SharingHead { line: 64, threads: 3, ..SharingHead::default() });
        mem.finish();
        mem
    }

    fn printed(sharing: &Sharing, mem: &Mem) -> String {
        let mut text = Vec::new();
        sharing.print(&mut text, mem, &mut Sources::new(&[])).expect("memory");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn who_uses_what_is_told() {
        let row = |which, lines, written: &[(u64, u64)], writes| Shared {
            which,
            lines,
            uses: vec![used(2, &[(0, 8)], &[(0, 8)], writes), used(3, &[], written, 0)],
        };
        let before = mem(vec![row(Which::False, 1, &[(8, 12), (60, 64)], 500_000), row(Which::True, 2, &[(4, 9)], 7)]);
        let sharing = Sharing::new(None, &before, 10.0).expect("shared lines");
        assert_eq!(
            printed(&sharing, &before),
            "Lines of 64 bytes that a thread wrote while another one that uses them lived (3 threads)\n\n\
             lines  reads  _writes  sharing\n\n    \
             1  2,000  500,000  FALSE  counts\n       \
             1,000  500,000    T2 reads and writes counts+64..71  b.c:9 f\n       \
             1,000        0    T3 writes counts+72..75,124..127  b.c:9 f\n                           \
             no byte that one writes is used by another: give each of them lines of 64 bytes of its own\n\n\
             1 more below the threshold\n\n"
        );
        let all = Sharing::new(None, &before, 0.0).expect("shared lines");
        assert!(printed(&all, &before).contains("true   counts\n"), "{}", printed(&all, &before));
        assert!(printed(&all, &before).contains("written by one and used by another: bytes 4..7 of the line\n"));
        // What is gone, and what has come.
        let after = mem(vec![row(Which::True, 3, &[(4, 9)], 9)]);
        let differs = Sharing::new(Some(&before), &after, 0.0).expect("shared lines");
        let text = printed(&differs, &after);
        assert!(text.contains("\n   -1  -2,000  -500,000  FALSE  counts\n"), "{text}");
        assert!(text.contains("\n    1       0         2  true   counts\n"), "{text}");
        let same = Sharing::new(Some(&after), &after, 0.0).expect("shared lines");
        assert!(printed(&same, &after).ends_with("(3 threads)\n\nNothing is different\n\n"));
        // Where nobody has counted accesses, there are lines.
        let uncounted = |rows| {
            let mut all: Mem = mem(rows);
            all.sharing.iter_mut().flat_map(|row| &mut row.uses).for_each(|u| (u.reads, u.writes) = (0, 0));
            all.head.sharing.iter_mut().for_each(|head| head.uncounted = true);
            all
        };
        let few = uncounted(vec![row(Which::False, 1, &[(8, 12)], 0), row(Which::True, 20, &[(4, 9)], 0)]);
        assert_eq!(
            printed(&Sharing::new(None, &few, 10.0).expect("shared lines"), &few)
                .split_once("\n\n")
                .expect("a title")
                .1,
            "lines  sharing\n\n   20  true   counts\n         T2 reads and writes counts+64..71  b.c:9 f\n         \
             T3 writes counts+68..72  b.c:9 f\n           written by one and used by another: bytes 4..7 of the line\n\n\
             1 more below the threshold\n\n"
        );
        // Where they have told of moves, it is these.
        let moved = |n: u64| {
            let mut all = uncounted(vec![row(Which::False, 1, &[(8, 12)], 0)]);
            let order = Order { handed_over: [0, 3, 0], unplaced: 7, ..Order::default() };
            all.head.sharing.iter_mut().for_each(|head| head.order = Some(order.clone()));
            all.sharing[0].uses[0].moves = vec![Moved { from: 3, reads: n, writes: 2 }];
            all.sharing[0].uses[1].upgrades = 5;
            all.finish();
            all
        };
        let text = printed(&Sharing::new(None, &moved(1000), 0.0).expect("shared lines"), &moved(1000));
        assert!(text.contains("lines  moves  upgrades  sharing\n\n    1  1,002         5  FALSE"), "{text}");
        assert!(
            text.contains("\n       1,002         0    T2 reads and writes counts+64..71  b.c:9 f  (from T3 1,002)\n"),
            "{text}"
        );
        assert!(
            text.contains("were read 1,000 times and written 2 times") && text.contains("written 5 times when"),
            "{text}"
        );
        assert!(
            text.contains("beside these: 0, 3 and 0 times\n") && text.contains("the lines of 7 accesses\n"),
            "{text}"
        );
        let differs = Sharing::new(Some(&moved(1000)), &moved(10), 0.0).expect("shared lines");
        let text = printed(&differs, &moved(10));
        assert!(text.contains("    0   -990         0  FALSE  counts\n"), "{text}");
        let mixed = Sharing::new(Some(&moved(1000)), &few, 0.0).expect("shared lines");
        assert!(printed(&mixed, &few).contains("lines  sharing\n"), "one of them has no moves");
        let none = mem(Vec::new());
        let all = Sharing::new(None, &none, 0.0).expect("the question");
        assert!(printed(&all, &none).ends_with("\n\nThere is none\n\n"));
        let nothing = Sharing::new(Some(&Mem::default()), &after, 0.0).expect("shared lines");
        assert!(printed(&nothing, &after).starts_with("Only one of the files"));
        assert!(Sharing::new(None, &Mem::default(), 0.0).is_none());
    }
}
