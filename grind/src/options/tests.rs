//! Tests of the command line: every source of options, every kind of value, every refusal.

use super::*;
use std::os::unix::ffi::OsStringExt;

fn environment(name: &OsStr) -> Option<OsString> {
    (name == "HERE").then(|| OsString::from("here"))
}

fn parse_with(args: &[&str], further: &[&str]) -> Result<Request, UsageError> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    let words = further.iter().map(OsString::from).collect();
    parse(&args, environment, || (vec![Source { name: "test".into(), words }], vec![]))
}

fn run(args: &[&str]) -> (Options, Vec<OsString>) {
    match parse_with(args, &[]) {
        Ok(Request::Run(options, program, _)) => (*options, program),
        other => panic!("{args:?} gave {other:?}"),
    }
}

fn error(args: &[&str]) -> String {
    parse_with(args, &[]).unwrap_err().to_string()
}

const MORE: &str = "\nUse --help for more information or consult the user manual.";

#[test]
fn options_end_at_the_program() {
    let (options, program) = run(&["-q", "ls", "-v", "--bogus"]);
    assert_eq!(options.verbosity, 0);
    assert_eq!(program, ["ls", "-v", "--bogus"]);
    let (_, program) = run(&["-q", "--", "-strange", "--"]);
    assert_eq!(program, ["-strange", "--"]);
}

#[test]
fn without_a_program_there_is_nothing_to_do() {
    for args in [&[][..], &["--"], &["-q"], &["--tool=cachegrind"], &["--tool=callgrind", "--dump-instr=yes"]] {
        assert_eq!(error(args), "no program specified\nUse --help for more information.");
    }
}

#[test]
fn every_setting_is_set() {
    let (o, _) = run(&["x"]);
    assert_eq!((o.verbosity, o.trace_children, o.child_silent_after_fork, o.time_stamp), (1, false, false, false));
    assert_eq!((o.demangle, o.show_below_main, o.instr_at_start, o.cpu), (true, false, true, CpuModel::Baseline));
    assert_eq!(o.log, LogTarget::Fd(2));
    assert!(o.out_file.has_pid());

    let (o, _) = run(&[
        "--trace-children=yes",
        "--trace-children-skip=*/a,b",
        "--trace-children-skip-by-arg=c",
        "--child-silent-after-fork=yes",
        "--time-stamp=yes",
        "--demangle=no",
        "--show-below-main=yes",
        "--instr-at-start=no",
        "--cpu=host",
        "--extra-debuginfo-path=/a",
        "--extra-debuginfo-path=/b",
        "--log-file=l.%p",
        "--cachegrind-out-file=%q{HERE}",
        "-v",
        "--verbose",
        "x",
    ]);
    assert_eq!((o.verbosity, o.trace_children, o.child_silent_after_fork, o.time_stamp), (3, true, true, true));
    assert_eq!((o.demangle, o.show_below_main, o.instr_at_start, o.cpu), (false, true, false, CpuModel::Host));
    assert_eq!((o.skip.len(), o.skip_by_arg.len()), (2, 1));
    assert_eq!(o.debug_folders, [PathBuf::from("/a"), PathBuf::from("/b")]);
    assert!(matches!(o.log, LogTarget::File(_)));
    assert_eq!(o.out_file.fixed_name(), Some("here".into()));
    let (o, _) = run(&["--log-file=x", "--log-fd=7", "x"]);
    assert_eq!(o.log, LogTarget::Fd(7), "the last one counts");
}

