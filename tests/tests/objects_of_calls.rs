//! Misses by data object beside the call graph: they sum to the profile of calls, for programs of every kind and whatever else is asked
//! for; each object's misses are those of the functions that miss it; and objects and streams are those that cachegrind has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cg_format::callgrind::{Profile, Site, laws, read_profile};
use cg_format::mem::{Kind, Mem};
use grind_tests::build::{Source, compile};
use grind_tests::run::Job;
use grind_tests::tools;

/// What a process left.
struct Process {
    /// All parts of its profile.
    parts: Vec<Profile>,
    mem: Mem,
    /// The objects as a profile.
    data: Profile,
    /// What the run has printed.
    text: String,
}

impl Process {
    /// The sum of an event in all parts.
    fn total(&self, event: &str) -> u64 {
        self.total_of(None, event)
    }

    /// The sum of an event in a part, or in all.
    fn total_of(&self, number: Option<u64>, event: &str) -> u64 {
        let parts = self.parts.iter().flat_map(|profile| &profile.parts);
        let parts = parts.filter(|part| number.is_none() || part.header.number.unwrap_or(1) == number.unwrap_or(1));
        let totals = parts.map(|part| {
            let at = part.header.events.iter().position(|e| e == event);
            at.map_or(0, |at| u64::try_from(part.total()[at]).expect("no difference"))
        });
        totals.sum()
    }

    /// The objects have what the profile has, in a part or in all.
    fn check_totals(&self, number: Option<u64>, of: &str) {
        for (event, total) in self.mem.head.events.iter().zip(&self.mem.head.totals) {
            // (What is used of lines is all that is not lost: it is no event.)
            if !event.starts_with("Used") {
                assert_eq!(self.total_of(number, event), *total, "{event}, part {number:?} of {of}");
            }
        }
    }

    /// The same of a part, and of the profile of its objects.
    fn check(&self, number: Option<u64>, of: &str) {
        self.check_totals(number, of);
        let expected: Vec<i128> = self.mem.head.totals.iter().map(|n| i128::from(*n)).collect();
        assert_eq!(self.data.parts[0].total(), expected, "{of}");
    }

    /// What a function has cost itself, by event.
    fn of_function(&self, name: &str, event: &str) -> i64 {
        let mut sum = 0;
        for profile in &self.parts {
            for part in &profile.parts {
                let Some(at) = part.header.events.iter().position(|e| e == event) else { continue };
                let named =
                    |body: &&cg_format::callgrind::Body| profile.names.function_name(body.function) == name.as_bytes();
                for body in part.bodies().iter().filter(named) {
                    let rows = body.entries.iter().filter_map(|entry| match entry.site {
                        Site::Row { costs } => Some(body.costs(costs)[at]),
                        _ => None,
                    });
                    sum += rows.sum::<i64>();
                }
            }
        }
        sum
    }
}

