//! What a traced block records if every access is wanted, and not only those that miss: a block is cut into *stretches* of
//! instructions in one code line, and a stretch is one record, written before its first instruction, with an address for each
//! group of data accesses. No flag is changed, and nothing is simulated here.
//!
//! A group is made of accesses that follow one another at known distances within a line's length. A stretch ends where the
//! address of an access cannot be told at its start, where another code line begins, and behind instructions whose accesses
//! are told by a record of their own (repeated and masked ones). So the order of records, and of accesses within them, is
//! program order, and no fetch of another line is between the accesses of a stretch. Only where a stretch is left in its
//! middle (a fault, a signal) it told of accesses that were not made, or will be told again.
//!
//! Invariant: the highest word of a record is written first, so that one that does not fit any more faults before anything of
//! it is there.

use grind_fragments::batch::Registers;
use grind_isa::decode::{Class, Insn, STATUS};
use grind_isa::events::{self, Access, Kind, Place, When};
use grind_layout::SlotWord;
use grind_layout::registers::Gpr;
use grind_trace::{Done, EveryAccess, SiteKind};
use iced_x86::Register;

use super::Emitter;
use super::plan::{Key, Known, Plan, available, is_special};
use super::taken::UNRECORDED;

/// The most groups of a stretch: their offsets in a record are short.
const MOST_GROUPS: usize = 14;

/// The most accesses of a stretch.
const MOST_MEMBERS: usize = 60;

/// Accesses at known distances from one another.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Of the first member.
    place: Place,
    /// What must be added to its displacement to get to the lowest address, at the start of the stretch.
    from_first: i64,
    /// Instruction, access, offset from the lowest address, and bytes of each.
    members: Vec<(usize, Access, u16, u16)>,
}

/// Instructions in one code line (or one in two) that are recorded together.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) first: usize,
    instructions: u16,
    bytes: u16,
    groups: Vec<Group>,
}

impl Stretch {
    fn members(&self) -> usize {
        self.groups.iter().map(|g| g.members.len()).sum()
    }
}

/// The stretches of a block, the first one last, and its registers; and how many registers to hold throughout.
pub(super) fn plan(insns: &[Insn], registers: &[Registers], every: EveryAccess) -> (Vec<Stretch>, Plan) {
    let mut plan = Plan { registers: registers.to_vec(), ..Plan::default() };
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut known = Known::default();
    let mut start = known;
    // The next instruction must begin a stretch.
    let mut cut = true;
    let mut line = 0;
    // What the last group's accesses have in common, with its lowest and highest displacement.
    let mut open: Option<(Key, i64, i64)> = None;
    let mut list = Vec::new();
    for (i, insn) in insns.iter().enumerate() {
        let bits = every.code_line.trailing_zeros();
        let (first, last) = (insn.pc().0 >> bits, insn.next().minus(1).0 >> bits);
        list.clear();
        events::accesses(insn, &mut list);
        let apart = is_special(&list) || list.iter().any(|a| a.when == When::Iteration);
        let told = if apart { &[][..] } else { &list[..] };
        let here = stretches.last();
        let tellable = |a: &Access| known.key(a).is_some_and(|(key, _)| start.same(&known, key));
        let room = here
            .is_some_and(|s| s.groups.len() + told.len() <= MOST_GROUPS && s.members() + told.len() <= MOST_MEMBERS);
        if cut || first != line || last != first || !room || !told.iter().all(tellable) {
            stretches.push(Stretch { first: i, instructions: 0, bytes: 0, groups: Vec::new() });
            start = known;
            open = None;
        }
        line = last;
        let Some(stretch) = stretches.last_mut() else { continue };
        stretch.instructions += 1;
        stretch.bytes = insn.next().since(insns[stretch.first].pc()) as u16;
        for &access in told {
            add(stretch, &start, &known, &mut open, i, access, every);
        }
        cut = apart || last != first || insn.class != Class::Plain && insn.class != Class::GsMemory;
        known.after(insn, registers[i].written);
    }
    plan.hold_best(2, |registers, held, unneeded| cost(&stretches, registers, held, unneeded));
    stretches.reverse();
    (stretches, plan)
}

