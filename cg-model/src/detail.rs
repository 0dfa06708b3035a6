//! What happened at each position of the code: self costs, calls and jumps, in the order of functions and positions.
//!
//! [`Detail`] keeps what it is told and puts it in order once, in [`Detail::finish`]; what happened at one position in
//! several parts is then one row. Costs stand in one list, a full row for each entry, so that a million instructions are
//! few allocations, and small ones take half a word.

use cg_format::callgrind::{Call, FileId, FunctionId, Jump, JumpKind, PartHeader, Place, Position, Sink};
use cg_format::count::TooLarge;

/// Self cost at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    spot: Spot,
    /// The function that the code belongs to.
    pub function: FunctionId,
    costs: u32,
}

/// Calls from a position to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallSite {
    spot: Spot,
    /// How often.
    pub count: u64,
    /// Who calls.
    pub function: FunctionId,
    /// Who is called.
    pub callee: FunctionId,
    costs: u32,
}

/// Jumps from one position to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpSite {
    spot: Spot,
    target: Spot,
    /// Times that it jumped.
    pub taken: u64,
    /// Times that it was executed, if it is conditional.
    executed: u64,
    /// Where the jump stands.
    pub function: FunctionId,
    /// The function that it leads to.
    pub target_function: FunctionId,
    conditional: bool,
}

/// A position with nothing in between: there are millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    addr: u64,
    file: FileId,
    line: u32,
}

impl Spot {
    fn new(at: Position) -> Self {
        Self { addr: at.place.addr, file: at.file, line: at.place.line }
    }

    fn position(self) -> Position {
        Position { place: Place { addr: self.addr, line: self.line }, file: self.file }
    }

    /// Where it is if files have these numbers.
    fn there(self, files: &[FileId]) -> Self {
        Self { file: files[self.file.index()], ..self }
    }

    /// Positions are in the order of addresses, and where none are known, of lines.
    fn order(self) -> (u64, FileId, u32) {
        (self.addr, self.file, self.line)
    }
}

/// Positions and what happened there.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Self costs; after [`Detail::finish`] by function, address, file and line, each once.
    pub rows: Vec<Row>,
    /// Calls, likewise, and then by callee.
    pub calls: Vec<CallSite>,
    /// Jumps, likewise, and then by target.
    pub jumps: Vec<JumpSite>,
    /// Whether a position has an address.
    pub addresses: bool,
    costs: Costs,
}