/// Runs a program, and holds each of its processes to the laws.
fn run_with(options: &[&str], words: &[&str], dir: &Path) -> Vec<Process> {
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut command = tools::under_test().to_vec();
    command.extend(
        [
            "--tool=callgrind",
            "--trace-children=yes",
            "--cache-sim=yes",
            "--objects=yes",
            "--I1=32768,8,64",
            "--LL=8388608,16,64",
        ]
        .map(str::to_owned),
    );
    command.push(format!("--mem-out-file={}/mem.%p", out.path().display()));
    command.push(format!("--callgrind-out-file={}/calls.%p", out.path().display()));
    command.extend(options.iter().chain(words).map(|o| (*o).to_owned()));
    let outcome = Job::new(command.iter().map(String::as_str), dir).native();
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let read = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.display().to_string();
        let breaches = laws::breaches(bytes.as_slice(), &name).expect("a profile");
        assert!(breaches.is_empty(), "{options:?} {words:?}: {breaches:?}");
        read_profile(bytes.as_slice(), &name).expect("a profile")
    };
    let dots = out.path().display().to_string().matches('.').count();
    let mut names: Vec<PathBuf> =
        fs::read_dir(out.path()).expect("its folder").map(|e| e.expect("a file").path()).collect();
    names.sort();
    let named = |path: &Path, prefix: &str| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix));
    let mut processes = Vec::new();
    // `mem.PID` is of the last part of a process, `mem.PID.N` of the others.
    for name in names.iter().filter(|n| named(n, "mem.") && n.display().to_string().matches('.').count() == dots + 1) {
        let pid = name.extension().expect("a process").to_string_lossy().into_owned();
        let parts = names.iter().filter(|n| {
            let of = n.file_name().expect("a name").to_string_lossy();
            of == format!("calls.{pid}")
                || of.starts_with(&format!("calls.{pid}."))
                || of.starts_with(&format!("calls.{pid}-"))
        });
        let parts: Vec<Profile> = parts.map(|name| read(name)).collect();
        // (That misses of functions are those of objects is asked for by the reader.)
        let mem = |path: &Path| {
            let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            Mem::read(&mut bytes.as_slice()).unwrap_or_else(|e| panic!("{options:?} {words:?}: {e}"))
        };
        let of_part = |name: &Path, mem: Mem| {
            let beside = PathBuf::from(format!("{}.data", name.display()));
            Process { parts: parts.clone(), data: read(&beside), mem, text: text.clone() }
        };
        let last = mem(name);
        let number = last.head.part.unwrap_or(1);
        let earlier: Vec<PathBuf> =
            (1..number).map(|n| PathBuf::from(format!("{}.{n}", name.display()))).filter(|n| n.exists()).collect();
        assert_eq!(earlier.len() as u64, number - 1, "{options:?} {words:?}: each part has its objects");
        let mut process = of_part(name, last);
        process.check(Some(number), &format!("{options:?} {words:?}"));
        for name in &earlier {
            let part = of_part(name, mem(name));
            part.check(part.mem.head.part, &format!("{options:?} {words:?}, {}", name.display()));
            process.mem.add_part(part.mem).expect("a part");
        }
        let written = process.parts.iter().flat_map(|p| &p.parts).filter_map(|p| p.header.number).max();
        assert_eq!(written.unwrap_or(1), number, "{options:?} {words:?}");
        process.check_totals(None, &format!("{options:?} {words:?}"));
        processes.push(process);
    }
    assert!(!processes.is_empty(), "{}", outcome.show());
    processes
}

/// Builds a program of `tests/objects`.
fn build(name: &str, dir: &Path) -> String {
    let source = Source::open("objects", name);
    let out = dir.join(name).display().to_string();
    let mut words = ["gcc", "-g", "-o", &out, &source.path.display().to_string()].map(str::to_owned).to_vec();
    words.extend(source.words("cc"));
    compile(&words, dir);
    out
}

/// Whatever else is asked for, and however processes, threads and signals come and go.
#[test]
fn misses_of_objects_sum_to_the_profile_of_calls() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let depths = build("depths", dir.path());
    let semantic = |name: &str| Source::open("semantics", name).build(dir.path(), false).display().to_string();
    let d1 = "--D1=32768,8,64";
    let options: [&[&str]; 22] = [
        &[d1, "--separate-callers=2", "--collect-alloc=yes"],
        &[d1, "--separate-recs=3", "--branch-sim=yes"],
        &[d1, "--toggle-collect=main", "--collect-alloc=yes"],
        &[d1, "--toggle-collect=take"],
        &[d1, "--L2=262144,8,64", "--collect-systime=usec"],
        &[d1, "--dump-before=take", "--collect-alloc=yes"],
        &[d1, "--zero-before=take"],
        &[d1, "--tell-calls=yes", "--collect-alloc=yes"],
        &[d1, "--dump-every-bb=3000"],
        &[d1, "--instr-atstart=no"],
        &[d1, "--separate-callers=all", "--collect-alloc=yes"],
        &[d1, "--separate-threads=yes"],
        &[d1, "--simulate-hwpref=yes", "--streams=misses"],
        &["--D1=128,1,64", "--alloc-depth=3", "--fn-skip=list"],
        &[d1, "--cacheuse=yes", "--collect-alloc=yes", "--dump-every-bb=3000"],
        &[d1, "--cacheuse=yes", "--zero-before=take", "--streams=misses"],
        &[d1, "--cacheuse=self", "--instr-atstart=no"],
        &[d1, "--cacheuse=yes", "--toggle-collect=take", "--separate-threads=yes"],
        &["--D1=128,1,64", "--cacheuse=yes", "--alloc-depth=3", "--fn-skip=list"],
        &["--D1=16384,4,128", "--I1=32768,8,128", "--LL=8388608,16,128", "--cacheuse=yes", "--separate-recs=3"],
        &[d1, "--simulate-wb=yes", "--collect-alloc=yes", "--streams=misses"],
        &[d1, "--simulate-wb=yes", "--simulate-hwpref=yes", "--dump-before=take"],
    ];
    for options in options {
        run_with(options, &[&depths], dir.path());
        run_with(options, &[&depths, "threads"], dir.path());
    }
    for name in
        ["process_fork_tree", "signal_siglongjmp_out_of_handler", "thread_lock_free_stack", "code_dlopen_dlclose"]
    {
        let program = semantic(name);
        run_with(&[d1, "--streams=misses"], &[&program], dir.path());
        run_with(&[d1, "--separate-callers=2"], &[&program], dir.path());
        run_with(&[d1, "--cacheuse=yes"], &[&program], dir.path());
    }
}

