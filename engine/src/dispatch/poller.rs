//! Translating without stops: while a thread asks for new code again and again, grind is on another processor
//! and looks at its requests (`emit::request`) all the time, so that neither of them has to be stopped and woken for each.
//! What others ask for meanwhile is a stop.
//! Between such times, and where there is no other processor, or others want it, requests are stops as they always were.
//!
//! A stop costs both sides several microseconds, and its answer takes the program's caches from it; a request
//! costs what it takes to translate, and the other processor's time for as long as it goes on ([`IDLE`]).
//!
//! Invariants: `Listening` is 0 in every slot whenever a stop is dealt with, and while grind waits in the kernel; only the
//! ordinary is answered here (code that is known to be executable and cannot change, near a chunk of the cache), all else
//! stops.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use grind_code_cache::CodeCache;
use grind_codegen::request::TAKEN;
use grind_fragments::fragment_table::StubKind;
use grind_guest::process::State;
use grind_layout::shared_memory::SharedMemory;
use grind_layout::{SlotWord, TARGET};
use grind_ptrace::{self as tracee, Wait};
use grind_session::Beside;
use grind_trace::follow::CallContextId;
use grind_types::Tid;
use grind_types::addr::{CacheAddr, GuestAddr};

use super::Dispatcher;

/// So many stops in a row begin it.
const STOPS: u32 = 3;
/// In a row are stops with less than this between them.
const SOON: Duration = Duration::from_micros(500);
/// Without a request for so long, it ends.
const IDLE: Duration = Duration::from_micros(400);
/// Whoever looks for requests all the time, and has not done so for this long, has had to leave the processor to others.
const GAP: Duration = Duration::from_millis(1);
/// How long others are left alone then.
const PAUSE: Duration = Duration::from_millis(500);
/// How long they are if it is known beforehand that they want it.
const BUSY: Duration = Duration::from_millis(5);
/// Looks at the request between looks at the clock, and at what has stopped.
const TURNS: u32 = 32;

/// How requests are dealt with at present.
#[derive(Debug, Default)]
pub(super) struct Poller {
    /// Stops in a row that could have been requests, and the time of the last one.
    stops: u32,
    last: Option<Instant>,
    /// Whose the last one was.
    asker: Option<Tid>,
    /// Grind is on another processor than the program.
    aside: bool,
    /// Not before this.
    not_before: Option<Instant>,
    /// How many threads of the system want to run.
    load: Option<File>,
}

impl Poller {
    /// Whether more threads want to run than there are processors.
    fn is_busy(&mut self, processors: usize) -> bool {
        if self.load.is_none() {
            self.load = File::open("/proc/loadavg").ok();
        }
        let mut text = [0; 64];
        let Some(n) = self.load.as_ref().and_then(|f| f.read_at(&mut text, 0).ok()) else { return false };
        // 0.20 0.18 0.12 2/75 11206: the first number of the fourth word.
        let text = std::str::from_utf8(&text[..n]).unwrap_or_default();
        let running = text.split(' ').nth(3).and_then(|w| w.split('/').next()?.parse().ok());
        running.unwrap_or(0) > processors
    }
}

