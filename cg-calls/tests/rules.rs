//! One scenario for each rule that the static programs of the other tests do not reach: procedure linkage, lazy binding,
//! abandoned handlers, dumps in the middle, threads.

use crate::common::{Program, at};
use cg_calls::{Calls, Config, FunctionId, JumpKind, Native, Profile, Request, Section};

const MAIN: u32 = 1;
const STUB: u32 = 2;
const RESOLVE: u32 = 3;
const FIXUP: u32 = 4;
const WORK: u32 = 5;
const LEAF: u32 = 6;

/// A driver with one cost, which every event advances by what it is told.
struct Run {
    program: Program,
    calls: Calls,
    now: u64,
}

impl Run {
    fn new(program: Program) -> Run {
        Run::with(program, Config { contexts: true, ..Config::arcs_only(1) })
    }
    fn with(mut program: Program, config: Config) -> Run {
        let mut calls = Calls::new(config, &[0]);
        calls.begin(&mut program, at(MAIN, 0));
        Run { program, calls, now: 0 }
    }
    fn call(&mut self, spent: u64, from: u64, to: u32, sp: u64) -> bool {
        self.now += spent;
        let site = self.program.id(from);
        self.calls.call(&mut self.program, site, at(to, 0), sp, &[self.now])
    }
    fn ret(&mut self, spent: u64, from: u64, to: u64, sp: u64) -> bool {
        self.now += spent;
        let site = self.program.id(from);
        self.calls.ret(&mut self.program, site, to, sp, &[self.now])
    }
    fn jump(&mut self, spent: u64, from: u64, to: u64, sp: u64) -> bool {
        self.now += spent;
        let site = self.program.id(from);
        self.calls.jump(&mut self.program, site, to, sp, JumpKind::Always, &[self.now])
    }
    fn take(&mut self) -> Profile {
        self.calls.take(&[self.now])
    }
    /// `caller site callee calls cost` of every arc, names as numbers, recursion after an apostrophe.
    fn arcs(&self, profile: &Profile) -> Vec<String> {
        let name = |i: cg_calls::NodeIndex| {
            let node = &profile.nodes[i.0 as usize];
            let mut name = node.functions[0].0.to_string();
            if node.recursion > 1 {
                name += &format!("'{}", node.recursion);
            }
            name
        };
        let mut lines: Vec<_> = profile
            .arcs
            .iter()
            .map(|a| {
                let site = self.program.addr(a.site);
                format!("{} {site:#x} {} {} {}", name(a.from), name(a.to), a.calls, a.costs[0])
            })
            .collect();
        lines.sort();
        lines
    }
}

/// A program whose function 2 is a stub in the linkage table, and 3 the dynamic linker's resolver.
fn linked() -> Program {
    let mut program = Program::default();
    program.sections.insert(STUB, Section::Plt);
    program.set(STUB, |f| f.skip = true);
    program.set(RESOLVE, |f| f.pop_on_jump = true);
    program.objects.extend([(RESOLVE, 1), (FIXUP, 1), (WORK, 2), (LEAF, 2)]);
    program
}

#[test]
fn a_stub_is_its_callers() {
    let mut run = Run::new(linked());
    for _ in 0..3 {
        run.call(10, at(MAIN, 0x20), STUB, 992);
        run.jump(1, at(STUB, 0), at(WORK, 0), 992);
        run.call(5, at(WORK, 0x20), LEAF, 900);
        run.ret(2, at(LEAF, 0x10), at(WORK, 0x25), 908);
        run.ret(3, at(WORK, 0x30), at(MAIN, 0x25), 1000);
    }
    run.now += 4;
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x120 5 3 30", "5 0x520 6 3 6"]);
    let [skipped] = &profile.skipped[..] else { panic!("{profile:?}") };
    assert_eq!((run.program.addr(skipped.site), &skipped.costs[..]), (at(MAIN, 0x20), &[3][..]));
    assert_eq!(profile.collected, [3 * 21 + 4]);
}

