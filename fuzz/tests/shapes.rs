//! Inputs made to cost much: a little that is said very often, or that stands for much. Each is as long as inputs get, since
//! what grows faster than an input shows only then.

use std::sync::{Mutex, MutexGuard, PoisonError};

use grind_fuzz::limits::check;
use grind_fuzz::target;

/// `line` for each number, in as much room as the target's inputs have.
fn lines(name: &str, head: &str, line: impl Fn(usize) -> String) -> Vec<u8> {
    let largest = target(name).unwrap().largest;
    let mut text = head.to_owned();
    for number in 0.. {
        let next = line(number);
        if text.len() + next.len() > largest {
            break;
        }
        text.push_str(&next);
    }
    text.into_bytes()
}

/// Memory is measured of the whole process, so that one test at a time may make inputs.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fits(name: &str, shapes: Vec<(&str, Vec<u8>)>) {
    let target = target(name).unwrap();
    let mut faults = Vec::new();
    for (what, input) in shapes {
        match check(target, &input) {
            Ok(spent) => eprintln!("{name}, {what}: {} bytes, {spent:?}", input.len()),
            Err(fault) => faults.push(format!("{what}: {} bytes: {fault}", input.len())),
        }
    }
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
}

fn events(count: usize) -> String {
    (0..count).map(|i| format!(" {i:x}")).collect()
}

#[test]
fn profiles_with_calls() {
    let _alone = alone();
    let all = format!("events:{}\nfl=a\nfn=f\n", events(256));
    let make = |head: &str, line: &dyn Fn(usize) -> String| lines("callgrind", head, line);
    fits(
        "callgrind",
        vec![
            ("rows without costs", make("events: Ir\nfl=a\nfn=f\n", &|_| "1\n".into())),
            ("rows of many events", make(&all, &|_| "1\n".into())),
            ("names", make("events: Ir\n", &|i| format!("fn={i:x}\n"))),
            ("names of everything", make("events: Ir\n", &|i| format!("ob={i:x}\nfl={i:x}\nfn={i:x}\n"))),
            ("numbered names", make("events: Ir\n", &|i| format!("fn=({i}) {i:x}\n"))),
            ("numbers that grow", make("events: Ir\n", &|i| format!("fn=({}) x\n", i * 2 + 60))),
            ("numbers far apart", make("events: Ir\n", &|i| format!("fn=({}) x\n", i << 19))),
            ("parts", make("", &|i| format!("events: {}\n", i % 2))),
            ("numbered parts", make("", &|_| "part:1\nevents:a\n".into())),
            ("parts with sums", make("", &|_| "events:a\ntotals:\n".into())),
            ("many events", format!("events:{}\n", events(20_000)).into_bytes()),
            ("parts of many events", make("", &|_| format!("events:{}\ntotals:\n", events(256)))),
            ("descriptions", make("", &|_| "desc:\n".into())),
            ("types", make("", &|_| "event:\n".into())),
            ("calls", make("events: Ir\nfl=a\nfn=f\n", &|i| format!("cfn={i:x}\ncalls=1\n1\n"))),
            ("one line", [b"events: Ir\nfl=".to_vec(), vec![b'a'; 60_000]].concat()),
        ],
    );
}

#[test]
fn profiles_of_lines() {
    let _alone = alone();
    let head = |count| format!("cmd:\nevents:{}\nfl=a\nfn=f\n", events(count));
    let make = |head: &str, line: &dyn Fn(usize) -> String| lines("cachegrind", head, line);
    fits(
        "cachegrind",
        vec![
            ("rows without counts", make(&head(1), &|i| format!("{i}\n"))),
            ("rows of many events", make(&head(256), &|i| format!("{i}\n"))),
            ("functions", make(&head(1), &|i| format!("fn={i:x}\n"))),
            ("functions of many events", make(&head(256), &|i| format!("fn={i:x}\n1\n"))),
            ("files", make(&head(1), &|i| format!("fl={i:x}\n"))),
            ("files of many events", make(&head(256), &|i| format!("fl={i:x}\n1\n"))),
            ("descriptions", make("", &|_| "desc:\n".into())),
            ("one line", [head(1).into_bytes(), b"fn=".to_vec(), vec![b'a'; 60_000]].concat()),
            ("large numbers", make(&head(2), &|i| format!("{i} 99999999999999999999 1\n"))),
        ],
    );
}

