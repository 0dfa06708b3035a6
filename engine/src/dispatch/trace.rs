//! Trace buffers of guest threads: a page that cannot be written ends each; the fault on it is the sign to take the buffer
//! over. Also all announcements to the sink. Nothing here happens unless something is traced.

use std::cell::RefCell;

use grind_code_cache::{CodeCache, SpaceTrace};
use grind_codegen::level1::{self, MissPathAsm, Touched, Words};
use grind_codegen::miss_path::Repeat;
use grind_guest::image::Remote;
use grind_guest::recover::Boundary;
use grind_guest::slots::{DataKept, SlotId};
use grind_layout::{self as layout, SlotWord};
use grind_ptrace::kinds::address_of;
use grind_ptrace::{Regs, Stopped, register};
use grind_session::trace_channel::TraceChannel;
use grind_trace::operands::halves;
use grind_trace::{self as trace, Done, Handler, LineReplaced, SiteKind, Target};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::{Pid, Tid};
use nix::libc;

use super::Dispatcher;
use super::announce::announce;

impl Dispatcher<'_> {
    /// Makes the slot that `t` is on ready for records. `None` if the thread died over it.
    pub(super) fn ready_trace(&mut self, t: Stopped) -> Option<Stopped> {
        if self.trace_channel.is_none() {
            return Some(t);
        }
        let tid = t.tid();
        if self.is_plain(tid) {
            return Some(t);
        }
        let t = if self.follows(tid) { self.ready_frames(t)? } else { t };
        if !self.records(tid) {
            return Some(t);
        }
        let Some(th) = self.threads.get(&tid) else { return Some(t) };
        let Some(p) = self.processes.get(&th.pid) else { return Some(t) };
        let slot = th.slot;
        let gs = p.pool.borrow().gs(slot);
        let gadget = p.code_cache.borrow().gadget;
        if p.pool.borrow().words(slot).get(layout::OUTCOMES) != 0 {
            return Some(t);
        }
        let SpaceTrace { miss_paths: [access, fetch, stack, second, bytes], settings, .. } =
            p.code_cache.borrow().trace;
        let line = settings.accesses.map_or(0, |c| u64::from(c.line));
        {
            let pool = p.pool.borrow();
            pool.write(slot, layout::OUTCOMES, &OUTCOMES);
            for (word, value) in [
                (SlotWord::EntryBits, (layout::DATA_ENTRIES - 1) * line),
                (SlotWord::LineBits, line.wrapping_neg()),
                (SlotWord::AccessMissPath, access.0),
                (SlotWord::SecondMissPath, second.0),
                (SlotWord::FetchMissPath, fetch.0),
                (SlotWord::BytesPath, bytes.0),
                (SlotWord::MissPathStack, gs + layout::MISS_PATH_STACK),
                (SlotWord::StackMissPath, stack.0),
                (SlotWord::TracePos, layout::TRACE_BUFFER),
            ] {
                pool.set_slot_word(slot, word, value);
            }
            pool.start_clock(slot);
        }
        if let Some(cache) = settings.accesses {
            level1::prepare(&mut p.pool.borrow().words(slot), cache, settings.tlbs.is_some());
        }
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        guard(&mut remote, gs);
        remote.thread.take()
    }

    /// A fault at `info`'s address: if it is the end of the thread's trace buffer, that is emptied, and `regs` are such
    /// that the record is written to its beginning.
    pub(super) fn trace_full(&mut self, tid: Tid, info: &libc::siginfo_t, regs: &mut Regs) -> bool {
        if self.frames_full(tid, info, regs) {
            return true;
        }
        let Some(th) = self.threads.get(&tid).filter(|_| self.trace_channel.is_some()) else { return false };
        let Some(p) = self.processes.get(&th.pid) else { return false };
        if p.pool.borrow().at(regs.gs_base).is_none() {
            return false;
        }
        let at = address_of(info).wrapping_sub(regs.gs_base + layout::TRACE_BUFFER);
        if at >= layout::TRACE_ALL || at % layout::TRACE_STRIDE < layout::TRACE_SIZE {
            return false;
        }
        let Some(base) = base_of_access(&p.code_cache.borrow(), regs.rip) else { return false };
        let slot = th.slot;
        let pool = p.pool.clone();
        self.hand_over(tid, slot, true);
        // It has been running for a while.
        pool.borrow_mut().enlarge(slot);
        *register(regs, base.number() as u8) = pool.borrow().slot_word(slot, SlotWord::TracePos);
        true
    }

    /// Whether there are records of `tid`.
    fn records(&self, tid: Tid) -> bool {
        self.trace_channel.is_some()
            && (self.settings.trace.simulates()
                || self.settings.trace.objects
                || self.settings.trace.tells_each()
                || !self.follows(tid))
    }

    /// Hands over what a thread has recorded on `slot`, which is empty afterwards.
    pub(super) fn drain(&self, tid: Tid, slot: SlotId) {
        self.hand_over(tid, slot, false);
    }

    /// The same. `full`: nobody asks the sink anything, unlike at other stops, so it need not have dealt with that when the thread
    /// goes on.
    fn hand_over(&self, tid: Tid, slot: SlotId, full: bool) {
        let Some(trace_channel) = self.trace_channel.as_ref().filter(|_| self.records(tid)) else { return };
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        if th.counted_slot(p.counting) != Some(slot) {
            if self.settings.trace.objects {
                return self.hand_over_objects(tid, slot);
            }
            return p.pool.borrow_mut().drop_trace(slot);
        }
        let follows = self.follows(tid);
        if follows && !full {
            announce(trace_channel, &mut p.code_cache.borrow_mut());
            return trace_channel.recorded(p.pid, tid, &p.code_cache.borrow().trans.follow, |to| {
                p.pool.borrow_mut().read_trace(slot, to);
            });
        }
        let Some(segment) = p.pool.borrow_mut().take_trace(slot) else { return };
        let mut code_cache = p.code_cache.borrow_mut();
        announce(trace_channel, &mut code_cache);
        code_cache.trace.told_words += segment.words() as u64;
        if full && code_cache.follows_now() {
            self.told_enough.set(true);
        }
        match full {
            true => trace_channel.full(
                p.pid,
                tid,
                follows.then_some((code_cache.trace.id, &code_cache.trans.follow)),
                segment,
            ),
            false => trace_channel.segment(p.pid, tid, segment),
        }
    }

    /// Hands over what `tid` has recorded so far, while it runs on: there is less to be dealt with when it asks what a call comes
    /// to, and waits for that. Nothing unless the sink has dealt with everything else, or if it is much, which would take longer
    /// than the thread should have to wait.
    pub(super) fn read_ahead(&self, tid: Tid) {
        if !self.settings.trace.simulates() || !self.follows(tid) {
            return;
        }
        let (Some(trace_channel), Some(th), Some(p)) =
            (&self.trace_channel, self.threads.get(&tid), self.process_of(tid))
        else {
            return;
        };
        let slot = th.slot;
        if th.counted_slot(p.counting) != Some(slot) || !trace_channel.has_caught_up() {
            return;
        }
        announce(trace_channel, &mut p.code_cache.borrow_mut());
        trace_channel.recorded(p.pid, tid, &p.code_cache.borrow().trans.follow, |to| {
            p.pool.borrow_mut().read_trace_ahead(slot, AHEAD, to);
        });
    }

    /// A repeated instruction was interrupted: records what it has done so far, as its translation does at its end.
    pub(super) fn record_repeat(&mut self, tid: Tid, site: u32, regs: &Regs, off: bool) {
        let Some(th) = self.threads.get(&tid).filter(|_| self.trace_channel.is_some()) else { return };
        let slot = th.slot;
        // Whatever it records from here on has the frames of this moment in front.
        self.pull_stack(tid);
        let Some(p) = self.process_of(tid) else { return };
        let pool = p.pool.clone();
        let before = [SlotWord::Repeat, SlotWord::RepeatSource, SlotWord::RepeatTarget]
            .map(|w| pool.borrow().slot_word(slot, w));
        let mut after = [regs.rcx, regs.rsi, regs.rdi];
        let kind = p.code_cache.borrow().trans.trace_sites[site as usize].kind;
        if let SiteKind::Repeated { source, target, narrow, .. } = kind {
            let mask = if narrow { u64::from(u32::MAX) } else { u64::MAX };
            let n = before[0].wrapping_sub(after[0]) & mask;
            let reads = u64::from(source) + u64::from(target == Target::Read);
            if !off {
                self.total_accesses(tid, slot, [n.wrapping_mul(reads), n * u64::from(target == Target::Write)]);
            }
            // What the instruction does not use is not the guest's in `before`.
            after[1] = if source { after[1] } else { before[1] };
            after[2] = if target == Target::Unused { before[2] } else { after[2] };
        }
        let mut record = vec![site];
        record.extend(before.into_iter().chain(after).flat_map(halves));
        self.append(tid, slot, &record);
        self.miss_path_of_repeat(tid, site, before, after);
    }

    /// The emitted miss path of a repeated instruction was interrupted at the start of its loop: does the rest of it.
    pub(super) fn finish_repeat(&mut self, tid: Tid, site: u32, regs: &mut Regs) {
        if self.trace_channel.is_none() {
            return;
        }
        self.pull_stack(tid);
        let all = regs.rcx.wrapping_mul(regs.rax);
        let after = [0, regs.rbx.wrapping_add(all), regs.rdx.wrapping_add(all)];
        self.miss_path_of_repeat(tid, site, [regs.rax, regs.rbx, regs.rdx], after);
        regs.rax = 0;
    }

    /// Takes along the miss path what a repeated instruction accessed between these values of rcx, rsi and rdi.
    fn miss_path_of_repeat(&mut self, tid: Tid, site: u32, before: [u64; 3], after: [u64; 3]) {
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        let (slot, pool, code_cache) = (th.slot, p.pool.clone(), p.code_cache.clone());
        let settings = code_cache.borrow().trace.settings;
        let (uses, bytes, ages) = (settings.keeps_uses(), settings.keeps_bytes(), settings.tells_ages());
        let kind = code_cache.borrow().trans.trace_sites[site as usize].kind;
        let (Some(cache), SiteKind::Repeated { size, source, target, target_first, narrow }) =
            (code_cache.borrow().trace.settings.accesses, kind)
        else {
            return;
        };
        let repeat = Repeat { size, source, target, target_first, narrow };
        let mut records = Vec::new();
        let tlb = code_cache.borrow().trace.settings.tlbs.map(|tlbs| tlbs.data);
        let state = pool.borrow().data_cache(slot, cache, DataKept::by(&settings));
        let mut miss_path_asm = MissPathAsm::new(state, cache, uses).telling(bytes).aging(ages).with_tlb(tlb);
        miss_path_asm.repeat(repeat, before, after, |done, missed, at_target| {
            let site = site + 1 + u32::from(at_target);
            records.extend(done.touched.iter().map(|t| of_line(t, site).to_vec()));
            records.extend(done.page_misses.iter().map(|page| of_page(*page, site).to_vec()));
            records.extend(done.brought.iter().map(|line| line.words().to_vec()));
            if let Some(address) = missed {
                let [low, high] = halves(address);
                records.extend(of_miss(site, &done.replaced).unwrap_or_else(|| vec![vec![site, low, high]]));
            }
        });
        pool.borrow().set_data_cache(slot, &miss_path_asm.words);
        for record in records {
            self.append(tid, slot, &record);
        }
    }

    /// Whether nothing is collected where a thread is.
    fn is_off(&self, tid: Tid, b: &Boundary) -> bool {
        let Some(p) = self.process_of(tid) else { return false };
        let trans = &p.code_cache.borrow().trans;
        trans.follow.is_off(trans.block(b.block).call_context)
    }

    /// Adds reads and writes to the totals of a thread whose calls are followed.
    fn total_accesses(&self, tid: Tid, slot: SlotId, accesses: [u64; 2]) {
        let Some(p) = self.process_of(tid).filter(|_| self.follows(tid)) else { return };
        let pool = p.pool.borrow();
        for (word, n) in [SlotWord::Reads, SlotWord::Writes].into_iter().zip(accesses) {
            pool.set_slot_word(slot, word, pool.slot_word(slot, word).wrapping_add(n));
        }
    }

    /// Takes along the miss path the accesses of a special instruction, which has just recorded its registers, through the cache.
    pub(super) fn miss_path_of_special(&mut self, tid: Tid, site: u32, off: bool) {
        let Some(th) = self.threads.get(&tid).filter(|_| self.trace_channel.is_some()) else { return };
        let slot = th.slot;
        let Some(p) = self.process_of(tid) else { return };
        let (pool, code_cache) = (p.pool.clone(), p.code_cache.clone());
        let settings = code_cache.borrow().trace.settings;
        let (uses, bytes, ages) = (settings.keeps_uses(), settings.keeps_bytes(), settings.tells_ages());
        let (cache, touches) = {
            let code_cache = code_cache.borrow();
            let (Some(cache), SiteKind::Special { index, words }) =
                (code_cache.trace.settings.accesses, code_cache.trans.trace_sites[site as usize].kind)
            else {
                return;
            };
            let record = pool.borrow().last_record(slot, words.into());
            if record.len() != usize::from(words) {
                return;
            }
            (cache, code_cache.trans.specials[index as usize].touches(&record))
        };
        let reads = touches.iter().filter(|touch| touch.done == Done::Read).count();
        if !off {
            self.total_accesses(tid, slot, [reads, touches.len() - reads].map(|n| n as u64));
        }
        let tlb = code_cache.borrow().trace.settings.tlbs.map(|tlbs| tlbs.data);
        for touch in touches {
            let size = touch.size.min(cache.widest.into());
            let site = match touch.done {
                Done::Read => site + 1,
                Done::Write => site + 2,
                Done::Modify => site + 3,
            };
            let (missed, done) = {
                let pool = pool.borrow();
                let words = pool.words(slot);
                let mut done = MissPathAsm::new(words, cache, uses).telling(bytes).aging(ages).with_tlb(tlb);
                let missed = done.access(touch.address, size);
                (missed, (done.touched, done.replaced, done.page_misses, done.brought))
            };
            let (touched, replaced, pages, brought) = done;
            for touched in &touched {
                self.append(tid, slot, &of_line(touched, site));
            }
            for page in pages {
                self.append(tid, slot, &of_page(page, site));
            }
            for line in brought {
                self.append(tid, slot, &line.words());
            }
            if missed {
                let [low, high] = halves(touch.address);
                let records = of_miss(site, &replaced).unwrap_or_else(|| vec![vec![site, low, high, size as u32]]);
                records.iter().for_each(|record| self.append(tid, slot, record));
            }
        }
    }

    /// Tells how the lines in a thread's data cache have been used, if that is kept: behind all that it has recorded.
    pub(super) fn tell_uses(&mut self, tid: Tid) {
        let (Some(trace_channel), Some(th)) = (&self.trace_channel, self.threads.get(&tid)) else { return };
        let Some(p) = self.processes.get(&th.pid) else { return };
        let settings = p.code_cache.borrow().trace.settings;
        let (Some(cache), Some(slot)) =
            (settings.accesses.filter(|_| settings.keeps_uses()), th.counted_slot(p.counting))
        else {
            return;
        };
        let miss_path_asm = MissPathAsm::new(p.pool.borrow().data_cache(slot, cache, DataKept::Uses), cache, true);
        let lines = u64::from(cache.sets) * u64::from(cache.ways);
        let used = (0..lines).map(|n| (n * layout::DATA_WAY, miss_path_asm.used(n * layout::DATA_WAY)));
        let words: Vec<u32> = used
            .filter(|(_, (_, count))| *count != 0)
            .flat_map(|(way, (parts, count))| [trace::LINE_USED, way as u32, count, parts])
            .collect();
        if !words.is_empty() {
            trace_channel.records(th.pid, tid, words);
        }
    }

    /// Writes a record to a thread's trace buffer, which is handed over first if there is no room.
    pub(super) fn append(&mut self, tid: Tid, slot: SlotId, record: &[u32]) {
        let Some(pool) = self.process_of(tid).map(|p| p.pool.clone()) else { return };
        if pool.borrow().trace_room(slot) < 4 * record.len() as u64 {
            self.drain(tid, slot);
        }
        pool.borrow().append_trace(slot, record);
    }

    /// The only thread of a new process goes on with its creator's caches and predictors.
    pub(super) fn copy_simulated_state(&mut self, tid: Tid, child: Tid, counting: bool) {
        let (Some(_), Some(th), Some(p)) = (&self.trace_channel, self.threads.get(&tid), self.process_of(tid)) else {
            return;
        };
        let present = th.slot;
        let Some(from) = th.counted_slot(p.counting) else { return };
        let (pool, parts) = (p.pool.clone(), p.code_cache.borrow().simulated_state());
        let Some(th) = self.threads.get_mut(&child) else { return };
        pool.borrow().copy_allocator_call(present, th.slot);
        let to = if counting {
            Some(th.slot)
        } else {
            // It counts nothing at present: for when it does again.
            th.other = pool.borrow_mut().take();
            th.other
        };
        if let Some(to) = to {
            pool.borrow().copy_ranges(from, to, &parts);
        }
    }

    /// `own` is a copy of `code_cache`; these processes go on with it. What they recorded before is handed over first.
    pub(super) fn trace_copied(&mut self, code_cache: &RefCell<CodeCache>, own: &RefCell<CodeCache>, moved: &[Pid]) {
        if self.trace_channel.is_none() {
            return;
        }
        for pid in moved {
            for tid in self.processes.get(pid).map(|p| p.threads.clone()).unwrap_or_default() {
                self.drain_thread(tid);
            }
        }
        let Some(trace_channel) = &mut self.trace_channel else { return };
        let from = code_cache.borrow().trace.id;
        let to = trace_channel.new_code_cache();
        trace_channel.space_copied(from, to);
        let mut own = own.borrow_mut();
        own.trace = code_cache.borrow().trace;
        own.trace.id = to;
        for &pid in moved {
            trace_channel.moved(pid, to);
        }
    }

    /// Tells the sink, behind all that thread `tid` has recorded, what `tell` does.
    pub(super) fn tell(&mut self, tid: Tid, tell: impl FnOnce(&TraceChannel, Pid)) {
        self.drain_thread(tid);
        self.pull_stack(tid);
        let (Some(trace_channel), Some(p)) = (&self.trace_channel, self.process_of(tid)) else { return };
        announce(trace_channel, &mut p.code_cache.borrow_mut());
        tell(trace_channel, p.pid);
        self.push_stack(tid, None);
    }

    /// Of the block that `tid` is in, the first `counted` instructions have been told, the first `executed` executed.
    pub(super) fn tell_correction(&mut self, tid: Tid, block: u32, counted: usize, executed: usize) {
        let Some(th) = self.threads.get(&tid) else { return };
        let recording = self.processes.get(&th.pid).is_some_and(|p| th.counted_slot(p.counting) == Some(th.slot));
        if recording && counted != executed {
            self.tell(tid, |trace_channel, pid| trace_channel.corrected(pid, tid, block, counted, executed));
        }
    }

    /// The same for a thread at boundary `b`, which may be within a repeated instruction.
    pub(super) fn correct_told(&mut self, tid: Tid, block: u32, counted: usize, b: &Boundary, regs: &Regs) {
        self.tell_correction(tid, block, counted, b.executed.into());
        let Some(rep) = b.rep else { return };
        let off = self.is_off(tid, b);
        if let Some(site) = rep.told {
            let left = if rep.address32 { regs.rcx & 0xffff_ffff } else { regs.rcx };
            let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
            if self.follows(tid) {
                let pool = p.pool.borrow();
                let remains = pool.take_off_counter(th.slot, rep.counter, left);
                let more = remains.wrapping_sub(pool.slot_word(th.slot, SlotWord::RepeatCounter));
                if !off {
                    let total = pool.slot_word(th.slot, SlotWord::Total).wrapping_add(more);
                    pool.set_slot_word(th.slot, SlotWord::Total, total);
                }
            } else {
                let [low, high] = halves(p.pool.borrow().take_off_counter(th.slot, rep.counter, left));
                self.tell(tid, |trace_channel, pid| trace_channel.records(pid, tid, vec![site, low, high]));
            }
        }
        if let Some(site) = rep.site {
            self.record_repeat(tid, site, regs, off);
        }
    }

    /// The kernel has built the frame of a signal handler; `t` is about to run it.
    pub(super) fn tell_handler(&mut self, t: &Stopped) {
        if self.settings.trace.calls.is_none() {
            return;
        }
        let Ok(regs) = t.regs() else { return };
        let Some(p) = self.process_of(t.tid()) else { return };
        // rdx points to a ucontext: flags, link, the alternate stack (address, flags, size), then the registers.
        let word = |offset: u64| p.memory.word(regs.rdx.wrapping_add(offset)).unwrap_or(0);
        let (stack, size, sp) = (word(16), word(32), word(160));
        let stack = stack..stack.saturating_add(size);
        let handler = Handler {
            addr: GuestAddr(regs.rip),
            sp,
            stack: (stack.contains(&regs.rsp) && !stack.contains(&sp)).then_some(stack),
        };
        self.tell(t.tid(), |trace_channel, pid| trace_channel.signal_begins(pid, t.tid(), handler));
        self.serve_requests_of(t.tid());
    }

    /// The thread has returned from a signal handler, or tried to.
    pub(super) fn tell_handler_ends(&mut self, tid: Tid) {
        if self.settings.trace.calls.is_some() {
            self.tell(tid, |trace_channel, pid| trace_channel.signal_ends(pid, tid));
            self.serve_requests_of(tid);
        }
    }

    /// Hands over what thread `tid` has recorded so far.
    pub(super) fn drain_thread(&mut self, tid: Tid) {
        if !self.records(tid) {
            return;
        }
        let slot = self.threads.get(&tid).and_then(|th| th.counted_slot(self.processes.get(&th.pid)?.counting));
        if let Some(slot) = slot {
            self.drain(tid, slot);
        }
        // What it does to objects where it counts nothing is recorded all the same.
        let present = self.threads.get(&tid).map(|th| th.slot).filter(|_| self.settings.trace.objects);
        if let Some(present) = present.filter(|present| Some(*present) != slot) {
            self.drain(tid, present);
        }
    }
}

