//! Misses by data object: they sum to the profile's for programs of every kind, and blocks of the heap are those that a program
//! which knows its own accesses counts by itself, also where threads use and take back what others have allocated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_format::mem::notation;
use cg_format::mem::streams::{Grid, Stream};
use cg_format::mem::{Kind, Mem, Object};
use grind_tests::build::{Source, compile};
use grind_tests::mem::totals;
use grind_tests::run::{Job, Profiled};
use grind_tests::tools;

/// What a run wrote of each process: the profile's totals by event, and the data objects.
struct Run {
    processes: Vec<(BTreeMap<String, u64>, Mem)>,
    profiled: Profiled,
}

impl Run {
    /// All objects of the only process.
    fn objects(&self) -> &[Object] {
        assert_eq!(self.processes.len(), 1, "one process");
        &self.processes[0].1.objects
    }

    /// Reads and writes that missed the first level, by object of one kind.
    fn misses(&self, kind: Kind) -> BTreeMap<String, (u64, u64)> {
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for o in self.objects().iter().filter(|o| o.kind == kind) {
            let sum = sums.entry(o.name.clone()).or_default();
            *sum = (sum.0 + o.counts[0], sum.1 + o.counts[2]);
        }
        sums
    }
}

/// Runs a program, and holds it to the law: of each process, the misses of its objects sum to those of its profile, in its file
/// and in the profile beside that.
fn run_with(options: &[&str], words: &[&str], dir: &Path) -> Run {
    let out = tempfile::tempdir().expect("a temporary folder");
    let mut profiler = tools::under_test().to_vec();
    profiler.extend(["--cache-sim=yes", "--objects=yes", "--I1=32768,8,64", "--LL=8388608,16,64"].map(str::to_owned));
    profiler.push(format!("--mem-out-file={}/mem.%p", out.path().display()));
    profiler.extend(options.iter().map(|o| (*o).to_owned()));
    let profiled = Job::new(words.iter().copied(), dir).profiled(&profiler);
    let mut processes = Vec::new();
    for (pid, profile) in &profiled.raw {
        let name = out.path().join(format!("mem.{pid}"));
        let text = std::fs::read(&name).unwrap_or_else(|e| panic!("{pid}: {e}\n{}", profiled.log));
        let mem = Mem::read(&mut text.as_slice()).unwrap_or_else(|e| panic!("{pid}: {e}"));
        let expected = totals(profile);
        let beside = totals(&std::fs::read(name.with_extension(format!("{pid}.data"))).expect("the profile beside it"));
        for (event, total) in mem.head.events.iter().zip(&mem.head.totals) {
            assert_eq!(expected[event], *total, "{event} of process {pid} of {words:?}, by object");
            assert_eq!(expected[event], beside[event], "{event} of process {pid} of {words:?}, by object as a profile");
        }
        assert!(expected["D1mr"] > 0 && mem.head.events.len() == 4, "{words:?}");
        processes.push((expected, mem));
    }
    assert!(!processes.is_empty(), "{}", profiled.log);
    Run { processes, profiled }
}

/// The same with the first-level cache of data that many processors have.
fn run(words: &[&str], dir: &Path) -> Run {
    run_with(&["--D1=32768,8,64"], words, dir)
}

/// Builds a program of `tests/objects`.
fn build(name: &str, more: &[&str], dir: &Path) -> PathBuf {
    let source = Source::open("objects", name);
    let out = dir.join(name);
    let mut words = vec!["gcc".to_owned(), "-g".into(), "-o".into(), out.display().to_string()];
    words.push(source.path.display().to_string());
    words.extend(source.words("cc"));
    words.extend(more.iter().map(|w| (*w).to_owned()));
    compile(&words, dir);
    out
}

/// What the program counted by itself: reads and writes by object, and whether blocks of it were given to `realloc`.
fn own_counts(run: &Run, source: &str) -> BTreeMap<String, (u64, u64, bool)> {
    let text = String::from_utf8_lossy(&run.profiled.outcome.stdout).into_owned();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |n: usize| words[n].parse::<u64>().expect("a number");
        counts.insert(format!("heap@{source}:{}", words[0]), (number(1), number(2), words.len() > 3));
    }
    counts
}

/// Each access of the program to a block misses, and is booked on the place that has allocated the block. Of those that `realloc`
/// has copied from, and taken back within the call, it has read and written some more.
#[test]
fn blocks_are_those_that_a_program_knows_of() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("blocks", &[], dir.path()).display().to_string();
    for argument in [None, Some("threads")] {
        let words: Vec<&str> = std::iter::once(program.as_str()).chain(argument).collect();
        // Of two lines: whatever lies between two accesses takes their place.
        check_blocks(&run_with(&["--D1=128,1,64"], &words, dir.path()), argument.is_some());
    }
}

