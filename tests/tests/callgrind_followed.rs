//! Calls that emitted code follows by itself, beside calls that are told one by one: the same program, the same profile. (How
//! that compares with Valgrind's is for `callgrind_oracle`, which runs the first way.)

use std::collections::BTreeMap;
use std::path::Path;

use grind_tests::calls::parse;
use grind_tests::compare::assert_none;
use grind_tests::run::{Job, Profiled};
use grind_tests::{build, laws, tools};

/// Runs it under callgrind; the profiles' names and positions are written out.
fn plain(job: &Job<'_>, options: &[&str]) -> Profiled {
    let plain = ["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"];
    let words = plain.iter().chain(options).map(|&word| word.to_owned());
    let done = job.profiled(&tools::under_test().iter().cloned().chain(words).collect::<Vec<_>>());
    done.raw.iter().for_each(|(pid, profile)| laws::check(profile, pid));
    done
}

/// The program that a source of these tests makes with these options.
fn built(source: &str, options: &[&str], dir: &Path) -> String {
    let program = dir.join("program").display().to_string();
    let source = tools::fixtures("calls").join(source).display().to_string();
    let words = ["gcc", "-O1", "-g"].iter().chain(options).map(|&word| word.to_owned());
    build::compile(&words.chain(["-o".into(), program.clone(), source]).collect::<Vec<_>>(), dir);
    program
}

/// Runs it both ways. Profiles of the same number of processes, one by one.
fn both(name: &str, program: &[&str], options: &[&str], dir: &Path) {
    both_but_for(name, program, options, dir, &[]);
}

/// The same, of threads whose order is up to chance: but for these events.
fn both_but_for(name: &str, program: &[&str], options: &[&str], dir: &Path, but: &[&str]) {
    let job = Job::new(program.iter().map(|w| (*w).to_owned()), dir);
    let run = |way: &str| plain(&job, &[&[way], options].concat());
    let (told, followed) = (run("--tell-calls=yes"), run("--tell-calls=no"));
    assert_eq!(told.outcome, followed.outcome, "{name}\n{}", followed.log);
    assert_eq!(told.raw.len(), followed.raw.len(), "{name}\n{}", followed.log);
    for ((_, told), (_, followed)) in told.raw.iter().zip(&followed.raw) {
        let (told, followed) = (parse(told), parse(followed));
        assert!(told.summary[0] > 1000 && told.counts.len() > 20, "{name}: an empty profile");
        let differences = told.differences(&followed, |key| !but.iter().any(|event| key.ends_with(event)));
        assert_none(&format!("{name} {options:?}"), &differences);
        if but.is_empty() {
            assert_eq!(told.summary, followed.summary, "{name} {options:?}");
        }
    }
}

/// Ways in which functions are told apart, with which calls are followed.
const OPTIONS: [&[&str]; 9] = [
    &[],
    &["--separate-recs=3"],
    &["--separate-recs=1", "--separate-recs4=deep"],
    &["--skip-plt=no"],
    &["--skip-direct-rec=yes", "--separate-recs=3", "--collect-bus=yes"],
    &["--skip-direct-rec=yes", "--toggle-collect=even", "--collect-jumps=yes"],
    &["--fn-skip=through_table", "--fn-skip=even", "--fn-skip=leave"],
    &["--separate-callers=2", "--told-first=0"],
    &["--separate-callers=all", "--separate-recs=3"],
];