impl Detail {
    /// How many events each cost has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.costs.width.unwrap_or(0)
    }

    /// What a row costs in an event; nothing if there is none of this number.
    #[must_use]
    pub fn row_cost(&self, row: &Row, event: usize) -> i64 {
        self.costs.get(row.costs, event)
    }

    /// The inclusive cost of calls in an event, likewise.
    #[must_use]
    pub fn call_cost(&self, call: &CallSite, event: usize) -> i64 {
        self.costs.get(call.costs, event)
    }

    /// Adds what another profile says, whose functions and files have these numbers here.
    pub fn append(&mut self, other: &Self, functions: &[FunctionId], files: &[FileId]) {
        self.costs.width = self.costs.width.or(other.costs.width);
        self.addresses |= other.addresses;
        // Lists that grow step by step have room for twice as much.
        self.rows.reserve(other.rows.len());
        self.calls.reserve(other.calls.len());
        self.jumps.reserve(other.jumps.len());
        self.costs.small.reserve((other.rows.len() + other.calls.len()) * self.width());
        for row in &other.rows {
            let costs = self.costs.copy(&other.costs, row.costs);
            self.rows.push(Row { function: functions[row.function.index()], spot: row.spot.there(files), costs });
        }
        for call in &other.calls {
            let costs = self.costs.copy(&other.costs, call.costs);
            let (function, callee) = (functions[call.function.index()], functions[call.callee.index()]);
            self.calls.push(CallSite { function, callee, spot: call.spot.there(files), costs, ..*call });
        }
        for jump in &other.jumps {
            let (function, target) = (functions[jump.function.index()], functions[jump.target_function.index()]);
            self.jumps.push(JumpSite {
                function,
                target_function: target,
                spot: jump.spot.there(files),
                target: jump.target.there(files),
                ..*jump
            });
        }
    }

    /// Gives functions other numbers, of which several may be the same; [`Detail::finish`] then puts all in order. Nothing is copied.
    pub fn renumber(&mut self, functions: &[FunctionId]) {
        self.rows.iter_mut().for_each(|row| row.function = functions[row.function.index()]);
        for call in &mut self.calls {
            (call.function, call.callee) = (functions[call.function.index()], functions[call.callee.index()]);
        }
        for jump in &mut self.jumps {
            let target = functions[jump.target_function.index()];
            (jump.function, jump.target_function) = (functions[jump.function.index()], target);
        }
    }

    /// Adds an event behind the others: what each row and each call costs in it, in their order. What is left out at the end costs
    /// nothing.
    pub fn add_event(&mut self, rows: &[i64], calls: &[i64]) {
        let width = self.width();
        let mut costs = Costs { width: Some(width + 1), ..Costs::default() };
        costs.small.reserve((self.rows.len() + self.calls.len()) * (width + 1));
        let old = std::mem::take(&mut self.costs);
        let places = self.rows.iter_mut().map(|row| &mut row.costs).zip(with_zeros(rows));
        for (place, cost) in places.chain(self.calls.iter_mut().map(|call| &mut call.costs).zip(with_zeros(calls))) {
            *place = costs.widen(&old, *place, cost);
        }
        self.costs = costs;
    }

    /// Puts everything in order and adds up what happened at the same position.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum does not fit.
    pub fn finish(&mut self) -> Result<(), TooLarge> {
        // What is equal is added up in the order in which it came. Nothing is copied: the lists are most of what there is in memory.
        self.rows.sort_unstable_by_key(|row| (row.function, row.spot.order(), row.costs));
        let costs = &mut self.costs;
        let mut fits = true;
        self.rows.dedup_by(|row, sum| {
            let same = (sum.function, sum.spot) == (row.function, row.spot);
            fits &= !same || costs.join(sum.costs, row.costs);
            same
        });
        self.calls.sort_unstable_by_key(|call| (call.function, call.spot.order(), call.callee, call.costs));
        self.calls.dedup_by(|call, sum| {
            let same = (sum.function, sum.spot, sum.callee) == (call.function, call.spot, call.callee);
            fits &= !same || add(&mut sum.count, call.count) && costs.join(sum.costs, call.costs);
            same
        });
        let key = |jump: &JumpSite| {
            (jump.function, jump.spot.order(), jump.target_function, jump.target.order(), jump.conditional)
        };
        self.jumps.sort_unstable_by_key(key);
        self.jumps.dedup_by(|jump, sum| {
            let same = key(sum) == key(jump);
            if same {
                fits &= add(&mut sum.taken, jump.taken);
                fits &= add(&mut sum.executed, jump.executed);
            }
            same
        });
        // The sum of many parts has room for all of them.
        self.rows.shrink_to_fit();
        self.calls.shrink_to_fit();
        self.jumps.shrink_to_fit();
        if fits { Ok(()) } else { Err(TooLarge) }
    }
}

/// Values, and zeros behind them.
fn with_zeros(values: &[i64]) -> impl Iterator<Item = i64> + '_ {
    values.iter().copied().chain(std::iter::repeat(0))
}

/// Costs, one after another, a full list for each entry. Most are small and take four bytes; those that are not stand aside.
#[derive(Clone, Debug, Default)]
struct Costs {
    width: Option<usize>,
    small: Vec<u32>,
    large: Vec<i64>,
}

/// The rest of the bits is the place of a large cost.
const LARGE: u32 = 1 << 31;

impl Costs {
    fn get(&self, at: u32, event: usize) -> i64 {
        let width = self.width.unwrap_or(0);
        if event < width { self.value(at as usize * width + event) } else { 0 }
    }

    fn value(&self, at: usize) -> i64 {
        let small = self.small[at];
        if small < LARGE { i64::from(small) } else { self.large[(small ^ LARGE) as usize] }
    }

    fn push(&mut self, value: i64) {
        let small = self.small(value);
        self.small.push(small);
    }

    /// What stands for a value.
    fn small(&mut self, value: i64) -> u32 {
        match u32::try_from(value) {
            Ok(small) if small < LARGE => small,
            _ => {
                self.large.push(value);
                u32::try_from(self.large.len() - 1)
                    .ok()
                    .filter(|at| *at < LARGE)
                    .expect("fewer than 2^31 large costs fit in memory")
                    | LARGE
            }
        }
    }

    /// Keeps costs; zeros that are missing at the end are added.
    fn store(&mut self, costs: &[i64]) -> u32 {
        let (at, width) = (self.small.len(), self.width.unwrap_or(0));
        costs.iter().take(width).for_each(|cost| self.push(*cost));
        self.small.resize(at + width, 0);
        place(at, width)
    }

