//! What is beyond the first-level caches, where it is more than one last level that replaces the line used longest ago: a
//! second level of each thread, any policy, inclusion or exclusion, and a prefetcher.
//!
//! It is asked for what missed a first-level cache, in the order of each thread. An access to several lines asks the first
//! of these levels for all of them, even if the first-level cache had one; the last level behind a second one is only asked
//! for those that this did not have. Whatever is asked for is loaded into every level that it came by. First-level caches are
//! not known here, so nothing is ever taken out of them: a last level that includes others tells which lines it gives up
//! ([`Beyond::each_left`]), if that is wanted.
//!
//! Invariants: with [`Inclusion::Inclusive`] every line of a second level is in the last one; with [`Inclusion::Exclusive`]
//! a line that a thread's second level got from the last one is not there any more, and a line that leaves a second level comes
//! to the last one, used or filled. A prefetch does to the levels what an access does, but it is told to nobody as one.

use std::fmt;
use std::ops::Range;

use crate::cache::Cache;
use crate::geometry::Geometry;
use crate::hierarchy::LastLevel;
use crate::policy::Policy;
use crate::prefetch::{Prefetch, Prefetcher};
use crate::slots::SlotLru;

/// What the last level holds of that which second levels hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inclusion {
    /// Whatever comes of it: levels do not invalidate each other's lines.
    #[default]
    None,
    /// All, and first levels, too: a line that leaves the last level leaves second levels.
    Inclusive,
    /// Only what second levels do not need any more: it is filled with the lines that leave them.
    Exclusive,
}

impl Inclusion {
    /// All, by name.
    pub const NAMES: &[&str] = &["none", "inclusive", "exclusive"];

    /// That of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::None, Self::Inclusive, Self::Exclusive].into_iter().find(|kind| Self::NAMES[*kind as usize] == name)
    }
}

impl fmt::Display for Inclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// The levels beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Each thread's second level, if it has one.
    pub second: Option<(Geometry, Policy)>,
    /// The last level, which all threads of a process share.
    pub last: (Geometry, Policy),
    /// What it holds of second levels.
    pub inclusion: Inclusion,
    /// What is loaded before it is asked for: into the second level, or the last one if there is none.
    pub prefetch: Prefetch,
}

/// Levels that make no sense together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Exclusion from a second level that is not there; or inclusion of one, where nobody counts what first levels would lose.
    NoSecond(Inclusion),
    /// The same with lines of different sizes, in bytes: of the second and of the last level.
    Lines(Inclusion, [u32; 2]),
    /// A last level that is smaller than one second level, in bytes, cannot include it.
    Smaller([u32; 2]),
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecond(inclusion) => write!(
                f,
                "--inclusion={inclusion} is between LL and L2, and there is no L2 (lines of I1 and D1 are replaced in the program \
                 itself, before LL has seen what it missed): add --L2"
            ),
            Self::Lines(inclusion, [second, last]) => write!(
                f,
                "--inclusion={inclusion} needs lines of one size in L2 and LL, and they have {second} and {last} bytes"
            ),
            Self::Smaller([second, last]) => {
                write!(
                    f,
                    "--inclusion=inclusive needs an LL that is not smaller than L2: {last} B, and L2 has {second} B"
                )
            }
        }
    }
}

impl std::error::Error for Clash {}

impl Levels {
    /// A last level alone that is [`crate::LastLevel`]: what everybody simulates.
    #[must_use]
    pub fn plain(&self) -> bool {
        let Self { second, last: (_, policy), inclusion, prefetch } = *self;
        second.is_none() && policy == Policy::Lru && inclusion == Inclusion::None && prefetch == Prefetch::None
    }

    /// Whether they can be simulated.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Clash> {
        let inclusion = self.inclusion;
        if inclusion == Inclusion::None {
            return Ok(());
        }
        if self.second.is_none() && inclusion == Inclusion::Inclusive {
            return Ok(());
        }
        let (second, last) = (self.second.ok_or(Clash::NoSecond(inclusion))?.0, self.last.0);
        if second.line() != last.line() {
            return Err(Clash::Lines(inclusion, [second.line(), last.line()]));
        }
        if inclusion == Inclusion::Inclusive && last.size() < second.size() {
            return Err(Clash::Smaller([second.size(), last.size()]));
        }
        Ok(())
    }
}

/// What had all lines of an access that missed its first level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Answer {
    /// The second level.
    Second = 0,
    /// The last level, with what the second one had.
    Last = 1,
    /// None.
    Memory = 2,
}

/// What an access asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The address of the instruction.
    pub instruction: u64,
    /// The first byte.
    pub addr: u64,
    /// Bytes, at least one.
    pub size: u32,
    /// Data, and not the instruction itself.
    pub data: bool,
}