/// Compares a run of `blocks.c` with what that counts by itself.
fn check_blocks(run: &Run, threads: bool) {
    let (expected, got) = (own_counts(run, "blocks.c"), run.misses(Kind::Heap));
    assert!(expected.len() >= 8 + usize::from(threads), "{expected:?}");
    for (name, (reads, writes, old)) in expected {
        assert!(reads > 100 && writes > 100, "{name}");
        let (got_reads, got_writes) = got[&name];
        if old {
            assert!(got_reads > reads && got_writes >= writes, "{name}: {got_reads} {got_writes}");
        } else {
            assert_eq!((got_reads, got_writes), (reads, writes), "{name}, {threads}");
        }
    }
    // (Where a thread ends, the C library frees what it keeps of blocks that have been taken back.)
    assert!(threads || run.processes[0].1.head.unknown_frees == 0);
}

/// The same where the allocators are part of the program, and where they come from a library that stands in front of that of C.
#[test]
fn blocks_are_those_of_whichever_allocator_is_called() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("blocks", &["-static"], dir.path()).display().to_string();
    for argument in [None, Some("threads")] {
        let words: Vec<&str> = std::iter::once(program.as_str()).chain(argument).collect();
        check_blocks(&run_with(&["--D1=128,1,64"], &words, dir.path()), argument.is_some());
    }
    let program = build("blocks", &[], dir.path()).display().to_string();
    let preload = format!("LD_PRELOAD={}", build("preloaded", &[], dir.path()).display());
    for argument in [None, Some("threads")] {
        let words: Vec<&str> = ["env", &preload, &program].into_iter().chain(argument).collect();
        let run = run_with(&["--D1=128,1,64", "--trace-children=yes"], &words, dir.path());
        check_blocks(&run, argument.is_some());
        let of_preloaded = |o: &&Object| o.kind == Kind::Variable && o.file.ends_with("/preloaded");
        assert!(run.objects().iter().any(|o| of_preloaded(&o)), "it has been in front");
    }
}

/// Allocators that the user names, which call one another and those that are known, are left by jumps, also by those of handlers that
/// have interrupted them, and fork.
#[test]
fn calls_of_allocators_may_end_in_any_way() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("calls", &[], dir.path()).display().to_string();
    let options =
        ["--D1=128,1,64", "--alloc-fn=mine,2", "--alloc-fn=my_arr?y,2,1", "--alloc-fn=my_mal*", "--alloc-fn=none"];
    let run = run_with(&options, &[&program], dir.path());
    assert_eq!(run.processes.len(), 2, "the program, and its child");
    let text = String::from_utf8_lossy(&run.profiled.outcome.stdout).into_owned();
    let mut lines = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pid: i32 = words[0].parse().expect("a process");
        let (_, mem) = run.processes.iter().find(|(_, mem)| mem.head.pid == pid).expect("its file");
        let name = format!("heap@calls.c:{}", words[1]);
        let object = mem.objects.iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no {name}: {text}"));
        let counts = [object.counts[0], object.counts[2]].map(|n| n.to_string());
        assert_eq!(counts, words[2..4], "{name} of {pid}");
        // What is forked is one block in each process; of all else there is one a round.
        let forked = object.bytes == 4096;
        assert_eq!(object.blocks, if forked { 1 } else { 40 }, "{name} of {pid}");
        lines += 1;
    }
    assert_eq!(lines, 2 * 7, "{text}");
    let warned = "--alloc-fn=none: no function of what was mapped has this name";
    assert_eq!(run.profiled.log.matches(warned).count(), 1, "{}", run.profiled.log);
    assert!(!run.profiled.log.contains("--alloc-fn=m"), "{}", run.profiled.log);
}