/// However parts come to be, and wherever they are written.
#[test]
fn each_part_of_a_profile_has_its_objects() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let depths = build("depths", dir.path());
    let d1 = "--D1=32768,8,64";
    let options: [(&[&str], usize); 6] = [
        (&["--dump-before=take", "--streams=misses"], 30),
        (&["--dump-after=take", "--combine-dumps=yes"], 30),
        (&["--dump-every-bb=3000", "--cacheuse=yes", "--streams=misses"], 3),
        (&["--dump-before=take", "--cacheuse=yes", "--separate-callers=3"], 30),
        (&["--dump-before=take", "--zero-before=main"], 30),
        (&["--dump-before=take", "--tell-calls=yes", "--separate-threads=yes"], 30),
    ];
    for (options, least) in options {
        let process = run_with(&[&[d1], options].concat(), &[&depths], dir.path()).remove(0);
        let last = process.parts.iter().flat_map(|p| &p.parts).filter_map(|p| p.header.number).max();
        assert!(last.is_some_and(|last| last as usize >= least), "{options:?}: {last:?}");
        // Blocks are those of the part that they were allocated in.
        if !options.contains(&"--zero-before=main") {
            let blocks = process.mem.objects.iter().filter(|o| o.kind == Kind::Heap && o.file.ends_with("depths.c"));
            assert_eq!(blocks.map(|o| o.blocks).sum::<u64>(), 40, "{options:?}");
        }
    }
}

/// `use` alone accesses the blocks of `blocks.c`, which counts its reads and writes of each place that allocates; with calls that are
/// followed, told, and with threads.
#[test]
fn objects_are_missed_by_those_that_access_them() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("blocks", dir.path());
    let (told, uses, back) = (&["--tell-calls=yes"][..], &["--cacheuse=yes"][..], &["--simulate-wb=yes"][..]);
    for (options, threads) in
        [(&[][..], false), (&[], true), (told, false), (uses, false), (uses, true), (back, false), (back, true)]
    {
        let words: Vec<&str> = std::iter::once(program.as_str()).chain(threads.then_some("threads")).collect();
        let options: Vec<&str> = std::iter::once("--D1=128,1,64").chain(options.iter().copied()).collect();
        let processes = run_with(&options, &words, dir.path());
        let mem = &processes[0].mem;
        let text = &processes[0].text;
        let mut found = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [reads, writes] = [1, 2].map(|n: usize| words[n].parse::<u64>().expect("a number"));
            let name = format!("heap@blocks.c:{}", words[0]);
            let object = mem.objects.iter().position(|o| o.name == name).unwrap_or_else(|| panic!("no {name}"));
            let by = mem.missed_by.iter().find(|by| by.object == object && by.function == "use");
            let counts = &by.unwrap_or_else(|| panic!("{name}: {threads}")).counts;
            // (Of those that `realloc` has copied, that has read and written some more, elsewhere.)
            assert_eq!([counts[0], counts[2]], [reads, writes], "{name}, {threads}");
            let all = &mem.objects[object].counts;
            assert!(words.len() > 3 || [all[0], all[2]] == [reads, writes], "{name}: {all:?}");
            found += 1;
        }
        assert!(found >= 8, "{text}");
        let data = &processes[0].data;
        let called =
            data.parts[0].bodies().iter().find(|b| data.names.function_name(b.function) == b"use").expect("it calls");
        assert!(called.entries.iter().all(|entry| matches!(entry.site, Site::Call { .. })), "no costs of its own");
    }
}

