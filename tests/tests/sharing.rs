//! Lines that threads share, end to end: random threads share what a map of their bytes says, blocks that lie side by side are told
//! apart, births and ends of threads are where they are in the program, and nothing that is counted changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use cg_format::mem::Mem;
use cg_format::mem::sharing::{Shared, Which};
use grind_tests::build::{Source, compile};
use grind_tests::mem::{Process, processes};
use grind_tests::run::Job;
use grind_tests::tools;

const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];
/// By the bytes that threads are not known to have used.
const LINES: &str = "--sharing=lines";
/// The same, and in which order threads come by lines.
pub(crate) const ORDER: &str = "--sharing=order";
/// By every access: the twin of that, which also counts.
const COUNTS: &str = "--sharing=counts";

/// What a process shared.
pub(crate) trait Sharing {
    fn mem(&self) -> &Mem;
    /// What a function of the program has counted, but for misses of the last level, which threads share as they take turns.
    fn function(&self, name: &str) -> Vec<u64>;
    /// The rows in which something of this name is used.
    fn rows(&self, name: &str) -> Vec<&Shared>;
}

impl Sharing for Process {
    fn mem(&self) -> &Mem {
        self.mem.as_ref().expect("a file")
    }

    fn function(&self, name: &str) -> Vec<u64> {
        let text = String::from_utf8_lossy(&self.profile);
        let lines = text.lines().skip_while(|line| *line != format!("fn={name}")).skip(1);
        let mut sums: Vec<u64> = Vec::new();
        for line in lines.take_while(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
            let all = line.split_whitespace().skip(1).map(|n| n.parse::<u64>().expect("a number"));
            let counts: Vec<u64> = all.enumerate().filter(|(n, _)| n % 3 != 2).map(|(_, n)| n).collect();
            sums.resize(sums.len().max(counts.len()), 0);
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
        sums
    }

    fn rows(&self, name: &str) -> Vec<&Shared> {
        let named = |n: usize| self.mem().objects[n].name == name;
        self.mem().sharing.iter().filter(|row| row.uses.iter().any(|used| used.object.is_some_and(named))).collect()
    }
}

/// Runs a program under grind with these options and caches.
pub(crate) fn run(options: &[&str], program: &Path, dir: &Path) -> Vec<Process> {
    processes(&[&CACHES, options].concat(), &[program.to_str().expect("a name")], dir)
}

/// Builds a program from its text.
pub(crate) fn written(text: &str, dir: &Path) -> PathBuf {
    let (source, out) = (dir.join("shares.c"), dir.join("shares"));
    std::fs::write(&source, text).expect("a source");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let words = ["gcc", "-O1", "-g", "-pthread", &include, "-o"].map(str::to_owned);
    let places = [&out, &source].map(|path| path.display().to_string());
    compile(&words.into_iter().chain(places).collect::<Vec<_>>(), dir);
    out
}

/// What stands before the functions of threads: `T(n)` is the function of a thread, all of which begin and end together.
pub(crate) const HEAD: &str = "\
#include <pthread.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u1;
typedef uint16_t __attribute__((aligned(1), may_alias)) u2;
typedef uint32_t __attribute__((aligned(1), may_alias)) u4;
typedef uint64_t __attribute__((aligned(1), may_alias)) u8;
static _Alignas(64) unsigned char shared[256];
static pthread_barrier_t together;
#define READ(type, at) ((void)*(volatile type *)(shared + (at)))
#define WRITE(type, at) (*(volatile type *)(shared + (at)) = 1)
#define MODIFY(type, at) (*(volatile type *)(shared + (at)) += 1)
#define FILL(n, at) do { \\
    unsigned char *to = shared + (at); \\
    unsigned long left = (n); \\
    __asm__ volatile(\"rep stosb\" : \"+D\"(to), \"+c\"(left) : \"a\"(1) : \"memory\"); } while (0)
#define WAIT() pthread_barrier_wait(&together)
";

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What a thread does with a byte.
#[derive(Clone, Copy, Default)]
struct Byte {
    read: bool,
    written: bool,
}

/// Who does what in a line, and how often.
type Shape = (Which, Vec<(u64, Vec<(u64, u64)>, Vec<(u64, u64)>, i64, u64, u64)>);

/// A program of random threads, and what they share.
fn random_program(seed: u64) -> (String, BTreeSet<Shape>) {
    let mut random = Random(seed);
    let threads = 2 + random.below(3);
    let mut text = HEAD.to_owned();
    let mut bytes: BTreeMap<(u64, u64), Byte> = BTreeMap::new();
    let mut counts: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for thread in 0..threads {
        let _ = writeln!(text, "static void *thread{thread}(void *none) {{\n    WAIT();");
        for _ in 0..3 + random.below(12) {
            let fills = random.below(16) == 0;
            let size = if fills { 1 + random.below(100) } else { 1 << random.below(4) };
            // Mostly a part of the memory that is the thread's own.
            let own = thread * 24 + random.below(48);
            let at = if random.below(4) > 0 { own } else { random.below(200) }.min(256 - size);
            let (kind, times) = (random.below(5), 1 + random.below(3));
            let (name, reads, writes) = match kind % 3 {
                _ if fills => ("FILL", 0, 1),
                0 => ("READ", 1, 0),
                1 => ("WRITE", 0, 1),
                _ => ("MODIFY", 1, 1),
            };
            let how = if fills { size.to_string() } else { format!("u{size}") };
            let _ = writeln!(text, "    for (int n = 0; n < {times}; n++) {name}({how}, {at});");
            for byte in at..at + size {
                let known = bytes.entry((thread, byte)).or_default();
                *known = Byte { read: known.read | (reads > 0), written: known.written | (writes > 0) };
            }
            for line in at / 64..=(at + size - 1) / 64 {
                let sums = counts.entry((thread, line)).or_default();
                // Each byte that is filled is an access.
                let here = if fills { (at + size).min(line * 64 + 64) - at.max(line * 64) } else { 1 };
                *sums = (sums.0 + reads * times * here, sums.1 + writes * times * here);
            }
        }
        text.push_str("    WAIT();\n    return none;\n}\n");
    }
    // Before the others begin, and behind their ends, there is no one to share with.
    text.push_str("int main(void) {\n    memset(shared, 7, sizeof shared);\n    pthread_t t[8];\n");
    let _ = writeln!(text, "    pthread_barrier_init(&together, 0, {threads});");
    for thread in 0..threads {
        let _ = writeln!(text, "    pthread_create(&t[{thread}], 0, thread{thread}, 0);");
    }
    let _ = writeln!(text, "    for (int n = 0; n < {threads}; n++) pthread_join(t[n], 0);");
    text.push_str("    int sum = 0;\n    for (int n = 0; n < 256; n++) sum += shared[n];\n    return sum == 1;\n}\n");
    (text, (0..4).filter_map(|line| shape(line, threads, &bytes, &counts)).collect())
}

/// What is to be said of a line, byte by byte.
fn shape(
    line: u64,
    threads: u64,
    bytes: &BTreeMap<(u64, u64), Byte>,
    counts: &BTreeMap<(u64, u64), (u64, u64)>,
) -> Option<Shape> {
    let of = |thread, byte| bytes.get(&(thread, line * 64 + byte)).copied().unwrap_or_default();
    let uses = |thread: u64| (0..64).any(|byte| of(thread, byte).read || of(thread, byte).written);
    let writes = |thread: u64| (0..64).any(|byte| of(thread, byte).written);
    let shares = |thread: &u64| {
        let with = |other: u64| other != *thread && uses(other) && (writes(*thread) || writes(other));
        uses(*thread) && (0..threads).any(with)
    };
    let sharers: Vec<u64> = (0..threads).filter(shares).collect();
    let truly = (0..64).any(|byte| {
        sharers.iter().any(|writer| {
            let used = |other: &u64| other != writer && (of(*other, byte).read || of(*other, byte).written);
            of(*writer, byte).written && sharers.iter().any(used)
        })
    });
    let runs = |has: &dyn Fn(u64) -> bool| {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for byte in (0..64).filter(|byte| has(*byte)) {
            match runs.last_mut() {
                Some((_, end)) if *end == byte => *end += 1,
                _ => runs.push((byte, byte + 1)),
            }
        }
        runs
    };
    let row = |thread: &u64| {
        let (read, written) = (runs(&|byte| of(*thread, byte).read), runs(&|byte| of(*thread, byte).written));
        let (reads, writes) = counts[&(*thread, line)];
        // The first thread of the process is the one that has created these.
        (thread + 2, read, written, line as i64 * 64, reads, writes)
    };
    let which = if truly { Which::True } else { Which::False };
    (!sharers.is_empty()).then(|| (which, sharers.iter().map(row).collect()))
}

#[test]
fn random_threads_share_what_a_map_of_bytes_says() {
    let mut kinds = BTreeSet::new();
    for seed in 0..10 {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (text, expected) = random_program(seed);
        let program = written(&text, dir.path());
        for option in [COUNTS, LINES, ORDER] {
            let counted = option == COUNTS;
            let of = run(&["--objects=yes", option], &program, dir.path());
            let rows = of[0].rows("shared");
            assert!(rows.iter().all(|row| row.lines == 1), "{seed}: {rows:#?}");
            let found: BTreeSet<Shape> = rows
                .iter()
                .map(|row| {
                    let used = |used: &cg_format::mem::sharing::SharedUse| {
                        (used.thread, used.read.clone(), used.written.clone(), used.offset, used.reads, used.writes)
                    };
                    (row.which, row.uses.iter().map(used).collect())
                })
                .collect();
            let mut expected = expected.clone();
            if !counted {
                let without = |(which, uses): Shape| {
                    (which, uses.into_iter().map(|(a, b, c, d, ..)| (a, b, c, d, 0, 0)).collect())
                };
                expected = expected.into_iter().map(without).collect();
            }
            assert_eq!(found, expected, "{seed}, {option}:\n{text}");
            kinds.extend(expected.iter().map(|(which, _)| *which));
            // The sums by object are those of the rows, and the source is known.
            let shared = of[0].mem().objects.iter().find(|o| o.name == "shared").expect("the variable");
            let sum =
                |which, of: fn(&Shared) -> u64| rows.iter().filter(|row| row.which == which).map(|row| of(row)).sum();
            let [falsely, truly]: [[u64; 3]; 2] = [Which::False, Which::True]
                .map(|which| [sum(which, |_| 1), sum(which, Shared::reads), sum(which, Shared::writes)]);
            let lines = [falsely[0], truly[0]];
            let moved = |n: usize| rows.iter().map(|row| row.moved()[n]).sum();
            let (events, sums) = match option {
                COUNTS => (&["FSr", "FSw", "TSr", "TSw"][..], [&falsely[1..], &truly[1..]].concat()),
                LINES => (&["FSl", "TSl"][..], lines.to_vec()),
                _ => (&["FSl", "TSl", "MVr", "MVw", "UPw"][..], [&lines[..], &[0, 1, 2].map(moved)].concat()),
            };
            assert_eq!(shared.counts[4..], sums, "{seed}");
            assert_eq!(of[0].mem().head.events[4..], *events);
            assert_eq!(of[0].mem().head.sharing.as_ref().map(|head| head.uncounted), Some(!counted));
            for used in rows.iter().flat_map(|row| &row.uses) {
                let function = format!("thread{}", used.thread - 2);
                let right = |place: &cg_format::mem::sharing::SourceLine| place.function == function && place.line > 0;
                assert!(!used.places.is_empty() && used.places.iter().all(right), "{used:?}");
            }
        }
    }
    assert_eq!(kinds.len(), 2, "truly, and falsely");
}

const AGAIN: &str = "\
#include <valgrind/valgrind.h>
static pthread_barrier_t all;
#define ALL() pthread_barrier_wait(&all)
static void *early(void *n) {
    ALL(); MODIFY(u8, 64); ALL(); ALL(); MODIFY(u8, 64); ALL(); return n;
}
static void *late(void *n) {
    READ(u4, 0); ALL(); MODIFY(u8, 96); ALL(); ALL(); MODIFY(u8, 64); ALL(); return n;
}
int main(void) {
    pthread_t t[2];
    pthread_barrier_init(&all, 0, 3);
    VALGRIND_MALLOCLIKE_BLOCK(shared + 64, 64, 0, 0);
    pthread_create(&t[0], 0, early, 0);
    WRITE(u4, 0);
    pthread_create(&t[1], 0, late, 0);
    WRITE(u4, 0);
    ALL(); ALL();
    VALGRIND_FREELIKE_BLOCK(shared + 64, 0);
    VALGRIND_MALLOCLIKE_BLOCK(shared + 64, 32, 0, 0);
    ALL(); ALL();
    for (int n = 0; n < 2; n++) pthread_join(t[n], 0);
    return 0;
}
";

/// A thread, and the bytes that it has written.
type Written = (u64, Vec<(u64, u64)>);

/// Threads that use the same bytes again tell so where another thread has begun since, and where another block lies there.
#[test]
fn bytes_are_told_again_where_that_says_more() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(&format!("{HEAD}{AGAIN}"), dir.path());
    let of = [COUNTS, LINES].map(|option| run(&["--objects=yes", option], &program, dir.path()).remove(0));
    for of in &of {
        let made = |what: &str| {
            let line = AGAIN.lines().position(|line| line.contains(what)).expect("a block");
            format!("heap@shares.c:{}", HEAD.lines().count() + 1 + line)
        };
        let uses = |name: &str| -> Vec<(Which, Vec<Written>)> {
            let threads = |row: &Shared| row.uses.iter().map(|u| (u.thread, u.written.clone())).collect();
            of.rows(name).into_iter().map(|row| (row.which, threads(row))).collect()
        };
        // The first thread has written that before the third one began, and once more when that lived.
        assert_eq!(uses("shared"), [(Which::True, vec![(1, vec![(0, 4)]), (3, vec![])])]);
        let apart = vec![(2, vec![(0, 8)]), (3, vec![(32, 40)])];
        assert_eq!(uses(&made("shared + 64, 64")), [(Which::False, apart)]);
        let together = vec![(2, vec![(0, 8)]), (3, vec![(0, 8)])];
        assert_eq!(uses(&made("shared + 64, 32")), [(Which::True, together)]);
    }
}

const BLOCKS: &str = "\
#include <valgrind/valgrind.h>
static void *low(void *n) { WAIT(); for (int k = 0; k < 9; k++) MODIFY(u8, 8); WAIT(); return n; }
static void *high(void *n) { WAIT(); for (int k = 0; k < 5; k++) MODIFY(u8, 40); WAIT(); return n; }
static void *both(void *n) { WAIT(); WRITE(u4, 0); WAIT(); return n; }
static void run(void *(*a)(void *), void *(*b)(void *)) {
    pthread_t t[2];
    pthread_create(&t[0], 0, a, 0);
    pthread_create(&t[1], 0, b, 0);
    for (int n = 0; n < 2; n++) pthread_join(t[n], 0);
}
int main(void) {
    pthread_barrier_init(&together, 0, 2);
    VALGRIND_MALLOCLIKE_BLOCK(shared, 32, 0, 0);
    VALGRIND_MALLOCLIKE_BLOCK(shared + 32, 32, 0, 0);
    run(low, high);
    VALGRIND_FREELIKE_BLOCK(shared, 0);
    VALGRIND_FREELIKE_BLOCK(shared + 32, 0);
    VALGRIND_MALLOCLIKE_BLOCK(shared, 64, 0, 0);
    run(both, both);
    return 0;
}
";

/// Two blocks in a line are shared falsely; a third one, which lies there when they are gone, truly. Without objects it is one line.
#[test]
fn blocks_in_a_line_are_told_apart_also_in_time() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(&format!("{HEAD}{BLOCKS}"), dir.path());
    let of = run(&["--objects=yes", COUNTS], &program, dir.path());
    let line =
        |n: usize| HEAD.lines().count() + 1 + BLOCKS.lines().position(|line| line.contains("(shared, 32")).unwrap() + n;
    let uses = |name: &str| {
        let rows = of[0].rows(name);
        let of = |row: &&Shared| {
            let uses = row.uses.iter().map(|u| (u.thread, u.offset, u.reads, u.writes)).collect::<Vec<_>>();
            (row.which, row.lines, uses)
        };
        rows.iter().map(of).collect::<Vec<_>>()
    };
    let [low, high, both] = [0, 1, 5].map(|n| format!("heap@shares.c:{}", line(n)));
    // The second block begins in the middle of the line.
    let falsely = vec![(Which::False, 1, vec![(2, 0, 9, 9), (3, -32, 5, 5)])];
    assert_eq!(uses(&low), falsely);
    assert_eq!(uses(&high), falsely);
    assert_eq!(uses(&both), [(Which::True, 1, vec![(4, 0, 0, 1), (5, 0, 0, 1)])]);
    let plain = run(&[COUNTS], &program, dir.path());
    assert!(plain[0].mem().objects.is_empty() && plain[0].mem().head.events.is_empty());
    let shape = |row: &Shared| row.uses.iter().map(|u| (u.thread, u.reads, u.writes)).collect::<Vec<_>>();
    let told = run(&["--objects=yes", LINES], &program, dir.path());
    for name in [&low, &high, &both] {
        let how = |of: &Process| -> Vec<_> {
            let uses = |row: &Shared| row.uses.iter().map(|u| (u.thread, u.offset, u.read.clone())).collect::<Vec<_>>();
            of.rows(name).into_iter().map(|row| (row.which, row.lines, uses(row))).collect()
        };
        assert_eq!(how(&told[0]), how(&of[0]), "{name}");
    }
    let expected = vec![(2, 9, 9), (3, 5, 5), (4, 0, 1), (5, 0, 1)];
    let rows: Vec<&Shared> = plain[0].mem().sharing.iter().filter(|row| shape(row) == expected).collect();
    assert_eq!(rows.iter().map(|row| (row.which, row.lines)).collect::<Vec<_>>(), [(Which::True, 1)]);
}

