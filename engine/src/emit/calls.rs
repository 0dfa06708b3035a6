//! What a block tells of while calls are recorded: that it is executed, and how control leaves it. A block that ends with a
//! recorded transfer of control is told by that record; any other by a record of its own at its start. Nothing is counted in
//! cells then, but for the executions of repeated instructions.
//!
//! Invariants: no flag and no register that the guest can see is changed; a transfer is recorded when nothing of its
//! instruction can fault any more, with the stack pointer that its target sees; the highest word of a record is written
//! first, so that one that does not fit any more faults before anything of it is there; `bump_end` is where the block has
//! been told.

use super::{Emitter, Fixup};
use crate::addr::GuestAddr;
use crate::arena::{self, Scratch};
use crate::asm::{Asm, Gpr};
use crate::batch::Found;
use crate::decode::{Class, Insn};
use crate::trace::{self, CallTrace, Instruction, Site, SiteKind, Transfer};
use crate::transtab::InsnShape;

/// A branch that is taken: what remains to be emitted behind the hot code.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The 32-bit field of the branch.
    from: usize,
    target: u64,
    site: u32,
}

/// What telling needs while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct Teller {
    settings: Option<CallTrace>,
    taken: Vec<Taken>,
    /// The number of the block at hand.
    block: u32,
    /// The record of its last instruction tells that it is executed.
    by_transfer: bool,
}

impl Teller {
    pub(super) fn new(settings: Option<CallTrace>) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Whether anything is told.
    pub(super) fn active(&self) -> bool {
        self.settings.is_some()
    }

    /// The number of the block at hand, if it is told.
    pub(super) fn block(&self) -> Option<u32> {
        self.active().then_some(self.block)
    }
}

