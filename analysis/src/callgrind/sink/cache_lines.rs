//! The use of cache lines: who loaded a line, how it was used, and what that costs whom. What is told of the first levels, or of
//! every access, comes through [`super::used`]; the last level is simulated here.
//!
//! What misses is booked as in [`super::misses`]. Beyond that a line belongs to the instruction that loaded it and to the
//! calls that were active then (`book`, `chain`); what it cost is known when it is evicted. Invariants: an access that hits
//! costs one look into a table and makes no node; lines that are resident when a thread or the process ends, or when
//! instrumentation is switched off, are evicted then, so that nothing is lost.

mod book;
mod chain;
mod learn;

use cg_calls::{CallContext, Calls, Node};
pub(super) use cg_sim::code_use::NO_COUNTER;
use cg_sim::code_use::{Code, CodeUse, Fetch};
use cg_sim::usage::{Cost, Level, LinesDiffer, Owner, Residents, Usage, UsageLastLevel, parts};
use cg_sim::writeback::Outcome;
use cg_sim::{Geometries, Port, Served};
use grind_objects::{Images, Objects, Site, Uses};
use grind_trace::operands;
use grind_trace::{Block, Done, LineReplaced, Touch};
use grind_types::own_memory;

use crate::callgrind::columns::{Columns, Missed};
use crate::callgrind::dump_service::Statistics;
use book::{Book, NO_OBJECT, Numbers};
use chain::Chain;

/// Words of records that are looked at before they are dealt with.
const AHEAD: usize = 512;

/// In [`Used::lengths`]: a line is replaced.
const LOOKS_UP: u16 = 1 << 15;

/// What a record of a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// As without simulation.
    Told,
    /// A stretch, by number.
    Stretch(u32),
    /// A block is executed.
    Block(Told),
    /// A line of the code cache takes the place of another one, because of a fetch of this number.
    Fetch(u32),
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
pub(super) struct Loader {
    pub(super) addr: u64,
    pub(super) missed: Missed,
    /// Of the instruction alone.
    pub(super) counter: u32,
    /// Of misses that the last level and memory have answered.
    pub(super) misses: [u32; 2],
}

/// A stretch of instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The first line that it is in.
    line: u64,
    /// What it touches of that, and of the next one.
    parts: [u32; 2],
    pub(super) instructions: u16,
    pub(super) bytes: u16,
    /// The first of its groups, and how many.
    pub(super) first: u32,
    pub(super) groups: u16,
    /// The block that it tells of, by counter, or [`NO_COUNTER`]; and what that costs of the first events.
    pub(super) counter: u32,
    ends: u16,
    costs: [u16; 3],
}

/// A block that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) counter: u32,
    /// How many basic blocks end with it, and what it costs of the first events.
    pub(super) ends: u16,
    pub(super) costs: [u16; 3],
}

impl Stretch {
    /// Fetches it, if its lines are known to be resident; says whether they are.
    #[inline]
    pub(super) fn fetched(&self, usage: &mut Usage) -> bool {
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
pub(super) struct Group {
    /// The number of the first one's site, and how many there are.
    pub(super) first: u32,
    pub(super) count: u16,
    /// The last byte of the farthest one.
    pub(super) last: u16,
    /// Together they touch all bytes up to that.
    solid: bool,
}

/// An access of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) offset: u32,
    pub(super) size: u32,
}

/// What is known of a process's caches and code.
#[derive(Clone, Debug)]
pub(super) struct Used {
    geometries: Geometries,
    ll: UsageLastLevel,
    book: Book,
    pub(super) line_bits: u32,
    /// Bytes of the widest access.
    pub(super) most: u32,
    /// By site.
    pub(super) whats: Vec<What>,
    /// Words of a record; and [`LOOKS_UP`], if it will look things up here and there.
    lengths: Vec<u16>,
    /// Nobody has looked at records from where so many words remain.
    pub(super) unseen: usize,
    pub(super) loaders: Vec<Loader>,
    pub(super) members: Vec<Member>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) groups: Vec<Group>,
    fetches: Vec<Fetch>,
    code: Code,
    /// So many columns may have costs of executions.
    pub(super) columns: usize,
    all_columns: Columns,
    /// Whether the thread that ended last was collecting.
    collecting: bool,
    /// For measurements: calls get nothing.
    self_only: bool,
    /// Accesses are told only where they miss, and how lines were used with that.
    pub(super) kept: bool,
    /// Lines are told apart by the object that they were loaded for.
    pub(super) by_object: bool,
}

/// Where a site's costs belong: in whose call context, at which object; and the number of that.
type Place = (CallContext, u32, u32);

