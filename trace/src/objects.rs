//! Blocks of memory that allocators hand out: which functions do that, what a call of one asks for, and what it comes to when it
//! returns. Knows of registers and of nothing else of the guest.
//!
//! A call is known by where it returns to and by the stack pointer there, since an allocator may end with a jump to another one.
//! Of calls within one another the outermost counts: who it returns to has got the block. Calls that never return (an exception,
//! `longjmp`) are forgotten when the stack has gone back behind them. Nothing is kept of those that hand nothing out. Who records calls
//! sees to that ([`outermost`] and emitted code); what is recorded of a thread is one call after the other.

use std::collections::HashSet;
use std::sync::Arc;

use crate::follow::{FRAME_WORDS, depth_told};
use crate::{
    ALLOCATOR_CALLED, BYTES_USED, BYTES_WORDS, CODE_BROUGHT, CODE_BROUGHT_WORDS, CONTEXT_SITE, CONTEXT_WORDS,
    LINE_BROUGHT, LINE_LOADED, LINE_MOVED, LINE_REUSED, LINE_USED, LINE_WORDS, LINES_REPLACED, LineBrought,
    MOVED_WORDS, NOT_COUNTED, PAGE_MISSED, PAGE_WORDS, REPLACED_WORDS, USED_WORDS, object_words,
};

/// What a function does with blocks of memory, by its arguments. All return the address of a block, or 0, if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// `malloc(size)`, and whatever has the bytes as its first argument.
    Allocate,
    /// `calloc(count, size)`.
    AllocateArray,
    /// `memalign(alignment, size)`.
    AllocateAligned,
    /// `posix_memalign(&address, alignment, size)`; returns 0 if the address is there.
    AllocateTo,
    /// `realloc(address, size)`.
    Reallocate,
    /// `reallocarray(address, count, size)`.
    ReallocateArray,
    /// `free(address)`, and whatever has the address as its first argument. Returns nothing.
    Free,
    /// No allocator, but what leaves calls that never return then, as `longjmp` does and whatever raises exceptions.
    Leave,
    /// One that the user has named.
    Named {
        /// Which argument is the bytes, or those of an element: from 0 on, at most [`Self::ARGUMENTS`].
        size: u8,
        /// Which one is how many elements there are, if it is an array.
        count: Option<u8>,
    },
}

/// The number in records of the first of [`Allocator::Named`].
const NAMED: u32 = 0x100;

/// The registers with the first three arguments.
pub type Arguments = [u64; 3];

impl Allocator {
    /// As many arguments are known.
    pub const ARGUMENTS: u8 = 3;

    /// Those that are known by themselves, by their numbers in records.
    const ALL: [Self; 8] = [
        Self::Allocate,
        Self::AllocateArray,
        Self::AllocateAligned,
        Self::AllocateTo,
        Self::Reallocate,
        Self::ReallocateArray,
        Self::Free,
        Self::Leave,
    ];

    /// Its number in a record.
    #[must_use]
    pub const fn word(self) -> u32 {
        match self {
            Self::Allocate => 0,
            Self::AllocateArray => 1,
            Self::AllocateAligned => 2,
            Self::AllocateTo => 3,
            Self::Reallocate => 4,
            Self::ReallocateArray => 5,
            Self::Free => 6,
            Self::Leave => 7,
            Self::Named { size, count: None } => NAMED + size as u32,
            Self::Named { size, count: Some(count) } => NAMED + size as u32 + ((count as u32 + 1) << 8),
        }
    }

    /// The one of this number.
    #[must_use]
    pub fn of_word(word: u32) -> Option<Self> {
        let Some(named) = word.checked_sub(NAMED) else { return Self::ALL.get(word as usize).copied() };
        let [size, count, 0, 0] = named.to_le_bytes() else { return None };
        let known = size < Self::ARGUMENTS && count <= Self::ARGUMENTS;
        known.then_some(Self::Named { size, count: count.checked_sub(1) })
    }

    /// Whether it hands out blocks.
    #[must_use]
    pub const fn hands_out(self) -> bool {
        !matches!(self, Self::Free | Self::Leave)
    }