#[test]
fn lazy_binding_is_two_calls_from_the_site() {
    let mut run = Run::new(linked());
    run.call(10, at(MAIN, 0x20), STUB, 992);
    run.jump(2, at(STUB, 0), at(RESOLVE, 0), 976); // It pushed two words.
    run.call(5, at(RESOLVE, 0x20), FIXUP, 900);
    run.ret(100, at(FIXUP, 0x10), at(RESOLVE, 0x25), 908);
    run.jump(6, at(RESOLVE, 0x40), at(WORK, 0), 992); // It popped them.
    run.ret(7, at(WORK, 0x30), at(MAIN, 0x25), 1000);
    run.call(3, at(MAIN, 0x40), LEAF, 992);
    run.ret(2, at(LEAF, 0x10), at(MAIN, 0x45), 1000);
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x120 3 1 111", "1 0x120 5 1 7", "1 0x140 6 1 2", "3 0x320 4 1 100"]);
    assert_eq!(profile.skipped[0].costs, [2]);
}

#[test]
fn exceptions_unwind_and_are_no_calls() {
    let mut run = Run::new(Program::default());
    run.call(1, at(MAIN, 0x20), WORK, 900);
    run.call(1, at(WORK, 0x20), LEAF, 800);
    run.call(1, at(LEAF, 0x20), FIXUP, 700);
    // Into the middle of main, and then at its start: a loop to the first instruction is a call.
    run.jump(1, at(FIXUP, 0x20), at(MAIN, 0x50), 1000);
    run.jump(1, at(MAIN, 0x60), at(MAIN, 0), 1000);
    run.now += 4;
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x120 5 1 3", "1 0x160 1 1 4", "5 0x520 6 1 2", "6 0x620 4 1 1"]);
}

/// Where a part ends between a call and what it does, whoever asks for it: a call without costs would be left out.
#[test]
fn a_call_that_has_cost_nothing_is_the_next_parts() {
    let mut run = Run::new(Program::default());
    run.call(3, at(MAIN, 0x20), WORK, 900);
    let first = run.take();
    assert_eq!(run.arcs(&first), Vec::<String>::new());
    assert_eq!(first.collected, [3]);
    run.now += 5;
    run.call(1, at(WORK, 0x20), LEAF, 800);
    let second = run.take();
    assert_eq!(run.arcs(&second), ["1 0x120 5 1 6"]);
    let third = run.take();
    assert_eq!(run.arcs(&third), Vec::<String>::new());
    run.ret(2, at(LEAF, 0x10), at(WORK, 0x25), 808);
    let last = run.take();
    assert_eq!(run.arcs(&last), ["1 0x120 5 0 2", "5 0x520 6 1 2"]);
}

#[test]
fn a_handler_is_a_root_and_its_interrupted_code_stands_still() {
    let mut run = Run::new(Program::default());
    run.call(5, at(MAIN, 0x20), WORK, 900);
    run.now += 3;
    run.calls.signal_enter(&mut run.program, at(LEAF, 0), 880, None, &[run.now]);
    assert_eq!(run.calls.backtrace().iter().map(|(f, _)| f.0).collect::<Vec<_>>(), [LEAF, WORK, MAIN]);
    run.call(7, at(LEAF, 0x20), FIXUP, 300);
    run.ret(11, at(FIXUP, 0x20), at(LEAF, 0x25), 308);
    run.now += 13;
    run.calls.signal_leave(&[run.now]);
    run.ret(2, at(WORK, 0x20), at(MAIN, 0x25), 908);
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x120 5 1 5", "6 0x620 4 1 11"]);
    assert_eq!(profile.collected, [5 + 3 + 7 + 11 + 13 + 2]);
}

#[test]
fn a_handler_that_is_jumped_out_of_ends() {
    for other_stack in [None, Some(0x100..0x200)] {
        let mut run = Run::new(Program::default());
        run.call(5, at(MAIN, 0x20), WORK, 900);
        let sp = if other_stack.is_some() { 0x180 } else { 500 };
        run.calls.signal_enter(&mut run.program, at(LEAF, 0), 880, other_stack, &[run.now]);
        run.call(7, at(LEAF, 0x20), FIXUP, sp - 100);
        run.jump(11, at(FIXUP, 0x20), at(MAIN, 0x50), 1000);
        run.call(1, at(MAIN, 0x60), WORK, 900);
        run.ret(2, at(WORK, 0x20), at(MAIN, 0x65), 908);
        let profile = run.take();
        assert_eq!(run.arcs(&profile), ["1 0x120 5 1 0", "1 0x160 5 1 2", "6 0x620 4 1 11"]);
        assert_eq!(profile.collected, [26]);
        assert_eq!(run.calls.backtrace(), [(FunctionId(MAIN), None)]);
    }
}