/// An access of which the objects are asked for.
pub(super) struct Touching<'a> {
    pub(super) objects: &'a mut Objects,
    pub(super) images: &'a Images,
    /// The instruction, and the address that it accesses or fetches from.
    pub(super) site: Site,
    pub(super) addr: u64,
    /// The line that was asked for last, and its object.
    pub(super) last: Option<(u64, u32)>,
}

impl Touching<'_> {
    /// The object of the first byte that is accessed of a line of `1 << bits` bytes.
    fn object(&mut self, line: u64, bits: u32) -> u32 {
        match self.last {
            Some((last, object)) if last == line => object,
            _ => {
                let object = self.objects.at(self.images, self.addr.max(line << bits), self.site);
                self.last = Some((line, object));
                object
            }
        }
    }
}

/// What is known of a thread's caches and calls.
#[derive(Clone, Debug)]
pub(super) struct ThreadUse {
    pub(super) usage: Usage,
    code: CodeUse,
    chain: Chain,
    numbers: Numbers,
    /// By site: where its costs belonged the last time, at which object, and the number of that.
    spots: Vec<Place>,
    /// Who has answered the lines so far of an access to two, and its address.
    pub(super) answered: Served,
    pub(super) accessed: u64,
    /// What the special instruction before has accessed: site, address, bytes. Kept where lines are told apart by object.
    pub(super) touched: Vec<(u32, u64, u32)>,
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
        let lines = geometries.ll.sets() * geometries.ll.assoc();
        Ok(Self {
            geometries: *geometries,
            ll: last_level(geometries),
            book: Book::new(columns.uses.unwrap_or(columns.width), lines.into()),
            line_bits: geometries.ll.line_bits(),
            most: geometries.min_line(),
            whats: Vec::new(),
            lengths: Vec::new(),
            unseen: 0,
            loaders: Vec::new(),
            members: Vec::new(),
            stretches: Vec::new(),
            groups: Vec::new(),
            fetches: Vec::new(),
            code: Code::new(geometries.ll.line_bits()),
            columns: columns.of_executions(),
            all_columns: columns,
            collecting: true,
            self_only,
            kept,
            by_object: false,
        })
    }

    /// The special instruction of a site has accessed this, and what of it has missed will be told.
    pub(super) fn touches(&self, of_thread: Option<&mut ThreadUse>, site: u32, touches: &[Touch]) {
        let Some(of_thread) = of_thread.filter(|_| self.by_object) else { return };
        of_thread.touched.clear();
        let sites = |touch: &Touch| match touch.done {
            Done::Read => site + 1,
            Done::Write => site + 2,
            Done::Modify => site + 3,
        };
        let most = u64::from(self.most);
        of_thread.touched.extend(touches.iter().map(|t| (sites(t), t.address, t.size.min(most) as u32)));
    }

    /// The bytes of an access of a site to an address, in a thread.
    pub(super) fn size(&self, of_thread: Option<&ThreadUse>, site: u32, addr: u64) -> u32 {
        let touched = of_thread.and_then(|of| of.touched.iter().find(|touch| (touch.0, touch.1) == (site, addr)));
        touched.map_or_else(|| self.members.get(site as usize).map_or(1, |member| member.size), |touch| touch.2)
    }

    /// A new thread, with caches of its own.
    pub(super) fn thread(&mut self) -> Option<Box<ThreadUse>> {
        let usage = Usage::new(&self.geometries).ok()?;
        Some(Box::new(ThreadUse {
            usage,
            code: CodeUse::default(),
            chain: Chain::new(),
            numbers: self.book.thread(),
            spots: Vec::new(),
            answered: Served::L1,
            accessed: 0,
            touched: Vec::new(),
        }))
    }

    /// The parts of a line that a group touches whose address has this offset in the line.
    #[inline]
    pub(super) fn parts_of(&self, group: &Group, offset: u32) -> u32 {
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
    pub(super) fn fast_path(
        &mut self,
        of_thread: &mut ThreadUse,
        calls: &mut Calls,
        now: &mut [u64],
        blocks: &mut u64,
        words: &[u32],
    ) -> (usize, Option<(usize, bool)>) {
        let (line, within) = (1 << self.line_bits, (1 << self.line_bits) - 1);
        let ThreadUse { usage, code, chain, numbers, spots, .. } = of_thread;
        let columns = self.all_columns;
        let mut sums = [0u64; 3];
        let mut at = 0;
        let mut left = None;
        'records: while let Some(&number) = words.get(at) {
            if words.len() - at <= self.unseen {
                self.unseen = look_ahead(&self.lengths, &self.ll, usage, &words[at..]);
            }
            let stretch = match self.whats.get(number as usize) {
                Some(What::Stretch(stretch)) => &self.stretches[*stretch as usize],
                Some(&What::Block(Told { counter, ends, costs })) => {
                    *blocks += u64::from(ends);
                    calls.block(counter);
                    code.execute(counter);
                    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += u64::from(cost));
                    at += 1;
                    continue;
                }
                Some(&What::Line(missed)) => {
                    let (Some(replaced), Some(spot)) =
                        (LineReplaced::from_words(&words[at + 1..]), spots.get_mut(number as usize))
                    else {
                        break;
                    };
                    let Loader { counter, misses, .. } = self.loaders[number as usize];
                    if replaced.one_of_two || misses[0] == NO_COUNTER || self.by_object {
                        break;
                    }
                    let collecting = calls.collecting();
                    let mut accessing = Accessing {
                        book: &mut self.book,
                        calls,
                        chain,
                        numbers,
                        spot,
                        counter,
                        self_only: self.self_only,
                        touching: None,
                        line_bits: self.line_bits,
                    };
                    let slot = (replaced.way / LineReplaced::WAY) as usize;
                    let used = (replaced.count, replaced.parts);
                    let line = replaced.line(self.line_bits);
                    let served = usage.replaced(&mut self.ll, Port::Data, slot, line, used, collecting, &mut accessing);
                    let (outcome, miss) = match served {
                        Served::Memory => (Outcome::Memory, misses[1]),
                        _ => (Outcome::LastLevel, misses[0]),
                    };
                    calls.block(miss);
                    columns.missed(missed, outcome.into(), |event| now[event] += 1);
                    at += LineReplaced::WORDS;
                    continue;
                }
                _ => break,
            };
            let end = at + 1 + 2 * usize::from(stretch.groups);
            let Some(addresses) = words.get(at + 1..end) else { break };
            if stretch.counter != NO_COUNTER {
                *blocks += u64::from(stretch.ends);
                calls.block(stretch.counter);
                sums.iter_mut().zip(stretch.costs).for_each(|(sum, cost)| *sum += u64::from(cost));
            }
            if !stretch.fetched(usage) {
                left = Some((0, true));
                break;
            }
            let groups = &self.groups[stretch.first as usize..][..usize::from(stretch.groups)];
            for (n, (group, address)) in groups.iter().zip(addresses.as_chunks::<2>().0).enumerate() {
                let address = operands::joined(address[0], address[1]);
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

    /// Takes costs to the books of threads, and tells those of objects; see [`Book::settle`].
    pub(super) fn settle<'a>(
        &mut self,
        part: bool,
        threads: impl Iterator<Item = (&'a ThreadUse, &'a mut Calls)>,
        tell: impl FnMut(Node, u32, Uses),
    ) -> Vec<(u64, cg_calls::Profile)> {
        self.book.settle(part, threads.map(|(of_thread, calls)| (&of_thread.numbers, calls)), tell)
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
    pub(super) fn flush_thread(&mut self, of_thread: &mut ThreadUse, collecting: bool) {
        self.collecting = collecting;
        let ThreadUse { usage, code, .. } = of_thread;
        code.empty(&self.code, |way, used| usage.used(Port::Fetch, way, used));
        of_thread.usage.flush(&mut self.ll, self.collecting, &mut Evicting(&mut self.book));
        if let Ok(empty) = Usage::new(&self.geometries) {
            of_thread.usage = empty;
        }
    }

    /// The block that a thread told of last was left early, or was not told: of the first `counted` of these instructions that
    /// have been told, just the first `executed` were executed (there may be more of them, too).
    pub(super) fn corrected(&self, of_thread: &mut ThreadUse, block: &Block, counted: usize, executed: usize) {
        if !self.kept {
            return;
        }
        let (more, range) = match counted < executed {
            true => (1, counted..executed),
            false => (-1, executed..counted),
        };
        for i in block.instructions.get(range).unwrap_or_default() {
            of_thread.code.fetch(&self.code, i.addr.0, i.len, more);
        }
    }

    /// The last level is emptied, after the first levels of all threads.
    pub(super) fn flush(&mut self) {
        self.ll.flush(self.collecting, &mut Evicting(&mut self.book));
        self.ll = last_level(&self.geometries);
    }

    /// A thread's calls have ended, and so does it.
    pub(super) fn thread_ended(&mut self, of_thread: &mut ThreadUse, calls: &mut Calls) {
        let ThreadUse { chain, numbers, .. } = of_thread;
        self.book.follow(numbers, calls, chain);
    }

    /// All costs have been settled; the thread's book is about to go.
    pub(super) fn thread_gone(&mut self, of_thread: &ThreadUse, number: u64, calls: &Calls) {
        self.book.thread_ended(&of_thread.numbers, number, calls);
    }

    /// Lets a site, whose counter is known, do something to the caches that may load lines, `touching` objects.
    #[inline]
    pub(super) fn loads(
        &mut self,
        of_thread: &mut ThreadUse,
        calls: &mut Calls,
        site: u32,
        touching: Option<Touching<'_>>,
        access: impl FnOnce(&mut Usage, &mut UsageLastLevel, bool, &mut Accessing<'_>) -> Served,
    ) -> Served {
        let at = site as usize;
        let ThreadUse { usage, chain, numbers, spots, .. } = of_thread;
        if at >= spots.len() {
            spots.resize(self.loaders.len(), (CallContext::NOBODY, NO_OBJECT, u32::MAX));
        }
        let collecting = calls.collecting();
        let mut accessing = Accessing {
            book: &mut self.book,
            calls,
            chain,
            numbers,
            spot: &mut spots[at],
            counter: self.loaders[at].counter,
            self_only: self.self_only,
            touching,
            line_bits: self.line_bits,
        };
        access(usage, &mut self.ll, collecting, &mut accessing)
    }

    /// A line of code comes into `slot` because of a fetch of this number (of its second line, if `second`). Returns which line,
    /// and how the line that was there has been used.
    pub(super) fn replace_code(
        &self,
        of_thread: &mut ThreadUse,
        slot: usize,
        fetch: u32,
        second: bool,
    ) -> (u64, (u32, u32)) {
        let fetch = self.fetches[fetch as usize];
        let uses = of_thread.code.replace(&self.code, slot, fetch, second);
        (self.code.number(fetch.lines[usize::from(second)]), uses)
    }

    /// An instruction is fetched `times` times beside what blocks say, where only what misses is told.
    pub(super) fn fetched(&self, of_thread: &mut ThreadUse, addr: u64, len: u8, times: i64) {
        of_thread.code.fetch(&self.code, addr, len, times);
    }
}

impl ThreadUse {
    /// The block of this counter is executed.
    pub(super) fn execute(&mut self, counter: u32) {
        self.code.execute(counter);
    }
}

/// An empty one.
fn last_level(geometries: &Geometries) -> UsageLastLevel {
    UsageLastLevel::prepared(geometries, &mut own_memory::prefer_large_pages)
}

/// Looks at the records at the beginning of `words`, up to some number of words, or to one that is no site's, and fetches
/// what lines that come will need. Returns how many words remain behind those.
#[inline(never)]
fn look_ahead(lengths: &[u16], ll: &UsageLastLevel, usage: &Usage, words: &[u32]) -> usize {
    let mut rest = words;
    let bits = ll.line_bits();
    while let Some((&number, operands)) = rest.split_first()
        && words.len() - rest.len() < AHEAD
        && let Some(&length) = lengths.get(number as usize)
    {
        if length & LOOKS_UP != 0
            && let Some(replaced) = LineReplaced::from_words(operands)
        {
            let slot = (replaced.way / LineReplaced::WAY) as usize;
            usage.look_ahead(ll, Port::Data, slot, replaced.line(bits)).into_iter().for_each(own_memory::prefetch);
        }
        rest = rest.get(usize::from(length & !LOOKS_UP)..).unwrap_or_default();
    }
    // One that is not known is not looked at again.
    rest.len().min(words.len() - 1)
}

/// Lines go, none come.
struct Evicting<'a>(&'a mut Book);

impl Residents for Evicting<'_> {
    fn loaded(&mut self, _: Level, _: u64) -> Owner {
        Owner::default()
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        self.0.release(level, owner, cost);
    }
}

