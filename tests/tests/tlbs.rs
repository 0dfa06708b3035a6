//! TLBs, end to end: programs with known pages miss what closed forms say, nothing else that a profile counts changes by it, threads
//! have their own, and the programs that read profiles show the events.

use std::path::{Path, PathBuf};

use grind_tests::build::{Source, compile};
use grind_tests::mem::{Process, processes};
use grind_tests::run::{self, Job};
use grind_tests::{profile, tools};

const SMALL: [&str; 4] = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64", "--LL=16384,4,64"];
const TLBS: [&str; 4] = ["--tlb-sim=yes", "--DTLB=4,2", "--ITLB=2,1", "--STLB=8,2"];

/// Builds a program from its text.
fn written(text: &str, more: &[&str], dir: &Path) -> PathBuf {
    let (source, out) = (dir.join("pages.c"), dir.join("pages"));
    std::fs::write(&source, text).expect("a source");
    let mut words = ["gcc", "-O1", "-g", "-fno-unroll-loops", "-o"].map(str::to_owned).to_vec();
    words.extend([out.display().to_string(), source.display().to_string()]);
    words.extend(more.iter().map(|w| (*w).to_owned()));
    compile(&words, dir);
    out
}

/// What a function of the only profile counts, by event.
fn of_function(
    options: &[&str],
    program: &Path,
    function: &str,
    dir: &Path,
) -> std::collections::BTreeMap<String, u64> {
    let options = options.iter().map(|o| (*o).to_owned());
    let words = [tools::under_test(), &options.collect::<Vec<_>>()].concat();
    let done = Job::new([program.display().to_string()], dir).profiled(&words);
    assert!(done.outcome.status.success(), "{}", done.log);
    // Checks that rows add up to the summary, too.
    profile::Profile::parse(&done.raw[0].1).unwrap_or_else(|e| panic!("{e:#}"));
    let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
    let events: Vec<&str> = text.lines().find_map(|l| l.strip_prefix("events: ")).expect("events").split(' ').collect();
    let mut sums = vec![0; events.len()];
    let mut ours = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            ours = name == function;
        } else if ours && line.starts_with(|c: char| c.is_ascii_digit()) {
            let counts = line.split(' ').skip(1).map(|n| n.parse::<u64>().expect("a number"));
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    }
    events.into_iter().map(str::to_owned).zip(sums).collect()
}

/// Pages gone through again and again: either all stay, or none does. The stack is not used meanwhile.
#[test]
fn a_loop_over_pages_misses_all_or_none_of_them() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = written(
        "static volatile char a[96 * 4096] __attribute__((aligned(1 << 19)));\n\
         __attribute__((noinline)) void get(int n) { for (int k = 0; k < 20; k++) for (int p = 0; p < n; p++) a[4096L * p + 64 * (p % 64)]; }\n\
         __attribute__((noinline)) void put(int n) { for (int k = 0; k < 20; k++) for (int p = 0; p < n; p++) a[4096L * p] = 1; }\n\
         __attribute__((noinline)) void two(int n) { for (int k = 0; k < 20; k++) for (int p = 0; p < n; p++) *(volatile int *)&a[4096L * p + 4094] = 1; }\n\
         int main(void) { get(48); put(80); two(15); return 0; }\n",
        &["-static"],
        dir.path(),
    );
    // (The first read, or write, of a function may be of its stack's page, which is one of no other set's rounds.)
    let near = |n: u64, expected: u64, what: &str| assert!((expected..=expected + 3).contains(&n), "{what}: {n}");
    let base = ["--cache-sim=yes", "--tlb-sim=yes"];
    for (second, stays) in [("--STLB=128,8", true), ("--STLB=64,4", false)] {
        let with =
            |function| of_function(&[&base[..], &["--DTLB=64,4", second]].concat(), &program, function, dir.path());
        // 3 pages in each of 16 sets.
        near(with("get")["DT1mr"], 48, "get");
        near(with("get")["DT2mr"], 48, "get");
        // 5 pages in each of 16 sets, of which three are there: 20 rounds of which nothing else stays.
        let put = with("put");
        near(put["DT1mw"], 20 * 80 - 48, "put");
        near(put["DT2mw"], if stays { 80 - 48 } else { 20 * 80 - 48 }, "put");
        assert_eq!((put["IT1mr"].min(1), put["IT2mr"].min(1)), (put["IT1mr"], put["IT2mr"]));
        // 16 pages, by accesses that lie in two each, at first at the end of what is there: the last ones are.
        near(with("two")["DT1mw"], 15, "two");
    }
    // All in one set.
    let with = |shape| of_function(&[&base[..], &[shape]].concat(), &program, "get", dir.path());
    near(with("--DTLB=50,50")["DT1mr"], 48, "fully associative");
    near(with("--DTLB=47,47")["DT1mr"], 20 * 48, "fully associative");
    assert!(!with("--DTLB=47,47").contains_key("DT2mr"), "there is no second level");
}