/// The same misses of variables and blocks in the same steps, executed as often; a modification is one of the other kind there.
#[test]
fn objects_and_streams_are_those_of_cachegrind() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("steps", dir.path());
    let options = ["--D1=32768,8,64", "--streams=misses"];
    let with_calls = run_with(&options, &[&program], dir.path()).remove(0).mem;
    let all = ["--cache-sim=yes", "--objects=yes", "--I1=32768,8,64", "--LL=8388608,16,64"];
    let lines = grind_tests::mem::processes(&[&options[..], &all].concat(), &[&program], dir.path()).remove(0);
    let lines = lines.mem.expect("its objects");
    let of = |mem: &Mem| {
        let ours =
            |object: usize| mem.objects[object].kind == Kind::Variable && mem.objects[object].file.ends_with("/steps");
        let streams = mem.streams.iter().filter(|s| ours(s.object));
        let each =
            streams.map(|s| (mem.objects[s.object].name.clone(), s.line, s.misses, s.executions, s.parts.clone()));
        each.collect::<Vec<_>>()
    };
    assert!(of(&with_calls).len() > 8);
    assert_eq!(of(&with_calls), of(&lines));
}

/// Calls of allocators are costs of the calls that are made to them, and of all that is active.
#[test]
fn calls_of_allocators_are_costs_of_their_callers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("depths", dir.path());
    for options in [&["--collect-alloc=yes"][..], &["--collect-alloc=yes", "--tell-calls=yes"]] {
        let process = run_with(&[&["--D1=32768,8,64"], options].concat(), &[&program], dir.path()).remove(0);
        let self_costs = |name| (process.of_function(name, "allocCount"), process.of_function(name, "allocSize"));
        let handled = 10 * 11 + 20 * 80 + 3 * 1000 + 64 + 101 + 4 * 24;
        assert_eq!(self_costs("take"), (10 + 20 + 3 + 1 + 1 + 4, handled));
        assert_eq!(self_costs("main"), (1, 6400));
        let heap = || process.mem.objects.iter().filter(|o| o.kind == Kind::Heap);
        let sums: BTreeMap<&str, u64> =
            [("allocCount", heap().map(|o| o.blocks).sum()), ("allocSize", heap().map(|o| o.bytes).sum())].into();
        sums.into_iter().for_each(|(event, sum)| assert_eq!(process.total(event), sum, "{event}"));
    }
    // Without caches there is nothing else to be recorded.
    let out = dir.path().join("alone");
    let mut command = tools::under_test().to_vec();
    command.extend(["--tool=callgrind", "--collect-alloc=yes", "--dump-instr=yes"].map(str::to_owned));
    command.extend([format!("--callgrind-out-file={}", out.display()), program, "threads".into()]);
    assert!(Job::new(command.iter().map(String::as_str), dir.path()).native().status.success());
    let bytes = fs::read(&out).expect("a profile");
    let breaches = laws::breaches(bytes.as_slice(), "alone").expect("a profile");
    assert!(breaches.is_empty(), "{breaches:?}");
    let profile = read_profile(bytes.as_slice(), "alone").expect("a profile");
    let (events, total) = (&profile.parts[0].header.events, profile.parts[0].total());
    assert_eq!(events.join(" "), "Ir allocCount allocSize");
    assert!(total[1] >= 54 && total[2] > 11_000, "{total:?}");
}

