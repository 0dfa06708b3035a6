//! From what the model found to a part of a profile.
//!
//! Costs come from two places: what the model booked by context (its counters), and, without contexts, counts by instruction
//! that never passed through it. What skipped functions cost comes from the model in both cases, as a cost of the site
//! that called them; their own instructions' counts are left out then, so that nothing is told twice. If the two should
//! not be the same (instrumentation began inside a stub), the rest is told where it was counted: the sum is always right.

mod inlined;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use cg_calls::{CallTree, FunctionId, NodeIndex, Profile, SiteId};
use cg_format::callgrind::{self as format, Call, Jump, JumpKind, Names, Part, PartHeader, Position};
use cg_format::count::TooLarge;
use grind_symbols::Inlined;
use grind_types::hash::Map;

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The source file; `???` if it is not known.
    pub file: &'a [u8],
    /// The line; 0 if it is not known.
    pub line: u32,
    /// The number of the innermost function that was inlined there, for [`Program::inlined`]; 0: none.
    pub inlined: u32,
    /// The address relative to its object, as symbols have it.
    pub addr: u64,
}

/// A function that was inlined somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The file that it is declared in; `???` if it is not known.
    pub file: &'a [u8],
    /// The number of the one that it was inlined into, which is smaller; 0: the function that has the code.
    pub outer: u32,
    /// The line of the call there; 0 if it is not known.
    pub call_line: u32,
}

/// A function as the profile names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The file that it is defined in; `???` if it is not known.
    pub file: &'a [u8],
    /// The object; `???` if it is in none.
    pub object: &'a [u8],
    /// It is skipped: see [`cg_calls::Function::skip`].
    pub skipped: bool,
    /// Levels of recursion that are told apart.
    pub levels: u32,
}

/// Costs of one instruction: its address, and a value for each event.
pub type OwnCosts = (u64, Arc<[u64]>);

/// What stands above functions whose chains there was no room for, where a function has its name.
const BEYOND: &[u8] = b"(beyond --context-limit)";

/// What is known of the program.
pub trait Program {
    /// The function with this number.
    fn function(&self, id: FunctionId) -> Described<'_>;
    /// The function that contains an address.
    fn function_at(&self, addr: u64) -> FunctionId;
    /// The source of an instruction.
    fn source(&self, addr: u64) -> Source<'_>;
    /// What the profile says of inlined functions.
    fn inlines(&self) -> Inlined;
    /// The inlined function with this number.
    fn inlined(&self, number: u32) -> Option<Inline<'_>>;
    /// The address of a site.
    fn site(&self, id: SiteId) -> u64;
    /// A call's or jump's target, as addresses are told here, in a function.
    fn target(&self, addr: u64, function: FunctionId) -> u64;
    /// The instructions of a counter, with what one execution of each costs. What the model was told of as costs of the counter
    /// belongs to the first of them.
    fn counter(&self, counter: u32) -> impl Iterator<Item = (u64, &[u64])>;
    /// The address of the first of them.
    fn start(&self, counter: u32) -> u64;
}

