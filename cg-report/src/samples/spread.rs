//! What is shared by cost: counts in whole numbers that add up, and inclusive samples along the calls of a profile.
//!
//! What a function and its callees have goes to its callers, to each by its share of what the function costs inclusively; what no caller
//! of the profile accounts for stays where it is. A cycle is one node, and calls within it have a part of what it has as a whole, which is
//! no sum, as in every event. Law: outside of cycles a function has what it has itself and what its calls have.

use cg_model::{Detail, groups};

/// Shares of a count by weights, which add up to it; all of it is the first one's if there are no weights above 0.
pub(super) fn shares(count: i64, weights: impl Iterator<Item = i64> + Clone) -> Vec<i64> {
    let whole: i128 = weights.clone().map(|weight| i128::from(weight.max(0))).sum();
    if whole == 0 {
        let mut shares: Vec<i64> = weights.map(|_| 0).collect();
        shares.iter_mut().take(1).for_each(|first| *first = count);
        return shares;
    }
    of_whole(count, whole, weights)
}

/// Shares of a count by weights of a whole that is not less than all of them: what they have together is rounded once.
fn of_whole(count: i64, whole: i128, weights: impl Iterator<Item = i64>) -> Vec<i64> {
    let (mut seen, mut given) = (0_i128, 0_i64);
    let share = |weight: i64| {
        seen += i128::from(weight.max(0));
        // Never above the count, which has 64 bits.
        let upto = (i128::from(count) * seen / whole.max(1)) as i64;
        let share = upto - given;
        given = upto;
        share
    };
    weights.map(share).collect()
}

