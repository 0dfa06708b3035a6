//! Guest bytes to instructions, and what kind of work each of them makes for the emitter. A block ends at every transfer
//! of control, at system calls and at whatever stops the guest; its instructions lie one behind the other. Nothing is
//! refused here: bytes that are no instruction become one of class [`Class::InPlace`], which faults as it would natively.

use std::sync::atomic::{AtomicU32, Ordering};

use grind_layout::registers::{Gpr, StolenRegisters};
use grind_types::addr::GuestAddr;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register, RflagsBits};

/// The 16 bytes that begin a client request: four rotations of rdi that leave it as it was.
/// (Valgrind's documented sequence; the 3 bytes that follow tell which service.)
pub(crate) const REQUEST_PREAMBLE: [u8; 16] =
    [0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33];
/// Bytes of the whole sequence.
const REQUEST_LEN: usize = 19;

/// The most instructions in a block.
pub const MAX_INSNS: usize = 200;

/// The longest instruction, in bytes.
const MAX_INSN_LEN: usize = 15;

/// What an instruction asks of the emitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// To be copied; only a RIP-relative displacement changes.
    Plain,
    /// To be copied, but its memory operand must be expressed through a scratch register (gs).
    GsMemory,
    /// `jcc`
    Jcc,
    /// `loop`, `loope`, `loopne`, `jrcxz`, `jecxz`
    Loop,
    /// Direct `jmp`
    Jmp,
    /// Direct `call`
    Call,
    /// `call` through a register or memory
    CallIndirect,
    /// The call through rax that the client-request sequence encodes
    CallNoRedirect,
    /// `jmp` through a register or memory
    JmpIndirect,
    /// `ret`, `ret imm16`
    Ret,
    /// `syscall`
    Syscall,
    /// REP-prefixed `movs`, `stos`, `lods`: one execution an iteration, and one more for the final test
    RepMove,
    /// REPE- or REPNE-prefixed `cmps`, `scas`: the final test only if the count ran out
    RepCompare,
    /// XSAVE, XRSTOR and kin where the guest sees fewer components than the host has
    XsaveMasked,
    /// `cpuid`, emulated
    Cpuid,
    /// `xgetbv`, emulated
    Xgetbv,
    /// A client request
    ClientRequest,
    /// Asks for the address of the original function behind a wrapper: there is none
    ClientGetNr,
    /// `int3` of the guest's own
    Int3,
    /// To be run in its original place, for this one step: what the decoder does not know, far transfers, `int 0x80`,
    /// whatever changes or uses gs in an unusual way. If it is no instruction, it faults as it would natively.
    InPlace,
}

impl Class {
    /// Whether a block ends with it.
    #[inline]
    pub fn ends_block(self) -> bool {
        !matches!(self, Self::Plain | Self::GsMemory | Self::RepMove | Self::RepCompare | Self::XsaveMasked)
    }

    /// Whether control can reach the next instruction in memory from it (for calls: by returning).
    #[inline]
    pub fn goes_on(self) -> bool {
        !matches!(self, Self::Jmp | Self::JmpIndirect | Self::Ret | Self::InPlace | Self::Int3)
    }
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Its operands.
    pub ins: Instruction,
    /// What it asks for.
    pub class: Class,
    /// The status flags that are read later on before they are written, seen from just before it (`RflagsBits`).
    pub live: u8,
    /// The status flags that it reads.
    pub reads: u8,
    /// Those that it writes for certain.
    pub kills: u8,
    /// Offset of a RIP-relative displacement, else 0.
    pub displacement_at: u8,
    /// Which of the registers it names that emitted code takes for itself, or may take, a bit each.
    named: u16,
    raw: [u8; MAX_INSN_LEN],
}

impl Insn {
    /// Its address.
    #[inline]
    pub fn pc(&self) -> GuestAddr {
        GuestAddr(self.ins.ip())
    }

