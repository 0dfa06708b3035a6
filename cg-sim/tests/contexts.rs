//! Second levels with contexts: lists of lines, each with who has brought it in and since when it is not old, of two threads whose contexts
//! change at random. A closed form beside it.

use std::collections::BTreeMap;

use cg_sim::beyond::{Beyond, Inclusion, Levels, Request};
use cg_sim::context::{ContextBeyond, OldIn};
use cg_sim::policy::parse_shape;
use cg_sim::prefetch::Prefetch;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn levels(inclusion: Inclusion) -> Levels {
    let shape = |text| parse_shape(text).expect("a shape");
    Levels { second: Some(shape("2048,4,64")), last: shape("8192,8,64"), inclusion, prefetch: Prefetch::None }
}

/// A line of a second level.
struct Line {
    number: u64,
    owner: u32,
    old: bool,
}

fn request(line: u64) -> Request {
    Request { instruction: 0, addr: line * 64 + 8, size: 8, data: true }
}

#[test]
fn old_lines_of_second_levels_are_found_once_by_their_own_thread() {
    let mut with = ContextBeyond::of(Beyond::new(&levels(Inclusion::None)));
    // By thread and set, the line used last at the end.
    let mut sets: BTreeMap<(i32, u64), Vec<Line>> = BTreeMap::new();
    let mut contexts = [0u32; 2];
    let (mut state, mut found) = (9, 0);
    for step in 0..80_000 {
        let thread = (random(&mut state) % 2) as i32;
        if random(&mut state).is_multiple_of(60) {
            contexts[thread as usize] = (random(&mut state) % 4) as u32;
            with.change_own(thread);
            with.change();
            let own = sets.iter_mut().filter(|((of, _), _)| *of == thread);
            own.flat_map(|(_, set)| set).for_each(|line| line.old = true);
        }
        let (number, context) = (64 + random(&mut state) % 50, contexts[thread as usize]);
        let set = sets.entry((thread, number % 8)).or_default();
        let mut expected = Vec::new();
        let mut line = match set.iter().position(|line| line.number == number) {
            Some(at) => set.remove(at),
            None => Line { number, owner: context, old: false },
        };
        if std::mem::take(&mut line.old) {
            expected.push(line.owner);
        }
        set.push(line);
        if set.len() > 4 {
            set.remove(0);
        }
        with.levels().run(thread);
        let mut got = Vec::new();
        with.access(request(number), context, &mut |of, owner| {
            if of == OldIn::Second {
                got.push(owner);
            }
        });
        assert_eq!(got, expected, "step {step}");
        found += got.len();
    }
    assert!(found > 5000, "{found}");
}

/// A context loads lines that fit, and the next one goes through them twice: each is found once. A thread that begins, a child and a
/// thread that has ended have none of it, or all.
#[test]
fn each_line_is_found_once() {
    for inclusion in [Inclusion::None, Inclusion::Inclusive, Inclusion::Exclusive] {
        let mut with = ContextBeyond::of(Beyond::new(&levels(inclusion)));
        let walk = |with: &mut ContextBeyond, thread: i32, context| {
            with.levels().run(thread);
            let mut found = BTreeMap::new();
            for line in (64..96).chain(64..96) {
                with.access(request(line), context, &mut |of, owner| {
                    if of == OldIn::Second {
                        *found.entry(owner).or_insert(0) += 1;
                    }
                });
            }
            found.into_iter().collect::<Vec<(u32, i32)>>()
        };
        assert_eq!(walk(&mut with, 1, 5), []);
        with.change_own(1);
        assert_eq!(walk(&mut with, 2, 6), [], "another thread has not changed, and has none of it");
        assert_eq!(walk(&mut with, 1, 7), [(5, 32)]);
        assert_eq!(walk(&mut with, 1, 7), [], "not old any more");
        with.change_own(1);
        with.forked(1, 3);
        assert_eq!(walk(&mut with, 3, 8), [(5, 32)], "a child goes on with what its creator had");
        with.change_own(3);
        with.ended(3);
        assert_eq!(walk(&mut with, 3, 9), []);
    }
}
