//! Which threads read and wrote which bytes of the same lines. A line of memory that one thread writes while another uses it goes from
//! one processor's cache to the other's, whether or not the two use the same bytes: with the same ones it is truly shared, with
//! other ones falsely.
//!
//! No order of accesses of different threads is asked for. Time is just the births and ends of threads: two threads *meet* in a line if each has used it, from its first access to its last one, while the other one
//! lived. So what a thread prepares before another one begins, or reads when that has ended, is not shared; and what is accessed
//! while there is one thread only is left out. A line's accesses are taken together until [`Sharing::close`] says that something
//! else lies there from then on.
//!
//! Each thread has a small table of what it uses most, by line and by what lies there, and the lines of all threads have what fell
//! out of it. Who tells in which order threads have used lines does so by [`Move`]s, which are added up beside that. Invariants: an access is in one of both, exactly once; what is in a table belongs to the time since the last birth or
//! end. Knows of threads, addresses and numbers of objects, of nothing else. The slow and obvious twin is in the tests.

mod judge;

use std::ops::Range;

use rustc_hash::FxHashMap;

use judge::{Books, Life};
pub use judge::{Found, Moves, OfObject, Row, RowUse};

/// No object: see [`Place::object`].
pub const NO_OBJECT: u32 = u32::MAX;

/// The longest line whose bytes are told apart.
pub const MOST: u32 = 64;

/// So many places in code are kept of those at which a thread uses what lies in a line.
pub const SITES: usize = 4;

/// Sets of a thread's table, and ways of each.
const SETS: usize = 512;
const WAYS: usize = 2;

/// No site.
const NO_SITE: u32 = u32::MAX;

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The first byte.
    pub addr: u64,
    /// Bytes, which may lie in two lines; none count as one.
    pub size: u16,
    /// It reads them.
    pub reads: bool,
    /// It writes them.
    pub writes: bool,
    /// Number of the place in code, not `u32::MAX`.
    pub site: u32,
}

/// How a thread has come by a line, in the order in which threads use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// It reads the line, which this thread has written last.
    Read(u32),
    /// It writes the line, which this thread has written last.
    Written(u32),
    /// It writes the line, which others have read since it was written last.
    Upgraded,
}

/// The moves of what lies in a line, by thread, object, and where that begins.
type MovesOfLine = Vec<((u32, u32, u64), Moves)>;

/// What lies at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of its kind, or [`NO_OBJECT`].
    pub object: u32,
    /// Where it begins: with that it is told from others of its kind.
    pub start: u64,
    /// The addresses of which all this is known, with that which was asked for.
    pub known: Range<u64>,
}

/// How a thread has used what lies in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    thread: u32,
    object: u32,
    start: u64,
    /// Bits by byte of the line.
    read: u64,
    written: u64,
    reads: u64,
    writes: u64,
    sites: [u32; SITES],
    /// The times between which that was.
    first: u32,
    last: u32,
}

impl Use {
    fn site(&mut self, site: u32) {
        for known in &mut self.sites {
            if *known == site {
                return;
            }
            if *known == NO_SITE {
                *known = site;
                return;
            }
        }
    }
}

/// An entry of a thread's table.
#[derive(Clone, Copy, Debug)]
struct Recent {
    line: u64,
    /// The bytes of the line of which is known that they belong to it.
    from: u8,
    to: u8,
    used: Use,
}

type Table = Box<[Option<Recent>; SETS * WAYS]>;

/// See the module's description.
#[derive(Clone, Debug)]
pub struct Sharing {
    line_bits: u32,
    /// By number of the thread.
    lives: Vec<Life>,
    tables: Vec<Option<Table>>,
    now: u32,
    living: usize,
    lines: FxHashMap<u64, Vec<Use>>,
    moves: FxHashMap<u64, MovesOfLine>,
    books: Books,
}

impl Sharing {
    /// Nothing has been accessed so far. `line`: the bytes of a line, a power of two, at most [`MOST`].
    #[must_use]
    pub fn new(line: u32) -> Self {
        Self {
            line_bits: line.trailing_zeros().min(MOST.trailing_zeros()),
            lives: Vec::new(),
            tables: Vec::new(),
            now: 0,
            living: 0,
            lines: FxHashMap::default(),
            moves: FxHashMap::default(),
            books: Books::default(),
        }
    }

    /// A thread begins: its number.
    pub fn begins(&mut self) -> u32 {
        self.settle();
        self.now = self.now.saturating_add(1);
        self.lives.push(Life { from: self.now, to: u32::MAX });
        self.tables.push(None);
        self.living += 1;
        (self.lives.len() - 1) as u32
    }

    /// A thread ends.
    pub fn ends(&mut self, thread: u32) {
        self.settle();
        if let Some(life) = self.lives.get_mut(thread as usize).filter(|life| life.to == u32::MAX) {
            life.to = self.now;
            self.now = self.now.saturating_add(1);
            self.living -= 1;
            self.tables[thread as usize] = None;
        }
    }

