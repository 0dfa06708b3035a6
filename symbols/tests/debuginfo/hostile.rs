//! Broken files: no answer is wrong for them, but none may panic, hang or eat the memory.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use grind_symbols::{Inlined, Object, Options, Svma};

use crate::{have, run};

/// A small generator of random numbers (xorshift); tests must be repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

fn samples(folder: &Path) -> Vec<Vec<u8>> {
    let source = "struct at { int x; struct { char c, d[9]; } in[3]; unsigned b : 3; union { int i; double e; }; } at[4];\nstatic inline __attribute__((always_inline)) int one(int x)\n{ struct at *p = at; return x + p->x + 1; }\nint main(int c, char **v)\n{ return one(c) - 2; }\n";
    fs::write(folder.join("main.c"), source).unwrap();
    let flags: [&[&str]; 4] =
        [&["-gdwarf-5"], &["-gdwarf-4", "-no-pie"], &["-g", "-gz"], &["-gdwarf-2", "-shared", "-fPIC"]];
    flags
        .iter()
        .map(|flags| {
            run(folder, "gcc", &[&["main.c", "-o", "main"], *flags].concat());
            fs::read(folder.join("main")).unwrap()
        })
        .collect()
}

/// Asks everything there is to ask.
fn ask(bytes: Vec<u8>) {
    let object = Object::from_image(
        bytes,
        "sample",
        &Options { debug_roots: Vec::new(), inlined: Inlined::Named, ..Options::default() },
    );
    let mut addresses: Vec<Svma> = (0x1000..0x1400).step_by(3).map(Svma).collect();
    addresses.extend((0x40_1000..0x40_1400).step_by(3).map(Svma));
    addresses.extend([Svma(0), Svma(u64::MAX), Svma(1 << 63)]);
    addresses.extend((0..0x4000).step_by(0x777).filter_map(|o| object.svma_of_offset(o)));
    let found = object.resolve(&addresses);
    assert_eq!(found.places.len(), addresses.len());
    // An outer frame comes before an inner one, so that this ends.
    assert!(found.places.iter().all(|place| found.inlined(*place).count() <= found.inlining.len()));
    for place in &found.places {
        assert!(place.function.index() < found.functions.len() && place.file.index() < found.files.len());
    }
    assert!(found.functions.iter().chain(&found.files).all(|n| !n.contains(&b'\n') && !n.contains(&0)));
    let _ = (object.function_at(Svma(0x1130)), object.line_at(Svma(0x1130)), object.warnings());
    let [at] = object.symbols_named(["at"]);
    let (start, size) = at.unwrap_or((Svma(0x4040), 256));
    let layouts = [start.0, 0, u64::MAX].map(|at| object.layout_of_variable(Svma(at), size));
    let pointees = [0x1129, 0x1139, 0x40_1110].map(|call| object.pointee(Svma(call), b"p"));
    for layout in layouts.iter().flatten().chain(pointees.iter().flatten().map(|found| &found.layout)) {
        let bytes = (0..layout.size.min(500)).filter_map(|byte| Some((byte, layout.at(byte)?)));
        assert!(bytes.into_iter().all(|(_, n)| n < layout.members.len()));
    }
}

