//! Records of a run in which the use of cache lines is measured: every access is told, and simulated here.
//!
//! What misses is booked as in [`super::simulated`]. Beyond that a line belongs to the instruction that loaded it and to the
//! calls that were active then (`book`, `chain`); what it cost is known when it is evicted. Invariants: an access that hits
//! costs one look into a table and makes no node; lines that are resident when a thread or the process ends, or when
//! instrumentation is switched off, are evicted then, so that nothing is lost.

mod book;
mod chain;
mod learn;

use cg_calls::{Calls, Standing};
use cg_sim::usage::{Cost, Level, LinesDiffer, Owner, Residents, Usage, UsageLastLevel, parts};
use cg_sim::writeback::Outcome;
use cg_sim::{Geometries, Port, Served};
use grind_engine::trace::{
    Done, LINE_USED, LINES_REPLACED, LineReplaced, REPLACED_WORDS, SiteKind, Special, USED_WORDS,
};

use super::process::{Kind, NOTHING, Process, Thread, word};
use super::simulated::{repeated, told as tell};
use super::through::elements;
use super::{Catalogue, Space};
use crate::callgrind::columns::{Columns, Missed};
use crate::callgrind::desk::Statistics;
use book::{Book, Numbers};
use chain::Chain;

/// The cell of something that has not happened yet.
const NO_CELL: u32 = u32::MAX;

/// What a record of a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// As without simulation.
    Told,
    /// A stretch, by number.
    Stretch(u32),
    /// A mispredicted branch.
    Branch(Missed),
    /// A line of the data cache takes the place of another one.
    Line(Missed),
    /// What a repeated instruction has accessed.
    Repeated,
    /// What a special one has accessed.
    Special,
}

/// Who may load a line: a site that fetches or accesses.
#[derive(Clone, Copy, Debug)]
struct Loader {
    addr: u64,
    missed: Missed,
    /// Of the instruction alone.
    cell: u32,
    /// Of misses that the last level and memory have answered.
    misses: [u32; 2],
}

/// A stretch of instructions.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The first line that it is in.
    line: u64,
    /// What it touches of that, and of the next one.
    parts: [u32; 2],
    instructions: u16,
    bytes: u16,
    /// The first of its groups, and how many.
    first: u32,
    groups: u16,
    /// The block that it tells of, by cell, or [`NO_CELL`]; and what that costs of the first events.
    cell: u32,
    costs: [u16; 3],
}

impl Stretch {
    /// Fetches it, if its lines are known to be resident; says whether they are.
    #[inline]
    fn fetched(&self, usage: &mut Usage) -> bool {
        let (count, [parts, more]) = (self.instructions.into(), self.parts);
        if more == 0 {
            usage.hit(Port::Fetch, self.line, count, parts)
        } else {
            usage.hit_both(Port::Fetch, self.line, count, self.parts)
        }
    }
}

/// Accesses at known distances.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The number of the first one's site, and how many there are.
    first: u32,
    count: u16,
    /// The last byte of the farthest one.
    last: u16,
    /// Together they touch all bytes up to that.
    solid: bool,
}

/// An access of a group.
#[derive(Clone, Copy, Debug)]
struct Member {
    offset: u32,
    size: u32,
}

/// What is known of a process's caches and code.
#[derive(Clone, Debug)]
pub(super) struct Used {
    geometries: Geometries,
    ll: UsageLastLevel,
    book: Book,
    line_bits: u32,
    /// Bytes of the widest access.
    most: u32,
    /// By site.
    whats: Vec<What>,
    loaders: Vec<Loader>,
    members: Vec<Member>,
    stretches: Vec<Stretch>,
    groups: Vec<Group>,
    /// So many columns may have costs of executions.
    columns: usize,
    all_columns: Columns,
    /// Whether the thread that ended last was collecting.
    collecting: bool,
    /// For measurements: calls get nothing.
    self_only: bool,
    /// Data accesses are told only where they miss, and how lines were used with that.
    kept: bool,
}

/// What is known of a thread's caches and calls.
#[derive(Clone, Debug)]
pub(super) struct ThreadUse {
    usage: Usage,
    chain: Chain,
    numbers: Numbers,
    /// By site: where its costs belonged the last time, and the number of that.
    spots: Vec<(Standing, u32)>,
    /// Who has answered the lines so far of an access to two.
    answered: Served,
}

