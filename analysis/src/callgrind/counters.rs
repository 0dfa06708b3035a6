//! Counters: what is executed, and counted, as one; the instructions of each, and what one execution of each instruction costs.
//!
//! There are millions of instructions, and few kinds of them, so instructions are shared with whoever told of them, and costs
//! are kept by kind. Where cycles are estimated, what an instruction costs depends on its neighbours, too; rows of costs are
//! shared all the same. Invariants: counters are only added; the kind of each instruction in a counter is known.

use std::collections::HashMap;
use std::sync::Arc;

use cg_calls::Profile;
use grind_trace::{Instruction, Instructions};
use grind_types::StaticEvents;

use super::columns::Columns;
use crate::cycles::{self, Pricing};

#[derive(Clone, Debug)]
enum Counter {
    Instructions(Instructions),
    /// What happens at an instruction, but is none.
    At {
        addr: u64,
        costs: Arc<[u64]>,
    },
}

/// Whether an instruction counts as one, and what it does.
type Kind = (bool, StaticEvents);

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    all: Vec<Counter>,
    /// What [`Counters::age`] was when each was added.
    ages: Vec<u32>,
    /// How often other code has come to lie where there was some: addresses of counters are those of what was there when they were
    /// added.
    pub age: u32,
    /// What executing an instruction costs, by what it does; where cycles are not estimated.
    kinds: Vec<(Kind, Box<[u64]>)>,
    priced: Option<Priced>,
}

/// Costs where cycles are estimated.
#[derive(Clone, Debug)]
struct Priced {
    pricing: Pricing,
    rows: Vec<Box<[u64]>>,
    by_kind: HashMap<(Kind, [u64; cycles::EVENTS]), u32>,
    /// By counter: the row of each instruction, and how many have no entry in the model.
    counters: Vec<(Arc<[u32]>, u32)>,
}

impl Priced {
    fn add(&mut self, columns: Columns, instructions: &[Instruction]) {
        let forms: Vec<u16> = instructions.iter().map(|i| i.events.form).collect();
        let (each, unknown) = self.pricing.block(&forms);
        let Self { rows, by_kind, .. } = self;
        let row = |(i, cycles): (&Instruction, [u64; cycles::EVENTS])| {
            // What is executed apart is estimated there.
            let cycles = if i.counted { cycles } else { [0; cycles::EVENTS] };
            *by_kind.entry((kind_of(i), cycles)).or_insert_with(|| {
                rows.push(columns.with_cycles(&columns.execution(i.counted, i.events), cycles).into());
                (rows.len() - 1) as u32
            })
        };
        self.counters.push((instructions.iter().zip(each).map(row).collect(), unknown));
    }
}

impl Counters {
    /// Counters of a run that estimates cycles, if there is a `pricing`.
    #[must_use]
    pub fn priced(pricing: Option<Pricing>) -> Self {
        let priced =
            pricing.map(|pricing| Priced { pricing, rows: Vec::new(), by_kind: HashMap::new(), counters: Vec::new() });
        Self { priced, ..Self::default() }
    }

    /// The counter is that of an instruction that is executed apart and does this. Says what one execution is estimated at, if cycles
    /// are.
    pub fn executed_apart(&mut self, counter: u32, events: StaticEvents) -> [u64; cycles::EVENTS] {
        let Some(priced) = &mut self.priced else { return [0; cycles::EVENTS] };
        let (each, unknown) = priced.pricing.block(&[events.form]);
        priced.counters[counter as usize].1 = unknown;
        each.first().copied().unwrap_or_default()
    }

    /// How many executions in a profile are of instructions that have no entry in the model that estimates cycles.
    #[must_use]
    pub fn unknown(&self, profile: &Profile) -> u64 {
        let Some(priced) = &self.priced else { return 0 };
        // Of what is executed apart, executions are costs of the counter.
        let executions = |c: &cg_calls::Counter| c.executions + c.costs.first().copied().unwrap_or(0);
        profile.counters.iter().map(|c| u64::from(priced.counters[c.counter as usize].1) * executions(c)).sum()
    }