#[test]
fn all_that_calls_can_be() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = dir.path().join("followed");
    let source = tools::fixtures("calls").join("followed.c");
    let words = ["gcc", "-O1", "-g", "-pthread", "-fno-optimize-sibling-calls", "-Wall", "-o"];
    let words = words.map(str::to_owned).into_iter();
    build::compile(
        &words.chain([program.display().to_string(), source.display().to_string(), "-ldl".into()]).collect::<Vec<_>>(),
        dir.path(),
    );
    let program = program.display().to_string();
    for options in OPTIONS {
        both("followed.c", &[&program], options, dir.path());
    }
    for beside in ["--beside=always", "--beside=never"] {
        both("followed.c", &[&program], &[beside], dir.path());
    }
    // Who is first in the last level is up to chance.
    let chance = [" ILmr", " DLmr", " DLmw"];
    for options in SIMULATED {
        both_but_for("followed.c", &[&program], options, dir.path(), &chance);
    }
    for beside in ["--beside=always", "--beside=never"] {
        let options = [&[beside], SIMULATED[2]].concat();
        both_but_for("followed.c", &[&program], &options, dir.path(), &chance);
    }
}

/// What is simulated, with small caches, so that much is missed; and with other ways of telling functions apart.
const SIMULATED: [&[&str]; 5] = [
    &["--cache-sim=yes", "--collect-bus=yes"],
    &["--branch-sim=yes", "--collect-bus=yes", "--skip-direct-rec=yes"],
    &["--I1=1024,2,32", "--D1=512,2,32", "--LL=4096,2,64", "--branch-sim=yes"],
    &["--D1=1024,1,64", "--separate-recs=1", "--separate-recs4=deep", "--fn-skip=through_table", "--fn-skip=even"],
    &["--cache-sim=yes", "--skip-plt=no", "--simulate-hwpref=yes"],
];

/// Everything is thrown away again and again.
#[test]
fn translations_that_are_thrown_away() {
    if !tools::have(&["perl"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let script = "my %h; for my $i (1..4000) { $h{$i % 97} .= sprintf('%d %s', $i, reverse $i); } \
        my @s = sort { $a cmp $b } map { s/1/x/gr } values %h; print length(join ',', @s), \"\\n\"; \
        print join(' ', map { lc } grep { /9/ } split / /, 'A9 B C9 D ' x 50), \"\\n\";";
    let perl = ["env", "PERL_HASH_SEED=0", "perl", "-e", script];
    both("perl", &perl, &["--code-limit=4"], dir.path());
    for beside in ["--beside=always", "--beside=never"] {
        both("perl", &perl, &["--code-limit=4", "--D1=1024,2,32", "--branch-sim=yes", beside], dir.path());
    }
}

#[test]
fn interpreters() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| tools::fixtures("dynamic").join(name).display().to_string();
    if tools::have(&["python3"]) {
        let python = ["env", "PYTHONHASHSEED=0", "python3", "-S", &at("script.py")];
        both("python3", &python, &[], dir.path());
        both("python3", &python, &["--cache-sim=yes", "--branch-sim=yes"], dir.path());
    }
    if tools::have(&["sqlite3"]) {
        let sqlite = ["sqlite3", ":memory:", &format!(".read {}", at("script.sql"))];
        both("sqlite3", &sqlite, &[], dir.path());
        both("sqlite3", &sqlite, &["--cache-sim=yes"], dir.path());
        both("sqlite3", &sqlite, &["--I1=2048,2,64", "--D1=1024,2,32", "--branch-sim=yes"], dir.path());
    }
}

const REMAPPED: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
extern char __executable_start[];
#define PAGE __attribute__((noinline, noclone, aligned(4096)))
PAGE long first(long n) { return 3 * n + 1; }
PAGE long second(long n) { long s = 0; while (n-- > 0) s += n ^ s; return s; }
#define SITE(name) __attribute__((noinline, noclone)) long name(long (*f)(long), long n) { return f(n) + 1; }
SITE(one) SITE(two) SITE(three) SITE(four)
int main(void)
{
    void *at = (void *)0x10000000;
    int fd = open("/proc/self/exe", O_RDONLY);
    long (*const functions[])(long) = { first, second };
    long sum = 0;
    for (int i = 0; i < 9; i++) {
        long from = (char *)functions[i % 2] - __executable_start;
        if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, from) != at) return 1;
        long (*f)(long) = (long (*)(long))at;
        if (i < 2) sum += one(f, i) + two(f, i);
        else if (i < 5) sum += three(f, i) + one(f, i);
        else sum += four(f, i) + two(f, i) + three(f, i);
        if (i % 3 == 0 && munmap(at, 4096)) return 2;
    }
    return sum == 0;
}
"#;