#[test]
fn tlbs_change_no_other_count() {
    for name in ["matrix", "sort", "chase", "straddles", "rep", "masked", "gather", "fxsave", "rmw", "stack"] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = Source::open("cache", name).build(dir.path(), true).display().to_string();
        let with = |options: &[&str]| processes(&[&SMALL[..], options].concat(), &[&program], dir.path());
        let plain = with(&["--branch-sim=yes", "--L2=4096,4,64,plru"]);
        let tlbs = with(&[&TLBS[..], &["--branch-sim=yes", "--L2=4096,4,64,plru"]].concat());
        // What tells every access for another reason finds the same.
        let told = with(&[&TLBS[..], &["--reuse-dist=exact", "--branch-sim=yes", "--L2=4096,4,64,plru"]].concat());
        assert_eq!(tlbs[0].events, told[0].events, "{name}");
        let (new, old): (Vec<_>, Vec<_>) =
            tlbs[0].events.iter().partition(|(event, _)| event.starts_with("DT") || event.starts_with("IT"));
        assert_eq!(old, plain[0].events.iter().collect::<Vec<_>>(), "{name}");
        assert_eq!(new.len(), 6, "{name}: {new:?}");
        let event = |name: &str| tlbs[0].events[name];
        assert!(event("IT1mr") > 0 && event("IT2mr") > 0 && event("DT1mr") + event("DT1mw") > 0, "{name}: {new:?}");
        for [first, second] in [["IT1mr", "IT2mr"], ["DT1mr", "DT2mr"], ["DT1mw", "DT2mw"]] {
            assert!(event(first) >= event(second), "{name}: {new:?}");
        }
        // With misses by data object beside them.
        let objects = with(&[&TLBS[..], &["--objects=yes", "--branch-sim=yes", "--L2=4096,4,64,plru"]].concat());
        assert_eq!(objects[0].events, tlbs[0].events, "{name}");
    }
}

/// Sums of an event over processes.
fn sum(all: &[Process], event: &str) -> u64 {
    all.iter().map(|p| p.events[event]).sum()
}

/// A thread has pages of its own: what another one uses meanwhile takes none away. A process that is created goes on with its creator's.
#[test]
fn threads_have_their_own() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    // Each thread has 48 pages that it goes through 200 times, in 64 entries of one set.
    let text = "#include <pthread.h>\n\
        static volatile char a[4][48 * 4096] __attribute__((aligned(4096)));\n\
        static void *walk(void *of) { volatile char *b = of; for (int k = 0; k < 200; k++) for (int p = 0; p < 48; p++) b[4096L * p]; return 0; }\n\
        int main(void) { pthread_t t[4]; for (int n = 0; n < 4; n++) pthread_create(&t[n], 0, walk, (void *)a[n]);\n\
        for (int n = 0; n < 4; n++) pthread_join(t[n], 0); return 0; }\n";
    let program = written(text, &["-pthread", "-static"], dir.path());
    let options = ["--cache-sim=yes", "--tlb-sim=yes", "--DTLB=64,64"];
    let walk = of_function(&options, &program, "walk", dir.path());
    assert!((4 * 48..4 * 48 + 20).contains(&walk["DT1mr"]), "{walk:?}");

    let forked = Source::open("programs", "c_fork_caches").build(dir.path(), true).display().to_string();
    let follow = ["--trace-children=yes", "--cache-sim=yes", "--tlb-sim=yes", "--DTLB=4,2", "--STLB=64,4"];
    let (a, b) = (processes(&follow, &[&forked], dir.path()), processes(&follow, &[&forked], dir.path()));
    assert!(a.len() > 1);
    for event in ["DT1mr", "DT1mw", "IT1mr", "DT2mr"] {
        assert_eq!(sum(&a, event), sum(&b, event), "{event}");
        assert!(sum(&a, event) > 0, "{event}");
    }
}