    /// Keeps costs of others.
    fn copy(&mut self, other: &Self, costs: u32) -> u32 {
        let (at, width) = (self.small.len(), self.width.unwrap_or(0));
        (0..width).for_each(|event| self.push(other.get(costs, event)));
        place(at, width)
    }

    /// Keeps costs of others, which have one event less, and what there is of that.
    fn widen(&mut self, other: &Self, costs: u32, more: i64) -> u32 {
        let (at, width) = (self.small.len(), self.width.unwrap_or(0));
        (0..width - 1).for_each(|event| self.push(other.get(costs, event)));
        self.push(more);
        place(at, width)
    }

    /// Adds what costs there are at one place to those at another; whether they fit.
    fn join(&mut self, sum: u32, more: u32) -> bool {
        let width = self.width.unwrap_or(0);
        let (sum, more) = (sum as usize * width, more as usize * width);
        (0..width).all(|event| {
            let Some(added) = self.value(sum + event).checked_add(self.value(more + event)) else { return false };
            match self.small[sum + event] {
                at if at >= LARGE => self.large[(at ^ LARGE) as usize] = added,
                _ => self.small[sum + event] = self.small(added),
            }
            true
        })
    }
}

/// The number of a list of costs that begins there. Nothing is stored of profiles without events, which have no rows.
fn place(at: usize, width: usize) -> u32 {
    u32::try_from(at / width.max(1)).expect("fewer than 2^32 rows fit in memory")
}

/// Adds to a count; whether it fits.
fn add(sum: &mut u64, more: u64) -> bool {
    let added = sum.checked_add(more);
    *sum = added.unwrap_or(u64::MAX);
    added.is_some()
}

impl Sink for Detail {
    fn part(&mut self, header: &PartHeader) {
        // Parts that count other events have no model.
        self.costs.width.get_or_insert(header.events.len());
    }

    fn row(&mut self, function: FunctionId, at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        self.addresses |= at.place.addr != 0;
        let costs = self.costs.store(costs);
        self.rows.push(Row { function, spot: Spot::new(at), costs });
        Ok(())
    }

    fn call(&mut self, function: FunctionId, at: Position, call: &Call, costs: &[i64]) -> Result<(), TooLarge> {
        self.addresses |= at.place.addr != 0;
        let costs = self.costs.store(costs);
        let spot = Spot::new(at);
        self.calls.push(CallSite { function, spot, callee: call.callee, count: call.count, costs });
        Ok(())
    }

    fn jump(&mut self, function: FunctionId, at: Position, jump: &Jump) {
        let (taken, executed, conditional) = match jump.kind {
            JumpKind::Always { count } => (count, 0, false),
            JumpKind::Conditional { taken, executed } => (taken, executed, true),
        };
        self.addresses |= at.place.addr != 0;
        let target_function = jump.function.unwrap_or(function);
        let (spot, target) = (Spot::new(at), Spot::new(jump.target));
        self.jumps.push(JumpSite { function, spot, target, target_function, taken, executed, conditional });
    }
}

impl Row {
    /// Where.
    #[must_use]
    pub fn at(&self) -> Position {
        self.spot.position()
    }

    /// The place within the file.
    #[must_use]
    pub fn place(&self) -> Place {
        self.at().place
    }
}

impl CallSite {
    /// Where.
    #[must_use]
    pub fn at(&self) -> Position {
        self.spot.position()
    }
}

impl JumpSite {
    /// Where.
    #[must_use]
    pub fn at(&self) -> Position {
        self.spot.position()
    }

    /// Where it leads.
    #[must_use]
    pub fn target(&self) -> Position {
        self.target.position()
    }

    /// Times that it was executed, if it is conditional.
    #[must_use]
    pub fn executed(&self) -> Option<u64> {
        self.conditional.then_some(self.executed)
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
        let costs = |row: &Row| [0, 1, 2].map(|event| sum.row_cost(row, event));
        let rows: Vec<_> = sum.rows.iter().map(|row| (row.function, row.place().line, costs(row))).collect();
        assert_eq!(rows, [(f, 2, [10, 0, 0]), (g, 2, [14, 0, 0]), (g, 3, [2, 4, 0])]);
        let call = &sum.calls[0];
        assert_eq!((sum.calls.len(), call.count, sum.call_cost(call, 0), sum.call_cost(call, 1)), (1, 4, 10, 0));
        assert_eq!((sum.jumps.len(), sum.jumps[0].taken, sum.jumps[0].executed()), (1, 2, Some(6)));
    }

