//! What the records of a run mean in which the use of cache lines is measured, one after the other, in program order.
//!
//! What is ordinary has been dealt with by [`Used::fast_path`] before; here is everything else. Invariant: a record is dealt
//! with as a whole, or left for the next time.

use cg_sim::usage::{Usage, UsageLastLevel};
use cg_sim::writeback::Outcome;
use cg_sim::{Port, Served};
use grind_trace::every::repeated::{elements, repeated};
use grind_trace::frames::FrameRecord;
use grind_trace::operands;
use grind_trace::{
    CODE_WAY, Done, LINE_USED, LINES_REPLACED, LineReplaced, REPLACED_WORDS, SiteKind, Special, USED_WORDS,
};
use grind_types::Tid;

use super::super::code::Catalogue;
use super::Space;
use super::cache_lines::{Accessing, Group, Member, NO_COUNTER, Stretch, Used, What};
use super::meaning::{Kind, NOTHING};
use super::misses::told as tell;
use super::process::Process;
use super::thread::Thread;
use crate::callgrind::columns::Missed;

impl Process {
    /// Instrumentation is switched off for a thread: its caches are emptied, the last level when it is off for all.
    pub(super) fn empty_used(&mut self, tid: Tid) {
        let Some(used) = &mut self.used else { return };
        if let Some(t) = self.threads.get_mut(&tid)
            && let Some(of_thread) = &mut t.used
        {
            used.flush_thread(of_thread, t.calls.collecting());
        }
        if self.threads.values().all(|t| !t.recording) {
            used.flush();
        }
    }

