//! What a block tells of while calls are recorded: what of it was executed, and how control left it. A block goes on behind
//! conditional branches and is told once, where it is left: by the record of the transfer of control if there is one, else by
//! a record of its own. A block that ends with a system call or a stop is told before that. Nothing is counted in counters
//! then, but for the executions of repeated instructions.
//!
//! Invariants: no flag and no register that the guest can see is changed; a transfer is recorded when nothing of its
//! instruction can fault any more, with the stack pointer that its target sees; the highest word of a record is written
//! first, so that one that does not fit any more faults before anything of it is there; `bump_end` is where the block has
//! been told.

use grind_asm::Asm;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};

use grind_fragments::batch::Found;
use grind_fragments::fragment_table::InsnShape;
use grind_isa::decode::{Class, Insn, STATUS};
use grind_trace::Transfer;
use grind_trace::{self as trace, CallTrace, Instruction, Site, SiteKind};
use grind_types::StaticEvents;
use grind_types::addr::GuestAddr;

use super::sums::{Sums, add_execution};
use super::{Emitter, Fixup};

/// A branch that is taken: what remains to be emitted behind the hot code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// The 32-bit field of the branch.
    pub(super) from: usize,
    pub(super) target: GuestAddr,
    pub(super) site: u32,
    /// It is a transfer of control that is recorded; the record has a stack pointer.
    pub(super) transfer: bool,
    /// What has been executed of the block.
    pub(super) executed: Sums,
    /// The place of its block in the order of emission.
    pub(super) place: usize,
    /// It may lead past what its target has in front.
    pub(super) past_front: bool,
}

/// What telling needs while a batch is emitted.
#[derive(Debug, Default)]
pub(super) struct CallRecorder {
    pub(super) settings: Option<CallTrace>,
    /// No code changes without a system call.
    pub(super) steady: bool,
    /// Blocks are told where they begin, by the record of their accesses.
    early: bool,
    taken: Vec<Taken>,
    /// The number of the block at hand.
    block: u32,
    /// How many of its instructions are told where it is left in the middle; their numbers follow on the block's.
    parts: Vec<usize>,
    /// How many of its instructions have been executed behind the one at hand, and how many there are.
    pub(super) done: usize,
    pub(super) n: usize,
    /// The counter that counts the end of the block, if that has been counted already.
    pub(super) counted_early: Option<u32>,
    /// What executing those has been.
    executed: Sums,
}

impl CallRecorder {
    /// `early`: blocks are told where they begin, by the record of their accesses, and nothing is left to tell at their ends.
    pub(super) fn new(settings: Option<CallTrace>, early: bool) -> Self {
        Self { settings, early, ..Self::default() }
    }

    /// Whether anything is told.
    pub(super) fn active(&self) -> bool {
        self.settings.is_some()
    }

    /// Whether all of the block at hand has been executed.
    pub(super) fn at_end(&self) -> bool {
        self.done == self.n
    }

    /// Emitted code follows calls.
    pub(super) fn followed(&self) -> bool {
        self.settings.is_some_and(|s| s.followed)
    }

    /// Jumps are counted.
    pub(super) fn counts_jumps(&self) -> bool {
        self.settings.is_some_and(|s| s.jumps)
    }

    /// The number of the block at hand, if it is told.
    pub(super) fn block(&self) -> Option<u32> {
        self.active().then_some(self.block)
    }

    /// The next instruction is the `done`th of `n`.
    pub(super) fn at(&mut self, (done, n): (usize, usize), insn: &Insn, facts: StaticEvents, bus: Option<usize>) {
        if done == 1 {
            self.executed = Sums::default();
        }
        (self.done, self.n) = (done, n);
        add_execution(&mut self.executed, insn, facts, bus);
    }

    /// The number of what has been executed when the block is left behind the instruction at hand.
    fn so_far(&mut self) -> u32 {
        if self.done == self.n {
            return self.block;
        }
        if self.parts.last() != Some(&self.done) {
            self.parts.push(self.done);
        }
        self.block + self.parts.len() as u32
    }
}

