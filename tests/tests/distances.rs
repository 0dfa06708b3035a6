//! Stack distances, end to end: they are of every access that a profile counts, the caches that are simulated beside them count what
//! they count by themselves, a cache of one set misses what its size says, and programs with known distances have those.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cg_format::mem::Kind;
use cg_format::mem::reuse::{Reuse, of_all_objects};
use grind_tests::build::{Source, compile};
use grind_tests::mem::{Process, processes};
use grind_tests::run::Job;
use grind_tests::tools;

const SMALL: [&str; 4] = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64", "--LL=16384,4,64"];
const EXACT: &str = "--reuse-dist=exact";
const BOUNDS: &str = "--reuse-dist=bounds";

/// What a process accessed.
trait Distances {
    fn rows(&self) -> &[Reuse];
    fn accesses(&self) -> u64;
    /// What a cache of 2^`bits` lines would miss.
    fn misses(&self, bits: u32) -> u64;
}

impl Distances for Process {
    fn rows(&self) -> &[Reuse] {
        &self.mem.as_ref().expect("a file").reuse
    }

    fn accesses(&self) -> u64 {
        self.mem.as_ref().and_then(|mem| mem.head.reuse.as_ref()).expect("distances").accesses
    }

    fn misses(&self, bits: u32) -> u64 {
        self.rows().iter().map(|row| row.misses(bits)).sum()
    }
}

fn program(name: &str, dir: &Path) -> String {
    Source::open("cache", name).build(dir, true).display().to_string()
}

/// Builds a program from its text.
fn written(text: &str, more: &[&str], dir: &Path) -> PathBuf {
    let (source, out) = (dir.join("walk.c"), dir.join("walk"));
    std::fs::write(&source, text).expect("a source");
    let mut words = ["gcc", "-O1", "-g", "-fno-tree-loop-distribute-patterns", "-o"].map(str::to_owned).to_vec();
    words.extend([out.display().to_string(), source.display().to_string()]);
    words.extend(more.iter().map(|w| (*w).to_owned()));
    compile(&words, dir);
    out
}

#[test]
fn distances_are_of_every_access_and_change_no_count() {
    for name in ["matrix", "sort", "chase", "straddles", "rep", "masked", "gather", "fxsave", "xsave", "rmw", "stack"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = program(name, dir.path());
        let plain = processes(&SMALL, &[&program], dir.path());
        let exact = processes(&[&SMALL[..], &[EXACT]].concat(), &[&program], dir.path());
        assert!(plain[0].mem.is_none(), "{name}");
        assert_eq!(plain[0].events, exact[0].events, "{name}");
        let counted = exact[0].events["Dr"] + exact[0].events["Dw"];
        assert_eq!(exact[0].accesses(), counted, "{name}");
        // Without caches, too, and with deeper ones.
        let alone = processes(&[EXACT], &[&program], dir.path());
        assert_eq!(alone[0].events["Ir"], exact[0].events["Ir"], "{name}");
        assert_eq!(alone[0].rows(), exact[0].rows(), "{name}");
        let deeper = [&SMALL[..], &["--L2=4096,4,64,plru", "--branch-sim=yes", "--objects=yes"]].concat();
        let (plain, exact) = (
            processes(&deeper, &[&program], dir.path()),
            processes(&[&deeper[..], &[EXACT]].concat(), &[&program], dir.path()),
        );
        assert_eq!(plain[0].events, exact[0].events, "{name}");
        // (What only has distances has missed nothing.)
        let objects = |of: &Process| {
            let mut all = of.mem.as_ref().map(|mem| mem.objects.clone()).expect("objects");
            all.retain(|object| object.blocks > 0 || object.counts.iter().any(|n| *n > 0));
            all
        };
        assert_eq!(objects(&plain[0]), objects(&exact[0]), "{name}");
    }
}

/// The model of caches, which knows nothing of distances, is the emitted code in one run and [`cg_sim`] in the other.
#[test]
fn a_cache_of_one_set_misses_what_its_size_says() {
    for name in ["matrix", "sort", "chase", "straddles", "rep"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = program(name, dir.path());
        let exact = processes(&[EXACT], &[&program], dir.path());
        for bits in [3, 6] {
            let lines = 1 << bits;
            let d1 = format!("--D1={},{lines},64", lines * 64);
            let options = ["--cache-sim=yes", "--I1=1024,2,64", &d1, "--LL=16384,4,64"];
            let simulated = processes(&options, &[&program], dir.path());
            let misses = simulated[0].events["D1mr"] + simulated[0].events["D1mw"];
            assert!(misses > 20, "{name}: {misses}");
            assert_eq!(exact[0].misses(bits), misses, "{name}: {lines} lines");
        }
    }
}

