//! Every kind of call, under every option that has to do with calls: the profile that emitted code makes by itself is the one
//! that is made by telling each call, keeps the laws of call graphs, and has nothing in it that is older than what it begins with.
//!
//! A row of the matrix is a set of options with the requests that the program makes (see `matrix/common.h`), a column a
//! program. Nothing here depends on chance: threads run one at a time.

use std::path::{Path, PathBuf};

use grind_tests::build::Source;
use grind_tests::calls::parse;
use grind_tests::run::{Job, Profiled};
use grind_tests::tools;

/// Options, and the program's requests.
type Row = (&'static [&'static str], &'static str);

const SMALL: [&str; 3] = ["--I1=1024,2,32", "--D1=512,2,32", "--LL=4096,2,64"];

/// Cache use wants lines of one size.
const USED: [&str; 3] = ["--I1=1024,2,32", "--D1=512,2,32", "--LL=4096,2,32"];

const ROWS: &[Row] = &[
    (&[], ""),
    (&["--instr-atstart=no"], "s"),
    (&["--instr-atstart=no"], "sS"),
    (&[], "S"),
    (&[], "d"),
    (&[], "z"),
    (&[], "t"),
    (&[], "dztS"),
    (&["--instr-atstart=no"], "sdztS"),
    (&["--collect-atstart=no"], "t"),
    (&["--toggle-collect=leaf"], ""),
    (&["--toggle-collect=leaf", "--instr-atstart=no"], "sS"),
    // In recursion, in handlers, of threads, around jumps out of many frames; within one another.
    (
        &[
            "--toggle-collect=fib",
            "--toggle-collect=down",
            "--toggle-collect=second",
            "--toggle-collect=raises",
            "--toggle-collect=other",
            "--toggle-collect=share",
            "--toggle-collect=jumps",
            "--toggle-collect=nested",
            "--toggle-collect=s*ch?",
        ],
        "t",
    ),
    (&["--toggle-collect=*", "--collect-atstart=yes"], "dzS"),
    (&["--toggle-collect=o*", "--toggle-collect=*longjmp*", "--toggle-collect=raise", "--skip-plt=no"], "dztS"),
    (
        &[
            "--separate-recs=1",
            "--toggle-collect=fib",
            "--toggle-collect=through",
            "--toggle-collect=jumps",
            "--toggle-collect=first",
            "--toggle-collect=other",
            "--fn-skip=leaf",
        ],
        "ztS",
    ),
    (&["--toggle-collect=once", "--toggle-collect=o*", "--toggle-collect=leaf", "--instr-atstart=no"], "sdztS"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--toggle-collect=o*", "--toggle-collect=down"], "dt"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--toggle-collect=*"], "ztS"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--toggle-collect=*"], "ztSp"),
    (&["--toggle-collect=o*", "--separate-threads=yes"], "Sp"),
    (&["--separate-callers=3", "--told-first=0"], "dSp"),
    (&["--collect-jumps=yes", "--collect-systime=nsec", "--instr-atstart=no"], "stSp"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--collect-atstart=no"], "t"),
    (&["--dump-before=before", "--dump-after=uncollected", "--zero-before=uninstrumented"], "d"),
    (&["--dump-before=leaf", "--combine-dumps=yes"], "sS"),
    (&["--separate-threads=yes"], "dt"),
    (&["--separate-threads=yes", "--instr-atstart=no", "--dump-before=uncollected"], "sS"),
    (&["--separate-recs=4", "--instr-atstart=no"], "sd"),
    (&["--separate-recs=1", "--skip-direct-rec=yes"], "S"),
    (&["--separate-callers=2", "--instr-atstart=no"], "sdS"),
    (&["--separate-callers=2", "--instr-atstart=no", "--told-first=0"], "sdztS"),
    (&["--separate-callers=3", "--separate-recs=3", "--told-first=0"], "dz"),
    (&["--separate-callers=9", "--separate-threads=yes", "--told-first=0", SMALL[0], SMALL[1], SMALL[2]], "dtS"),
    (&["--separate-callers2=leaf", "--toggle-collect=o*", "--collect-jumps=yes", "--told-first=0"], "dzt"),
    (&["--fn-group1=leaf", "--fn-group1=o*", "--fn-group2=fib", "--told-first=0"], "sdS"),
    (&["--separate-callers=all", "--instr-atstart=no"], "sdztS"),
    (&["--separate-callers=all", "--separate-recs=3", "--skip-plt=no", "--fn-skip=second"], "dz"),
    (&["--separate-callers=all", "--toggle-collect=o*", "--toggle-collect=leaf", "--collect-bus=yes"], "dzt"),
    (
        &[
            "--separate-callers=all",
            "--separate-threads=yes",
            "--dump-before=leaf",
            "--fn-group1=leaf",
            "--fn-group1=o*",
        ],
        "sS",
    ),
    (&["--separate-callers=all", SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--collect-systime=usec"], "dztS"),
    (&["--separate-callers=all", "--context-limit=7", "--skip-direct-rec=yes"], "dz"),
    (&["--separate-callers=2"], "dzt"),
    (&["--separate-callers=all", "--separate-callers2=leaf", "--cache-sim=yes"], "dztS"),
    (&["--separate-callers=2", "--told-first=1", "--skip-plt=no", "--dump-before=leaf"], "dzt"),
    (&["--collect-jumps=yes", "--instr-atstart=no"], "sdztS"),
    (&["--collect-jumps=yes", "--dump-instr=yes", "--toggle-collect=o*", "--toggle-collect=leaf"], "dzt"),
    (&["--collect-jumps=yes", "--skip-plt=no", "--fn-skip=fib", "--separate-threads=yes"], "zt"),
    (&["--collect-jumps=yes", SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes"], "dS"),
    (&["--skip-plt=no", "--fn-skip=fib", "--fn-skip=second", "--fn-skip=goes_on"], "dztS"),
    (&["--collect-systime=nsec", "--instr-atstart=no"], "sdS"),
    (&["--collect-systime=nsec", "--toggle-collect=o*", "--toggle-collect=leaf", "--skip-plt=no"], "dzt"),
    (&["--collect-systime=nsec", "--collect-atstart=no", "--separate-recs=3", "--fn-skip=fib"], "zt"),
    (&["--collect-systime=usec", SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--instr-atstart=no"], "sdztS"),
    (&["--collect-bus=yes", "--dump-instr=yes"], "zS"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes"], "dzS"),
    (&[SMALL[0], SMALL[1], SMALL[2], "--branch-sim=yes", "--instr-atstart=no"], "sdztS"),
    (&["--cache-sim=yes", "--simulate-wb=yes", "--instr-atstart=no"], "sS"),
    (&["--cacheuse=yes", USED[0], USED[1], USED[2]], "dS"),
    (&["--cacheuse=yes", USED[0], USED[1], USED[2], "--instr-atstart=no"], "sdS"),
];

/// What takes as long as it takes.
const TIMES: [&str; 2] = [" sysTime", " sysCpuTime"];

fn build(name: &str, dir: &Path) -> PathBuf {
    let source = Source::open("matrix", name);
    let out = dir.join(name);
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let mut words: Vec<String> = vec!["gcc".into(), "-O1".into(), "-g".into(), include];
    words.extend(["-fno-optimize-sibling-calls", "-fcf-protection=none", "-Wall"].map(str::to_owned));
    words.extend(source.words("cc"));
    words.extend(["-o".to_owned(), out.display().to_string(), source.path.display().to_string()]);
    grind_tests::build::compile(&words, dir);
    out
}

fn run(way: &str, (options, requests): Row, program: &Path, dir: &Path) -> Profiled {
    let words = [program.display().to_string(), requests.to_owned()];
    let own = ["-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no", way];
    let profiler: Vec<String> =
        tools::under_test().iter().cloned().chain(own.iter().chain(options).map(|&word| word.to_owned())).collect();
    let mut done = Job::new(words, dir).profiled(&profiler);
    // In the order of their parts and threads, whatever the number of the process.
    done.raw.iter_mut().for_each(|(name, _)| *name = name.find(['.', '-']).map_or("", |at| &name[at..]).to_owned());
    done.raw.sort_by(|(one, _), (other, _)| one.cmp(other));
    done
}

/// What is wrong with the profiles of a row, one line each; these events need not be the same.
fn check(row: Row, program: &Path, dir: &Path, but: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let [told, followed] = ["--tell-calls=yes", "--tell-calls=no"].map(|way| run(way, row, program, dir));
    for done in [&told, &followed] {
        if done.outcome.status.code() != Some(0) || !done.outcome.stderr.is_empty() {
            wrong.push(format!("{}\n{}", done.outcome.show(), done.log));
        }
    }
    let names = |done: &Profiled| done.raw.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if names(&told) != names(&followed) {
        wrong.push(format!("files {:?} and {:?}", names(&told), names(&followed)));
        return wrong;
    }
    for ((name, slow), (_, fast)) in told.raw.iter().zip(&followed.raw) {
        for (way, profile) in [("told", slow), ("followed", fast)] {
            let broken = cg_format::callgrind::laws::breaches(&profile[..], name).unwrap_or_else(|e| panic!("{e}"));
            wrong.extend(broken.iter().map(|breach| format!("{way} {name}: {breach}")));
        }
        let (slow, fast) = (parse(slow), parse(fast));
        let wanted = |key: &str| !TIMES.iter().chain(but).any(|event| key.ends_with(event));
        wrong.extend(slow.differences(&fast, wanted).into_iter().map(|d| format!("{name}: {d}")));
        let (options, requests) = row;
        let is = |option: &str| options.contains(&option);
        let last = !name.starts_with('.');
        // What must not be in it: costs, or, where it was not instrumented, anything.
        let mut absent: Vec<(&str, bool)> = Vec::new();
        if is("--instr-atstart=no") && requests.contains('s') {
            absent.push(("before", true));
        }
        if last && requests.contains(['d', 'z']) && !is("--combine-dumps=yes") {
            absent.push(("before", true));
        }
        if requests.contains('S') {
            absent.push(("uninstrumented", true));
        }
        let toggles = options.iter().any(|option| option.starts_with("--toggle-collect="));
        if requests.contains('t') && !toggles && !is("--collect-atstart=no") && !is("--separate-threads=yes") {
            absent.push(("uncollected", false));
        }
        for (function, altogether) in absent {
            let of = |key: &&String| {
                let own = key.contains(&format!(" {function} "));
                own && !key.contains("-> ")
                    || key.contains(&format!("-> {function}:")) && (altogether || key.contains(": cost"))
            };
            wrong.extend(fast.counts.keys().filter(of).map(|key| format!("{name}: too old, or not wanted: {key}")));
        }
    }
    if followed.raw.iter().all(|(_, profile)| parse(profile).counts.len() < 10) {
        wrong.push("almost nothing was counted".to_owned());
    }
    wrong
}

fn column(name: &str, but: &[&str]) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build(name, dir.path());
    // Told one by one, what another thread has executed by the time of a part is up to chance; `callgrind_followed` adds such parts up.
    let hooks =
        |options: &[&str]| options.iter().any(|o| o.starts_with("--dump-before") || o.starts_with("--zero-before"));
    let rows: Vec<&Row> = ROWS.iter().filter(|row| name != "threads" || !hooks(row.0)).collect();
    let wrong_of = |row: &&Row| {
        let found = check(**row, &program, dir.path(), but);
        let shown = &found[..found.len().min(12)];
        (!found.is_empty()).then(|| format!("{row:?}: {} wrong\n    {}", found.len(), shown.join("\n    ")))
    };
    // Each of them waits for two programs.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let (first, second) = rows.split_at(rows.len() / 2);
        let halves = [first, second].map(|half| scope.spawn(|| half.iter().filter_map(wrong_of).collect::<Vec<_>>()));
        halves.into_iter().flat_map(|half| half.join().expect("a half of the rows")).collect()
    });
    assert!(wrong.is_empty(), "{name}:\n  {}", wrong.join("\n  "));
}

#[test]
fn recursion() {
    column("recursion", &[]);
}

#[test]
fn longjmp() {
    column("longjmp", &[]);
}

#[test]
fn signals() {
    column("signals", &[]);
}

#[test]
fn threads() {
    // A thread begins beside the one that has made it: who is first in the last level is up to chance.
    column("threads", &[" ILmr", " DLmr", " DLmw", " ILdmr", " DLdmr", " DLdmw", " AcCost2", " SpLoss2"]);
}

#[test]
fn callbacks() {
    column("callbacks", &[]);
}