impl Used {
    /// Empty caches, for a profile with these columns.
    ///
    /// # Errors
    /// When not all caches have lines of the same size.
    pub(super) fn new(
        geometries: &Geometries,
        columns: Columns,
        self_only: bool,
        kept: bool,
    ) -> Result<Self, LinesDiffer> {
        Usage::new(geometries)?;
        Ok(Self {
            geometries: *geometries,
            ll: UsageLastLevel::new(geometries),
            book: Book::new(columns.uses.unwrap_or(columns.width)),
            line_bits: geometries.ll.line_bits(),
            most: geometries.min_line(),
            whats: Vec::new(),
            loaders: Vec::new(),
            members: Vec::new(),
            stretches: Vec::new(),
            groups: Vec::new(),
            columns: columns.of_executions(),
            all_columns: columns,
            collecting: true,
            self_only,
            kept,
        })
    }

    /// A new thread, with caches of its own.
    pub(super) fn thread(&mut self) -> Option<Box<ThreadUse>> {
        let usage = Usage::new(&self.geometries).ok()?;
        Some(Box::new(ThreadUse {
            usage,
            chain: Chain::new(),
            numbers: self.book.thread(),
            spots: Vec::new(),
            answered: Served::L1,
        }))
    }

    /// The parts of a line that a group touches whose address has this offset in the line.
    #[inline]
    fn parts_of(&self, group: &Group, offset: u32) -> u32 {
        if group.solid {
            return parts(self.line_bits, offset, offset + u32::from(group.last));
        }
        let members = &self.members[group.first as usize..][..group.count as usize];
        let of = |m: &Member| parts(self.line_bits, offset + m.offset, offset + m.offset + m.size - 1);
        members.iter().fold(0, |all, m| all | of(m))
    }

    /// Goes through stretches as long as everything hits, and through lines that are replaced by accesses to one line whose
    /// site has had misses before. Returns how many words it has been through, and what of the next record is still to be
    /// done: from which group on, and whether it is still to be fetched.
    #[inline(never)]
    fn express(
        &mut self,
        of_thread: &mut ThreadUse,
        calls: &mut Calls,
        now: &mut [u64],
        blocks: &mut u64,
        words: &[u32],
    ) -> (usize, Option<(usize, bool)>) {
        let (line, within) = (1 << self.line_bits, (1 << self.line_bits) - 1);
        let ThreadUse { usage, chain, numbers, spots, .. } = of_thread;
        let columns = self.all_columns;
        let mut sums = [0u64; 3];
        let mut at = 0;
        let mut left = None;
        'records: while let Some(&number) = words.get(at) {
            let stretch = match self.whats.get(number as usize) {
                Some(What::Stretch(stretch)) => &self.stretches[*stretch as usize],
                Some(&What::Line(missed)) => {
                    let (Some(replaced), Some(spot)) =
                        (LineReplaced::from_words(&words[at + 1..]), spots.get_mut(number as usize))
                    else {
                        break;
                    };
                    let Loader { cell, misses, .. } = self.loaders[number as usize];
                    if replaced.one_of_two || misses[0] == NO_CELL {
                        break;
                    }
                    let collecting = calls.collecting();
                    let mut accessing = Accessing {
                        book: &mut self.book,
                        calls,
                        chain,
                        numbers,
                        spot,
                        cell,
                        self_only: self.self_only,
                    };
                    let slot = (replaced.way / LineReplaced::WAY) as usize;
                    let used = (replaced.count, replaced.parts);
                    let line = replaced.line >> self.line_bits;
                    let served = usage.replaced(&mut self.ll, slot, line, used, collecting, &mut accessing);
                    let (outcome, miss) = match served {
                        Served::Memory => (Outcome::Memory, misses[1]),
                        _ => (Outcome::LastLevel, misses[0]),
                    };
                    calls.block(miss);
                    columns.missed(missed, outcome, |event| now[event] += 1);
                    at += LineReplaced::WORDS;
                    continue;
                }
                _ => break,
            };
            let end = at + 1 + 2 * usize::from(stretch.groups);
            let Some(addresses) = words.get(at + 1..end) else { break };
            if stretch.cell != NO_CELL {
                *blocks += 1;
                calls.block(stretch.cell);
                sums.iter_mut().zip(stretch.costs).for_each(|(sum, cost)| *sum += u64::from(cost));
            }
            if !stretch.fetched(usage) {
                left = Some((0, true));
                break;
            }
            let groups = &self.groups[stretch.first as usize..][..usize::from(stretch.groups)];
            for (n, (group, address)) in groups.iter().zip(addresses.as_chunks::<2>().0).enumerate() {
                let address = word(address[0], address[1]);
                let offset = address as u32 & within;
                let hit = offset + u32::from(group.last) < line
                    && usage.hit(
                        Port::Data,
                        address >> self.line_bits,
                        group.count.into(),
                        self.parts_of(group, offset),
                    );
                if !hit {
                    left = Some((n, false));
                    break 'records;
                }
            }
            at = end;
        }
        now.iter_mut().zip(sums).for_each(|(now, sum)| *now += sum);
        (at, left)
    }

    /// Takes costs to the books of threads; see [`Book::settle`].
    pub(super) fn settle<'a>(
        &mut self,
        part: bool,
        threads: impl Iterator<Item = &'a mut Thread>,
    ) -> Vec<(u64, cg_calls::Profile)> {
        let books = threads.filter_map(|t| Some((&t.used.as_ref()?.numbers, &mut t.calls)));
        self.book.settle(part, books)
    }

    /// Forgets all costs.
    pub(super) fn zero(&mut self) {
        self.book.zero();
    }

    /// For a verbose log.
    pub(super) fn statistics(&self) -> Statistics {
        let (tree, arcs) = self.book.statistics();
        Statistics {
            nodes: if tree.releases == 0 { 0.0 } else { tree.sum as f64 / tree.releases as f64 },
            most_nodes: tree.max,
            created: tree.created,
            pruned: tree.pruned,
            arcs,
        }
    }

    /// A thread's caches are emptied: it ends, or instrumentation does. Before its calls are ended.
    pub(super) fn flush_thread(&mut self, t: &mut Thread) {
        let Some(of_thread) = &mut t.used else { return };
        self.collecting = t.calls.collecting();
        of_thread.usage.flush(&mut self.ll, self.collecting, &mut Evicting(&mut self.book));
        if let Ok(empty) = Usage::new(&self.geometries) {
            of_thread.usage = empty;
        }
    }

    /// The last level is emptied, after the first levels of all threads.
    pub(super) fn flush(&mut self) {
        self.ll.flush(self.collecting, &mut Evicting(&mut self.book));
        self.ll = UsageLastLevel::new(&self.geometries);
    }

    /// A thread's calls have ended, and so does it.
    pub(super) fn thread_ended(&mut self, t: &mut Thread) {
        let Some(of_thread) = &mut t.used else { return };
        let ThreadUse { chain, numbers, .. } = &mut **of_thread;
        self.book.follow(numbers, &mut t.calls, chain);
    }

    /// All costs have been settled; the thread's book is about to go.
    pub(super) fn thread_gone(&mut self, t: &Thread) {
        if let Some(of_thread) = &t.used {
            self.book.thread_ended(&of_thread.numbers, t.number, &t.calls);
        }
    }
}

