//! What one execution of an instruction accesses and which branch events it makes: facts about the instruction alone, in
//! program order, from which emitted checks, per-block counts and tests are all made. It must never look at the guest's
//! memory or registers (only [`resolve`] does, for tests), and it never counts: an access that depends on run-time state
//! says on what ([`When`], [`Place`]).
//!
//! # Rules
//! - The instruction is fetched before its accesses; its branch event comes last.
//! - A read and a write of the same place by one instruction are one [`Kind::Modify`]: Cachegrind books it as Dr, Callgrind
//!   as Dw. Under a LOCK prefix, and for `xchg` with memory, a read comes before it, as in the reference, which loads the
//!   old value first; not for `cmpxchg`.
//! - Places are what they are *before* the instruction: `push m` reads m and writes below the stack pointer; `pop m` reads
//!   the stack, and computes the address of m after the stack pointer moved, which the offset takes into account.
//! - What may or may not be accessed counts if the instruction says so before it looks at memory: `cmov` always reads,
//!   XSAVE writes the components that it is asked for, be they in use or not.
//! - AVX and AVX2 mask moves, gathers and scatters access element by element, those whose mask is set. An operand of
//!   AVX-512 under a mask is one access, from the lowest enabled element to the highest ([`Shape`]).
//! - Prefetches, flushes, `lea`, long `nop` and the bounds instructions (no-ops on every system that runs them) access
//!   nothing, nor do system calls, interrupts and far transfers. The kernel's own accesses are not the program's.
//! - Sizes are the instruction's. An access larger than a cache line (x87 areas: 94 to 160 bytes) is for the consumer to
//!   shorten to the smallest line of its caches.

mod areas;
mod kind;
mod masked;
pub mod resolve;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tests;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::decode::{Class, Insn};
use kind::operand_kind;

/// What is done to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A load and a store of the same bytes by one instruction: one access.
    Modify,
}

/// An address that general registers give: segment base + (base + index * scale + displacement), the sum in brackets
/// taken modulo 2^32 if `narrow`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// FS, GS or none: the others have base 0.
    pub segment: Register,
    /// A general register of 64 bits (32 if `narrow`), or none.
    pub base: Register,
    /// Likewise.
    pub index: Register,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Added; an operand relative to rip has its whole address here.
    pub displacement: i64,
    /// Computed in 32 bits.
    pub narrow: bool,
}

impl Address {
    fn new(base: Register, displacement: i64) -> Self {
        Self { segment: Register::None, base, index: Register::None, scale: 1, displacement, narrow: false }
    }

    /// The address `offset` bytes on.
    pub fn plus(self, offset: i64) -> Self {
        Self { displacement: self.displacement.wrapping_add(offset), ..self }
    }

    /// The explicit memory operand. The vector index of a gather is left out.
    pub(crate) fn of_operand(ins: &Instruction) -> Self {
        let segment = relevant(ins.memory_segment());
        if ins.is_ip_rel_memory_operand() {
            return Self { segment, ..Self::new(Register::None, ins.ip_rel_memory_address() as i64) };
        }
        let (base, index) = (ins.memory_base(), ins.memory_index());
        let bare = base == Register::None && index == Register::None;
        let narrow = base.is_gpr32() || index.is_gpr32() || bare && ins.memory_displ_size() == 4;
        Self {
            segment,
            base,
            index: if index.is_gpr() { index } else { Register::None },
            scale: ins.memory_index_scale() as u8,
            displacement: ins.memory_displacement64() as i64,
            narrow,
        }
    }
}

fn relevant(segment: Register) -> Register {
    if matches!(segment, Register::FS | Register::GS) { segment } else { Register::None }
}

