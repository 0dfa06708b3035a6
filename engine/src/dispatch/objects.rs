//! Calls of allocators, where emitted code stops at them (`grind_codegen`'s `allocators`): what they do is recorded behind what the
//! thread has missed before. What the program says of blocks by requests is recorded in the same way.
//!
//! With several threads every call stops, since the order among them counts: who has been handed a block may use it on another thread. So what all
//! other threads have recorded is handed over first, while they run on. That is enough: before this thread goes on, nobody
//! can have got the block, and who has used one before it was taken back has recorded that before this thread could come to know.
//! (Stores are seen in order, and a record is there before the word that says so.)

use std::ops::Range;

use grind_client_requests::Request;
use grind_code_cache::CodeCache;
use grind_guest::process::Process;
use grind_guest::slots::SlotId;
use grind_layout::SlotWord;
use grind_ptrace::Stopped;
use grind_ptrace::maps;
use grind_trace::objects::{Allocator, Said, alone, has_returned, outermost};
use grind_trace::{
    ALLOCATOR_CALLED, ALLOCATOR_CALLER, ALLOCATOR_RETURNED, CALLED_WORDS, CARVED_WORDS, LineReplaced, NOT_COUNTED,
    OBJECT_CARVED, OBJECT_DIED, OBJECT_FREED, OBJECT_GIVEN_BACK, OBJECT_POOL_GONE, OBJECT_POOL_MOVED,
    OBJECT_POOL_TRIMMED, OBJECT_RESIZED, SiteKind, object_words,
};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};

use super::Dispatcher;
use super::announce::announce;

/// The kernel leaves at least so much room for the stack of a process.
const ROOM: u64 = 128 << 20;

/// Where the stack of `t`, a thread that is about to begin, may grow to: for the first one of an image what the
/// kernel keeps free for it, for others the mapping, which ends where the thread begins.
pub(super) fn stack(t: &Stopped) -> Option<Range<u64>> {
    let sp = t.regs().ok()?.rsp;
    let regions = maps::read(t.tid()).ok()?;
    let region = regions.iter().find(|r| (r.start..r.end).contains(&sp.wrapping_sub(1)))?;
    Some(match region.name.as_slice() {
        b"[stack]" => region.start.min(region.end.saturating_sub(ROOM))..region.end,
        _ => region.start..sp,
    })
}

/// What a request with these arguments says of blocks, in order. `site` is the address behind it, in `module`.
fn said(request: Request, [a, b, c, d, _]: [u64; 5], site: GuestAddr, module: u32) -> [Option<Said>; 2] {
    let site = site.0;
    let carved = |pool, address, size| Some(Said::Carved { address, size, site, module, pool });
    match request {
        Request::MalloclikeBlock => [carved(0, a, b), None],
        Request::FreelikeBlock => [Some(Said::GivenBack(a)), None],
        Request::ResizeinplaceBlock => [Some(Said::Resized { address: a, size: c }), None],
        Request::MempoolAlloc => [carved(a, b, c), None],
        Request::MempoolFree => [Some(Said::GivenBack(b)), None],
        Request::MempoolChange => [Some(Said::GivenBack(b)), carved(a, c, d)],
        Request::DestroyMempool => [Some(Said::PoolGone(a)), None],
        Request::MempoolTrim => [Some(Said::PoolTrimmed { pool: a, address: b, size: c }), None],
        Request::MoveMempool => [Some(Said::PoolMoved { from: a, to: b }), None],
        _ => [None; 2],
    }
}

/// What these records, which code of `code_cache` has made, say of objects.
fn objects_of(code_cache: &CodeCache, records: &[u32]) -> Vec<u32> {
    let uses = code_cache.trace.settings.keeps_uses();
    let words = |kind| match kind {
        SiteKind::Read(_) | SiteKind::Write(_) | SiteKind::Modify(_) | SiteKind::Sized { .. } if uses => {
            LineReplaced::WORDS
        }
        kind => kind.words(),
    };
    alone(records, |site| code_cache.trans.trace_sites.get(site as usize).map(|site| words(site.kind)))
}

fn words(record: &mut Vec<u32>, all: &[u64]) {
    record.extend(all.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]));
}

