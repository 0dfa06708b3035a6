//! Symbol tables: which function covers an address.
//!
//! The rules are those of the reference tool, found by experiment; scripts compare names with it, so its choices are
//! kept where they look odd:
//! - Counted are functions, data objects and indirect functions, of local, global or weak binding, with a name, an
//!   address and a size, that lie in an executable segment but not in `.plt`. Labels without a type or size name nothing.
//! - Of several names for one range the shortest wins, a version suffix (`@…`) not counted; then a name with a version
//!   before one without; then alphabetical order.
//! - Ranges are made disjoint: a symbol ends where the next begins, and what it had behind a nested symbol is lost. Of
//!   two that begin together the longer keeps what the shorter leaves over.
//!
//! `.symtab` and `.dynsym` are read from the file itself or, where it has none, from the separate debug file. The
//! compressed table in `.gnu_debugdata` is used only if there is no `.symtab` anywhere.
//!
//! Invariant: in a [`SymbolTable`] the ranges are sorted, not empty and disjoint.

use std::{
    cmp::Ordering,
    io::{Cursor as IoCursor, Read},
};

use super::image::{Image, string_at, u32_at, u64_at};
use super::problems::Problems;

/// One disjoint range and the name shown for it.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    /// Exclusive, and more than `start`.
    end: u64,
    table: u32,
    name: u32,
}

/// A range found in a [`SymbolTable`].
pub(super) struct Symbol<'a> {
    pub(super) start: u64,
    /// Exclusive.
    pub(super) end: u64,
    pub(super) name: &'a [u8],
}

/// Disjoint, sorted symbols of one object.
#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    ranges: Vec<Range>,
    strings: Strings,
}

/// The string tables that the ranges refer to.
#[derive(Debug, Default)]
struct Strings(Vec<Vec<u8>>);

impl Strings {
    fn name(&self, range: &Range) -> &[u8] {
        self.0.get(range.table as usize).and_then(|t| string_at(t, range.name as usize)).unwrap_or_default()
    }
}

impl SymbolTable {
    pub(super) fn find(&self, at: u64) -> Option<Symbol<'_>> {
        let index = self.ranges.partition_point(|r| r.end <= at);
        let range = self.ranges.get(index).filter(|r| r.start <= at)?;
        Some(Symbol { start: range.start, end: range.end, name: self.strings.name(range) })
    }

    /// Where symbols begin and end.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|r| (r.start, r.end))
    }

    pub(super) fn name(&self, index: usize) -> &[u8] {
        self.strings.name(&self.ranges[index])
    }

    /// Bytes of the names, as the string tables hold them.
    pub(super) fn names_size(&self) -> usize {
        self.strings.0.iter().map(Vec::len).sum()
    }

    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor { ranges: &self.ranges, next: 0 }
    }
}

/// Looks up ascending addresses, each in about constant time.
pub(super) struct Cursor<'a> {
    ranges: &'a [Range],
    next: usize,
}

impl Cursor<'_> {
    /// The index of the symbol that covers `at`; `at` must not be below that of the call before.
    pub(super) fn find(&mut self, at: u64) -> Option<usize> {
        /// Neighbours are near; beyond this many steps, halving is faster.
        const NEAR: usize = 16;
        let near = self.ranges[self.next..].iter().take(NEAR).position(|r| r.end > at);
        self.next = match near {
            Some(steps) => self.next + steps,
            None => self.next + self.ranges[self.next..].partition_point(|r| r.end <= at),
        };
        self.ranges.get(self.next).filter(|r| r.start <= at).map(|_| self.next)
    }
}

impl Cursor<'_> {
    /// The index of the symbol that covers all of `start..end` (`None`: no symbol covers any of it); nothing if neither is so.
    /// `start` must not be below that of the call before.
    pub(super) fn find_all(&mut self, start: u64, end: u64) -> Option<Option<usize>> {
        let found = self.find(start);
        let holds_until = match (found, self.ranges.get(self.next)) {
            (Some(_), Some(symbol)) => symbol.end,
            (_, Some(next)) => next.start,
            (_, None) => u64::MAX,
        };
        (end <= holds_until).then_some(found)
    }
}

