//! Hierarchies, end to end, in both tools: what is asked for is what profile and log say, what is the default changes no byte, sums
//! agree, what cannot be is refused, and the programs that read profiles show the new events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grind_tests::build::{Source, compile};
use grind_tests::run::{self, Job, Profiled};
use grind_tests::{laws, profile, tools};

const SMALL: [&str; 3] = ["--cache-sim=yes", "--I1=1024,2,64", "--D1=1024,2,64"];
const PROGRAMS: [&str; 5] = ["matrix", "sort", "chase", "straddles", "rep"];
const HIERARCHY: [&str; 4] =
    ["--L2=4096,4,64,plru", "--LL=16384,4,64,srrip", "--inclusion=inclusive", "--prefetcher=nextline"];

fn tool(name: &str, options: &[&str]) -> Vec<String> {
    let words =
        [&[format!("--tool={name}")], &options.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>()[..]].concat();
    [tools::under_test(), &words].concat()
}

fn profiled(job: &Job<'_>, name: &str, options: &[&str]) -> Profiled {
    let done = job.profiled(&tool(name, options));
    assert!(done.outcome.status.success(), "{options:?}: {}\n{}", done.outcome.show(), done.log);
    done
}

/// The one profile, without what differs from run to run.
fn text(done: &Profiled) -> String {
    assert_eq!(done.raw.len(), 1, "{}", done.log);
    let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
    text.lines().filter(|line| !line.starts_with("pid:")).map(|line| format!("{line}\n")).collect()
}

