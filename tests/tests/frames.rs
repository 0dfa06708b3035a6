//! Functions of Python programs in call graphs (`--frames=python`): they are called by whom, and as often as, the interpreter itself says;
//! nothing is lost of what its own functions cost; whoever cannot be shown is refused with a reason. With a version of CPython of each way
//! to say which frame runs, or all that there are: Debian's, those of pyenv (`PYENV_ROOT`, or `.pyenv` in the home), and one that has been
//! unpacked:
//!
//! ```sh
//! tests/tests/frames/unpack && GRIND_EVERY_PYTHON=1 cargo test -p grind-tests frames::
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grind_tests::build;
use grind_tests::laws;
use grind_tests::run::{Job, Profiled};
use grind_tests::tools;

const DEBIANS: &str = "/usr/bin/python3";

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frames/program.py")
}

/// How an interpreter is run.
type Python = Vec<String>;

/// One that has been unpacked with the C library that it wants.
fn unpacked() -> Option<Python> {
    let root = tools::workspace_root().join("target/python3.14");
    let words = ["ld.so", "--library-path", "usr/lib/x86_64-linux-gnu", "usr/bin/python3.14"];
    let place = |word: &str| if word.starts_with('-') { word.into() } else { root.join(word).display().to_string() };
    root.join("ld.so").exists().then(|| words.map(place).to_vec())
}

/// The interpreters that can be shown.
fn interpreters() -> Vec<Python> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok()).into_iter().flatten();
    let all = std::env::var_os("GRIND_EVERY_PYTHON").is_some();
    // As an argument, on the stack, in the thread's state.
    let minors: &[u32] = if all { &[8, 9, 10, 11, 12, 13] } else { &[8, 12, 13] };
    let known = |name: &str| minors.iter().any(|minor| name.starts_with(&format!("3.{minor}.")));
    let mut found: Vec<PathBuf> = versions
        .filter_map(Result::ok)
        .filter(|version| known(&version.file_name().to_string_lossy()))
        .map(|version| version.path().join("bin/python3"))
        .chain([PathBuf::from(DEBIANS)])
        .filter(|path| path.exists())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "there is a Python");
    found.iter().map(|path| vec![path.display().to_string()]).chain(unpacked()).collect()
}

/// Profiles `words` with these options; names are written in full.
fn profiled(options: &[&str], words: &[&str], dir: &Path) -> Profiled {
    let plain = ["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"];
    let way: Vec<String> =
        tools::under_test().iter().cloned().chain(plain.iter().chain(options).map(|o| (*o).to_owned())).collect();
    let done = Job::new(words.iter().copied(), dir).profiled(&way);
    assert!(done.outcome.status.success(), "{options:?} {words:?}: {}\n{}", done.outcome.show(), done.log);
    done.raw.iter().for_each(|(_, profile)| laws::check(profile, &format!("{options:?} {words:?}")));
    done
}

/// What a profile says, with names as they are but for levels of recursion.
#[derive(Default)]
struct Graph {
    /// Of functions of the program: its caller, or the one that the interpreter works for; itself; how often.
    calls: BTreeMap<(String, String), u64>,
    /// Self costs by object and function, whomever that works for.
    costs: BTreeMap<(String, String), u64>,
}

/// A function's name, and the function of the program that it works for, if that is part of it.
fn parts(name: &str) -> (String, Option<String>) {
    let mut parts = name.split('\'');
    let own = parts.next().unwrap_or_default().to_owned();
    (own, parts.rfind(|part| part.parse::<u32>().is_err()).map(str::to_owned))
}