/// A site accesses memory, in a thread.
pub(super) struct Accessing<'a> {
    book: &'a mut Book,
    calls: &'a mut Calls,
    chain: &'a mut Chain,
    numbers: &'a mut Numbers,
    spot: &'a mut Place,
    counter: u32,
    self_only: bool,
    /// If objects are asked for.
    touching: Option<Touching<'a>>,
    line_bits: u32,
}

impl Residents for Accessing<'_> {
    fn loaded(&mut self, _: Level, line: u64) -> Owner {
        let call_context = self.calls.call_context();
        let object = self.touching.as_mut().map_or(NO_OBJECT, |touching| touching.object(line, self.line_bits));
        if (self.spot.0, self.spot.1) != (call_context, object) || self.spot.2 == u32::MAX {
            let number = self.book.spot(self.numbers, self.calls.spot(self.counter), object);
            *self.spot = (call_context, object, number);
        }
        let node = if self.self_only {
            self.chain.root(&mut self.book.tree)
        } else {
            self.book.node(self.numbers, self.calls, self.chain)
        };
        let owner = Owner { node: node.number(), site: self.spot.2 };
        self.book.hold(owner);
        owner
    }

    fn evicted(&mut self, level: Level, owner: Owner, cost: Cost) {
        self.book.release(level, owner, cost);
    }
}