/// Where an access is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At an address that general registers give: nearly everything.
    At(Address),
    /// `xlat`: al, zero-extended, is added before the segment's base is.
    PlusAl(Address),
    /// `bt` and kin with a register: the byte that holds the bit, at this address + (the register, signed, >> 3).
    Bit(Address, Register),
    /// Element `lane` of the vector `index` (signed, of 64 bits if `wide`, else of 32), times `scale`, is added.
    Element {
        /// The rest of the address.
        address: Address,
        /// XMM, YMM or ZMM.
        index: Register,
        /// Which element.
        lane: u8,
        /// Whether elements have 64 bits.
        wide: bool,
    },
    /// XSAVEC: `offset` within a component whose place depends on which are asked for (compacted form); the address is that
    /// of the whole area.
    Compacted {
        /// Of the area.
        address: Address,
        /// The component's number, above 1.
        component: u8,
        /// Within the component.
        offset: u16,
    },
}

/// Which bytes of its operand a masked AVX-512 instruction accesses, if any mask bit is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// All: a broadcast, or a scalar.
    Whole,
    /// From the lowest enabled element to the highest.
    Extent,
    /// As many elements from the start as are enabled: compress and expand.
    Packed,
}

/// When an access is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At each execution.
    Always,
    /// At each iteration of a repeated string instruction; rsi and rdi are those of that iteration.
    Iteration,
    /// If the topmost bit of element `lane`, of `size` bytes, of this vector register is set.
    Sign {
        /// XMM or YMM.
        mask: Register,
        /// Which element.
        lane: u8,
        /// Its size in bytes, 4 or 8.
        size: u8,
    },
    /// If this bit of a mask register (k1 to k7) is set.
    Bit {
        /// The register.
        mask: Register,
        /// The bit.
        lane: u8,
    },
    /// If any of the lowest `lanes` bits of a mask register is set; `size` is that of the whole operand, of which only a
    /// part may be accessed.
    Span {
        /// The mask register.
        mask: Register,
        /// Elements of the operand.
        lanes: u8,
        /// Which bytes.
        shape: Shape,
    },
    /// XSAVE and kin: if edx:eax, restricted to what the guest sees of XCR0, has one of these bits.
    Requested(u64),
}

/// One access of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// What is done.
    pub kind: Kind,
    /// Bytes, of the whole operand.
    pub size: u16,
    /// Where.
    pub place: Place,
    /// When.
    pub when: When,
}

impl Access {
    fn always(kind: Kind, size: usize, address: Address) -> Self {
        Self { kind, size: size as u16, place: Place::At(address), when: When::Always }
    }
}

/// A branch event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branch {
    /// `jcc`, `loop*`, `jrcxz`, `jecxz`: predicted from its address and the history.
    Conditional,
    /// A jump or call through a register or memory, not a return: its target is predicted from its address.
    Indirect,
}

/// The branch event that each execution of `insn` makes.
pub fn branch(insn: &Insn) -> Option<Branch> {
    match insn.class {
        Class::Jcc | Class::Loop => Some(Branch::Conditional),
        Class::JmpIndirect | Class::CallIndirect => Some(Branch::Indirect),
        Class::InPlace => match insn.ins.flow_control() {
            FlowControl::ConditionalBranch => Some(Branch::Conditional),
            FlowControl::IndirectBranch if insn.ins.is_jmp_near_indirect() => Some(Branch::Indirect),
            FlowControl::IndirectCall if insn.ins.is_call_near_indirect() => Some(Branch::Indirect),
            _ => None,
        },
        _ => None,
    }
}

/// Events of one execution that depend on nothing but the instruction. Accesses that are not [`When::Always`] are left out:
/// they need counts of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// [`Kind::Read`].
    pub reads: u32,
    /// [`Kind::Write`].
    pub writes: u32,
    /// [`Kind::Modify`].
    pub modifies: u32,
    /// [`Branch::Conditional`].
    pub conditional: u32,
    /// [`Branch::Indirect`].
    pub indirect: u32,
}

