//! Blocks of memory that allocators hand out: which functions do that, what a call of one asks for, and what it comes to when it
//! returns. Knows of registers and of nothing else of the guest.
//!
//! A call is known by where it returns to and by the stack pointer there, since an allocator may end with a jump to another one.
//! Of calls within one another the outermost counts: who it returns to has got the block. Calls that never return (an exception,
//! `longjmp`) are forgotten when the stack has gone back behind them. Nothing is kept of those that hand nothing out.

use std::collections::HashSet;
use std::sync::Arc;

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
}

/// The registers with the first three arguments.
pub type Arguments = [u64; 3];

impl Allocator {
    /// The bytes that are asked for.
    fn size(self, [a, b, c]: Arguments) -> u64 {
        match self {
            Self::Allocate => a,
            Self::AllocateArray => a.saturating_mul(b),
            Self::AllocateAligned | Self::Reallocate => b,
            Self::AllocateTo => c,
            Self::ReallocateArray => b.saturating_mul(c),
            Self::Free => 0,
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
    /// Where its return address lies.
    sp: u64,
    returns_to: u64,
    module: u32,
}

/// What happens to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The block at this address has been taken back.
    Freed(u64),
    /// The block at this address may be gone, until the call returns.
    InQuestion(u64),
    /// The block that was in question at this address is gone.
    Moved(u64),
    /// The block that was in question at this address is still there.
    Kept(u64),
    /// A block has been handed out.
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
    /// The program says that a part of its memory is a block of its own.
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
    /// The program says that a block has another size now.
    Resized {
        /// Its address.
        address: u64,
        /// Its bytes.
        size: u64,
    },
    /// The program says that the block which was carved out at this address is taken back.
    GivenBack(u64),
    /// The program says that all blocks of this pool are taken back.
    PoolGone(u64),
}

/// The calls of allocators that a thread is in, outermost first.
#[derive(Clone, Debug, Default)]
pub struct Allocating(Vec<Call>);

impl Allocating {
    /// The thread calls an allocator: its return address `returns_to`, which is in `module`, lies at `sp`. Returns what happens at
    /// once.
    pub fn begins(
        &mut self,
        allocator: Allocator,
        arguments: Arguments,
        sp: u64,
        returns_to: u64,
        module: u32,
    ) -> Option<Event> {
        self.0.retain(|call| call.sp > sp);
        if allocator == Allocator::Free {
            return Some(arguments[0]).filter(|a| *a != 0).map(Event::Freed);
        }
        if !self.0.is_empty() {
            return None;
        }
        self.0.push(Call { allocator, arguments, sp, returns_to, module });
        allocator.old(arguments).map(Event::InQuestion)
    }

    /// The thread is at `pc`, where calls of allocators return to, with this stack pointer and result. `read` reads a word of its
    /// memory. Returns what happens, in order.
    pub fn returns(&mut self, pc: u64, sp: u64, result: u64, read: impl Fn(u64) -> Option<u64>) -> [Option<Event>; 2] {
        // The return address has been taken off the stack.
        self.0.retain(|call| call.sp.wrapping_add(8) >= sp);
        let Some(call) = self.0.pop_if(|call| call.sp.wrapping_add(8) == sp && call.returns_to == pc) else {
            return [None; 2];
        };
        let size = call.allocator.size(call.arguments);
        let address = match call.allocator {
            Allocator::AllocateTo if result == 0 => read(call.arguments[0]).unwrap_or(0),
            Allocator::AllocateTo => 0,
            _ => result,
        };
        let old = call.allocator.old(call.arguments).map(|old| match address {
            // (With 0 bytes it has been taken back.)
            0 if size > 0 => Event::Kept(old),
            _ => Event::Moved(old),
        });
        let born = Event::Born { address, size, site: call.returns_to, module: call.module };
        [old, (address != 0).then_some(born)]
    }
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