impl Emitter<'_> {
    /// A block begins.
    pub(super) fn begin_told_block(&mut self) {
        self.call_recorder.block = self.trans.trace_blocks.len() as u32;
        self.call_recorder.parts.clear();
        self.call_recorder.counted_early = None;
        // Not before it is left, wherever that will be.
        self.bump_end = usize::MAX;
    }

    /// What has been executed of the block is told where the code goes on, unless it was told before.
    pub(super) fn block_told(&mut self) {
        if !self.call_recorder.early && self.call_recorder.counted_early.is_none() {
            self.bump_end = self.out.code.pos();
        }
    }

    /// The first record of a block has been emitted: it tells of the block, too.
    pub(super) fn block_told_early(&mut self) {
        if self.call_recorder.active() && self.bump_end == usize::MAX {
            self.bump_end = self.out.code.pos();
        }
    }

    /// How an instruction transfers control, if that is recorded. (A conditional branch: when it is taken.)
    pub(super) fn recorded(&self, insn: &Insn) -> Option<Transfer> {
        let settings = self.call_recorder.settings?;
        let to = || insn.target();
        match insn.class {
            Class::Call => Some(Transfer::Call(to())),
            Class::CallIndirect | Class::CallNoRedirect => Some(Transfer::CallIndirect),
            Class::Ret => Some(Transfer::Return),
            Class::JmpIndirect => Some(Transfer::JumpIndirect),
            Class::Jmp | Class::Jcc | Class::Loop
                if settings.jumps && !settings.followed || (self.crosses)(insn.pc(), insn.target()) =>
            {
                Some(if insn.class == Class::Jmp { Transfer::Jump(to()) } else { Transfer::Taken(to()) })
            }
            _ => None,
        }
    }

    /// The jump that an instruction is, if it gets to no boundary and is counted. (A conditional branch: when it is taken.)
    fn jump_within(&self, insn: &Insn) -> Option<Transfer> {
        let to = insn.target();
        let how = match insn.class {
            Class::Jmp => Transfer::Jump(to),
            Class::Jcc | Class::Loop => Transfer::Taken(to),
            _ => return None,
        };
        (self.call_recorder.counts_jumps() && !(self.crosses)(insn.pc(), to)).then_some(how)
    }

    fn call_site(&mut self, insn: &Insn, kind: SiteKind) -> u32 {
        let site = Site { module: (self.module_of)(insn.pc()), len: insn.len() as u8, addr: insn.pc(), kind };
        self.trans.new_trace_site(site)
    }

    /// The site of what tells all that was executed of the block when it is left by `how`, or by nothing that is recorded; and what
    /// executing it has been.
    pub(super) fn exit_of(&mut self, insn: &Insn, how: Option<Transfer>) -> (u32, Sums) {
        let block = self.call_recorder.so_far();
        let kind = match how {
            Some(how) => SiteKind::Transfer { how, block, tells: !self.call_recorder.early },
            None => SiteKind::Block { block },
        };
        (self.call_site(insn, kind), self.call_recorder.executed)
    }

    /// The same where it is left by the jump that the instruction is.
    pub(super) fn exit_by_jump(&mut self, insn: &Insn, how: Option<Transfer>) -> (u32, Sums) {
        let Some(how) = self.jump_within(insn) else { return self.exit_of(insn, how) };
        let block = self.call_recorder.so_far();
        let kind = SiteKind::Jump { how, block, tells: !self.call_recorder.early };
        (self.call_site(insn, kind), self.call_recorder.executed)
    }

    /// A register whose value is not needed at `pc`, if one is known: none of those that are taken, by way of which nothing is
    /// recorded.
    fn dead_at(&self, pc: GuestAddr) -> Option<Gpr> {
        let batch = self.batch;
        let block = self.call_recorder.steady.then(|| batch.find(pc)).flatten();
        let first = block.and_then(|block| batch.registers_of(&batch.blocks[block]).first());
        let dead = first.map_or(0, |r| r.dead) & !self.stolen_registers().free_set();
        (dead != 0).then(|| Gpr(dead.trailing_zeros() as u8))
    }

    /// How the transfer of an instruction is recorded, if leaving by it is told at all.
    fn told_exit(&self, insn: &Insn) -> Option<Option<Transfer>> {
        let how = self.recorded(insn);
        (self.call_recorder.active() && !(self.call_recorder.early && how.is_none())).then_some(how)
    }

    /// Before the last instruction of a block: tells of it if that instruction makes a system call, or stops.
    pub(super) fn tell_before_last(&mut self, insn: &Insn) {
        let goes = matches!(
            insn.class,
            Class::Call
                | Class::CallIndirect
                | Class::CallNoRedirect
                | Class::Ret
                | Class::Jmp
                | Class::JmpIndirect
                | Class::Jcc
                | Class::Loop
        );
        if self.call_recorder.active() && !self.call_recorder.early && insn.class.ends_block() && !goes {
            let (site, n) = self.exit_of(insn, None);
            if self.call_recorder.followed() {
                self.count_exit(site, n, insn.live, None);
            } else {
                self.out.code.record(site, false, None);
            }
            self.block_told();
        }
    }

    /// Before the last instruction of a block gives control away for certain. The stack pointer is what the target will see;
    /// the target of an indirect transfer is in rcx. Says whether what has been emitted goes there, too.
    pub(super) fn tell_transfer(&mut self, insn: &Insn) -> bool {
        let Some(how) = self.told_exit(insn) else { return false };
        if let Some(how) = how.filter(|_| self.call_recorder.followed()) {
            if matches!(how, Transfer::CallIndirect | Transfer::JumpIndirect) {
                self.followed_indirect(insn, how);
            } else {
                let (site, n) = self.exit_of(insn, Some(how));
                let live = if self.call_recorder.steady { insn.live } else { STATUS };
                self.count_exit(site, n, live, None);
                self.block_told();
                self.leave_by(site);
            }
            return true;
        }
        if insn.class == Class::Jmp && self.defer_on(insn, insn.target(), true) {
            return false;
        }
        let (site, n) = self.exit_by_jump(insn, how);
        match how {
            Some(Transfer::CallIndirect | Transfer::Return | Transfer::JumpIndirect) => {
                let c = &mut self.out.code;
                let pos = c.begin_record(None);
                c.store_frame(pos, 12, Gpr::RCX);
                c.store_frame(pos, 4, Gpr::RSP);
                c.end_record(pos, site, 20, None);
            }
            _ => {
                if self.call_recorder.followed() {
                    let to = self.carrier(insn.target());
                    self.count_end(site, n, insn.live, to);
                } else {
                    let free = self.dead_at(insn.target());
                    self.out.code.record(site, how.is_some(), free);
                }
            }
        }
        self.block_told();
        false
    }

    /// The conditional branch whose field is at `from` is told where it is taken; says so if that is to be.
    pub(super) fn tell_taken(&mut self, insn: &Insn, from: usize) -> bool {
        let Some(how) = self.told_exit(insn) else { return false };
        let target = insn.target();
        if how.is_none() && self.defer_on(insn, target, true) {
            self.note_branch(insn, target, from);
            self.out.fixups.push(Fixup { pos: from, target, to: self.past_way_in(target) });
            return true;
        }
        let (site, executed) = self.exit_by_jump(insn, how);
        let place = self.deferrals.here;
        let past_front = self.leads_past_front(insn, target);
        self.call_recorder.taken.push(Taken {
            from,
            target,
            site,
            transfer: how.is_some(),
            executed,
            place,
            past_front,
        });
        true
    }

    /// In the arm of a branch that looks at rcx where it is taken. Says whether what has been emitted goes there, too.
    pub(super) fn tell_loop(&mut self, insn: &Insn) -> bool {
        let Some(how) = self.told_exit(insn) else { return false };
        let (site, n) = self.exit_by_jump(insn, how);
        if !self.call_recorder.followed() {
            self.out.code.record(site, how.is_some(), None);
            return false;
        }
        self.count_exit(site, n, self.live_at(insn.target()), None);
        if how.is_some() {
            self.leave_by(site);
        }
        how.is_some()
    }

    /// Where execution goes on to the instruction behind `insn`, the last one of its block. Says whether what has been emitted
    /// goes there, too.
    pub(super) fn tell_onward(&mut self, insn: &Insn) -> bool {
        let goes_away = matches!(
            insn.class,
            Class::Call | Class::CallIndirect | Class::CallNoRedirect | Class::Jmp | Class::JmpIndirect | Class::Ret
        );
        if !self.call_recorder.active() || goes_away {
            return false;
        }
        let told =
            self.call_recorder.early || insn.class.ends_block() && !matches!(insn.class, Class::Jcc | Class::Loop);
        let crosses = insn.class.goes_on() && (self.crosses)(insn.pc(), insn.next());
        let onward = Transfer::Onward(insn.next());
        if told {
            if crosses {
                let block = self.call_recorder.block;
                let site = self.call_site(insn, SiteKind::Transfer { how: onward, block, tells: false });
                if self.call_recorder.followed() {
                    self.leave_by(site);
                    return true;
                }
                self.out.code.record(site, true, None);
            }
            return false;
        }
        if !crosses && insn.class != Class::Loop && self.defer_on(insn, insn.next(), false) {
            return false;
        }
        let (site, n) = self.exit_of(insn, crosses.then_some(onward));
        if self.call_recorder.followed() {
            let to = self.carrier(insn.next()).filter(|_| !crosses && insn.class != Class::Loop);
            self.count_end(site, n, self.live_at(insn.next()), to);
            if crosses {
                self.leave_by(site);
            }
        } else {
            let free = self.dead_at(insn.next());
            self.out.code.record(site, crosses, free);
        }
        self.block_told();
        crosses && self.call_recorder.followed()
    }

    /// A repeated instruction has ended: tells how often it has been executed. All of its registers and flags are the guest's.
    /// Returns the site.
    pub(super) fn tell_executions(&mut self, insn: &Insn, counter: u32, site: Option<u32>) {
        let Some(site) = site else { return };
        if self.call_recorder.followed() {
            return self.total_executions(counter);
        }
        debug_assert!(insn.class == Class::RepMove || insn.class == Class::RepCompare);
        let c = &mut self.out.code;
        c.spill(SlotWord::T2, Gpr::RCX);
        c.load_gs(Gpr::RCX, layout::counter_offset(counter));
        let pos = c.begin_record(None);
        c.store_frame(pos, 4, Gpr::RCX);
        c.end_record(pos, site, 12, None);
        c.reload(Gpr::RCX, SlotWord::T2);
    }

    /// The site of [`Emitter::tell_executions`], if there is to be one.
    pub(super) fn executions_site(&mut self, insn: &Insn) -> Option<u32> {
        let block = self.call_recorder.block()?;
        Some(self.call_site(insn, SiteKind::Executions { block }))
    }

    /// The block at hand has been emitted, its shapes and facts are in the table.
    pub(super) fn end_told_block(&mut self, b: &Found, insns: &[Insn]) {
        self.call_recorder.counted_early = None;
        if !self.call_recorder.active() {
            return;
        }
        let shapes = &self.trans.shapes[self.trans.shapes.len() - insns.len()..];
        let facts = &self.trans.facts[self.trans.facts.len() - insns.len()..];
        let all: Vec<Instruction> = insns
            .iter()
            .zip(shapes)
            .zip(facts)
            .map(|((insn, shape), &events)| Instruction {
                addr: insn.pc(),
                len: insn.len() as u8,
                counted: shape.guest & InsnShape::COUNTED_ELSEWHERE == 0,
                ends_block: insn.class.ends_block(),
                events,
            })
            .collect();
        let all = trace::Instructions::from(all);
        let module = (self.module_of)(b.pc);
        for n in std::iter::once(all.len()).chain(self.call_recorder.parts.drain(..)) {
            self.trans.trace_blocks.push(trace::Block { module, instructions: all.first(n) });
        }
    }

    /// Emits what was left for later.
    pub(super) fn cold_transfers(&mut self) {
        for taken in std::mem::take(&mut self.call_recorder.taken) {
            if self.call_recorder.followed() {
                self.followed_taken(taken);
                continue;
            }
            let Taken { from, target, site, transfer, past_front, .. } = taken;
            let free = self.dead_at(target);
            let c = &mut self.out.code;
            let here = c.here();
            c.patch_rel32(from, here);
            c.record(site, transfer, free);
            self.go_on(target, past_front, None);
        }
    }
}