/// Code belongs to what lay there when it was executed, and what a call of some address has come to says nothing once other
/// code is there.
#[test]
fn addresses_where_one_function_comes_after_another() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (dir.path().join("remapped.c"), dir.path().join("remapped"));
    std::fs::write(&source, REMAPPED).expect("a source file");
    let words = ["gcc", "-O1", "-g", "-fcf-protection=none", "-o"].map(str::to_owned).into_iter();
    build::compile(&words.chain([&program, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let program = program.display().to_string();
    for options in [&["--beside=always"][..], &["--beside=never"], &["--tell-calls=yes"], &["--cache-sim=yes"]] {
        let done = plain(&Job::new([program.clone()], dir.path()), options);
        assert_eq!(done.outcome.status.code(), Some(0), "{}", done.log);
        let told = parse(&done.raw[0].1).counts;
        let sum = |of: &dyn Fn(&str) -> bool| -> u64 { told.iter().filter(|(k, _)| of(k)).map(|(_, n)| n).sum() };
        for (site, callee, calls) in
            [("one", "first", 3), ("one", "second", 2), ("four", "first", 2), ("four", "second", 2)]
        {
            let of = |k: &str| k.contains(&format!(" {site} ")) && k.contains(&format!("-> {callee}: calls"));
            assert_eq!(sum(&of), calls, "{options:?}: calls of {callee} by {site}: {told:?}");
        }
        // Two instructions in each of 12 calls; of the other one, ten and more in each of ten.
        let own = |name: &str| {
            sum(&|k: &str| {
                k.contains(&format!(" {name} ")) && !k.contains("->") && k.ends_with(|c: char| c.is_ascii_digit())
            })
        };
        assert_eq!(own("first"), 2 * 12, "{options:?}: {told:?}");
        assert!(own("second") > 10 * 10, "{options:?}: {told:?}");
    }
    for beside in ["--beside=always", "--beside=never"] {
        both("remapped", &[&program], &[beside], dir.path());
    }
}

#[test]
fn calls_that_are_told_at_first_count_the_same() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built("contexts_for_a_while.c", &["-fno-optimize-sibling-calls"], dir.path());
    for options in [
        &["--separate-callers=3"][..],
        &["--separate-callers=2", "--cache-sim=yes", "--branch-sim=yes"],
        &["--separate-callers=1", "--separate-recs=3", "--collect-jumps=yes", "--cache-sim=yes"],
        &["--fn-group1=once", "--fn-group1=twice", "--branch-sim=yes"],
    ] {
        // The first time that somebody looks, calls have been told for longer than this.
        both("told at first", &[&program], &[options, &["--told-first=1"]].concat(), dir.path());
    }
}

const FORK: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static int ends[2], never[2];
static volatile long sink;
__attribute__((noinline, noclone)) long heavy(long n) { long s = 0; while (n--) s += sink + n; return s; }
static void *worker(void *unused)
{
    for (int i = 0; i < 50; i++) sink = heavy(1000);
    if (write(ends[1], "x", 1) != 1) return unused;
    char c;
    return read(never[0], &c, 1) == 1 ? unused : (void *)&sink;
}
int main(void)
{
    pthread_t t;
    char c;
    if (pipe(ends) || pipe(never) || pthread_create(&t, NULL, worker, NULL) || read(ends[0], &c, 1) != 1) return 1;
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status;
    waitpid(child, &status, 0);
    return status;
}
"#;

/// As where instructions are counted: a child has all that was executed before it came to be.
#[test]
fn a_child_has_what_other_threads_have_executed() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (dir.path().join("fork.c"), dir.path().join("fork"));
    std::fs::write(&source, FORK).expect("a source file");
    let words = ["gcc", "-O1", "-g", "-pthread", "-o"].map(str::to_owned).into_iter();
    build::compile(&words.chain([&program, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let job = Job::new([program.display().to_string()], dir.path());
    let done = plain(&job, &[]);
    assert_eq!((done.outcome.status.code(), done.raw.len()), (Some(0), 2), "{}", done.log);
    let heavy = |bytes: &[u8]| -> u64 {
        let told = parse(bytes);
        told.counts.iter().filter(|(k, _)| k.contains(" heavy ") && !k.contains("->")).map(|(_, n)| n).sum()
    };
    let costs: Vec<u64> = done.raw.iter().map(|(_, bytes)| heavy(bytes)).collect();
    assert!(costs[0] > 50_000 && costs[0] == costs[1], "{costs:?}");
}

/// A handler whose end is interrupted by another one, just before the call that restores what it interrupted, ends once.
#[test]
fn handlers_end_once_whatever_interrupts_their_ends() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (tools::fixtures("calls").join("interrupted_ends.c"), dir.path().join("ends"));
    let words = ["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-o"].map(str::to_owned).into_iter();
    build::compile(&words.chain([&program, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let job = Job::new([program.display().to_string()], dir.path());
    for way in ["--tell-calls=no", "--tell-calls=yes"] {
        let done = plain(&job, &[way]);
        assert_eq!((done.outcome.status.code(), &*done.outcome.stdout), (Some(0), &b"1\n"[..]), "{}", done.log);
        let told = parse(&done.raw[0].1);
        let calls = |callee: &str| -> u64 {
            let end = format!("-> {callee}: calls");
            told.counts.iter().filter(|(k, _)| k.ends_with(&end)).map(|(_, n)| n).sum()
        };
        // What is behind a handler that has ended too early begins anew, as if `main` were called.
        assert_eq!(["outer", "inner", "leaf", "main"].map(calls), [2000, 2000, 2000, 1], "{way}");
    }
}

/// A job for a program that signals interrupt.
fn interrupted<'a>(source: &str, dir: &'a Path) -> Job<'a> {
    Job::new([built(source, &[], dir)], dir)
}

/// What has been counted of a block that a signal leaves in the middle is taken back, wherever the count is at that moment.
#[test]
fn signals_in_blocks_change_no_counts() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let job = interrupted("interrupted_calls.c", dir.path());
    // Where they come is up to chance.
    for way in ["--tell-calls=no", "--tell-calls=yes", "--tell-calls=no", "--tell-calls=no"] {
        let done = plain(&job, &[way]);
        assert_eq!((done.outcome.status.code(), &*done.outcome.stdout), (Some(0), &b"1\n"[..]), "{}", done.log);
        let told = parse(&done.raw[0].1);
        let of =
            |what: &dyn Fn(&str) -> bool| -> u64 { told.counts.iter().filter(|(k, _)| what(k)).map(|(_, n)| n).sum() };
        let own = of(&|k| k.contains(" counted ") && !k.contains("->"));
        assert_eq!((own, of(&|k| k.ends_with("-> counted: cost"))), (1_600_003, 1_600_003), "{way}");
    }
}

/// The same with reads, writes and branches, which have totals of their own.
#[test]
fn signals_in_blocks_change_no_other_events() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let job = interrupted("interrupted_blocks.c", dir.path());
    for way in ["--tell-calls=no", "--tell-calls=yes", "--tell-calls=no"] {
        for (simulated, events) in [(&[][..], 1), (&["--branch-sim=yes"], 2), (&["--cache-sim=yes"], 3)] {
            let done = plain(&job, &[&[way], simulated].concat());
            assert_eq!((done.outcome.status.code(), &*done.outcome.stdout), (Some(0), &b"0 1\n"[..]), "{}", done.log);
            let told = parse(&done.raw[0].1);
            // By event: own costs, and those of the call.
            let of = |function: &str| {
                let (own, called) = (format!(" {function} "), format!("-> {function}: cost"));
                let mut sums = BTreeMap::<String, u64>::new();
                for (key, n) in &told.counts {
                    let (what, event) = match key.split_once(": cost") {
                        Some((_, event)) if key.contains(&called) => ("called", event),
                        None if key.contains(&own) => ("own", key.rsplit(' ').next().unwrap_or_default()),
                        _ => continue,
                    };
                    let event = if event.trim().parse::<u64>().is_ok() { "" } else { event.trim() };
                    *sums.entry(format!("{what} {event}")).or_default() += n;
                }
                // What the handler evicts is missed again, and what it learns is forgotten; only the callers' lines differ.
                sums.retain(|key, _| [" ", " Dr", " Dw", " Bc"].iter().any(|event| key.ends_with(event)));
                sums
            };
            let (expected, found) = (of("undisturbed"), of("disturbed"));
            assert_eq!(expected.len(), 2 * events, "{way} {simulated:?}: {expected:?}");
            assert_eq!(expected, found, "{way} {simulated:?}");
        }
    }
}

/// Jumps of every kind: those that emitted code counts are those that are told one by one, whatever else is asked for.
#[test]
fn jumps_are_those_that_are_told_one_by_one() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built("jumps.c", &["-fno-optimize-sibling-calls"], dir.path());
    let others: [&[&str]; 8] = [
        &[],
        &["--dump-instr=yes"],
        &["--dump-instr=yes", "--beside=never", "--skip-plt=no"],
        &["--fn-skip=by_table", "--fn-skip=cut", "--separate-recs=2"],
        &["--toggle-collect=halves", "--toggle-collect=leaf", "--toggle-collect=cut"],
        &["--pop-on-jump=cut", "--pop-on-jump=last"],
        &["--dump-instr=yes", "--code-limit=4", "--hot-after=1"],
        &["--dump-instr=yes", "--branch-sim=yes", "--D1=512,2,32"],
    ];
    for other in others {
        both("jumps.c", &[&program], &[&["--collect-jumps=yes"], other].concat(), dir.path());
    }
    let done = plain(&Job::new([program], dir.path()), &["--collect-jumps=yes", "--dump-instr=yes"]);
    let counts = parse(&done.raw[0].1).counts;
    let kinds = |function: &str| counts.keys().filter(|k| k.contains(function) && k.contains(" jumps ")).count();
    let found = [" by_table ", " to_next ", " by_rcx ", " halves ", " middle "].map(kinds);
    assert!(found.iter().all(|n| *n >= 3), "{found:?}: {counts:#?}");
}

