//! Functions of a program that is interpreted among those of its interpreter: calls of the latter become calls of the former, costs
//! are those of whoever has code, and hooks see one call where there is one.

use crate::common::{Program, at};
use cg_calls::{Calls, Config, FunctionId, Interposed, NodeIndex, Profile, Request};

const EVALUATE: u64 = 0x300;

/// Functions 0x80 and 0x81 own what runs below them, number 5 is dumped.
fn interpreter() -> Program {
    let mut program = Program::default();
    (0x80..0x82).for_each(|f| program.set(f, |about| about.owns = true));
    program.set(5, |about| about.dump_before = true);
    (3..=5).chain(0x80..0x82).for_each(|f| program.set(f, |about| about.separate_recs = 2));
    program
}

/// A function that the one at `entry` runs.
fn python(code: &mut Program, function: u32, entry: u64) -> Interposed {
    Interposed { target: at(function, 0), within: code.id(at(function, 1)), entry }
}

fn calls(chains: bool) -> Calls {
    let chains = chains.then_some(100);
    Calls::new(Config { contexts: true, chains, ..Config::arcs_only(1) }, &[0])
}

/// Arcs by the functions of both nodes: how many calls, and what they cost.
fn arcs(profile: &Profile) -> Vec<(Vec<u32>, Vec<u32>, u64, u64)> {
    let node = |node: NodeIndex| profile.nodes[node.0 as usize].functions.iter().map(|f| f.0).collect();
    let mut all: Vec<_> =
        profile.arcs.iter().map(|arc| (node(arc.from), node(arc.to), arc.calls, arc.costs[0])).collect();
    all.sort();
    all
}

#[test]
fn a_call_of_the_interpreter_is_one_of_the_function_that_it_runs() {
    for chains in [false, true] {
        let (mut calls, code) = (calls(chains), &mut interpreter());
        calls.begin(code, 0x100);
        let site = code.id(0x110);
        calls.call(code, site, EVALUATE, 992, &[10]);
        assert_eq!(calls.just_called(0x400, &[10]), None, "another function");
        assert_eq!(calls.just_called(EVALUATE, &[11]), None, "it has run");
        let site = calls.just_called(EVALUATE, &[10]).expect("just called");
        let function = python(code, 0x80, EVALUATE);
        calls.interpose(code, site, function, &[10]);
        // It calls another one without a call, and C from there.
        let (another, site) = (python(code, 0x81, EVALUATE), code.id(0x310));
        calls.call_interposed(code, site, another, &[13]);
        let depth = calls.depth();
        let site = code.id(0x320);
        calls.call(code, site, 0x400, 900, &[15]);
        let site = code.id(0x410);
        calls.ret(code, site, 0x325, 908, &[18]);
        assert_eq!((calls.depth(), calls.innermost(900, &[18])), (depth, Some(992)));
        calls.leave_to(depth - 2, &[20]);
        let site = code.id(0x3f0);
        calls.ret(code, site, 0x115, 1000, &[25]);
        let profile = calls.take(&[30]);
        let expected = [
            (vec![1], vec![0x80], 1, 15),
            (vec![3, 0x80], vec![0x81], 1, 7),
            (vec![3, 0x81], vec![4, 0x81], 1, 3),
            (vec![0x80], vec![3, 0x80], 1, 15),
            (vec![0x81], vec![3, 0x81], 1, 7),
        ];
        assert_eq!(arcs(&profile), expected);
        if chains {
            let chain = |n: usize| (profile.tree.chains[n].calls, profile.tree.costs(n)[0]);
            let all: Vec<_> = (0..profile.tree.chains.len()).map(chain).collect();
            assert_eq!(all.iter().map(|(_, cost)| cost).sum::<u64>(), 30);
            assert!(all.iter().all(|(calls, _)| *calls <= 1), "{all:?}");
        }
    }
}

#[test]
fn the_interpreter_is_entered_once_as_far_as_hooks_are_concerned() {
    const DUMPED: u64 = 0x500;
    let (mut calls, code) = (calls(false), &mut interpreter());
    calls.begin(code, 0x100);
    let site = code.id(0x110);
    assert!(calls.call(code, site, DUMPED, 992, &[10]));
    assert_eq!(calls.take_request(), Some(Request::DumpBefore(FunctionId(5))));
    let site = calls.just_called(DUMPED, &[10]).expect("just called");
    let function = python(code, 0x80, DUMPED);
    assert!(!calls.interpose(code, site, function, &[10]));
    assert_eq!(calls.take_request(), None);
}