#[test]
fn messages() {
    let _alone = alone();
    let make = |head: &str, line: &dyn Fn(usize) -> String| lines("control", head, line);
    fits(
        "control",
        vec![
            ("requests", make("0", &|_| "zero\n".into())),
            ("figures", make("0", &|i| format!(" {i}: 1\n"))),
            ("frames", make("0 thread: 1\n", &|_| " frame: 1 f\n".into())),
            ("threads", make("0", &|_| " thread: 1\n".into())),
            ("events", lines("control", "0 events:", |i| format!(" {i:x}"))),
            ("asked", make("1", &|_| "zero\n".into())),
            ("empty requests", make("1", &|_| "\n".into())),
            ("answers", make("2", &|_| "ok\n".into())),
            ("lines of an answer", make("2", &|_| " \n".into())),
            ("backslashes", [b"2 ".to_vec(), vec![b'\\'; 60_000], b"\nok\n".to_vec()].concat()),
        ],
    );
}

#[test]
fn options() {
    let _alone = alone();
    let make = |head: &str, line: &dyn Fn(usize) -> String| lines("options", head, line);
    fits(
        "options",
        vec![
            ("flags", make("", &|_| "-v ".into())),
            ("words", make("", &|_| "- ".into())),
            ("rules", make("--tool=callgrind ", &|i| format!("--fn-skip={i:x}* "))),
            ("stars", make("--tool=callgrind --fn-skip=", &|_| "*a".into())),
            ("numbered", make("--tool=callgrind ", &|_| "--fn-group7=a ".into())),
            ("skipped", make("--trace-children-skip=", &|_| "a,".into())),
            ("variables", make("--log-file=", &|_| "%q{HOME}".into())),
            ("pieces", make("--log-file=", &|_| "%pa".into())),
            ("unknown", make("--", &|_| "a".into())),
        ],
    );
}

#[test]
fn mangled_names() {
    let _alone = alone();
    let seq = |i: usize| if i == 0 { String::new() } else { format!("{:X}", i - 1) };
    let doubled: String = (0..9).map(|i| format!("St4pairIS{0}_S{0}_E", seq(i))).collect();
    let pack = |n: usize, with: &str| format!("_Z1fIJ{}EEv{with}", "i".repeat(n));
    let shapes = vec![
        ("doubled", format!("_Z1f1a{doubled}")),
        ("doubled, many parameters", format!("_Z1fSt4pairIiiE{}", "St4pairIS_S_ES0_".repeat(50))),
        ("packs", pack(300, &"DpT_".repeat(150))),
        ("packs of packs", pack(300, &"DpPFvDpT_E".repeat(60))),
        ("packs, twice", pack(200, &"Dp1aIDpT_E".repeat(60))),
        ("far parameters", format!("_Z1fI{}EvT200_{}", "i".repeat(250), "PT200_".repeat(100))),
        ("pointers", format!("_Z1f{}i", "P".repeat(590))),
        ("qualifiers", format!("_Z1f{}i", "KVP".repeat(190))),
        ("functions", format!("_Z1f{}i{}", "PF".repeat(290), "iE".repeat(290))),
        ("arrays", format!("_Z1f{}i", "RA1_".repeat(190))),
        ("members", format!("_Z1f{}i", "M1a".repeat(250))),
        ("arguments of arguments", format!("_Z1f{}{}", "1AI".repeat(190), "E".repeat(190))),
        ("lambdas", format!("_Z1f{}i{}", "NUl".repeat(150), "E_E".repeat(150))),
        ("references", format!("_Z1fIiEv{}", "RT_".repeat(300))),
        ("references, doubled", {
            let types: String = (2..40).map(|i| format!("PFRS{0}_RS{0}_E", seq(i))).collect();
            format!("_Z1fIiEvRT_{types}")
        }),
        ("expansions, doubled", {
            let types: String = (2..60).map(|i| format!("1aIDpS{0}_S{0}_E", seq(i))).collect();
            format!("_Z1fIJiiiiiiiiEEvPT_{types}")
        }),
        ("conversions", format!("_Z{}iv", "cv".repeat(250))),
        ("locals", format!("_Z{}1fv{}", "Z".repeat(150), "E1gv".repeat(150))),
    ];
    fits("cxx", shapes.into_iter().map(|(what, name)| (what, name.into_bytes())).collect());
}