    /// Its length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.ins.len()
    }

    /// The address behind it.
    #[inline]
    pub fn next(&self) -> GuestAddr {
        GuestAddr(self.ins.next_ip())
    }

    /// Its bytes, as they stand in the guest (a client request: only the first 15).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.raw[..self.len().min(MAX_INSN_LEN)]
    }

    /// The same with what may follow, to be cut off behind [`Insn::len`].
    #[inline]
    pub fn raw(&self) -> &[u8; MAX_INSN_LEN] {
        &self.raw
    }

    /// Whether it does the same wherever it stands, and nothing has to be told of it.
    #[inline]
    pub fn is_copied(&self) -> bool {
        self.class == Class::Plain
            && self.displacement_at == 0
            && !self.names(Gpr::R11)
            && self.saved_x87_address().is_none()
    }

    /// See [`saved_x87_address`].
    #[inline]
    pub fn saved_x87_address(&self) -> Option<(u64, usize)> {
        saved_x87_address(self.ins.code())
    }

    /// Whether it names a register, or a part of it, that emitted code takes for itself, or may take.
    #[inline]
    pub fn names(&self, r: Gpr) -> bool {
        self.named & r.bit() != 0
    }

    /// Whether it names a register that is taken.
    #[inline]
    pub fn names_taken(&self, stolen_registers: StolenRegisters) -> bool {
        self.named & (stolen_registers.bound_set() | stolen_registers.free_set()) != 0
    }

    /// Whether it names a register that is bound.
    #[inline]
    pub fn names_bound(&self, stolen_registers: StolenRegisters) -> bool {
        self.named & stolen_registers.bound_set() != 0
    }

    /// Where a jump or call finds its target, if that is a word at a fixed address.
    #[inline]
    pub fn target_at(&self) -> Option<GuestAddr> {
        let indirect = matches!(self.class, Class::JmpIndirect | Class::CallIndirect);
        (indirect && self.ins.is_ip_rel_memory_operand() && self.ins.segment_prefix() == Register::None)
            .then(|| GuestAddr(self.ins.ip_rel_memory_address()))
    }

    /// The same jump or call as one that leads to `target` directly.
    pub fn leading_to(self, target: GuestAddr) -> Option<Self> {
        let (code, class) = match self.class {
            Class::JmpIndirect => (Code::Jmp_rel32_64, Class::Jmp),
            Class::CallIndirect => (Code::Call_rel32_64, Class::Call),
            _ => return None,
        };
        let mut ins = Instruction::with_branch(code, target.0).ok()?;
        ins.set_len(self.ins.len());
        ins.set_ip(self.ins.ip());
        Some(Self { ins, class, displacement_at: 0, named: 0, ..self })
    }

    /// Where a direct branch leads.
    #[inline]
    pub fn target(&self) -> GuestAddr {
        GuestAddr(self.ins.near_branch_target())
    }
}

/// Where, in what it writes, an instruction says at which address the last instruction of the x87 was: that word's offset and bytes.
pub fn saved_x87_address(code: Code) -> Option<(u64, usize)> {
    match code {
        Code::Fnstenv_m28byte | Code::Fnsave_m108byte => Some((12, 4)),
        Code::Fxsave_m512byte => Some((8, 4)),
        Code::Fxsave64_m512byte => Some((8, 8)),
        Code::Xsave_mem | Code::Xsaveopt_mem | Code::Xsavec_mem | Code::Xsaves_mem => Some((8, 4)),
        Code::Xsave64_mem | Code::Xsaveopt64_mem | Code::Xsavec64_mem | Code::Xsaves64_mem => Some((8, 8)),
        _ => None,
    }
}

/// Whether an instruction that has [`saved_x87_address`] writes it only if eax asks for it.
pub fn saves_what_is_asked_for(code: Code) -> bool {
    use Mnemonic as M;
    matches!(
        code.mnemonic(),
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsavec | M::Xsavec64 | M::Xsaves | M::Xsaves64
    )
}

/// The status flags that `inc` writes.
pub const OSZAP: u8 = (RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF) as u8;

/// All status flags.
pub const STATUS: u8 = OSZAP | RflagsBits::CF as u8;

/// The status flags that `ins` reads.
pub(crate) fn flags_read(ins: &Instruction) -> u8 {
    ins.rflags_read() as u8 & STATUS
}

/// The status flags that `ins` writes for certain, whatever its operands are.
pub(crate) fn flags_killed(ins: &Instruction) -> u8 {
    use Mnemonic as M;
    let modified = ins.rflags_modified() as u8 & STATUS;
    if modified == 0 {
        return 0;
    }
    match ins.mnemonic() {
        // By CL, the count may be 0 and all flags stay; the rest of this line is too rare to be worth a proof.
        M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd => {
            let by_cl =
                (0..ins.op_count()).any(|n| ins.op_kind(n) == OpKind::Register && ins.op_register(n) == Register::CL);
            if by_cl { 0 } else { modified & !(ins.rflags_undefined() as u8) }
        }
        // With a count of 0, nothing is compared.
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
            if ins.has_rep_prefix() || ins.has_repne_prefix() =>
        {
            0
        }
        // AF is undefined on paper, but these always write it.
        M::And | M::Or | M::Xor | M::Test => modified,
        _ => modified & !(ins.rflags_undefined() as u8),
    }
}