/// The events of one execution of `insn`, whose accesses are `accesses`.
pub fn counts(insn: &Insn, accesses: &[Access]) -> Counts {
    let mut c = Counts::default();
    for a in accesses.iter().filter(|a| a.when == When::Always) {
        match a.kind {
            Kind::Read => c.reads += 1,
            Kind::Write => c.writes += 1,
            Kind::Modify => c.modifies += 1,
        }
    }
    match branch(insn) {
        Some(Branch::Conditional) => c.conditional = 1,
        Some(Branch::Indirect) => c.indirect = 1,
        None => {}
    }
    c
}

/// Appends what one execution of `insn` accesses, in program order.
pub fn accesses(insn: &Insn, out: &mut Vec<Access>) {
    match insn.class {
        Class::ClientRequest | Class::ClientGetNr | Class::Syscall | Class::Int3 | Class::Cpuid | Class::Xgetbv => {}
        Class::CallNoRedirect => out.push(stack_write(8, -8)),
        Class::XsaveMasked => areas::xsave(&insn.ins, &areas::BASELINE, out),
        _ => of_instruction(&insn.ins, out),
    }
}

fn stack_write(size: usize, offset: i64) -> Access {
    Access::always(Kind::Write, size, Address::new(Register::RSP, offset))
}

fn stack_read(size: usize, offset: i64) -> Access {
    Access::always(Kind::Read, size, Address::new(Register::RSP, offset))
}

fn of_instruction(ins: &Instruction, out: &mut Vec<Access>) {
    for n in 0..ins.op_count() {
        match ins.op_kind(n) {
            OpKind::Memory => return explicit(ins, out),
            OpKind::Register
            | OpKind::NearBranch64
            | OpKind::Immediate8
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32
            | OpKind::Immediate32to64 => {}
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return string(ins, out),
            _ => {}
        }
    }
    stack(ins, out);
}

/// Instructions without an explicit memory operand.
fn stack(ins: &Instruction, out: &mut Vec<Access>) {
    use Mnemonic as M;
    match ins.mnemonic() {
        M::Push | M::Pushf | M::Pushfq => {
            let moved = ins.stack_pointer_increment();
            out.push(stack_write(moved.unsigned_abs() as usize, i64::from(moved)));
        }
        M::Call if ins.code() == Code::Call_rel32_64 || ins.code() == Code::Call_rm64 => out.push(stack_write(8, -8)),
        M::Call if ins.code() == Code::Call_rel16 || ins.code() == Code::Call_rm16 => out.push(stack_write(2, -2)),
        M::Pop | M::Popf | M::Popfq => out.push(stack_read(ins.stack_pointer_increment() as usize, 0)),
        M::Ret => {
            let size = if matches!(ins.code(), Code::Retnw | Code::Retnw_imm16) { 2 } else { 8 };
            out.push(stack_read(size, 0));
        }
        M::Leave => {
            let size = if ins.code() == Code::Leavew { 2 } else { 8 };
            out.push(Access::always(Kind::Read, size, Address::new(Register::RBP, 0)));
        }
        M::Enter => {
            let size = if ins.code() == Code::Enterw_imm16_imm8 { 2 } else { 8 };
            let level = i64::from(ins.immediate8_2nd() & 31);
            let step = size as i64;
            out.push(stack_write(size, -step));
            for n in 1..level {
                out.push(Access::always(Kind::Read, size, Address::new(Register::RBP, -step * n)));
                out.push(stack_write(size, -step * (n + 1)));
            }
            if level > 0 {
                out.push(stack_write(size, -step * (level + 1)));
            }
        }
        M::Clzero => out.push(Access::always(Kind::Write, 64, Address::new(Register::RAX, 0))),
        _ => {}
    }
}