const WALK: &str = "\
static struct { _Alignas(64) char bytes[64]; } lines[3000];
int main(void) {
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < 3000; i++)
            lines[i].bytes[k]++;
    return lines[7].bytes[0] - 1;
}
";

#[test]
fn a_walk_in_circles_has_one_distance() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(WALK, &[], dir.path()).display().to_string();
    let of = processes(&[EXACT], &[&program], dir.path());
    let row = of[0].rows().iter().find(|row| row.line == 5 && row.function == "main").expect("its line");
    // An increment is a modification, or a read and a write of the same line.
    let same = row.bins[0];
    assert!(same == 0 || same == 15_000, "{row:?}");
    let mut bins = vec![0; 13];
    (bins[0], bins[12]) = (same, 4 * 3000);
    assert_eq!((row.first, &row.bins), (3000, &bins), "2,999 others in between");
    // What is looked at is one line of four.
    let sampled = processes(&[EXACT, "--reuse-sample=4"], &[&program], dir.path());
    let head = sampled[0].mem.as_ref().and_then(|mem| mem.head.reuse.clone()).expect("distances");
    let row = sampled[0].rows().iter().find(|row| row.line == 5 && row.function == "main").expect("its line");
    assert_eq!((head.sample, row.bins.len()), (4, 13), "{row:?}");
    assert!(row.first.abs_diff(750) < 75 && row.bins[12] == 4 * row.first, "{row:?}");
}