#[test]
fn wrong_options_are_refused() {
    assert_eq!(error(&["--bogus-thing", "x"]), format!("Unknown option: --bogus-thing{MORE}"));
    assert_eq!(error(&["-z", "x"]), format!("Unknown option: -z{MORE}"));
    assert_eq!(
        error(&["--trace-childern=yes", "x"]),
        format!("Unknown option: --trace-childern=yes\nDid you mean '--trace-children=yes'?{MORE}")
    );
    assert_eq!(
        error(&["--instr-atstart=no", "x"]),
        format!(
            "Unknown option: --instr-atstart=no\nIt is an option of callgrind: it needs --tool=callgrind.\nDid you mean \
             '--instr-at-start=no'?{MORE}"
        )
    );
    assert_eq!(
        error(&["--dump-instr=yes", "x"]),
        format!("Unknown option: --dump-instr=yes\nIt is an option of callgrind: it needs --tool=callgrind.{MORE}")
    );
    assert_eq!(
        error(&["--trace-children", "x"]),
        format!("Bad option: --trace-children\nMissing boolean value, did you mean '--trace-children=yes'?{MORE}")
    );
    assert_eq!(error(&["--log-file=", "x"]), format!("Bad option: --log-file=\nNo filename given{MORE}"));
    assert_eq!(
        error(&["--log-file=%q{NO}", "x"]),
        format!("Bad option: --log-file=%q{{NO}}\nEnvironment variable 'NO' is not set{MORE}")
    );
    assert_eq!(error(&["--log-fd=x", "x"]), format!("Bad option: --log-fd=x\nInvalid integer value 'x'{MORE}"));
    assert!(error(&["--quiet=yes", "x"]).contains("'--quiet' takes no value"));
}

#[test]
fn what_is_lacking_is_refused_and_its_absence_accepted() {
    run(&["--vgdb=no", "--xml=no", "--stats=no", "x"]);
    for word in ["--vgdb=full", "--xml=yes", "--stats=yes"] {
        assert!(error(&[word, "x"]).starts_with(&format!("Bad option: {word}\nNot supported: ")), "{word}");
    }
    assert!(error(&["--xml", "x"]).contains("did you mean '--xml=yes'"));
    assert_eq!(
        error(&["--tool=massif", "x"]),
        format!("failed to start tool 'massif': this version has cachegrind, callgrind only{MORE}")
    );
}