/// Lines go, none come.
struct Evicting<'a>(&'a mut Book);

impl Residents for Evicting<'_> {
    fn loaded(&mut self, _: Level) -> Owner {
        Owner::default()
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        self.0.release(level, owner, cost);
    }
}

/// A site accesses memory, in a thread.
struct Accessing<'a> {
    book: &'a mut Book,
    calls: &'a mut Calls,
    chain: &'a mut Chain,
    numbers: &'a mut Numbers,
    spot: &'a mut (Standing, u32),
    cell: u32,
    self_only: bool,
}

impl Residents for Accessing<'_> {
    fn loaded(&mut self, _: Level) -> Owner {
        let standing = self.calls.standing();
        if self.spot.0 != standing || self.spot.1 == u32::MAX {
            *self.spot = (standing, self.book.spot(self.numbers, self.calls.spot(self.cell)));
        }
        let node = if self.self_only {
            self.chain.root(&mut self.book.tree)
        } else {
            self.book.node(self.numbers, self.calls, self.chain)
        };
        let owner = Owner { node: node.number(), site: self.spot.1 };
        self.book.hold(owner);
        owner
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        self.book.release(level, owner, cost);
    }
}

impl Process {
    /// Instrumentation is switched off for a thread: its caches are emptied, the last level when it is off for all.
    pub(super) fn empty_used(&mut self, tid: i32) {
        let Some(used) = &mut self.used else { return };
        if let Some(t) = self.threads.get_mut(&tid) {
            used.flush_thread(t);
        }
        if self.threads.values().all(|t| !t.recording) {
            used.flush();
        }
    }