/// None of the two ends before both have begun: else the second could have the first one's stack, at the same addresses. (And what they call
/// is bound at the start: else both may look for it, or one.)
const THREADS: &str = "\
#include <pthread.h>
#include <sys/wait.h>
#include \"ended.h\"
static struct { _Alignas(64) long n[8]; } lines[2][1000];
static void *walk(void *of) {
    for (int k = 0; k < 40; k++)
        for (int i = 0; i < 1000; i++)
            lines[(long) of][i].n[0] += k;
    return 0;
}
static int go[2], lives[2] = {1, 1};
static void *walks(void *of) {
    char c;
    tells_of_its_end(&lives[(long) of]);
    walk(of);
    return read(go[0], &c, 1) == 1 ? 0 : of;
}
int main(void) {
    pthread_t t[2];
    if (pipe(go)) return 1;
    for (long n = 0; n < 2; n++) pthread_create(&t[n], 0, walks, (void *) n);
    if (write(go[1], \"go\", 2) != 2) return 1;
    for (long n = 0; n < 2; n++) has_ended(&lives[n]);
    if (fork() == 0) { walk((void *) 1); _exit(0); }
    return wait(0) < 0;
}
";

fn threads(dir: &Path) -> PathBuf {
    written(THREADS, &["-pthread", "-Wl,-z,now", &format!("-I{}", tools::fixtures("calls").display())], dir)
}

/// What a thread has in between does not depend on what others do meanwhile, and a process that is created goes on with what its
/// parent had.
#[test]
fn threads_and_processes_have_distances_of_their_own() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = threads(dir.path()).display().to_string();
    let of = processes(&[EXACT], &[&program], dir.path());
    let walked: Vec<(u64, u64)> = of
        .iter()
        .map(|of| {
            let row = of.rows().iter().find(|row| row.function == "walk" && row.line == 8).expect("its line");
            (row.first, row.bins[10])
        })
        .collect();
    // The child counts what its parent had, as its profile does; its own thread had not been there.
    assert_eq!(walked, [(2000, 2 * 39_000), (3000, 3 * 39_000)]);
}

/// At least, and at most, what a cache of 2^`bits` lines would miss of what missed D1, in a row of the source.
fn band(row: &Reuse, bits: u32) -> [u64; 2] {
    [row.misses(bits), row.misses_at_most(bits)]
}

/// The same accesses in two runs: what missed a D1 of one set is what is farther than that has lines, so its bounds contain what is
/// exact, row by row; of any D1 they contain at most what all accesses come to, and lines that are new have missed every cache.
#[test]
fn bounds_contain_what_is_exact() {
    for name in ["matrix", "sort", "chase", "straddles", "rep", "masked", "gather", "fxsave", "xsave", "rmw", "stack"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = program(name, dir.path());
        let exact = processes(&[EXACT], &[&program], dir.path());
        let of_all = |row: &Reuse| {
            let same =
                |other: &&Reuse| (&other.file, other.line, &other.function) == (&row.file, row.line, &row.function);
            exact[0].rows().iter().find(same).cloned().expect("the same row")
        };
        for (d1, lines) in [("1024,16,64", 4), ("1536,24,64", 5), ("2048,1,64", 0), ("2048,4,64", 0), ("65536,8,64", 0)]
        {
            let d1 = format!("--D1={d1}");
            let options = ["--cache-sim=yes", "--I1=1024,2,64", &d1, "--LL=131072,4,64"];
            let plain = processes(&options, &[&program], dir.path());
            let bounds = processes(&[&options[..], &[BOUNDS]].concat(), &[&program], dir.path());
            assert_eq!(plain[0].events, bounds[0].events, "{name}, {d1}");
            let tlbs = processes(&[&options[..], &[BOUNDS, "--tlb-sim=yes"]].concat(), &[&program], dir.path());
            assert_eq!(tlbs[0].rows(), bounds[0].rows(), "{name}, {d1}, with TLBs");
            let event = |name: &str| plain[0].events[name];
            let head = bounds[0].mem.as_ref().and_then(|mem| mem.head.reuse.clone()).expect("distances");
            let missed = event("D1mr") + event("D1mw");
            assert_eq!(head.accesses, missed, "{name}, {d1}");
            assert_eq!(head.hits, Some(event("Dr") + event("Dw") - missed), "{name}, {d1}");
            for row in bounds[0].rows() {
                let all = of_all(row);
                assert_eq!(row.first, all.first, "{name}, {d1}: {row:?}");
                for bits in 0..20 {
                    let [least, most] = band(row, bits);
                    let exact = all.misses(bits);
                    assert!(least <= exact, "{name}, {d1}, {bits}: {row:?}, {all:?}");
                    // (24 lines are between two sizes: what is farther than the larger one has missed.)
                    let one_set = lines > 0 && bits >= lines;
                    assert!(!one_set || exact <= most, "{name}, {d1}, {bits}: {row:?}, {all:?}");
                }
            }
            let first = |of: &Process| of.rows().iter().map(|row| row.first).sum::<u64>();
            assert_eq!(first(&bounds[0]), first(&exact[0]), "{name}, {d1}");
        }
    }
}

/// A walk over more lines than D1 has is known but for the bin, and so are the walks of threads and processes. What is told beside
/// bounds is what it is without them.
#[test]
fn bounds_of_walks_are_near_and_stand_beside_the_rest() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(WALK, &[], dir.path()).display().to_string();
    let caches = ["--cache-sim=yes", "--D1=32768,8,64"];
    let of = processes(&[&caches[..], &[BOUNDS]].concat(), &[&program], dir.path());
    let row = of[0].rows().iter().find(|row| row.line == 5 && row.function == "main").expect("its line");
    let mut bins = vec![0; 13];
    bins[12] = 4 * 3000;
    assert_eq!((row.first, &row.bins, &row.most), (3000, &bins, &bins), "2,999 others in between");
    let program = threads(dir.path()).display().to_string();
    let small = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=16384,4,64", "--LL=65536,4,64"];
    let more = ["--objects=yes", "--streams=misses", "--sharing=lines", "--L2=32768,8,64,plru", "--branch-sim=yes"];
    let plain = processes(&[&small[..], &more[..]].concat(), &[&program], dir.path());
    let of = processes(&[&small[..], &more[..], &[BOUNDS]].concat(), &[&program], dir.path());
    let mut walked = Vec::new();
    for (of, plain) in of.iter().zip(&plain) {
        let rows = of_all_objects(of.rows().to_vec());
        let row = rows.iter().find(|row| row.function == "walk" && row.line == 8).expect("its line");
        // (999 others in between are nearly 1,024, with what is not known of the few beside.)
        assert!(row.bins[10] - row.most[10] < 100, "{row:?}");
        walked.push((row.first, row.bins[10], row.most[10..].iter().sum::<u64>(), row.bins.len()));
        let misses = |of: &Process| ["D1mr", "D1mw", "D2mr", "D2mw"].map(|event| of.events[event]);
        assert_eq!(misses(of), misses(plain));
        let lines = |of: &Process| {
            let mem = of.mem.clone().expect("a file");
            assert!(mem.head.sharing.is_some() && !mem.streams.is_empty());
            // (What the last level misses, and what the library shares, depends on whose turn it is.)
            let lines = mem.objects.into_iter().find(|o| o.name == "lines").expect("the variable");
            [lines.counts[0], lines.counts[2]]
        };
        assert_eq!(lines(of), lines(plain));
    }
    assert_eq!(walked, [(2000, 2 * 39_000, 2 * 39_000, 11), (3000, 3 * 39_000, 3 * 39_000, 11)]);
}