#[test]
fn caches_are_chosen() {
    let (o, _) = run(&["x"]);
    assert_eq!((o.cache_sim, o.branch_sim, o.caches), (false, false, Given::default()));
    assert!(!o.objects && o.mem_out_file().has_pid() && !o.live);
    assert!(run(&["--live", "x"]).0.live && error(&["--live=yes", "x"]).contains("'--live' takes no value"));
    let (o, _) = run(&["--objects=yes", "--mem-out-file=x", "x"]);
    assert!(o.objects && !o.streams && !o.mem_out_file().has_pid());
    let (o, _) = run(&["--objects=yes", "--streams=misses", "x"]);
    assert!(o.objects && o.streams && o.prefetch_hints.is_none());
    assert!(
        run(&["--streams=misses", "--prefetch-hints=h.%p", "x"]).0.prefetch_hints.is_some_and(|file| file.has_pid())
    );
    assert_eq!((o.distances, o.sharing), (distances::Wanted::default(), None));
    let sharing = |words: &[&str]| run(words).0.sharing;
    assert_eq!(sharing(&["--sharing=lines", "x"]), Some(Detail::Lines));
    assert_eq!(sharing(&["--sharing=counts", "x"]), Some(Detail::Counts));
    assert_eq!(sharing(&["--sharing=order", "x"]), Some(Detail::Order));
    assert_eq!(sharing(&["--sharing=lines", "--sharing=no", "x"]), None);
    let (o, _) = run(&["--reuse-dist=exact", "--reuse-sample=64", "x"]);
    assert_eq!(o.distances, distances::Wanted { which: Some(distances::Which::Exact), sample: Some(64) });
    let (o, _) = run(&["--reuse-dist=bounds", "x"]);
    assert_eq!(o.distances, distances::Wanted { which: Some(distances::Which::Bounds), sample: None });
    let (o, _) = run(&["--reuse-dist=exact", "--reuse-dist=no", "--reuse-sample=8", "--reuse-sample=0", "x"]);
    assert_eq!(o.distances, distances::Wanted::default());
    assert!(error(&["--reuse-sample=12", "x"]).contains("another power of two"));
    let (o, _) = run(&["--objects=yes", "--alloc-depth=4", "--collect-alloc=yes", "x"]);
    assert_eq!((o.alloc_depth, o.collect_alloc), (4, true));
    assert!(error(&["--alloc-depth=33", "x"]).contains("--alloc-depth=33"));
    let (o, _) = run(&["--objects=yes", "--alloc-fn=mine", "--alloc-fn=other,2,1", "x"]);
    assert_eq!(o.alloc_fns, ["mine", "other,2,1"].map(|text| AllocFn::parse(OsStr::new(text)).expect("one")));
    assert!(error(&["--alloc-fn=mine,4", "x"]).contains("'4' is no argument's number: they are 1 to 3"));
    let (o, _) = run(&["--cache-sim=yes", "--branch-sim=yes", "--I1=1024,2,32", "--D1=64,1,16", "--LL=4096,4,64", "x"]);
    let cache = |size, assoc, line| cg_sim::Geometry::new(size, assoc, line).ok();
    assert_eq!((o.cache_sim, o.branch_sim), (true, true));
    assert_eq!(o.caches, Given { i1: cache(1024, 2, 32), d1: cache(64, 1, 16), ll: cache(4096, 4, 64) });
    let (o, _) = run(&["--LL=4096,4,64", "--LL=8192,1,32", "--cache-sim=yes", "--cache-sim=no", "x"]);
    assert_eq!((o.cache_sim, o.caches.ll), (false, cache(8192, 1, 32)));

    // Found by asking Valgrind, but for "valgrind: " in front of every line.
    for (word, before, why) in [
        ("--D1=32768,8,48", "Cache set count is not a power of two.\n", "Bad argument '32768,8,48'"),
        ("--I1=32768,8,8", "Cache line size is too small.\n", "Bad argument '32768,8,8'"),
        ("--LL=64,1,64", "Cache size <= line size.\n", "Bad argument '64,1,64'"),
        ("--D1=0,0,0", "Cache line size is zero.\n", "Bad argument '0,0,0'"),
        ("--L2=1,2", "", "Bad argument '1,2'"),
        ("--D1=", "", "Bad argument ''"),
        ("--D1=99999999999,8,64", "", "One of the cache parameters was too large and overflowed."),
    ] {
        assert_eq!(error(&[word, "x"]), format!("{before}Bad option: {word}\n{why}{MORE}"));
    }
    assert!(error(&["--D1", "x"]).contains("Missing value, expected '--D1=<size,assoc,line_size>'"));
}

#[test]
fn tlbs_are_chosen() {
    use cg_sim::machine::Machine;
    use cg_sim::tlb::{Shape, Tlbs};
    let (o, _) = run(&["x"]);
    assert_eq!((o.tlbs, o.tlbs.tlbs(None), o.tlbs.option()), (tlbs::Wanted::default(), None, None));
    let shape = |entries, ways| Shape::new(entries, ways).expect("a shape");
    let (o, _) = run(&["--tlb-sim=yes", "--DTLB=32,2", "--STLB=512,8", "x"]);
    assert_eq!(o.tlbs.tlbs(None), Some(Tlbs { data: shape(32, 2), code: shape(128, 8), second: Some(shape(512, 8)) }));
    let machine = Machine::by_name("skylake");
    let (o, _) = run(&["--tlb-sim=yes", "--ITLB=16,4", "x"]);
    assert_eq!(
        o.tlbs.tlbs(machine),
        Some(Tlbs { data: shape(64, 4), code: shape(16, 4), second: Some(shape(1536, 12)) })
    );
    for word in ["--DTLB=4,2", "--ITLB=4,2", "--STLB=4,2"] {
        assert_eq!(run(&[word, "x"]).0.tlbs.option(), word.split('=').next());
    }
    assert!(!run(&["--tlb-sim=yes", "--tlb-sim=no", "x"]).0.tlbs.simulated);
    for (word, why) in [
        ("--DTLB=64", "Bad argument '64', should be ENTRIES,WAYS"),
        ("--ITLB=0,1", "Bad argument '0,1', should have 1 to 65536 entries"),
        ("--STLB=96,4", "Bad argument '96,4', the entries should be a power of two of sets of so many ways"),
    ] {
        assert_eq!(error(&[word, "x"]), format!("Bad option: {word}\n{why}{MORE}"));
    }
}