/// Jumps that have been made when a signal comes count, those that have not do not, though a block is left in the middle.
#[test]
fn signals_in_blocks_change_no_jumps() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let job = interrupted("interrupted_blocks.c", dir.path());
    for way in ["--tell-calls=no", "--tell-calls=yes", "--tell-calls=no"] {
        let done = plain(&job, &[way, "--collect-jumps=yes", "--dump-instr=yes"]);
        assert_eq!((done.outcome.status.code(), &*done.outcome.stdout), (Some(0), &b"0 1\n"[..]), "{}", done.log);
        let told = parse(&done.raw[0].1);
        let of = |function: &str| {
            let own = format!(" {function} ");
            let jumps = told.counts.keys().filter(|key| key.contains(&own));
            let jumps = jumps.filter_map(|key| Some(key.split_once(" jumps ")?.1.split_once(' ')?.0.to_owned()));
            let mut jumps: Vec<String> = jumps.collect();
            jumps.sort();
            jumps
        };
        let (expected, found) = (of("undisturbed"), of("disturbed"));
        assert!(expected.len() > 8, "{way}: {:#?}", told.counts);
        assert_eq!(expected, found, "{way}");
    }
}

/// What functions ask for when they are entered or left: the same parts, in the same order, whoever follows calls.
#[test]
fn parts_that_functions_ask_for_are_those_of_told_calls() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built("hooks.c", &["-pthread", "-foptimize-sibling-calls"], dir.path());
    let job = Job::new([program.clone()], dir.path());
    let hooks: [&[&str]; 8] = [
        &["--dump-before=hook_*"],
        &["--dump-after=hook_*"],
        &["--zero-before=hook_*"],
        &["--dump-before=hook_leaf", "--dump-after=hook_calls", "--zero-before=hook_leaves"],
        &["--dump-before=hook_*", "--dump-after=hook_*", "--collect-jumps=yes", "--dump-instr=yes"],
        &["--dump-after=hook_*", "--separate-recs=2", "--fn-skip=around", "--beside=always"],
        &["--dump-before=*handler", "--dump-after=hook_*", "--toggle-collect=around", "--toggle-collect=jumps"],
        &["--dump-before=hook_*", "--zero-before=hook_again", "--D1=512,2,32", "--branch-sim=yes"],
    ];
    for hooks in hooks {
        let run = |way| plain(&job, &[&[way], hooks].concat());
        let (told, followed) = (run("--tell-calls=yes"), run("--tell-calls=no"));
        assert_eq!(told.outcome, followed.outcome, "{hooks:?}\n{}", followed.log);
        let parts = |done: &Profiled| -> Vec<_> {
            done.raw.iter().map(|(part, _)| part.split('.').nth(1).map(str::to_owned)).collect()
        };
        assert_eq!(parts(&told), parts(&followed), "{hooks:?}\n{}", followed.log);
        let zeros = hooks.iter().all(|hook| hook.starts_with("--zero"));
        assert!(zeros || told.raw.len() > 10, "{hooks:?}: {} parts", told.raw.len());
        for ((part, told), (_, followed)) in told.raw.iter().zip(&followed.raw) {
            let (told, followed) = (parse(told), parse(followed));
            assert_none(&format!("{part} {hooks:?}"), &told.differences(&followed, |_| true));
            assert_eq!(told.summary, followed.summary, "{part} {hooks:?}");
        }
    }
    // With threads, which part has what another one executes is up to chance.
    let zero = "--zero-before=main";
    for hooks in
        [["--dump-before=hook_*", zero], ["--dump-after=hook_*", zero], ["--dump-before=thread", "--branch-sim=yes"]]
    {
        both("hooks.c", &[&program, "thread"], &[&["--combine-dumps=yes"], &hooks[..]].concat(), dir.path());
    }
}

