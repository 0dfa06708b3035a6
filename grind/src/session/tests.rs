//! Tests of what a run writes and logs, driven without an engine.

use grind_names::symbolizer::Nothing;
use grind_session::Counts;
use grind_types::addr::GuestAddr;
use grind_types::{InstructionCount, MappedFile, Module, Pid, StaticEvents};

use super::*;
use crate::options::{Request, parse, sources};
use std::fs;
use std::rc::Rc;

struct Run {
    folder: tempfile::TempDir,
    options: Options,
}

impl Run {
    /// Options as given; the log goes to the file `log`, the profiles to `out.PID`, unless said otherwise.
    fn new(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = format!("--cachegrind-out-file={}/out.%p", folder.path().display());
        let mut words: Vec<OsString> = vec![out.into()];
        words.extend(args.iter().map(|a| OsString::from(a.replace("@", &folder.path().display().to_string()))));
        words.push("prog".into());
        let Ok(Request::Run(options, ..)) = parse(&words, sources::environment, || (vec![], vec![])) else {
            panic!("{words:?}")
        };
        Self { folder, options: *options }
    }

    fn runner(&self) -> Runner<'_> {
        let target = match &self.options.log {
            crate::options::LogTarget::File(template) => Target::Each(template.clone()),
            crate::options::LogTarget::Fd(_) => {
                let file = crate::log::open(&self.folder.path().join("log")).unwrap();
                Target::Shared(Rc::new(file))
            }
        };
        let mut runner = Runner::new(Invocation::Grind, &self.options, target, Box::new(Nothing));
        runner.spare = self.folder.path().to_owned();
        runner
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

fn args(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn end(runner: &mut Runner<'_>, pid: Pid, counts: &[(u64, u64)]) {
    let modules = [Module {
        path: Some("/bin/prog".into()),
        file: Some(MappedFile::at("/bin/prog".as_ref()).into()),
        image: None,
        start: GuestAddr(0x1000),
        end: GuestAddr(0x2000),
        offset: 0,
    }];
    let counts: Vec<InstructionCount> = counts
        .iter()
        .map(|&(addr, count)| InstructionCount {
            module: 0,
            addr: GuestAddr(addr),
            len: 1,
            count,
            events: StaticEvents::default(),
            made: 0,
        })
        .collect();
    let counts = Counts::from(counts);
    runner.process_ends(&ProcessReport {
        pid,
        parent: None,
        exe: "/bin/prog".into(),
        args: args(&["prog", "a b"]),
        exit: None,
        modules: &modules,
        counts: &counts,
        contexts: &[],
        counting: true,
        threads: &[],
    });
}

fn whole_run(run: &Run) {
    let mut runner = run.runner();
    runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog", "a b"]));
    runner.client_print(Pid(7), b"hi\n");
    runner.forked(Pid(7), Pid(8));
    runner.client_print(Pid(8), b"child\n");
    end(&mut runner, Pid(8), &[(0x1000, 1)]);
    runner.redundant_instrumentation(Pid(7), Instrumentation::Start);
    end(&mut runner, Pid(7), &[(0x1000, 1_000_000), (0x1001, 234_567)]);
}

const BANNER: &str = "==7== Cachegrind, an exact instruction profiler\n\
    ==7== Copyright (C) 2026, and MIT or Apache-2.0 licensed, by the grind authors\n";

#[test]
fn a_run_is_logged_as_in_the_reference() {
    let run = Run::new(&[]);
    whole_run(&run);
    let expected = format!(
        "{BANNER}==7== Using grind-{}; rerun with -h for more\n\
         ==7== Command: prog a\\ b\n\
         ==7== \n\
         **7** hi\n\
         **8** child\n\
         ==8== \n\
         ==8== I refs:        1\n\
         ==8== \n\
         ==8== Profile: {out}.8\n\
         ==8== To read it: cg_annotate {out}.8\n\
         --7-- warning: CACHEGRIND_START_INSTRUMENTATION called,\n\
         --7--          but instrumentation is already enabled\n\
         ==7== \n\
         ==7== I refs:        1,234,567\n\
         ==7== Warning: 100% of the instructions are in code without names: the program or a library is stripped, or the \
         code was made at run time (grind doctor PROGRAM looks for names)\n\
         ==7== \n\
         ==7== Profile: {out}.7\n\
         ==7== To read it: cg_annotate {out}.7\n",
        crate::invocation::VERSION,
        out = run.folder.path().join("out").display()
    );
    assert_eq!(run.text("log"), expected);
    assert_eq!(run.text("out.7"), "cmd: prog a b\nevents: Ir\nfl=???\nfn=???\n0 1234567\nsummary: 1234567\n");
    assert_eq!(run.text("out.8"), "cmd: prog a b\nevents: Ir\nfl=???\nfn=???\n0 1\nsummary: 1\n");
}

#[test]
fn a_profile_whose_name_is_used_again_is_missed() {
    for (name, lost) in [("out.%p", true), ("out.%p.%n", false), ("out", false)] {
        let run = Run::new(&[&format!("--cachegrind-out-file=@/{name}")]);
        let mut runner = run.runner();
        runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog"]));
        for child in [8, 9, 8] {
            runner.forked(Pid(7), Pid(child));
            end(&mut runner, Pid(child), &[(0x1000, 1)]);
        }
        let log = run.text("log");
        assert_eq!(log.matches("an earlier process had the id 8, too").count(), usize::from(lost), "{name}: {log}");
        let profiles = fs::read_dir(run.folder.path()).unwrap().count() - 1;
        assert_eq!(
            profiles,
            if name == "out" {
                1
            } else if lost {
                2
            } else {
                3
            },
            "{name}"
        );
    }
}

#[test]
fn simulations_are_described_and_summed_up() {
    let caches = ["--I1=1024,1,64", "--D1=1024,2,64", "--LL=4096,4,64"];
    let run = Run::new(&["--cache-sim=yes", "--branch-sim=yes", caches[0], caches[1], caches[2], "-v"]);
    let mut runner = run.runner();
    runner.simulate(Simulation::new(&run.options).unwrap(), Findings::default());
    runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog"]));
    end(&mut runner, Pid(7), &[(0x1000, 1000)]);
    let log = run.text("log");
    let start = "==7== Cache configuration used:\n==7==   I1: 1,024 B, 1-way, 64 B lines\n\
         ==7==   D1: 1,024 B, 2-way, 64 B lines\n==7==   LL: 4,096 B, 4-way, 64 B lines\n";
    assert!(log.contains(start), "{log}");
    assert!(log.contains("==7== I refs:        1,000\n==7== I1  misses:        0\n"), "{log}");
    assert!(log.contains("==7== Mispred rate:    0.0% (0.0%     + 0.0%   )\n"), "{log}");
    let profile = run.text("out.7");
    assert!(profile.starts_with("desc: I1 cache:         1024 B, 64 B, direct-mapped\ndesc: D1"), "{profile}");
    assert!(profile.ends_with("summary: 1000 0 0 0 0 0 0 0 0 0 0 0 0\n"), "{profile}");
}

#[test]
fn quiet_runs_only_say_what_matters() {
    let run = Run::new(&["-q"]);
    whole_run(&run);
    assert_eq!(
        run.text("log"),
        "**7** hi\n**8** child\n--7-- warning: CACHEGRIND_START_INSTRUMENTATION called,\n\
         --7--          but instrumentation is already enabled\n"
    );
}

#[test]
fn silent_children_speak_again_after_exec() {
    let run = Run::new(&["--child-silent-after-fork=yes", "--trace-children=yes", "-q"]);
    let mut runner = run.runner();
    runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog"]));
    runner.forked(Pid(7), Pid(8));
    runner.client_print(Pid(8), b"unheard\n");
    runner.image_started(Pid(8), Some(Pid(7)), Path::new("/bin/other"), &args(&["other"]));
    runner.client_print(Pid(8), b"heard\n");
    end(&mut runner, Pid(8), &[]);
    assert_eq!(run.text("log"), "**8** heard\n");
    assert!(run.text("out.8").ends_with("summary: 0\n"));
}

#[test]
fn a_log_file_for_each_process() {
    let run = Run::new(&["--log-file=@/log.%p"]);
    whole_run(&run);
    let parent = nix::unistd::getppid();
    assert!(
        run.text("log.7").contains(&format!("==7== Command: prog a\\ b\n==7== Parent PID: {parent}\n==7== \n**7** hi"))
    );
    assert!(run.text("log.8").contains("==8== Command: prog a\\ b\n==8== Parent PID: 7\n==8== \n**8** child"));
}

#[test]
fn an_unwritable_profile_is_reported_and_kept() {
    let run = Run::new(&["--cachegrind-out-file=@/absent/out"]);
    let mut runner = run.runner();
    runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog"]));
    end(&mut runner, Pid(7), &[(0x1000, 3)]);
    let log = run.text("log");
    let folder = run.folder.path().display().to_string();
    let wanted = format!(
        "==7== \n==7== error: can't open output data file '{folder}/absent/out': No such file or directory\n\
         ==7==        ... so the profile is in '{folder}/out."
    );
    assert!(log.contains(&wanted), "{log}");
    let (_, last) = log.split_once("==7== I refs:        3\n").expect("a summary");
    assert!(last.contains(&format!("Profile: {folder}/out.")), "where it is: {last}");

    let mut runner = run.runner();
    runner.spare = run.folder.path().join("absent");
    runner.image_started(Pid(7), None, Path::new("/bin/prog"), &args(&["prog"]));
    end(&mut runner, Pid(7), &[(0x1000, 3)]);
    assert!(
        run.text("log").contains("==7==        ... so detailed results will be missing.\n==7== I refs:        3\n")
    );
}

#[test]
fn children_are_followed_as_the_options_say() {
    let follow = |options: &[&str], path: &str, arguments: &[&str]| {
        Run::new(options).runner().follow_exec(Pid(1), Path::new(path), &args(arguments))
    };
    assert!(!follow(&[], "/bin/sh", &["sh"]));
    assert!(follow(&["--trace-children=yes"], "/bin/sh", &["sh"]));
    assert!(!follow(&["--trace-children=yes", "--trace-children-skip=/usr/*,*/sh"], "/bin/sh", &["sh"]));
    assert!(follow(&["--trace-children=yes", "--trace-children-skip=sh"], "/bin/sh", &["sh"]));
    assert!(!follow(&["--trace-children=yes", "--trace-children-skip-by-arg=conf*"], "/bin/sh", &["sh", "conftest"]));
    assert!(follow(&["--trace-children=yes", "--trace-children-skip-by-arg=conf"], "/bin/sh", &["sh", "conftest"]));
}

#[test]
fn what_cannot_be_traced_is_left_alone_with_a_warning() {
    let run = Run::new(&["--trace-children=yes"]);
    let mut elf32 = b"\x7fELF\x01\x01\x01".to_vec();
    elf32.resize(64, 0);
    elf32[16] = 2;
    elf32[18] = 3;
    let path = run.folder.path().join("old");
    fs::write(&path, elf32).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut runner = run.runner();
    runner.log.begin(Pid(1), &mut Sequence::default());
    assert!(!runner.follow_exec(Pid(1), &path, &args(&["old"])));
    assert!(
        run.text("log").starts_with(&format!("==1== Warning: not profiled: {}: is a 32-bit program", path.display()))
    );
    // A program that does not exist fails natively; nothing is to be said about it.
    assert!(runner.follow_exec(Pid(1), Path::new("/nonexistent"), &args(&["x"])));
}

#[test]
fn notices_follow_verbosity() {
    for (options, expected) in
        [(&["-q"][..], ""), (&[][..], "==1== Warning: w\n"), (&["-v"][..], "==1== Warning: w\n--1-- d\n")]
    {
        let run = Run::new(options);
        let mut runner = run.runner();
        runner.log.begin(Pid(1), &mut Sequence::default());
        runner.notice(Pid(1), Notice::Warning("w".into()));
        runner.notice(Pid(1), Notice::Detail("d".into()));
        assert_eq!(run.text("log"), expected);
    }
}

/// The kernel puts an interpreter in front of a script, and grind a shell; nobody has typed them.
#[test]
fn a_script_is_called_what_was_typed() {
    let run = Run::new(&["--trace-children=yes"]);
    let mut runner = run.runner();
    runner.runs(&args(&["./s", "a b"]));
    runner.image_started(Pid(7), None, Path::new("/bin/sh"), &args(&["/bin/sh", "-e", "./s", "a b"]));
    assert!(runner.follow_exec(Pid(7), Path::new("/bin/true"), &args(&["s2", "x"])));
    runner.image_started(Pid(7), None, Path::new("/bin/sh"), &args(&["/bin/sh", "/tmp/s2", "x"]));
    runner.forked(Pid(7), Pid(8));
    // Not a script: the words are those that the program got.
    assert!(runner.follow_exec(Pid(8), Path::new("/bin/true"), &args(&["other", "x"])));
    runner.image_started(Pid(8), Some(Pid(7)), Path::new("/bin/other"), &args(&["other", "x"]));
    end(&mut runner, Pid(7), &[(0x1000, 1)]);
    let log = run.text("log");
    let commands: Vec<&str> = log.lines().filter_map(|line| line.split_once("Command: ")).map(|(_, c)| c).collect();
    assert_eq!(commands, ["./s a\\ b", "s2 x", "other x"]);
    assert!(run.text("out.7").starts_with("cmd: s2 x\n"));
}
