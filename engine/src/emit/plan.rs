//! What is checked where in a traced block: which accesses are checked together, how far each stretch of it moves the clock,
//! and which registers the checks may use. Nothing is emitted here.
//!
//! Accesses that follow one another at known distances (pushes, fields of a structure) form a *group*, one check. All of them
//! are then settled before the first one's instruction; nothing else uses the caches in between, so nothing else can tell.
//! Only where an instruction faults does a group count uses that were never made.

use iced_x86::{Code, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::asm::Gpr;
use crate::decode::{self, Class, Insn, STATUS};
use crate::events::{self, Access, Place, When};
use crate::trace::TraceSettings;

/// A code line number that no line has.
pub(super) const NO_LINE: u64 = u64::MAX;

/// The most accesses in a group.
const MOST: usize = 12;

/// One access of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The number of its instruction in the block.
    pub(super) insn: usize,
    pub(super) access: Access,
    /// Where it is, from the lowest address of the group.
    pub(super) offset: u16,
    /// Bytes.
    pub(super) size: u16,
}

/// Accesses that are checked together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The instruction before which they are: the first one's, or an earlier one where flags are dead.
    pub(super) at: usize,
    /// How far the stack pointer, if that is the base, is moved from there to the first one's.
    moved: i64,
    /// The lowest address, less the first member's.
    pub(super) from_first: i64,
    /// Bytes from the lowest address to the end of the highest access: at most a line.
    pub(super) span: u16,
    pub(super) members: Vec<Member>,
}

/// Registers that may be changed before an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Registers {
    /// The instruction uses them.
    pub(super) used: u16,
    /// Their values will be overwritten before anything reads them.
    pub(super) dead: u16,
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    /// The number of a segment's first instruction, and how far it moves the clock.
    pub(super) segments: Vec<(usize, u32)>,
    /// By instruction.
    pub(super) registers: Vec<Registers>,
    /// How many registers are to be held through the whole block, and which are free for it.
    pub(super) hold: usize,
    pub(super) free: u16,
}

/// What an address is made of, but for the displacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    base: Register,
    index: Register,
    scale: u8,
    /// How often base and index have been changed in ways that are not followed.
    versions: [u32; 2],
}

/// What is known about general registers from one instruction to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    versions: [u32; 16],
    /// How far the stack pointer has been moved since its version began.
    stack: i64,
}

impl Known {
    /// The key of an access and its displacement, if others can be at a known distance from it.
    pub(super) fn key(&self, a: &Access) -> Option<(Key, i64)> {
        let (When::Always, Place::At(at)) = (a.when, a.place) else { return None };
        // Far from where a displacement would not fit any more.
        let far = at.base != Register::None && at.displacement.unsigned_abs() > 1 << 30;
        if at.narrow || at.segment != Register::None || at.base == Register::None && at.index != Register::None || far {
            return None;
        }
        let version = |r: Register| if r.is_gpr() { self.versions[r.number()] } else { 0 };
        let moved = if at.base == Register::RSP { self.stack } else { 0 };
        let key =
            Key { base: at.base, index: at.index, scale: at.scale, versions: [version(at.base), version(at.index)] };
        Some((key, at.displacement.wrapping_add(moved)))
    }

    /// Whether an address of this kind is the same here as later, but for how far the stack pointer has been moved.
    pub(super) fn same(&self, later: &Self, key: Key) -> bool {
        [key.base, key.index]
            .into_iter()
            .filter(|r| r.is_gpr())
            .all(|r| self.versions[r.number()] == later.versions[r.number()])
    }

    /// How far it is from here to later.
    pub(super) fn distance(&self, later: &Self, key: Key) -> i64 {
        if key.base == Register::RSP { later.stack - self.stack } else { 0 }
    }

    /// `insn`, which writes these registers, has been executed.
    pub(super) fn after(&mut self, insn: &Insn, written: u16) {
        for (r, version) in self.versions.iter_mut().enumerate() {
            if written >> r & 1 == 0 {
                continue;
            }
            if r == usize::from(Gpr::RSP.0)
                && let Some(by) = stack_moved(insn)
            {
                self.stack += by;
                continue;
            }
            *version += 1;
            if r == usize::from(Gpr::RSP.0) {
                self.stack = 0;
            }
        }
    }
}

