//! The tables by page and by cache address beside a search of everything, and what outlives a flush.

use super::*;
use grind_types::addr::{CacheAddr, GuestAddr};

use crate::testing::block;

#[test]
fn code_that_is_translated_anew_has_its_old_sites() {
    let site = |addr, kind| trace::Site { module: 1, len: 4, addr: GuestAddr(addr), kind };
    let repeated =
        SiteKind::Repeated { size: 1, source: true, target: trace::Target::Write, target_first: false, narrow: false };
    let mut t = FragmentTable::default();
    let code = |t: &mut FragmentTable| {
        let kinds = [SiteKind::Fetch, SiteKind::Read(8), repeated, SiteKind::Sized { done: trace::Done::Read }];
        let mut numbers: Vec<u32> = kinds.iter().map(|&k| t.new_trace_site(site(0x1000, k))).collect();
        numbers.push(t.new_trace_site(site(0x1000, SiteKind::Sized { done: trace::Done::Write })));
        numbers.push(t.new_trace_site(site(0x2000, SiteKind::Fetch)));
        numbers
    };
    assert_eq!(code(&mut t), [0, 1, 2, 3, 4, 5]);
    // Copies of code that is there have sites of their own.
    assert_eq!(t.new_trace_site(site(0x2000, SiteKind::Fetch)), 6);
    for round in 1..4 {
        t.flush(0);
        // Only what belongs together is numbered on.
        let first = 4 + 3 * round;
        assert_eq!(code(&mut t), [0, 1, first, first + 1, first + 2, 6]);
        assert_eq!(t.new_trace_site(site(0x2000, SiteKind::Fetch)), 6);
    }
    assert_eq!(t.trace_sites.len(), 7 + 3 * 3);
    assert_eq!(t.new_trace_site(site(0x3000, SiteKind::Fetch)), 16);
}

#[test]
fn sites_whose_numbers_follow_from_another_one_follow_it_in_code_that_is_translated_anew() {
    let site = |kind| trace::Site { module: 1, len: 4, addr: GuestAddr(0x1000), kind };
    let special = SiteKind::Special { index: 0, words: 40 };
    let stretch = SiteKind::Stretch { instructions: 4, bytes: 9, groups: 1, members: 4, tells: None };
    let sized = |done| SiteKind::Sized { done };
    let member = |offset| SiteKind::Member { group: 0, done: trace::Done::Read, offset, size: 8 };
    let done = [trace::Done::Read, trace::Done::Write, trace::Done::Modify];
    let all: [Vec<SiteKind>; 2] = [
        std::iter::once(special).chain(done.map(sized)).collect(),
        std::iter::once(stretch).chain([0, 8, 16, 24].map(member)).collect(),
    ];
    let mut t = FragmentTable::default();
    for round in 0..3 {
        for kinds in &all {
            let first = t.new_trace_site(site(kinds[0]));
            for (n, kind) in (first + 1..).zip(&kinds[1..]) {
                assert_eq!(t.new_trace_site(site(*kind)), n, "{kind:?}, round {round}");
                assert_eq!(t.trace_sites[n as usize].kind, *kind);
            }
        }
        t.flush(0);
    }
}

#[test]
fn a_jump_to_what_stands_behind_it_has_not_been_executed_where_it_is() {
    let mut t = FragmentTable::default();
    // One instruction of three bytes and a jump of two, of which nothing is left; and the jump alone, with a byte to be killed by.
    let jump = InsnShape { guest: 2, cache: 0 };
    t.shapes.extend([InsnShape { guest: 3, cache: 3 }, jump, jump]);
    let base = layout::CHUNK_SIZE;
    let both = t.add_fragment(Fragment { n: 2, len: 4, ..block(GuestAddr(0x1000), 5, CacheAddr(base)) });
    let alone =
        t.add_fragment(Fragment { n: 1, len: 1, shapes: 2, ..block(GuestAddr(0x1003), 2, CacheAddr(base + 16)) });
    let place = |at: u64| t.place(CacheAddr(at)).map(|p| (p.block, p.index, p.at_start));
    assert_eq!(place(base), Some((both, 0, true)));
    assert_eq!(place(base + 3), Some((both, 1, true)));
    assert_eq!(place(base + 16), Some((alone, 0, true)));
    assert_eq!((t.pc_of(both, 1), t.pc_of(alone, 0)), (GuestAddr(0x1003), GuestAddr(0x1003)));
}