#[test]
fn truncated() {
    if !have(&["gcc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for sample in samples(folder.path()) {
        for length in (0..sample.len()).step_by(61).chain([0, 1, 63, 64, sample.len() - 1]) {
            ask(sample[..length].to_vec());
        }
    }
}

#[test]
fn mutated() {
    if !have(&["gcc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for sample in samples(folder.path()) {
        // Headers and the debug sections at the end matter most; the middle of the file is mostly padding.
        let end = sample.len();
        let interesting = [0..64, 64..800, 0x2000.min(end - 1)..end, end.saturating_sub(2500)..end, 0..end];
        for _ in 0..1500 {
            let mut bytes = sample.clone();
            for _ in 0..=random.below(6) {
                let range = interesting[random.below(interesting.len())].clone();
                let at = range.start + random.below(range.len());
                match random.below(4) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => bytes[at] = 0xff,
                    _ => {
                        let value = random.next() >> random.below(64);
                        let end = (at + 8).min(bytes.len());
                        bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                    }
                }
            }
            ask(bytes);
        }
    }
}

/// Every unit of a file can claim the same, huge line program; it must be run once.
#[test]
fn many_units_with_one_line_program() {
    let mut file = Elf::new();
    // DWARF 4: a unit without ranges whose line program is at offset `line`.
    let unit = |line: u32| {
        let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
        unit.extend_from_slice(&line.to_le_bytes());
        [&(unit.len() as u32).to_le_bytes()[..], &unit].concat()
    };
    let mut program = vec![4, 0, 0, 0, 0, 0, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0];
    program.extend_from_slice(b"f.c\0\0\0\0\0");
    let header_length = (program.len() - 6) as u32;
    program[2..6].copy_from_slice(&header_length.to_le_bytes());
    program.extend_from_slice(&[0, 9, 2]);
    program.extend_from_slice(&0x1000u64.to_le_bytes());
    program.resize(program.len() + 300_000, 32);
    let lines = [&(program.len() as u32).to_le_bytes()[..], &program].concat();
    let units: Vec<u8> = (0..20_000).flat_map(|i| unit(if i % 2 == 0 { 0 } else { i * 7 })).collect();
    file.section(".debug_abbrev", &[1, 0x11, 0, 0x10, 0x17, 0, 0, 0]);
    file.section(".debug_info", &units);
    file.section(".debug_line", &lines);
    let start = Instant::now();
    let object = Object::from_image(file.finish(), "many", &Options { debug_roots: Vec::new(), ..Options::default() });
    let (name, _) = object.line_at(Svma(0x1005)).expect("the program is a good one");
    assert_eq!(&*name, b"./f.c");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// A table of abbreviations that many units use, or tables within each other, must not be read for each of them.
#[test]
fn many_units_with_one_table_of_abbreviations() {
    let unit = |table: u32| {
        let body = [&[4, 0][..], &table.to_le_bytes(), &[8, 1, 0, 0, 0, 0]].concat();
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    };
    // Each of these is the same unit's, but for the codes that come behind, which nobody uses.
    let head = [1, 0x11, 0, 0x10, 0x17, 0, 0];
    let unused: Vec<u8> = (0x80..0x7f00_u16).flat_map(|i| [i as u8 | 0x80, (i >> 7) as u8, 0x2e, 0, 0, 0]).collect();
    let abbreviations = [&head.repeat(2_000)[..], &unused, &[0]].concat();
    for step in [0, head.len() as u32] {
        let mut file = Elf::new();
        let units: Vec<u8> = (0..2_000).flat_map(|i| unit(i * step)).collect();
        file.section(".debug_abbrev", &abbreviations);
        file.section(".debug_info", &units);
        file.section(".debug_line", &[0; 4]);
        let start = Instant::now();
        let options = Options { debug_roots: Vec::new(), ..Options::default() };
        let object = Object::from_image(file.finish(), "many", &options);
        assert_eq!(object.line_at(Svma(0x1000)), None);
        assert!(start.elapsed() < Duration::from_secs(3), "{step}: {:?}", start.elapsed());
    }
}

/// What a file adds up may be more than 64 bits.
#[test]
fn sums_of_addresses_may_not_fit() {
    let mut file = Elf::new();
    let unit = [&[4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0][..], &(u64::MAX - 1).to_le_bytes(), &[0x10, 0, 0, 0, 0, 0, 0, 0]];
    let unit = unit.concat();
    file.section(".debug_abbrev", &[1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0, 0]);
    file.section(".debug_info", &[&(unit.len() as u32).to_le_bytes()[..], &unit].concat());
    let header = [4, 0, 21, 0, 0, 0, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0];
    file.section(".debug_line", &[&(header.len() as u32).to_le_bytes()[..], &header].concat());
    file.section(".text", &[0; 16]);
    let mut bytes = file.finish();
    // The executable segment is where no file has bytes, and `.text` at its end.
    bytes[64 + 8..64 + 16].copy_from_slice(&(u64::MAX - 8).to_le_bytes());
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[sections + 4 * 64 + 16..sections + 4 * 64 + 24].copy_from_slice(&0x1100_u64.to_le_bytes());
    let object = Object::from_image(bytes, "far", &Options { debug_roots: Vec::new(), ..Options::default() });
    assert_eq!(object.line_at(Svma(u64::MAX)), None);
    assert_eq!(object.boundaries(), [0_u64; 0]);
}

/// Symbols may have names that are parts of one another.
#[test]
fn names_in_all_are_bounded_by_the_file() {
    let strings = [&b"\0"[..], &[b'a'; 100_000], b"\0"].concat();
    let symbols: Vec<u8> = (0..4_000_u64)
        .flat_map(|i| {
            let (name, start) = (1 + i as u32, 0x1000 + 16 * i);
            [&name.to_le_bytes()[..], &[2, 0, 1, 0], &start.to_le_bytes(), &8_u64.to_le_bytes()].concat()
        })
        .collect();
    let mut file = Elf::new();
    file.section(".symtab", &symbols);
    file.section(".strtab", &strings);
    let object = Object::from_image(file.finish(), "long", &Options { debug_roots: Vec::new(), ..Options::default() });
    let asked: Vec<Svma> = (0..4_000).map(|i| Svma(0x1000 + 16 * i)).collect();
    let found = object.resolve(&asked);
    assert_eq!(found.functions[found.places[0].function.index()].len(), 100_000, "those that fit are shown");
    assert!(found.functions.iter().map(|name| name.len()).sum::<usize>() < 4 << 20);
    assert!(object.warnings().iter().any(|warning| warning.contains("left out")), "{:?}", object.warnings());
}

/// A section may claim to expand to any size.
#[test]
fn compression_bombs_are_refused() {
    let mut file = Elf::new();
    let mut packed = Vec::new();
    packed.extend_from_slice(b"ZLIB");
    packed.extend_from_slice(&(1u64 << 40).to_be_bytes());
    packed.extend_from_slice(&[0x78, 0x9c, 0, 0, 0]);
    file.section(".debug_info", &[0; 11]);
    file.section(".zdebug_line", &packed);
    let object = Object::from_image(file.finish(), "bomb", &Options { debug_roots: Vec::new(), ..Options::default() });
    assert_eq!(object.line_at(Svma(0x1000)), None);
    assert!(object.warnings().iter().any(|w| w.contains("refused")), "{:?}", object.warnings());
}

/// Each of several sections may be small, and all of them may be the same bytes of the file.
#[test]
fn sections_may_not_expand_beyond_reason_in_all() {
    // An empty block of zlib's: what comes of it is checked after the claim.
    let packed = |size: u64| [&b"ZLIB"[..], &size.to_be_bytes(), &[0x78, 0x9c, 3, 0, 0, 0, 0, 1]].concat();
    let mut file = Elf::new();
    file.section(".debug_info", &[0; 11]);
    for name in [".zdebug_line", ".zdebug_abbrev", ".zdebug_str", ".zdebug_ranges", ".zdebug_line_str"] {
        file.section(name, &packed(60_000));
    }
    let object = Object::from_image(file.finish(), "bomb", &Options { debug_roots: Vec::new(), ..Options::default() });
    assert_eq!(object.line_at(Svma(0x1000)), None);
    let refused = object.warnings().iter().filter(|warning| warning.contains("refused")).count();
    assert!((2..5).contains(&refused), "{:?}", object.warnings());
}

/// Mangled names can stand for texts of exponential length; line breaks would forge lines of a profile.
#[test]
fn names_of_the_devil() {
    let mut bomb = b"_ZN1AI".to_vec();
    bomb.extend_from_slice(b"St4pairI1xS_E");
    for _ in 0..200 {
        let id = b"St4pairIS1_S1_E";
        bomb.extend_from_slice(id);
    }
    bomb.extend_from_slice(b"E1fEv");
    let deep = [&b"_Z1f"[..], &[b'P'; 60_000], b"i"].concat();
    let names: [&[u8]; 6] = [b"a\nfn=b", &bomb, &deep, b"_ZN", b"_RNvC1", b"_Z\xff\xfe"];
    let mut strings = vec![0];
    let mut symbols = vec![0; 24];
    for (i, name) in names.iter().enumerate() {
        symbols.extend_from_slice(&(strings.len() as u32).to_le_bytes());
        symbols.extend_from_slice(&[2, 0, 1, 0]);
        symbols.extend_from_slice(&(0x1000 + 16 * i as u64).to_le_bytes());
        symbols.extend_from_slice(&8u64.to_le_bytes());
        strings.extend_from_slice(name);
        strings.push(0);
    }
    let mut file = Elf::new();
    file.section(".symtab", &symbols);
    file.section(".strtab", &strings);
    let start = Instant::now();
    let object = Object::from_image(file.finish(), "names", &Options { debug_roots: Vec::new(), ..Options::default() });
    assert_eq!(&*object.function_at(Svma(0x1000)).unwrap(), b"a?fn=b");
    for i in 1..names.len() as u64 {
        let name = object.function_at(Svma(0x1000 + 16 * i)).expect("a name, mangled or not");
        assert!(name.len() < 1 << 20);
    }
    assert_eq!(object.function_at(Svma(0x1008)), None);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Writes an ELF file with one executable segment and sections as wanted.
pub(crate) struct Elf {
    contents: Vec<u8>,
    names: Vec<u8>,
    headers: Vec<u8>,
}

impl Elf {
    pub(crate) fn new() -> Elf {
        let mut elf = Elf { contents: vec![0; 64 + 56], names: vec![0], headers: vec![0; 64] };
        elf.contents[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
        let segment = [1u64 | 5 << 32, 0, 0x1000, 0x1000, 0x1000, 0x10_0000, 0x1000];
        for (i, word) in segment.iter().enumerate() {
            elf.contents[64 + 8 * i..72 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        elf
    }

    pub(crate) fn section(&mut self, name: &str, contents: &[u8]) {
        let header =
            [self.names.len() as u64 | 1 << 32, 0, 0, self.contents.len() as u64, contents.len() as u64, 0, 1, 0];
        self.headers.extend(header.iter().flat_map(|w| w.to_le_bytes()));
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.contents.extend_from_slice(contents);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let names = [std::mem::take(&mut self.names), b".shstrtab\0".to_vec()].concat();
        self.names = vec![0; names.len() - 10];
        self.section(".shstrtab", &names);
        let offset = self.contents.len() as u64;
        let count = (self.headers.len() / 64) as u16;
        self.contents.extend_from_slice(&self.headers);
        self.contents[32..40].copy_from_slice(&64u64.to_le_bytes());
        self.contents[40..48].copy_from_slice(&offset.to_le_bytes());
        for (at, value) in [(52, 64), (54, 56), (56, 1), (58, 64), (60, count), (62, count - 1)] {
            self.contents[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
        }
        self.contents
    }
}

/// A few bytes for each member of many structures, all of one long name: neither memory nor time is taken for all of them.
#[test]
fn many_members_of_one_long_name() {
    let mut file = Elf::new();
    // A unit; structures, of a size, and with children; their members, at 0, of the type at `types`; that type; a variable at 0x2000.
    let abbreviations: &[u8] = &[
        1, 0x11, 1, 0, 0, //
        2, 0x13, 1, 0x0b, 0x05, 0, 0, //
        3, 0x0d, 0, 0x03, 0x0e, 0x49, 0x13, 0, 0, //
        4, 0x24, 0, 0x0b, 0x0b, 0, 0, //
        5, 0x34, 0, 0x02, 0x18, 0x49, 0x13, 0, 0, 0,
    ];
    let (structures, members) = (60u32, 4000);
    // The header has 11 bytes, the unit one.
    let basic = 12u32;
    let mut entries = vec![1, 4, 1];
    for n in 0..structures {
        let at = 11 + entries.len() as u32;
        entries.extend([2, 4, 0]);
        for _ in 0..members {
            entries.push(3);
            entries.extend(0u32.to_le_bytes());
            // Each has the one before it, and the first one bytes.
            let of = if n == 0 { basic } else { at - (3 + members * 9 + 1) - 10 - 5 };
            entries.extend(of.to_le_bytes());
        }
        entries.push(0);
        entries.extend([5, 9, 3]);
        entries.extend((0x2000u64 + u64::from(n)).to_le_bytes());
        entries.extend(at.to_le_bytes());
    }
    entries.push(0);
    let unit = [&[4, 0, 0, 0, 0, 0, 8][..], &entries].concat();
    file.section(".debug_abbrev", abbreviations);
    file.section(".debug_info", &[&(unit.len() as u32).to_le_bytes()[..], &unit].concat());
    file.section(".debug_str", &[&[b'n'; 1000][..], &[0]].concat());
    file.section(".debug_line", &[0]);
    let options = Options { debug_roots: Vec::new(), ..Options::default() };
    let object = Object::from_image(file.finish(), "long", &options);
    let start = Instant::now();
    for n in 0..structures {
        let found = object.layout_of_variable(Svma(0x2000 + u64::from(n)), 4);
        // All members have all bytes of what they are in. Of more than two structures there are too many names.
        assert_eq!(found.map(|layout| layout.members.len()), (n < 2).then_some(1), "structure {n}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