/// As many blocks and bytes as DHAT counts.
#[test]
fn blocks_and_bytes_are_those_of_dhat() {
    if !tools::have(&["valgrind"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let totals = build("totals", &[], dir.path());
    let exceptions = Source::open("semantics", "corner_exceptions").build(dir.path(), false);
    for program in [totals, exceptions].map(|p| p.display().to_string()) {
        let out = dir.path().join("dhat.out");
        let words = ["valgrind", "--tool=dhat", &format!("--dhat-out-file={}", out.display()), &program];
        Job::new(words, dir.path()).native();
        let text = std::fs::read_to_string(&out).expect("what DHAT has written");
        let sum = |key: &str| {
            let key = format!("\"{key}\":");
            text.split(&key)
                .skip(1)
                .map(|rest| rest.split(',').next().and_then(|n| n.trim().parse::<u64>().ok()).expect("a number"))
                .sum::<u64>()
        };
        let run = run(&[&program], dir.path());
        let heap = || run.objects().iter().filter(|o| o.kind == Kind::Heap);
        let (blocks, bytes) = (heap().map(|o| o.blocks).sum::<u64>(), heap().map(|o| o.bytes).sum::<u64>());
        assert!(blocks > 1);
        assert_eq!((blocks, bytes), (sum("tbk"), sum("tb")), "{program}");
        let run = run_with(&["--D1=32768,8,64", "--collect-alloc=yes"], &[&program], dir.path());
        let counted = &run.processes[0].0;
        assert_eq!((counted["allocCount"], counted["allocSize"]), (sum("tbk"), sum("tb")), "{program}");
    }
}

/// The line of a program of `tests/objects` that this comment stands behind.
fn line_of(name: &str, comment: &str) -> u64 {
    let text = std::fs::read_to_string(Source::open("objects", name).path).expect("its source");
    let at = text.lines().position(|line| line.ends_with(&format!("// {comment}")));
    at.unwrap_or_else(|| panic!("no line of {name} is called {comment}")) as u64 + 1
}

/// Blocks and bytes of each chain of calls, by the comments behind them: with one caller, with two, and with more than there are, up to
/// `main`, on other threads and in handlers of signals. Misses sum to the profile's, however blocks are told apart.
#[test]
fn blocks_are_told_apart_by_their_callers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("depths", &[], dir.path()).display().to_string();
    let here = |comment| line_of("depths", comment);
    // Blocks and bytes that `take` has allocated, by the nearest callers, and whether threads are needed.
    let all: [(&[&str], u64, u64, bool); 7] = [
        (&["text", "main text"], 10, 110, false),
        (&["list", "main list"], 20, 1600, false),
        (&["main take"], 3, 3000, false),
        (&["main grown"], 1, 64, false),
        (&["text", "bottom", "deep", "deep", "deep", "deep", "deep", "main deep"], 1, 101, false),
        (&["handler"], 4, 96, false),
        (&["list", "thread"], 14, 336, true),
    ];
    for threads in [false, true] {
        let words: Vec<&str> = std::iter::once(program.as_str()).chain(threads.then_some("threads")).collect();
        for depth in [1, 2, 3, 32_usize] {
            let run = run_with(&["--D1=32768,8,64", &format!("--alloc-depth={depth}")], &words, dir.path());
            let mut expected: BTreeMap<Vec<u64>, (u64, u64)> = BTreeMap::new();
            for (callers, blocks, bytes, _) in all.into_iter().filter(|(.., of_thread)| threads || !of_thread) {
                let sum = expected.entry(callers.iter().take(depth - 1).map(|c| here(c)).collect()).or_default();
                *sum = (sum.0 + blocks, sum.1 + bytes);
            }
            let mut got: BTreeMap<Vec<u64>, (u64, u64)> = BTreeMap::new();
            for o in run.objects().iter().filter(|o| o.name == format!("heap@depths.c:{}", here("take"))) {
                assert!(o.callers.len() < depth && (depth == 1) == o.callers.is_empty(), "{o:?}");
                // What stands behind is the C library's, and another one elsewhere.
                let ours = o.callers.iter().take_while(|caller| caller.file.ends_with("/depths.c"));
                let sum = got.entry(ours.map(|caller| caller.line).collect()).or_default();
                *sum = (sum.0 + o.blocks, sum.1 + o.bytes);
                // A handler's caller is what the signal has interrupted, and not the code that it returns to.
                let handled = o.callers.first().is_some_and(|caller| caller.function == "handler");
                assert!(!handled || o.callers.get(1).is_none_or(|caller| !caller.function.contains('+')), "{o:?}");
            }
            assert_eq!(got, expected, "{depth}, {threads}");
        }
    }
}

/// `allocCount` and `allocSize` of the profile are the blocks and bytes of its objects, in programs of every kind; alone they need no
/// simulation, and they stand at the lines that allocate, for what is counted.
#[test]
fn calls_of_allocators_are_events() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let programs = [build("depths", &[], dir.path()), build("blocks", &[], dir.path())];
    let semantics = ["process_fork_tree", "corner_exceptions", "code_dlopen_dlclose"];
    let semantics = semantics.map(|name| Source::open("semantics", name).build(dir.path(), false));
    for program in programs.iter().chain(&semantics).map(|p| p.display().to_string()) {
        for threads in [None, Some("threads")] {
            let words: Vec<&str> = std::iter::once(program.as_str()).chain(threads).collect();
            let run = run_with(&["--D1=32768,8,64", "--collect-alloc=yes", "--alloc-depth=2"], &words, dir.path());
            for (totals, mem) in &run.processes {
                let heap = || mem.objects.iter().filter(|o| o.kind == Kind::Heap);
                let expected = [heap().map(|o| o.blocks).sum::<u64>(), heap().map(|o| o.bytes).sum::<u64>()];
                assert_eq!([totals["allocCount"], totals["allocSize"]], expected, "{words:?}");
            }
        }
    }
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let program = build("windows", &[&include], dir.path()).display().to_string();
    let take = line_of("windows", "take").to_string();
    for (options, count, bytes) in [
        (&[][..], 7 + 11, 7 * 100 + 11 * 1000),
        (&["--instr-at-start=no"], 11, 11 * 1000),
        (&["--branch-sim=yes"], 7 + 11, 7 * 100 + 11 * 1000),
        (&["--cache-sim=yes", "--reuse-dist=exact"], 7 + 11, 7 * 100 + 11 * 1000),
    ] {
        let mut profiler = tools::under_test().to_vec();
        profiler.push("--collect-alloc=yes".into());
        profiler.push(format!("--mem-out-file={}/mem", dir.path().display()));
        profiler.extend(options.iter().map(|o| (*o).to_owned()));
        let profiled = Job::new([program.as_str()], dir.path()).profiled(&profiler);
        let (_, profile) = &profiled.raw[0];
        let totals = totals(profile);
        assert_eq!((totals["allocCount"], totals["allocSize"]), (count, bytes), "{options:?}");
        let line = String::from_utf8_lossy(profile)
            .lines()
            .find(|line| line.starts_with(&format!("{take} ")))
            .map(str::to_owned);
        let expected = format!(" {count} {bytes}");
        assert!(line.as_ref().is_some_and(|line| line.ends_with(&expected)), "{line:?}, {options:?}");
    }
}

