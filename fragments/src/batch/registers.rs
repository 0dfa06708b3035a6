//! Which general registers are free for checks and counters: those whose values are overwritten before anything reads them,
//! by this block or by those of the batch, and of earlier ones, that it leads to.
//!
//! Invariants: what is not known is read; a register that is dead before an instruction is so on every way that instructions
//! can go on from there, but not for a handler of the fault that one of them raises: it may see what is not the program's.
//! Where code can change without a system call, no block relies on another one.

use grind_isa::decode::{self, Class, Insn};
use grind_layout::registers::Gpr;
use grind_types::addr::GuestAddr;
use iced_x86::{InstructionInfoFactory, InstructionInfoOptions, OpAccess};

use super::{Batch, Found, Known, decoded};

/// Everything may be read.
const ALL: u16 = u16::MAX;

/// The stack pointer; the frame pointer: whoever finds out about callers, in the handler of a signal, may need it where no
/// instruction does any more; and the register that emitted code has taken for good.
const KEPT: u16 = 1 << Gpr::RSP.0 | 1 << Gpr::RBP.0 | 1 << Gpr::R11.0;

/// General registers and one instruction, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// It uses them in some way.
    pub used: u16,
    /// It changes them in some way.
    pub written: u16,
    /// It overwrites them, whatever they were. Never the stack pointer, the frame pointer, nor r11.
    pub overwritten: u16,
    /// Their values will be overwritten before anything reads them, from this instruction on, or are kept elsewhere. Never
    /// those three.
    pub dead: u16,
}

impl Registers {
    /// What `insn` does with them; nothing is known to be dead.
    pub fn of(insn: &Insn, info: &mut InstructionInfoFactory) -> Self {
        let (mut read, mut overwritten) = (0u16, 0u16);
        let mut written = 0u16;
        for u in info.info_options(&insn.ins, InstructionInfoOptions::NO_MEMORY_USAGE).used_registers() {
            let r = u.register();
            if !r.is_gpr() {
                continue;
            }
            let bit = 1u16 << r.full_register().number();
            match u.access() {
                OpAccess::None | OpAccess::NoMemAccess => {}
                OpAccess::Write if r.size() >= 4 && !decode::may_do_nothing(&insn.ins) => {
                    overwritten |= bit;
                    written |= bit;
                }
                OpAccess::Read | OpAccess::CondRead => read |= bit,
                _ => {
                    read |= bit;
                    written |= bit;
                }
            }
        }
        Self { used: read | written, written, overwritten: overwritten & !read & !KEPT, dead: 0 }
    }
}