/// Decides what `ins` asks for. `masked`: the guest sees the baseline processor.
fn classify(ins: &Instruction, masked: bool) -> Class {
    use Mnemonic as M;
    match ins.flow_control() {
        FlowControl::Next => {}
        FlowControl::ConditionalBranch => {
            return match ins.mnemonic() {
                M::Loop | M::Loope | M::Loopne | M::Jrcxz | M::Jecxz => Class::Loop,
                M::Jcxz => Class::InPlace,
                _ if ins.is_jcc_short_or_near() => Class::Jcc,
                _ => Class::InPlace,
            };
        }
        FlowControl::UnconditionalBranch => {
            return if ins.is_jmp_short_or_near() { Class::Jmp } else { Class::InPlace };
        }
        FlowControl::IndirectBranch => {
            return if ins.is_jmp_near_indirect() && plain_target(ins) { Class::JmpIndirect } else { Class::InPlace };
        }
        FlowControl::Return => {
            return match ins.code() {
                Code::Retnq | Code::Retnq_imm16 => Class::Ret,
                _ => Class::InPlace,
            };
        }
        FlowControl::Call => {
            return match ins.mnemonic() {
                M::Call if ins.is_call_near() => Class::Call,
                M::Syscall => Class::Syscall,
                _ => Class::InPlace,
            };
        }
        FlowControl::IndirectCall => {
            return if ins.is_call_near_indirect() && plain_target(ins) { Class::CallIndirect } else { Class::InPlace };
        }
        FlowControl::Interrupt => {
            return match ins.mnemonic() {
                M::Int3 => Class::Int3,
                M::Int if ins.immediate8() == 0x80 => Class::InPlace,
                // Faults natively (SIGSEGV; SIGTRAP for int1): copied, to do just that.
                M::Int | M::Int1 => Class::Plain,
                _ => Class::InPlace,
            };
        }
        // Transactions are not offered (CPUID hides them): the fallback would be an original address.
        FlowControl::XbeginXabortXend | FlowControl::Exception => return Class::InPlace,
    }
    let rep = ins.has_rep_prefix() || ins.has_repne_prefix();
    let class = match ins.mnemonic() {
        M::Cpuid if masked => Class::Cpuid,
        M::Xgetbv if masked => Class::Xgetbv,
        m if masked && is_save_area(m) => Class::XsaveMasked,
        M::Movsb
        | M::Movsw
        | M::Movsd
        | M::Movsq
        | M::Stosb
        | M::Stosw
        | M::Stosd
        | M::Stosq
        | M::Lodsb
        | M::Lodsw
        | M::Lodsd
        | M::Lodsq
            if rep && ins.is_string_instruction() =>
        {
            Class::RepMove
        }
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
            if rep && ins.is_string_instruction() =>
        {
            Class::RepCompare
        }
        M::Rdgsbase | M::Wrgsbase | M::Swapgs | M::Lgs => Class::InPlace,
        M::Mov | M::Pop if ins.op0_kind() == OpKind::Register && ins.op0_register() == Register::GS => Class::InPlace,
        M::INVALID => Class::InPlace,
        _ => Class::Plain,
    };
    let uses_gs = ins.segment_prefix() == Register::GS
        && (0..ins.op_count()).any(|n| {
            matches!(
                ins.op_kind(n),
                OpKind::Memory
                    | OpKind::MemorySegSI
                    | OpKind::MemorySegESI
                    | OpKind::MemorySegRSI
                    | OpKind::MemorySegDI
                    | OpKind::MemorySegEDI
                    | OpKind::MemorySegRDI
            )
        })
        && ins.mnemonic() != M::Lea;
    match class {
        Class::Plain if uses_gs && ins.is_vsib() => Class::InPlace,
        Class::Plain if uses_gs && ins.op_kind_has_only_memory() => Class::GsMemory,
        Class::Plain | Class::RepMove | Class::RepCompare | Class::XsaveMasked if uses_gs => Class::InPlace,
        c => c,
    }
}

/// An operand of a jump or call that the emitter has a sequence for; the others are too odd to deserve one.
fn plain_target(ins: &Instruction) -> bool {
    let fs = ins.segment_prefix() == Register::FS;
    let word = ins.op0_kind() != OpKind::Register || ins.op0_register().is_gpr64();
    let wide = matches!(ins.code(), Code::Jmp_rm64 | Code::Call_rm64);
    word && wide && ins.memory_base() != Register::EIP && !(fs && ins.is_ip_rel_memory_operand())
}