    /// The bytes that are asked for.
    fn size(self, arguments: Arguments) -> u64 {
        let [a, b, c] = arguments;
        let argument = |n: u8| arguments.get(usize::from(n)).copied().unwrap_or(0);
        match self {
            Self::Named { size, count } => argument(size).saturating_mul(count.map_or(1, argument)),
            Self::Allocate => a,
            Self::AllocateArray => a.saturating_mul(b),
            Self::AllocateAligned | Self::Reallocate => b,
            Self::AllocateTo => c,
            Self::ReallocateArray => b.saturating_mul(c),
            Self::Free | Self::Leave => 0,
        }
    }

    /// The block that may not be there any more when the call returns.
    fn old(self, [a, ..]: Arguments) -> Option<u64> {
        matches!(self, Self::Reallocate | Self::ReallocateArray).then_some(a).filter(|a| *a != 0)
    }
}

/// A call of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    allocator: Allocator,
    arguments: Arguments,
    returns_to: u64,
}

/// Whether a call whose return address lies at `sp` is the outermost one, if that of the one before it, which has not returned, lies at
/// `frame` (0: there is none).
#[must_use]
pub fn outermost(frame: u64, sp: u64) -> bool {
    frame <= sp
}

/// Whether a call whose return address lay at `frame` (0: there is none) has returned if the stack pointer is `sp` now.
#[must_use]
pub fn has_returned(frame: u64, sp: u64) -> bool {
    frame != 0 && frame.wrapping_add(8) == sp
}

/// What a call of an allocator does to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The block at this address may be gone, until the call returns. Until another block lies there, it still does.
    InQuestion(u64),
    /// The block that was in question at this address is gone.
    Moved(u64),
    /// The block that was in question at this address is still there.
    Kept(u64),
    /// A block has been handed out. One that lies there already is gone.
    Born {
        /// Its address.
        address: u64,
        /// Its bytes, as they were asked for.
        size: u64,
        /// Where the call returns to.
        site: u64,
        /// The module that this is in.
        module: u32,
    },
}

/// What a function that takes a block back, or a request of the program, says of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The block at this address has been taken back.
    Freed(u64),
    /// A part of the program's memory is a block of its own.
    Carved {
        /// Its address.
        address: u64,
        /// Its bytes.
        size: u64,
        /// The address behind the request.
        site: u64,
        /// The module that this is in.
        module: u32,
        /// The pool that it is of, or 0.
        pool: u64,
    },
    /// A block has another size now.
    Resized {
        /// Its address.
        address: u64,
        /// Its bytes.
        size: u64,
    },
    /// The block which was carved out at this address is taken back.
    GivenBack(u64),
    /// All blocks of this pool are taken back.
    PoolGone(u64),
    /// Blocks of a pool, or parts of them, are taken back which lie outside of a place.
    PoolTrimmed {
        /// The pool.
        pool: u64,
        /// The address of the place.
        address: u64,
        /// Its bytes.
        size: u64,
    },
    /// The blocks of a pool are of another one now.
    PoolMoved {
        /// The pool.
        from: u64,
        /// The other one.
        to: u64,
    },
}

/// Those of these records that are about objects, as what is not counted. `words_of` says how many words one of a site has, its number included.
pub fn alone(records: &[u32], words_of: impl Fn(u32) -> Option<usize>) -> Vec<u32> {
    let (mut rest, mut objects) = (records, Vec::new());
    while let Some(&first) = rest.first() {
        let about = object_words(first);
        let words = about.or(match first {
            CONTEXT_SITE => Some(CONTEXT_WORDS),
            told if depth_told(told).is_some() => Some(FRAME_WORDS),
            LINE_LOADED | LINE_REUSED => Some(LINE_WORDS),
            PAGE_MISSED => Some(PAGE_WORDS),
            LINE_BROUGHT => Some(LineBrought::WORDS),
            CODE_BROUGHT => Some(CODE_BROUGHT_WORDS),
            BYTES_USED => Some(BYTES_WORDS),
            LINE_MOVED => Some(MOVED_WORDS),
            LINES_REPLACED => Some(REPLACED_WORDS),
            LINE_USED => Some(USED_WORDS),
            site => words_of(site),
        });
        let Some((record, behind)) = words.and_then(|n| rest.split_at_checked(n)) else { break };
        if about.is_some() {
            let at = objects.len();
            objects.extend_from_slice(record);
            if first == ALLOCATOR_CALLED {
                objects[at + 1] |= NOT_COUNTED;
            }
        }
        rest = behind;
    }
    objects
}