impl Emitter<'_> {
    /// Settles how the block at hand is told.
    pub(super) fn begin_told_block(&mut self, insns: &[Insn]) {
        let last = &insns[insns.len() - 1];
        self.teller.block = self.trans.trace_blocks.len() as u32;
        self.teller.by_transfer = self.recorded(last).is_some_and(|how| !matches!(how, Transfer::Taken(_)));
        // Not before that record, wherever it will be.
        self.bump_end = usize::MAX;
    }

    /// How the last instruction of a block transfers control, if that is recorded, and always happens.
    fn recorded(&self, last: &Insn) -> Option<Transfer> {
        let settings = self.teller.settings?;
        match last.class {
            Class::Call => Some(Transfer::Call(GuestAddr(last.target()))),
            Class::CallIndirect | Class::CallNoRedirect => Some(Transfer::CallIndirect),
            Class::Ret => Some(Transfer::Return),
            Class::JmpIndirect => Some(Transfer::JumpIndirect),
            Class::Jmp if settings.jumps || (self.crosses)(last.pc(), last.target()) => {
                Some(Transfer::Jump(GuestAddr(last.target())))
            }
            Class::Jcc | Class::Loop if settings.jumps || (self.crosses)(last.pc(), last.target()) => {
                Some(Transfer::Taken(GuestAddr(last.target())))
            }
            _ => None,
        }
    }

    fn call_site(&mut self, insn: &Insn, kind: SiteKind) -> u32 {
        let site =
            Site { module: (self.module_of)(insn.pc()), len: insn.len() as u8, addr: GuestAddr(insn.pc()), kind };
        self.trans.new_trace_site(site)
    }

    fn transfer_site(&mut self, insn: &Insn, how: Transfer, tells: bool) -> u32 {
        let block = self.teller.block;
        self.call_site(insn, SiteKind::Transfer { how, block, tells })
    }

    /// At the start of a block: tells that it is executed, if the end does not.
    pub(super) fn tell_at_start(&mut self, insns: &[Insn]) {
        if !self.teller.active() || self.teller.by_transfer {
            return;
        }
        let block = self.teller.block;
        let site = self.call_site(&insns[0], SiteKind::Block { block });
        let free = self.dead_register(insns);
        let c = &mut self.out.code;
        let pos = c.begin_record(free);
        c.end_record(pos, site, 4, free);
        self.bump_end = self.out.code.pos();
    }

    /// Before the last instruction of a block gives control away, if that is recorded and always happens. The stack pointer
    /// is what the target will see; the target of an indirect transfer is in rcx.
    pub(super) fn tell_transfer(&mut self, insn: &Insn) {
        let Some(how) = self.recorded(insn) else { return };
        let site = self.transfer_site(insn, how, true);
        let c = &mut self.out.code;
        match how {
            Transfer::CallIndirect | Transfer::Return | Transfer::JumpIndirect => {
                let pos = c.begin_record(None);
                c.record_word(Gpr::RCX, pos, 12);
                c.record_word(Gpr::RSP, pos, 4);
                c.end_record(pos, site, 20, None);
            }
            _ => c.record_stack_pointer(site),
        }
        self.bump_end = self.out.code.pos();
    }

    /// The conditional branch whose field is at `from` is recorded where it is taken; says so if that is to be.
    pub(super) fn tell_taken(&mut self, insn: &Insn, from: usize) -> bool {
        let Some(how) = self.recorded(insn) else { return false };
        let site = self.transfer_site(insn, how, false);
        self.teller.taken.push(Taken { from, target: insn.target(), site });
        true
    }

    /// In the arm of a branch that looks at rcx where it is taken.
    pub(super) fn tell_loop(&mut self, insn: &Insn) {
        let Some(how) = self.recorded(insn) else { return };
        let site = self.transfer_site(insn, how, false);
        self.out.code.record_stack_pointer(site);
    }

    /// Where execution goes on to the instruction behind `insn`, the last one of its block.
    pub(super) fn tell_onward(&mut self, insn: &Insn) {
        let calls = matches!(insn.class, Class::Call | Class::CallIndirect | Class::CallNoRedirect);
        if !self.teller.active() || !insn.class.goes_on() || calls || !(self.crosses)(insn.pc(), insn.next()) {
            return;
        }
        let site = self.transfer_site(insn, Transfer::Onward(GuestAddr(insn.next())), false);
        self.out.code.record_stack_pointer(site);
    }

    /// A repeated instruction has ended: tells how often it has been executed. All of its registers and flags are the guest's.
    /// Returns the site.
    pub(super) fn tell_executions(&mut self, insn: &Insn, cell: u32, site: Option<u32>) {
        let Some(site) = site else { return };
        debug_assert!(insn.class == Class::RepMove || insn.class == Class::RepCompare);
        let c = &mut self.out.code;
        c.spill(Scratch::T2, Gpr::RCX);
        c.load_gs(Gpr::RCX, arena::cell_offset(cell));
        let pos = c.begin_record(None);
        c.record_word(Gpr::RCX, pos, 4);
        c.end_record(pos, site, 12, None);
        c.reload(Gpr::RCX, Scratch::T2);
    }

    /// The site of [`Emitter::tell_executions`], if there is to be one.
    pub(super) fn executions_site(&mut self, insn: &Insn) -> Option<u32> {
        let block = self.teller.block()?;
        Some(self.call_site(insn, SiteKind::Executions { block }))
    }

    /// The block at hand has been emitted, its shapes and facts are in the table.
    pub(super) fn end_told_block(&mut self, b: &Found, insns: &[Insn]) {
        if !self.teller.active() {
            return;
        }
        let shapes = &self.trans.shapes[self.trans.shapes.len() - insns.len()..];
        let facts = &self.trans.facts[self.trans.facts.len() - insns.len()..];
        let instructions = insns.iter().zip(shapes).zip(facts).map(|((insn, shape), &events)| Instruction {
            addr: GuestAddr(insn.pc()),
            len: insn.len() as u8,
            counted: shape.guest & InsnShape::COUNTED_ELSEWHERE == 0,
            events,
        });
        let block = trace::Block { module: (self.module_of)(b.pc), instructions: instructions.collect() };
        self.trans.trace_blocks.push(block);
    }

    /// Emits what was left for later.
    pub(super) fn cold_transfers(&mut self) {
        for Taken { from, target, site } in std::mem::take(&mut self.teller.taken) {
            let c = &mut self.out.code;
            let here = c.here();
            c.patch_rel32(from, here);
            c.record_stack_pointer(site);
            let pos = c.jmp();
            self.out.fixups.push(Fixup { pos, target, to: None });
        }
    }
}

/// Records. A register holds where the record will be: `free`, or rax, which is saved meanwhile.
impl Asm {
    fn begin_record(&mut self, free: Option<Gpr>) -> Gpr {
        let pos = free.unwrap_or(Gpr::RAX);
        if free.is_none() {
            self.spill(Scratch::T3, pos);
        }
        self.load_gs(pos, Scratch::TracePos as u32);
        pos
    }

    /// `mov gs:[pos + offset], reg`
    fn record_word(&mut self, reg: Gpr, pos: Gpr, offset: i8) {
        self.bytes(&[0x65, 0x48 | (reg.0 >> 3) << 2 | pos.0 >> 3, 0x89, 0x40 | (reg.0 & 7) << 3 | pos.0 & 7]);
        if pos.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&offset.to_le_bytes());
    }

    /// `mov dword gs:[pos], site`, and the record of so many bytes is there.
    fn end_record(&mut self, pos: Gpr, site: u32, bytes: i32, free: Option<Gpr>) {
        self.bytes(&[0x65, 0x40 | pos.0 >> 3, 0xc7, 0x40 | pos.0 & 7]);
        if pos.0 & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.bytes(&[0]);
        self.bytes(&site.to_le_bytes());
        self.lea_disp(pos, pos, bytes);
        self.store_gs(Scratch::TracePos as u32, pos);
        if free.is_none() {
            self.reload(pos, Scratch::T3);
        }
    }

    fn record_stack_pointer(&mut self, site: u32) {
        let pos = self.begin_record(None);
        self.record_word(Gpr::RSP, pos, 4);
        self.end_record(pos, site, 12, None);
    }
}