#[test]
fn levels_are_chosen() {
    use cg_sim::beyond::Inclusion;
    use cg_sim::policy::Policy;
    use cg_sim::prefetch::Prefetch;
    let (o, _) = run(&["x"]);
    assert_eq!((o.levels, o.levels.option()), (levels::Wanted::default(), None));
    let words = ["--cache-sim=yes", "--L2=4096,4,64,plru", "--LL=8192,4,64,random:7", "--inclusion=exclusive"];
    let (o, _) = run(&[&words[..], &["--prefetcher=stride", "x"]].concat());
    let cache = |size, assoc, line| cg_sim::Geometry::new(size, assoc, line).unwrap();
    let found = o.levels.levels(o.caches, o.caches.ll.unwrap());
    assert_eq!(
        (found.second, found.last),
        (Some((cache(4096, 4, 64), Policy::Plru)), (cache(8192, 4, 64), Policy::Random(7)))
    );
    assert_eq!((found.inclusion, found.prefetch), (Inclusion::Exclusive, Prefetch::Stride));
    // What is given goes before what a machine has, wherever it stands.
    for words in [["--machine=skylake", "--LL=8192,4,64"], ["--LL=8192,4,64", "--machine=skylake"]] {
        let (o, _) = run(&[&words[..], &["--inclusion=none", "--I1=1024,2,64", "x"]].concat());
        let given = o.levels.given(o.caches);
        assert_eq!((given.i1, given.d1), (Some(cache(1024, 2, 64)), Some(cache(32768, 8, 64))));
        let found = o.levels.levels(o.caches, given.ll.unwrap());
        assert_eq!((found.last, found.inclusion), ((cache(8192, 4, 64), Policy::Lru), Inclusion::None));
        assert_eq!(found.second.map(|(shape, _)| shape), Some(cache(262_144, 4, 64)));
    }
    // As Valgrind's, any of them switches callgrind's simulation on.
    for word in ["--L2=4096,4,64", "--inclusion=none", "--prefetcher=none", "--machine=zen3", "--LL=4096,4,64,fifo"] {
        let (o, _) = run(&["--tool=callgrind", word, "x"]);
        assert!(o.cache_sim, "{word}");
    }
    assert!(matches!(parse_with(&["--machine=help"], &[]), Ok(Request::Machines)));
    assert_eq!(levels::machines().matches("\n    --L2=").count(), cg_sim::machine::MACHINES.len());
    assert!(error(&["--machine=", "x"]).contains("should be help or one of skylake, "));
    assert!(error(&["--I1=1024,2,64,fifo", "x"]).contains("Not supported: fifo in a first-level cache"));
    run(&["--I1=1024,2,64,lru", "x"]);
}

#[test]
fn what_has_no_meaning_is_accepted_if_well_formed() {
    run(&["--error-exitcode=0", "--fair-sched=try", "--num-callers=50", "--vex-guest-chase=no", "-s", "x"]);
    assert!(error(&["--num-callers=501", "x"]).contains("must be between 1 and 500"));
    assert!(error(&["--fair-sched=maybe", "x"]).contains("should be 'yes', 'try' or 'no'"));
    assert!(error(&["--sim-hints=foo", "x"]).contains("foo is an invalid sim-hints set"));
}

#[test]
fn help_and_version_come_before_errors() {
    assert!(matches!(parse_with(&["--bogus", "--version"], &[]), Ok(Request::Version { verbose: false })));
    assert!(matches!(parse_with(&["--version", "-v"], &[]), Ok(Request::Version { verbose: true })));
    assert!(matches!(parse_with(&["--tool=cachegrind", "-h"], &[]), Ok(Request::Help { debug: false })));
    assert!(matches!(parse_with(&["--help-debug"], &["--bogus"]), Ok(Request::Help { debug: true })));
}