    #[test]
    fn functions_with_other_numbers_are_what_was_copied_with_them() {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let ids = [b"f", b"g", b"h"].map(|name| names.function(name, file, object));
        let [f, g, h] = ids;
        let at = |line| Position { place: Place { addr: 0, line }, file };
        let mut detail = Detail::default();
        detail.part(&PartHeader { events: vec!["Ir".into()], ..PartHeader::default() });
        for (line, function) in [(3, f), (1, g), (3, h), (2, f)] {
            detail.row(function, at(line), &[i64::from(line) << 31]).unwrap();
            detail.call(function, at(line), &Call { callee: g, target: Place::default(), count: 2 }, &[7]).unwrap();
            let kind = JumpKind::Always { count: 3 };
            detail.jump(function, at(line), &Jump { target: at(1), function: Some(h), kind });
        }
        // Two become one, and all change places.
        let there = [h, f, h];
        let mut copied = Detail::default();
        copied.append(&detail, &there, &[file]);
        copied.finish().unwrap();
        detail.renumber(&there);
        detail.finish().unwrap();
        let told = |detail: &Detail| {
            let rows: Vec<_> =
                detail.rows.iter().map(|row| (row.function, row.at(), detail.row_cost(row, 0))).collect();
            let call = |call: &CallSite| (call.function, call.at(), call.callee, call.count, detail.call_cost(call, 0));
            (rows, detail.calls.iter().map(call).collect::<Vec<_>>(), detail.jumps.clone())
        };
        assert_eq!(told(&detail), told(&copied));
        assert_eq!((detail.rows.len(), detail.calls.len(), detail.jumps.len()), (3, 3, 3));
    }

    /// A function, places in its file, and nothing yet of two events.
    fn of_one_function() -> (FunctionId, impl Fn(u32) -> Position, Detail) {
        let mut names = Names::default();
        let (file, object) = (names.file(b"a.c"), names.object(b"prog"));
        let f = names.function(b"f", file, object);
        let mut detail = Detail::default();
        detail.part(&PartHeader { events: vec!["Ir".into(), "Dr".into()], ..PartHeader::default() });
        (f, move |line| Position { place: Place { addr: 0, line }, file }, detail)
    }

    #[test]
    fn an_event_that_is_added_leaves_the_others_as_they_were() {
        let (f, at, mut detail) = of_one_function();
        detail.row(f, at(1), &[1, i64::MAX]).unwrap();
        detail.row(f, at(2), &[3]).unwrap();
        detail.call(f, at(2), &Call { callee: f, target: Place::default(), count: 1 }, &[-5, 6]).unwrap();
        detail.finish().unwrap();
        detail.add_event(&[7], &[i64::from(LARGE)]);
        let costs: Vec<_> = detail.rows.iter().map(|row| [0, 1, 2].map(|event| detail.row_cost(row, event))).collect();
        assert_eq!((detail.width(), costs), (3, vec![[1, i64::MAX, 7], [3, 0, 0]]));
        assert_eq!([0, 1, 2].map(|event| detail.call_cost(&detail.calls[0], event)), [-5, 6, i64::from(LARGE)]);
        detail.finish().unwrap();
        assert_eq!(detail.row_cost(&detail.rows[0], 2), 7);
    }

    #[test]
    fn costs_of_any_size_are_kept_and_added_up() {
        let (f, at, mut detail) = of_one_function();
        let half = i64::from(LARGE) - 1;
        for costs in [[half, -1], [1, 1], [i64::MAX - half - 1, i64::MIN]] {
            detail.row(f, at(1), &costs).unwrap();
        }
        detail.row(f, at(2), &[half, i64::from(LARGE)]).unwrap();
        let mut sum = Detail::default();
        sum.append(&detail, &[f], &[at(0).file]);
        sum.finish().unwrap();
        let costs: Vec<_> = sum.rows.iter().map(|row| [0, 1].map(|event| sum.row_cost(row, event))).collect();
        assert_eq!(costs, [[i64::MAX, i64::MIN], [half, half + 1]]);
    }

    #[test]
    fn entries_take_no_more_memory_than_what_they_hold() {
        let sizes = [size_of::<Row>(), size_of::<CallSite>(), size_of::<JumpSite>()];
        assert_eq!(sizes, [24, 40, 64]);
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