const FORKS: &str = "\
#include <sys/wait.h>
#include <unistd.h>
static void *left(void *n) { WAIT(); MODIFY(u8, 0); WAIT(); return n; }
static void *right(void *n) { WAIT(); MODIFY(u8, 8); WAIT(); return n; }
static void run(void) {
    pthread_t t[2];
    pthread_create(&t[0], 0, left, 0);
    pthread_create(&t[1], 0, right, 0);
    for (int n = 0; n < 2; n++) pthread_join(t[n], 0);
}
int main(void) {
    pthread_barrier_init(&together, 0, 2);
    run();
    if (fork() == 0) { run(); MODIFY(u8, 16); _exit(0); }
    return wait(0) < 0;
}
";

/// A child counts what its creator had, as its profile does; its threads share with those of nobody else.
#[test]
fn a_child_goes_on_by_itself() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(&format!("{HEAD}{FORKS}"), dir.path());
    for option in [COUNTS, LINES] {
        let of = run(&["--objects=yes", option], &program, dir.path());
        let shapes: Vec<BTreeSet<(Which, u64, Vec<u64>)>> = of
            .iter()
            .map(|of| {
                let threads = |row: &Shared| row.uses.iter().map(|used| used.thread).collect();
                of.rows("shared").iter().map(|row| (row.which, row.lines, threads(row))).collect()
            })
            .collect();
        let row = |threads: [u64; 2]| (Which::False, 1, threads.to_vec());
        assert_eq!(shapes, [BTreeSet::from([row([2, 3])]), BTreeSet::from([row([2, 3]), row([4, 5])])], "{option}");
    }
}