/// What calls have of what `rows` have, in the order of calls; callers are known by what they cost in `event`.
pub(super) fn calls(detail: &Detail, rows: &[i64], event: usize) -> Vec<i64> {
    let ends = detail.calls.iter().map(|call| (call.function.index(), call.callee.index()));
    let functions = detail.rows.iter().map(|row| row.function.index());
    let count =
        functions.clone().chain(ends.clone().flat_map(|(from, to)| [from, to])).max().map_or(0, |most| most + 1);
    // Callees come before their callers.
    let group = groups(count, ends.clone());
    let nodes = group.iter().max().map_or(0, |most| most + 1);
    let (mut has, mut cost, mut seen) = (vec![0_i64; nodes], vec![0_i128; nodes], vec![0_i128; nodes]);
    for (row, samples) in detail.rows.iter().zip(rows) {
        let node = group[row.function.index()];
        has[node] = has[node].saturating_add(*samples);
        cost[node] += i128::from(detail.row_cost(row, event));
    }
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (at, (call, (from, to))) in detail.calls.iter().zip(ends).enumerate() {
        into[group[to]].push(at);
        if group[from] != group[to] {
            let spent = i128::from(detail.call_cost(call, event));
            cost[group[from]] += spent;
            seen[group[to]] += spent;
        }
    }
    let mut spread = vec![0_i64; detail.calls.len()];
    for node in 0..nodes {
        let whole = cost[node].max(seen[node]);
        let weight = |at: &usize| detail.call_cost(&detail.calls[*at], event);
        let (within, outside): (Vec<usize>, Vec<usize>) =
            into[node].iter().partition(|at| group[detail.calls[**at].function.index()] == node);
        for at in within {
            spread[at] = of_whole(has[node], whole.max(weight(&at).into()), std::iter::once(weight(&at)))[0];
        }
        for (at, share) in outside.iter().zip(of_whole(has[node], whole, outside.iter().map(weight))) {
            spread[*at] = share;
            let caller = &mut has[group[detail.calls[*at].function.index()]];
            *caller = caller.saturating_add(share);
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::{Call, FunctionId, Names, PartHeader, Place, Position, Sink};

    #[test]
    fn shares_add_up() {
        let of = |count, weights: &[i64]| shares(count, weights.iter().copied());
        assert_eq!(of(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!((of(7, &[0, 0]), of(7, &[-3, 1]), of(7, &[])), (vec![7, 0], vec![0, 7], vec![]));
        let large = of(i64::MAX, &[i64::MAX, 1, i64::MAX - 1]);
        assert_eq!(large.iter().map(|share| i128::from(*share)).sum::<i128>(), i128::from(i64::MAX));
    }

    /// A profile of functions by their number: self costs, and calls with what they cost.
    fn profile(own: &[i64], calls: &[(usize, usize, i64)]) -> Detail {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let ids: Vec<FunctionId> =
            (0..own.len()).map(|at| names.function(format!("f{at}").as_bytes(), file, object)).collect();
        let at = Position { place: Place { addr: 0, line: 1 }, file };
        let mut detail = Detail::default();
        detail.part(&PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        own.iter().zip(&ids).for_each(|(cost, id)| detail.row(*id, at, &[*cost]).unwrap());
        for (from, to, cost) in calls {
            let call = Call { callee: ids[*to], target: Place::default(), count: 1 };
            detail.call(ids[*from], at, &call, &[*cost]).unwrap();
        }
        detail.finish().unwrap();
        detail
    }

    #[test]
    fn samples_go_to_callers_by_their_share() {
        // main calls a and b, both call c: a for 30, b for 10.
        let detail = profile(&[10, 20, 20, 40], &[(0, 1, 50), (0, 2, 30), (1, 3, 30), (2, 3, 10)]);
        let found = calls(&detail, &[1, 2, 3, 100], 0);
        assert_eq!(found, [2 + 75, 3 + 25, 75, 25]);
        // A third of what c cost came from nobody who is known, as from a signal.
        let detail = profile(&[10, 20, 20, 60], &[(0, 1, 50), (0, 2, 30), (1, 3, 30), (2, 3, 10)]);
        assert_eq!(calls(&detail, &[1, 2, 3, 90], 0), [2 + 45, 3 + 15, 45, 15]);
    }

    #[test]
    fn a_cycle_has_what_all_of_it_has() {
        // main calls a, a and b call each other, b calls c.
        let detail = profile(&[10, 20, 20, 40], &[(0, 1, 80), (1, 2, 70), (2, 1, 30), (2, 3, 40)]);
        let found = calls(&detail, &[1, 2, 3, 100], 0);
        assert_eq!((found[0], found[3]), (105, 100));
        assert!(found[1] <= 105 && found[2] <= 105, "{found:?}");
        let alone = profile(&[10, 20], &[(0, 1, 20), (1, 1, 15)]);
        assert_eq!(calls(&alone, &[0, 8], 0), [8, 6]);
    }

    /// Random graphs, with cycles: sums hold outside of them, and nothing is above the whole.
    #[test]
    fn what_functions_have_is_theirs_and_their_calls() {
        let mut state: u64 = 7;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let count = 2 + random(8) as usize;
            let own: Vec<i64> = (0..count).map(|_| random(50) as i64).collect();
            // Costs as a run has them, callees first: each call of the later has a part of the earlier.
            let mut inclusive = own.clone();
            let mut arcs = Vec::new();
            for to in 0..count {
                let callers: Vec<usize> = (to + 1..count).filter(|_| random(3) == 0).collect();
                let parts = shares(inclusive[to], callers.iter().map(|_| 1));
                for (from, part) in callers.into_iter().zip(parts) {
                    inclusive[from] += part;
                    arcs.push((from, to, part));
                }
            }
            let detail = profile(&own, &arcs);
            let samples: Vec<i64> = (0..count).map(|_| random(100) as i64).collect();
            let found = calls(&detail, &samples, 0);
            let all: i64 = samples.iter().sum();
            for (at, own_samples) in samples.iter().enumerate() {
                let (mut out, mut into) = (0, 0);
                let mut seen = 0;
                for (call, has) in detail.calls.iter().zip(&found) {
                    assert!((0..=all).contains(has));
                    if call.function.index() == at {
                        out += has;
                    }
                    if call.callee.index() == at {
                        into += has;
                        seen += detail.call_cost(call, 0);
                    }
                }
                // Who has callers that account for all of it gives all of it on.
                if seen > 0 {
                    assert_eq!(into, own_samples + out, "function {at} of {arcs:?}");
                }
            }
        }
    }
}