/// The counts of an event at a variable.
fn of_variable(mem: &Mem, name: &str, event: &str) -> u64 {
    let at = mem.head.events.iter().position(|known| known == event).unwrap_or_else(|| panic!("no {event}"));
    let of = |o: &&cg_format::mem::Object| o.kind == Kind::Variable && o.name == name && o.file.ends_with("/lines");
    mem.objects.iter().find(of).map_or(0, |object| object.counts[at])
}

/// A line belongs to the object that it was loaded for, with all that it costs; where emitted code keeps how lines are used, and
/// where every access is told.
#[test]
fn lines_belong_to_the_object_that_they_were_loaded_for() {
    const LINES: u64 = 40;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("lines", dir.path());
    let large: &[&str] = &["--I1=32768,8,128", "--D1=32768,8,128", "--LL=8388608,16,128"];
    for (line, shape) in [(64, &["--D1=32768,8,64"][..]), (128, large)] {
        for cacheuse in ["--cacheuse=yes", "--cacheuse=self"] {
            let process = run_with(&[shape, &[cacheuse]].concat(), &[&program], dir.path()).remove(0);
            let mem = &process.mem;
            assert_eq!(mem.head.uses, Some(line));
            // Name, lines that are loaded for it, accesses of each, and bytes of it that are used.
            let per = line / 64;
            let expected = [
                ("sparse", LINES / per, per, 8 * per),
                ("dense", LINES / per, 8 * per, 64 * per),
                ("twice", LINES / per, 4 * per, 16 * per),
                // Parts of a line are two bytes, or four.
                ("across", if per == 1 { 2 * LINES } else { LINES }, 1, if per == 1 { 4 } else { 8 }),
                ("right", 1, 2, 16),
                ("left", 0, 1, 0),
            ];
            for (name, lines, accesses, used) in expected {
                for level in ["1", "2"] {
                    let of = |event: &str| of_variable(mem, name, &format!("{event}{level}"));
                    let costs = (of("AcCost"), of("SpLoss"), of("Used"));
                    // Where an access is to two lines, both have it.
                    let expected = (lines * (1000 / accesses), lines * (line - used), lines * used);
                    assert_eq!(costs, expected, "{name}, level {level}, {shape:?} {cacheuse}");
                }
            }
            for object in &mem.objects {
                let of = |event: &str| {
                    let at = mem.head.events.iter().position(|known| known == event).expect("an event");
                    object.counts[at]
                };
                for level in ["1", "2"] {
                    let bytes = of(&format!("Used{level}")) + of(&format!("SpLoss{level}"));
                    assert_eq!(bytes % line, 0, "{}: whole lines", object.name);
                }
            }
        }
    }
}

/// Misses are at the same objects whether or not it is measured how lines are used; and where writes reach the last level.
#[test]
fn every_access_that_is_told_misses_the_same_objects() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("steps", dir.path());
    let of = |options: &[&str]| {
        let all = [&["--D1=32768,8,64", "--streams=misses"], options].concat();
        let mem = run_with(&all, &[&program], dir.path()).remove(0).mem;
        let ours =
            |object: usize| mem.objects[object].kind == Kind::Variable && mem.objects[object].file.ends_with("/steps");
        let objects: Vec<_> = (0..mem.objects.len()).filter(|n| ours(*n)).collect();
        let counts = objects.iter().map(|n| (mem.objects[*n].name.clone(), mem.objects[*n].counts[..4].to_vec()));
        let streams = mem.streams.iter().filter(|s| ours(s.object));
        let streams = streams.map(|s| (s.line, s.access, s.size, s.misses, s.executions, s.parts.clone()));
        (counts.collect::<Vec<_>>(), streams.collect::<Vec<_>>())
    };
    let plain = of(&[]);
    assert!(plain.0.len() > 8 && plain.1.len() > 8);
    for option in ["--cacheuse=yes", "--simulate-wb=yes", "--tell-calls=yes"] {
        assert!(of(&[option]) == plain, "{option}");
    }
}
