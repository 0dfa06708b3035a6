//! Contexts of the statistics. A program says in which context each of its threads is: a push books what follows to another
//! context, a pop goes back. A thread has one slot of counters a context; their headers are the same memory. Once a thread
//! has a slot for a context, a change to it is made by emitted code (`emit::contexts`); here is the rest.
//!
//! Invariants: the header's word `Context` is the context that the thread is in, `ContextBase` the slot that gs points to;
//! what the header's table says is true, though it may not say everything; a request's own instruction is booked to the
//! context before it, the next one to that after it. A thread that has not pushed is in the context of the thread that
//! created it, at any time: when that one changes, it waits until all that follow it have changed.

use grind_fragments::fragment_table::StateMapEntry;
use grind_guest::contexts::{Books, NAMED, ThreadContexts};
use grind_guest::image::Remote;
use grind_guest::process::{Process, State, Thread};
use grind_guest::resume::go_on;
use grind_guest::slots::{SlotId, SlotPool};
use grind_layout::{self as layout, CONTEXT_DEPTH, CONTEXT_STACK, CONTEXT_TABLE, SlotWord};
use grind_ptrace::{self as tracee, How, Regs, Stopped};
use grind_session::Notice;
use grind_types::Tid;
use grind_types::addr::CacheAddr;
use nix::libc;

use super::ask::{self, Uncollected};
use super::{Dispatcher, trace};

/// The most slots that a thread has beside its first one. Each costs some kernel memory, so beyond this a new context
/// takes over the slot of the one that got its slot first.
const MAX_SLOTS: usize = 1024;

/// The longest name of a context, in bytes; the rest is left out.
const MAX_NAME: usize = 1 << 10;

/// Entry of a context in the header's table.
fn entry(context: u64) -> u64 {
    CONTEXT_TABLE + context % layout::CONTEXT_ENTRIES * 16
}

/// A thread that has changed its context and waits until all that follow it have changed, too.
#[derive(Debug)]
pub(super) struct Held {
    thread: Stopped,
    followers: Vec<Tid>,
}

/// The context that what `th` counts is booked to while gs is `gs`.
pub(super) fn booked_to(th: &Thread, p: &Process, gs: u64) -> u64 {
    let pool = p.pool.borrow();
    match pool.at(gs) {
        Some(id) if id == th.slot => th.contexts.home,
        at => match th.contexts.extra.iter().find(|(_, id)| at == Some(*id)) {
            Some((context, _)) => *context,
            None => pool.slot_word(th.slot, SlotWord::Context),
        },
    }
}

/// Adds all that a thread has counted to `books`, but for what is not collected.
pub(super) fn add_thread(
    th: &Thread,
    p: &Process,
    counters: u32,
    uncollected: Option<&Uncollected>,
    books: &mut Books,
) {
    add_thread_and(th, p, counters, uncollected, books, |_, _| {});
}

/// As [`add_thread`]; each counter that is not 0 is told, too.
pub(super) fn add_thread_and(
    th: &Thread,
    p: &Process,
    counters: u32,
    uncollected: Option<&Uncollected>,
    books: &mut Books,
    mut tell: impl FnMut(u32, u64),
) {
    let pool = p.pool.borrow();
    if let (Some(u), Some(slot)) = (uncollected, th.counted_slot(p.counting)) {
        // Callgrind has no contexts.
        let mut sum = Vec::new();
        ask::add_collected(&pool, slot, counters, u, &mut sum);
        let book = books.of(th.contexts.home);
        for (counter, &n) in (0..).zip(&sum) {
            book.add(counter, n);
            tell(counter, n);
        }
        return;
    }
    let counted = th.counted_slot(p.counting).map(|slot| (th.contexts.home, slot));
    for (context, slot) in counted.into_iter().chain(th.contexts.extra.iter().copied()) {
        let book = books.of(context);
        book.expect(counters);
        pool.each_counter(slot, counters, |counter, n| {
            book.add(counter, n);
            tell(counter, n);
        });
    }
}