/// Makes the part that `header` begins. `own` are costs of instructions that were counted apart from the model, in any
/// order and any number of pieces.
///
/// # Errors
/// When a cost is larger than a profile can hold.
pub fn part(
    header: PartHeader,
    profile: &Profile,
    own: &[OwnCosts],
    program: &impl Program,
    names: &mut Names,
) -> Result<Part, TooLarge> {
    let width = header.events.len();
    let executed = (!profile.jumps.is_empty()).then(HashMap::new);
    let by_line = !header.positions.instr && executed.is_none();
    let inlines = inlined::Inlines::new(program.inlines());
    let mut maker = Maker { part: Part::new(header), names, program, executed, by_line, last_file: None, inlines };
    let deeper = namesakes(profile, program);
    let nodes: Vec<format::FunctionId> = profile
        .nodes
        .iter()
        .map(|node| {
            let callers = node.functions.iter().skip(1).map(|f| program.function(*f).name);
            let about = program.function(node.functions[0]);
            let deeper = deeper.get(&node.functions[0]).copied().unwrap_or(0);
            let level = node.recursion.max((node.recursion + deeper).min(about.levels));
            maker.function(&about, &format::context_name(about.name, level, callers))
        })
        .collect();
    let node = |index: NodeIndex| nodes[index.0 as usize];

    maker.counters(profile, &nodes)?;
    let mut skipped = vec![0u64; width];
    for row in &profile.skipped {
        for (sum, cost) in skipped.iter_mut().zip(&row.costs) {
            *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
        }
        maker.row(node(row.node), program.site(row.site), &row.costs)?;
    }
    for (addr, costs) in own {
        let about = program.function(program.function_at(*addr));
        let mut costs = costs.to_vec();
        if about.skipped {
            // Already told, as far as it goes.
            for (cost, told) in costs.iter_mut().zip(&mut skipped) {
                let both = (*cost).min(*told);
                *cost -= both;
                *told -= both;
            }
        }
        let function = maker.function(&about, about.name);
        maker.row(function, *addr, &costs)?;
    }

    let arcs = joined(
        profile.arcs.iter(),
        |arc| (arc.from, program.site(arc.site), arc.to, arc.target),
        |sum, arc| {
            sum.calls = sum.calls.checked_add(arc.calls).ok_or(TooLarge)?;
            for (sum, cost) in sum.costs.iter_mut().zip(&arc.costs) {
                *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
            }
            Ok(())
        },
    )?;
    // Calls that cost nothing were made while nothing was collected: the reference leaves them out too.
    for arc in arcs.iter().filter(|arc| arc.costs.iter().any(|cost| *cost != 0)) {
        let at = maker.position(program.site(arc.site));
        let callee = profile.nodes[arc.to.0 as usize].functions[0];
        let target = maker.position(program.target(arc.target, callee)).place;
        let call = Call { callee: node(arc.to), target, count: arc.calls };
        let from = maker.within(node(arc.from), program.site(arc.site), &arc.costs)?;
        maker.part.add_call(from, at, call, &arc.costs)?;
    }
    let key = |jump: &cg_calls::Jump| (jump.from, program.site(jump.site), jump.to, jump.target, jump.conditional);
    let jumps = joined(profile.jumps.iter(), key, |sum, jump| {
        sum.count = sum.count.checked_add(jump.count).ok_or(TooLarge)?;
        Ok(())
    })?;
    for jump in &jumps {
        let from = program.site(jump.site);
        let function = (jump.from != jump.to).then(|| node(jump.to));
        let kind = if jump.conditional {
            // The instruction itself is counted as often as it is executed.
            let by_node = maker.executed.as_ref().and_then(|e| e.get(&(node(jump.from), from))).copied().unwrap_or(0);
            JumpKind::Conditional { taken: jump.count, executed: by_node.max(jump.count) }
        } else {
            JumpKind::Always { count: jump.count }
        };
        let to = profile.nodes[jump.to.0 as usize].functions[0];
        let (at, target) = (maker.position(from), maker.position(program.target(jump.target, to)));
        let function = maker.jump_to(function, node(jump.from), (from, program.target(jump.target, to)))?;
        let within = maker.within(node(jump.from), from, &[])?;
        maker.part.add_jump(within, at, Jump { target, function, kind });
    }
    maker.inlined_calls()?;
    maker.chains(&profile.tree)?;
    Ok(maker.part)
}

/// Functions that a profile cannot tell apart, since they have the name of their caller, by how many of those call one another in
/// a row: they are told as levels of recursion, as the reference does. (All code below `main` has one name, for example.)
fn namesakes(profile: &Profile, program: &impl Program) -> HashMap<FunctionId, u32> {
    let same = |a: FunctionId, b: FunctionId| {
        let (a, b) = (program.function(a), program.function(b));
        (a.name, a.file, a.object) == (b.name, b.file, b.object)
    };
    let function = |node: NodeIndex| profile.nodes[node.0 as usize].functions[0];
    let mut calls: Vec<(FunctionId, FunctionId)> =
        profile.arcs.iter().map(|a| (function(a.from), function(a.to))).collect();
    calls.sort();
    calls.dedup();
    calls.retain(|(from, to)| from != to && same(*from, *to));
    let mut deeper: HashMap<FunctionId, u32> = HashMap::new();
    for _ in 0..=calls.len() {
        let mut changed = false;
        for (from, to) in &calls {
            let below = deeper.get(from).copied().unwrap_or(0) + 1;
            let known = deeper.entry(*to).or_insert(0);
            changed |= *known < below;
            *known = below.max(*known);
        }
        if !changed {
            return deeper;
        }
    }
    // They call one another in a circle: none of them is the first.
    HashMap::new()
}