trait OperandKinds {
    fn op_kind_has_only_memory(&self) -> bool;
}

impl OperandKinds for Instruction {
    /// Its memory operand is an ordinary one, not implied by a string instruction.
    fn op_kind_has_only_memory(&self) -> bool {
        (0..self.op_count()).any(|n| self.op_kind(n) == OpKind::Memory)
    }
}

/// What has been found out about instructions of a code (and depends on nothing else), to be had by one load the next time.
/// 0: nothing yet. Losing an entry to another thread costs time only.
static FACTS: [AtomicU32; 1 << 13] = [const { AtomicU32::new(0) }; 1 << 13];

/// Something has been found out.
const SEEN: u32 = 1 << 31;
/// Its flags depend on operands or prefixes.
const FLAGS_VARY: u32 = 1 << 30;
/// It is [`Class::Plain`] unless it uses gs.
const PLAIN: u32 = 1 << 29;

fn facts(ins: &Instruction) -> u32 {
    let slot = FACTS.get(ins.code() as usize);
    let known = slot.map_or(0, |s| s.load(Ordering::Relaxed));
    if known != 0 {
        return known;
    }
    use Mnemonic as M;
    let mnemonic = ins.mnemonic();
    let mut facts = SEEN | u32::from(flags_read(ins)) | u32::from(flags_killed(ins)) << 8;
    let shifts =
        matches!(mnemonic, M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd);
    if shifts || ins.is_string_instruction() {
        facts |= FLAGS_VARY;
    }
    let special =
        matches!(mnemonic, M::Cpuid | M::Xgetbv | M::Rdgsbase | M::Wrgsbase | M::Swapgs | M::Lgs | M::INVALID)
            || is_save_area(mnemonic)
            || ins.is_string_instruction()
            || ins.op0_kind() == OpKind::Register && ins.op0_register().is_segment_register();
    if ins.flow_control() == FlowControl::Next && !special {
        facts |= PLAIN;
    }
    if let Some(slot) = slot {
        slot.store(facts, Ordering::Relaxed);
    }
    facts
}

fn is_save_area(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Xsave | M::Xsave64 | M::Xsaveopt | M::Xsaveopt64 | M::Xsavec | M::Xsavec64 | M::Xrstor | M::Xrstor64
    )
}

/// The next instruction of `decoder`, whose bytes are the first of `here`.
fn decode(decoder: &mut Decoder<'_>, here: &[u8], masked: bool) -> Insn {
    let at = decoder.ip();
    let mut ins = decoder.decode();
    let facts = facts(&ins);
    let plain = facts & PLAIN != 0 && ins.segment_prefix() != Register::GS;
    let mut class = if plain { Class::Plain } else { classify(&ins, masked) };
    if here[0] == REQUEST_PREAMBLE[0] && here.len() >= REQUEST_LEN && here[..16] == REQUEST_PREAMBLE {
        let service = match here[16..REQUEST_LEN] {
            [0x48, 0x87, 0xdb] => Some(Class::ClientRequest),
            [0x48, 0x87, 0xc9] => Some(Class::ClientGetNr),
            [0x48, 0x87, 0xd2] => Some(Class::CallNoRedirect),
            _ => None,
        };
        if let Some(service) = service {
            class = service;
            ins.set_len(REQUEST_LEN);
            ins.set_ip(at);
        }
    }
    let mut raw = [0; MAX_INSN_LEN];
    if let Some(all) = here.first_chunk() {
        raw = *all;
    } else {
        raw[..here.len()].copy_from_slice(here);
    }
    let displacement_at =
        if ins.is_ip_rel_memory_operand() { decoder.get_constant_offsets(&ins).displacement_offset() as u8 } else { 0 };
    let (reads, kills) = match class {
        // r11 shows the flags.
        Class::Syscall => (STATUS, 0),
        _ if facts & FLAGS_VARY != 0 => (flags_read(&ins), flags_killed(&ins)),
        _ => (facts as u8, (facts >> 8) as u8),
    };
    Insn { ins, class, live: STATUS, reads, kills, displacement_at, named: named(&ins), raw }
}

/// The general registers from r8 to r11 that operands of `ins` are, or are where they say, a bit each.
fn named(ins: &Instruction) -> u16 {
    (0..ins.op_count()).fold(0, |all, n| match ins.op_kind(n) {
        OpKind::Register => all | bit_of(ins.op_register(n)),
        OpKind::Memory => all | bit_of(ins.memory_base()) | bit_of(ins.memory_index()),
        _ => all,
    })
}