impl Batch {
    /// Settles it for all instructions, in the same order.
    pub(super) fn settle_registers(&mut self, known: &impl Known) {
        let Self { insns, places, registers, info, .. } = self;
        registers.clear();
        if places.is_empty() {
            registers.extend(insns.iter().map(|insn| Registers::of(insn, info)));
        } else {
            decoded::registers(insns, places, info, registers);
        }
        // From "nothing is read" upwards, until that agrees with itself: only then is it true.
        self.registers.iter_mut().for_each(|r| r.dead = !KEPT);
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.blocks.len()).rev() {
                let b = self.blocks[i];
                let mut live = self.registers_after(&b, known);
                for k in (b.first..b.first + b.n).rev() {
                    let insn = &self.insns[k];
                    if insn.class == Class::Jcc && k + 1 < b.first + b.n {
                        live |= self.registers_at(insn.target(), known);
                    }
                    let r = &mut self.registers[k];
                    let plain = matches!(insn.class, Class::Plain | Class::Jcc | Class::Jmp | Class::Call);
                    live = if plain { live & !r.overwritten | r.used & !r.overwritten | KEPT } else { ALL };
                    changed |= r.dead != !live;
                    r.dead = !live;
                }
            }
        }
        // What the program has in registers that are taken is elsewhere; what names one that is free, or one that is bound, has
        // it in that register meanwhile, or something else.
        let stolen_registers = known.stolen_registers();
        let (free, bound) = (stolen_registers.free_set(), stolen_registers.bound_set());
        for (r, insn) in self.registers.iter_mut().zip(&self.insns) {
            r.dead = (r.dead | free) & !bound;
            r.overwritten &= !(free | bound);
            let used =
                stolen_registers.free().iter().filter(|(r, _)| insn.names(*r) || insn.names_bound(stolen_registers));
            r.used = used.fold(r.used & !free | bound, |all, (r, _)| all | r.bit());
        }
    }

    /// Those that may be read at `pc` and from there on.
    fn registers_at(&self, pc: GuestAddr, known: &impl Known) -> u16 {
        if !known.relies_on_others() {
            return ALL;
        }
        match self.find(pc) {
            Some(i) => !self.registers[self.blocks[i].first].dead,
            None => known.dead_in(pc).map_or(ALL, |dead| !dead),
        }
    }

    fn registers_after(&self, b: &Found, known: &impl Known) -> u16 {
        let last = self.insns[b.first + b.n - 1];
        match last.class {
            Class::Jmp => self.registers_at(last.target(), known),
            Class::Call if known.calls_stay() => self.registers_at(last.target(), known),
            Class::Jcc => self.registers_at(last.target(), known) | self.registers_at(last.next(), known),
            Class::Plain => self.registers_at(last.next(), known),
            _ => ALL,
        }
    }

    /// What is known of the registers of a block's instructions, if that has been asked for.
    pub fn registers_of(&self, b: &Found) -> &[Registers] {
        self.registers.get(b.first..b.first + b.n).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use grind_layout::registers::StolenRegisters;
    use grind_types::{Pid, Tid};

    use grind_ptrace::Memory;

    use super::*;
    use crate::code_reader::CodeWindows;

    const AT: GuestAddr = GuestAddr(0x40_0000);

    /// Code that lies here; what is known of registers behind it.
    struct Surroundings {
        len: u64,
        others: bool,
        behind: u16,
    }

    impl Known for Surroundings {
        fn live_in(&self, _pc: GuestAddr) -> Option<u8> {
            None
        }

        fn begins(&self, pc: GuestAddr) -> bool {
            pc == AT.plus(self.len)
        }

        fn none_before(&self, pc: GuestAddr) -> GuestAddr {
            if pc <= AT.plus(self.len) { AT.plus(self.len) } else { GuestAddr(u64::MAX) }
        }

        fn may_look_ahead(&self, pc: GuestAddr) -> bool {
            (AT..AT.plus(self.len)).contains(&pc)
        }

        fn wants_registers(&self) -> bool {
            true
        }

        fn dead_in(&self, pc: GuestAddr) -> Option<u16> {
            (pc == AT.plus(self.len)).then_some(self.behind)
        }

        fn relies_on_others(&self) -> bool {
            self.others
        }

        fn stolen_registers(&self) -> StolenRegisters {
            StolenRegisters::R10AndR8
        }
    }

    fn found(code: &[u8], known: &Surroundings) -> Batch {
        let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
        let mut batch = Batch::default();
        let mut cache = CodeWindows::holding(AT, code);
        batch.discover(AT, true, &mut cache.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX)), known);
        batch
    }

    fn dead_at(batch: &Batch, at: u64) -> u16 {
        let (i, _) = batch.insns.iter().enumerate().find(|(_, insn)| insn.pc() == AT.plus(at)).expect("an instruction");
        let dead = batch.registers[i].dead;
        // Always: the program's is elsewhere.
        assert!(dead & TAKEN == TAKEN);
        dead & !TAKEN
    }

    const TAKEN: u16 = Gpr::R10.bit() | Gpr::R8.bit();
    const RAX: u16 = 1;
    const RCX: u16 = 2;
    const RDX: u16 = 4;
    const RBX: u16 = 8;

    #[test]
    fn registers_are_dead_that_all_ways_overwrite() {
        // 0: test ebx, ebx; 2: jnz 9; 4: mov eax, ecx; 6: mov edx, eax; 8: ret; 9: xor edx, edx;
        // b: mov eax, 1; 10: mov ecx, edx; 12: jmp 4
        let code = [
            0x85, 0xdb, 0x75, 0x05, 0x89, 0xc8, 0x89, 0xc2, 0xc3, 0x31, 0xd2, 0xb8, 1, 0, 0, 0, 0x89, 0xd1, 0xeb, 0xf0,
        ];
        let mut known = Surroundings { len: code.len() as u64, others: true, behind: 0 };
        let batch = found(&code, &known);
        assert_eq!(dead_at(&batch, 0), RAX | RDX);
        assert_eq!(dead_at(&batch, 4), RAX | RDX);
        assert_eq!(dead_at(&batch, 6), RDX);
        assert_eq!(dead_at(&batch, 8), 0);
        assert_eq!(dead_at(&batch, 9), RAX | RCX | RDX);
        assert_eq!(dead_at(&batch, 0x12), RAX | RDX);
        // Each for itself.
        known.others = false;
        let batch = found(&code, &known);
        assert_eq!(dead_at(&batch, 0), 0);
        assert_eq!(dead_at(&batch, 4), RAX | RDX);
        assert_eq!(dead_at(&batch, 0xb), RAX | RCX);
        assert_eq!(dead_at(&batch, 0x12), 0);
    }

    #[test]
    fn frames_can_be_found_up_to_their_end() {
        // mov eax, 1; pop rbp; ret
        let code = [0xb8, 1, 0, 0, 0, 0x5d, 0xc3];
        let known = Surroundings { len: code.len() as u64, others: true, behind: 0 };
        let batch = found(&code, &known);
        assert_eq!((dead_at(&batch, 0), dead_at(&batch, 5)), (RAX, 0));
    }

    #[test]
    fn what_is_known_of_earlier_batches_counts() {
        // mov eax, ebx; and on.
        let code = [0x89, 0xd8];
        let known = Surroundings { len: 2, others: true, behind: RCX | RAX | RBX };
        let batch = found(&code, &known);
        assert_eq!(dead_at(&batch, 0), RAX | RCX);
        let known = Surroundings { behind: 0, ..known };
        assert_eq!(dead_at(&found(&code, &known), 0), RAX);
        let known = Surroundings { others: false, behind: RCX, ..known };
        assert_eq!(dead_at(&found(&code, &known), 0), RAX);
    }

    /// Whether anything may read a register from an instruction on: a walk over all ways, by address.
    fn may_be_read(batch: &Batch, known: &Surroundings, start: usize, register: u16) -> bool {
        let mut seen = vec![false; batch.insns.len()];
        let mut ways = vec![start];
        while let Some(i) = ways.pop() {
            if std::mem::replace(&mut seen[i], true) {
                continue;
            }
            let (insn, r) = (&batch.insns[i], &batch.registers[i]);
            if r.used & !r.overwritten & register != 0 || !matches!(insn.class, Class::Plain | Class::Jcc | Class::Jmp)
            {
                return true;
            }
            if r.overwritten & register != 0 {
                continue;
            }
            let within = batch.blocks.iter().any(|b| (b.first..b.first + b.n - 1).contains(&i));
            if within {
                ways.push(i + 1);
            }
            let on = (!within && insn.class != Class::Jmp).then(|| insn.next());
            for pc in on.into_iter().chain((insn.class != Class::Plain).then(|| insn.target())) {
                match batch.find(pc) {
                    _ if !known.others => return true,
                    Some(block) => ways.push(batch.blocks[block].first),
                    None if pc == AT.plus(known.len) && known.behind & register != 0 => {}
                    None => return true,
                }
            }
        }
        false
    }

    #[test]
    fn the_dead_are_those_that_no_way_reads() {
        let mut seed = 88_172_645_463_325_252u64;
        let mut random = |n: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 20) % n
        };
        let (mut dead, mut live, mut far) = (0, 0, 0);
        for _ in 0..3000 {
            // Instructions of two bytes, so that a branch may lead to any.
            let n = 4 + random(40);
            let mut code = Vec::new();
            for k in 0..n {
                let registers = 0xc0 | random(4) << 3 | random(4);
                let to = |n: u64| (2 * n).wrapping_sub(2 * k + 2) as u8;
                code.extend(match random(10) {
                    0..=4 => [0x89, registers as u8],                 // mov
                    5 | 6 => [0x85, registers as u8],                 // test
                    7 => [0x74, to(random(n + 1))],                   // jz
                    8 => [0x75, to(random(n + 1))],                   // jnz
                    _ if random(4) == 0 => [0xeb, to(random(n + 1))], // jmp
                    _ if random(4) == 0 => [0xf3, 0xc3],              // ret
                    _ => [0x01, registers as u8],                     // add
                });
            }
            let behind = random(16) as u16;
            let known = Surroundings { len: 2 * n, others: random(4) != 0, behind };
            let batch = found(&code, &known);
            for i in 0..batch.insns.len() {
                for register in (0..16).map(|r| 1u16 << r).filter(|r| *r & (KEPT | TAKEN) == 0) {
                    let says = batch.registers[i].dead & register != 0;
                    assert_eq!(says, !may_be_read(&batch, &known, i, register), "{i}, {register:x}: {code:x?}");
                    *(if says { &mut dead } else { &mut live }) += 1;
                    far += u64::from(says && batch.insns[i].class == Class::Jcc);
                }
            }
        }
        assert!(dead > 10_000 && live > 10_000 && far > 1_000, "{dead}, {live}, {far}");
    }
}