/// A thread waits in the kernel: while so much code is executed that it is thrown away; while instrumentation is switched off and on; and
/// from before that.
const WAITS: &str = r#"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "callgrind.h"
enum { BLOCKS = 250000, EACH = 16 };
static int ends[3][2];
static int take(int which) { char c; return read(ends[which][0], &c, 1) == 1 ? 0 : 1; }
__attribute__((noinline)) static void waits(void) { if (take(0)) _exit(1); }
__attribute__((noinline)) static void leaves(void) { if (take(1)) _exit(2); }
__attribute__((noinline)) static void enters(void) { if (take(2)) _exit(3); }
static void *thread(void *unused) { waits(); leaves(); enters(); return unused; }
static void sleeps(int ms) { struct timespec t = {0, ms * 1000000L}; nanosleep(&t, 0); }
static void lets(int which) { if (write(ends[which][1], "", 1) != 1) _exit(4); sleeps(100); }
int main(void)
{
    pthread_t other;
    if (pipe(ends[0]) || pipe(ends[1]) || pipe(ends[2]) || pthread_create(&other, 0, thread, 0)) return 1;
    sleeps(100);
    unsigned char *code = mmap(0, BLOCKS * EACH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    for (int i = 0; i < BLOCKS; i++) memcpy(code + i * EACH, i + 1 < BLOCKS ? "\xeb\x0e" : "\xc3", 2);
    if (mprotect(code, BLOCKS * EACH, PROT_READ | PROT_EXEC)) return 1;
    ((void (*)(void))code)();
    sleeps(300);
    lets(0);
    CALLGRIND_STOP_INSTRUMENTATION;
    sleeps(100);
    lets(1);
    CALLGRIND_START_INSTRUMENTATION;
    lets(2);
    return pthread_join(other, 0);
}
"#;

#[test]
fn a_system_call_that_is_made_again_counts_once_where_it_began() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (dir.path().join("waits.c"), dir.path().join("waits"));
    std::fs::write(&source, WAITS).expect("a file");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let words = ["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-pthread", &include, "-o"].map(str::to_owned);
    let words = words.into_iter().chain([&program, &source].map(|p| p.display().to_string()));
    build::compile(&words.collect::<Vec<_>>(), dir.path());
    let job = Job::new([program.display().to_string()], dir.path());
    for way in ["--tell-calls=no", "--tell-calls=yes"] {
        let done = plain(&job, &[way, "--code-limit=4", "--collect-systime=msec"]);
        assert_eq!(done.outcome.status.code(), Some(0), "{way}: {}\n{}", done.outcome.show(), done.log);
        let counts = parse(&done.raw[0].1).counts;
        let of = |function: &str, event: &str| {
            let mine = |key: &&String| key.contains(&format!("-> {function}:")) && key.ends_with(event);
            counts.iter().filter(|(key, _)| mine(key)).map(|(_, n)| *n).sum::<u64>()
        };
        let calls = ["waits", "leaves", "enters"].map(|function| of(function, " sysCount"));
        assert_eq!(calls, [1, 1, 0], "{way}: {counts:#?}");
        let waited = of("waits", " sysTime");
        assert!((400..60_000).contains(&waited), "{way}: {waited} ms");
    }
}