/// The most words that are read while a thread runs on, so that its next request does not wait long.
const AHEAD: usize = 4096;

/// Makes the pages behind the segments of the trace buffer of the slot at `gs` ones that cannot be written.
pub(super) fn guard(remote: &mut Remote<'_>, gs: u64) {
    for n in 0..layout::TRACE_SEGMENTS {
        let page = gs + layout::TRACE_BUFFER + n * layout::TRACE_STRIDE + layout::TRACE_SIZE;
        remote.raw(libc::SYS_mprotect, [page, 4096, libc::PROT_NONE as u64, 0, 0, 0]);
    }
}

/// The register that the memory access of the translated instruction at `rip` counts from.
pub(super) fn base_of_access(code_cache: &CodeCache, rip: u64) -> Option<iced_x86::Register> {
    let mut code = [0; 16];
    if !code_cache.is_cache(CacheAddr(rip)) {
        return None;
    }
    code_cache.read_cache(CacheAddr(rip), &mut code);
    let base = iced_x86::Decoder::with_ip(64, &code, rip, iced_x86::DecoderOptions::NONE).decode().memory_base();
    base.is_gpr64().then_some(base)
}

impl Dispatcher<'_> {
    /// What is mapped is changing by a call of `tid`: tells the sink what has been translated of what was there, and what that
    /// thread has told of it.
    pub(super) fn tell_code(&mut self, tid: Tid, code_cache: &RefCell<CodeCache>) {
        if self.settings.trace.calls.is_none() {
            return;
        }
        self.drain_thread(tid);
        if let Some(trace_channel) = &self.trace_channel {
            announce(trace_channel, &mut code_cache.borrow_mut());
        }
    }
}

/// The constants of the branch predictor: twice a counter, and 1 if the branch is taken, to the next counter; then to 4, the
/// bytes of a record, if that was predicted wrongly.
const OUTCOMES: [u8; 16] = [0, 1, 0, 2, 1, 3, 2, 3, 0, 4, 0, 4, 4, 0, 4, 0];

/// The record of a page that an access of `site` has missed.
fn of_page(page: u64, site: u32) -> [u32; trace::PAGE_WORDS] {
    let [low, high] = halves(page);
    [trace::PAGE_MISSED, site, low, high]
}

/// A record of what has happened to a line because of an access of `site`.
fn of_line(touched: &Touched, site: u32) -> [u32; trace::LINE_WORDS] {
    let [low, high] = halves(touched.line);
    [if touched.loaded { trace::LINE_LOADED } else { trace::LINE_REUSED }, low, high, site]
}

/// The records of an access of `site` that has missed these lines, if uses are kept.
fn of_miss(site: u32, replaced: &[LineReplaced]) -> Option<Vec<Vec<u32>>> {
    let both = replaced.first()?.one_of_two;
    let lines = replaced.iter().map(|line| line.words(site).to_vec());
    Some(lines.chain(both.then(|| vec![trace::LINES_REPLACED, site])).collect())
}
