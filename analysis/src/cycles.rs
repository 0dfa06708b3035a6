//! Estimated cycles (`--cycle-estimation=yes`): what the model of a processor says of what was executed. The model is `cg-cycles`; here
//! it meets the counts of a run. Nothing is measured for it, and nothing is counted but executions.
//!
//! Ct and Cl are what the instruction costs by itself, Cb its share of what bounds the block that it was translated in. An instruction
//! that is told by itself (its block was left in the middle, it repeats, or its translation has been thrown away) is a block of its
//! own. Where calls are told, the first instructions of a block that was left in the middle are a block ([`Pricing`]). Invariant: what has no entry adds nothing to any of them, and is counted as unknown.

use std::cell::RefCell;
use std::sync::Arc;

use cg_cycles::{BadTable, Form, Model, Table, Unknown};
use grind_session::{Counts, Stretch};

/// How many events there are.
pub const EVENTS: usize = 3;

/// The model of a run.
#[derive(Debug)]
pub struct Cycles {
    model: Model,
    table: Arc<Table>,
    /// The shares of the block that was asked about last, by its first address and its instructions.
    last: RefCell<(Vec<Form>, Vec<u64>)>,
}

impl Cycles {
    /// That of a processor.
    ///
    /// # Errors
    /// Its table makes no sense.
    pub fn new(model: Model) -> Result<Self, BadTable> {
        Ok(Self { model, table: Arc::new(model.table()?), last: RefCell::default() })
    }

    /// The names of the events, in the order of [`Cycles::of`].
    #[must_use]
    pub fn names() -> [&'static str; EVENTS] {
        use cg_format::events::{CB, CL, CT};
        [CT.name, CL.name, CB.name]
    }

    /// What costs instructions where calls are told.
    #[must_use]
    pub fn pricing(&self) -> Pricing {
        Pricing { table: self.table.clone() }
    }

    /// What the profile says about where the numbers come from.
    #[must_use]
    pub fn description(&self) -> Vec<u8> {
        format!("Cycles: estimated by the model of {} (-mcpu={} of llvm-mca)", self.model.name, self.model.cpu)
            .into_bytes()
    }

    fn own(&self, form: Form) -> [u64; 2] {
        own(&self.table, form)
    }

    /// What one execution of an instruction costs that is told by itself.
    #[must_use]
    pub fn of_single(&self, form: u16) -> [u64; EVENTS] {
        let form = Form::from_number(form);
        let [throughput, latency] = self.own(form);
        [throughput, latency, self.table.bound(&[form]).total]
    }

    /// What one execution of the instruction of this number in a stretch costs.
    #[must_use]
    pub fn of(&self, counts: &Counts<'_>, stretch: &Stretch, number: u16) -> [u64; EVENTS] {
        let forms = forms_of(counts, stretch);
        let mut last = self.last.borrow_mut();
        if last.0 != forms {
            let shares = self.table.bound(&forms).shares;
            *last = (forms, shares);
        }
        let at = usize::from(number);
        let [throughput, latency] = last.0.get(at).map_or([0; 2], |form| self.own(*form));
        [throughput, latency, last.1.get(at).copied().unwrap_or(0)]
    }

    /// What one execution of a whole stretch costs, but for instructions that are counted by themselves.
    #[must_use]
    pub fn of_stretch(&self, counts: &Counts<'_>, stretch: &Stretch) -> [u64; EVENTS] {
        let forms = forms_of(counts, stretch);
        let shares = self.table.bound(&forms).shares;
        let mut sums = [0; EVENTS];
        for (number, one) in counts.instructions_of(stretch) {
            let [throughput, latency] = self.own(Form::from_number(one.events.form));
            let costs = [throughput, latency, shares.get(usize::from(number)).copied().unwrap_or(0)];
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        sums
    }

    /// How much of what was executed has no entry.
    #[must_use]
    pub fn unknown(&self, counts: &Counts<'_>) -> Unknown {
        let mut unknown = Unknown::default();
        for one in counts.instructions() {
            unknown.of += one.count;
            if self.table.of(Form::from_number(one.events.form)).is_none() {
                unknown.executions += one.count;
            }
        }
        unknown
    }

    /// What the log says about that.
    #[must_use]
    pub fn summary(&self, unknown: Unknown) -> String {
        let Unknown { executions, of } = unknown;
        let percent = executions as f64 * 100.0 / (of.max(1)) as f64;
        let known = cg_format::show::commas(i128::from(of - executions));
        format!(
            "Cycles: estimated by the model of {}; {known} of {} executed instructions are in it ({percent:.2}% are not)",
            self.model.name,
            cg_format::show::commas(i128::from(of))
        )
    }
}

fn own(table: &Table, form: Form) -> [u64; 2] {
    table.of(form).map_or([0; 2], |entry| [entry.throughput.into(), entry.latency.into()])
}

/// What instructions that are executed one after the other are estimated at.
#[derive(Clone, Debug)]
pub struct Pricing {
    table: Arc<Table>,
}

impl Pricing {
    /// What one execution of each of a block's instructions costs, in the order of [`Cycles::names`]; and how many of them have no
    /// entry.
    #[must_use]
    pub fn block(&self, forms: &[u16]) -> (Vec<[u64; EVENTS]>, u32) {
        let forms: Vec<Form> = forms.iter().map(|form| Form::from_number(*form)).collect();
        let bound = self.table.bound(&forms);
        let each = forms.iter().zip(bound.shares).map(|(form, share)| {
            let [throughput, latency] = own(&self.table, *form);
            [throughput, latency, share]
        });
        (each.collect(), bound.unknown)
    }
}

/// The forms of a stretch's instructions; of those that are counted by themselves, too, since they are in the block.
fn forms_of(counts: &Counts<'_>, stretch: &Stretch) -> Vec<Form> {
    (0..counts.length_of(stretch)).map(|n| Form::from_number(counts.events_of(stretch, n).form)).collect()
}