    /// A counter of instructions that are executed one after the other.
    pub fn add(&mut self, columns: Columns, instructions: Instructions) -> u32 {
        if let Some(priced) = &mut self.priced {
            priced.add(columns, &instructions);
            return self.push(Counter::Instructions(instructions));
        }
        for i in instructions.iter() {
            let kind = kind_of(i);
            if self.kinds.iter().all(|(known, _)| *known != kind) {
                self.kinds.push((kind, columns.execution(i.counted, i.events).into()));
            }
        }
        self.push(Counter::Instructions(instructions))
    }

    /// A counter of something that happens at an instruction, and what it costs.
    pub fn add_at(&mut self, addr: u64, costs: impl Into<Arc<[u64]>>) -> u32 {
        if let Some(priced) = &mut self.priced {
            priced.counters.push((Arc::default(), 0));
        }
        self.push(Counter::At { addr, costs: costs.into() })
    }

    fn push(&mut self, counter: Counter) -> u32 {
        self.all.push(counter);
        self.ages.push(self.age);
        u32::try_from(self.all.len() - 1).expect("fewer than 2^32 counters")
    }

    /// Addresses of a counter's instructions, and what one execution of each costs; zeros at the end are left out.
    pub fn of(&self, counter: u32) -> impl Iterator<Item = (u64, &[u64])> {
        let (instructions, at) = match &self.all[counter as usize] {
            Counter::Instructions(instructions) => (&instructions[..], None),
            Counter::At { addr, costs } => (&[][..], Some((*addr, &costs[..]))),
        };
        let priced = self.priced.as_ref();
        let rows = priced.map_or(&[][..], |priced| &priced.counters[counter as usize].0);
        let costs = move |(n, i): (usize, &Instruction)| match (priced, rows.get(n)) {
            (Some(priced), Some(row)) => &priced.rows[*row as usize][..],
            _ => self.costs(i),
        };
        instructions.iter().enumerate().map(move |(n, i)| (i.addr.0, costs((n, i)))).chain(at)
    }

    /// See [`Counters::age`].
    pub fn age_of(&self, counter: u32) -> u32 {
        self.ages[counter as usize]
    }

    /// The first of those addresses; 0 if there is none.
    pub fn start(&self, counter: u32) -> u64 {
        match &self.all[counter as usize] {
            Counter::Instructions(instructions) => instructions.iter().next().map_or(0, |i| i.addr.0),
            Counter::At { addr, .. } => *addr,
        }
    }

    fn costs(&self, i: &Instruction) -> &[u64] {
        let kind = kind_of(i);
        self.kinds.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, costs)| costs)
    }
}

fn kind_of(i: &Instruction) -> Kind {
    (i.counted, i.events)
}

#[cfg(test)]
mod tests {
    use grind_types::addr::GuestAddr;

    use super::*;
    use crate::callgrind::settings::Settings;

    #[test]
    fn each_instruction_costs_what_its_kind_does() {
        let mut counters = Counters::default();
        let columns = Columns::of(Settings::default().events(cg_format::events::Caches::None, false));
        let one = |addr: u64, counted: bool, reads: u8| Instruction {
            addr: GuestAddr(addr),
            len: 4,
            counted,
            ends_block: false,
            events: StaticEvents { reads, ..StaticEvents::default() },
        };
        let all = Instructions::from(vec![one(16, true, 0), one(20, false, 1), one(24, true, 2), one(28, true, 0)]);
        let first = counters.add(columns, all.first(3));
        let whole = counters.add(columns, all);
        let miss = counters.add_at(20, [0, 0, 1]);
        let of = |counter| counters.of(counter).map(|(addr, costs)| (addr, costs.to_vec())).collect::<Vec<_>>();
        assert_eq!(of(first), [(16, vec![1]), (20, vec![]), (24, vec![1])]);
        assert_eq!(of(whole), [(16, vec![1]), (20, vec![]), (24, vec![1]), (28, vec![1])]);
        assert_eq!(of(miss), [(20, vec![0, 0, 1])]);
    }
}
