//! Machine code of functions, disassembled, as columns and lines of text.
//!
//! Rows say which addresses were executed. Code is taken from the object file around them: the symbol that holds them, or
//! what lies between the first and the last one. If an executed address is not where an instruction begins, the file is
//! another one than the one that ran, and its code is not shown.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

use cg_format::callgrind::{Names, ObjectId};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction, IntelFormatter, OpKind, SymbolResolver,
    SymbolResult,
};

use crate::elf::{Elf, Symbol, holding};
use crate::load::Side;
use crate::pack::Pack;

/// The share of the self cost whose functions have code in the report.
const HOT: f64 = 0.999;
/// Executed addresses that lie further apart belong to different stretches of code.
const FAR: u64 = 4096;
/// The longest instruction.
const LONGEST: u64 = 15;
/// A stretch of code that is longer is cut.
const MOST: u64 = 1 << 20;

/// What became of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its code is in the report.
    Here,
    /// It was not found, or is no object file.
    Missing,
    /// It is not the one that ran.
    Changed,
}

impl Found {
    /// How the page calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Here => "ok",
            Self::Missing => "missing",
            Self::Changed => "changed",
        }
    }
}

/// Instructions of all functions, in the order of functions and addresses.
#[derive(Debug, Default)]
struct Listing {
    from: Vec<u64>,
    addr: Vec<u64>,
    length: Vec<u64>,
    flow: Vec<u64>,
    /// Where direct branches lead, 0 for others.
    target: Vec<u64>,
    bytes: Vec<u8>,
    /// The chain of inlined functions, from 1; 0 if there is none.
    inline: Vec<u64>,
    chains: Chains,
    att: Vec<u8>,
    intel: Vec<u8>,
}

/// Chains of inlined functions, each once.
#[derive(Debug, Default)]
struct Chains {
    finder: HashMap<String, u64>,
    /// A line for each.
    text: String,
}

impl Chains {
    fn number(&mut self, chain: String) -> u64 {
        if chain.is_empty() {
            return 0;
        }
        let next = self.finder.len() as u64 + 1;
        if let Some(known) = self.finder.get(&chain) {
            return *known;
        }
        self.text.push_str(&chain);
        self.text.push('\n');
        self.finder.insert(chain, next);
        next
    }
}

/// Packs the code of functions; gives what became of their object files.
pub(crate) fn pack(
    pack: &mut Pack,
    names: &Names,
    side: &Side,
    event: usize,
    all: bool,
    root: Option<&Path>,
) -> io::Result<Vec<(ObjectId, Found)>> {
    if !side.detail.addresses {
        return Ok(Vec::new());
    }
    let functions = names.functions().len();
    let mut executed: Vec<Vec<u64>> = vec![Vec::new(); functions];
    let mut costs = vec![0_i64; functions];
    for row in &side.detail.rows {
        if row.at.place.addr != 0 {
            executed[row.function.index()].push(row.at.place.addr);
        }
        let cost = &mut costs[row.function.index()];
        *cost = cost.saturating_add(side.detail.row_costs(row).get(event).copied().unwrap_or(0));
    }
    let wanted = wanted(&costs, all);
    let mut objects: HashMap<ObjectId, Option<Elf>> = HashMap::new();
    let mut found: HashMap<ObjectId, Found> = HashMap::new();
    let mut listing = Listing { from: vec![0], ..Listing::default() };
    for function in names.functions() {
        let at = function.index();
        if wanted[at] && !executed[at].is_empty() {
            let object = names.get(function).object;
            let elf = objects.entry(object).or_insert_with(|| Elf::open(names.object_name(object), root));
            let state = match elf {
                Some(elf) if listing.add(elf, &mut executed[at]) => Found::Here,
                Some(_) => Found::Changed,
                None => Found::Missing,
            };
            let known = found.entry(object).or_insert(state);
            if state == Found::Changed {
                *known = state;
            }
        }
        listing.from.push(listing.addr.len() as u64);
    }
    pack.close("ins.from", &listing.from)?;
    pack.close("ins.addr", &listing.addr)?;
    pack.numbers("ins.len", &listing.length)?;
    pack.numbers("ins.flow", &listing.flow)?;
    pack.close("ins.target", &listing.target)?;
    let bytes: Vec<u64> = listing.bytes.iter().map(|byte| u64::from(*byte)).collect();
    pack.numbers("ins.bytes", &bytes)?;
    pack.close("ins.inline", &listing.inline)?;
    pack.text("text.inline", listing.chains.text.as_bytes())?;
    pack.text("text.att", &listing.att)?;
    pack.text("text.intel", &listing.intel)?;
    let mut found: Vec<(ObjectId, Found)> = found.into_iter().collect();
    found.sort_by_key(|(object, _)| *object);
    Ok(found)
}

/// Which functions have code in the report.
fn wanted(costs: &[i64], all: bool) -> Vec<bool> {
    let mut wanted = vec![all; costs.len()];
    let total: i128 = costs.iter().map(|cost| i128::from(*cost)).sum();
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(costs[*at]));
    let mut covered = 0_i128;
    for at in order {
        if covered as f64 >= HOT * total as f64 {
            break;
        }
        covered += i128::from(costs[at]);
        wanted[at] = true;
    }
    wanted
}