/// Records. A register holds where the record will be: `free`, or rax, which is saved meanwhile.
/// Code that writes records of blocks.
trait RecordCode {
    fn begin_record(&mut self, free: Option<Gpr>) -> Gpr;
    /// `mov dword gs:[pos], site`, and the record of so many bytes is there.
    fn end_record(&mut self, pos: Gpr, site: u32, bytes: i32, free: Option<Gpr>);
    /// A record of a site alone, or of a transfer with the stack pointer.
    fn record(&mut self, site: u32, transfer: bool, free: Option<Gpr>);
}

impl RecordCode for Asm {
    fn begin_record(&mut self, free: Option<Gpr>) -> Gpr {
        let pos = free.unwrap_or(Gpr::RAX);
        if free.is_none() {
            self.spill(SlotWord::T3, pos);
        }
        self.load_gs(pos, SlotWord::TracePos.at());
        pos
    }

    fn end_record(&mut self, pos: Gpr, site: u32, bytes: i32, free: Option<Gpr>) {
        self.store_frame_imm(pos, 0, site);
        self.lea_disp(pos, pos, bytes);
        self.store_gs(SlotWord::TracePos.at(), pos);
        if free.is_none() {
            self.reload(pos, SlotWord::T3);
        }
    }

    fn record(&mut self, site: u32, transfer: bool, free: Option<Gpr>) {
        let pos = self.begin_record(free);
        if transfer {
            self.store_frame(pos, 4, Gpr::RSP);
        }
        self.end_record(pos, site, if transfer { 12 } else { 4 }, free);
    }
}