/// Adds an access to the last group of a stretch, or to a new one.
fn add(
    stretch: &mut Stretch,
    start: &Known,
    known: &Known,
    open: &mut Option<(Key, i64, i64)>,
    insn: usize,
    access: Access,
    every: EveryAccess,
) {
    let size = access.size.min(every.widest as u16);
    // In an access's key displacements of the stack pointer count from where its version began: the same for the whole stretch.
    let key = known.key(&access);
    if let (Some((key, at)), Some((other, low, high)), Some(group)) = (key, *open, stretch.groups.last_mut())
        && key == other
    {
        let (lowest, highest) = (low.min(at), high.max(at + i64::from(size)));
        if highest - lowest <= every.data_line.into() {
            for m in &mut group.members {
                m.2 += (low - lowest) as u16;
            }
            group.from_first += lowest - low;
            group.members.push((insn, access, (at - lowest) as u16, size));
            *open = Some((key, lowest, highest));
            return;
        }
    }
    let moved = key.map_or(0, |(key, _)| start.distance(known, key));
    stretch.groups.push(Group { place: access.place, from_first: moved, members: vec![(insn, access, 0, size)] });
    *open = key.map(|(key, at)| (key, at, at + i64::from(size)));
}

/// What it costs to hold registers through a block, of the two that a stretch needs: a save and a restore each, unless nobody
/// needs them.
fn cost(stretches: &[Stretch], registers: &[Registers], held: &[Gpr], unneeded: usize) -> usize {
    let needs = |s: &Stretch| if s.groups.is_empty() { 1 } else { 2 };
    let spills = |s: &Stretch| 2 * usize::saturating_sub(needs(s), available(&registers[s.first], held));
    2 * (held.len() - unneeded) + stretches.iter().map(spills).sum::<usize>()
}

impl Emitter<'_> {
    /// The record of the stretch that begins with instruction `i`, if one does.
    pub(super) fn record_stretch(&mut self, insns: &[Insn], i: usize) {
        let Some(stretch) = self.tracer.stretches.pop_if(|s| s.first == i) else { return };
        let insn = &insns[i];
        let members = stretch.members();
        let kind = SiteKind::Stretch {
            instructions: stretch.instructions,
            bytes: stretch.bytes,
            groups: stretch.groups.len() as u8,
            members: members as u8,
            // The first one of its block.
            tells: self.call_recorder.block().filter(|_| i == 0),
        };
        let site = self.trace_site(insn, kind);
        for (n, group) in stretch.groups.iter().enumerate() {
            for &(insn, access, offset, size) in &group.members {
                let done = match access.kind {
                    Kind::Read => Done::Read,
                    Kind::Write => Done::Write,
                    Kind::Modify => Done::Modify,
                };
                self.trace_site(&insns[insn], SiteKind::Member { group: n as u8, done, offset, size });
            }
        }
        // Registers that give addresses must be left alone, also those of later instructions.
        let mut but = UNRECORDED.to_vec();
        let stolen_registers = self.stolen_registers();
        let mut odd = false;
        let mut bits = false;
        for group in &stretch.groups {
            match group.place {
                Place::At(at) => {
                    let named = [at.base, at.index].into_iter().filter(|r| r.is_gpr()).map(|r| Gpr(r.number() as u8));
                    // What has been taken of both is brought to two registers.
                    odd |= at.segment != Register::None
                        || named.clone().filter(|r| r.kept(stolen_registers).is_some()).count() == 2;
                    but.extend(named);
                }
                Place::Bit(..) => (odd, bits) = (true, true),
                _ => odd = true,
            }
        }
        let n = if odd { 3 } else { 1 + usize::from(!stretch.groups.is_empty()) };
        let dead = self.tracer.plan.registers[i].dead;
        let taken = self.take_among(insn, dead, n, &but);
        let [pos, a, b] = taken.regs;
        let keep = bits && insn.live & STATUS != 0;
        if keep {
            self.save_flags(b);
        }
        self.out.code.load_gs(pos, SlotWord::TracePos.at());
        for (n, group) in stretch.groups.iter().enumerate().rev() {
            self.access_address(&group.place, group.from_first, a, b);
            self.out.code.gs_base8(0x89, a, pos, 4 + 8 * n as i8);
        }
        let c = &mut self.out.code;
        c.store_site(pos, site);
        c.lea_disp(pos, pos, 4 + 8 * stretch.groups.len() as i32);
        c.store_gs(SlotWord::TracePos.at(), pos);
        if keep {
            self.restore_flags(b);
        }
        self.give_back(taken);
        self.block_told_early();
    }
}
