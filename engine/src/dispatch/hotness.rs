//! When it pays to translate a program once more: while it runs, a look now and then at how much has been executed tells
//! whether enough is known of where it goes (`grind_fragments::hotness`). Then its translations are thrown away (`dispatch::flush`), and those
//! of hot code are laid out, and counted, by what was learnt. Only where calls are not recorded, and the code is one address
//! space's alone. Counts are the same either way, and so are the states of caches and predictors, which stay.

use std::rc::Rc;
use std::time::{Duration, Instant};

use grind_code_cache::flush::HOT;
use grind_ptrace::tick::Ticks;
use grind_session::Settings;
use grind_types::Pid;

use super::Dispatcher;
use super::flush::Reason;

/// Time until the first look.
const FIRST: Duration = Duration::from_millis(80);

/// The longest time between two.
const LONGEST: Duration = Duration::from_secs(5);

/// Steps for each hot counter, from which on it pays: to translate such a block again takes one or two microseconds, and what
/// that saves, in as much time again as the steps have taken, is about a quarter of a nanosecond each.
const PAYS: u64 = 12_000;

/// The same where code changes: whoever makes code while the program runs has laid it out by what it has seen, and may soon
/// throw it away.
const PAYS_LATER: u64 = 8 * PAYS;

/// With fewer steps than this asked for, it is not asked what pays, and looked at whenever something has stopped: for tests.
const AT_ONCE: u64 = 1 << 20;

/// But not before this, and a sixteenth of the time so far, after the last time, or else who stops all the time does nothing but have
/// its code made anew.
const AT_ONCE_AGAIN: Duration = Duration::from_millis(2);

/// So many times as much as at the last time must have been counted before it is worthwhile again: a program may do something
/// else by then.
const AGAIN: u64 = 6;

/// With more threads than this, nobody is interrupted for it.
const THREADS: usize = 64;

/// When the next look is due.
#[derive(Debug)]
pub(super) struct HotnessSampler {
    begun: Instant,
    /// `None`: never.
    due: Option<Instant>,
    /// The shortest time between two, at present.
    pause: Duration,
    ticks: Option<Ticks>,
    /// Sums of counters. Kept, because memory that is touched for the first time takes longer than the look itself.
    counted: Vec<u64>,
}

impl HotnessSampler {
    /// From now on, where it may ever pay.
    pub(super) fn begin(settings: &Settings) -> Self {
        let begun = Instant::now();
        let never = Self { begun, due: None, pause: FIRST, ticks: None, counted: Vec::new() };
        if settings.hot_after == 0 || settings.trace.calls.is_some() {
            return never;
        }
        let mut ticks = Ticks::new();
        if let Some(ticks) = &mut ticks {
            ticks.set(FIRST);
        }
        let first = if settings.hot_after < AT_ONCE { Duration::ZERO } else { FIRST };
        Self { due: Some(begun + first), ticks, ..never }
    }

    fn is_due(&self) -> bool {
        self.due.is_some_and(|due| Instant::now() >= due)
    }

    /// There has been a look, and so much of the steps that it takes had been made. The next one is half way to where there
    /// will be enough if things go on as before, but not much later than now: a look at all counters takes a millisecond or two,
    /// and whoever asks for code meanwhile waits.
    fn looked(&mut self, share: f64) {
        let now = Instant::now();
        let so_far = now - self.begun;
        let half_way = (1.0 / share.clamp(0.01, 1.0) - 1.0) / 2.0;
        let most = so_far.clamp(self.pause, LONGEST);
        let pause = so_far.mul_f64(half_way).clamp(self.pause, most);
        self.due = Some(now + pause);
        if let Some(ticks) = &mut self.ticks {
            ticks.set(pause);
        }
        self.pause = (self.pause + self.pause / 8).min(LONGEST);
    }
}

impl Dispatcher<'_> {
    /// If it is time for that, begins anew where enough is known.
    pub(super) fn look_for_hotness(&mut self) {
        let after = self.settings.hot_after;
        let at_once = after < AT_ONCE;
        if !self.hotness_sampler.is_due() {
            return;
        }
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        let mut counted = std::mem::take(&mut self.hotness_sampler.counted);
        let mut nearest = 0.0;
        for pid in pids {
            let Some(p) = self.processes.get(&pid) else { continue };
            let code_cache = p.code_cache.clone();
            if !p.counting
                || p.books.many()
                || p.threads.len() > THREADS
                || Rc::strong_count(&p.mm) > 1
                || code_cache.borrow().users > 1
            {
                continue;
            }
            let counters = code_cache.borrow().trans.counters();
            counted.clear();
            for th in p.threads.iter().filter_map(|tid| self.threads.get(tid)).filter(|th| !th.folded) {
                p.pool.borrow().add_counters(th.slot, counters, &mut counted);
            }
            let hot = counted.iter().filter(|n| **n >= HOT).count() as u64;
            let sum = counted.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
            let pays = hot * if code_cache.borrow().any_self_modifying() { PAYS_LATER } else { PAYS };
            let due = if at_once { after } else { code_cache.borrow().hotness_due.max(after).max(pays) };
            if sum >= due && self.begin_flush(pid, Reason::Speed) {
                code_cache.borrow_mut().hotness_due = sum.saturating_mul(AGAIN);
                if at_once {
                    let now = Instant::now();
                    let pause = (now - self.hotness_sampler.begun) / 16;
                    self.hotness_sampler.due = Some(now + pause.max(AT_ONCE_AGAIN));
                }
            } else {
                nearest = f64::max(nearest, sum as f64 / due as f64);
            }
        }
        self.hotness_sampler.counted = counted;
        if !at_once {
            self.hotness_sampler.looked(nearest);
        }
    }
}
