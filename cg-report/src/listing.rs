//! Instructions of all functions as columns and lines of text.
//!
//! A program has few different instructions for its size, and a function that is called in several ways has the same code
//! in all of them. So a stretch of code stands here once, whatever number of functions it belongs to, and what an
//! instruction looks like once for all places where an object has an equal one: where it leads to and what it refers to
//! are parts of it, its own address is not. A stretch is either here as a whole or not at all.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::io;
use std::rc::Rc;

use cg_format::hash::NameKeys;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Instruction, IntelFormatter, OpKind, SymbolResolver,
    SymbolResult,
};

use crate::elf::{Elf, Symbol, holding};
use crate::pack::{Growing, Pack};

/// A stretch of code of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    /// Behind its last byte.
    pub(crate) end: u64,
    /// No instruction that begins behind this is part of it.
    pub(crate) last: u64,
}

/// An object file whose code is shown.
pub(crate) struct Object {
    pub(crate) elf: Elf,
    /// Numbers of instructions that are in the listing.
    kinds: HashMap<Kind, u32, NameKeys>,
    /// Numbers of stretches, likewise.
    stretches: HashMap<Stretch, u64>,
    att: GasFormatter,
    intel: IntelFormatter,
}

impl Object {
    /// An object of which nothing is in the listing.
    pub(crate) fn new(elf: Elf) -> Self {
        let resolver = || Some(Box::new(Targets(Rc::clone(&elf.symbols))) as Box<dyn SymbolResolver>);
        let mut att = GasFormatter::with_options(resolver(), None);
        att.options_mut().set_branch_leading_zeros(false);
        att.options_mut().set_uppercase_hex(false);
        let mut intel = IntelFormatter::with_options(resolver(), None);
        intel.options_mut().set_branch_leading_zeros(false);
        intel.options_mut().set_uppercase_hex(false);
        intel.options_mut().set_hex_prefix("0x");
        intel.options_mut().set_hex_suffix("");
        Self { elf, kinds: HashMap::default(), stretches: HashMap::new(), att, intel }
    }
}

/// An instruction without its address. Those of equal looks may differ in length.
#[derive(Clone, Copy)]
struct Kind(Instruction);

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.0.len() == other.0.len()
    }
}

impl Eq for Kind {}

impl Hash for Kind {
    /// Takes what most instructions differ in: all of their fields would take longer than everything else that is done with them.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(instruction) = self;
        let registers = [instruction.op0_register(), instruction.op1_register(), instruction.memory_base()];
        let what = registers.into_iter().fold(instruction.code() as u64, |word, register| word << 8 | register as u64);
        state.write_u64(what << 8 | instruction.memory_index() as u64);
        // This is what immediate operands and targets of branches are made of, too.
        state.write_u64(instruction.memory_displacement64() ^ u64::from(instruction.immediate32()).rotate_left(32));
    }
}

/// Instructions of all functions. Functions have stretches, stretches have instructions and bytes, instructions are of kinds.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Where the stretches of each function begin in `stretches`, and where the last ones end.
    function_from: Vec<u64>,
    /// Numbers of stretches.
    stretches: Vec<u64>,
    /// Where stretches begin: their addresses, their instructions, and their bytes; the last two also say where the last one ends.
    addr: Vec<u64>,
    from: Vec<u64>,
    byte: Vec<u64>,
    bytes: Growing,
    /// Of each instruction.
    kind: Vec<u32>,
    /// The chain of inlined functions, from 1; 0 if there is none, also for all that follow the last one.
    inline: Vec<u32>,
    chains: Chains,
    kinds: Kinds,
}

/// Instructions that differ in more than their place.
#[derive(Debug)]
struct Kinds {
    length: Vec<u8>,
    flow: Vec<u8>,
    /// Where direct branches lead, 0 for others.
    target: Vec<u64>,
    /// A line for each.
    att: Growing,
    intel: Growing,
    line: String,
}

/// Chains of inlined functions, each once.
#[derive(Debug, Default)]
struct Chains {
    finder: HashMap<String, u32>,
    /// A line for each.
    text: String,
}

impl Chains {
    fn number(&mut self, chain: String) -> u32 {
        if let Some(known) = self.finder.get(&chain) {
            return *known;
        }
        let next = small(self.finder.len() + 1);
        self.text.push_str(&chain);
        self.text.push('\n');
        self.finder.insert(chain, next);
        next
    }
}

impl Listing {
    /// A listing without functions, which is packed while it is made.
    pub(crate) fn new(pack: &mut Pack) -> Self {
        let kinds = Kinds {
            length: Vec::new(),
            flow: Vec::new(),
            target: Vec::new(),
            att: pack.begin("text.att"),
            intel: pack.begin("text.intel"),
            line: String::new(),
        };
        Self {
            function_from: vec![0],
            stretches: Vec::new(),
            addr: Vec::new(),
            from: vec![0],
            byte: vec![0],
            bytes: pack.begin("ins.bytes"),
            kind: Vec::new(),
            inline: Vec::new(),
            chains: Chains::default(),
            kinds,
        }
    }