const BLOCKS: &str = "\
#include <stdlib.h>
static long still[4000];
static __attribute__((noinline)) long sum(const long *of, long n, long step) {
    long all = 0;
    for (long i = 0; i < n; i += step) all += of[i];
    return all;
}
int main(void) {
    long *near = malloc(800 * sizeof *near), *far = malloc(9000 * sizeof *far), all = 0;
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 800; i++) near[i] = k;
        for (int i = 0; i < 9000; i += 3) far[i] = k;
        all += sum(near, 800, 1) + sum(far, 9000, 8) + sum(still, 4000, 5);
        if (k == 3) { free(near); near = malloc(800 * sizeof *near); }
    }
    free(near);
    free(far);
    return all == 7;
}
";

/// A row of the source, and what it accesses: a kind, a name, where it is allocated.
type Key = (String, u64, String, Option<(Kind, String, u64)>);

/// The rows of a process by those.
fn by_object(of: &Process) -> BTreeMap<Key, Reuse> {
    let mem = of.mem.as_ref().expect("a file");
    let object = |n: usize| (mem.objects[n].kind, mem.objects[n].name.clone(), mem.objects[n].line);
    let key = |row: &Reuse| (row.file.clone(), row.line, row.function.clone(), row.object.map(object));
    let mut all: BTreeMap<Key, Reuse> = BTreeMap::new();
    mem.reuse.iter().for_each(|row| all.entry(key(row)).or_default().add(row));
    all
}

/// What is told by object is what is told without, and of each object bounds contain what is exact.
#[test]
fn objects_have_distances_of_their_own() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(BLOCKS, &["-O1"], dir.path()).display().to_string();
    let caches = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=2048,32,64", "--LL=131072,4,64"];
    let [exact, bounds] = [EXACT, BOUNDS].map(|option| {
        let plain = processes(&[&caches[..], &[option]].concat(), &[&program], dir.path()).remove(0);
        let of = processes(&[&caches[..], &[option, "--objects=yes"]].concat(), &[&program], dir.path()).remove(0);
        assert_eq!(plain.events, of.events, "{option}");
        assert_eq!(of_all_objects(of.rows().to_vec()), plain.rows(), "{option}");
        assert!(
            of.rows().iter().all(|row| row.object.is_some()) && plain.rows().iter().all(|row| row.object.is_none())
        );
        of
    });
    // Misses of an object are those that its bounds are of.
    let mem = bounds.mem.as_ref().expect("a file");
    for (n, object) in mem.objects.iter().enumerate() {
        let of = mem.reuse.iter().filter(|row| row.object == Some(n)).map(Reuse::accesses).sum::<u64>();
        assert_eq!(of, object.counts[0] + object.counts[2], "{object:?}");
    }
    let (exact, bounds) = (by_object(&exact), by_object(&bounds));
    for (key, row) in &bounds {
        let all = &exact[key];
        assert_eq!(row.first, all.first, "{key:?}");
        for bits in 5..20 {
            let ([least, most], exact) = (band(row, bits), all.misses(bits));
            assert!(least <= exact && exact <= most, "{key:?}, {bits}: {row:?}, {all:?}");
        }
    }
    // The same line of the source walks over three objects, each with a distance of its own.
    let walks: BTreeSet<_> =
        bounds.keys().filter(|key| key.2 == "sum" && key.1 == 5).map(|key| key.3.clone()).collect();
    assert!(walks.len() >= 3, "{walks:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (options, expected) in [
        (&["--reuse-sample=8"][..], "--reuse-sample is of stack distances: add --reuse-dist=exact"),
        (&[EXACT, "--reuse-sample=3"], "Bad argument '3': one line of 2, 4, 8"),
        (&[BOUNDS], "--reuse-dist=bounds is of what misses simulated caches: add --cache-sim=yes"),
        (
            &[BOUNDS, "--cache-sim=yes", "--reuse-sample=8"],
            "--reuse-sample is of stack distances: add --reuse-dist=exact",
        ),
        (
            &[BOUNDS, "--cache-sim=yes", "--tlb-sim=yes", "--DTLB=4096,4"],
            "and --tlb-sim, with TLBs of this shape, does not: leave one of them out",
        ),
        (&[BOUNDS, "--cache-sim=yes", "--sharing=counts"], "and --sharing, as it is told here, does not: leave"),
        (&["--tool=callgrind", "--cache-sim=yes", BOUNDS], "--reuse-dist"),
        (&["--tool=callgrind", EXACT], "--reuse-dist"),
    ] {
        let mut words = tools::under_test().to_vec();
        words.extend(options.iter().map(|o| (*o).to_owned()));
        words.push("true".into());
        let outcome = Job::new(words, dir.path()).native();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(!outcome.status.success() && said.contains(expected), "{options:?}: {said}");
    }
}