/// Blocks that a program tells of by requests hide the memory that they lie in, as long as they are there.
#[test]
fn blocks_are_those_that_requests_tell_of() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let program = build("pools", &[&include], dir.path()).display().to_string();
    let run = run_with(&["--D1=128,1,64"], &[&program], dir.path());
    let (expected, got) = (own_counts(&run, "pools.c"), run.misses(Kind::Heap));
    assert_eq!(expected.len(), 5);
    for (name, (reads, writes, _)) in expected {
        assert!(reads > 100 && writes > 100, "{name}");
        assert_eq!(got.get(&name), Some(&(reads, writes)), "{name} of {got:?}");
    }
    assert_eq!(run.processes[0].1.head.unknown_frees, 0);
    let pool = run.objects().iter().find(|o| o.kind == Kind::Heap && o.blocks == 40).expect("that of 2 blocks a round");
    assert_eq!((pool.bytes, pool.peak_bytes), (20 * 400, 400), "{}", pool.name);
}

/// Of a cache of 8 ways and 64 sets, in which the least recently used line goes: by lists.
#[derive(Default)]
struct Cache(BTreeMap<i64, Vec<(usize, i64)>>);

impl Cache {
    /// Whether an access to a byte of an array misses. Arrays begin with a page.
    fn misses(&mut self, array: usize, at: i64) -> bool {
        let (line, set) = ((array, at / 64), self.0.entry(at / 64 % 64).or_default());
        let there = set.iter().position(|l| *l == line).map(|n| set.remove(n)).is_some();
        set.push(line);
        if set.len() > 8 {
            set.remove(0);
        }
        !there
    }
}

/// An access of `steps.c`: the name of the line, the array, the byte in it.
type Step = (&'static str, &'static str, i64);