#[test]
fn substitutions() {
    let _alone = alone();
    fits(
        "substitution",
        vec![
            ("empty matches", format!("s/|b/x/g\n{}", "a".repeat(16_000)).into_bytes()),
            ("references", format!("s/(a)\\1*$|/x/g\n{}", "a".repeat(16_000)).into_bytes()),
            ("repetitions", b"s/((a{99}){99}){99}/x/\naaaa".to_vec()),
            ("groups", format!("s/{}/x/\naaaa", "(a)?".repeat(4_000)).into_bytes()),
        ],
    );
}

/// An ELF file with one executable segment at 0x1000 and sections as wanted.
struct Elf {
    contents: Vec<u8>,
    names: Vec<u8>,
    headers: Vec<u8>,
}

impl Elf {
    fn new() -> Self {
        let mut contents = vec![0; 64 + 56];
        contents[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
        for (i, word) in [1 | 5 << 32, 0, 0x1000, 0x1000, 0x1000, 0x10_0000, 0x1000_u64].iter().enumerate() {
            contents[64 + 8 * i..72 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        Self { contents, names: vec![0], headers: vec![0; 64] }
    }

    fn section(mut self, name: &str, contents: &[u8]) -> Self {
        let (start, size) = (self.contents.len() as u64, contents.len() as u64);
        let header = [self.names.len() as u64 | 1 << 32, 0, 0, start, size, 0, 1, 0];
        self.headers.extend(header.iter().flat_map(|word| word.to_le_bytes()));
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        self.contents.extend_from_slice(contents);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let names = [std::mem::take(&mut self.names), b".shstrtab\0".to_vec()].concat();
        self.names = vec![0; names.len() - 10];
        let Self { mut contents, headers, .. } = self.section(".shstrtab", &names);
        let (start, count) = (contents.len() as u64, (headers.len() / 64) as u16);
        contents.extend_from_slice(&headers);
        contents[32..40].copy_from_slice(&64_u64.to_le_bytes());
        contents[40..48].copy_from_slice(&start.to_le_bytes());
        for (at, value) in [(52, 64), (54, 56), (56, 1), (58, 64), (60, count), (62, count - 1)] {
            contents[at..at + 2].copy_from_slice(&u16::to_le_bytes(value));
        }
        contents
    }
}

/// A unit of DWARF 4 whose entry of abbreviation 1 has these bytes; abbreviations start at 0.
fn unit(entry: &[u8]) -> Vec<u8> {
    let body = [&[4, 0, 0, 0, 0, 0, 8, 1], entry].concat();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A line program of DWARF 4 with these files and this code.
fn line_program(files: &[u8], code: &[u8]) -> Vec<u8> {
    let header = [&[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0], files, &[0]].concat();
    let rest = [&[4, 0][..], &(header.len() as u32).to_le_bytes(), &header, code].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

/// `DW_AT_stmt_list` alone.
const LINES: &[u8] = &[1, 0x11, 0, 0x10, 0x17, 0, 0];
/// `DW_AT_stmt_list` and `DW_AT_ranges`.
const LINES_AND_RANGES: &[u8] = &[1, 0x11, 0, 0x10, 0x17, 0x55, 0x17, 0, 0];

#[test]
fn elf_files() {
    let _alone = alone();
    let start = [&[0, 9, 2][..], &0x1000_u64.to_le_bytes()].concat();
    let files = b"longer.name\0\0\0\0".repeat(3_500);
    let many_units = |entry: &[u8], times: usize| unit(entry).repeat(times);
    let debug = |abbreviations: &[u8], info: &[u8], lines: &[u8], ranges: &[u8]| {
        Elf::new()
            .section(".debug_abbrev", abbreviations)
            .section(".debug_info", info)
            .section(".debug_line", lines)
            .section(".debug_ranges", ranges)
            .finish()
    };
    // Codes that nobody uses, in one table with the one that is.
    let unused: Vec<u8> =
        (2_u16..8_000).flat_map(|code| [code as u8 | 0x80, (code >> 7) as u8, 0x2e, 0, 0, 0]).collect();
    let abbreviations = [LINES, &unused, &[0]].concat();
    let ranges = [0x5000_u64, 0x5001].map(u64::to_le_bytes).concat().repeat(3_000);
    let symbol = |name: u32, start: u64, size: u64| {
        [&name.to_le_bytes()[..], &[2, 0, 1, 0], &start.to_le_bytes(), &size.to_le_bytes()].concat()
    };
    let symbols = |make: &dyn Fn(u64) -> Vec<u8>, strings: &[u8]| {
        let table: Vec<u8> = (0..2_500).flat_map(make).collect();
        Elf::new().section(".symtab", &table).section(".strtab", strings).finish()
    };
    let long = [&b"\0"[..], &[b'a'; 60_000], b"\0"].concat();
    let text = format!("\0_Z1f{}\0", "St4pairIiiE".repeat(80));
    let mut sections = Elf::new();
    for _ in 0..900 {
        sections = sections.section(".a", b"");
    }
    fits(
        "elf",
        vec![
            (
                "units with one header of lines",
                debug(&[LINES, &[0]].concat(), &many_units(&[0; 4], 4_000), &line_program(&files, &start), &[]),
            ),
            (
                "units with one table of abbreviations",
                debug(&abbreviations, &many_units(&[0; 4], 4_000), &line_program(b"f\0\0\0\0", &start), &[]),
            ),
            (
                "units with one list of ranges",
                debug(
                    &[LINES_AND_RANGES, &[0]].concat(),
                    &many_units(&[0; 8], 3_000),
                    &line_program(b"f\0\0\0\0", &start),
                    &ranges,
                ),
            ),
            (
                "rows",
                debug(
                    &[LINES, &[0]].concat(),
                    &unit(&[0; 4]),
                    &line_program(b"f\0\0\0\0", &[&start[..], &[32; 100_000]].concat()),
                    &[],
                ),
            ),
            ("symbols within each other", symbols(&|i| symbol(1, 0x1000 + i, 10_000 - 2 * i), b"\0a\0")),
            ("symbols that begin together", symbols(&|i| symbol(1, 0x1000, 1 + i), b"\0a\0")),
            ("symbols that end together", symbols(&|i| symbol(1, 0x1000 + i, 10_000 - i), b"\0a\0")),
            ("symbols named by parts of one name", symbols(&|i| symbol(1 + i as u32, 0x1000 + 16 * i, 16), &long)),
            ("symbols of one range", symbols(&|i| symbol(1 + i as u32, 0x1000, 16), &long)),
            ("symbols with a name that grows", symbols(&|i| symbol(1, 0x1000 + 16 * i, 16), text.as_bytes())),
            ("sections", sections.finish()),
        ],
    );
}