/// By how much an instruction moves the stack pointer, if that can be told.
fn stack_moved(insn: &Insn) -> Option<i64> {
    let ins = &insn.ins;
    let on_stack_pointer =
        ins.op_count() > 0 && ins.op0_kind() == OpKind::Register && ins.op0_register() == Register::RSP;
    match ins.mnemonic() {
        Mnemonic::Push | Mnemonic::Call => Some(ins.stack_pointer_increment().into()),
        Mnemonic::Pop if !on_stack_pointer => Some(ins.stack_pointer_increment().into()),
        Mnemonic::Sub | Mnemonic::Add if on_stack_pointer => {
            let by = match ins.code() {
                Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => {
                    ins.immediate(1) as i64
                }
                _ => return None,
            };
            Some(if ins.mnemonic() == Mnemonic::Sub { -by } else { by })
        }
        Mnemonic::Lea if on_stack_pointer && ins.memory_base() == Register::RSP => {
            let plain = ins.memory_index() == Register::None && ins.code() == Code::Lea_r64_m;
            plain.then_some(ins.memory_displacement64() as i64)
        }
        _ => None,
    }
}

/// Whether instruction `i` is a branch that the block goes on behind: where it is taken, nothing of what follows happens.
fn goes_on_behind(insns: &[Insn], i: usize) -> bool {
    insns[i].class == Class::Jcc && i + 1 < insns.len()
}

/// Whether accesses depend on more than addresses.
pub(super) fn is_special(list: &[Access]) -> bool {
    list.iter().any(|a| {
        !matches!(a.when, When::Always | When::Iteration)
            || matches!(a.place, Place::Element { .. } | Place::Compacted { .. })
    })
}

impl Plan {
    /// Plans a block that is entered from code line `line`.
    pub(super) fn of(
        insns: &[Insn],
        mut line: u64,
        settings: &TraceSettings,
        info: &mut InstructionInfoFactory,
    ) -> Self {
        let mut plan = Self::default();
        let mut known = Known::default();
        let mut segment = (0, 0);
        let checked = line == NO_LINE;
        // The group that the next access may join, and its lowest and highest displacement.
        let mut open: Option<(Key, i64, i64, i64)> = None;
        let mut list = Vec::new();
        let mut written = Vec::with_capacity(insns.len());
        let mut states = Vec::with_capacity(insns.len());
        // From here on nothing has been checked.
        let mut quiet = 0;
        for (i, insn) in insns.iter().enumerate() {
            let (registers, writes) = uses(insn, info);
            plan.registers.push(registers);
            written.push(writes);
            states.push(known);
            if let Some(cache) = settings.fetches {
                let bits = cache.line.trailing_zeros();
                let (first, last) = (insn.pc() >> bits, (insn.next() - 1) >> bits);
                let lines = u32::from(first != line) + u32::from(last != first);
                if lines > 0 {
                    open = None;
                    quiet = i;
                }
                segment.1 += 2 * lines;
                line = last;
            }
            let Some(cache) = settings.accesses else { continue };
            if goes_on_behind(insns, i) {
                // What follows may not be executed.
                open = None;
                quiet = i + 1;
                continue;
            }
            list.clear();
            events::accesses(insn, &mut list);
            if is_special(&list) || list.iter().any(|a| a.when == When::Iteration) {
                plan.segments.push(segment);
                segment = (i + 1, 0);
                open = None;
                quiet = i + 1;
                known.after(insn, writes);
                continue;
            }
            segment.1 += 2 * list.len() as u32;
            for &access in &list {
                let size = access.size.min(cache.widest as u16);
                let key = known.key(&access);
                let member = |offset| Member { insn: i, access, offset, size };
                if let (Some((key, at)), Some((other, first, low, high))) = (key, open)
                    && key == other
                    && cache.sets > 1
                    && let Some(group) = plan.groups.last_mut().filter(|g| g.members.len() < MOST)
                {
                    let (lowest, highest) = (low.min(at), high.max(at + i64::from(size)));
                    if highest - lowest <= cache.line.into() {
                        for m in &mut group.members {
                            m.offset += (low - lowest) as u16;
                        }
                        group.members.push(member((at - lowest) as u16));
                        quiet = i + 1;
                        group.span = (highest - lowest) as u16;
                        group.from_first = group.moved + lowest - first;
                        open = Some((key, first, lowest, highest));
                        continue;
                    }
                }
                let (at, moved) = match key {
                    Some((key, _)) if insn.live & STATUS != 0 => {
                        let mut range = quiet..i;
                        let same = |k: &usize| states[*k].same(&known, key);
                        let at = range.rfind(|k| insns[*k].live & STATUS == 0).filter(|at| (*at..i).all(|k| same(&k)));
                        at.map_or((i, 0), |at| (at, states[at].distance(&known, key)))
                    }
                    _ => (i, 0),
                };
                quiet = i + 1;
                plan.groups.push(Group { at, moved, from_first: moved, span: size, members: vec![member(0)] });
                open = key.map(|(key, at)| (key, at, at, at + i64::from(size)));
            }
            known.after(insn, writes);
        }
        plan.segments.push(segment);
        plan.find_dead(insns, &written);
        plan.choose_hold(insns, checked && settings.fetches.is_some(), settings);
        // The next ones are the last in their lists.
        plan.segments.reverse();
        plan.groups.reverse();
        plan
    }