    /// Only one thread goes on, in a copy of the memory: whatever was used is told, nothing is shared any more.
    pub fn forked(&mut self, thread: Option<u32>) {
        self.close_all();
        for n in 0..self.lives.len() as u32 {
            if Some(n) != thread {
                self.ends(n);
            }
        }
    }

    /// Forgets what has been found.
    pub fn forget(&mut self) {
        self.books = Books::default();
        self.moves.clear();
    }

    /// Whether nobody is there to share anything with.
    #[inline]
    #[must_use]
    pub fn alone(&self) -> bool {
        self.living < 2
    }

    /// How many threads there have been.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.lives.len()
    }

    /// A thread that lives accesses memory. `place` is asked for what lies at an address.
    #[inline]
    pub fn touch(&mut self, thread: u32, touch: Touch, mut place: impl FnMut(u64) -> Place) {
        if self.alone() {
            return;
        }
        let line_bytes = 1u64 << self.line_bits;
        let (mut addr, mut left) = (touch.addr, u64::from(touch.size.max(1)));
        loop {
            let offset = addr & (line_bytes - 1);
            let here = left.min(line_bytes - offset);
            self.part(thread, addr, here, touch, &mut place);
            left -= here;
            if left == 0 {
                return;
            }
            addr = addr.wrapping_add(here);
        }
    }

    /// A thread that lives has come by the line of an address. `place` is asked for what lies there. (It uses it, too: that is told by itself.)
    pub fn moved(&mut self, thread: u32, addr: u64, how: Move, mut place: impl FnMut(u64) -> Place) {
        if self.alone() {
            return;
        }
        let Place { object, start, .. } = place(addr);
        self.books.moved(object, how);
        let line = self.moves.entry(addr >> self.line_bits).or_default();
        let key = (thread, object, start);
        let at = line.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            line.push((key, Moves::default()));
            line.len() - 1
        });
        line[at].1.add(how);
    }

    /// There was no room to know who has the line of an access.
    pub fn unplaced(&mut self) {
        self.books.unplaced();
    }

    /// A thread that lives makes accesses of `touch.size` bytes each, one behind the other, so many in all: what they use is as if each of them were
    /// told by itself, but not how often.
    pub fn sweep(&mut self, thread: u32, touch: Touch, n: u64, mut place: impl FnMut(u64) -> Place) {
        if self.alone() {
            return;
        }
        let line_bytes = 1u64 << self.line_bits;
        let each = u64::from(touch.size.max(1));
        let (mut addr, mut left) = (touch.addr, n.saturating_mul(each));
        // Bytes of the access at hand that lie behind `addr`, in another line than its first ones.
        let mut rest = 0;
        while left > 0 {
            let offset = addr & (line_bytes - 1);
            let in_line = left.min(line_bytes - offset);
            // Of what lies there as many accesses begin there.
            let here = if rest > 0 {
                rest.min(in_line)
            } else {
                let to = self.known_to(thread, addr, &mut place) - offset;
                in_line.min(to.div_ceil(each).saturating_mul(each))
            };
            self.part(thread, addr, here, touch, &mut place);
            rest = if rest > 0 { rest - here } else { (each - here % each) % each };
            left -= here;
            addr = addr.wrapping_add(here);
        }
    }

    /// Where in its line ends what lies at an address.
    fn known_to(&mut self, thread: u32, addr: u64, place: &mut impl FnMut(u64) -> Place) -> u64 {
        let line = addr >> self.line_bits;
        let offset = (addr & ((1 << self.line_bits) - 1)) as u8;
        let set = (line as usize & (SETS - 1)) * WAYS;
        let table = self.tables.get(thread as usize).and_then(Option::as_ref);
        let known = |e: &&Recent| e.line == line && e.from <= offset && offset < e.to;
        match table.and_then(|table| table[set..set + WAYS].iter().flatten().find(known)) {
            Some(recent) => recent.to.into(),
            None if self.tables.get(thread as usize).is_none() => 1 << self.line_bits,
            None => self.look_up(thread, line, addr, offset, place).to.into(),
        }
    }

    /// What of an access lies in one line.
    #[inline]
    fn part(&mut self, thread: u32, addr: u64, bytes: u64, touch: Touch, place: &mut impl FnMut(u64) -> Place) {
        let line = addr >> self.line_bits;
        let offset = (addr & ((1 << self.line_bits) - 1)) as u8;
        let mask = (u64::MAX >> (64 - bytes)) << offset;
        let Some(table) = self.tables.get_mut(thread as usize) else { return };
        let table = table.get_or_insert_with(|| Box::new([None; SETS * WAYS]));
        let set = (line as usize & (SETS - 1)) * WAYS;
        let known =
            |e: &&mut Option<Recent>| e.as_ref().is_some_and(|e| e.line == line && e.from <= offset && offset < e.to);
        let recent = match table[set..set + WAYS].iter_mut().find(known) {
            Some(Some(recent)) => recent,
            _ => self.look_up(thread, line, addr, offset, place),
        };
        let used = &mut recent.used;
        if touch.reads {
            used.read |= mask;
            used.reads += 1;
        }
        if touch.writes {
            used.written |= mask;
            used.writes += 1;
        }
        if used.sites[0] != touch.site {
            used.site(touch.site);
        }
    }

    /// The entry for an address that the thread's table has none for, in place of another one.
    #[cold]
    fn look_up(
        &mut self,
        thread: u32,
        line: u64,
        addr: u64,
        offset: u8,
        place: &mut impl FnMut(u64) -> Place,
    ) -> &mut Recent {
        let Place { object, start, known } = place(addr);
        let first = line << self.line_bits;
        let from = known.start.saturating_sub(first).min(offset.into()) as u8;
        let to = known.end.saturating_sub(first).clamp(u64::from(offset) + 1, 1 << self.line_bits) as u8;
        let used = Use {
            thread,
            object,
            start,
            read: 0,
            written: 0,
            reads: 0,
            writes: 0,
            sites: [NO_SITE; SITES],
            first: self.now,
            last: self.now,
        };
        let table = self.tables[thread as usize].get_or_insert_with(|| Box::new([None; SETS * WAYS]));
        let set = (line as usize & (SETS - 1)) * WAYS;
        let ways = &mut table[set..set + WAYS];
        ways.rotate_right(1);
        if let Some(old) = ways[0].take() {
            put(&mut self.lines, &old);
        }
        ways[0].insert(Recent { line, from, to, used })
    }

    /// Something else lies there from now on: what lies in those lines is told as it has been used up to now.
    pub fn close(&mut self, range: Range<u64>) {
        if self.lives.len() < 2 || range.is_empty() {
            return;
        }
        let lines = range.start >> self.line_bits..=(range.end - 1) >> self.line_bits;
        let few = lines.end() - lines.start() < SETS as u64 / 2;
        for table in self.tables.iter_mut().flatten() {
            let sets = if few { None } else { Some(0..table.len()) };
            let of_line = |line: u64| (line as usize & (SETS - 1)) * WAYS;
            let some = lines.clone().take(if few { SETS } else { 0 }).flat_map(|l| of_line(l)..of_line(l) + WAYS);
            for n in some.chain(sets.into_iter().flatten()) {
                if let Some(old) = table[n].take_if(|e| lines.contains(&e.line)) {
                    put(&mut self.lines, &old);
                }
            }
        }
        if few {
            for line in lines {
                if let Some(uses) = self.lines.remove(&line) {
                    self.judge(line, &uses);
                }
            }
        } else {
            let mut there: Vec<u64> = self.lines.keys().copied().filter(|line| lines.contains(line)).collect();
            there.sort_unstable();
            for line in there {
                let uses = self.lines.remove(&line).unwrap_or_default();
                self.judge(line, &uses);
            }
        }
    }

    /// A line has been used like this.
    fn judge(&mut self, line: u64, uses: &[Use]) {
        let moves = self.moves.remove(&line).unwrap_or_default();
        self.books.judge(line << self.line_bits, uses, &self.lives, &moves);
    }

    fn close_all(&mut self) {
        self.settle();
        let mut all: Vec<(u64, Vec<Use>)> = std::mem::take(&mut self.lines).into_iter().collect();
        all.sort_unstable_by_key(|(line, _)| *line);
        for (line, uses) in all {
            self.judge(line, &uses);
        }
    }

    /// All that was shared.
    #[must_use]
    pub fn found(mut self) -> Found {
        self.close_all();
        self.books.found(1 << self.line_bits, self.lives.len())
    }

    /// Tables are empty afterwards: what lies at addresses is asked for anew.
    pub fn settle(&mut self) {
        for old in self.tables.iter_mut().flatten().flat_map(|table| table.iter_mut()).filter_map(Option::take) {
            put(&mut self.lines, &old);
        }
    }
}

/// Adds what has left a table to the line.
fn put(lines: &mut FxHashMap<u64, Vec<Use>>, old: &Recent) {
    let uses = lines.entry(old.line).or_insert_with(|| Vec::with_capacity(1));
    let used = old.used;
    let same = |u: &&mut Use| (u.thread, u.object, u.start) == (used.thread, used.object, used.start);
    match uses.iter_mut().rev().find(same) {
        Some(sum) => {
            sum.read |= used.read;
            sum.written |= used.written;
            sum.reads += used.reads;
            sum.writes += used.writes;
            sum.last = used.last;
            used.sites.into_iter().filter(|site| *site != NO_SITE).for_each(|site| sum.site(site));
        }
        None => uses.push(used),
    }
}