    /// Goes through records up to one after which a function asks for something, or a part is due; returns what is left.
    pub(super) fn follow_used<'w>(
        &mut self,
        tid: Tid,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        let (Some(mut used), Some(mut t)) = (self.used.take(), self.threads.remove(&tid)) else { return &[] };
        if t.used.is_none() {
            t.used = used.thread();
        }
        used.unseen = words.len();
        let rest = self.follow_with(&mut used, &mut t, catalogue, space, words);
        self.threads.insert(tid, t);
        self.used = Some(used);
        rest
    }

    fn follow_with<'w>(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        let mut rest = words;
        let used_bits = used.line_bits;
        loop {
            let mut left = (0, true);
            let mut told = false;
            if t.begun
                && t.pause == u64::MAX
                && used.columns <= 3
                && let Some(of_thread) = &mut t.used
            {
                let (done, rest_of) = used.fast_path(of_thread, &mut t.calls, &mut t.now, &mut t.blocks, rest);
                rest = &rest[done..];
                told = rest_of.is_some();
                left = rest_of.unwrap_or(left);
            }
            let Some((&number, operands)) = rest.split_first() else { break };
            if let Some((record, after)) = FrameRecord::split(rest) {
                rest = after;
                if self.codes.framed(t, catalogue, record) {
                    break;
                }
                continue;
            }
            let Some(what) = used.whats.get(number as usize).copied() else {
                rest = match self.line_told(used, t, catalogue, space, rest) {
                    Some(after) => after,
                    None => return &[],
                };
                continue;
            };
            if !t.begun {
                t.begun = true;
                t.calls.begin(catalogue, used.loaders[number as usize].addr);
            }
            match what {
                What::Stretch(stretch) => {
                    let Stretch { counter, groups, .. } = used.stretches[stretch as usize];
                    if counter != NO_COUNTER && !told {
                        if t.blocks >= t.pause {
                            return rest;
                        }
                        t.blocks += u64::from(self.counters[counter as usize].ends);
                        t.calls.block(counter);
                        let costs = &self.costs[counter as usize * self.columns.stride..][..used.columns];
                        t.now.iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
                    }
                    let Some((addresses, after)) = operands.split_at_checked(2 * usize::from(groups)) else {
                        return &[];
                    };
                    rest = after;
                    self.stretch(used, t, catalogue, space, (number, stretch), addresses, left);
                }
                What::Told | What::Block(_) => {
                    let Some(hot) = self.hot.get(number as usize) else { return &[] };
                    if t.blocks >= t.pause && hot.counter != NOTHING {
                        return rest;
                    }
                    if let Some(of_thread) = t.used.as_mut().filter(|_| hot.counter != NOTHING) {
                        of_thread.execute(hot.counter);
                    }
                    let repeats = hot.kind == Kind::Executions;
                    let before = if repeats { t.executions.get(&number).copied() } else { None };
                    let Some((after, asks)) = tell(t, hot, &self.costs, catalogue, number, operands) else {
                        return &[];
                    };
                    rest = after;
                    if repeats {
                        self.fetched_again(used, t, catalogue, space, number, before);
                    }
                    if asks {
                        return rest;
                    }
                }
                What::Line(missed) => {
                    let Some(replaced) = LineReplaced::from_words(operands) else { return &[] };
                    rest = &rest[LineReplaced::WORDS..];
                    let site = (number, replaced.addr);
                    let served = self.loads(used, t, catalogue, space, site, |usage, ll, collecting, residents| {
                        let slot = (replaced.way / LineReplaced::WAY) as usize;
                        let line = replaced.line(used_bits);
                        let uses = (replaced.count, replaced.parts);
                        usage.replaced(ll, Port::Data, slot, line, uses, collecting, residents)
                    });
                    match &mut t.used {
                        Some(of_thread) if replaced.one_of_two => {
                            of_thread.answered = of_thread.answered.max(served);
                            of_thread.accessed = replaced.addr;
                        }
                        _ => {
                            self.answered(used, t, catalogue, number, missed, served);
                            let size = used.size(t.used.as_deref(), number, replaced.addr);
                            self.at_object(t, space, (number, missed, served), (replaced.addr, size));
                        }
                    }
                }
                What::Fetch(fetch) => {
                    let (Some((&told, after)), Some(of_thread)) = (operands.split_first(), &mut t.used) else {
                        return &[];
                    };
                    rest = after;
                    let slot = (told / CODE_WAY) as usize;
                    let (line, uses) = used.replace_code(of_thread, slot, fetch, told & 1 != 0);
                    let site = (number, used.loaders[number as usize].addr);
                    let served = self.loads(used, t, catalogue, space, site, |usage, ll, collecting, residents| {
                        usage.replaced(ll, Port::Fetch, slot, line, uses, collecting, residents)
                    });
                    match &mut t.used {
                        Some(of_thread) if told & 2 != 0 => of_thread.answered = of_thread.answered.max(served),
                        _ => self.answered(used, t, catalogue, number, Missed::Fetch, served),
                    }
                }
                What::Branch(missed) => {
                    rest = operands;
                    self.answered(used, t, catalogue, number, missed, Served::LastLevel);
                }
                What::Repeated | What::Special => {
                    let kind = space.sites[number as usize].kind;
                    let Some((record, after)) = rest.split_at_checked(kind.words()) else { return &[] };
                    rest = after;
                    let mut counts = repeated(kind, record);
                    match kind {
                        SiteKind::Special { index, .. } => {
                            let Some(special) = space.specials.get(index as usize) else { return &[] };
                            if used.kept {
                                let touches = special.touches(record);
                                touches.iter().for_each(|t| counts[usize::from(t.done != Done::Read)] += 1);
                                used.touches(t.used.as_deref_mut(), number, &touches);
                            } else {
                                self.special(used, t, catalogue, space, (number, special), record, &mut counts);
                            }
                        }
                        _ if used.kept => {}
                        _ => self.repeated(used, t, catalogue, space, (number, kind), record),
                    }
                    self.accesses(t, catalogue, used.loaders[number as usize].addr, counts);
                }
            }
        }
        rest
    }

    /// The record of a stretch, whose groups have these addresses; or what is `left` of it, as [`Used::fast_path`] says.
    #[expect(clippy::too_many_arguments, reason = "who accesses what, and all that changes by it")]
    fn stretch(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        (number, stretch): (u32, u32),
        addresses: &[u32],
        (from, fetch): (usize, bool),
    ) {
        let Stretch { instructions, bytes, first, .. } = used.stretches[stretch as usize];
        let Some(of_thread) = t.used.as_mut() else { return };
        if fetch && !used.stretches[stretch as usize].fetched(&mut of_thread.usage) {
            let addr = used.loaders[number as usize].addr;
            self.access(used, t, catalogue, space, (number, addr), bytes.into(), instructions.into());
        }
        let (line, within) = (1 << used.line_bits, (1 << used.line_bits) - 1);
        for (at, address) in addresses.as_chunks::<2>().0.iter().enumerate().skip(from) {
            let group = &used.groups[first as usize + at];
            let address = operands::joined(address[0], address[1]);
            let offset = address as u32 & within;
            let Some(of_thread) = t.used.as_mut() else { return };
            let hit = offset + u32::from(group.last) < line
                && of_thread.usage.hit(
                    Port::Data,
                    address >> used.line_bits,
                    group.count.into(),
                    used.parts_of(group, offset),
                );
            if !hit {
                let group = *group;
                self.group(used, t, catalogue, space, group, address);
            }
        }
    }

    /// The accesses of a group, of which not all are known to hit the same line.
    #[cold]
    #[inline(never)]
    fn group(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        group: Group,
        address: u64,
    ) {
        for site in group.first..group.first + u32::from(group.count) {
            let Member { offset, size } = used.members[site as usize];
            self.access(used, t, catalogue, space, (site, address.wrapping_add(offset.into())), size, 1);
        }
    }

    /// `count` accesses in a row of a site, to one line or only one.
    #[expect(clippy::too_many_arguments, reason = "who accesses what, and all that changes by it")]
    fn access(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        (site, addr): (u32, u64),
        size: u32,
        count: u32,
    ) {
        let missed = used.loaders[site as usize].missed;
        let port = if missed == Missed::Fetch { Port::Fetch } else { Port::Data };
        let served = self.loads(used, t, catalogue, space, (site, addr), |usage, ll, collecting, residents| {
            usage.access_run(ll, port, addr, size, count, collecting, residents)
        });
        self.answered(used, t, catalogue, site, missed, served);
        self.at_object(t, space, (site, missed, served), (addr, size));
    }

    /// What [`trace`](grind_trace) tells of lines and objects apart from sites; `words` are the record and what follows.
    fn line_told<'w>(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> Option<&'w [u32]> {
        match *words {
            [LINES_REPLACED, site, ..] => {
                let of_thread = t.used.as_mut()?;
                let (addr, served) = (of_thread.accessed, std::mem::replace(&mut of_thread.answered, Served::L1));
                let missed = used.loaders.get(site as usize)?.missed;
                self.answered(used, t, catalogue, site, missed, served);
                let size = used.size(t.used.as_deref(), site, addr);
                self.at_object(t, space, (site, missed, served), (addr, size));
                words.get(REPLACED_WORDS..)
            }
            [LINE_USED, way, count, parts, ..] => {
                t.used.as_mut()?.usage.used(Port::Data, (way / LineReplaced::WAY) as usize, (count, parts));
                words.get(USED_WORDS..)
            }
            _ => self.object_record(t, catalogue, (words, false)),
        }
    }

    /// Lets a site that accesses this address do something to the caches that may load lines.
    #[inline]
    fn loads(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        (site, addr): (u32, u64),
        access: impl FnOnce(&mut Usage, &mut UsageLastLevel, bool, &mut Accessing<'_>) -> Served,
    ) -> Served {
        let at = site as usize;
        if used.loaders[at].counter == NO_COUNTER {
            used.loaders[at].counter = self.single_counter(catalogue, used.loaders[at].addr);
        }
        let Some(of_thread) = &mut t.used else { return Served::L1 };
        let touching =
            self.by_object.as_deref_mut().and_then(|of| of.touching(&space.images, &space.sites[site as usize], addr));
        used.loads(of_thread, &mut t.calls, site, touching, access)
    }

    /// An access of a site, to so many bytes at an address, has been answered: a miss is one of an object, too.
    #[inline]
    fn at_object(
        &mut self,
        t: &mut Thread,
        space: &Space,
        (site, missed, served): (u32, Missed, Served),
        (addr, size): (u64, u32),
    ) {
        let outcome = match served {
            Served::L1 => return,
            Served::LastLevel => Outcome::LastLevel,
            Served::Memory => Outcome::Memory,
        };
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let data = (missed != Missed::Fetch).then_some((addr, size));
        self.missed_object(t, space, (site, data, outcome.into()));
    }

    /// An access of a site has been answered; or its branch was mispredicted, which is as a miss of the first level.
    fn answered(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        missed: Missed,
        served: Served,
    ) {
        let which = match served {
            Served::L1 => return,
            Served::LastLevel => 0,
            Served::Memory => 1,
        };
        let outcomes = [Outcome::LastLevel, Outcome::Memory];
        let loader = &mut used.loaders[site as usize];
        if loader.misses[which] == NO_COUNTER {
            for (which, outcome) in outcomes.into_iter().enumerate() {
                let costs = self.columns.miss(missed, outcome.into());
                loader.misses[which] = self.add_counter_at(catalogue, loader.addr, costs);
            }
        }
        t.calls.block(loader.misses[which]);
        self.columns.missed(missed, outcomes[which].into(), |event| t.now[event] += 1);
    }

    /// A repeated instruction, which was fetched once, has told how often it has been executed in all; `before`: the last time.
    fn fetched_again(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        number: u32,
        before: Option<u64>,
    ) {
        let now = t.executions.get(&number).copied().unwrap_or(0);
        let again = now.wrapping_sub(before.unwrap_or(0)).saturating_sub(1);
        let site = space.sites[number as usize];
        if again > 0 {
            if let Some(of_thread) = t.used.as_mut().filter(|_| used.kept) {
                let again = i64::try_from(again).unwrap_or(i64::MAX);
                return used.fetched(of_thread, site.addr.0, site.len, again);
            }
            let again = u32::try_from(again).unwrap_or(u32::MAX);
            self.access(used, t, catalogue, space, (number, site.addr.0), site.len.into(), again);
        }
    }

    /// What an instruction has accessed that depends on more than addresses. It reads and writes through the sites behind
    /// its own.
    #[expect(clippy::too_many_arguments, reason = "who accesses what, and all that changes by it")]
    fn special(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        (number, special): (u32, &Special),
        record: &[u32],
        counts: &mut [u64; 2],
    ) {
        for touch in special.touches(record) {
            let write = touch.done != Done::Read;
            counts[usize::from(write)] += 1;
            let size = touch.size.min(used.most.into()) as u32;
            self.access(used, t, catalogue, space, (number + 1 + u32::from(write), touch.address), size, 1);
        }
    }

    /// What a repeated instruction has accessed: at rsi through the site behind its own, at rdi through the one after that.
    fn repeated(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        space: &Space,
        (number, kind): (u32, SiteKind),
        record: &[u32],
    ) {
        let SiteKind::Repeated { size, .. } = kind else { return };
        elements(kind, record, |at_target, addr| {
            let site = number + 1 + u32::from(at_target);
            self.access(used, t, catalogue, space, (site, addr), size.into(), 1);
        });
    }
}