    /// From the end, where every register may be read.
    pub(super) fn find_dead(&mut self, insns: &[Insn], overwritten: &[u16]) {
        let mut dead = 0;
        for (i, r) in self.registers.iter_mut().enumerate().rev() {
            // `used` has those that are only overwritten, too.
            let reads = r.used & !(overwritten[i] & r.dead);
            let followed = matches!(insns[i].class, Class::Plain | Class::Jcc | Class::Jmp | Class::Call)
                && !goes_on_behind(insns, i);
            dead = if followed { (dead | r.dead) & !reads } else { 0 };
            r.dead = dead;
        }
    }

    /// Whether it pays to keep registers for the checks from the block's start to its end: a save and a restore each.
    /// `fetched`: the first instruction's line is checked.
    fn choose_hold(&mut self, insns: &[Insn], fetched: bool, settings: &TraceSettings) {
        let used = self.registers.iter().fold(1u16 << Gpr::RSP.0, |all, r| all | r.used);
        self.free = !used;
        let mut needs = vec![0u32; insns.len()];
        for group in &self.groups {
            needs[group.at] = 2;
        }
        if fetched && needs.first() == Some(&0) {
            needs[0] = 1;
        }
        if settings.branches && insns.last().is_some_and(|l| l.class == Class::Jcc) {
            needs[insns.len() - 1] = 3;
        }
        let cost = |hold: u32| {
            let spills: u32 = needs
                .iter()
                .zip(&self.registers)
                .map(|(&need, r)| 2 * need.saturating_sub(hold + (r.dead & used).count_ones()))
                .sum();
            // The third one holds the clock, which each check then need not load.
            let loads = if hold == 3 { 0 } else { self.groups.len() as u32 };
            2 * hold + spills + loads
        };
        let most = self.free.count_ones().min(3);
        self.hold = (0..=most).min_by_key(|&h| cost(h)).unwrap_or(0) as usize;
    }
}

/// General registers that an instruction uses; those of them that it overwrites without reading them (as `dead`); and, apart
/// from that, all that it writes.
pub(super) fn uses(insn: &Insn, info: &mut InstructionInfoFactory) -> (Registers, u16) {
    let (mut read, mut whole, mut written) = (0u16, 0u16, 0u16);
    for u in info.info(&insn.ins).used_registers() {
        let r = u.register();
        if !r.is_gpr() {
            continue;
        }
        let bit = 1u16 << r.full_register().number();
        match u.access() {
            OpAccess::None | OpAccess::NoMemAccess => {}
            OpAccess::Write if r.size() >= 4 && !decode::may_do_nothing(&insn.ins) => {
                whole |= bit;
                written |= bit;
            }
            OpAccess::Read | OpAccess::CondRead => read |= bit,
            _ => {
                read |= bit;
                written |= bit;
            }
        }
    }
    let dead = whole & !read & !(1 << Gpr::RSP.0);
    (Registers { used: read | written, dead }, written)
}
