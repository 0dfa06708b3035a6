//! Instructions of all functions as columns and lines of text.
//!
//! A program has few different instructions for its size, and a function that is called in several ways has the same code
//! in all of them. So a stretch of code stands here once, whatever number of functions it belongs to, and what an
//! instruction looks like once for all places where an object has an equal one: where it leads to and what it refers to
//! are parts of it, its own address is not. A stretch is either here as a whole or not at all.

use std::collections::HashMap;
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
        let targets = || Targets([Rc::clone(&elf.symbols), Rc::clone(&elf.stubs)]);
        let resolver = || Some(Box::new(targets()) as Box<dyn SymbolResolver>);
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

/// What makes two instructions one: their bytes, without what says where they refer to from their own address, and the address that they
/// refer to. There are hundreds of thousands, so it is no larger than the longest instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind([u8; 16]);

impl Kind {
    /// That of an instruction with these bytes; nothing if it has no room, as few instructions have not. Those stand by themselves.
    fn of(instruction: &Instruction, relative: Option<std::ops::Range<usize>>, code: &[u8]) -> Option<Self> {
        let mut kind = [0; 16];
        // The length comes first, so that bytes of one are never taken for an address of another one.
        kind[0] = u8::try_from(code.len()).ok()?;
        let Some(relative) = relative else {
            kind.get_mut(1..=code.len())?.copy_from_slice(code);
            return Some(Self(kind));
        };
        let address = match target(instruction) {
            0 => instruction.ip_rel_memory_address(),
            target => target,
        };
        let own = [&code[..relative.start], &code[relative.end..]];
        // What is left for the address, which programs have in the lower half of all.
        let mut at = 1;
        for part in own {
            kind.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        let room = kind.len().checked_sub(at)?;
        let bytes = address.to_le_bytes();
        let needed = 8 - address.leading_zeros() as usize / 8;
        if needed > room {
            return None;
        }
        kind[at..at + needed].copy_from_slice(&bytes[..needed]);
        // The first byte also says that there is an address, and where it stood.
        kind[0] |= 0x10 * (1 + u8::try_from(relative.start).ok()?.min(14));
        Some(Self(kind))
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
        let mut fresh: Vec<(Stretch, Vec<Decoded>, Vec<u8>)> = Vec::new();
        let mut here: Vec<u64> = Vec::new();
        for stretch in stretches {
            if let Some(known) = object.stretches.get(stretch) {
                self.addresses(*known as usize, &mut here);
                continue;
            }
            let Some(code) = object.elf.bytes(stretch.start, stretch.end) else { return false };
            let instructions = decode(&code, stretch);
            here.extend(instructions.iter().map(|(instruction, _)| instruction.ip()));
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
    fn stretch(&mut self, object: &mut Object, stretch: Stretch, instructions: &[Decoded], code: &[u8]) -> u64 {
        let number = self.addr.len() as u64;
        let mut rest = code;
        for (instruction, relative) in instructions {
            let length = instruction.len() as u8;
            let (own, others) = rest.split_at(instruction.len().min(rest.len()));
            rest = others;
            let mut add =
                || self.kinds.add(instruction, length, [&mut object.att as &mut dyn Formatter, &mut object.intel]);
            let kind = match Kind::of(instruction, relative.clone(), own) {
                Some(kind) => *object.kinds.entry(kind).or_insert_with(add),
                None => add(),
            };
            self.kind.push(kind);
            let chain = object.elf.inlines.as_ref().map(|inlines| inlines.chain(instruction.ip())).unwrap_or_default();
            if !chain.is_empty() {
                self.inline.resize(self.kind.len() - 1, 0);
                self.inline.push(self.chains.number(chain));
            }
        }
        let end = instructions.last().map_or(stretch.start, |(instruction, _)| instruction.next_ip());
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

/// An instruction, and which of its bytes depend on where it stands.
type Decoded = (Instruction, Option<std::ops::Range<usize>>);

pub(crate) fn decode(code: &[u8], stretch: &Stretch) -> Vec<Decoded> {
    let mut decoder = Decoder::with_ip(64, code, stretch.start, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() && decoder.ip() <= stretch.last {
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        let relative = if target(&instruction) != 0 && offsets.has_immediate() {
            Some(offsets.immediate_offset()..offsets.immediate_offset() + offsets.immediate_size())
        } else if instruction.is_ip_rel_memory_operand() && offsets.has_displacement() {
            Some(offsets.displacement_offset()..offsets.displacement_offset() + offsets.displacement_size())
        } else {
            None
        };
        instructions.push((instruction, relative));
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

/// Names of addresses, for operands: symbols, and what has none but leads elsewhere.
struct Targets([Rc<Vec<Symbol>>; 2]);

impl SymbolResolver for Targets {
    fn symbol(
        &mut self,
        _instruction: &Instruction,
        _operand: u32,
        _instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let found = self.0.iter().find_map(|symbols| holding(symbols, address));
        found.map(|symbol| SymbolResult::with_str(symbol.start, symbol.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds of all instructions of code that begins there.
    fn kinds(start: u64, code: &[u8]) -> Vec<(Instruction, Option<Kind>)> {
        let mut rest = code;
        let stretch = Stretch { start, end: start + code.len() as u64, last: u64::MAX };
        let all = decode(code, &stretch).into_iter().map(|(instruction, relative)| {
            let (own, others) = rest.split_at(instruction.len());
            rest = others;
            (instruction, Kind::of(&instruction, relative, own))
        });
        all.collect()
    }

    #[test]
    fn instructions_are_one_kind_wherever_they_stand_if_they_say_the_same() {
        // Two calls of 0x1100 from different places, which have other bytes; then other targets by the same bytes.
        let calls = kinds(0x1000, &[0xe8, 0xfb, 0, 0, 0, 0xe8, 0xf6, 0, 0, 0, 0xe8, 0xf6, 0, 0, 0]);
        let kind = |at: usize| calls[at].1;
        assert!(kind(0).is_some() && kind(0) == kind(1) && kind(1) != kind(2));
        // mov eax, [rip + 0x10] twice; the same bytes are another address. Then [rbx + 0x10] with the same displacement, twice.
        let reads = kinds(
            0x2000,
            &[
                0x8b, 5, 0x10, 0, 0, 0, 0x8b, 5, 0xa, 0, 0, 0, 0x8b, 5, 0x10, 0, 0, 0, 0x8b, 0x43, 0x10, 0x8b, 0x43,
                0x10,
            ],
        );
        let kind = |at: usize| reads[at].1;
        assert!(
            kind(0).is_some() && kind(0) == kind(1) && kind(1) != kind(2) && kind(3).is_some() && kind(3) == kind(4)
        );
        // An address that has no room beside the other bytes: mov qword [rip + …], imm32 with a prefix, in the upper half.
        let code = [0x64, 0x48, 0xc7, 5, 0, 0, 0, 0, 1, 2, 3, 4];
        assert!(kinds(0xffff_ffff_8000_0000, &code)[0].1.is_none() && kinds(0x40_0000, &code)[0].1.is_some());
    }

    #[test]
    fn different_instructions_are_never_one_kind() {
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let mut seen: HashMap<Kind, Instruction> = HashMap::new();
        let mut again = 0;
        for round in 0..4000_u64 {
            // Mostly the same few bytes, so that many instructions are alike.
            let code: Vec<u8> = (0..64)
                .map(|_| match random() % 4 {
                    0 => 0,
                    1 => [0xe8, 0x8b, 5, 0x48, 0xeb, 0x74, 0xff, 0x15, 0x0f, 0x83][usize::from(random() % 10)],
                    _ => random() % 16,
                })
                .collect();
            for (instruction, kind) in kinds(0x1000 + 16 * (round % 50), &code) {
                let Some(kind) = kind else { continue };
                if let Some(known) = seen.insert(kind, instruction) {
                    // Instructions are equal wherever they stand, if all that they say is.
                    assert!(known == instruction && known.len() == instruction.len(), "{known} and {instruction}");
                    again += 1;
                }
            }
        }
        assert!(again > 1000, "{again} were there before");
    }

    #[test]
    fn calls_of_other_objects_have_the_names_of_what_they_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("calls.c"), folder.path().join("calls"));
        std::fs::write(&source, "int puts(const char *); int main(void) { return puts(\"\"); }\n").unwrap();
        let Ok(built) =
            std::process::Command::new("gcc").args(["-O0", "-Wl,-z,lazy", "-o"]).arg(&program).arg(&source).status()
        else {
            assert!(std::env::var_os("CI").is_none(), "gcc is needed");
            return;
        };
        assert!(built.success());
        let elf = Elf::open(program.as_os_str().as_encoded_bytes(), None).unwrap();
        let stub = elf.stubs.iter().find(|stub| stub.name() == "puts@plt").expect("a stub");
        assert!(elf.symbol(stub.start).is_none(), "it is no symbol");
        let main = elf.symbols.iter().find(|symbol| symbol.name() == "main").expect("main");
        let (start, code) = (main.start, elf.bytes(main.start, main.end).unwrap());
        let mut object = Object::new(elf);
        let Object { att, intel, .. } = &mut object;
        let mut lines: Vec<[String; 2]> = Vec::new();
        for instruction in &mut Decoder::with_ip(64, &code, start, DecoderOptions::NONE) {
            let mut line = [String::new(), String::new()];
            att.format(&instruction, &mut line[0]);
            intel.format(&instruction, &mut line[1]);
            lines.push(line);
        }
        let calls = |at: usize| lines.iter().any(|line| line[at].contains("call") && line[at].contains("puts@plt"));
        assert!(calls(0) && calls(1), "{lines:?}");
    }
}