impl Listing {
    /// Adds the code around the executed addresses of a function, or nothing if it does not fit them.
    fn add(&mut self, elf: &Elf, executed: &mut Vec<u64>) -> bool {
        executed.sort_unstable();
        executed.dedup();
        let before = self.addr.len();
        let (bytes, att, intel) = (self.bytes.len(), self.att.len(), self.intel.len());
        for (start, end) in stretches(elf, executed) {
            let Some(code) = elf.bytes(start, end) else { return self.cut(before, bytes, att, intel) };
            // Without a symbol nobody knows what follows the last address.
            let known = elf.symbol(start).is_some_and(|symbol| symbol.end > start);
            let last = executed[executed.partition_point(|addr| *addr < end).saturating_sub(1)];
            self.stretch(elf, code, start, if known { end } else { last });
        }
        let here = &self.addr[before..];
        if executed.iter().all(|addr| here.binary_search(addr).is_ok()) {
            return true;
        }
        self.cut(before, bytes, att, intel)
    }

    fn cut(&mut self, instructions: usize, bytes: usize, att: usize, intel: usize) -> bool {
        for list in [&mut self.addr, &mut self.length, &mut self.flow, &mut self.target, &mut self.inline] {
            list.truncate(instructions);
        }
        self.bytes.truncate(bytes);
        self.att.truncate(att);
        self.intel.truncate(intel);
        false
    }

    fn stretch(&mut self, elf: &Elf, code: &[u8], start: u64, last: u64) {
        let resolver = || Some(Box::new(Targets(Rc::clone(&elf.symbols))) as Box<dyn SymbolResolver>);
        let mut gas = GasFormatter::with_options(resolver(), None);
        gas.options_mut().set_branch_leading_zeros(false);
        gas.options_mut().set_uppercase_hex(false);
        let mut intel = IntelFormatter::with_options(resolver(), None);
        intel.options_mut().set_branch_leading_zeros(false);
        intel.options_mut().set_uppercase_hex(false);
        intel.options_mut().set_hex_prefix("0x");
        intel.options_mut().set_hex_suffix("");
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut text = String::new();
        while decoder.can_decode() && decoder.ip() <= last {
            let at = decoder.position();
            decoder.decode_out(&mut instruction);
            let length = instruction.len();
            self.addr.push(instruction.ip());
            self.length.push(length as u64);
            self.bytes.extend_from_slice(&code[at..at + length]);
            self.flow.push(flow(&instruction));
            self.target.push(target(&instruction));
            let chain = elf.inlines.as_ref().map(|inlines| inlines.chain(instruction.ip())).unwrap_or_default();
            self.inline.push(self.chains.number(chain));
            for (formatter, out) in
                [(&mut gas as &mut dyn Formatter, &mut self.att), (&mut intel as &mut dyn Formatter, &mut self.intel)]
            {
                text.clear();
                formatter.format(&instruction, &mut text);
                out.extend_from_slice(text.replace('\n', " ").as_bytes());
                out.push(b'\n');
            }
        }
    }
}

/// Stretches of code that hold the executed addresses, which ascend.
fn stretches(elf: &Elf, executed: &[u64]) -> Vec<(u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for addr in executed {
        if let Some((_, end)) = stretches.last_mut() {
            if addr < end {
                continue;
            }
            if addr - *end < FAR && elf.symbol(*addr).is_none() {
                *end = addr + LONGEST;
                continue;
            }
        }
        let (start, end) = match elf.symbol(*addr) {
            Some(symbol) if symbol.end > *addr => (symbol.start, symbol.end.min(symbol.start.saturating_add(MOST))),
            _ => (*addr, addr.saturating_add(LONGEST)),
        };
        // Symbols may overlap; code is shown once.
        let start = stretches.last().map_or(start, |(_, last)| start.max(*last));
        stretches.push((start, end));
    }
    stretches
}

/// What an instruction does to the flow of control: 0 nothing, 1 jump, 2 conditional jump, 3 call, 4 return, 5 indirect
/// jump, 6 indirect call, 7 something else that does not go on.
fn flow(instruction: &Instruction) -> u64 {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => 1,
        FlowControl::ConditionalBranch => 2,
        FlowControl::Call => 3,
        FlowControl::Return => 4,
        FlowControl::IndirectBranch => 5,
        FlowControl::IndirectCall => 6,
        FlowControl::Exception => 7,
        _ => 0,
    }
}

fn target(instruction: &Instruction) -> u64 {
    let near = matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    if instruction.op_count() > 0 && near { instruction.near_branch_target() } else { 0 }
}

/// Names of addresses, for operands.
struct Targets(Rc<Vec<Symbol>>);

impl SymbolResolver for Targets {
    fn symbol(
        &mut self,
        _instruction: &Instruction,
        _operand: u32,
        _instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        holding(&self.0, address).map(|Symbol { start, name, .. }| SymbolResult::with_str(*start, name))
    }
}