fn read(profile: &[u8]) -> Graph {
    let mut graph = Graph::default();
    let (mut object, mut name) = (String::new(), String::new());
    let (mut callee, mut called_object, mut called_file) = (String::new(), String::new(), String::new());
    let mut call = false;
    for line in String::from_utf8_lossy(profile).lines() {
        let of = |key: &str| line.strip_prefix(key).map(str::to_owned);
        if let Some(found) = of("ob=") {
            object = found;
        } else if let Some(found) = of("fn=") {
            name = found;
        } else if let Some(found) = of("cfn=") {
            callee = found;
        } else if let Some(found) = of("cob=") {
            called_object = found;
        } else if let Some(found) = of("cfi=").or(of("cfl=")) {
            called_file = found;
        } else if let Some(rest) = line.strip_prefix("calls=") {
            call = true;
            if called_object == "Python" && called_file.ends_with("program.py") {
                let (own, works_for) = parts(&name);
                let caller = if object == "Python" { own } else { works_for.unwrap_or_else(|| "-".to_owned()) };
                let n: u64 = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
                *graph.calls.entry((caller, parts(&callee).0)).or_default() += n;
            }
            (called_object, called_file) = Default::default();
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && !std::mem::take(&mut call) {
            let cost: u64 = line.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
            *graph.costs.entry((object.clone(), parts(&name).0)).or_default() += cost;
        }
    }
    graph.costs.retain(|_, cost| *cost > 0);
    graph
}

/// What the interpreter says: calls by caller and callee, and how many generators were made, by function.
fn said(python: &[String], dir: &Path) -> (BTreeMap<(String, String), u64>, BTreeMap<String, u64>) {
    let out = dir.join("said");
    let words = ["-S", &program().display().to_string(), &out.display().to_string()].map(str::to_owned);
    let words = [python, &words].concat();
    assert!(Job::new(words.iter().map(String::as_str), dir).native().status.success(), "{words:?}");
    let (mut calls, mut made): (BTreeMap<_, u64>, BTreeMap<_, u64>) = Default::default();
    for line in std::fs::read_to_string(out).expect("what it says").lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [caller, callee, file, n] = words[..] else { panic!("{line}") };
        let n: u64 = n.parse().expect("a number");
        if caller == "*" {
            *made.entry(callee.to_owned()).or_default() += n;
        } else if file.ends_with("program.py") {
            *calls.entry((caller.to_owned(), callee.to_owned())).or_default() += n;
        }
    }
    (calls, made)
}

/// Calls of a function, whoever makes them.
fn all_of(calls: &BTreeMap<(String, String), u64>, callee: &str) -> u64 {
    calls.iter().filter(|((_, to), _)| to == callee).map(|(_, n)| n).sum()
}

#[test]
fn functions_are_called_as_often_as_the_interpreter_says() {
    let program = program().display().to_string();
    for python in interpreters() {
        let dir = tempfile::tempdir().expect("a folder");
        let (said, made) = said(&python, dir.path());
        let words: Vec<&str> = python.iter().map(String::as_str).collect();
        let python = words[words.len() - 1];
        assert!(said.len() > 20 && said.values().sum::<u64>() > 500, "{python}: {said:?}");
        let ways: &[&[&str]] = match python {
            DEBIANS => {
                &[&[], &["--cache-sim=yes", "--branch-sim=yes"], &["--separate-callers=all"], &["--cacheuse=yes"]]
            }
            _ => &[&[]],
        };
        let check = |options: &[&str]| {
            let all: Vec<&str> = [&["--frames=python"], options].concat();
            let dir = tempfile::tempdir().expect("a folder");
            let done = profiled(&all, &[&words, &["-S", &program][..]].concat(), dir.path());
            let mut found = read(&done.raw[0].1).calls;
            // Making a generator runs its function from 3.11 on, which the interpreter tells nobody.
            for (function, made) in &made {
                let times = all_of(&said, function) + made;
                assert_eq!(all_of(&found, function), times, "{python} {options:?}: {function}");
            }
            let wanted = |(_, to): &(String, String), _: &mut u64| !made.contains_key(to);
            let mut said = said.clone();
            said.retain(wanted);
            found.retain(wanted);
            // What runs the program is not told.
            found.retain(|(from, to), _| !from.starts_with("<module>") && !to.starts_with("<module>"));
            said.retain(|(from, _), _| !from.starts_with("told"));
            found.retain(|(_, to), _| !to.starts_with("main:"));
            assert_eq!(found, said, "{python} {options:?}");
        };
        std::thread::scope(|scope| {
            for options in ways {
                scope.spawn(|| check(options));
            }
        });
    }
}