/// Gives a thread's slots back. Those of other contexts first: they show the header of the first.
pub(super) fn give_back(th: &Thread, pool: &mut SlotPool) {
    for (_, slot) in &th.contexts.extra {
        pool.give_back_alias(*slot);
    }
    pool.give_back(th.slot);
    if let Some(other) = th.other {
        pool.give_back(other);
    }
}

/// Takes the context and the stack of contexts from one header to another.
pub(super) fn copy_header(pool: &SlotPool, from: SlotId, to: SlotId) {
    for word in [SlotWord::Context, SlotWord::ContextDepth, SlotWord::ContextStops] {
        pool.set_slot_word(to, word, pool.slot_word(from, word));
    }
    let depth = pool.slot_word(from, SlotWord::ContextDepth);
    let stack: Vec<u64> = (0..depth).map(|n| pool.word(from, CONTEXT_STACK + 8 * n)).collect();
    pool.set_words(to, CONTEXT_STACK, &stack);
}

impl Dispatcher<'_> {
    /// The context that `tid` is in.
    pub(super) fn context(&self, tid: Tid) -> u64 {
        self.slot_word(tid, SlotWord::Context)
    }

    /// The context that a thread or process which `tid` creates begins in, and what else it takes over.
    pub(super) fn inherited(&self, tid: Tid, process: bool) -> ThreadContexts {
        let Some(th) = self.threads.get(&tid) else { return ThreadContexts::default() };
        let home = th.contexts.follow.unwrap_or_else(|| self.context(tid));
        match process {
            // The stack, too, and nobody to follow.
            true => ThreadContexts {
                home,
                below: th.contexts.below.clone(),
                own: th.contexts.own,
                ..ThreadContexts::default()
            },
            false => ThreadContexts { home, leader: Some(tid), ..ThreadContexts::default() },
        }
    }

    /// Makes the header of `child`'s first slot what it has inherited from `creator`.
    pub(super) fn begin_contexts(&mut self, creator: Tid, child: Tid) {
        let (Some(th), Some(from)) = (self.threads.get(&child), self.threads.get(&creator)) else { return };
        let Some(p) = self.processes.get_mut(&th.pid) else { return };
        let pool = p.pool.borrow();
        if th.contexts.leader.is_none() {
            copy_header(&pool, from.slot, th.slot);
        }
        pool.set_slot_word(th.slot, SlotWord::Context, th.contexts.home);
        pool.set_slot_word(th.slot, SlotWord::ContextStops, 0);
        let home = th.contexts.home;
        drop(pool);
        p.books.of(home);
        self.settle_stops(creator);
    }

    /// Serves CG_PUSH_CONTEXT.
    pub(super) fn push_context(&mut self, t: Stopped, regs: Regs, rip: CacheAddr, context: u64) {
        if !self.settings.contexts {
            return go_on(t, regs, rip);
        }
        let tid = t.tid();
        let Some(th) = self.threads.get_mut(&tid) else { return };
        th.contexts.own = true;
        let leader = th.contexts.leader.take();
        let Some(p) = self.processes.get(&th.pid) else { return };
        {
            let pool = p.pool.borrow();
            // What it was about to follow came before.
            let before = th.contexts.follow.take().unwrap_or_else(|| pool.slot_word(th.slot, SlotWord::Context));
            let mut depth = pool.slot_word(th.slot, SlotWord::ContextDepth).min(CONTEXT_DEPTH);
            if depth == CONTEXT_DEPTH {
                // The lower half makes room.
                let half = CONTEXT_DEPTH / 2;
                th.contexts.below.extend((0..half).map(|n| pool.word(th.slot, CONTEXT_STACK + 8 * n)));
                let upper: Vec<u64> = (half..depth).map(|n| pool.word(th.slot, CONTEXT_STACK + 8 * n)).collect();
                pool.set_words(th.slot, CONTEXT_STACK, &upper);
                depth -= half;
            }
            pool.set_words(th.slot, CONTEXT_STACK + 8 * depth, &[before]);
            pool.set_slot_word(th.slot, SlotWord::ContextDepth, depth + 1);
        }
        if let Some(leader) = leader {
            self.settle_stops(leader);
            self.followed(tid);
        }
        self.change_context(t, regs, rip, context);
    }

    /// Serves CG_POP_CONTEXT.
    pub(super) fn pop_context(&mut self, t: Stopped, regs: Regs, rip: CacheAddr) {
        if !self.settings.contexts {
            return go_on(t, regs, rip);
        }
        let tid = t.tid();
        let Some(th) = self.threads.get_mut(&tid) else { return };
        let pid = th.pid;
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let context = {
            let pool = p.pool.borrow();
            let mut depth = pool.slot_word(th.slot, SlotWord::ContextDepth).min(CONTEXT_DEPTH);
            if depth == 0 {
                // Those that were taken from below come back.
                let from = th.contexts.below.len().saturating_sub(CONTEXT_DEPTH as usize / 2);
                let back = th.contexts.below.split_off(from);
                pool.set_words(th.slot, CONTEXT_STACK, &back);
                depth = back.len() as u64;
            }
            depth.checked_sub(1).map(|depth| {
                pool.set_slot_word(th.slot, SlotWord::ContextDepth, depth);
                pool.word(th.slot, CONTEXT_STACK + 8 * depth)
            })
        };
        match context {
            Some(context) => self.change_context(t, regs, rip, context),
            None => {
                if !std::mem::replace(&mut p.popped_too_many, true) {
                    let text = "CG_POP_CONTEXT without a CG_PUSH_CONTEXT before it: ignored, now and from here on";
                    self.session.notice(pid, Notice::Warning(text.into()));
                }
                go_on(t, regs, rip);
            }
        }
    }

    /// Serves the request for the number of a named context; 0 if there are no contexts.
    pub(super) fn name_context(&mut self, tid: Tid, name: u64) -> u64 {
        if !self.settings.contexts {
            return 0;
        }
        let Some(p) = self.process_of_mut(tid) else { return 0 };
        let Some(name) = p.memory.c_string(name, MAX_NAME) else { return 0 };
        let i = p.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            p.names.push(name);
            p.names.len() - 1
        });
        NAMED + i as u64
    }

    /// Books what `t` does from here on to `context`, and what those do that follow it; `regs` are its registers.
    fn change_context(&mut self, t: Stopped, regs: Regs, rip: CacheAddr, context: u64) {
        let tid = t.tid();
        let before = self.context(tid);
        let Some(t) = self.book_to(t, context) else { return };
        let mut regs = regs;
        regs.rip = rip.0;
        regs.gs_base = self.gs(tid);
        if t.set_regs(&regs).is_err() {
            return;
        }
        let followers = if context == before { Vec::new() } else { self.lead(tid, context) };
        // Where all threads stop to have their translations thrown away, they change before any of them goes on.
        if followers.is_empty() || self.is_flushing(tid) {
            t.go_on(How::Continue, 0);
        } else {
            self.held.insert(tid, Held { thread: t, followers });
        }
    }

    /// Settles on which slot `t` counts in `context`; its gs base is for the caller to set. `None` if it died over it.
    pub(super) fn book_to(&mut self, t: Stopped, context: u64) -> Option<Stopped> {
        let tid = t.tid();
        let Some(th) = self.threads.get(&tid) else { return Some(t) };
        let Some(p) = self.processes.get_mut(&th.pid) else { return Some(t) };
        p.books.of(context);
        let counted = th.counted_slot(p.counting) == Some(th.slot);
        let (header, home) = (th.slot, th.contexts.home);
        let known = if !counted || home == context {
            Some(header)
        } else {
            th.contexts.extra.iter().find(|(c, _)| *c == context).map(|(_, id)| *id)
        };
        let (t, slot) = match known {
            Some(slot) => (t, slot),
            None => self.new_context_slot(t, context)?,
        };
        let Some(p) = self.process_of(tid) else { return Some(t) };
        let changed = {
            let pool = p.pool.borrow();
            let base = pool.gs(slot);
            let before = pool.slot_word(header, SlotWord::Context);
            pool.set_words(header, entry(context), &[context, base]);
            pool.set_slot_word(header, SlotWord::Context, context);
            pool.set_slot_word(header, SlotWord::ContextBase, base);
            before != context
        };
        if changed {
            self.record_context(tid, true);
        }
        Some(t)
    }

    /// A slot for a context that `t` has none for: a new one, or one whose counts are put into the books.
    fn new_context_slot(&mut self, t: Stopped, context: u64) -> Option<(Stopped, SlotId)> {
        let tid = t.tid();
        let th = self.threads.get_mut(&tid)?;
        let p = self.processes.get_mut(&th.pid)?;
        let mut t = t;
        let taken = if th.contexts.extra.len() < MAX_SLOTS { p.pool.borrow_mut().take_alias() } else { None };
        if let Some(slot) = taken {
            let (from, to) = {
                let pool = p.pool.borrow();
                (pool.gs(th.slot), pool.gs(slot))
            };
            let gadget = p.code_cache.borrow().gadget;
            let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
            let shown = show_header(&mut remote, from, to);
            if shown && self.trace_channel.is_some() {
                trace::guard(&mut remote, to);
            }
            let Some(thread) = remote.thread.take() else {
                p.pool.borrow_mut().give_back_alias(slot);
                return None;
            };
            t = thread;
            if shown {
                th.contexts.extra.push((context, slot));
                return Some((t, slot));
            }
            p.pool.borrow_mut().give_back_alias(slot);
        }
        let (former, slot) = match th.contexts.extra.is_empty() {
            true => (std::mem::replace(&mut th.contexts.home, context), th.slot),
            false => {
                let (former, slot) = th.contexts.extra.remove(0);
                th.contexts.extra.push((context, slot));
                (former, slot)
            }
        };
        let counters = p.code_cache.borrow().trans.counters();
        let pool = p.pool.borrow();
        let book = p.books.of(former);
        pool.each_counter(slot, counters, |counter, n| book.add(counter, n));
        pool.clear_counters(slot, counters);
        if pool.word(th.slot, entry(former)) == former {
            pool.set_words(th.slot, entry(former), &[0, 0]);
        }
        Some((t, slot))
    }

    /// Tells the sink which context `tid` is in from here on. `changed`: it was in another one when it was last counted, so
    /// that the lines of its data cache are old now.
    pub(super) fn record_context(&mut self, tid: Tid, changed: bool) {
        let Some(slot) = self.threads.get(&tid).filter(|_| self.trace_channel.is_some()).map(|th| th.slot) else {
            return;
        };
        self.drain(tid, slot);
        let context = self.context(tid);
        let record = [grind_trace::CONTEXT_SITE, context as u32, (context >> 32) as u32];
        if let Some(p) = self.process_of(tid) {
            let pool = p.pool.borrow();
            pool.append_trace(slot, &record);
            // Until the first change, nothing is told of lines.
            let first = context != 0 && pool.slot_word(slot, SlotWord::ContextTime) == 0;
            if let Some(cache) = p.code_cache.borrow().trace.settings.accesses.filter(|_| changed || first) {
                pool.forget_lines(slot, cache);
            }
        }
    }

    /// Whether changes of context of `tid` have to stop: if others follow it.
    fn settle_stops(&mut self, tid: Tid) {
        let followed = self.threads.values().any(|th| th.contexts.leader == Some(tid) && !th.folded);
        if let Some(th) = self.threads.get(&tid).filter(|th| !th.folded)
            && let Some(p) = self.processes.get(&th.pid)
        {
            p.pool.borrow().set_slot_word(th.slot, SlotWord::ContextStops, followed.into());
        }
    }

    /// Asks all that follow `tid`, or one another up to it, to change to `context`; those are returned that cannot do so
    /// before they have stopped.
    fn lead(&mut self, tid: Tid, context: u64) -> Vec<Tid> {
        let (mut all, mut leaders) = (Vec::new(), vec![tid]);
        while let Some(leader) = leaders.pop() {
            for (&follower, th) in &self.threads {
                if th.contexts.leader == Some(leader) && !th.folded {
                    leaders.push(follower);
                    all.push(follower);
                }
            }
        }
        all.retain(|&follower| {
            let Some(th) = self.threads.get_mut(&follower) else { return false };
            if th.state != State::New {
                th.contexts.follow = Some(context);
                tracee::interrupt(follower);
                return true;
            }
            // It has not done anything yet.
            th.contexts.home = context;
            if let Some(p) = self.processes.get(&th.pid) {
                p.pool.borrow().set_slot_word(th.slot, SlotWord::Context, context);
            }
            false
        });
        all
    }

    /// Changes to the context that the thread which `t` follows has changed to, if that is still to be done.
    pub(super) fn follow_leader(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        let Some(th) = self.threads.get_mut(&tid) else { return Some(t) };
        let in_place = matches!(th.state, State::InPlace { .. });
        let Some(context) = th.contexts.follow.take() else { return Some(t) };
        self.call_stays_counted(tid, t.rip().ok()?);
        let t = self.book_to(t, context);
        if let Some(t) = &t
            && !in_place
            && let Ok(mut regs) = t.regs()
        {
            regs.gs_base = self.gs(tid);
            let _ = t.set_regs(&regs);
        }
        self.followed(tid);
        t
    }

    /// Nobody has to wait for `tid` any more.
    fn followed(&mut self, tid: Tid) {
        let mut free = Vec::new();
        for (&leader, held) in &mut self.held {
            held.followers.retain(|&f| f != tid);
            if held.followers.is_empty() {
                free.push(leader);
            }
        }
        for leader in free {
            if let Some(held) = self.held.remove(&leader) {
                held.thread.go_on(How::Continue, 0);
            }
        }
    }

    /// A thread has ended: nobody follows it or waits for it.
    pub(super) fn contexts_ended(&mut self, tid: Tid) {
        self.held.remove(&tid);
        self.followed(tid);
        let leader = self.threads.get_mut(&tid).and_then(|th| th.contexts.leader.take());
        if let Some(leader) = leader {
            self.settle_stops(leader);
        }
        for th in self.threads.values_mut().filter(|th| th.contexts.leader == Some(tid)) {
            th.contexts.leader = None;
        }
    }

    /// A fault in emitted code that reads what a client request asks for: it is none of the guest's, whose request would
    /// not read anything there natively. The stub behind it goes on.
    pub(super) fn request_is_elsewhere(&self, tid: Tid, regs: &mut Regs) -> bool {
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return false };
        let code_cache = code_cache.borrow();
        let Some(StateMapEntry::Request { stub }) = code_cache.trans.state_map_entry(CacheAddr(regs.rip)) else {
            return false;
        };
        regs.rip = (code_cache.trans.stubs[stub as usize].addr).0;
        *tracee::register(regs, 1) = self.slot_word(tid, SlotWord::T1);
        true
    }
}

/// Makes data lines, header and trace area of the slot at `to` show those of the slot at `from`.
fn show_header(remote: &mut Remote<'_>, from: u64, to: u64) -> bool {
    let mut show = |offset: u64, len: u64| {
        let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
        // With an old size of 0, shared memory is mapped once more.
        let at = [from + offset, 0, len, flags, to + offset, 0];
        remote.raw(libc::SYS_mremap, at) == Some(to + offset)
    };
    show(0, layout::COUNTERS) && show(layout::TRACE_AREA, layout::SLOT_SIZE - layout::TRACE_AREA)
}