/// All that `steps.c` does.
fn steps() -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for i in (0..3).flat_map(|_| 0..10000) {
        all.extend([("triad", "a", 8 * i), ("triad", "b", 8 * i), ("triad", "c", 8 * i)]);
    }
    for (i, j) in (0..200).flat_map(|i| (0..200).map(move |j| (i, j))) {
        all.push(("transposition", "rows", 8 * (i * 200 + j)));
        all.push(("transposition", "columns", 8 * (j * 200 + i)));
    }
    all.extend((0..100_000).rev().map(|i| ("back", "back", 2 * i)));
    for _ in 0..500 {
        all.push(("here", "here", 12));
        all.extend((0..24).map(|j| ("there", "there", 4 * (j * 1024 + 3))));
    }
    let volume = (0..40).flat_map(|i| (0..50).flat_map(move |j| (0..60).map(move |k| 8 * ((k * 50 + j) * 40 + i))));
    all.extend(volume.map(|at| ("volume", "volume", at)));
    all.extend((0..8000).map(|i| ("table", "table", 24 * i + 8)));
    let rows = (0..2).flat_map(|_| (0..500).flat_map(|i| (0..100).map(move |j| 8 * (i * 130 + j))));
    all.extend(rows.map(|at| ("matrix", "matrix", at)));
    let mut state = 1u64;
    for _ in 0..50_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push(("all", "all", (state >> 44) as i64));
    }
    all
}

/// Streams unfold to the very addresses that missed, in order, as a list of all accesses and a slow cache have them; where they are
/// in no order, they are counted.
#[test]
fn streams_unfold_to_what_was_missed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("steps", &[], dir.path()).display().to_string();
    let run = run_with(&["--D1=32768,8,64", "--streams=misses"], &[&program], dir.path());
    let mem = &run.processes[0].1;
    let source = std::fs::read_to_string(Source::open("objects", "steps").path).expect("its source");
    let named =
        |line: u64| source.lines().nth(line as usize - 1).and_then(|l| l.split_once("; // ")).map(|(_, name)| name);
    let mut cache = Cache::default();
    let mut expected: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    let steps = steps();
    let mut arrays: Vec<&str> = steps.iter().map(|s| s.1).collect();
    arrays.sort_unstable();
    arrays.dedup();
    for (name, array, at) in steps {
        if cache.misses(arrays.binary_search(&array).expect("an array"), at) {
            expected.entry((name, array)).or_default().push(at as u64);
        }
    }
    let of_steps = |s: &&Stream| {
        let variable = mem.objects[s.object].kind == Kind::Variable;
        variable && s.file.ends_with("/steps.c") && named(s.line).is_some()
    };
    // A compiler may have made several instructions of a line, which are executed one after the other.
    let mut got: BTreeMap<(&str, &str), (Vec<u64>, u64, u64)> = BTreeMap::new();
    let of_cache = mem.head.streams.as_ref().expect("there are streams");
    assert_eq!(of_cache.others, 0);
    for stream in mem.streams.iter().filter(of_steps) {
        let key = (named(stream.line).expect("it has one"), mem.objects[stream.object].name.as_str());
        let grid = Grid { line: of_cache.line, size: stream.size };
        let (addresses, misses, irregular) = got.entry(key).or_default();
        addresses.extend(stream.parts.iter().flat_map(|part| part.addresses(0, grid)));
        (*misses, *irregular) = (*misses + stream.misses, *irregular + stream.irregular);
    }
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, (addresses, misses, irregular)) in got {
        let expected = &expected[&key];
        assert_eq!(misses, expected.len() as u64, "{key:?}");
        if key.0 == "all" {
            assert!(irregular > misses / 10 * 9, "{irregular} of {misses}");
        } else {
            assert!(irregular == 0 && addresses == *expected, "{key:?}: {irregular} of {misses} are irregular");
        }
    }
    // The laws hold beside contexts, forks and threads, too.
    for name in ["process_fork_tree", "thread_lock_free_stack", "signal_siglongjmp_out_of_handler"] {
        let program = Source::open("semantics", name).build(dir.path(), false).display().to_string();
        let run = run_with(&["--D1=32768,8,64", "--streams=misses"], &[&program], dir.path());
        assert!(run.processes.iter().all(|(_, mem)| !mem.streams.is_empty()), "{name}");
    }
}

/// Programs that fork, execute others, unload libraries, leave calls by exceptions and jumps, and have many threads.
#[test]
fn misses_of_objects_sum_to_the_profile() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in [
        "code_dlopen_dlclose",
        "corner_exceptions",
        "process_exec_self_again",
        "process_fork_tree",
        "signal_siglongjmp_out_of_handler",
        "thread_lock_free_stack",
        "thread_local_storage",
    ] {
        let program = Source::open("semantics", name).build(dir.path(), false).display().to_string();
        run(&[&program], dir.path());
    }
}

/// Without symbols there are neither blocks nor variables; the sums are right, and the user is told, once.
#[test]
fn a_program_without_symbols_has_its_misses() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("blocks", &["-static", "-s"], dir.path()).display().to_string();
    let run = run(&[&program], dir.path());
    assert!(run.misses(Kind::Heap).is_empty() && run.misses(Kind::Variable).is_empty());
    assert_eq!(run.profiled.log.matches("no allocator was found by its name").count(), 1, "{}", run.profiled.log);
}

