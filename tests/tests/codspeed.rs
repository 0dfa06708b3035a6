//! What CodSpeed's runner asks for when it runs benchmarks: its command lines, and what its own fork of Valgrind does beyond Valgrind.
//! A forked process counts from zero, parts tell which processes were created in them, and threads have the kernel's numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_format::callgrind::{Part, Profile, Site, read_profile};
use grind_tests::build;
use grind_tests::run::{Job, Profiled};
use grind_tests::tools;

/// What the runner passes in any case.
const ALWAYS: [&str; 12] = [
    "-q",
    "--trace-children=yes",
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=8388608,16,64",
    "--collect-systime=nsec",
    "--read-inline-info=yes",
    "--tool=callgrind",
    "--compress-strings=no",
    "--combine-dumps=yes",
    "--dump-line=no",
];

/// What it adds for a single process, and where it follows processes.
const SINGLE: [&str; 3] = ["--instr-atstart=no", "--separate-threads=no", "--trace-children-skip=*esbuild"];
const FOLLOWING: [&str; 5] = [
    "--instr-atstart=inherit",
    "--separate-threads=yes",
    "--cycle-estimation=yes",
    "--trace-children-skip=*esbuild",
    "--fair-sched=yes",
];

fn built(dir: &Path) -> PathBuf {
    let program = dir.join("spawned");
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let source = tools::fixtures("calls").join("spawned.c").display().to_string();
    let mut words: Vec<String> = ["gcc", "-O1", "-g", "-pthread"].map(str::to_owned).to_vec();
    words.extend([include, "-o".into(), program.display().to_string(), source]);
    build::compile(&words, dir);
    program
}

/// A run, by process, and what the program says of its processes and threads.
struct Run {
    profiles: BTreeMap<u64, Profile>,
    said: BTreeMap<String, u64>,
}

fn profiled(options: &[&str], words: Vec<String>, dir: &Path) -> Profiled {
    let profiler = tools::under_test().iter().cloned().chain(options.iter().map(|&word| word.to_owned()));
    let done = Job::new(words, dir).profiled(&profiler.collect::<Vec<_>>());
    assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
    done.check_calls();
    done
}

fn run(options: &[&str], program: &Path, before: u64, dir: &Path) -> Run {
    let done = profiled(options, vec![program.display().to_string(), before.to_string()], dir);
    let text = String::from_utf8(done.outcome.stdout.clone()).expect("what the program says");
    let said = text.lines().map(|line| {
        let (what, id) = line.split_once(' ').expect("a name and a number");
        (what.to_owned(), id.parse().expect("a number"))
    });
    let read = |(id, raw): &(String, Vec<u8>)| {
        let profile = read_profile(&raw[..], id).expect("a profile");
        (profile.header.pid.expect("its process"), profile)
    };
    let profiles: BTreeMap<u64, Profile> = done.raw.iter().map(read).collect();
    assert_eq!(profiles.len(), done.raw.len());
    Run { profiles, said: said.collect() }
}

/// What a process has collected of the first event.
fn cost(profile: &Profile) -> i128 {
    profile.parts.iter().map(|part| part.total()[0]).sum()
}

fn descriptions(part: &Part) -> Vec<String> {
    part.header.desc.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
}

/// The processes that a part says were created in it.
fn spawned(part: &Part) -> Vec<u64> {
    let of = |line: &String| line.strip_prefix("Spawned pid: ").map(|pid| pid.parse().expect("a number"));
    descriptions(part).iter().filter_map(of).collect()
}

/// Self costs of a function, all parts together.
fn own(profile: &Profile, name: &str) -> i64 {
    let bodies = profile.parts.iter().flat_map(|part| part.bodies());
    let bodies = bodies.filter(|body| profile.names.function_name(body.function) == name.as_bytes());
    let rows = bodies.flat_map(|body| {
        body.entries.iter().map(|entry| match entry.site {
            Site::Row { costs } => body.costs(costs)[0],
            _ => 0,
        })
    });
    rows.sum()
}

#[test]
fn forked_processes_count_from_zero_and_parts_tell_of_them() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built(dir.path());
    let ways: [&[&str]; 4] = [
        &["--tool=callgrind", "--combine-dumps=yes", "--fork-costs=zero", "--separate-threads=system"],
        &["--tool=callgrind", "--combine-dumps=yes", "--instr-atstart=inherit", "--separate-threads=yes"],
        &[
            "--tool=callgrind",
            "--combine-dumps=yes",
            "--fork-costs=zero",
            "--separate-threads=system",
            "--tell-calls=yes",
        ],
        &[&ALWAYS[..], &FOLLOWING].concat(),
    ];
    for way in ways {
        let runs = [1000, 50_000].map(|before| run(way, &program, before, dir.path()));
        let children = runs.each_ref().map(|run| ["first", "second"].map(|name| cost(&run.profiles[&run.said[name]])));
        let works = runs.each_ref().map(|run| own(&run.profiles[&run.said["first"]], "work"));
        assert!(works[0] > 300 && works[0] == works[1] && works[0] < 1000, "{way:?}: {works:?}");
        // What a parent did before is in its own profile only. Exit handlers and the like are of constant length.
        assert_eq!(children[0], children[1], "{way:?}");
        for Run { profiles, said } in &runs {
            let parent = &profiles[&said["main"]];
            let parts = |n: u64| parent.parts.iter().filter(move |part| part.header.number == Some(n));
            let threads = |n: u64| parts(n).map(|part| part.header.thread.expect("a thread")).collect::<Vec<_>>();
            assert_eq!(threads(1), [said["main"]], "{way:?}");
            let mut both = [said["main"], said["thread"]];
            both.sort_unstable();
            assert_eq!(threads(2), both, "{way:?}");
            // Nobody has waited or worked since but the first one.
            assert_eq!(threads(3), [said["main"]], "{way:?}");
            for part in parts(1) {
                assert_eq!(spawned(part), [said["first"]], "{way:?}");
                assert!(descriptions(part).contains(&"described: here".to_owned()), "{way:?}");
            }
            parts(2).for_each(|part| assert_eq!(spawned(part), [said["second"], said["third"]], "{way:?}"));
            for part in parts(3) {
                assert!(spawned(part).is_empty() && !descriptions(part).contains(&"described: here".to_owned()));
            }
            // A child has no part of its parent's, and its one thread is itself.
            let child = &profiles[&said["first"]];
            let header = &child.parts[0].header;
            assert_eq!((child.parts.len(), header.number, header.thread), (1, Some(1), Some(said["first"])), "{way:?}");
            assert!(!descriptions(&child.parts[0]).iter().any(|line| line.starts_with("described")), "{way:?}");
        }
    }
}