/// The bit of one of these registers, or of a part of it.
fn bit_of(r: Register) -> u16 {
    match r {
        Register::R8 | Register::R8D | Register::R8W | Register::R8L => Gpr::R8.bit(),
        Register::R9 | Register::R9D | Register::R9W | Register::R9L => Gpr::R9.bit(),
        Register::R10 | Register::R10D | Register::R10W | Register::R10L => Gpr::R10.bit(),
        Register::R11 | Register::R11D | Register::R11W | Register::R11L => Gpr::R11.bit(),
        _ => 0,
    }
}

/// Whether the instruction leaves the register that it is to write as it was, where the processor's feature is off: programs
/// clear the register first to find that out.
#[inline]
pub fn may_do_nothing(ins: &Instruction) -> bool {
    matches!(ins.mnemonic(), Mnemonic::Rdsspd | Mnemonic::Rdsspq)
}

/// Code of a program, however it is read.
pub trait CodeBytes {
    /// The bytes from `pc` on: at least as many as an instruction can have, or all up to the end of what is mapped and can be
    /// executed. Empty: nothing is.
    fn at(&mut self, pc: GuestAddr) -> &[u8];
}

/// Whether more bytes, or others, behind it might make it another instruction: it is none as it stands, or may begin a client request.
pub fn hangs_on_what_follows(insn: &Insn) -> bool {
    insn.ins.is_invalid() || insn.raw.starts_with(&REQUEST_PREAMBLE[..4])
}

/// What `ins` asks for where the guest sees the baseline processor.
pub(crate) fn class_of(ins: &Instruction) -> Class {
    classify(ins, true)
}

/// The instruction at `pc` that `bytes` begin with.
pub(crate) fn decode_one(bytes: &[u8], pc: GuestAddr, masked: bool) -> Insn {
    decode(&mut Decoder::with_ip(64, bytes, pc.0, DecoderOptions::MPX), bytes, masked)
}

/// Decodes the block at `pc` into `out` (appended); it goes on behind the first `through` conditional branches. `stop(a)` says
/// whether a block that is already there begins at `a`: this one ends before it. Returns the number of instructions; 0 if
/// nothing is mapped at `pc`.
pub fn decode_block(
    reader: &mut impl CodeBytes,
    pc: GuestAddr,
    masked: bool,
    through: usize,
    mut stop: impl FnMut(GuestAddr) -> bool,
    out: &mut Vec<Insn>,
) -> usize {
    let first = out.len();
    let mut through = through;
    let mut at = pc;
    loop {
        let bytes = reader.at(at);
        if bytes.is_empty() {
            break;
        }
        // One decoder for as many instructions as this window holds; then the next window.
        let whole_window = bytes.len() > 2 * MAX_INSN_LEN;
        let mut decoder = Decoder::with_ip(64, bytes, at.0, DecoderOptions::MPX);
        loop {
            at = GuestAddr(decoder.ip());
            let full = out.len() - first == MAX_INSNS;
            if full || (at != pc && stop(at)) {
                return out.len() - first;
            }
            let here = &bytes[decoder.position()..];
            if here.len() < 2 * MAX_INSN_LEN && whole_window {
                break;
            }
            if here.is_empty() {
                return out.len() - first;
            }
            let insn = decode(&mut decoder, here, masked);
            let class = insn.class;
            out.push(insn);
            if class == Class::Jcc && through > 0 {
                through -= 1;
            } else if class.ends_block() {
                return out.len() - first;
            }
        }
    }
    out.len() - first
}

/// The flags that may be read at `pc` before they are overwritten, as far as a few instructions tell.
pub fn flags_live_at(reader: &mut impl CodeBytes, pc: GuestAddr, masked: bool) -> u8 {
    const FEW: usize = 8;
    let bytes = reader.at(pc);
    let mut decoder = Decoder::with_ip(64, bytes, pc.0, DecoderOptions::MPX);
    let (mut live, mut open) = (0, STATUS);
    for _ in 0..FEW {
        let here = &bytes[decoder.position()..];
        if here.len() < MAX_INSN_LEN {
            break;
        }
        let insn = decode(&mut decoder, here, masked);
        live |= insn.reads & open;
        open &= !insn.kills;
        if open == 0 || insn.class.ends_block() {
            break;
        }
    }
    live | open
}