/// What cannot be told by object is refused before the program runs.
#[test]
fn objects_need_caches() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (options, says) in [
        (&["--objects=yes"][..], "--objects=yes tells where misses of simulated caches are: add --cache-sim=yes"),
        (&["--cache-sim=yes", "--streams=misses"][..], "--streams=misses tells how data objects are walked over"),
        (&["--cache-sim=yes", "--streams=all"][..], "--streams"),
        (&["--cache-sim=yes", "--alloc-depth=2"], "--alloc-depth says which callers tell data objects apart"),
        (&["--cache-sim=yes", "--objects=yes", "--alloc-depth=33"], "--alloc-depth"),
        (
            &["--cache-sim=yes", "--alloc-fn=mine"][..],
            "--alloc-fn names what hands out data objects: add --objects=yes, or --collect-alloc=yes",
        ),
        (&["--tool=callgrind", "--objects=yes"], "--objects=yes tells where misses of simulated caches are"),
    ] {
        let words =
            tools::under_test().iter().map(String::as_str).chain(options.iter().copied()).chain(["echo", "ran"]);
        let outcome = Job::new(words, dir.path()).native();
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(!outcome.status.success() && outcome.stdout.is_empty() && text.contains(says), "{text}");
    }
}

/// What of a structure is missed: the link of each node, the value of every fourth, which is on another line, and the middle of entries.
#[test]
fn parts_of_objects_are_those_that_are_accessed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = build("fields", &[], dir.path()).display().to_string();
    let run = run(&[&program], dir.path());
    let (nodes, passes) = (20_000, 3);
    let fields = |name: &str| {
        let object = run.objects().iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no {name}"));
        let sum = |event: usize| object.fields.iter().map(|field| field.counts[event]).sum::<u64>();
        assert_eq!((0..4).map(sum).collect::<Vec<_>>(), object.counts, "{name}");
        object.fields.iter().map(|f| (f.offset, f.counts[0], f.counts[2])).collect::<Vec<_>>()
    };
    let node = fields(&format!("heap@fields.c:{}", line_of("fields", "node")));
    // (The allocator has taken the place of some lines before the next node is linked to.)
    let [(0, links, linked), (72, values, written)] = node[..] else { panic!("{node:?}") };
    assert_eq!((links, values, written), (passes * nodes, passes * nodes / 4, nodes));
    assert!((nodes..nodes + nodes / 100).contains(&linked), "{linked}");
    let wide: Vec<(u64, u64, u64)> = (0..8).map(|entry| (64 * entry + 24, passes, 0)).collect();
    assert_eq!(fields("wide"), wide);
    // Arrays are too large for that.
    let other = run_with(&["--D1=32768,8,64"], &[&build("steps", &[], dir.path()).display().to_string()], dir.path());
    assert!(other.objects().iter().filter(|o| o.bytes > 1024 && o.kind == Kind::Variable).all(|o| o.fields.is_empty()));
}