/// Adds up what has the same key, in the order in which keys occur first. An instruction that has been translated more than once is
/// several sites, which is nothing that a profile should tell.
fn joined<'a, T: Clone + 'a, K: Eq + Hash>(
    all: impl Iterator<Item = &'a T>,
    key: impl Fn(&T) -> K,
    add: impl Fn(&mut T, &T) -> Result<(), TooLarge>,
) -> Result<Vec<T>, TooLarge> {
    let mut sums: Vec<T> = Vec::new();
    let mut places = Map::default();
    for each in all {
        let next = sums.len();
        match *places.entry(key(each)).or_insert(next) {
            place if place == next => sums.push(each.clone()),
            place => add(&mut sums[place], each)?,
        }
    }
    Ok(sums)
}

struct Maker<'a, P> {
    part: Part,
    names: &'a mut Names,
    program: &'a P,
    /// The first cost (Ir) of instructions by function, if there are jumps.
    executed: Option<HashMap<(format::FunctionId, u64), u64>>,
    /// Nobody asks for single instructions, so that those of one line in a row are told as the first of them.
    by_line: bool,
    /// The file of the last position: most are those of their neighbours.
    last_file: Option<(&'a [u8], format::FileId)>,
    inlines: inlined::Inlines,
}

impl<P: Program> Maker<'_, P> {
    fn function(&mut self, about: &Described<'_>, name: &[u8]) -> format::FunctionId {
        let (file, object) = (self.names.file(about.file), self.names.object(about.object));
        self.names.function(name, file, object)
    }

    /// What has been booked by context. An instruction lies in several counters, as a rule: its costs are added up first.
    fn counters(&mut self, profile: &Profile, nodes: &[format::FunctionId]) -> Result<(), TooLarge> {
        let (width, program) = (self.part.header.events.len(), self.program);
        // By node and address: where their costs are.
        let mut rows: Vec<(u32, u64, u32)> = Vec::new();
        let mut costs: Vec<u64> = Vec::new();
        // Neighbours together: what is known of them is in one place.
        let mut order: Vec<(u64, usize)> =
            profile.counters.iter().enumerate().map(|(i, counter)| (program.start(counter.counter), i)).collect();
        order.sort_unstable();
        for counter in order.into_iter().map(|(_, i)| &profile.counters[i]) {
            let mut line = None;
            for (i, (addr, each)) in program.counter(counter.counter).enumerate() {
                let source = self.by_line.then(|| program.source(addr)).map(|s| (s.file.as_ptr(), s.line, s.inlined));
                if source.is_none() || source != line {
                    line = source;
                    rows.push((counter.node.0, addr, u32::try_from(costs.len() / width.max(1)).map_err(|_| TooLarge)?));
                    costs.resize(costs.len() + width, 0);
                }
                let start = costs.len() - width;
                for (sum, cost) in costs[start..].iter_mut().zip(each) {
                    let all = cost.checked_mul(counter.executions).ok_or(TooLarge)?;
                    *sum = sum.checked_add(all).ok_or(TooLarge)?;
                }
                for (sum, cost) in costs[start..].iter_mut().zip(counter.costs.iter().filter(|_| i == 0)) {
                    *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
                }
            }
        }
        rows.sort_unstable();
        let mut sum = vec![0u64; width];
        for same in rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            sum.fill(0);
            for (_, _, at) in same {
                for (sum, cost) in sum.iter_mut().zip(&costs[*at as usize * width..]) {
                    *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
                }
            }
            self.row(nodes[same[0].0 as usize], same[0].1, &sum)?;
        }
        Ok(())
    }

    /// Whole chains of calls.
    fn chains(&mut self, tree: &CallTree) -> Result<(), TooLarge> {
        let mut numbers: Vec<u32> = Vec::with_capacity(tree.chains.len());
        let mut narrow = Vec::new();
        for (n, chain) in tree.chains.iter().enumerate() {
            let function = match chain.function {
                Some(id) => {
                    let about = self.program.function(id);
                    self.function(&about, about.name)
                }
                None => {
                    let (file, object) = (self.names.file(b"???"), self.names.object(b""));
                    self.names.function(BEYOND, file, object)
                }
            };
            narrow.clear();
            // There may be columns behind those of events, for nothing.
            for cost in tree.costs(n).iter().take(self.part.header.events.len()) {
                narrow.push(i64::try_from(*cost).map_err(|_| TooLarge)?);
            }
            let parent = chain.parent.map(|parent| numbers[parent as usize]);
            numbers.push(self.part.add_chain(format::Chain { parent, function, calls: chain.calls }, &narrow)?);
        }
        Ok(())
    }

    fn position(&mut self, addr: u64) -> Position {
        let source = self.program.source(addr);
        let place = format::Place { addr: source.addr, line: source.line };
        let file = match self.last_file {
            Some((name, id)) if std::ptr::eq(name, source.file) => id,
            _ => self.names.file(source.file),
        };
        self.last_file = Some((source.file, file));
        Position { place, file }
    }

    fn row(&mut self, function: format::FunctionId, addr: u64, costs: &[u64]) -> Result<(), TooLarge> {
        if costs.iter().all(|cost| *cost == 0) {
            return Ok(());
        }
        if let Some(executed) = &mut self.executed {
            *executed.entry((function, addr)).or_insert(0) += costs.first().copied().unwrap_or(0);
        }
        let at = self.position(addr);
        let function = self.within(function, addr, costs)?;
        self.part.add_row(function, at, costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_calls::{CallersTable, Calls, Code, Config, Function, JumpKind as Kind, ObjectId, Place, Section, Site};
    use cg_format::callgrind::{WriteOptions, Writer};

    /// Functions of 256 bytes; number 2 is a stub. Site `s` is the instruction at `s` (of its low 16 bits); so are counters.
    #[derive(Default)]
    struct Small {
        callers: CallersTable,
    }

    impl Code for Small {
        fn place(&mut self, addr: u64) -> Place {
            let function = (addr / 256) as u32;
            let section = if function == 2 { Section::Plt } else { Section::Text };
            Place { function: FunctionId(function), object: ObjectId(0), section, is_entry: addr.is_multiple_of(256) }
        }
        fn site(&mut self, id: SiteId) -> Site {
            let addr = u64::from(id.0);
            Site { addr, next: addr + 5, block: addr, place: self.place(addr) }
        }
        fn site_before(&mut self, next: u64) -> SiteId {
            SiteId(next as u32 - 5)
        }
        fn function(&mut self, id: FunctionId) -> Function {
            Function { skip: id.0 == 2, separate_recs: 2, ..Function::PLAIN }
        }
        fn callers(&mut self) -> &mut CallersTable {
            &mut self.callers
        }
    }

    impl Program for Small {
        fn function(&self, id: FunctionId) -> Described<'_> {
            let name: &[u8] = match id.0 {
                1 => b"main",
                2 => b"stub",
                3 => b"f",
                _ => b"?",
            };
            Described { name, file: b"a.c", object: b"prog", skipped: id.0 == 2, levels: 2 }
        }
        fn function_at(&self, addr: u64) -> FunctionId {
            FunctionId((addr / 256) as u32)
        }
        fn source(&self, addr: u64) -> Source<'_> {
            Source { file: b"a.c", line: (addr % 256) as u32 + 1, inlined: 0, addr }
        }
        fn inlines(&self) -> Inlined {
            Inlined::Hidden
        }
        fn inlined(&self, _: u32) -> Option<Inline<'_>> {
            None
        }
        fn site(&self, id: SiteId) -> u64 {
            u64::from(id.0 & 0xffff)
        }
        fn counter(&self, counter: u32) -> impl Iterator<Item = (u64, &[u64])> {
            std::iter::once((counter.into(), &[1][..]))
        }
        fn start(&self, counter: u32) -> u64 {
            counter.into()
        }
        fn target(&self, addr: u64, _: FunctionId) -> u64 {
            addr
        }
    }

    /// main: calls f through the stub; f: calls itself once, and has a loop of four rounds.
    fn run(contexts: bool) -> (Profile, Vec<OwnCosts>) {
        let config = Config { contexts, collect_jumps: true, ..Config::arcs_only(1) };
        let mut calls = Calls::new(config, &[0]);
        let mut now = 0;
        let mut own: Vec<OwnCosts> = Vec::new();
        let mut execute = |calls: &mut Calls, addr: u64| {
            now += 1;
            own.push((addr, [1].into()));
            if contexts {
                calls.block(addr as u32);
            }
            [now]
        };
        let code = &mut Small::default();
        calls.begin(code, 0x100);
        let t = execute(&mut calls, 0x110);
        calls.call(code, SiteId(0x110), 0x200, 992, &t);
        let t = execute(&mut calls, 0x200);
        calls.jump(code, SiteId(0x200), 0x300, 992, Kind::Always, &t);
        let t = execute(&mut calls, 0x310);
        calls.call(code, SiteId(0x310), 0x300, 900, &t);
        for round in 0..4 {
            let t = execute(&mut calls, 0x320);
            if round < 3 {
                calls.jump(code, SiteId(0x320), 0x320, 900, Kind::Conditional, &t);
            }
        }
        let t = execute(&mut calls, 0x330);
        calls.ret(code, SiteId(0x330), 0x315, 908, &t);
        let t = execute(&mut calls, 0x330);
        calls.ret(code, SiteId(0x330), 0x115, 1000, &t);
        let t = execute(&mut calls, 0x115);
        (calls.take(&t), own)
    }

    fn text(contexts: bool) -> String {
        let (profile, own) = run(contexts);
        text_of(&profile, if contexts { &[] } else { &own })
    }

    fn text_of(profile: &Profile, own: &[OwnCosts]) -> String {
        let mut names = Names::default();
        let header = PartHeader { events: vec!["Ir".into()], ..PartHeader::default() };
        let part = part(header, profile, own, &Small::default(), &mut names).unwrap();
        let options = WriteOptions { compress_strings: false, compress_positions: false };
        let mut out = Vec::new();
        Writer::new(options).part(&mut out, &names, &part, &[]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let body = text.split_once("summary: ").unwrap().1;
        body.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn contexts_have_their_own_costs() {
        let expected = "10\nob=prog\nfl=a.c\nfn=f\n17 1\ncfn=f'2\ncalls=1 1\n17 5\n49 1\nfn=f'2\n33 4\njcnd=3/4 33\n33\n49 1\n\
                        fn=main\n17 2\ncfn=f\ncalls=1 1\n17 7\n22 1\ntotals: 10";
        assert_eq!(text(true), expected);
    }

    #[test]
    fn an_instruction_that_was_translated_twice_is_told_once() {
        let (mut profile, _) = run(true);
        let other = |site: SiteId| SiteId(site.0 | 0x1_0000);
        let (arcs, jumps) = (profile.arcs.clone(), profile.jumps.clone());
        profile.arcs.extend(arcs.into_iter().map(|arc| cg_calls::Arc { site: other(arc.site), ..arc }));
        profile.jumps.extend(jumps.into_iter().map(|jump| cg_calls::Jump { site: other(jump.site), ..jump }));
        let expected = "10\nob=prog\nfl=a.c\nfn=f\n17 1\ncfn=f'2\ncalls=2 1\n17 10\n49 1\nfn=f'2\n33 4\njcnd=6/6 33\n33\n49 1\n\
                        fn=main\n17 2\ncfn=f\ncalls=2 1\n17 14\n22 1\ntotals: 10";
        assert_eq!(text_of(&profile, &[]), expected);
    }

    #[test]
    fn without_contexts_a_stub_is_not_told_twice() {
        let expected = "10\nob=prog\nfl=a.c\nfn=f\n17 1\ncfn=f\ncalls=1 1\n17 5\n33 4\njcnd=3/4 33\n33\n49 2\n\
                        fn=main\n17 2\ncfn=f\ncalls=1 1\n17 7\n22 1\ntotals: 10";
        assert_eq!(text(false), expected);
    }

    #[test]
    fn what_was_counted_in_a_stub_without_a_call_stays_there() {
        let mut names = Names::default();
        let header = PartHeader { events: vec!["Ir".into()], ..PartHeader::default() };
        let part = part(header, &Profile::default(), &[(0x200, [3].into())], &Small::default(), &mut names).unwrap();
        assert_eq!(part.total(), [3]);
    }
}
