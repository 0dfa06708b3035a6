//! Estimated cycles of whole programs: counts of instructions stay what they are, and what a loop is estimated to cost is what the
//! tables say of its instructions, times its executions.

use std::collections::BTreeMap;
use std::path::Path;

use grind_tests::build::compile;
use grind_tests::run::Job;
use grind_tests::tools;

/// What line `line` of the source costs, by event.
fn costs(program: &Path, options: &[&str], dir: &Path, line: u32) -> Vec<(String, u64)> {
    let way: Vec<String> = tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
    let path = program.display().to_string();
    let done = Job::new([path.as_str()], dir).profiled(&way);
    assert!(done.outcome.status.success(), "{}\n{}", done.outcome.show(), done.log);
    let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
    let events: Vec<&str> = text.lines().find_map(|l| l.strip_prefix("events: ")).expect("events").split(' ').collect();
    let mut sums = vec![0; events.len()];
    let mut here = false;
    for row in text.lines() {
        if let Some(name) = row.strip_prefix("fn=") {
            here = name == "loops";
        } else if let Some(counts) = row.strip_prefix(&format!("{line} ")).filter(|_| here) {
            let counts = counts.split(' ').map(|n| n.parse::<u64>().expect("a count"));
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    }
    events.into_iter().map(str::to_owned).zip(sums).collect()
}

#[test]
fn loops_cost_what_the_tables_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("loops.S");
    // Lines 6 to 8: the loop, a million times. A multiplication, an addition that loads, a fused pair at the end.
    let text = "\t.globl main\n\t.type loops, @function\nloops:\n\tmov $1000000, %ecx\n\tlea 8(%rsp), %rsi\n1:\timul %rdx, %rax\n\
                \tadd (%rsi), %rdi\n\tdec %ecx\n\tjnz 1b\n\txor %eax, %eax\n\tret\n\t.size loops, .-loops\nmain:\n\tcall loops\n\tret\n\
                \t.section .note.GNU-stack,\"\",@progbits\n";
    std::fs::write(&source, text).expect("a source file");
    let program = dir.path().join("loops");
    let words =
        ["gcc".to_owned(), "-g".into(), "-o".into(), program.display().to_string(), source.display().to_string()];
    compile(&words, dir.path());
    let n = 1_000_000;
    let of = |options: &[&str], line| costs(&program, options, dir.path(), line);
    let named = |all: [(&str, u64); 4]| all.map(|(name, count)| (name.to_owned(), count)).to_vec();
    let cycles = ["--cycle-estimation=yes"];
    // Of Skylake: imul 1 on one port, latency 3; add with load 0.5, latency 6; dec 0.25, jnz 0.5. The front end: 5 of 6 operations in a
    // cycle; the bound is a cycle, that of the multiplication's port.
    assert_eq!(of(&cycles, 6), named([("Ir", n), ("Ct", 100 * n), ("Cl", 300 * n), ("Cb", 100 * n)]));
    assert_eq!(of(&cycles, 7), named([("Ir", n), ("Ct", 50 * n), ("Cl", 600 * n), ("Cb", 0)]));
    assert_eq!(of(&cycles, 8), named([("Ir", n), ("Ct", 25 * n), ("Cl", 100 * n), ("Cb", 0)]));
    // The bare counts are the same, and so they are with caches.
    assert_eq!(of(&[], 6), [("Ir".to_owned(), n)]);
    let all = of(
        &["--cycle-estimation=yes", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"],
        7,
    );
    assert_eq!(all.len(), 12);
    assert_eq!((&all[9].0[..], all[9].1, all[10].1), ("Ct", 50 * n, 600 * n));
    // Another processor.
    let zen = of(&["--cycle-estimation=yes", "--cycle-model=zen4"], 7);
    assert_eq!((&zen[2].0[..], zen[2].1 >= 500 * n), ("Cl", true));
}

const CALLING: &str = r#"
#include <signal.h>
#include <string.h>
#include <unistd.h>
static volatile long sink;
static char from[5000], to[5000];
__attribute__((noinline)) static long divide(long n) { return n / (sink | 3) % 7; }
__attribute__((noinline)) static void copy(long n) {
    void *d = to, *s = from;
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}
__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void handler(int s) { sink += divide(s); }
__attribute__((noinline)) static long work(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += divide(i * 3), copy(i & 63);
    return sum + fib(12);
}
int main(void) {
    signal(SIGUSR1, handler);
    sink = work(2000);
    kill(getpid(), SIGUSR1);
    return 0;
}
"#;

const OURS: [&str; 6] = ["divide", "copy", "fib", "handler", "work", "main"];

const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// A profile of that program.
fn profiled(program: &Path, options: &[&str], dir: &Path) -> Vec<u8> {
    let way: Vec<String> = tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
    let done = Job::new([program.display().to_string()], dir).profiled(&way);
    assert!(done.outcome.status.success(), "{}\n{}", done.outcome.show(), done.log);
    if options.contains(&"--tool=callgrind") {
        done.check_calls();
        // Ordinary programs have nothing that the model does not know, and it is said how much that is.
        assert!(done.log.contains("Cycles: estimated by the model of skylake"), "{}", done.log);
    }
    done.raw[0].1.clone()
}

/// Costs of our functions in a profile of lines, by name and event.
fn of_lines(raw: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(raw);
    let events: Vec<&str> = text.lines().find_map(|l| l.strip_prefix("events: ")).expect("events").split(' ').collect();
    let (mut all, mut here) = (BTreeMap::new(), "");
    for row in text.lines() {
        if let Some(name) = row.strip_prefix("fn=") {
            here = name;
        } else if OURS.contains(&here) && row.starts_with(|c: char| c.is_ascii_digit()) {
            for (event, n) in events.iter().zip(row.split(' ').skip(1)) {
                *all.entry(format!("{here} {event}")).or_default() += n.parse::<u64>().expect("a count");
            }
        }
    }
    all
}

/// Costs of our functions, by name and event; with those of what they call, if asked for.
fn by_function(raw: &[u8], inclusive: bool) -> BTreeMap<String, u64> {
    use cg_format::callgrind::{Site, read_profile};
    let profile = read_profile(raw, "calls").expect("a profile of calls");
    let mut all = BTreeMap::new();
    for part in &profile.parts {
        for body in part.bodies() {
            let name = String::from_utf8_lossy(profile.names.function_name(body.function));
            let name = name.split('\'').next().expect("a name").to_owned();
            if !OURS.contains(&&*name) {
                continue;
            }
            for entry in &body.entries {
                let costs = match entry.site {
                    Site::Row { costs } => costs,
                    Site::Call { costs, .. } if inclusive && name == "work" => costs,
                    _ => continue,
                };
                for (event, cost) in part.header.events.iter().zip(body.costs(costs)) {
                    *all.entry(format!("{name} {event}")).or_default() +=
                        u64::try_from(*cost).expect("no negative cost");
                }
            }
        }
    }
    all
}

/// Where calls are told, self costs of functions are those of the cachegrind tool, and a function that is called once costs what it
/// and all below it cost by themselves.
#[test]
fn call_graphs_have_them_with_what_is_called() {
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("calling.c");
    std::fs::write(&source, CALLING).expect("a source file");
    let program = dir.path().join("calling");
    let words = ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-static", "-o"].map(str::to_owned).into_iter();
    compile(
        &words.chain([program.display().to_string(), source.display().to_string()]).collect::<Vec<_>>(),
        dir.path(),
    );
    let cycles = ["--cycle-estimation=yes"];
    let lines = profiled(&program, &[&cycles[..], &CACHES].concat(), dir.path());
    // What blocks are bounded by depends on what is a block, and that on who counts.
    let of_instructions = |key: &String| key.ends_with(" Ct") || key.ends_with(" Cl");
    let mut expected = of_lines(&lines);
    expected.retain(|key, _| of_instructions(key));
    assert_eq!(expected.len(), 12);
    let ways: [&[&str]; 8] = [
        &[],
        &["--collect-systime=nsec"],
        &CACHES,
        &[&CACHES[..], &["--collect-systime=nsec", "--branch-sim=yes"]].concat(),
        &["--branch-sim=yes", "--collect-bus=yes"],
        &["--separate-callers=2", "--collect-jumps=yes"],
        &["--dump-every-bb=500", "--combine-dumps=yes"],
        &[&CACHES[..], &["--cacheuse=yes"]].concat(),
    ];
    for way in ways {
        let raw = profiled(&program, &[&["--tool=callgrind"], &cycles[..], way].concat(), dir.path());
        let own = by_function(&raw, false);
        let found: BTreeMap<String, u64> =
            own.iter().filter(|(key, _)| of_instructions(key)).map(|(key, n)| (key.clone(), *n)).collect();
        assert_eq!(found, expected, "{way:?}");
        if way.iter().any(|option| option.starts_with("--dump-every-bb")) {
            continue;
        }
        // Nobody else calls them but the handler, once.
        let inclusive = by_function(&raw, true);
        for event in ["Ir", "Ct", "Cl", "Cb"] {
            let of = |name: &str| own[&format!("{name} {event}")];
            let below = of("work") + of("divide") + of("copy") + of("fib");
            let (all, of_handler) = (inclusive[&format!("work {event}")], of("divide") / 2000);
            assert!(all <= below && below - all <= 2 * of_handler + 100, "{way:?} {event}: {all} {below}");
            assert!(of("work") > 0 && of("copy") > 0, "{way:?} {event}");
        }
    }
}