    /// Goes through records up to one after which a function asks for something, or a part is due; returns what is left.
    pub(super) fn follow_used<'w>(
        &mut self,
        tid: i32,
        catalogue: &mut Catalogue,
        space: &Space,
        words: &'w [u32],
    ) -> &'w [u32] {
        let (Some(mut used), Some(mut t)) = (self.used.take(), self.threads.remove(&tid)) else { return &[] };
        if t.used.is_none() {
            t.used = used.thread();
        }
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
                let (done, rest_of) = used.express(of_thread, &mut t.calls, &mut t.now, &mut t.blocks, rest);
                rest = &rest[done..];
                told = rest_of.is_some();
                left = rest_of.unwrap_or(left);
            }
            let Some((&number, operands)) = rest.split_first() else { break };
            let Some(what) = used.whats.get(number as usize).copied() else {
                rest = match self.line_told(used, t, catalogue, rest) {
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
                    let Stretch { cell, groups, .. } = used.stretches[stretch as usize];
                    if cell != NO_CELL && !told {
                        if t.blocks >= t.pause {
                            return rest;
                        }
                        t.blocks += 1;
                        t.calls.block(cell);
                        let costs = &self.costs[cell as usize * self.columns.stride..][..used.columns];
                        t.now.iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
                    }
                    let Some((addresses, after)) = operands.split_at_checked(2 * usize::from(groups)) else {
                        return &[];
                    };
                    rest = after;
                    self.stretch(used, t, catalogue, number, stretch, addresses, left);
                }
                What::Told => {
                    let Some(hot) = self.hot.get(number as usize) else { return &[] };
                    if t.blocks >= t.pause && hot.cell != NOTHING {
                        return rest;
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
                    let served = self.loads(used, t, catalogue, number, |usage, ll, collecting, residents| {
                        let slot = (replaced.way / LineReplaced::WAY) as usize;
                        let line = replaced.line >> used_bits;
                        usage.replaced(ll, slot, line, (replaced.count, replaced.parts), collecting, residents)
                    });
                    match &mut t.used {
                        Some(of_thread) if replaced.one_of_two => of_thread.answered = of_thread.answered.max(served),
                        _ => self.answered(used, t, catalogue, number, missed, served),
                    }
                }
                What::Branch(missed) => {
                    rest = operands;
                    self.miss(used, t, catalogue, number, missed, Outcome::LastLevel);
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
                                special
                                    .touches(record)
                                    .iter()
                                    .for_each(|t| counts[usize::from(t.done != Done::Read)] += 1);
                            } else {
                                self.special(used, t, catalogue, number, special, record, &mut counts);
                            }
                        }
                        _ if used.kept => {}
                        _ => self.repeated(used, t, catalogue, number, kind, record),
                    }
                    self.count_accesses(t, catalogue, used.loaders[number as usize].addr, counts);
                }
            }
        }
        rest
    }

    /// The record of a stretch, whose groups have these addresses; or what is `left` of it, as [`Used::express`] says.
    #[expect(clippy::too_many_arguments, reason = "who accesses what, and all that changes by it")]
    fn stretch(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        number: u32,
        stretch: u32,
        addresses: &[u32],
        (from, fetch): (usize, bool),
    ) {
        let Stretch { instructions, bytes, first, .. } = used.stretches[stretch as usize];
        let Some(of_thread) = t.used.as_mut() else { return };
        if fetch && !used.stretches[stretch as usize].fetched(&mut of_thread.usage) {
            let addr = used.loaders[number as usize].addr;
            self.access(used, t, catalogue, number, addr, bytes.into(), instructions.into());
        }
        let (line, within) = (1 << used.line_bits, (1 << used.line_bits) - 1);
        for (at, address) in addresses.as_chunks::<2>().0.iter().enumerate().skip(from) {
            let group = &used.groups[first as usize + at];
            let address = word(address[0], address[1]);
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
                self.group(used, t, catalogue, group, address);
            }
        }
    }

    /// The accesses of a group, of which not all are known to hit the same line.
    #[cold]
    #[inline(never)]
    fn group(&mut self, used: &mut Used, t: &mut Thread, catalogue: &mut Catalogue, group: Group, address: u64) {
        for site in group.first..group.first + u32::from(group.count) {
            let Member { offset, size } = used.members[site as usize];
            self.access(used, t, catalogue, site, address.wrapping_add(offset.into()), size, 1);
        }
    }

    /// `count` accesses in a row of a site, to one line or only one.
    #[expect(clippy::too_many_arguments, reason = "who accesses what, and all that changes by it")]
    fn access(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        addr: u64,
        size: u32,
        count: u32,
    ) {
        let missed = used.loaders[site as usize].missed;
        let port = if missed == Missed::Fetch { Port::Fetch } else { Port::Data };
        let served = self.loads(used, t, catalogue, site, |usage, ll, collecting, residents| {
            usage.access_run(ll, port, addr, size, count, collecting, residents)
        });
        self.answered(used, t, catalogue, site, missed, served);
    }

    /// What [`trace`](grind_engine::trace) tells of lines apart from sites; `words` are the record and what follows.
    fn line_told<'w>(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        words: &'w [u32],
    ) -> Option<&'w [u32]> {
        match *words {
            [LINES_REPLACED, site, ..] => {
                let served = std::mem::replace(&mut t.used.as_mut()?.answered, Served::L1);
                let missed = used.loaders.get(site as usize)?.missed;
                self.answered(used, t, catalogue, site, missed, served);
                words.get(REPLACED_WORDS..)
            }
            [LINE_USED, way, count, parts, ..] => {
                t.used.as_mut()?.usage.used((way / LineReplaced::WAY) as usize, (count, parts));
                words.get(USED_WORDS..)
            }
            _ => None,
        }
    }

    /// Lets a site do something to the caches that may load lines.
    #[inline]
    fn loads(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        access: impl FnOnce(&mut Usage, &mut UsageLastLevel, bool, &mut Accessing<'_>) -> Served,
    ) -> Served {
        let at = site as usize;
        let mut loader = used.loaders[at];
        if loader.cell == NO_CELL {
            loader.cell = self.single_cell(catalogue, loader.addr, self.columns.stride);
            used.loaders[at].cell = loader.cell;
        }
        let Some(of_thread) = &mut t.used else { return Served::L1 };
        let ThreadUse { usage, chain, numbers, spots, .. } = &mut **of_thread;
        if at >= spots.len() {
            spots.resize(used.loaders.len(), (Standing::NOBODY, u32::MAX));
        }
        let collecting = t.calls.collecting();
        let mut accessing = Accessing {
            book: &mut used.book,
            calls: &mut t.calls,
            chain,
            numbers,
            spot: &mut spots[at],
            cell: loader.cell,
            self_only: used.self_only,
        };
        access(usage, &mut used.ll, collecting, &mut accessing)
    }

    /// An access of a site has been answered.
    fn answered(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        missed: Missed,
        served: Served,
    ) {
        match served {
            Served::L1 => {}
            Served::LastLevel => self.miss(used, t, catalogue, site, missed, Outcome::LastLevel),
            Served::Memory => self.miss(used, t, catalogue, site, missed, Outcome::Memory),
        }
    }

    /// A site has missed something.
    fn miss(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        site: u32,
        missed: Missed,
        outcome: Outcome,
    ) {
        let loader = &mut used.loaders[site as usize];
        let which = usize::from(outcome == Outcome::Memory);
        if loader.misses[which] == NO_CELL {
            for (which, outcome) in [Outcome::LastLevel, Outcome::Memory].into_iter().enumerate() {
                let costs = self.columns.miss(missed, outcome);
                loader.misses[which] = self.add_cell(catalogue, vec![(loader.addr, costs.into())], self.columns.stride);
            }
        }
        t.calls.block(loader.misses[which]);
        self.columns.missed(missed, outcome, |event| t.now[event] += 1);
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
            let again = u32::try_from(again).unwrap_or(u32::MAX);
            self.access(used, t, catalogue, number, site.addr.0, site.len.into(), again);
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
        number: u32,
        special: &Special,
        record: &[u32],
        counts: &mut [u64; 2],
    ) {
        for touch in special.touches(record) {
            let write = touch.done != Done::Read;
            counts[usize::from(write)] += 1;
            let size = touch.size.min(used.most.into()) as u32;
            self.access(used, t, catalogue, number + 1 + u32::from(write), touch.address, size, 1);
        }
    }

    /// What a repeated instruction has accessed: at rsi through the site behind its own, at rdi through the one after that.
    fn repeated(
        &mut self,
        used: &mut Used,
        t: &mut Thread,
        catalogue: &mut Catalogue,
        number: u32,
        kind: SiteKind,
        record: &[u32],
    ) {
        let SiteKind::Repeated { size, .. } = kind else { return };
        elements(kind, record, |at_target, addr| {
            let site = number + 1 + u32::from(at_target);
            self.access(used, t, catalogue, site, addr, size.into(), 1);
        });
    }

    /// The instruction at `addr` has made so many reads and writes that are not known from its executions.
    fn count_accesses(&mut self, t: &mut Thread, catalogue: &mut Catalogue, addr: u64, counts: [u64; 2]) {
        let Some(dr) = self.columns.accesses else { return };
        let cell = self.single_cell(catalogue, addr, self.columns.stride);
        for (event, n) in (dr..).zip(counts).filter(|(_, n)| *n != 0) {
            t.calls.cost(cell, event, n);
            t.now[event] += n;
        }
    }
}