/// The call of an allocator that a thread is in.
#[derive(Clone, Debug, Default)]
pub struct Allocating(Option<Call>);

impl Allocating {
    /// The thread calls an allocator, which returns to `returns_to`: in place of what it was in. Returns what happens at once.
    pub fn begins(&mut self, allocator: Allocator, arguments: Arguments, returns_to: u64) -> Option<Event> {
        self.0 = Some(Call { allocator, arguments, returns_to });
        allocator.old(arguments).map(Event::InQuestion)
    }

    /// The call has returned to `pc`, which is in `module`, with a block at `address` (0: with none). Returns what happens, in
    /// order.
    pub fn returns(&mut self, pc: u64, module: u32, address: u64) -> [Option<Event>; 2] {
        let Some(call) = self.0.take_if(|call| call.returns_to == pc) else { return [None; 2] };
        let size = call.allocator.size(call.arguments);
        let old = call.allocator.old(call.arguments).map(|old| match address {
            // (With 0 bytes it has been taken back.)
            0 if size > 0 => Event::Kept(old),
            _ => Event::Moved(old),
        });
        let born = Event::Born { address, size, site: call.returns_to, module };
        [old, (address != 0).then_some(born)]
    }
}

/// What is to be watched at an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// Calls of allocators return there.
    pub returns: bool,
    /// An allocator begins there.
    pub begins: Option<Allocator>,
}

/// The code that the engine is told of whenever it runs.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Where allocators begin, by module, in ascending order.
    begins: Vec<Arc<[(u64, Allocator)]>>,
    /// Where calls of them return to. (It does no harm if that is other code by now: no call returns to it.)
    returns: HashSet<u64>,
}

impl Watched {
    /// Modules that are known.
    pub fn modules(&self) -> usize {
        self.begins.len()
    }

    /// The next module: where its allocators begin, in ascending order.
    pub fn add_module(&mut self, list: Vec<(u64, Allocator)>) {
        self.begins.push(list.into());
    }

    /// Whether that is news.
    pub fn add_return(&mut self, pc: u64) -> bool {
        self.returns.insert(pc)
    }

    /// The allocator that begins at `pc`, which is in `module`.
    pub fn allocator(&self, module: u32, pc: u64) -> Option<Allocator> {
        let list = self.begins.get(module as usize)?;
        list.binary_search_by_key(&pc, |(at, _)| *at).ok().map(|n| list[n].1)
    }

    /// What there is at `pc`, which is in `module`, if it is such code.
    pub fn at(&self, module: u32, pc: u64) -> Option<Watch> {
        let watch = Watch { returns: self.returns.contains(&pc), begins: self.allocator(module, pc) };
        (watch != Watch::default()).then_some(watch)
    }