/// Whatever can be asked for what a first level did not have: a last level alone, or the levels of this module.
pub trait Ask {
    /// Whether there is a second level.
    fn second(&self) -> bool;
    /// An access that is known to have missed its first level.
    fn ask(&mut self, request: Request) -> Answer;
    /// The addresses, in this process, of what a request for `addr` looks at first.
    fn looks_at(&self, addr: u64) -> [Option<usize>; 2];
    /// Tells which lines an inclusive last level has given up since this was asked last, by their addresses.
    #[inline(always)]
    fn each_left(&mut self, _: impl FnMut(Range<u64>)) {}
}

impl Ask for LastLevel {
    #[inline(always)]
    fn second(&self) -> bool {
        false
    }

    #[inline(always)]
    fn ask(&mut self, request: Request) -> Answer {
        if self.access(request.addr, request.size).missed_ll() { Answer::Memory } else { Answer::Last }
    }

    #[inline(always)]
    fn looks_at(&self, addr: u64) -> [Option<usize>; 2] {
        [Some(self.address(addr)), None]
    }
}

impl Ask for Beyond {
    #[inline(always)]
    fn second(&self) -> bool {
        self.levels.second.is_some()
    }

    #[inline(always)]
    fn ask(&mut self, request: Request) -> Answer {
        self.access(request)
    }

    /// In the second level, if there is one, and in the last.
    #[inline(always)]
    fn looks_at(&self, addr: u64) -> [Option<usize>; 2] {
        let at = |cache: &Cache| cache.address(addr >> cache.line_bits());
        [self.cores[self.at].second.as_ref().map(at), Some(at(&self.last))]
    }

    #[inline]
    fn each_left(&mut self, mut tell: impl FnMut(Range<u64>)) {
        let bits = self.last.line_bits();
        for line in self.left.drain(..) {
            tell(line << bits..(line << bits).wrapping_add(1 << bits));
        }
    }
}

/// What happens to a line of the last level, or of the thread's second one, for whoever keeps something about lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An access found it there.
    Hit(u64),
    /// It came from memory, for an access or before one.
    Loaded(u64),
    /// An access found it in the second level.
    SecondHit(u64),
    /// It came there, for an access or before one.
    SecondLoaded(u64),
}

/// What one thread has of its own.
#[derive(Clone, Debug)]
struct Core {
    thread: i32,
    second: Option<Cache>,
    prefetcher: Prefetcher,
}

/// The levels beyond the first of one process. See the module's description.
#[derive(Clone, Debug)]
pub struct Beyond {
    levels: Levels,
    cores: Vec<Core>,
    /// Which of them is asked.
    at: usize,
    last: Cache,
    /// Lines that the last level has given up, if somebody wants to know.
    left: Vec<u64>,
    tells_left: bool,
}

impl Beyond {
    /// Empty ones. They must pass [`Levels::check`].
    #[must_use]
    pub fn new(levels: &Levels) -> Self {
        let (shape, policy) = levels.last;
        let last = Cache::new(shape, policy);
        let mut new = Self { levels: *levels, cores: Vec::new(), at: 0, last, left: Vec::new(), tells_left: false };
        new.cores.push(new.core(0));
        new
    }

    /// Keeps which lines an inclusive last level gives up, for [`Ask::each_left`], which has to be asked after each access.
    pub fn tell_left(&mut self) {
        self.tells_left = self.levels.inclusion == Inclusion::Inclusive;
    }

    /// The last level, which does not have a line, gets it. Others lose the one that goes, if it includes them.
    #[inline]
    fn fill_last(&mut self, line: u64) {
        if let Some(gone) = self.last.fill(line)
            && self.levels.inclusion == Inclusion::Inclusive
        {
            self.cores.iter_mut().filter_map(|core| core.second.as_mut()).for_each(|second| {
                second.remove(gone);
            });
            if self.tells_left {
                self.left.push(gone);
            }
        }
    }

    fn core(&self, thread: i32) -> Core {
        let second = self.levels.second.map(|(shape, policy)| Cache::new(shape, policy));
        let line_bits = second.as_ref().unwrap_or(&self.last).line_bits();
        Core { thread, second, prefetcher: Prefetcher::new(self.levels.prefetch, line_bits) }
    }

    /// From here on accesses are those of this thread, which has an empty second level if it is new.
    pub fn run(&mut self, thread: i32) {
        if self.cores[self.at].thread != thread {
            self.at = self.cores.iter().position(|core| core.thread == thread).unwrap_or(self.cores.len());
            if self.at == self.cores.len() {
                self.cores.push(self.core(thread));
            }
        }
    }

    /// The thread that accesses are of.
    #[must_use]
    pub fn running(&self) -> i32 {
        self.cores[self.at].thread
    }

    /// What the thread has of its own is gone.
    pub fn ended(&mut self, thread: i32) {
        self.cores.retain(|core| core.thread != thread);
        if self.cores.is_empty() {
            self.cores.push(self.core(0));
        }
        self.at = 0;
    }