impl Dispatcher<'_> {
    /// A request had to stop.
    pub(super) fn not_polled(&mut self, tid: Tid) {
        let now = Instant::now();
        let a = &mut self.poller;
        let in_a_row = a.last.is_some_and(|last| now - last < SOON);
        a.stops = if in_a_row { a.stops + 1 } else { 1 };
        a.last = Some(now);
        a.asker = Some(tid);
    }

    /// What the stub wants that `tid` has come from. It does not wait for an answer any more.
    pub(super) fn asked_for(&mut self, tid: Tid) -> Option<StubKind> {
        let slot = self.threads.get(&tid)?.slot;
        self.process_of(tid)?.pool.borrow().set_slot_word(slot, SlotWord::Answer, 0);
        let number = self.slot_word(tid, SlotWord::Request) as u32;
        let (code_cache, _) = self.code_cache_and_state(tid)?;
        let code_cache = code_cache.borrow();
        code_cache.trans.stubs.get(number as usize).map(|s| s.kind)
    }

    fn header(&self, tid: Tid) -> Option<Rc<SharedMemory>> {
        let slot = self.threads.get(&tid)?.slot;
        self.process_of(tid)?.pool.borrow().header(slot)
    }

    /// Grind may run anywhere again.
    pub(super) fn beside_no_more(&mut self) {
        self.poller.aside = false;
    }

    /// Answers requests for as long as they come often; returns what has stopped meanwhile. `None`: they do not.
    pub(super) fn poll(&mut self) -> Option<Wait> {
        if !self.poller.aside {
            let now = Instant::now();
            let a = &mut self.poller;
            match self.settings.beside {
                Beside::Never => return None,
                Beside::Always => {}
                Beside::WhenWorthwhile => {
                    if a.stops < STOPS || a.not_before.is_some_and(|t| now < t) {
                        return None;
                    }
                    a.stops = 0;
                    if a.is_busy(self.pin.processors()) {
                        a.not_before = Some(now + BUSY);
                        return None;
                    }
                }
            }
        }
        let stopped = self.poll_aside();
        if stopped.is_none() && std::mem::take(&mut self.poller.aside) {
            self.step_back();
        }
        stopped
    }

    fn poll_aside(&mut self) -> Option<Wait> {
        let tid = match (&self.pin, self.poller.aside) {
            (super::affinity::Pin::Together { tid, .. }, true) => *tid,
            (_, true) => return None,
            (_, false) => match self.step_aside() {
                Some(tid) => tid,
                // Several threads: the kernel has found another processor for the one that goes on.
                None if self.threads.len() > 1 && self.pin.processors() > 1 => self.poller.asker?,
                None => {
                    self.poller.not_before = Some(Instant::now() + PAUSE);
                    return None;
                }
            },
        };
        self.poller.aside = self.pin.is_together();
        let (code_cache, state) = self.code_cache_and_state(tid)?;
        if state != State::Cache {
            return None;
        }
        let header = self.header(tid)?;
        header.store_u64(SlotWord::Listening as usize, 1);
        let stopped = self.wait_for_request(tid, &code_cache, &header);
        header.store_u64(SlotWord::Listening as usize, 0);
        stopped
    }

    fn wait_for_request(
        &mut self,
        tid: Tid,
        code_cache: &Rc<RefCell<CodeCache>>,
        header: &SharedMemory,
    ) -> Option<Wait> {
        let mut seen = Instant::now();
        let mut last = seen;
        let mut turns = 0;
        loop {
            if header.load_u64(SlotWord::Posted as usize) != 0
                && header.replace_u64(SlotWord::Posted as usize, 1, TAKEN)
            {
                let entry = self.answer(tid, code_cache, header);
                let stop =
                    || code_cache.borrow().chunks.iter().find_map(|c| c.requests).map_or(CacheAddr(0), |r| r.stop());
                header.store_u64(SlotWord::Posted as usize, 0);
                header.store_u64(SlotWord::Answer as usize, entry.unwrap_or_else(stop).0);
                entry?;
                if self.full.is_some() {
                    return Some(Wait::Interrupted);
                }
                last = Instant::now();
                turns = 0;
                continue;
            }
            turns += 1;
            if turns < TURNS {
                std::hint::spin_loop();
                continue;
            }
            turns = 0;
            if let Some(stopped) = tracee::wait_any_now() {
                return Some(stopped);
            }
            let now = Instant::now();
            if now - seen.max(last) > GAP && self.settings.beside == Beside::WhenWorthwhile {
                self.poller.not_before = Some(now + PAUSE);
                return None;
            }
            if now - last > IDLE {
                return None;
            }
            code_cache.borrow_mut().make_room_ahead();
            self.read_ahead(tid);
            seen = now;
        }
    }

    /// Does what is asked for; returns where the guest goes on. `None`: that takes a stop.
    fn answer(&mut self, tid: Tid, code_cache: &Rc<RefCell<CodeCache>>, header: &SharedMemory) -> Option<CacheAddr> {
        let number = header.load_u64(SlotWord::Request as usize) as u32;
        let kind = code_cache.borrow().trans.stubs.get(number as usize)?.kind;
        let (target, call_context) = match kind {
            StubKind::Exit { target, call_context, .. } => (target, call_context),
            StubKind::IblMiss { .. } => (GuestAddr(header.load_u64(TARGET as usize)), CallContextId::NONE),
            StubKind::Transfer { .. } => return self.follow_asked(tid, kind),
            _ => return None,
        };
        let known = code_cache.borrow().trans.lookup(target, call_context);
        let id = match known {
            Some(id) => id,
            None => {
                let pid = self.process_of(tid)?.pid;
                if !code_cache.borrow().is_ordinary(target) {
                    return None;
                }
                self.note_made(tid, code_cache, target);
                let p = self.process_of(tid)?;
                let id = code_cache.borrow_mut().translate(target, call_context, &p.memory)?;
                if code_cache.borrow().is_full() {
                    self.full = Some(pid);
                }
                id
            }
        };
        match kind {
            StubKind::Exit { site, .. } => {
                code_cache.borrow_mut().link(site, id);
                self.look_ahead(tid, target, None);
            }
            StubKind::IblMiss { way } => {
                code_cache.borrow_mut().add_ibl_target(id, way);
                self.look_ahead(tid, target, Some(way));
            }
            _ => {}
        }
        let entry = code_cache.borrow().trans.block(id).entry;
        Some(entry)
    }
}
