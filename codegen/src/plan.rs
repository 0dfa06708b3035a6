//! What is checked where in a traced block: which accesses are checked together, and which registers the checks may use. Nothing is
//! emitted here.
//!
//! Accesses that follow one another at known distances (pushes, fields of a structure) form a *group*, one check. All of them
//! are then settled before the first one's instruction; nothing else uses the caches in between, so nothing else can tell.
//! Only where an instruction faults does a group count uses that were never made.

use grind_fragments::batch::Registers;
use grind_isa::decode::{Class, Insn, STATUS};
use grind_isa::events::{self, Access, Place, When};
use grind_layout::registers::Gpr;
use grind_trace::TraceSettings;
use iced_x86::{Code, Mnemonic, OpKind, Register};

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
    /// The instruction before which they are: the first one's, or an earlier one where the check costs less.
    pub(super) at: usize,
    /// How far the stack pointer, if that is the base, is moved from there to the first one's.
    moved: i64,
    /// The lowest address, less the first member's.
    pub(super) from_first: i64,
    /// Bytes from the lowest address to the end of the highest access: at most a line.
    pub(super) span: u16,
    pub(super) members: Vec<Member>,
}

/// From so many bytes on, accesses in a row are likely to lie in two lines (a quarter of those of 24 bytes, most pushes of all
/// registers), and whether they do is badly predicted.
const WIDE: u16 = 17;

impl Group {
    /// Whether both its first and its last line had better be checked, be they the same or not.
    pub(super) fn is_wide(&self) -> bool {
        self.members.len() > 1 && self.span >= WIDE
    }
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    /// By instruction.
    pub(super) registers: Vec<Registers>,
    /// The registers that are to be held through the whole block: none of its instructions touches them. Those that nobody
    /// needs come first.
    pub(super) hold: Vec<Gpr>,
    /// How many of them nobody needs.
    pub(super) unneeded: usize,
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
    pub(super) fn of(insns: &[Insn], registers: &[Registers], mut line: u64, settings: &TraceSettings) -> Self {
        let mut plan = Self { registers: registers.to_vec(), ..Self::default() };
        let mut known = Known::default();
        // The group that the next access may join, and its lowest and highest displacement.
        let mut open: Option<(Key, i64, i64, i64)> = None;
        let mut list = Vec::new();
        let mut states = Vec::with_capacity(insns.len());
        // From here on nothing has been checked; and where that has been that was checked last, if more may be checked there.
        let mut quiet = 0;
        let mut anchor = None;
        for (i, insn) in insns.iter().enumerate() {
            let writes = registers[i].written;
            states.push(known);
            if let Some(cache) = settings.fetches {
                let bits = cache.line.trailing_zeros();
                let (first, last) = (insn.pc().0 >> bits, insn.next().minus(1).0 >> bits);
                if first != line || last != first {
                    open = None;
                    quiet = i;
                    anchor = None;
                }
                line = last;
            }
            let Some(cache) = settings.accesses else { continue };
            if goes_on_behind(insns, i) {
                // What follows may not be executed.
                open = None;
                quiet = i + 1;
                anchor = None;
                continue;
            }
            list.clear();
            events::accesses(insn, &mut list);
            if is_special(&list) || list.iter().any(|a| a.when == When::Iteration) {
                open = None;
                quiet = i + 1;
                anchor = None;
                known.after(insn, writes);
                continue;
            }
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
                    Some((key, _)) => {
                        let before = anchor.into_iter().chain(quiet..i).filter(|&k| states[k].same(&known, key));
                        let shared = |k: usize| anchor == Some(k);
                        let cost = |k: usize| cost(&insns[k], &registers[k], shared(k));
                        // The nearest of those that cost least.
                        let at = before.chain([i]).rev().min_by_key(|&k| cost(k)).unwrap_or(i);
                        (at, states[at].distance(&known, key))
                    }
                    None => (i, 0),
                };
                anchor = Some(at);
                quiet = i + 1;
                plan.groups.push(Group { at, moved, from_first: moved, span: size, members: vec![member(0)] });
                open = key.map(|(key, at)| (key, at, at, at + i64::from(size)));
            }
            known.after(insn, writes);
        }
        // The next one is the last in the list.
        plan.groups.reverse();
        plan
    }

    /// What the check before a block's first instruction has to know.
    pub(super) fn entry(registers: &Registers) -> Self {
        Self { registers: vec![*registers], ..Self::default() }
    }

    /// Holds as many registers, at most so many, as cost least: `cost` is told those that would be held, and how many of them
    /// nobody needs.
    pub(super) fn hold_best(&mut self, most: usize, cost: impl Fn(&[Registers], &[Gpr], usize) -> usize) {
        let used = self.registers.iter().fold(1u16 << Gpr::RSP.0 | 1 << Gpr::R11.0, |all, r| all | r.used);
        let unneeded = self.registers.first().map_or(0, |r| r.dead) & !used;
        let chosen = |set: u16| (0..16u8).filter(move |r| set >> r & 1 != 0).map(Gpr);
        let mut free: Vec<Gpr> = chosen(unneeded).chain(chosen(!used & !unneeded)).take(most).collect();
        let unneeded = unneeded.count_ones() as usize;
        let n = (0..=free.len()).min_by_key(|&n| cost(&self.registers, &free[..n], n.min(unneeded))).unwrap_or(0);
        free.truncate(n);
        (self.hold, self.unneeded) = (free, n.min(unneeded));
    }
}

/// What it costs, in instructions, to check accesses before `insn`. `shared`: others are checked there, too.
fn cost(insn: &Insn, registers: &Registers, shared: bool) -> u32 {
    let flags = if insn.live & STATUS != 0 { 4 } else { 0 };
    let saved = if shared { 0 } else { 2 * 2u32.saturating_sub(registers.dead.count_ones()) };
    flags + saved
}

/// How many registers there are for a check before an instruction, if these are held.
pub(super) fn available(registers: &Registers, held: &[Gpr]) -> usize {
    let held_here = held.iter().fold(0u16, |all, r| all | 1 << r.0);
    held.len() + (registers.dead & !held_here).count_ones() as usize
}