#[test]
fn a_call_counts_in_the_part_that_it_runs_in() {
    let mut program = Program::default();
    program.set(LEAF, |f| f.dump_before = true);
    let mut run = Run::new(program);
    run.call(1, at(MAIN, 0x20), WORK, 900);
    let mut parts = Vec::new();
    for _ in 0..2 {
        assert!(run.call(2, at(WORK, 0x20), LEAF, 800));
        assert_eq!(run.calls.take_request(), Some(Request::DumpBefore(FunctionId(LEAF))));
        let profile = run.take();
        parts.push(run.arcs(&profile));
        assert!(!run.ret(4, at(LEAF, 0x20), at(WORK, 0x25), 808));
    }
    let profile = run.take();
    parts.push(run.arcs(&profile));
    assert_eq!(
        parts,
        [&["1 0x120 5 1 2"][..], &["1 0x120 5 0 6", "5 0x520 6 1 4"], &["1 0x120 5 0 4", "5 0x520 6 1 4"]]
    );
}

/// A system call that is in a part already is taken off, because it is made once more, and then it is counted again.
#[test]
fn what_is_taken_off_behind_a_part_is_not_less_than_nothing() {
    let mut run = Run::new(Program::default());
    run.call(10, at(MAIN, 0x20), WORK, 992);
    run.now += 5;
    assert_eq!(run.take().collected, [15]);
    run.now -= 1;
    assert_eq!(run.calls.collected(&[run.now]), [0]);
    assert!(run.calls.going_on(&[run.now]).iter().all(|active| active.costs == [0]));
    let part = run.take();
    assert_eq!((&part.collected[..], run.arcs(&part)), (&[0][..], Vec::new()));
    run.now += 1;
    run.ret(3, at(WORK, 0x30), at(MAIN, 0x25), 1000);
    let part = run.take();
    assert_eq!((&part.collected[..], run.arcs(&part)), (&[3][..], vec!["1 0x120 5 0 3".to_owned()]));
}

#[test]
fn threads_merge_by_name() {
    let run = |first: u32| {
        let mut run = Run::new(Program::default());
        run.call(1, at(MAIN, 0x20), first, 900);
        run.ret(2, at(first, 0x20), at(MAIN, 0x25), 908);
        run.call(1, at(MAIN, 0x30), WORK, 900);
        run.ret(3, at(WORK, 0x20), at(MAIN, 0x35), 908);
        run
    };
    // The sites have the same numbers, as they would have in one program.
    let (mut one, mut two) = (run(LEAF), run(LEAF));
    let mut merged = one.take();
    merged.merge(two.take());
    assert_eq!(one.arcs(&merged), ["1 0x120 6 2 4", "1 0x130 5 2 6"]);
    assert_eq!(merged.collected, [14]);
    assert_eq!(merged.nodes.len(), 3);
}

#[test]
fn ending_in_the_middle_loses_nothing() {
    let mut run = Run::new(Program::default());
    run.call(1, at(MAIN, 0x20), WORK, 900);
    run.call(2, at(WORK, 0x20), LEAF, 800);
    run.now += 4;
    run.calls.end(&[run.now]);
    run.calls.begin(&mut run.program, at(WORK, 0x80));
    run.ret(8, at(WORK, 0x90), at(MAIN, 0x25), 908);
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x120 5 1 6", "1 0x120 5 1 8", "5 0x520 6 1 4"]);
    assert_eq!(profile.collected, [15]);
}

/// A thread that begins in `LEAF`, called by `WORK` and that by `MAIN`.
fn begun_within(change: impl FnOnce(&mut Program)) -> Run {
    let mut program = Program::default();
    change(&mut program);
    let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
    let frame = |at, sp, returns_to| Native { at, sp, returns_to, interrupted: None };
    let found = [
        frame(at(LEAF, 40), 0x80, at(WORK, 15)),
        frame(at(WORK, 14), 0x90, at(MAIN, 25)),
        frame(at(MAIN, 24), 0xa0, 0),
    ];
    calls.begin_within(&mut program, &found, &[0]);
    Run { program, calls, now: 0 }
}