#[test]
fn what_the_interpreter_costs_is_as_without() {
    let program = program().display().to_string();
    for python in interpreters() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = ["-S", "-B", &program, "alone"];
        let words: Vec<&str> = python.iter().map(String::as_str).chain(program).collect();
        let of = |option| read(&profiled(&[option], &words, dir.path()).raw[0].1).costs;
        let (with, without) = (of("--frames=python"), of("--tell-calls=yes"));
        assert!(without.len() > 500, "{python:?}");
        let differs: Vec<_> = without.iter().filter(|(function, cost)| with.get(*function) != Some(cost)).collect();
        assert!(differs.is_empty() && with.len() == without.len(), "{python:?}: {differs:?}");
    }
}

/// What calls of these functions cost with all below them.
fn inclusive(profile: &[u8], functions: &[&str]) -> Vec<u64> {
    let (mut callee, mut call) = (None, false);
    let mut sums = vec![0; functions.len()];
    for line in String::from_utf8_lossy(profile).lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            let own = parts(name).0;
            callee = functions.iter().position(|function| own.split(':').next() == Some(function));
        } else if line.starts_with("calls=") {
            call = true;
        } else if std::mem::take(&mut call)
            && let Some(n) = callee
        {
            sums[n] += line.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).expect("a cost");
        }
    }
    sums
}

/// What a function costs with all that it calls rises by how much more a run costs in which it has more to do.
#[test]
fn inclusive_costs_are_what_a_run_costs_more() {
    const FUNCTIONS: &str = "def leaf(n):\n x = 0\n for i in range(n): x ^= i & 7\n return x\n\
                             def mid(n): return leaf(n) + len(sorted(range(n, 0, -1)))\ndef top(n): return mid(n) - mid(n)\n";
    for python in interpreters() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = dir.path().join("p.py");
        let path = script.display().to_string();
        let words: Vec<&str> = python.iter().map(String::as_str).chain(["-S", "-B", &path]).collect();
        let costs = [1000, 3000].map(|n| {
            std::fs::write(&script, format!("{FUNCTIONS}top({n})\n")).expect("a file");
            let done = profiled(&["--frames=python"], &words, dir.path());
            let whole: u64 = read(&done.raw[0].1).costs.values().sum();
            [vec![whole], inclusive(&done.raw[0].1, &["top", "mid", "leaf"])].concat()
        });
        let more: Vec<u64> = costs[1].iter().zip(&costs[0]).map(|(more, less)| more - less).collect();
        let [whole, top, mid, leaf] = more[..] else { panic!("{more:?}") };
        assert_eq!(top, mid, "{python:?}: {costs:?}");
        // The number itself is read before, and memory given back behind.
        assert!(top > 500_000 && top.abs_diff(whole) <= top / 200, "{python:?}: {costs:?}");
        assert!((top / 4..top).contains(&leaf), "{python:?}: {costs:?}");
    }
}