/// Children that count, call and return all the time are killed at any moment.
const KILLED: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long kept;
__attribute__((noinline)) static unsigned long leaf(unsigned long n) { return n * 31 + 1; }
__attribute__((noinline)) static unsigned long inner(unsigned long n) { for (int i = 0; i < 3; i++) n = leaf(n) + i; return n; }
__attribute__((noinline)) static void outer(void) { for (;;) kept = inner(kept); }
__attribute__((noinline)) static void loops(void) { for (;;) kept = kept * 31 + 1; }
int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[argc - 1]); i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 4) outer();
            loops();
        }
        struct timespec t = {0, 8000000 + i * 97};
        nanosleep(&t, 0);
        kill(child, SIGKILL);
        int status;
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 1;
    }
    return 0;
}
"#;

#[test]
fn what_is_killed_while_it_counts_has_a_profile_that_keeps_the_laws() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (dir.path().join("killed.c"), dir.path().join("killed"));
    std::fs::write(&source, KILLED).expect("a file");
    let words = ["gcc", "-O1", "-g", "-o"].map(str::to_owned).into_iter();
    build::compile(&words.chain([&program, &source].map(|p| p.display().to_string())).collect::<Vec<_>>(), dir.path());
    let job = Job::new([program.display().to_string(), "60".to_owned()], dir.path());
    for options in [&[][..], &["--cache-sim=yes", "--branch-sim=yes"]] {
        let done = plain(&job, options);
        assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
        assert_eq!(done.raw.len(), 61, "{options:?}");
    }
}