#[test]
fn no_count_changes() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(&format!("{HEAD}{BLOCKS}"), dir.path());
    let [plain, shares, both, lines] = [
        &["--objects=yes"][..],
        &["--objects=yes", COUNTS],
        &["--objects=yes", LINES, "--reuse-dist=exact"],
        &["--objects=yes", LINES],
    ]
    .map(|options| run(options, &program, dir.path()).remove(0));
    // (How long threads wait for one another, and how, is another matter in each run.)
    for function in ["low", "high", "both"] {
        assert!(plain.function(function)[0] > 10, "{function}");
        assert_eq!(plain.function(function), shares.function(function), "{function}");
        assert_eq!(plain.function(function), both.function(function), "{function}");
        assert_eq!(plain.function(function), lines.function(function), "{function}");
    }
    let head = both.mem().head.reuse.as_ref().expect("distances");
    assert_eq!(head.accesses, both.events["Dr"] + both.events["Dw"]);
    let shown = |of: &Process| of.mem().sharing.iter().map(|row| (row.which, row.uses.len())).collect::<BTreeSet<_>>();
    assert!(!shown(&shares).is_empty() && !shown(&both).is_empty());
    // One that has a single thread, and makes accesses of every kind.
    let alone = Source::open("cache", "fxsave").build(dir.path(), true);
    let [plain, shares, lines] =
        [&[][..], &[COUNTS], &[LINES]].map(|options| run(options, &alone, dir.path()).remove(0));
    for shares in [shares, lines] {
        assert_eq!(plain.events, shares.events);
        assert!(shares.mem().sharing.is_empty());
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (options, expected) in [
        (&[LINES][..], "--sharing is of lines of simulated caches: add --cache-sim=yes"),
        (&["--cache-sim=yes", COUNTS, "--D1=32768,8,128"], "and D1 has lines of 128"),
        (&[ORDER], "--sharing is of lines of simulated caches: add --cache-sim=yes"),
        (&["--cache-sim=yes", "--sharing=turns"], "--sharing"),
        (
            &["--cache-sim=yes", ORDER, "--reuse-dist=exact"],
            "--reuse-dist=exact has every access told: use --sharing=lines",
        ),
        (&["--cache-sim=yes", ORDER, "--tlb-sim=yes"], "where TLBs are simulated there is no room for that"),
        (&["--cache-sim=yes", ORDER, "--D1=32768,8,32"], "lines of D1 must have 64 bytes"),
        (&["--tool=callgrind", "--cache-sim=yes", LINES], "--sharing"),
    ] {
        let mut words = tools::under_test().to_vec();
        words.extend(options.iter().map(|o| (*o).to_owned()));
        words.push("true".into());
        let outcome = Job::new(words, dir.path()).native();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(!outcome.status.success() && said.contains(expected), "{options:?}: {said}");
    }
}
