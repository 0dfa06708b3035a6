//! The command line of the callgrind tool.

use std::ffi::OsString;

use cg_format::callgrind::SystemTime;
use grind_analysis::callgrind::settings::{ForkCosts, Threads};
use grind_names::frames::Language;
use grind_session::AtStart;

use crate::options::{Options, Tool, UsageError, read_words, sources};

fn read(words: &[&str]) -> Result<Options, UsageError> {
    let words: Vec<OsString> = words.iter().map(Into::into).collect();
    read_words(Tool::Callgrind, &words, sources::environment)
}

fn given(words: &[&str]) -> Options {
    read(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

fn refused(word: &str) -> String {
    let text = read(&[word]).expect_err(word).to_string();
    text.strip_suffix("\nUse --help for more information or consult the user manual.").expect("a hint").to_owned()
}

#[test]
fn every_setting_is_set() {
    let o = given(&[]);
    assert!(o.callgrind.out_file.is_none() && o.callgrind.dump_line && !o.callgrind.dump_instr);
    assert!(
        o.callgrind.instr_at_start == AtStart::Counting
            && o.callgrind.collect_at_start
            && o.callgrind.skip_plt
            && !o.cache_sim
    );
    let o = given(&[
        "-v",
        "--callgrind-out-file=x.%p",
        "--dump-line=no",
        "--dump-instr=yes",
        "--compress-strings=no",
        "--compress-pos=no",
        "--combine-dumps=yes",
        "--dump-every-bb=7000",
        "--instr-atstart=no",
        "--collect-atstart=no",
        "--collect-jumps=yes",
        "--collect-alloc=yes",
        "--collect-bus=yes",
        "--collect-systime=usec",
        "--separate-threads=yes",
        "--fork-costs=zero",
        "--cycle-estimation=yes",
        "--cycle-model=zen4",
        "--separate-callers=2",
        "--separate-recs=5",
        "--skip-plt=no",
        "--skip-direct-rec=yes",
        "--branch-sim=yes",
        "--frames=python",
    ]);
    let c = &o.callgrind;
    assert_eq!(o.verbosity, 2);
    assert!(c.out_file.as_ref().is_some_and(|t| t.has_pid()));
    assert!(!c.dump_line && c.dump_instr && !c.compress_strings && !c.compress_pos && c.combine_dumps);
    assert_eq!((c.dump_every_bb, c.separate_callers, c.separate_recs), (7000, 2, 5));
    assert!(
        c.instr_at_start == AtStart::NotCounting
            && !c.collect_at_start
            && c.collect_jumps
            && c.collect_bus
            && c.separate_threads == Threads::Apart
    );
    assert_eq!(
        (c.forks, given(&["--fork-costs=inherit"]).callgrind.forks),
        (Some(ForkCosts::Zero), Some(ForkCosts::Inherited))
    );
    assert_eq!((o.cycle_estimation, o.cycle_model.name), (true, "zen4"));
    assert_eq!(given(&["--separate-threads=system"]).callgrind.separate_threads, Threads::ByKernel);
    assert!(!c.skip_plt && c.skip_direct_rec && o.branch_sim && !o.cache_sim);
    assert_eq!(c.collect_systime, Some(SystemTime::Microseconds));
    assert_eq!(
        c.events(cg_format::events::Caches::None, true).names().join(" "),
        "Ir Bc Bcm Bi Bim Ge allocCount allocSize sysCount sysTime"
    );
    assert!(c.frames == Some(Language::Python) && !c.followed() && given(&["--frames=no"]).callgrind.frames.is_none());
    assert!(given(&["--trace-jump=yes"]).callgrind.collect_jumps);
    assert_eq!(given(&["--collect-systime=yes"]).callgrind.collect_systime, Some(SystemTime::Milliseconds));
}

#[test]
fn functions_are_named_by_pattern() {
    let o = given(&[
        "--toggle-collect=main",
        "--dump-before=a*",
        "--dump-after=b",
        "--zero-before=c",
        "--fn-skip=d",
        "--pop-on-jump=e",
        "--separate-callers3=f",
        "--separate-recs4=g",
        "--fn-group5=h",
    ]);
    let about = |name: &str| o.callgrind.function(name.as_bytes(), b"", false);
    assert!(
        about("main").toggle_collect && about("abc").dump_before && about("b").dump_after && about("c").zero_before
    );
    assert!(about("d").skip && about("e").pop_on_jump);
    assert_eq!((about("f").separate_callers, about("g").separate_recs, about("h").group), (3, 4, 5));
    assert!(!o.callgrind.collect_at_start, "toggling begins with nothing");
}

#[test]
fn any_option_of_the_simulator_switches_it_on() {
    for word in ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64", "--simulate-wb=no", "--simulate-hwpref=no"]
    {
        assert!(given(&[word]).cache_sim, "{word}");
    }
    assert!(given(&["--I1=32768,8,64"]).caches.i1.is_some());
    assert!(!given(&["--LL=1048576,16,64", "--cache-sim=no"]).cache_sim, "the last word decides");
}

#[test]
fn wrong_words_are_refused() {
    for (word, message) in [
        (
            "--instr-at-start=no",
            "Unknown option: --instr-at-start=no\nIt is an option of cachegrind: it needs --tool=cachegrind.\nDid you mean '--instr-atstart=no'?",
        ),
        (
            "--cachegrind-out-file=x",
            "Unknown option: --cachegrind-out-file=x\nIt is an option of cachegrind: it needs --tool=cachegrind.\nDid you mean '--callgrind-out-file=x'?",
        ),
        ("--separate-callers=abc", "Bad option: --separate-callers=abc\nInvalid integer value 'abc'"),
        (
            "--combine-dumps=maybe",
            "Bad option: --combine-dumps=maybe\nInvalid boolean value 'maybe' (should be 'yes' or 'no')",
        ),
        (
            "--separate-threads=maybe",
            "Bad option: --separate-threads=maybe\nBad argument, should be 'no', 'yes' or 'system'",
        ),
        ("--callgrind-out-file=", "Bad option: --callgrind-out-file=\nNo filename given"),
        ("--separate-recs3", "Bad option: --separate-recs3\nMissing value, expected '--separate-recs3=<function>'"),
    ] {
        assert_eq!(refused(word), message);
    }
    assert!(refused("--separate-callers=-1").contains("must be between 0 and 65535"));
    assert!(
        given(&["--cacheuse=no", "--dump-bb=no", "--simulate-sectors=yes", "--allow-file-caps=*/x"])
            .callgrind
            .dump_line
    );
}

#[test]
fn words_for_one_tool_are_not_for_the_other() {
    let parse = |words: &[&str]| {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        crate::options::parse(&words, sources::environment, || (vec![], vec![]))
    };
    let Ok(crate::options::Request::Run(o, ..)) =
        parse(&["--callgrind:--dump-instr=yes", "--cachegrind:--cache-sim=yes", "x"])
    else {
        panic!("words for other tools are skipped")
    };
    assert!(!o.callgrind.dump_instr && o.cache_sim);
}

#[test]
fn cache_use_needs_caches_and_instructions_and_excludes_other_models() {
    let settled = |words: &[&str]| {
        let mut options = given(words);
        let told = options.callgrind.settle();
        (options, told)
    };
    let (o, told) = settled(&["--cacheuse=yes", "--simulate-wb=yes", "--simulate-hwpref=yes"]);
    assert!(o.cache_sim && o.callgrind.dump_instr && !o.callgrind.simulate_wb && !o.callgrind.simulate_hwpref);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|line| line.starts_with("warning: ") && line.contains("--cacheuse")));
    assert_eq!(o.callgrind.events(cg_format::events::Caches::Two, false).names().last().unwrap(), "SpLoss2");
    let (o, told) = settled(&["--cacheuse=yes", "--separate-callers=all"]);
    assert!(!o.callgrind.whole_chains && told.len() == 1 && told[0].contains("no chains of calls"), "{told:?}");
    let (o, told) = settled(&["--cacheuse=no", "--simulate-wb=yes"]);
    assert!(o.callgrind.simulate_wb && !o.callgrind.dump_instr && told.is_empty());
    assert_eq!(
        settled(&["--cacheuse=self"]).0.callgrind.cache_use,
        grind_analysis::callgrind::settings::CacheUse::SelfOnly
    );
    assert!(read_words(Tool::Callgrind, &["--cacheuse=perhaps".into()], sources::environment).is_err());
}