/// Records of pages, and of who brings lines in, fill the trace buffer again and again, in the middle of each kind; nothing of the
/// program's changes by it, above all not the registers that it has lent.
#[test]
fn full_buffers_change_nothing() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let text = "#include <stdio.h>\n#include \"cachegrind.h\"\n\
        static volatile unsigned char a[64 << 20];\n\
        __attribute__((noinline)) unsigned long walk(unsigned long n) {\n\
        register unsigned long r8 asm(\"r8\") = 8, r9 asm(\"r9\") = 9, r10 asm(\"r10\") = 10, r11 asm(\"r11\") = 11; unsigned long sum = 0;\n\
        for (unsigned long k = 0; k < n; k++) { asm volatile(\"\" : \"+r\"(r8), \"+r\"(r9), \"+r\"(r10), \"+r\"(r11));\n\
        sum += a[k * 4099 * 64 % sizeof a] + (r8 != 8) + (r9 != 9) + (r10 != 10) + (r11 != 11);\n\
        if (k * 2654435761UL >> 20 & 1) asm volatile(\"nop\"); } return sum; }\n\
        int main(int c, char **v) { if (c > 1) CG_PUSH_CONTEXT(9); printf(\"%lu\\n\", walk(400000)); return 0; }\n";
    let program = written(text, &[&include, "-static"], dir.path());
    let walk = of_function(&["--cache-sim=yes", "--tlb-sim=yes"], &program, "walk", dir.path());
    // Each is of another page than the last 64.
    assert_eq!(walk["DT1mr"].abs_diff(400_000).min(2), walk["DT1mr"].abs_diff(400_000), "{walk:?}");
    // (Mispredictions have records of one word, so that in the end each kind of record is the one that finds the buffer full.)
    let job = |more: &[&str]| {
        Job::new(
            [&[program.display().to_string()][..], &more.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()].concat(),
            dir.path(),
        )
    };
    for (options, more) in [(&["--tlb-sim=yes"][..], &[][..]), (&["--tlb-sim=yes"], &["x"]), (&[], &["x"])] {
        let options = [&["--cache-sim=yes", "--branch-sim=yes"], options]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let done = job(more).profiled(&[tools::under_test(), &options].concat());
        assert!(done.outcome.status.success(), "{options:?}: {}", done.log);
        assert_eq!(String::from_utf8_lossy(&done.outcome.stdout), "0\n", "{options:?}");
    }
}

#[test]
fn shapes_need_tlbs_and_tlbs_need_caches() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (options, why) in [
        (&["--tlb-sim=yes"][..], "--tlb-sim is of simulated caches: add --cache-sim=yes"),
        (&["--cache-sim=yes", "--STLB=8,2"], "--STLB is of simulated TLBs: add --tlb-sim=yes"),
        (&["--cache-sim=yes", "--tlb-sim=yes", "--DTLB=96,4"], "power of two of sets"),
        (&["--tool=callgrind", "--tlb-sim=yes"], "It is an option of cachegrind"),
    ] {
        let words: Vec<String> =
            tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
        let words = [words, vec!["true".to_owned()]].concat();
        let output = run::command(&words, dir.path()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{options:?}: {said}");
    }
}

#[test]
fn readers_show_the_events_and_the_log_says_them() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = Source::open("cache", "matrix").build(dir.path(), true).display().to_string();
    let options: Vec<String> = [&SMALL[..], &TLBS[..]].concat().into_iter().map(str::to_owned).collect();
    let done = Job::new([program], dir.path()).profiled(&[tools::under_test(), &options].concat());
    let path = dir.path().join("saved");
    std::fs::write(&path, &done.raw[0].1).expect("a file");
    let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
    for line in [
        "DTLB:             4 pages of 4096 B, 2-way associative",
        "STLB:             8 pages of 4096 B, 2-way associative",
    ] {
        assert!(text.contains(&format!("desc: {line}\n")), "{text}");
    }
    let summary: Vec<u64> = text
        .lines()
        .find_map(|l| l.strip_prefix("summary: "))
        .expect("one")
        .split(' ')
        .map(|n| n.parse().expect("a number"))
        .collect();
    let commas = |n: u64| cg_format::show::commas(i128::from(n));
    for (line, n) in [
        ("T1i misses:", summary[11]),
        ("T1d misses:", summary[9] + summary[10]),
        ("T2d misses:", summary[12] + summary[13]),
    ] {
        let found = done.log.lines().find_map(|l| l.split_once(line)).unwrap_or_else(|| panic!("{line} {}", done.log));
        assert_eq!(found.1.split_whitespace().next(), Some(&*commas(n)), "{line}");
    }
    let built = tools::build(&["cg-annotate", "cg-diff", "cg-merge"]).expect("built");
    let saved = path.display().to_string();
    for words in [&["cg_annotate", &saved][..], &["cg_diff", &saved, &saved], &["cg_merge", &saved, &saved]] {
        let words: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(n, w)| if n == 0 { built.join(w).display().to_string() } else { (*w).to_owned() })
            .collect();
        let output = run::command(&words, dir.path()).output().expect("it runs");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && shown.contains("DT1mr") && shown.contains("IT2mr"), "{words:?}: {shown}");
    }
}