    /// Whether `pc`, which is in `module`, is such code.
    pub fn is(&self, module: u32, pc: u64) -> bool {
        self.returns.contains(&pc) || self.allocator(module, pc).is_some()
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

    fn begin(calls: &mut Allocating, allocator: Allocator, arguments: Arguments, sp: u64) -> Option<Event> {
        calls.begins(allocator, arguments, sp, SITE, 7)
    }

    fn end(calls: &mut Allocating, sp: u64, result: u64) -> [Option<Event>; 2] {
        calls.returns(SITE, sp + 8, result, |at| (at == 0x900).then_some(0x7777))
    }

    fn born(address: u64, size: u64) -> Option<Event> {
        Some(Event::Born { address, size, site: SITE, module: 7 })
    }

    #[test]
    fn each_allocator_says_where_its_block_is_and_how_large() {
        let mut calls = Allocating::default();
        for (allocator, arguments, result, address, size) in [
            (Allocator::Allocate, [24, 1, 2], 0x100, 0x100, 24),
            (Allocator::AllocateArray, [3, 5, 2], 0x100, 0x100, 15),
            (Allocator::AllocateArray, [u64::MAX, 5, 2], 0x100, 0x100, u64::MAX),
            (Allocator::AllocateAligned, [64, 100, 2], 0x140, 0x140, 100),
            (Allocator::AllocateTo, [0x900, 64, 10], 0, 0x7777, 10),
        ] {
            assert_eq!(begin(&mut calls, allocator, arguments, 0x800), None);
            assert_eq!(end(&mut calls, 0x800, result), [None, born(address, size)], "{allocator:?}");
        }
        for (allocator, result) in [(Allocator::Allocate, 0), (Allocator::AllocateTo, 12)] {
            assert_eq!(begin(&mut calls, allocator, [0x900, 8, 8], 0x800), None);
            assert_eq!(end(&mut calls, 0x800, result), [None, None], "{allocator:?}");
        }
    }

    #[test]
    fn blocks_whose_size_is_changed_are_in_question_until_the_call_returns() {
        let mut calls = Allocating::default();
        let again = [0x100, 50, 0];
        assert_eq!(begin(&mut calls, Allocator::Reallocate, again, 0x800), Some(Event::InQuestion(0x100)));
        assert_eq!(end(&mut calls, 0x800, 0x200), [Some(Event::Moved(0x100)), born(0x200, 50)]);
        begin(&mut calls, Allocator::Reallocate, again, 0x800);
        assert_eq!(end(&mut calls, 0x800, 0), [Some(Event::Kept(0x100)), None], "no memory");
        begin(&mut calls, Allocator::Reallocate, [0x100, 0, 0], 0x800);
        assert_eq!(end(&mut calls, 0x800, 0), [Some(Event::Moved(0x100)), None], "taken back");
        assert_eq!(begin(&mut calls, Allocator::ReallocateArray, [0, 4, 6], 0x800), None);
        assert_eq!(end(&mut calls, 0x800, 0x300), [None, born(0x300, 24)]);
    }

    #[test]
    fn of_calls_within_one_another_the_outermost_counts() {
        let mut calls = Allocating::default();
        begin(&mut calls, Allocator::Allocate, [10, 0, 0], 0x800);
        assert_eq!(begin(&mut calls, Allocator::Allocate, [99, 0, 0], 0x700), None);
        assert_eq!(end(&mut calls, 0x700, 0x500), [None, None]);
        assert_eq!(begin(&mut calls, Allocator::Free, [0x500, 0, 0], 0x700), Some(Event::Freed(0x500)));
        assert_eq!(end(&mut calls, 0x800, 0x100), [None, born(0x100, 10)]);
        assert_eq!(begin(&mut calls, Allocator::Free, [0x100, 0, 0], 0x700), Some(Event::Freed(0x100)));
        assert_eq!(begin(&mut calls, Allocator::Free, [0, 0, 0], 0x700), None);
    }

    #[test]
    fn jumps_from_one_allocator_to_another_are_one_call() {
        let mut calls = Allocating::default();
        begin(&mut calls, Allocator::AllocateArray, [10, 4, 0], 0x800);
        begin(&mut calls, Allocator::Allocate, [40, 4, 0], 0x800);
        assert_eq!(end(&mut calls, 0x800, 0x100), [None, born(0x100, 40)]);
        assert_eq!(end(&mut calls, 0x800, 0x100), [None, None]);
    }

    #[test]
    fn calls_that_never_return_are_forgotten() {
        let mut calls = Allocating::default();
        begin(&mut calls, Allocator::Allocate, [10, 0, 0], 0x700);
        assert_eq!(begin(&mut calls, Allocator::Allocate, [20, 0, 0], 0x800), None);
        assert_eq!(end(&mut calls, 0x800, 0x100), [None, born(0x100, 20)]);
        begin(&mut calls, Allocator::Allocate, [10, 0, 0], 0x700);
        assert_eq!(end(&mut calls, 0x800, 0x100), [None, None], "of another call");
        assert_eq!(end(&mut calls, 0x700, 0x100), [None, None], "gone");
    }
}
