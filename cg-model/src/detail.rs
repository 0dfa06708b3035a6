//! What happened at each position of the code: self costs, calls and jumps, in the order of functions and positions.
//!
//! [`Detail`] keeps what it is told and puts it in order once, in [`Detail::finish`]; what happened at one position in
//! several parts is then one row. Costs stand in one list, a full row for each entry, so that a million instructions are
//! two allocations.

use cg_format::callgrind::{Call, FileId, FunctionId, Jump, JumpKind, PartHeader, Place, Position, Sink};
use cg_format::count::TooLarge;

/// Self cost at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The function that the code belongs to.
    pub function: FunctionId,
    /// Where.
    pub at: Position,
    costs: u32,
}

/// Calls from a position to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Who calls.
    pub function: FunctionId,
    /// Where.
    pub at: Position,
    /// Who is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
    costs: u32,
}

/// Jumps from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpSite {
    /// Where the jump stands.
    pub function: FunctionId,
    /// Where.
    pub at: Position,
    /// Where it leads.
    pub target: Position,
    /// The function that it leads to.
    pub target_function: FunctionId,
    /// Times that it jumped.
    pub taken: u64,
    /// Times that it was executed, if it is conditional.
    pub executed: Option<u64>,
}

/// Positions and what happened there.
#[derive(Debug, Default)]
pub struct Detail {
    /// Self costs; after [`Detail::finish`] by function, address, file and line, each once.
    pub rows: Vec<Row>,
    /// Calls, likewise, and then by callee.
    pub calls: Vec<CallSite>,
    /// Jumps, likewise, and then by target.
    pub jumps: Vec<JumpSite>,
    /// Whether a position has an address.
    pub addresses: bool,
    width: Option<usize>,
    costs: Vec<i64>,
}

impl Detail {
    /// The costs of a row, one for each event.
    #[must_use]
    pub fn row_costs(&self, row: &Row) -> &[i64] {
        self.at(row.costs)
    }

    /// The inclusive costs of calls, one for each event.
    #[must_use]
    pub fn call_costs(&self, call: &CallSite) -> &[i64] {
        self.at(call.costs)
    }

    fn at(&self, costs: u32) -> &[i64] {
        let width = self.width.unwrap_or(0);
        &self.costs[costs as usize * width..][..width]
    }

    /// Adds what another profile says, whose functions and files have these numbers here.
    pub fn append(&mut self, other: &Self, functions: &[FunctionId], files: &[FileId]) {
        self.width = self.width.or(other.width);
        self.addresses |= other.addresses;
        let there = |at: Position| Position { file: files[at.file.index()], ..at };
        for row in &other.rows {
            let costs = self.store(other.row_costs(row));
            self.rows.push(Row { function: functions[row.function.index()], at: there(row.at), costs });
        }
        for call in &other.calls {
            let costs = self.store(other.call_costs(call));
            let (function, callee) = (functions[call.function.index()], functions[call.callee.index()]);
            self.calls.push(CallSite { function, callee, at: there(call.at), costs, ..*call });
        }
        for jump in &other.jumps {
            let (function, target) = (functions[jump.function.index()], functions[jump.target_function.index()]);
            self.jumps.push(JumpSite {
                function,
                target_function: target,
                at: there(jump.at),
                target: there(jump.target),
                ..*jump
            });
        }
    }

    /// Puts everything in order and adds up what happened at the same position.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum does not fit.
    pub fn finish(&mut self) -> Result<(), TooLarge> {
        // What is equal is added up in the order in which it came. Nothing is copied: the lists are most of what there is in memory.
        self.rows.sort_unstable_by_key(|row| (row.function, order(row.at), row.costs));
        let (costs, width) = (&mut self.costs, self.width.unwrap_or(0));
        let mut fits = true;
        self.rows.dedup_by(|row, sum| {
            let same = (sum.function, sum.at) == (row.function, row.at);
            fits &= !same || join(costs, width, sum.costs, row.costs);
            same
        });
        self.calls.sort_unstable_by_key(|call| (call.function, order(call.at), call.callee, call.costs));
        self.calls.dedup_by(|call, sum| {
            let same = (sum.function, sum.at, sum.callee) == (call.function, call.at, call.callee);
            fits &= !same || add(&mut sum.count, call.count) && join(costs, width, sum.costs, call.costs);
            same
        });
        let key = |jump: &JumpSite| {
            (jump.function, order(jump.at), jump.target_function, order(jump.target), jump.executed.is_some())
        };
        self.jumps.sort_unstable_by_key(key);
        self.jumps.dedup_by(|jump, sum| {
            let same = key(sum) == key(jump);
            if same {
                fits &= add(&mut sum.taken, jump.taken);
                if let (Some(sum), Some(more)) = (&mut sum.executed, jump.executed) {
                    fits &= add(sum, more);
                }
            }
            same
        });
        if fits { Ok(()) } else { Err(TooLarge) }
    }

