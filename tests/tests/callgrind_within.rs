//! Instrumentation that begins while functions are active: they have their true callers, which are read from the native stack, and
//! their returns find their frames. The reference does not look at the stack: it knows a caller when something returns to it, and
//! so do profiles here where no frame can be found. Self costs are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cg_format::callgrind::laws::roots;
use cg_format::callgrind::{Profile, Site, read_profile};
use grind_tests::build::{self, Source};
use grind_tests::{laws, run, tools};

fn built(dir: &Path, more: &[&str]) -> PathBuf {
    let source = Source::open("matrix", "within");
    let program = dir.join("within");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let mut words: Vec<String> = vec!["gcc".into(), "-O1".into(), "-g".into(), "-pthread".into(), include];
    words.extend(["-fno-optimize-sibling-calls", "-fcf-protection=none"].map(str::to_owned));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words.extend(["-o".to_owned(), program.display().to_string(), source.path.display().to_string()]);
    build::compile(&words, dir);
    program
}

/// What a profile says of a program: self costs by function, and arcs with their counts and costs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    own: BTreeMap<String, i64>,
    arcs: BTreeMap<(String, String), (u64, i64)>,
    roots: BTreeSet<String>,
}

const OURS: [&str; 11] =
    ["leaf", "begins", "inner", "middle", "outer", "down", "handler", "raises", "thread", "compare", "main"];

fn profile(profiler: &[&str], options: &[&str], program: &Path, mode: &str, dir: &Path) -> Told {
    let out = dir.join("out");
    let mut words: Vec<String> = profiler.iter().map(|w| (*w).to_owned()).collect();
    words.extend(["-q".into(), "--tool=callgrind".into(), "--instr-atstart=no".into()]);
    words.push(format!("--callgrind-out-file={}", out.display()));
    words.extend(options.iter().map(|w| (*w).to_owned()));
    words.extend([program.display().to_string(), mode.to_owned()]);
    // The loader's work at first calls is another.
    let done = run::command(&words, dir).env("LD_BIND_NOW", "1").output().expect("the profiler runs");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    let text = std::fs::read(&out).expect("a profile");
    if profiler != ["valgrind"] {
        laws::check(&text, &format!("{words:?}"));
    }
    told(&read_profile(&text[..], "within").expect("a profile"))
}

/// Levels of recursion are those of the whole program here, and begin with instrumentation in the reference: they are left out.
fn told(profile: &Profile) -> Told {
    let part = profile.parts.last().expect("a part");
    let name = |f| {
        let name = String::from_utf8_lossy(profile.names.function_name(f)).into_owned();
        name.strip_suffix("'2").map_or(name.clone(), str::to_owned)
    };
    let mut told = Told::default();
    for body in part.bodies() {
        for entry in &body.entries {
            match entry.site {
                Site::Row { costs } => *told.own.entry(name(body.function)).or_default() += body.costs(costs)[0],
                Site::Call { call, costs } => {
                    let arc = told.arcs.entry((name(body.function), name(call.callee))).or_default();
                    arc.0 += call.count;
                    arc.1 += body.costs(costs)[0];
                }
                Site::Jump(_) => {}
            }
        }
    }
    told.roots = roots(part, &profile.names).into_iter().map(|(f, _)| name(f)).collect();
    told
}

/// A mode of the program, calls that are active when instrumentation begins, each with its caller, and the roots.
type Active = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const ACTIVE: &[Active] = &[
    ("c", &[("main", "outer"), ("outer", "middle"), ("middle", "inner"), ("inner", "begins")], &[]),
    ("r", &[("main", "down"), ("down", "down"), ("down", "begins")], &[]),
    ("h", &[("main", "raises"), ("handler", "inner"), ("inner", "begins")], &["handler"]),
    (
        "t",
        &[("thread", "outer"), ("outer", "middle"), ("middle", "inner"), ("inner", "begins")],
        &["start_thread", "clone3"],
    ),
    ("q", &[("compare", "inner"), ("inner", "begins")], &[]),
];

fn check(more: &[&str], modes: &str) {
    if !tools::have(&["gcc", "valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built(dir.path(), more);
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    for (mode, active, own_roots) in ACTIVE.iter().filter(|(mode, ..)| modes.contains(mode)) {
        let [slow, fast] =
            ["--tell-calls=yes", "--tell-calls=no"].map(|way| profile(&grind, &[way], &program, mode, dir.path()));
        assert_eq!(slow, fast, "{mode}");
        for (from, to) in *active {
            let arc = fast.arcs.get(&((*from).to_owned(), (*to).to_owned()));
            assert!(arc.is_some_and(|(calls, cost)| *calls > 0 && *cost > 0), "{mode}: {from} -> {to}: {arc:?}");
            // Never the other way round.
            let back = fast.arcs.get(&((*to).to_owned(), (*from).to_owned()));
            assert!(from == to || back.is_none(), "{mode}: {to} -> {from}: {back:?}");
        }
        // One for each stack that there is: everything below it has a caller.
        let unknown: Vec<&String> =
            fast.roots.iter().filter(|r| OURS.contains(&r.as_str()) && !own_roots.contains(&r.as_str())).collect();
        assert!(unknown.is_empty(), "{mode}: {unknown:?} have no callers");
        // Beside the reference, which loses the block that switches instrumentation off, and fails where it begins in a handler.
        if *mode == "h" {
            continue;
        }
        let theirs = profile(&["valgrind"], &["--vex-guest-chase=no"], &program, mode, dir.path());
        let of_ours = |told: &Told| -> BTreeMap<String, i64> {
            told.own
                .iter()
                .filter(|(f, _)| OURS.contains(&f.as_str()) && *f != "main")
                .map(|(f, n)| (f.clone(), *n))
                .collect()
        };
        assert_eq!(of_ours(&fast), of_ours(&theirs), "{mode}");
        let both =
            |(from, to): &(String, String)| [from, to].into_iter().all(|f| OURS.contains(&f.as_str()) && f != "down");
        for (arc, found) in theirs.arcs.iter().filter(|(arc, _)| both(arc)) {
            assert_eq!(fast.arcs.get(arc), Some(found), "{mode}: {arc:?}");
        }
    }
}

#[test]
fn active_calls_have_their_callers() {
    check(&[], "crhtq");
}

#[test]
fn frame_pointers_do_where_nothing_describes_frames() {
    check(&["-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables"], "cr");
}

/// Nothing hangs on the beginnings of calls that nobody has seen, but a dump behind them is made.
#[test]
fn hooks_of_active_calls() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built(dir.path(), &[]);
    let grind: Vec<&str> = tools::under_test().iter().map(String::as_str).collect();
    let after = profile(
        &grind,
        &["--dump-after=inner", "--dump-before=middle", "--zero-before=outer"],
        &program,
        "c",
        dir.path(),
    );
    assert!(dir.path().join("out.1").is_file() && !dir.path().join("out.2").exists());
    assert!(!after.own.contains_key("begins") && after.own.contains_key("main"), "{after:?}");
    let toggled = profile(&grind, &["--toggle-collect=middle"], &program, "c", dir.path());
    assert!(toggled.own.is_empty(), "`middle` has not been entered: {toggled:?}");
}