/// Functions of a library are called, and it is asked for that these be skipped, and for descriptions of parts.
const SKIPPED: &str = r#"
#include <stdio.h>
#include "callgrind.h"
unsigned long other(unsigned long n);
unsigned long another(unsigned long n);
static volatile unsigned long kept;
__attribute__((noinline)) static void caller(void) { for (int i = 0; i < 10; i++) kept = other(kept) + another(i); }
int main(int argc, char **argv)
{
    kept = argc;
    caller();
    CALLGRIND_ADD_DESC("first of\ntwo lines");
    if (argc > 2) CALLGRIND_STOP_INSTRUMENTATION;
    if (argc > 1) CALLGRIND_ADD_OBJ_SKIP(argv[1]);
    if (argc > 2) CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS;
    caller();
    CALLGRIND_ADD_DESC("last");
    return 0;
}
"#;
const LIBRARY: &str = r#"
__attribute__((noinline)) static unsigned long inner(unsigned long n) { return n * 31 + 7; }
unsigned long other(unsigned long n) { return inner(n) ^ inner(n + 1); }
unsigned long another(unsigned long n) { return n + other(n); }
"#;

#[test]
fn functions_of_skipped_objects_are_their_callers() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    // The path must be that of the mapping.
    let folder = dir.path().canonicalize().expect("a folder");
    let at = |name: &str| folder.join(name).display().to_string();
    std::fs::write(folder.join("skipped.c"), SKIPPED).expect("a file");
    std::fs::write(folder.join("library.c"), LIBRARY).expect("a file");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let gcc = |words: &[&str]| {
        let common = ["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", "-Wl,-z,now", &include];
        build::compile(&common.iter().chain(words).map(|&w| w.to_owned()).collect::<Vec<_>>(), &folder);
    };
    gcc(&["-shared", "-fPIC", "-o", &at("library.so"), &at("library.c")]);
    gcc(&["-o", &at("skipped"), &at("skipped.c"), &at("library.so")]);
    let run = |words: &[&str], options: &[&str]| {
        let words = [at("skipped")].into_iter().chain(words.iter().map(|&w| w.to_owned()));
        let done = plain(&Job::new(words, &folder), options);
        assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
        let mut parts: Vec<String> =
            done.raw.iter().map(|(_, raw)| String::from_utf8_lossy(raw).into_owned()).collect();
        parts.sort_by_key(|part| part.contains("Program termination"));
        parts
    };
    let shows = |part: &str| ["fn=other", "fn=another", "fn=inner"].map(|function| part.contains(function));
    let library = at("library.so");
    let option = format!("--obj-skip={library}");
    let named = ["--fn-skip=other", "--fn-skip=another", "--fn-skip=inner"];
    let (none, all) = ([false; 3], [true; 3]);
    for way in ["--tell-calls=no", "--tell-calls=yes"] {
        let skipped = run(&[], &[way, &option]);
        assert_eq!(skipped.iter().map(|part| shows(part)).collect::<Vec<_>>(), [none, none], "{way}");
        // The same as by the functions' names.
        let by_name = run(&[], &[&[way], &named[..]].concat());
        for (by_object, by_name) in skipped.iter().zip(&by_name) {
            let (by_object, by_name) = (parse(by_object.as_bytes()), parse(by_name.as_bytes()));
            assert_none(way, &by_name.differences(&by_object, |key| key.contains("caller")));
        }
        let other = run(&[], &[way, "--obj-skip=/nowhere/library.so"]);
        assert_eq!(other.iter().map(|part| shows(part)).collect::<Vec<_>>(), [all, all], "{way}");
        // By a request, from there on; in a window of instrumentation and outside.
        for words in [&[&*library][..], &[&library, "between windows"]] {
            let parts = run(words, &[way]);
            assert_eq!(parts.iter().map(|part| shows(part)).collect::<Vec<_>>(), [all, none], "{way} {words:?}");
            let last = parse(parts[1].as_bytes());
            let expected = parse(skipped[1].as_bytes());
            assert_none(way, &expected.differences(&last, |key| key.contains("caller")));
            let of_ours = |line: &&str| ["desc: first", "desc: last"].iter().any(|start| line.starts_with(start));
            let described: Vec<Vec<&str>> = parts.iter().map(|part| part.lines().filter(of_ours).collect()).collect();
            assert_eq!(described, [["desc: first of two lines"], ["desc: last"]], "{way} {words:?}");
        }
    }
}