    /// Keeps costs; zeros that are missing at the end are added.
    fn store(&mut self, costs: &[i64]) -> u32 {
        let (at, width) = (self.costs.len(), self.width.unwrap_or(0));
        self.costs.extend(costs.iter().take(width));
        self.costs.resize(at + width, 0);
        // Nothing is stored of profiles without events, which have no rows.
        u32::try_from(at / width.max(1)).expect("fewer than 2^32 rows fit in memory")
    }
}

/// Adds what costs there are at one place to those at another; whether they fit.
fn join(costs: &mut [i64], width: usize, sum: u32, more: u32) -> bool {
    let (sum, more) = (sum as usize * width, more as usize * width);
    (0..width).all(|event| {
        let added = costs[sum + event].checked_add(costs[more + event]);
        added.is_some_and(|added| {
            costs[sum + event] = added;
            true
        })
    })
}

/// Adds to a count; whether it fits.
fn add(sum: &mut u64, more: u64) -> bool {
    let added = sum.checked_add(more);
    *sum = added.unwrap_or(u64::MAX);
    added.is_some()
}

/// Positions are in the order of addresses, and where none are known, of lines.
fn order(at: Position) -> (u64, FileId, u32) {
    (at.place.addr, at.file, at.place.line)
}

impl Sink for Detail {
    fn part(&mut self, header: &PartHeader) {
        // Parts that count other events have no model.
        self.width.get_or_insert(header.events.len());
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.addresses |= at.place.addr != 0;
        let costs = self.store(costs);
        self.rows.push(Row { function, at, costs });
        Ok(())
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.addresses |= at.place.addr != 0;
        let costs = self.store(costs);
        self.calls.push(CallSite { function, at, callee: call.callee, count: call.count, costs });
        Ok(())
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        let (taken, executed) = match jump.kind {
            JumpKind::Always { count } => (count, None),
            JumpKind::Conditional { taken, executed } => (taken, Some(executed)),
        };
        self.addresses |= at.place.addr != 0;
        let target_function = jump.function.unwrap_or(function);
        self.jumps.push(JumpSite { function, at, target: jump.target, target_function, taken, executed });
    }
}

impl Row {
    /// The place within the file.
    #[must_use]
    pub fn place(&self) -> Place {
        self.at.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::callgrind::Names;

    #[test]
    fn one_position_is_one_row_whatever_part_or_file_it_comes_from() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let (f, g) = (names.function(b"f", file, object), names.function(b"g", file, object));
        let at = |line| Position { place: Place { addr: 0, line }, file };
        let header = PartHeader { events: vec!["Ir".into(), "Dr".into()], ..PartHeader::default() };
        let mut one = Detail::default();
        one.part(&header);
        one.row(g, at(2), &[5]).unwrap();
        one.row(f, at(3), &[1, 2]).unwrap();
        one.row(f, at(2), &[7]).unwrap();
        let call = Call { callee: g, target: Place::default(), count: 2 };
        one.call(f, at(3), &call, &[5]).unwrap();
        let jump = |kind| Jump { target: at(2), function: None, kind };
        one.jump(f, at(3), &jump(JumpKind::Conditional { taken: 1, executed: 3 }));
        let mut sum = Detail::default();
        // The second time functions and files have other numbers.
        sum.append(&one, &[g, f], &[file]);
        sum.append(&one, &[g, f], &[file]);
        sum.finish().unwrap();
        let rows: Vec<_> = sum.rows.iter().map(|row| (row.function, row.place().line, sum.row_costs(row))).collect();
        assert_eq!(rows, [(f, 2, &[10, 0][..]), (g, 2, &[14, 0]), (g, 3, &[2, 4])]);
        assert_eq!((sum.calls.len(), sum.calls[0].count, sum.call_costs(&sum.calls[0])), (1, 4, &[10, 0][..]));
        assert_eq!((sum.jumps.len(), sum.jumps[0].taken, sum.jumps[0].executed), (1, 2, Some(6)));
    }

    #[test]
    fn calls_and_jumps_without_costs_have_addresses_too() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let f = names.function(b"f", file, object);
        let at = Position { place: Place { addr: 7, line: 1 }, file };
        let (mut calls, mut jumps) = (Detail::default(), Detail::default());
        calls.call(f, at, &Call { callee: f, target: Place::default(), count: 1 }, &[5]).unwrap();
        jumps.jump(f, at, &Jump { target: at, function: None, kind: JumpKind::Always { count: 1 } });
        assert!(calls.addresses && jumps.addresses);
    }

    #[test]
    fn sums_that_do_not_fit_are_an_error() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let f = names.function(b"f", file, object);
        let at = Position { place: Place::default(), file };
        let mut detail = Detail::default();
        detail.part(&PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        detail.row(f, at, &[i64::MAX]).unwrap();
        detail.row(f, at, &[1]).unwrap();
        assert_eq!(detail.finish(), Err(TooLarge));
    }
}