/// Sums over a cachegrind profile's rows, or a callgrind profile's totals, by event.
fn sums(done: &Profiled) -> BTreeMap<String, u64> {
    let text = text(done);
    let line = |word: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_else(|| panic!("no {word}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let numbers = if text.contains("\nsummary: ") { line("summary: ") } else { line("totals: ") };
    line("events: ").into_iter().zip(numbers.iter().map(|n| n.parse().expect("a number"))).collect()
}

fn each(mut act: impl FnMut(&str, &Job<'_>)) {
    for name in PROGRAMS {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let program = Source::open("cache", name).build(dir.path(), true);
        act(name, &Job::new([program.display().to_string()], dir.path()));
    }
}

#[test]
fn what_is_the_default_changes_no_byte() {
    each(|name, job| {
        for of in ["cachegrind", "callgrind"] {
            let plain = text(&profiled(job, of, &[&SMALL[..], &["--LL=16384,4,64"]].concat()));
            let said = ["--LL=16384,4,64,lru", "--inclusion=none", "--prefetcher=none"];
            assert_eq!(plain, text(&profiled(job, of, &[&SMALL[..], &said].concat())), "{name} with {of}");
        }
    });
}

#[test]
fn both_tools_count_the_same_and_first_levels_do_not_know() {
    each(|name, job| {
        let all = |of, options: &[&str]| sums(&profiled(job, of, &[&SMALL[..], options].concat()));
        let (plain, cachegrind) = (all("cachegrind", &["--LL=16384,4,64"]), all("cachegrind", &HIERARCHY));
        let done = profiled(job, "callgrind", &[&SMALL[..], &HIERARCHY].concat());
        laws::check(&done.raw[0].1, name);
        let followed = sums(&done);
        // With callers told apart, calls are told and not followed.
        let told = all("callgrind", &[&HIERARCHY[..], &["--separate-callers=1"]].concat());
        assert_eq!(followed, told, "{name}");
        for event in ["Ir", "I1mr", "Dr", "D1mr", "Dw", "D1mw"] {
            assert_eq!(plain[event], cachegrind[event], "{name}: {event}");
        }
        // A modification is a read in one tool, and a write in the other.
        for events in [&["I1mr"][..], &["I2mr"], &["ILmr"], &["D2mr", "D2mw"], &["DLmr", "DLmw"]] {
            let sum = |all: &BTreeMap<String, u64>| events.iter().map(|e| all[*e]).sum::<u64>();
            assert_eq!(sum(&cachegrind), sum(&followed), "{name}: {events:?}");
        }
        for [above, below] in [["I1mr", "I2mr"], ["I2mr", "ILmr"], ["D1mr", "D2mr"], ["D2mr", "DLmr"], ["D2mw", "DLmw"]]
        {
            assert!(cachegrind[above] >= cachegrind[below], "{name}: {above} {below}");
        }
    });
}

/// What I1 and D1 held of that which an inclusive LL gave up, as the profile says it.
fn included(done: &Profiled) -> [u64; 2] {
    let text = text(done);
    let line = text.lines().find_map(|line| line.strip_prefix("desc: Included:")).expect("a line of it");
    let number = |behind: &str| {
        let (_, rest) = line.split_once(behind).expect("its words");
        let digits: String = rest.chars().take_while(|c| *c != ' ').filter(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let [held, left] = [number("held "), number(" of ")];
    let says = if held == 0 { "so all counts are exact" } else { "which kept them: counts are near, not exact" };
    assert!(line.ends_with(says), "{line}");
    assert_eq!(done.log.contains("Included:"), held > 0, "{}", done.log);
    [held, left]
}

/// What emitted caches tell of lines that come and go says the same as a look into first levels that are simulated from every access;
/// with TLBs, too. Nothing that is counted changes by it, and a large LL takes nothing out.
#[test]
fn what_an_inclusive_level_would_take_out_is_counted() {
    let found = std::cell::Cell::new(0);
    each(|name, job| {
        for levels in [&["--LL=4096,4,64"][..], &["--LL=8192,4,128,plru"], &["--L2=2048,4,64", "--LL=4096,4,64"]] {
            let inclusive = [&SMALL[..], levels, &["--inclusion=inclusive"]].concat();
            let done = profiled(job, "cachegrind", &inclusive);
            let [held, left] = included(&done);
            assert!(held <= left, "{name}, {levels:?}");
            found.set(found.get() + held);
            for more in
                [&["--reuse-dist=exact"][..], &["--tlb-sim=yes", "--DTLB=4,2", "--ITLB=2,1"], &["--reuse-dist=bounds"]]
            {
                let other = profiled(job, "cachegrind", &[&inclusive[..], more].concat());
                assert_eq!(included(&other), [held, left], "{name}, {levels:?}, {more:?}");
            }
            if levels.len() == 1 {
                let plain = profiled(job, "cachegrind", &[&SMALL[..], levels, &["--prefetcher=none"]].concat());
                assert_eq!(sums(&plain), sums(&done), "{name}, {levels:?}: I1, D1 and LL are what they were");
            }
        }
        let large =
            profiled(job, "cachegrind", &[&SMALL[..], &["--LL=33554432,16,64", "--inclusion=inclusive"]].concat());
        assert_eq!(included(&large), [0, 0], "{name}");
    });
    assert!(found.get() > 100, "{found:?}");
}

#[test]
fn rows_are_sums_and_the_log_says_them() {
    each(|name, job| {
        let done = profiled(job, "cachegrind", &[&SMALL[..], &HIERARCHY].concat());
        // Checks that rows add up to the summary.
        profile::Profile::parse(&done.raw[0].1).unwrap_or_else(|e| panic!("{name}: {e:#}"));
        let sums = sums(&done);
        let mut desc: Vec<String> =
            text(&done).lines().filter_map(|l| l.strip_prefix("desc: ")).map(str::to_owned).collect();
        assert!(desc.pop().expect("a line").starts_with("Included:         I1 and D1 held "), "{name}: {desc:?}");
        assert_eq!(
            desc,
            [
                "I1 cache:         1024 B, 64 B, 2-way associative",
                "D1 cache:         1024 B, 64 B, 2-way associative",
                "L2 cache:         4096 B, 64 B, 4-way associative, plru",
                "LL cache:         16384 B, 64 B, 4-way associative, srrip",
                "Inclusion:        LL is inclusive of L2, I1 and D1",
                "Prefetcher:       nextline",
            ]
        );
        let commas = |n: u64| cg_format::show::commas(i128::from(n));
        for (line, n) in [
            ("L2i misses:", sums["I2mr"]),
            ("L2d misses:", sums["D2mr"] + sums["D2mw"]),
            ("L2 refs:", sums["I1mr"] + sums["D1mr"] + sums["D1mw"]),
            ("L2 misses:", sums["I2mr"] + sums["D2mr"] + sums["D2mw"]),
            ("LL refs:", sums["I2mr"] + sums["D2mr"] + sums["D2mw"]),
            ("LL misses:", sums["ILmr"] + sums["DLmr"] + sums["DLmw"]),
        ] {
            let found =
                done.log.lines().find_map(|l| l.split_once(line)).unwrap_or_else(|| panic!("{line} {}", done.log));
            assert_eq!(found.1.split_whitespace().next(), Some(&*commas(n)), "{name}: {line}");
        }
    });
}

/// Closed forms: a row of lines that no level but the last can hold, gone through again and again.
#[test]
fn a_policy_decides_what_a_loop_misses() {
    if !tools::have(&["cc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = dir.path().join("loop.c");
    // 72 lines in each of 20 rounds: L2 has 64, and LL 64.
    let code = "static volatile char a[4608] __attribute__((aligned(8192))); volatile char s;\n\
                __attribute__((noinline)) void sweep(void) { for (int n = 0; n < 72; n++) s = a[64 * n]; }\n\
                int main(void) { for (int k = 0; k < 20; k++) sweep(); return 0; }\n";
    std::fs::write(&source, code).expect("a source");
    let program = dir.path().join("loop");
    let words = ["cc", "-O1", "-g", "-fno-unroll-loops", "-static", "-o"].map(str::to_owned);
    compile(&[&words[..], &[program.display().to_string(), source.display().to_string()]].concat(), dir.path());
    let job = Job::new([program.display().to_string()], dir.path());
    // By event: what the function counts.
    let sweep = |options: &[&str]| -> BTreeMap<String, u64> {
        let text = text(&profiled(&job, "cachegrind", options));
        let events: Vec<&str> =
            text.lines().find_map(|l| l.strip_prefix("events: ")).expect("events").split(' ').collect();
        let mut sums = vec![0; events.len()];
        let mut ours = false;
        for line in text.lines() {
            ours = line.strip_prefix("fn=").map_or(ours, |name| name == "sweep");
            if ours && line.starts_with(|c: char| c.is_ascii_digit()) {
                for (sum, n) in sums.iter_mut().zip(line.split_whitespace().skip(1)) {
                    *sum += n.parse::<u64>().expect("a number");
                }
            }
        }
        events.into_iter().map(str::to_owned).zip(sums).collect()
    };
    let with = |second: &str, last: &str, inclusion: &str, prefetcher: &str| {
        let (second, last) = (format!("--L2=4096,64,64,{second}"), format!("--LL={last}"));
        let (inclusion, prefetcher) = (format!("--inclusion={inclusion}"), format!("--prefetcher={prefetcher}"));
        sweep(&["--cache-sim=yes", "--I1=32768,8,64", "--D1=1024,2,64", &second, &last, &inclusion, &prefetcher])
    };
    let around = |found: u64, expected: u64| assert!(found.abs_diff(expected) <= 48, "{found}, about {expected}");
    // LRU never has what comes next, in either level. Beside the row there are a variable and the stack, up to two lines a round.
    let lru = with("lru", "4096,64,64", "none", "none");
    around(lru["D1mr"], 20 * 72);
    around(lru["D2mr"], 20 * 72);
    around(lru["DLmr"], 20 * 72);
    // One that keeps some lines misses only the others (what the program did before has most ways for a while).
    let brrip = with("brrip", "65536,64,64", "none", "none");
    assert!(brrip["D2mr"] < 20 * 72 * 9 / 10, "{brrip:?}");
    around(brrip["DLmr"], 72);
    // Both together have room for all.
    let exclusive = with("lru", "4096,64,64", "exclusive", "none");
    around(exclusive["D2mr"], 20 * 72);
    around(exclusive["DLmr"], 72);
    // What is next is foreseen, but for the first line of each round.
    let nextline = with("lru", "4096,64,64", "none", "nextline");
    around(nextline["D2mr"], 20);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (options, says) in [
        (&["--D1=32768,8,64,plru"][..], "Not supported: plru in a first-level cache"),
        (&["--LL=49152,12,64,plru"], "plru needs a power of two of lines a set, at most 64, and there are 12"),
        (&["--LL=32768,8,64,mru"], "there is no policy 'mru', only lru, plru"),
        (&["--LL=32768,8,64,qlru:H11_M1_R0_U2"], "there are no rules 'H11_M1_R0_U2' of qlru"),
        (&["--L2=32768,8,64,random:x"], "the seed 'x' of random is no number of 32 bits"),
        (&["--inclusion=all"], "should be 'none', 'inclusive' or 'exclusive'"),
        (&["--prefetcher=yes"], "should be 'none', 'nextline', 'stride' or 'stream'"),
        (&["--machine=vax"], "should be help or one of skylake"),
        (&["--L2=32768,8,64"], "--L2 is of simulated caches: add --cache-sim=yes"),
        (&["--machine=zen2"], "--machine is of simulated caches: add --cache-sim=yes"),
        (&["--cache-sim=yes", "--inclusion=exclusive"], "there is no L2 (lines of I1 and D1 are replaced"),
        (
            &["--tool=callgrind", "--cache-sim=yes", "--inclusion=inclusive"],
            "there is no L2 (lines of I1 and D1 are replaced",
        ),
        (
            &["--cache-sim=yes", "--inclusion=exclusive", "--L2=32768,8,128", "--LL=65536,8,64"],
            "needs lines of one size in L2 and LL, and they have 128 and 64 bytes",
        ),
        (&["--tool=callgrind", "--simulate-wb=yes", "--L2=262144,8,64"], "--simulate-wb is a model of I1, D1"),
        (&["--tool=callgrind", "--simulate-hwpref=yes", "--prefetcher=stream"], "--simulate-hwpref is a model of"),
        (&["--tool=callgrind", "--cacheuse=yes", "--LL=1048576,16,64,fifo"], "--cacheuse is a model of I1, D1"),
    ] {
        let words: Vec<String> = options.iter().map(|o| (*o).to_owned()).chain(["/bin/true".to_owned()]).collect();
        let output = run::command(&[tools::under_test(), &words].concat(), dir.path()).output().expect("grind runs");
        let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(1), "{options:?}: {errors}");
        assert!(errors.contains(says), "{options:?}: {errors}");
    }
}

#[test]
fn machines_are_listed_and_simulated() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let listed = run::command(&[tools::under_test(), &["--machine=help".to_owned()]].concat(), dir.path()).output();
    let listed = String::from_utf8(listed.expect("grind runs").stdout).expect("text");
    let program = Source::open("cache", "matrix").build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let mut names = 0;
    for name in listed.lines().filter(|l| !l.starts_with(' ')).map(|l| l.split_once(':').expect("a name").0) {
        let done = profiled(&job, "cachegrind", &["--cache-sim=yes", &format!("--machine={name}"), "--D1=1024,2,64"]);
        let text = text(&done);
        assert!(text.contains("desc: D1 cache:         1024 B") && text.contains("desc: L2 cache: "), "{text}");
        names += 1;
    }
    assert!(names >= 5, "{listed}");
}

#[test]
fn readers_show_the_new_events() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = Source::open("cache", "sort").build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let save = |of: &str, file: &str| -> PathBuf {
        let path = dir.path().join(file);
        let done = profiled(&job, of, &[&SMALL[..], &HIERARCHY].concat());
        std::fs::write(&path, &done.raw[0].1).expect("a file");
        path
    };
    let (cachegrind, callgrind) = (save("cachegrind", "a"), save("callgrind", "b"));
    let built = tools::build(&["cg-annotate", "cg-diff", "cg-merge", "callgrind-annotate"]).expect("built");
    let read = |program: &str, words: &[&Path]| {
        let words = [built.join(program)].into_iter().chain(words.iter().map(|w| w.to_path_buf()));
        let words: Vec<String> = words.map(|w| w.display().to_string()).collect();
        let output = run::command(&words, dir.path()).output().expect("it runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let names = ["I2mr", "D2mr", "D2mw"];
    for (program, words) in [
        ("cg_annotate", vec![&*cachegrind]),
        ("cg_diff", vec![&*cachegrind, &*cachegrind]),
        ("cg_merge", vec![&*cachegrind, &*cachegrind]),
        ("callgrind_annotate", vec![&*callgrind]),
    ] {
        let shown = read(program, &words);
        assert!(names.iter().all(|name| shown.contains(name)), "{program}: {shown}");
    }
}

/// A forked child has what its thread had: nothing depends on which process is looked at first.
#[test]
fn forks_are_reproducible() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = Source::open("programs", "c_fork_caches").build(dir.path(), true);
    let job = Job::new([program.display().to_string()], dir.path());
    let native = job.native();
    let runs = || {
        let done = job.profiled(&tool("cachegrind", &[&SMALL[..], &HIERARCHY].concat()));
        assert_eq!(done.outcome.stdout, native.stdout);
        let mut totals: Vec<String> = done
            .raw
            .iter()
            .map(|(_, bytes)| {
                let text = String::from_utf8_lossy(bytes).into_owned();
                text.lines().find(|l| l.starts_with("summary: ")).expect("a summary").to_owned()
            })
            .collect();
        totals.sort();
        totals
    };
    let first = runs();
    assert!(first.len() >= 2, "it forks");
    assert_eq!(first, runs());
}