#[test]
fn returns_from_calls_that_were_found_find_their_frames() {
    let mut run = begun_within(|_| {});
    let backtrace: Vec<u32> = run.calls.backtrace().iter().map(|(f, _)| f.0).collect();
    assert_eq!(backtrace, [LEAF, WORK, MAIN]);
    run.ret(10, at(LEAF, 60), at(WORK, 15), 0x88);
    run.call(5, at(WORK, 30), LEAF, 0x80);
    run.ret(3, at(LEAF, 60), at(WORK, 35), 0x88);
    run.ret(2, at(WORK, 60), at(MAIN, 25), 0x98);
    run.now += 100;
    run.calls.end(&[run.now]);
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x114 5 1 20", "5 0x50a 6 1 10", "5 0x51e 6 1 3"]);
    assert_eq!(profile.collected, [120]);
}

#[test]
fn nothing_hangs_on_beginnings_that_nobody_has_seen() {
    let mut run = begun_within(|program| {
        program.set(LEAF, |f| (f.dump_before, f.dump_after, f.toggle_collect) = (true, true, true));
        program.set(WORK, |f| f.zero_before = true);
    });
    assert!(run.calls.collecting() && run.calls.take_request().is_none());
    assert!(run.ret(10, at(LEAF, 60), at(WORK, 15), 0x88));
    assert_eq!(run.calls.take_request(), Some(Request::DumpAfter(FunctionId(LEAF))));
    assert!(run.calls.collecting(), "what was not switched on is not switched off");
}

#[test]
fn a_handler_that_was_found_ends_where_it_has_interrupted() {
    let mut program = Program::default();
    let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
    let handler = Native { at: at(LEAF, 40), sp: 0x40, returns_to: 0, interrupted: Some(0x80) };
    let work = Native { at: at(WORK, 14), sp: 0x90, returns_to: at(MAIN, 25), interrupted: None };
    let main = Native { at: at(MAIN, 24), sp: 0xa0, returns_to: 0, interrupted: None };
    calls.begin_within(&mut program, &[handler, work, main], &[0]);
    let mut run = Run { program, calls, now: 7 };
    run.calls.signal_leave(&[run.now]);
    run.ret(2, at(WORK, 60), at(MAIN, 25), 0x98);
    run.calls.end(&[run.now]);
    let profile = run.take();
    // What the handler cost is nobody's who was interrupted.
    assert_eq!(run.arcs(&profile), ["1 0x114 5 1 2"]);
    assert_eq!(profile.collected, [9]);
}

#[test]
fn what_has_counted_before_is_no_cost_of_what_was_found() {
    let mut run = begun_within(|_| {});
    run.calls.begin_ahead(1);
    // The instruction that is executed once more, and nine others.
    run.ret(10, at(LEAF, 60), at(WORK, 15), 0x88);
    run.calls.end(&[run.now]);
    let profile = run.take();
    assert_eq!(run.arcs(&profile), ["1 0x114 5 1 9", "5 0x50a 6 1 9"]);
    assert_eq!(profile.collected, [9]);
}

/// An instruction that was counted ahead is taken back when its block is left before it, and nothing is recorded then.
#[test]
fn who_stands_in_books_nothing_whatever_totals_do() {
    let mut program = Program::default();
    let mut calls = Calls::new(Config { contexts: true, ..Config::arcs_only(1) }, &[0]);
    calls.stand_in();
    calls.begin(&mut program, at(MAIN, 0));
    let site = program.id(at(MAIN, 0x20));
    calls.call(&mut program, site, at(WORK, 0), 0x90, &[12]);
    calls.signal_enter(&mut program, at(LEAF, 0), 0x80, None, &[12]);
    let site = program.id(at(LEAF, 0x20));
    calls.call(&mut program, site, at(LEAF, 0), 0x70, &[14]);
    calls.signal_leave(&[11]);
    calls.end(&[9]);
    assert_eq!(calls.take(&[9]).arcs.iter().map(|arc| arc.costs[0]).sum::<u64>(), 0);
}
