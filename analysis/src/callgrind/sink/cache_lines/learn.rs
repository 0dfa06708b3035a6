//! What records of a site will mean, found out once: which line a stretch lies in, which parts of it it fetches, how the accesses
//! of a group lie to one another. Nothing is simulated here.

use cg_sim::usage::parts;
use grind_trace::{self as trace, Done, LineReplaced, Site, SiteKind};

use super::{Group, LOOKS_UP, Loader, Member, NO_COUNTER, Stretch, Told, Used, What};
use crate::callgrind::columns::Missed;

impl Used {
    /// Learns of more blocks, which have these counters.
    pub(in super::super) fn learn_blocks(&mut self, blocks: &[trace::Block], counters: &[u32]) {
        if self.kept {
            for (block, counter) in blocks.iter().zip(counters) {
                self.code.add_block(block.instructions.iter().map(|i| (i.addr.0, i.len)), *counter);
            }
        }
    }

    /// Learns of more sites.
    pub(in super::super) fn learn_sites(&mut self, sites: &[Site], of_block: impl Fn(u32) -> Told) {
        for site in sites {
            let number = self.whats.len() as u32;
            let mut missed = Missed::Fetch;
            let size = match site.kind {
                SiteKind::Read(size) | SiteKind::Write(size) | SiteKind::Modify(size) => size.into(),
                _ => site.len.into(),
            };
            let mut member = Member { offset: 0, size };
            let what = match site.kind {
                SiteKind::Stretch { instructions, bytes, groups, tells, .. } => {
                    let told = tells.map_or(Told { counter: NO_COUNTER, ends: 0, costs: [0; 3] }, &of_block);
                    self.add_stretch(site.addr.0, (instructions, bytes), groups.into(), told);
                    What::Stretch(self.stretches.len() as u32 - 1)
                }
                SiteKind::Member { group, done, offset, size } => {
                    missed = if done == Done::Read { Missed::Read } else { Missed::Write };
                    member = Member { offset: offset.into(), size: u32::from(size).min(self.most) };
                    self.add_member(group.into(), number, member);
                    What::Told
                }
                SiteKind::Conditional => What::Branch(Missed::Conditional),
                SiteKind::Indirect => What::Branch(Missed::Indirect),
                SiteKind::Repeated { .. } => What::Repeated,
                SiteKind::Special { .. } => What::Special,
                SiteKind::Sized { done: Done::Read } | SiteKind::Read(_) => {
                    missed = Missed::Read;
                    if self.kept { What::Line(missed) } else { What::Told }
                }
                SiteKind::Sized { .. } | SiteKind::Write(_) | SiteKind::Modify(_) => {
                    missed = Missed::Write;
                    if self.kept { What::Line(missed) } else { What::Told }
                }
                SiteKind::CodeLine { block, second } => {
                    let counter = block.map_or(NO_COUNTER, |block| of_block(block).counter);
                    self.fetches.push(self.code.add_fetch(site.addr.0, site.len, counter, second));
                    What::Fetch(self.fetches.len() as u32 - 1)
                }
                SiteKind::Block { block } => What::Block(of_block(block)),
                SiteKind::Fetch | SiteKind::Transfer { .. } | SiteKind::Jump { .. } | SiteKind::Executions { .. } => {
                    What::Told
                }
            };
            self.whats.push(what);
            let length = match what {
                What::Line(_) => LineReplaced::WORDS as u16 | LOOKS_UP,
                _ => site.kind.words() as u16,
            };
            self.lengths.push(length);
            self.members.push(member);
            self.loaders.push(Loader { addr: site.addr.0, missed, counter: NO_COUNTER, misses: [NO_COUNTER; 2] });
        }
    }

    fn add_stretch(
        &mut self,
        addr: u64,
        (instructions, bytes): (u16, u16),
        groups: u16,
        Told { counter, ends, costs }: Told,
    ) {
        let bits = self.line_bits;
        let within = addr as u32 & ((1 << bits) - 1);
        let (end, length) = (within + u32::from(bytes), 1 << bits);
        let more = end.saturating_sub(length);
        self.stretches.push(Stretch {
            line: addr >> bits,
            parts: [
                parts(bits, within, end.min(length) - 1),
                if more == 0 { 0 } else { parts(bits, 0, more.min(length) - 1) },
            ],
            instructions,
            bytes,
            first: self.groups.len() as u32,
            groups,
            counter,
            ends,
            costs,
        });
        self.groups.resize(self.groups.len() + usize::from(groups), Group::default());
    }

    fn add_member(&mut self, group: u32, site: u32, member: Member) {
        let Some(stretch) = self.stretches.last() else { return };
        let group = &mut self.groups[(stretch.first + group) as usize];
        if group.count == 0 {
            group.first = site;
        }
        group.count += 1;
        group.last = group.last.max((member.offset + member.size - 1) as u16);
        // Which parts of the line they touch depends on where it lies, unless they leave no byte out.
        let members = self.members[group.first as usize..].iter().chain(std::iter::once(&member));
        let mut bytes = vec![false; group.last as usize + 1];
        for m in members.take(group.count as usize) {
            bytes[m.offset as usize..(m.offset + m.size) as usize].fill(true);
        }
        group.solid = bytes.iter().all(|b| *b);
    }
}