/// Whether the reference shows `name` as `(below main)`: the functions that call `main`, with or without a compiler's
/// suffix. A versioned name does not count.
pub(super) fn is_below_main(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"_start", b"__libc_start_main", b"__libc_start_call_main", b"generic_start_main"];
    NAMES.iter().any(|n| name.strip_prefix(*n).is_some_and(|rest| rest.is_empty() || rest[0] == b'.'))
}

/// The symbols of `image`; `debug` gives its separate debug file and is called only if needed.
pub(super) fn load<'a>(image: &'a Image, debug: impl Fn() -> Option<&'a Image>) -> (SymbolTable, Problems) {
    let mut loader = Loader {
        executable: image.executable_ranges(),
        plt: image.section(".plt").map_or((0, 0), |s| (s.address, s.address.saturating_add(s.size))),
        ranges: Vec::new(),
        strings: Strings::default(),
        problems: Problems::default(),
    };
    let main_text = image.section(".text").map(|s| s.address);
    let mut any_symtab = true;
    if image.has_data(".symtab") {
        loader.read(image, ".symtab", ".strtab", 0);
    } else if let Some(debug) = debug().filter(|d| d.has_data(".symtab")) {
        loader.read(debug, ".symtab", ".strtab", shift(main_text, debug));
    } else {
        any_symtab = false;
    }
    if image.has_data(".dynsym") {
        loader.read(image, ".dynsym", ".dynstr", 0);
    }
    if !any_symtab && image.has_data(".gnu_debugdata") {
        match mini_debug_image(image) {
            Ok(mini) => loader.read(&mini, ".symtab", ".strtab", shift(main_text, &mini)),
            Err(problem) => loader.problems.push(problem),
        }
    }
    let Loader { ranges, strings, mut problems, .. } = loader;
    let (ranges, complete) = disjoint(ranges, &strings);
    if !complete {
        problems.push("symbols overlap beyond reason: some names are left out");
    }
    (SymbolTable { ranges, strings }, problems)
}

/// What to add to addresses of `other` to get addresses of the main file: they differ if the main file was relocated
/// after the debug file was split off (prelink).
pub(super) fn shift(main_text: Option<u64>, other: &Image) -> u64 {
    match (main_text, other.section(".text")) {
        (Some(main), Some(text)) => main.wrapping_sub(text.address),
        _ => 0,
    }
}

/// The small ELF file, holding a `.symtab`, that some distributions leave in stripped programs.
fn mini_debug_image(image: &Image) -> Result<Image, String> {
    /// KiB; the tables are made with small dictionaries.
    const MAX_DICTIONARY: u32 = 64 << 10;
    const MAX_SIZE: u64 = 256 << 20;
    let packed = image.data(".gnu_debugdata")?.unwrap_or_default();
    let mut unpacked = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(IoCursor::new(packed), true, MAX_DICTIONARY)
        .take(MAX_SIZE)
        .read_to_end(&mut unpacked)
        .map_err(|e| format!("section .gnu_debugdata: {e}"))?;
    Image::from_bytes(unpacked).map_err(|e| format!("section .gnu_debugdata: {e}"))
}

struct Loader {
    executable: Vec<(u64, u64)>,
    plt: (u64, u64),
    ranges: Vec<Range>,
    strings: Strings,
    problems: Problems,
}

impl Loader {
    fn read(&mut self, image: &Image, symbols: &str, strings: &str, shift: u64) {
        let mut load = |name: &str| match image.data(name) {
            Ok(data) => data.unwrap_or_default(),
            Err(problem) => {
                self.problems.push(problem);
                Vec::new()
            }
        };
        let (symbols, strings) = (load(symbols), load(strings));
        let table = self.strings.0.len() as u32;
        const SYMBOL_SIZE: usize = 24;
        for symbol in symbols.chunks_exact(SYMBOL_SIZE) {
            if let Some(range) = self.parse(symbol, &strings, table, shift) {
                self.ranges.push(range);
            }
        }
        self.strings.0.push(strings);
    }