/// In Valgrind's place a forked process has what its parent had collected, threads are numbered from 1, and nothing else is told.
#[test]
fn by_default_forked_processes_inherit() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built(dir.path());
    for way in [
        &["--tool=callgrind", "--combine-dumps=yes", "--separate-threads=yes"][..],
        &["--tool=callgrind", "--combine-dumps=yes", "--instr-atstart=inherit", "--fork-costs=inherit"],
        &["--tool=callgrind", "--combine-dumps=yes", "--instr-atstart=no"],
    ] {
        let runs = [1000, 50_000].map(|before| run(way, &program, before, dir.path()));
        let works = runs.each_ref().map(|run| own(&run.profiles[&run.said["first"]], "work"));
        assert!(works[1] > works[0] + 49_000 * 3, "{way:?}: {works:?}");
        let all = runs.iter().flat_map(|run| run.profiles.values()).flat_map(|profile| &profile.parts);
        let small = |part: &Part| spawned(part).is_empty() && part.header.thread.is_none_or(|thread| thread < 3);
        assert!(all.clone().count() > 6 && all.clone().all(small), "{way:?}");
    }
}

/// The runner's whole lines, around a script as it has one; where Valgrind knows what is passed, counts are Valgrind's.
#[test]
fn the_command_lines_of_the_runner_work() {
    if !tools::have(&["gcc", "bash"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let program = built(dir.path());
    let script = dir.path().join("script.sh");
    std::fs::write(&script, "#!/usr/bin/env bash\nbash -c \"$1\"\nstatus=$?\necho -n \"$status\" > \"$2\"\n")
        .expect("a script");
    let status = dir.path().join("status");
    let of_work = |options: &[&str], profiler: &[String]| -> (i64, Vec<String>) {
        let words = ["bash".to_owned(), script.display().to_string(), format!("{} 1000", program.display())];
        let job = Job::new(words.into_iter().chain([status.display().to_string()]), dir.path());
        let words = profiler.iter().cloned().chain(options.iter().map(|&option| option.to_owned()));
        let done = job.profiled(&words.collect::<Vec<_>>());
        assert_eq!(done.outcome.status.code(), Some(0), "{options:?}: {}\n{}", done.outcome.show(), done.log);
        assert_eq!(std::fs::read_to_string(&status).expect("a status"), "0", "{options:?}");
        // As Valgrind says where it has the last level from, though it is given. Older ones say more.
        let said = |line: &&str| profiler == tools::under_test() && !line.contains("L3 cache found");
        assert_eq!(done.log.lines().find(said), None, "{options:?}");
        assert!(done.outcome.stderr.is_empty(), "{options:?}: {}", done.outcome.show());
        let mut events = Vec::new();
        let mut work = 0;
        for (id, raw) in &done.raw {
            let profile = read_profile(&raw[..], id).expect("a profile");
            let command = String::from_utf8_lossy(&profile.header.cmd).into_owned();
            if command.contains("spawned 1000") && !command.contains("bash") {
                events = profile.parts[0].header.events.clone();
                // Only the process that says so, not what it forks.
                work = work.max(own(&profile, "work"));
            }
        }
        (work, events)
    };
    let skipped = ["--obj-skip=/usr/bin/bash", "--obj-skip=/nowhere/libpython.so"];
    let single = [&ALWAYS[..], &SINGLE, &skipped].concat();
    let following = [&ALWAYS[..], &FOLLOWING, &skipped].concat();
    let (work, events) = of_work(&single, tools::under_test());
    let caches = "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw sysCount sysTime sysCpuTime";
    assert_eq!(events.join(" "), caches);
    let (following, events) = of_work(&following, tools::under_test());
    assert_eq!(events.join(" "), format!("{caches} Ct Cl Cb"));
    assert!(work > 3 * 1000 && following >= work, "{work} {following}");
    if tools::have(&["valgrind"]) {
        let known: Vec<&str> = single.iter().copied().filter(|o| !o.starts_with("--obj-skip")).collect();
        assert_eq!(of_work(&known, &tools::valgrind()).0, work);
    }
}