/// The same questions, answered by looking at all blocks.
struct Naive(Vec<Fragment>);

impl Naive {
    fn lookup(&self, pc: GuestAddr) -> Option<FragmentId> {
        self.0.iter().rposition(|b| b.pc == pc && !b.dead).map(|i| FragmentId(i as u32))
    }

    fn kill_range(&mut self, start: GuestAddr, end: GuestAddr) -> Vec<FragmentId> {
        let mut killed = Vec::new();
        for (i, b) in self.0.iter_mut().enumerate() {
            if !b.dead && start < end && b.pc < end && b.pc.plus(b.guest_len.into()) > start {
                b.dead = true;
                killed.push(FragmentId(i as u32));
            }
        }
        killed
    }
}

#[test]
fn tables_by_page_answer_as_a_search_of_all_blocks() {
    let mut seed = 88_172_645_463_325_252u64;
    let mut random = move |end: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % end
    };
    let chunks = [0x7000_0000_0000u64, 0x1000_0000];
    let mut used = chunks;
    let (mut fast, mut naive) = (FragmentTable::default(), Naive(Vec::new()));
    let mut state_map: Vec<(CacheAddr, StateMapEntry)> = Vec::new();
    for round in 0..3000 {
        let pc = GuestAddr(0x40_0000 + random(5 * 4096));
        if random(20) == 0 {
            let end = pc.plus(random(6000));
            let (mut a, mut b) = (fast.kill_range(pc, end), naive.kill_range(pc, end));
            a.sort_unstable();
            b.sort_unstable();
            assert_eq!(a, b, "round {round}");
        } else if fast.lookup(pc, CallContextId(0)).is_none() {
            let chunk = random(2) as usize;
            let new = block(pc, 1 + random(100) as u16, CacheAddr(used[chunk]));
            if random(3) == 0 {
                let at = CacheAddr(used[chunk] + random(4));
                for entry in [StateMapEntry::Before, StateMapEntry::After] {
                    fast.add_state_map_entry(at, entry);
                    state_map.push((at, entry));
                }
            }
            used[chunk] += 16 + 8 * random(2);
            fast.add_fragment(new);
            naive.0.push(new);
        }
        let at = GuestAddr(0x40_0000 + random(5 * 4096));
        assert_eq!(fast.lookup(at, CallContextId(0)), naive.lookup(at), "round {round}");
        assert_eq!(fast.begins(at, CallContextId(0)), naive.lookup(at).is_some());
        let page_end = (at.0 | 0xfff) + 1;
        let next = (at.0..page_end).map(GuestAddr).find(|a| fast.begins(*a, CallContextId(0)));
        let next = next.unwrap_or(GuestAddr(page_end));
        assert_eq!(fast.next_begin(at, CallContextId(0)), next);
        // Pages that hold nothing but dead blocks may still count as touched.
        let end = at.plus(random(9000));
        let touched = naive.0.iter().any(|b| !b.dead && b.pc < end && b.pc.plus(b.guest_len.into()) > at);
        assert!(fast.touches(at, end) || !touched, "round {round}");
        let chunk = random(2) as usize;
        let cache = CacheAddr(chunks[chunk] + random(used[chunk] - chunks[chunk] + 40));
        let inside = naive.0.iter().position(|b| cache >= b.cache && cache < b.cache.plus(16));
        assert_eq!(fast.place(cache).map(|p| p.block.0 as usize), inside);
        assert_eq!(fast.state_map_entry(cache), state_map.iter().rfind(|p| p.0 == cache).map(|p| p.1));
    }
    assert!(naive.0.iter().any(|b| b.dead) && naive.0.len() > 1000);
}