    /// A copy of the process goes on with one thread, `child`, which has what `thread` has here.
    pub fn forked(&mut self, thread: i32, child: i32) {
        self.cores.retain(|core| core.thread == thread);
        self.cores.iter_mut().for_each(|core| core.thread = child);
        if self.cores.is_empty() {
            self.cores.push(self.core(child));
        }
        self.at = 0;
    }

    /// The addresses, in this process, of most of what requests look at.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        self.last.addresses()
    }

    /// An access that is known to have missed its first level.
    #[inline]
    pub fn access(&mut self, request: Request) -> Answer {
        self.observed(request, &mut |_| ())
    }

    /// As [`Beyond::access`], and `seen` is told what becomes of lines of the last level.
    #[inline]
    pub fn observed(&mut self, request: Request, seen: &mut impl FnMut(Seen)) -> Answer {
        let Request { instruction, addr, size, data } = request;
        let answer = match &self.cores[self.at].second {
            None => match self.ask_last(addr, size, seen) {
                true => Answer::Last,
                false => Answer::Memory,
            },
            Some(second) => {
                let line_bits = second.line_bits();
                let mut answer = Answer::Second;
                SlotLru::each_line(line_bits, addr, size, |line, first, last| {
                    let none = self.levels.inclusion == Inclusion::None;
                    let second = self.own_second();
                    let here = second.is_some_and(|second| if none { second.access(line) } else { second.touch(line) });
                    seen(if here { Seen::SecondHit(line) } else { Seen::SecondLoaded(line) });
                    if !here {
                        let had = self.load(line, (line << line_bits) + u64::from(first), last - first + 1, seen);
                        answer = answer.max(if had { Answer::Last } else { Answer::Memory });
                    }
                });
                answer
            }
        };
        if self.levels.prefetch != Prefetch::None {
            let guesses = self.cores[self.at].prefetcher.follow(instruction, addr, data);
            guesses.into_iter().flatten().for_each(|line| self.prefetch(line, seen));
        }
        answer
    }

    #[inline]
    fn own_second(&mut self) -> Option<&mut Cache> {
        self.cores[self.at].second.as_mut()
    }

    /// Brings a line, by its number there, to the level that is prefetched into.
    fn prefetch(&mut self, line: u64, seen: &mut impl FnMut(Seen)) {
        let mut quietly = |what| {
            if let Seen::Loaded(_) | Seen::SecondLoaded(_) = what {
                seen(what);
            }
        };
        match &self.cores[self.at].second {
            None if self.last.has(line) => {}
            None => {
                self.fill_last(line);
                quietly(Seen::Loaded(line));
            }
            Some(second) if second.has(line) => {}
            Some(second) => {
                let line_bits = second.line_bits();
                quietly(Seen::SecondLoaded(line));
                if self.levels.inclusion == Inclusion::None
                    && let Some(second) = self.own_second()
                {
                    second.fill(line);
                }
                self.load(line, line << line_bits, 1 << line_bits, &mut quietly);
            }
        }
    }

    /// The second level, which does not have `line`, gets it; where levels do not know of each other, it has it by now. `size` bytes of
    /// it at `addr` are asked for. Whether the last level had them.
    #[inline]
    fn load(&mut self, line: u64, addr: u64, size: u32, seen: &mut impl FnMut(Seen)) -> bool {
        // Where levels know of each other, lines of both have the same size, and so the same numbers.
        let had = match self.levels.inclusion {
            Inclusion::None => return self.ask_last(addr, size, seen),
            Inclusion::Inclusive => {
                let had = self.last.touch(line);
                if !had {
                    self.fill_last(line);
                }
                had
            }
            Inclusion::Exclusive => self.last.remove(line),
        };
        seen(if had { Seen::Hit(line) } else { Seen::Loaded(line) });
        let left = self.own_second().and_then(|second| second.fill(line));
        if let Some(left) = left.filter(|_| self.levels.inclusion == Inclusion::Exclusive)
            && !self.last.touch(left)
        {
            self.last.fill(left);
        }
        had
    }

    /// Asks the last level for so many bytes, which it has or gets. Whether it had all.
    #[inline]
    fn ask_last(&mut self, addr: u64, size: u32, seen: &mut impl FnMut(Seen)) -> bool {
        let mut had = true;
        let inclusive = self.levels.inclusion == Inclusion::Inclusive;
        SlotLru::each_line(self.last.line_bits(), addr, size, |line, _, _| {
            let here = if inclusive { self.last.touch(line) } else { self.last.access(line) };
            if inclusive && !here {
                self.fill_last(line);
            }
            if here {
                seen(Seen::Hit(line));
            } else {
                had = false;
                seen(Seen::Loaded(line));
            }
        });
        had
    }
}