    /// The first place in `module`, at `from` or behind it, where an allocator begins.
    pub fn next(&self, module: u32, from: u64) -> Option<u64> {
        let list = self.begins.get(module as usize)?;
        list.get(list.partition_point(|(at, _)| *at < from)).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: u64 = 0x4000;

    fn begin(calls: &mut Allocating, allocator: Allocator, arguments: Arguments) -> Option<Event> {
        calls.begins(allocator, arguments, SITE)
    }

    fn end(calls: &mut Allocating, address: u64) -> [Option<Event>; 2] {
        calls.returns(SITE, 7, address)
    }

    fn born(address: u64, size: u64) -> Option<Event> {
        Some(Event::Born { address, size, site: SITE, module: 7 })
    }

    #[test]
    fn each_allocator_says_where_its_block_is_and_how_large() {
        let mut calls = Allocating::default();
        for (allocator, arguments, size) in [
            (Allocator::Allocate, [24, 1, 2], 24),
            (Allocator::AllocateArray, [3, 5, 2], 15),
            (Allocator::AllocateArray, [u64::MAX, 5, 2], u64::MAX),
            (Allocator::AllocateAligned, [64, 100, 2], 100),
            (Allocator::AllocateTo, [0x900, 64, 10], 10),
            (Allocator::Named { size: 2, count: None }, [1, 5, 10], 10),
            (Allocator::Named { size: 1, count: Some(0) }, [3, 5, 10], 15),
        ] {
            assert_eq!(Allocator::of_word(allocator.word()), Some(allocator));
            assert_eq!(begin(&mut calls, allocator, arguments), None);
            assert_eq!(end(&mut calls, 0x140), [None, born(0x140, size)], "{allocator:?}");
            assert_eq!(end(&mut calls, 0x140), [None, None], "it has returned");
            begin(&mut calls, allocator, arguments);
            assert_eq!(end(&mut calls, 0), [None, None], "{allocator:?}");
        }
        for word in [Allocator::Leave.word() + 1, NAMED + 3, NAMED + 0x400, NAMED + 0x1_0000, u32::MAX] {
            assert_eq!(Allocator::of_word(word), None, "{word:#x}");
        }
        let all = Allocator::ALL.map(|allocator| Allocator::of_word(allocator.word()));
        assert_eq!(all, Allocator::ALL.map(Some));
    }

    #[test]
    fn blocks_whose_size_is_changed_are_in_question_until_the_call_returns() {
        let mut calls = Allocating::default();
        let again = [0x100, 50, 0];
        assert_eq!(begin(&mut calls, Allocator::Reallocate, again), Some(Event::InQuestion(0x100)));
        assert_eq!(end(&mut calls, 0x200), [Some(Event::Moved(0x100)), born(0x200, 50)]);
        begin(&mut calls, Allocator::Reallocate, again);
        assert_eq!(end(&mut calls, 0), [Some(Event::Kept(0x100)), None], "no memory");
        begin(&mut calls, Allocator::Reallocate, [0x100, 0, 0]);
        assert_eq!(end(&mut calls, 0), [Some(Event::Moved(0x100)), None], "taken back");
        assert_eq!(begin(&mut calls, Allocator::ReallocateArray, [0, 4, 6]), None);
        assert_eq!(end(&mut calls, 0x300), [None, born(0x300, 24)]);
    }

    #[test]
    fn a_call_takes_the_place_of_one_that_never_returned() {
        let mut calls = Allocating::default();
        begin(&mut calls, Allocator::Allocate, [10, 0, 0]);
        calls.begins(Allocator::Allocate, [20, 0, 0], 0x5000);
        assert_eq!(end(&mut calls, 0x100), [None, None], "elsewhere");
        let second = Event::Born { address: 0x200, size: 20, site: 0x5000, module: 7 };
        assert_eq!(calls.returns(0x5000, 7, 0x200), [None, Some(second)]);
    }

    #[test]
    fn of_calls_within_one_another_the_outermost_counts() {
        assert!(outermost(0, 0x800) && !outermost(0x800, 0x700), "within");
        assert!(outermost(0x800, 0x800), "a jump from one allocator to another");
        assert!(outermost(0x700, 0x800), "the stack has gone back");
        assert!(has_returned(0x800, 0x808));
        assert!(!has_returned(0x800, 0x708) && !has_returned(0x800, 0x908) && !has_returned(0, 8));
    }

    #[test]
    fn objects_are_found_among_other_records() {
        let died = [crate::OBJECT_DIED, 1, 2, crate::OBJECT_FREED];
        let records = [&[CONTEXT_SITE, 5, 5][..], &died, &[3, 7, 7], &[LINE_LOADED, 1, 1, 1], &died].concat();
        let words_of = |site| (site == 3).then_some(3);
        assert_eq!(alone(&records, words_of), [died, died].concat());
        assert_eq!(alone(&records[..records.len() - 1], words_of), died, "not whole");
        assert_eq!(alone(&[4, 4], words_of), [], "not known");
        let called = [ALLOCATOR_CALLED, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(alone(&called, words_of)[..2], [ALLOCATOR_CALLED, 3 | NOT_COUNTED], "nothing is counted there");
    }

    #[test]
    fn what_is_watched_is_known_by_module_and_address() {
        let mut watched = Watched::default();
        watched.add_module(vec![(0x10, Allocator::Allocate), (0x30, Allocator::Free)]);
        assert!(watched.add_return(0x30) && !watched.add_return(0x30));
        assert_eq!(watched.at(0, 0x10), Some(Watch { returns: false, begins: Some(Allocator::Allocate) }));
        assert_eq!(watched.at(0, 0x30), Some(Watch { returns: true, begins: Some(Allocator::Free) }));
        assert_eq!((watched.at(0, 0x20), watched.at(1, 0x10)), (None, None));
        assert_eq!((watched.next(0, 0x11), watched.next(0, 0x31)), (Some(0x30), None));
    }
}