#[test]
fn functions_that_have_trampolines_are_there_once() {
    let program = program().display().to_string();
    for python in interpreters() {
        let python = python[0].clone();
        if !["/3.12.", "/3.13."].iter().any(|version| python.contains(version)) {
            continue;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let done = profiled(&["--frames=python"], &[&python, "-S", "-X", "perf", &program, "alone"], dir.path());
        let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
        let names = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert!(names("fn=py::fib:") > 0 && names("fn=py::key:") > 0, "{python}");
        assert_eq!((names("fn=fib:"), names("fn=key:"), names("fn=main:")), (0, 0, 0), "{python}");
        assert!(names("fn=_PyEval_EvalFrameDefault'2'py::fib:") > 0, "told apart by trampolines: {python}");
    }
}

#[test]
fn processes_know_the_functions_of_their_own() {
    const FORKS: &str = "import os\ndef a(n): return n\ndef own(name):\n exec('def %s(x):\\n return a(x)\\n%s(2)' % (name, name), \
                         {'a': a})\nif os.fork() == 0:\n own('child')\nelse:\n os.wait()\n own('parent')\n";
    let dir = tempfile::tempdir().expect("a folder");
    let done = profiled(&["--frames=python"], &[DEBIANS, "-S", "-c", FORKS], dir.path());
    let mut found: Vec<Vec<&str>> = Vec::new();
    for (_, profile) in &done.raw {
        let text = String::from_utf8_lossy(profile);
        let has = |name: &&str| text.lines().any(|line| line == format!("fn={name}:1"));
        found.push(["child", "parent"].into_iter().filter(has).collect());
    }
    found.sort();
    assert_eq!(found, [["child"], ["parent"]]);
}

/// One that can make machine code of what runs often is shown unless it has been asked to do so.
#[test]
fn who_makes_machine_code_is_refused() {
    let Some(python) = unpacked() else {
        eprintln!("skipped: tests/tests/frames/unpack has not been run");
        return;
    };
    const ASKS: &str = "import sys; print(sys._jit.is_enabled())";
    let dir = tempfile::tempdir().expect("a folder");
    for (value, refused) in [("1", true), ("0", false)] {
        let set = format!("PYTHON_JIT={value}");
        let words: Vec<&str> = python.iter().map(String::as_str).chain(["-S", "-c", ASKS]).collect();
        let done =
            profiled(&["--frames=python", "--trace-children=yes"], &[&["env", &set], &words[..]].concat(), dir.path());
        assert_eq!(done.outcome.stdout, if refused { &b"True\n"[..] } else { b"False\n" }, "{set}");
        let told = |text: &str| done.log.lines().filter(|line| line.contains(text)).count();
        assert_eq!(told("(leave out PYTHON_JIT)"), usize::from(refused), "{set}: {}", done.log);
        let shown = done.raw.iter().any(|(_, profile)| String::from_utf8_lossy(profile).contains("ob=Python"));
        assert_eq!(shown, !refused, "{set}");
    }
}

#[test]
fn who_cannot_be_shown_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read(DEBIANS).expect("Debian's Python");
    let without = |symbol: &str, name: &str| {
        let (from, to) = (format!("\0{symbol}\0"), format!("\0{}_\0", &symbol[..symbol.len() - 1]));
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("the symbol");
        let mut changed = bytes.clone();
        changed[at..at + to.len()].copy_from_slice(to.as_bytes());
        let path = dir.path().join(name);
        std::fs::write(&path, changed).expect("written");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
        path.display().to_string()
    };
    let mut cases = vec![
        (without("_PyEval_EvalFrameDefault", "stripped"), "no CPython was found whose symbols are there"),
        (without("Py_Version", "unknown"), "it does not say which version it is"),
        (without("PyCode_Type", "odd"), "it has no symbol PyCode_Type"),
    ];
    if tools::have(&["gcc"]) {
        let source = tools::fixtures("tests/frames/chained.c").display().to_string();
        // Built with tail calls; of before the words of a version are fixed; of after those that are known.
        for (name, version, reason) in [
            ("final", "0x030e0af0", "its evaluation function is a chain of functions"),
            ("alpha", "0x030e00a1", "where it changes from one function to another"),
            ("later", "0x030f00f0", "version 3.15 is not known"),
        ] {
            let (program, version) = (dir.path().join(name).display().to_string(), format!("-DVERSION={version}"));
            let words = ["gcc", "-O2", "-rdynamic", &version, "-o", &program, &source];
            build::compile(&words.map(str::to_owned), dir.path());
            cases.push((program, reason));
        }
    }
    if Path::new("/usr/bin/pypy3").exists() {
        cases.push(("/usr/bin/pypy3".to_owned(), "no CPython was found whose symbols are there"));
    }
    for (python, reason) in cases {
        let done = profiled(&["--frames=python"], &[&python, "-S", "-c", "print(1)"], dir.path());
        let told: Vec<&str> = done.log.lines().filter(|line| line.contains("--frames=python:")).collect();
        assert!(matches!(told[..], [line] if line.contains(reason)), "{python}: {told:?}");
        assert!(!String::from_utf8_lossy(&done.raw[0].1).contains("ob=Python"), "{python}");
    }
}