#[test]
fn prefixes_choose_the_tool() {
    let (o, _) = run(&["--cachegrind:--instr-at-start=no", "--memcheck:--leak-check=full", "x"]);
    assert!(!o.instr_at_start);
    let words = ["--memcheck:leak-check=no", "--callgrind:dump-instr=yes", "--cachegrind:cache-sim=yes"];
    let (o, _) = run(&[&words[..], &["x"]].concat());
    assert!(o.cache_sim && !o.callgrind.dump_instr);
    let (o, _) = run(&[&["--tool=callgrind"], &words[..], &["x"]].concat());
    assert!(!o.cache_sim && o.callgrind.dump_instr);
    // From files and variables, too.
    let Ok(Request::Run(o, ..)) = parse_with(&["--tool=callgrind", "x"], &words) else { panic!() };
    assert!(!o.cache_sim && o.callgrind.dump_instr);
    assert!(error(&["--bogus:--leak-check=full", "x"]).starts_with("Unknown option: --bogus:--leak-check=full"));
}

#[test]
fn who_wants_a_tool_of_valgrinds_is_known() {
    for (args, wanted) in [
        (&["--tool=dhat", "x"][..], Some("dhat")),
        (&["--leak-check=full", "x"], Some("memcheck")),
        (&["--tool=cachegrind", "--leak-check=full", "x"], None),
        (&["--stacks=yes", "x"], None),
        (&["--bogus", "x"], None),
        (&["--log-fd=x", "x"], None),
        (&[], None),
    ] {
        let error = parse_with(args, &[]).unwrap_err();
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        assert_eq!(error.wants_another_tool(&args).as_deref(), wanted, "{args:?}");
    }
    assert!(error(&["--leak-check=full", "x"]).contains("option of Valgrind's memcheck, which grind does not have"));
}

#[test]
fn the_command_line_comes_last_and_can_stand_alone() {
    let Ok(Request::Run(o, ..)) = parse_with(&["--time-stamp=no", "x"], &["--time-stamp=yes", "-q"]) else { panic!() };
    assert!(!o.time_stamp);
    assert_eq!(o.verbosity, 0);
    let Ok(Request::Run(o, ..)) = parse_with(&["--command-line-only=yes", "x"], &["-q"]) else { panic!() };
    assert_eq!(o.verbosity, 1);
    // A word that is no option, from a file: the command line's rule that it starts the program does not hold there.
    assert!(matches!(parse_with(&["x"], &["program"]), Err(UsageError::Unknown { .. })));
}

#[test]
fn options_say_how_names_are_shown_and_where_they_are_looked_for() {
    let words =
        ["--demangle=no", "--show-below-main=yes", "--extra-debuginfo-path=/a", "--extra-debuginfo-path=/b", "x"];
    let Ok(Request::Run(o, ..)) = parse_with(&words, &[]) else { panic!() };
    let names = o.names();
    assert!(!names.demangle && names.show_below_main);
    let roots: Vec<_> = names.debug_roots.iter().map(|p| p.to_str().unwrap()).collect();
    assert_eq!(roots, ["/a", "/b", "/usr/lib/debug"]);
}

#[test]
fn hostile_words_are_answered() {
    for bytes in
        [&b"-"[..], b"--=", b"--\xff=\xff", b"--log-fd=99999999999999999999", b"-=", b"--log-file=\xff%", b":--"]
    {
        let args = [OsString::from_vec(bytes.to_vec()), OsString::from("x")];
        let _ = parse(&args, environment, || (vec![], vec![]));
    }
}

#[test]
fn distances() {
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("abc", "acb"), 1);
    assert_eq!(distance("abc", "abc"), 0);
    assert_eq!(distance("kitten", "sitting"), 3);
}