    /// Adds stretches of code to the function to come, or nothing if an executed address is not where one of their instructions
    /// begins. All ascend.
    pub(crate) fn add(&mut self, object: &mut Object, stretches: &[Stretch], executed: &[u64]) -> bool {
        let mut fresh: Vec<(Stretch, Vec<Instruction>, Vec<u8>)> = Vec::new();
        let mut here: Vec<u64> = Vec::new();
        for stretch in stretches {
            if let Some(known) = object.stretches.get(stretch) {
                self.addresses(*known as usize, &mut here);
                continue;
            }
            let Some(code) = object.elf.bytes(stretch.start, stretch.end) else { return false };
            let instructions = decode(&code, stretch);
            here.extend(instructions.iter().map(Instruction::ip));
            fresh.push((*stretch, instructions, code));
        }
        let mut here = here.into_iter();
        if !executed.iter().all(|addr| here.any(|known| known == *addr)) {
            return false;
        }
        for (stretch, instructions, code) in fresh {
            let number = self.stretch(object, stretch, &instructions, &code);
            object.stretches.insert(stretch, number);
        }
        self.stretches.extend(stretches.iter().filter_map(|stretch| object.stretches.get(stretch)));
        true
    }

    /// The next function begins.
    ///
    /// # Errors
    /// Those of the packer.
    pub(crate) fn end_function(&mut self, pack: &mut Pack) -> io::Result<()> {
        self.function_from.push(self.stretches.len() as u64);
        [&mut self.kinds.att, &mut self.kinds.intel, &mut self.bytes].into_iter().try_for_each(|text| pack.grow(text))
    }

    /// Packs what is not yet.
    ///
    /// # Errors
    /// Those of the packer.
    pub(crate) fn pack(self, pack: &mut Pack) -> io::Result<()> {
        let Self { function_from, stretches, addr, from, byte, bytes, kind, inline, chains, kinds } = self;
        [kinds.att, kinds.intel, bytes].into_iter().try_for_each(|text| pack.end(text))?;
        pack.numbers("ins.kind", kind.iter().map(|kind| u64::from(*kind)))?;
        let inline = inline.iter().copied().chain(std::iter::repeat(0)).take(kind.len());
        pack.close("ins.inline", inline.map(u64::from))?;
        pack.text("text.inline", chains.text.into_bytes())?;
        pack.close("code.from", function_from.into_iter())?;
        pack.close("code.stretch", stretches.into_iter())?;
        pack.close("stretch.addr", addr.into_iter())?;
        pack.close("stretch.from", from.into_iter())?;
        pack.close("stretch.byte", byte.into_iter())?;
        pack.numbers("kind.len", kinds.length.iter().map(|length| u64::from(*length)))?;
        pack.numbers("kind.flow", kinds.flow.iter().map(|flow| u64::from(*flow)))?;
        pack.close("kind.target", kinds.target.into_iter())
    }

    /// Where the instructions of a stretch begin.
    fn addresses(&self, stretch: usize, out: &mut Vec<u64>) {
        let mut addr = self.addr[stretch];
        for kind in &self.kind[self.from[stretch] as usize..self.from[stretch + 1] as usize] {
            out.push(addr);
            addr += u64::from(self.kinds.length[*kind as usize]);
        }
    }

    /// Adds a stretch; gives its number.
    fn stretch(&mut self, object: &mut Object, stretch: Stretch, instructions: &[Instruction], code: &[u8]) -> u64 {
        let number = self.addr.len() as u64;
        for instruction in instructions {
            let length = instruction.len() as u8;
            let kind = *object.kinds.entry(Kind(*instruction)).or_insert_with(|| {
                self.kinds.add(instruction, length, [&mut object.att as &mut dyn Formatter, &mut object.intel])
            });
            self.kind.push(kind);
            let chain = object.elf.inlines.as_ref().map(|inlines| inlines.chain(instruction.ip())).unwrap_or_default();
            if !chain.is_empty() {
                self.inline.resize(self.kind.len() - 1, 0);
                self.inline.push(self.chains.number(chain));
            }
        }
        let end = instructions.last().map_or(stretch.start, Instruction::next_ip);
        let code = &code[..usize::try_from(end - stretch.start).map_or(code.len(), |size| size.min(code.len()))];
        self.bytes.next.extend_from_slice(code);
        self.addr.push(stretch.start);
        self.from.push(self.kind.len() as u64);
        self.byte.push(self.byte.last().copied().unwrap_or(0) + code.len() as u64);
        number
    }
}

impl Kinds {
    /// Adds an instruction; gives its number.
    fn add(&mut self, instruction: &Instruction, length: u8, formatters: [&mut dyn Formatter; 2]) -> u32 {
        let number = small(self.length.len());
        self.length.push(length);
        self.flow.push(flow(instruction));
        self.target.push(target(instruction));
        for (formatter, out) in formatters.into_iter().zip([&mut self.att, &mut self.intel]) {
            self.line.clear();
            formatter.format(instruction, &mut self.line);
            // A symbol may be called anything.
            out.next.extend(self.line.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
            out.next.push(b'\n');
        }
        number
    }
}

fn decode(code: &[u8], stretch: &Stretch) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, stretch.start, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() && decoder.ip() <= stretch.last {
        instructions.push(decoder.decode());
    }
    instructions
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 instructions fit in memory")
}

/// What an instruction does to the flow of control: 0 nothing, 1 jump, 2 conditional jump, 3 call, 4 return, 5 indirect
/// jump, 6 indirect call, 7 something else that does not go on.
fn flow(instruction: &Instruction) -> u8 {
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
        holding(&self.0, address).map(|symbol| SymbolResult::with_str(symbol.start, symbol.name()))
    }
}