/// String instructions, and the byte-masked moves to [rdi].
fn string(ins: &Instruction, out: &mut Vec<Access>) {
    use Mnemonic as M;
    let place = |n: u32| {
        let (base, narrow, segment) = match ins.op_kind(n) {
            OpKind::MemorySegRSI => (Register::RSI, false, relevant(ins.memory_segment())),
            OpKind::MemorySegESI => (Register::ESI, true, relevant(ins.memory_segment())),
            OpKind::MemorySegRDI => (Register::RDI, false, relevant(ins.memory_segment())),
            OpKind::MemorySegEDI => (Register::EDI, true, relevant(ins.memory_segment())),
            OpKind::MemoryESRDI => (Register::RDI, false, Register::None),
            OpKind::MemoryESEDI => (Register::EDI, true, Register::None),
            _ => return None,
        };
        Some(Place::At(Address { segment, narrow, ..Address::new(base, 0) }))
    };
    let repeated = ins.is_string_instruction() && (ins.has_rep_prefix() || ins.has_repne_prefix());
    let when = if repeated { When::Iteration } else { When::Always };
    let size = ins.memory_size().size() as u16;
    let mut add = |kind, n| out.extend(place(n).map(|place| Access { kind, size, place, when }));
    match ins.mnemonic() {
        M::Movsb | M::Movsw | M::Movsd | M::Movsq => {
            add(Kind::Read, 1);
            add(Kind::Write, 0);
        }
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq => {
            // Neither comes first on paper; [rdi] does in the reference.
            add(Kind::Read, 1);
            add(Kind::Read, 0);
        }
        M::Stosb | M::Stosw | M::Stosd | M::Stosq => add(Kind::Write, 0),
        M::Lodsb | M::Lodsw | M::Lodsd | M::Lodsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq => add(Kind::Read, 1),
        // One store, whatever its mask is.
        M::Maskmovq | M::Maskmovdqu | M::Vmaskmovdqu => add(Kind::Write, 0),
        // Ports: not for programs.
        _ => {}
    }
}

/// Instructions with an explicit memory operand.
fn explicit(ins: &Instruction, out: &mut Vec<Access>) {
    use Mnemonic as M;
    let Some(kind) = operand_kind(ins) else { return };
    let address = Address::of_operand(ins);
    let size = ins.memory_size().size();
    if masked::special(ins, kind, address, out) || areas::special(ins, address, out) {
        return;
    }
    match ins.mnemonic() {
        M::Push => {
            out.push(Access::always(Kind::Read, size, address));
            out.push(stack_write(size, -(size as i64)));
        }
        M::Call => {
            out.push(Access::always(Kind::Read, size, address));
            if ins.is_call_near_indirect() {
                out.push(stack_write(size, -(size as i64)));
            }
        }
        M::Pop => {
            out.push(stack_read(size, 0));
            let moved = if matches!(address.base, Register::RSP | Register::ESP) { size as i64 } else { 0 };
            out.push(Access::always(Kind::Write, size, address.plus(moved)));
        }
        M::Bt | M::Bts | M::Btr | M::Btc if ins.op1_kind() == OpKind::Register => {
            let place = Place::Bit(address, ins.op1_register());
            let access = |kind| Access { kind, size: 1, place, when: When::Always };
            if ins.has_lock_prefix() {
                out.push(access(Kind::Read));
            }
            out.push(access(kind));
        }
        M::Xlatb => {
            let address = Address { index: Register::None, ..address };
            out.push(Access { kind, size: 1, place: Place::PlusAl(address), when: When::Always });
        }
        M::Movdir64b | M::Enqcmd | M::Enqcmds => {
            out.push(Access::always(Kind::Read, 64, address));
            let base = ins.op0_register();
            let narrow = base.is_gpr32();
            out.push(Access::always(Kind::Write, 64, Address { narrow, ..Address::new(base, 0) }));
        }
        M::Cmpxchg | M::Cmpxchg8b | M::Cmpxchg16b => out.push(Access::always(kind, size, address)),
        _ => {
            let locked = ins.has_lock_prefix() || ins.mnemonic() == M::Xchg;
            if locked && kind == Kind::Modify {
                out.push(Access::always(Kind::Read, size, address));
            }
            out.push(Access::always(kind, size, address));
        }
    }
}