impl Dispatcher<'_> {
    /// `t` is about to run watched code at `pc`, which emitted code has left to the engine: a call of an allocator may be returning
    /// there, or else begins. Does what that code does.
    pub(super) fn watched_code(&mut self, t: &Stopped, pc: GuestAddr, returns: bool) {
        let tid = t.tid();
        let Ok(regs) = t.regs() else { return };
        let Some(slot) = self.threads.get(&tid).map(|th| th.slot) else { return };
        let depth = self.settings.trace.alloc_depth;
        let Some(p) = self.process_of_mut(tid) else { return };
        let (pool, code_cache) = (p.pool.clone(), p.code_cache.clone());
        let frame = pool.borrow().slot_word(slot, SlotWord::AllocatorFrame);
        let mut record = Vec::with_capacity(CALLED_WORDS);
        let set = |word, value| pool.borrow().set_slot_word(slot, word, value);
        if returns {
            if !has_returned(frame, regs.rsp) {
                return;
            }
            let to = pool.borrow().slot_word(slot, SlotWord::AllocatorResult);
            let address = match to {
                0 => regs.rax,
                to if regs.rax as u32 == 0 => p.memory.word(to).unwrap_or(0),
                _ => 0,
            };
            set(SlotWord::AllocatorFrame, 0);
            record.push(ALLOCATOR_RETURNED);
            words(&mut record, &[address, pc.0]);
            record.push(code_cache.borrow().module_number(pc));
            return self.record_object(tid, record);
        }
        let (sp, [a, b, c]) = (regs.rsp, [regs.rdi, regs.rsi, regs.rdx]);
        let allocator = code_cache.borrow().allocator_at(pc);
        let (Some(allocator), Some(returns_to)) = (allocator, p.memory.word(sp)) else { return };
        let outermost = outermost(frame, sp);
        if allocator == Allocator::Free {
            if outermost {
                set(SlotWord::AllocatorFrame, 0);
            }
            if a != 0 {
                self.record_event(tid, Said::Freed(a));
            }
        } else if outermost && allocator.hands_out() {
            code_cache.borrow_mut().watch_return(GuestAddr(returns_to));
            set(SlotWord::AllocatorFrame, sp);
            set(SlotWord::AllocatorResult, if allocator == Allocator::AllocateTo { a } else { 0 });
            record.extend([ALLOCATOR_CALLED, allocator.word()]);
            words(&mut record, &[a, b, c, sp, returns_to]);
            if depth > 1 {
                // As where it has been called: registers that calls keep are those of the caller.
                let mut caller = regs;
                caller.rsp = sp.wrapping_add(8);
                let is_ours = |at| code_cache.borrow().is_cache(CacheAddr(at));
                let most = (usize::from(depth) - 1, code_cache.borrow().maps_learnt);
                let at = (returns_to.wrapping_sub(1), &caller);
                for to in p.stacks.callers((tid, &p.memory), is_ours, at, most) {
                    record.push(ALLOCATOR_CALLER);
                    words(&mut record, &[to.0]);
                    record.push(code_cache.borrow().module_number(to));
                }
            }
            self.record_object(tid, record);
        }
    }

    /// The program says by a request what is to be a block of its own. `next` is the address behind the request.
    pub(super) fn object_request(&mut self, tid: Tid, request: Request, arguments: [u64; 5], next: GuestAddr) {
        if !self.settings.trace.objects {
            return;
        }
        let Some(p) = self.process_of(tid) else { return };
        let module = p.code_cache.borrow().module_at(next).unwrap_or(u32::MAX);
        for event in said(request, arguments, next, module).into_iter().flatten() {
            self.record_event(tid, event);
        }
    }

    /// Records what happens to a block.
    fn record_event(&mut self, tid: Tid, event: Said) {
        let mut record = Vec::with_capacity(CARVED_WORDS);
        let mut died =
            |address: u64, how: u32| record.extend([OBJECT_DIED, address as u32, (address >> 32) as u32, how]);
        match event {
            Said::Freed(address) => died(address, OBJECT_FREED),
            Said::GivenBack(address) => died(address, OBJECT_GIVEN_BACK),
            Said::PoolGone(pool) => died(pool, OBJECT_POOL_GONE),
            Said::Carved { address, size, site, module, pool } => {
                record.push(OBJECT_CARVED);
                words(&mut record, &[address, size, site, pool]);
                record.push(module);
            }
            Said::Resized { address, size } => {
                record.push(OBJECT_RESIZED);
                words(&mut record, &[address, size]);
            }
            Said::PoolTrimmed { pool, address, size } => {
                record.push(OBJECT_POOL_TRIMMED);
                words(&mut record, &[pool, address, size]);
            }
            Said::PoolMoved { from, to } => {
                record.push(OBJECT_POOL_MOVED);
                words(&mut record, &[from, to]);
            }
        }
        self.record_object(tid, record);
    }

    /// Writes a record about objects, and what belongs to it, behind what all threads have recorded before.
    fn record_object(&mut self, tid: Tid, mut record: Vec<u32>) {
        debug_assert!(record.first().and_then(|first| object_words(*first)).is_some_and(|words| words <= record.len()));
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        let slot = th.slot;
        let counts = th.counted_slot(p.counting) == Some(slot);
        let recording =
            counts && !p.code_cache.borrow().trace.plain() && p.pool.borrow().slot_word(slot, SlotWord::TracePos) != 0;
        if counts {
            // It has the frames of this moment in front.
            self.pull_stack(tid);
        }
        if recording && p.threads.len() == 1 {
            return self.append(tid, slot, &record);
        }
        if let ([ALLOCATOR_CALLED, which, ..], false) = (&mut record[..], counts) {
            *which |= NOT_COUNTED;
        }
        for thread in p.threads.clone() {
            self.hand_over_ahead(thread);
        }
        let pid = p.pid;
        self.tell_records(tid, counts, record);
        // Lines where blocks come and go begin anew.
        self.forget_bytes(pid);
    }

    /// Tells the sink what `tid` has recorded, where that `counts` or where nothing does.
    fn tell_records(&self, tid: Tid, counts: bool, words: Vec<u32>) {
        let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) else { return };
        let follow = &p.code_cache.borrow().trans.follow;
        match counts {
            _ if words.is_empty() => {}
            false => trace_channel.objects(p.pid, tid, words),
            true if self.follows(tid) => trace_channel.recorded(p.pid, tid, follow, |to| *to = words),
            true => trace_channel.records(p.pid, tid, words),
        }
    }

    /// Hands over what a thread that counts nothing at present has recorded of objects: their time goes on.
    pub(super) fn hand_over_objects(&self, tid: Tid, slot: SlotId) {
        let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) else { return };
        let mut words = Vec::new();
        p.pool.borrow_mut().read_trace(slot, &mut words);
        announce(trace_channel, &mut p.code_cache.borrow_mut());
        self.tell_records(tid, false, objects_of(&p.code_cache.borrow(), &words));
    }

    /// Hands over what the threads of a process have recorded so far, while they may run on, if the lives of threads are told: what
    /// is told next comes behind that.
    pub(super) fn hand_over_lives(&self, pid: Pid) {
        if self.settings.trace.lives {
            for tid in self.processes.get(&pid).map(|p| p.threads.clone()).unwrap_or_default() {
                self.hand_over_ahead(tid);
            }
        }
    }

    /// A thread of a process begins to live, if that is told.
    pub(super) fn tell_born(&self, pid: Pid, tid: Tid) {
        if let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| self.settings.trace.lives) {
            self.hand_over_lives(pid);
            trace_channel.thread_born(pid, tid);
            self.forget_bytes(pid);
        }
    }

    /// Something has been told behind all that the threads of a process have recorded: which bytes of lines they have used before that
    /// is forgotten, while they may run on, if it is told. Who uses them because of what has happened has got to know of it later, and
    /// tells of it anew. While there is one thread nobody wants to know.
    pub(super) fn forget_bytes(&self, pid: Pid) {
        let Some(p) = self.processes.get(&pid).filter(|_| self.settings.trace.keeps_bytes()) else { return };
        let unknown = if p.threads.len() > 1 { u64::MAX } else { 0 };
        let owners = if unknown == 0 { None } else { self.owners(p) };
        for (tid, slot) in p.threads.iter().filter_map(|tid| Some((tid, self.threads.get(tid)?.slot))) {
            // Whoever tells of bytes knows by then who has which line.
            if let Some(owners) = owners {
                p.pool.borrow().share_owners(slot, *tid, owners);
            }
            p.pool.borrow().forget_bytes(slot, unknown);
        }
    }

    /// The slot that says which thread of a process has which line, if that is told.
    fn owners(&self, p: &Process) -> Option<SlotId> {
        if !self.settings.trace.keeps_owners() {
            return None;
        }
        if p.owners.get().is_none() {
            p.owners.set(p.pool.borrow_mut().take());
        }
        p.owners.get()
    }

    /// Hands over what a thread has recorded so far, while it may run on.
    pub(super) fn hand_over_ahead(&self, tid: Tid) {
        let (Some(trace_channel), Some(th), Some(p)) =
            (&self.trace_channel, self.threads.get(&tid), self.process_of(tid))
        else {
            return;
        };
        let mut words = Vec::new();
        p.pool.borrow_mut().read_trace_ahead(th.slot, usize::MAX, &mut words);
        announce(trace_channel, &mut p.code_cache.borrow_mut());
        let counts = th.counted_slot(p.counting) == Some(th.slot);
        if !counts {
            words = objects_of(&p.code_cache.borrow(), &words);
        }
        self.tell_records(tid, counts, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_where_blocks_are() {
        let said = |request| said(request, [1, 2, 3, 4, 5], GuestAddr(0x4000), 7);
        let carved = |pool, address, size| Some(Said::Carved { address, size, site: 0x4000, module: 7, pool });
        for (request, first, second) in [
            (Request::MalloclikeBlock, carved(0, 1, 2), None),
            (Request::ResizeinplaceBlock, Some(Said::Resized { address: 1, size: 3 }), None),
            (Request::FreelikeBlock, Some(Said::GivenBack(1)), None),
            (Request::MempoolAlloc, carved(1, 2, 3), None),
            (Request::MempoolFree, Some(Said::GivenBack(2)), None),
            (Request::MempoolChange, Some(Said::GivenBack(2)), carved(1, 3, 4)),
            (Request::DestroyMempool, Some(Said::PoolGone(1)), None),
            (Request::MempoolTrim, Some(Said::PoolTrimmed { pool: 1, address: 2, size: 3 }), None),
            (Request::MoveMempool, Some(Said::PoolMoved { from: 1, to: 2 }), None),
            (Request::CreateMempool, None, None),
        ] {
            assert_eq!(said(request), [first, second], "{request:?}");
        }
    }
}