/// The columns of four arrays, as HYDRO's `conservar.c` goes over them: the report names the arrays, each with its steps, all its misses,
/// and what is lost of each line; and who does what the hint says, misses as much less often as the closed form says.
#[test]
fn blocking_by_the_hint_takes_what_the_closed_form_says() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = tools::workspace_root().join("docs/examples/conservar.c");
    let text = std::fs::read(&source).expect("its source");
    let arrays = ["density", "momentum_x", "momentum_y", "energy"];
    let (n, line, double) = (600, 64, 8);
    let run_in = |slices: u64| {
        let program = dir.path().join("conservar").display().to_string();
        let define = format!("-DSLICES={slices}");
        let source = source.display().to_string();
        compile(&["gcc", "-g", "-O1", &define, "-o", &program, &source].map(str::to_owned), dir.path());
        run_with(&["--D1=32768,8,64", "--streams=misses", "--alloc-fn=array"], &[&program], dir.path())
    };
    let reads = |run: &Run, array: &str| {
        let mem = &run.processes[0].1;
        let variable = |o: &Object| {
            let of = text.split(|b| *b == b'\n').nth((o.line as usize).wrapping_sub(1));
            notation::variable(o, of)
        };
        let of_array = mem.objects.iter().position(|o| o.kind == Kind::Heap && variable(o) == array);
        let object = of_array.unwrap_or_else(|| panic!("no {array}"));
        let alone = notation::alone(&mem.streams);
        let all = mem.streams.iter().zip(alone).filter(|(s, _)| s.object == object && s.access.word() == "read");
        let all: Vec<(Stream, bool)> = all.map(|(stream, alone)| (stream.clone(), alone)).collect();
        (mem.objects[object].counts[0], all)
    };
    let by_columns = run_in(1);
    let mut slices = Vec::new();
    for array in arrays {
        let (misses, streams) = reads(&by_columns, array);
        let [(stream, alone)] = &streams[..] else { panic!("{array}: {streams:?}") };
        // Between two accesses to a line lie the lines of a column of each array, many more than there are.
        assert_eq!((misses, stream.misses, stream.irregular), (n * n, n * n, 0), "{array}");
        let [part] = &stream.parts[..] else { panic!("{array}: {stream:?}") };
        assert_eq!(notation::part(stream, part, array, *alone), format!("read {array}[0:1:600 . 0:600:360000]"));
        assert_eq!(notation::used(stream, line, *alone), Some(double), "the rest is lost");
        let hint = notation::hint(stream, line).expect("one");
        let many = hint.split("take ").nth(1).and_then(|rest| rest.split(' ').next()).expect("how many");
        slices.push(many.parse::<u64>().expect("a number"));
    }
    assert_eq!(slices, [line / double; 4]);
    let blocked = run_in(slices[0]);
    let misses = |run: &Run| arrays.iter().map(|array| reads(run, array).0).sum::<u64>();
    // Each line once, but for a few that share a set with too many others.
    let once = 4 * n * n * double / line;
    let got = misses(&blocked);
    assert!((once..once + once / 200).contains(&got), "{got} of {}", misses(&by_columns));
    assert_eq!(misses(&by_columns), once * slices[0]);
}

/// Each walk over structures of a line each misses the member that it is made for, once for each structure: of variables, and of blocks
/// of which the line that allocates them says what they are. Of others there are no members, and never wrong ones.
#[test]
fn members_are_those_that_a_program_accesses() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let source = dir.path().join("members.c");
    std::fs::copy(&Source::open("objects", "members").path, &source).expect("a copy");
    for compiler in [&["gcc", "-O1"][..], &["gcc", "-O2", "-gdwarf-4"], &["clang", "-O1"]] {
        if compiler[0] != "gcc" && !tools::have(&[compiler[0]]) {
            continue;
        }
        let program = dir.path().join("members").display().to_string();
        let from = source.display().to_string();
        let words = compiler.iter().copied().chain(["-g", "-o", &program, &from]).map(str::to_owned);
        compile(&words.collect::<Vec<_>>(), dir.path());
        let got = run(&[&program], dir.path());
        let object = |name: &str| got.objects().iter().find(|o| o.name == name).unwrap_or_else(|| panic!("no {name}"));
        let heap = |marker: &str| object(&format!("heap@members.c:{}", line_of("members", marker)));
        let missed = |object: &Object, of: &str, bytes: u64| {
            let members = object.members.as_ref().unwrap_or_else(|| panic!("{compiler:?}: {}", object.name));
            assert_eq!((&*members.name, members.bytes), (of, bytes), "{compiler:?}");
            let sum = |event: usize| members.missed.iter().map(|member| member.counts[event]).sum::<u64>();
            assert_eq!((0..4).map(sum).collect::<Vec<_>>(), object.counts, "{compiler:?}");
            let rows = members.missed.iter().map(|m| (m.name.clone(), (m.offset, m.bytes, m.counts[0], m.counts[2])));
            rows.collect::<BTreeMap<_, _>>()
        };
        let all = 3 * 20_000;
        let entries = missed(object("entries"), "entry_t", 64);
        let expected = [
            ("key.length", (8, 4, all, 0)),
            ("value.number|text", (16, 8, all, 0)),
            ("at[].y", (26, 2, all, 0)),
            ("count", (44, 4, 0, all)),
        ];
        for (name, counts) in expected {
            assert_eq!(entries.get(name), Some(&counts), "{compiler:?}: {name} of {entries:?}");
        }
        // (Both bit-fields have bytes that are read.)
        let bits = entries.iter().filter(|(name, _)| name.contains("high")).map(|(_, counts)| counts.2).sum::<u64>();
        assert_eq!((bits, entries.len()), (all, 5), "{compiler:?}: {entries:?}");
        let copies = missed(heap("copies"), "entry_t", 64);
        let expected = [("at[].x", (24, 2, all, 0)), ("key.hash", (0, 8, 0, all))];
        assert_eq!(copies, expected.map(|(name, counts)| (name.to_owned(), counts)).into(), "{compiler:?}");
        let nodes = missed(heap("node"), "node", 64);
        let (offset, bytes, reads, writes) = nodes["value"];
        assert_eq!((offset, bytes, reads), (0, 8, all), "{compiler:?}: {nodes:?}");
        assert!(writes > 0 && nodes.len() == 1, "{nodes:?}");
        for other in ["two sizes", "another structure"] {
            assert_eq!(heap(other).members, None, "{compiler:?}: {other}");
            assert!(heap(other).counts[0] > 0);
        }
        assert!(got.objects().iter().all(|o| o.kind != Kind::Heap || o.members.is_none() || o.line > 0));
        // What nobody has shown to be what the program was made from says nothing.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
        std::fs::File::open(&source).and_then(|file| file.set_modified(later)).expect("a time");
        let again = run(&[&program], dir.path());
        let named = |kind| again.objects().iter().filter(|o| o.kind == kind && o.members.is_some()).count();
        assert_eq!(named(Kind::Heap), 0);
        assert!(named(Kind::Variable) > 0);
        std::fs::File::open(&source).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)).expect("a time");
    }
}