    fn parse(&self, symbol: &[u8], strings: &[u8], table: u32, shift: u64) -> Option<Range> {
        const STT_OBJECT: u16 = 1;
        const STT_FUNC: u16 = 2;
        const STT_GNU_IFUNC: u16 = 10;
        const STB_WEAK: u16 = 2;
        let name = u32_at(symbol, 0)?;
        let info = u16::from(*symbol.get(4)?);
        let (value, size) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
        let wanted = matches!(info & 15, STT_OBJECT | STT_FUNC | STT_GNU_IFUNC) && info >> 4 <= STB_WEAK;
        if !wanted || value == 0 || size == 0 {
            return None;
        }
        let start = value.wrapping_add(shift);
        let in_plt = self.plt.0 <= start && start < self.plt.1;
        let executable = self.executable.iter().any(|&(low, high)| low <= start && start < high);
        // An end that wraps around is absurd; such a symbol is taken to end where the next one begins.
        let end = start.saturating_add(size);
        let named = strings.get(name as usize).is_some_and(|&first| first != 0);
        (executable && !in_plt && named).then_some(Range { start, end, table, name })
    }
}

/// Which of two names for the same range the reference shows.
fn prefer(a: &[u8], b: &[u8]) -> Ordering {
    let base = |name: &[u8]| name.iter().position(|&c| c == b'@').unwrap_or(name.len());
    let unversioned = |name: &[u8]| !name.contains(&b'@');
    base(a).cmp(&base(b)).then_with(|| unversioned(a).cmp(&unversioned(b))).then_with(|| a.cmp(b))
}

/// Makes ranges disjoint, see the head of this module. The flag is false if the effort was cut short, which real
/// tables never cause.
fn disjoint(mut ranges: Vec<Range>, strings: &Strings) -> (Vec<Range>, bool) {
    // Passes are repeated until nothing overlaps, as in the reference: the order in which overlaps are cut matters.
    // Each cut moves an entry a few places; a table made to need quadratic time is given up on instead.
    let mut budget = 64 * ranges.len() as u64 + 100_000;
    ranges.sort_by_key(|r| (r.start, r.end));
    loop {
        merge_equal(&mut ranges, strings);
        let mut cuts = 0u64;
        let mut i = 0;
        while i + 1 < ranges.len() {
            let (a, b) = (ranges[i], ranges[i + 1]);
            if a.end > b.start {
                cuts += 1;
                if a.start < b.start {
                    ranges[i].end = b.start;
                } else if a.start == b.start && a.end != b.end {
                    let (short, long) = if a.end < b.end { (a, b) } else { (b, a) };
                    ranges[i] = short;
                    ranges[i + 1] = Range { start: short.end, ..long };
                    // The rest of the longer one may now begin behind its neighbours.
                    let mut j = i + 1;
                    while j + 1 < ranges.len() && ranges[j].start > ranges[j + 1].start {
                        ranges.swap(j, j + 1);
                        j += 1;
                        budget = budget.saturating_sub(1);
                    }
                }
            }
            if budget == 0 {
                return (give_up(ranges), false);
            }
            i += 1;
        }
        if cuts == 0 {
            return (ranges, true);
        }
        budget = budget.saturating_sub(ranges.len() as u64 / 4);
        ranges.sort_by_key(|r| (r.start, r.end));
    }
}

fn merge_equal(ranges: &mut Vec<Range>, strings: &Strings) {
    ranges.dedup_by(|later, kept| {
        let same = later.start == kept.start && later.end == kept.end;
        if same && prefer(strings.name(later), strings.name(kept)).is_lt() {
            *kept = *later;
        }
        same
    });
}