/// A loop of four instructions over what memory, or the last level, has: as many steps ahead as a miss takes turns. Lists have no hint, nor has
/// what the prefetcher of the run loads.
#[test]
fn hints_are_of_regular_streams_that_nothing_covers() {
    if !tools::have(&["nm"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    for flags in [&["-pie"][..], &["-no-pie", "-static"]] {
        let program = build("hints", flags, dir.path()).display().to_string();
        let symbols = std::process::Command::new("nm").arg(&program).output().expect("nm").stdout;
        let symbols = String::from_utf8_lossy(&symbols).into_owned();
        let address = |name: &str| {
            let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("a symbol");
            u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).expect("an address")
        };
        let of = |prefetcher: &str| {
            let out = dir.path().join("hints.csv");
            let hints = format!("--prefetch-hints={}", out.display());
            let chosen = format!("--prefetcher={prefetcher}");
            let run = run_with(&["--D1=32768,8,64", "--streams=misses", &hints, &chosen], &[&program], dir.path());
            let text = std::fs::read_to_string(out).expect("hints");
            // The streams have the same hints.
            let mut said: Vec<String> =
                text.lines().filter_map(|line| Some(line.split_once(',')?.1.to_owned())).collect();
            let streams = run.processes.iter().flat_map(|(_, mem)| &mem.streams).filter_map(|stream| stream.prefetch);
            let mut told: Vec<String> = streams.map(|ahead| format!("{},{}", ahead.delta, ahead.kind())).collect();
            said.sort();
            told.sort();
            assert_eq!(told, said, "{prefetcher}");
            let row = |line: &str| {
                let words: Vec<&str> = line.split(',').collect();
                let at =
                    words[0].strip_prefix("0x").and_then(|at| u64::from_str_radix(at, 16).ok()).expect("an address");
                (at, (words[1].parse::<i64>().expect("a number"), words[2].to_owned()))
            };
            text.lines().map(row).collect::<BTreeMap<_, _>>()
        };
        let got = of("none");
        for (site, expected) in [
            ("site_far", Some((8 * 25, "nta"))),
            ("site_near", Some((8 * 3, "t0"))),
            ("site_column", Some((4800 * 3, "t0"))),
            ("site_follow", None),
        ] {
            let hint = got.get(&address(site)).map(|(delta, kind)| (*delta, kind.as_str()));
            assert_eq!(hint, expected, "{flags:?}: {site} of {got:x?}");
        }
        let sites = |prefetcher: &str| {
            let got = of(prefetcher);
            ["site_far", "site_near", "site_column"].map(|site| got.contains_key(&address(site)))
        };
        assert_eq!(sites("nextline"), [false, false, true], "the next line is none of another row");
        assert_eq!(sites("stream"), [false, false, true], "each row is in another page");
        assert_eq!(sites("stride"), [false, false, false]);
    }
    for (words, says) in [
        (&["--cache-sim=yes", "--objects=yes", "--prefetch-hints=x"][..], "add --streams=misses"),
        (&["--tool=callgrind", "--streams=misses", "--prefetch-hints=x"], "--prefetch-hints"),
    ] {
        let words = tools::under_test().iter().map(String::as_str).chain(words.iter().copied()).chain(["echo", "ran"]);
        let outcome = Job::new(words, dir.path()).native();
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(!outcome.status.success() && outcome.stdout.is_empty() && text.contains(says), "{text}");
    }
}