/// Disjoint ranges in one pass: the first symbol at an address, up to the next one.
fn give_up(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_by_key(|r| (r.start, r.end));
    ranges.dedup_by_key(|r| r.start);
    for i in 1..ranges.len() {
        ranges[i - 1].end = ranges[i - 1].end.min(ranges[i].start);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the table of `(name, start, end)` and lists it the same way.
    fn table(symbols: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        let mut strings = vec![0];
        let mut ranges = Vec::new();
        for &(name, start, end) in symbols {
            ranges.push(Range { start, end, table: 0, name: strings.len() as u32 });
            strings.extend_from_slice(name.as_bytes());
            strings.push(0);
        }
        let strings = Strings(vec![strings]);
        let (ranges, complete) = disjoint(ranges, &strings);
        assert!(complete);
        ranges.iter().map(|r| (String::from_utf8_lossy(strings.name(r)).into_owned(), r.start, r.end)).collect()
    }

    fn owned(symbols: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        symbols.iter().map(|&(n, s, e)| (n.to_owned(), s, e)).collect()
    }

    #[test]
    fn the_next_symbol_cuts() {
        assert_eq!(table(&[("b", 14, 20), ("a", 10, 18)]), owned(&[("a", 10, 14), ("b", 14, 20)]));
    }

    #[test]
    fn what_lies_behind_a_nested_symbol_is_lost() {
        assert_eq!(table(&[("big", 10, 60), ("in", 20, 21)]), owned(&[("big", 10, 20), ("in", 20, 21)]));
    }

    /// The result the reference gave for this very table.
    #[test]
    fn symbols_that_begin_together_share() {
        let symbols = [("g1", 1, 8), ("A5", 1, 6), ("B3", 1, 4), ("C5x", 1, 6), ("D2", 1, 3)];
        assert_eq!(table(&symbols), owned(&[("D2", 1, 3), ("B3", 3, 4), ("A5", 4, 6), ("g1", 6, 8)]));
    }

    #[test]
    fn preferred_names() {
        for (better, worse) in [
            ("index", "strchr"),
            ("fopen@@GLIBC_2.2.5", "__new_fopen"),
            ("strtof64_l", "__GI___strtod_l"),
            ("__getdents", "getdents64"),
            ("ab@@V1", "ab"),
            ("zz", "weak1"),
        ] {
            assert_eq!(prefer(better.as_bytes(), worse.as_bytes()), Ordering::Less, "{better} {worse}");
            assert_eq!(table(&[(worse, 1, 2), (better, 1, 2)]), owned(&[(better, 1, 2)]));
            assert_eq!(table(&[(better, 1, 2), (worse, 1, 2)]), owned(&[(better, 1, 2)]));
        }
    }

    #[test]
    fn start_up_functions() {
        for name in ["_start", "__libc_start_main", "generic_start_main.isra.0", "__libc_start_call_main"] {
            assert!(is_below_main(name.as_bytes()), "{name}");
        }
        for name in ["__libc_start_main@@GLIBC_2.34", "_start_", "main", "__libc_start_mainx.1"] {
            assert!(!is_below_main(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_cursor_finds_what_a_search_finds() {
        let ranges: Vec<Range> = (0..500)
            .map(|i| Range { start: i * i + 10, end: i * i + 10 + (i % 7) + 1, table: 0, name: 0 })
            .filter(|r| r.start < 200_000)
            .collect();
        let (ranges, _) = disjoint(ranges, &Strings::default());
        let table = SymbolTable { ranges, strings: Strings::default() };
        for step in [1, 3, 997, 60_000] {
            let mut cursor = table.cursor();
            for at in (0..260_000).step_by(step) {
                let naive = table.ranges.iter().position(|r| r.start <= at && at < r.end);
                assert_eq!(cursor.find(at), naive, "{at}");
                assert_eq!(table.find(at).map(|s| s.start), naive.map(|i| table.ranges[i].start));
            }
        }
    }

    #[test]
    fn a_table_of_overlaps_ends() {
        let many: Vec<Range> = (0..200_000u64).map(|i| Range { start: 1, end: 2 + i, table: 0, name: 0 }).collect();
        let (ranges, _) = disjoint(many, &Strings(vec![b"\0".to_vec()]));
        assert!(ranges.windows(2).all(|w| w[0].end <= w[1].start));
        assert!(ranges.iter().all(|r| r.start < r.end));
    }
}
