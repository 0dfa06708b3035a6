//! Throwing all translations away, so that a program whose code is very large, or is written anew for hours, uses bounded
//! memory. Only for a space that one address space uses, while all its threads are stopped at guest addresses: nothing may
//! point into the code cache any more, and all counts must have been taken.
//!
//! What stays: chunks and tables themselves (empty), the gadget, the stubs behind empty entries, what is known of the
//! guest's mappings and of pages that are protected, and the numbers of places that write records.

use grind_asm::Asm;
use grind_codegen::{miss_path, stack};
use grind_fragments::fragment_table::{FragmentTable, Way};
use grind_layout as layout;
use grind_ptrace::Memory;
use grind_trace::TraceSettings;
use grind_trace::follow::CallContextId;
use grind_types::addr::CacheAddr;
use grind_types::subject;

use super::CodeCache;
use super::dead::DeadStops;

/// Bytes at the beginning of the first chunk that are no translations; the miss paths of caches follow, if there are any.
pub(super) const FIRST_USED: u64 = 64;

/// Where the first chunk has the stubs behind empty entries.
pub(super) const EMPTY_ENTRIES: [(Way, u64); 4] =
    [(Way::Jump, 16), (Way::Return, 24), (Way::Call, 46), (Way::Paired, 56)];

/// A block that has been executed so often is one of hot code.
pub const HOT: u64 = 16;

impl CodeCache {
    /// Whether there is so much code, or so few counters are left, that the translations should be thrown away; or calls are to
    /// be made otherwise from now on.
    pub fn is_full(&self) -> bool {
        self.trans.counters() > layout::MAX_COUNTERS / 8 * 7 || self.code_bytes() > self.code_limit || self.pairs_due
    }

    /// So much is executable that calls and returns should be pairs, from the next translations on.
    pub(super) fn pair(&mut self) {
        if self.trans.blocks.is_empty() {
            self.pairs = true;
            self.empty_tables();
        } else {
            self.pairs_due = true;
        }
    }

    /// Bytes of translations, dead ones included.
    pub(crate) fn code_bytes(&self) -> u64 {
        self.chunks.iter().map(|c| c.used).sum()
    }

    /// See the module's description.
    pub fn flush(&mut self) {
        debug_assert!(self.users == 1);
        log::debug!(target: subject::FLUSH, "{} bytes of code go", self.code_bytes());
        self.pairs |= std::mem::take(&mut self.pairs_due);
        // Those, and that of unmatched returns.
        self.trans.flush(EMPTY_ENTRIES.len() + 1);
        self.chains.clear();
        self.ibl_targets.clear();
        self.incoming.clear();
        self.waiting = super::Waiting::default();
        self.dead_stops = DeadStops::default();
        self.fresh.clear();
        self.fixed.get_mut().forget_users();
        self.code.clear();
        for i in 0..self.chunks.len() {
            self.chunks[i].used = if i == 0 { self.trace.miss_paths_end.max(FIRST_USED) } else { 0 };
            self.place_requests(i);
        }
        self.empty_tables();
    }

    /// Takes note of how often blocks have been executed, before they are thrown away: `counts` are those of the blocks.
    pub fn learn_hotness(&mut self, counts: &[u64]) {
        let FragmentTable { hotness, blocks, .. } = &mut self.trans;
        for (b, &n) in blocks.iter().zip(counts).filter(|(_, n)| **n != 0) {
            hotness.note(b.pc, b.end(), n);
        }
    }

    /// Translates what is hot at once, the hottest first, so that it stands together, and nothing has to stop for it. `memory`
    /// is that of the only address space.
    pub fn translate_hot(&mut self, memory: &Memory) {
        for pc in self.trans.hotness.hot(HOT) {
            if self.is_full() || self.trans.counters() > layout::MAX_COUNTERS / 2 {
                break;
            }
            if !self.trans.begins(pc, CallContextId::NONE) && self.is_ordinary(pc) {
                self.translate(pc, CallContextId::NONE, memory);
            }
        }
        self.link_waiting();
    }

    /// What is translated from now on records what there is to be recorded, or is plain. There are no translations, and all
    /// threads are elsewhere.
    pub fn record(&mut self, on: bool) {
        let trace = &mut self.trace;
        if on != trace.plain() {
            return;
        }
        trace.settings = if on { trace.recorded } else { TraceSettings::default() };
        let recorded = trace.recorded.system_calls;
        if on {
            // Where calls are recorded, translations neither have pairs nor know any.
            self.pairs &= trace.settings.calls.is_none();
            self.pairs_due = false;
        }
        if recorded {
            self.stop_before_all_calls(on);
        }
        self.home.take(self.trace.settings.stolen_registers());
        self.ask_as_settings_say();
    }

    /// Whether calls have been told for long enough, and are to be followed.
    pub fn follows_now(&self) -> bool {
        let (Some(since), Some(calls)) = (self.trace.told_since, self.trace.recorded.calls) else { return false };
        let sites = self.trans.trace_sites.len() as u64;
        calls.told_first.is_over(since.elapsed(), self.trace.told_words, sites)
    }

    /// From now on calls are followed, or told, where anything is recorded. There are no translations, and all threads are elsewhere.
    pub fn follow_calls(&mut self, on: bool) {
        if self.trace.plain() {
            return;
        }
        for settings in [&mut self.trace.settings, &mut self.trace.recorded] {
            if let Some(calls) = &mut settings.calls {
                calls.followed = on;
            }
        }
        self.home.take(self.trace.settings.stolen_registers());
        self.ask_as_settings_say();
        // Threads know where the miss paths are: those that tell no frames are shorter, and take their places.
        let frames = stack::frames_told(&self.trace.settings);
        let Some(chunk) = self.chunks.first_mut() else { return };
        for (at, emit) in self.trace.miss_paths.into_iter().zip(miss_path::all(&self.trace.settings, frames)) {
            let Some(emit) = emit else { continue };
            let mut code = Asm { buf: Vec::new(), base: at.0 };
            emit(&mut code);
            chunk.host.write(at.since(chunk.guest) as usize, &code.buf);
        }
    }

    /// Code is asked for as the settings say now. There are no translations.
    pub(super) fn ask_as_settings_say(&mut self) {
        (0..self.chunks.len()).for_each(|i| self.place_requests(i));
        self.empty_tables();
    }

    /// Lets every indirect branch stop.
    pub(super) fn empty_tables(&self) {
        if self.chunks.is_empty() {
            return;
        }
        for (way, _) in EMPTY_ENTRIES {
            if matches!(way, Way::Call | Way::Paired) && !self.pairs {
                continue;
            }
            self.tables.fill(way.table() as usize, self.empty_entry(way).0, way.entries() as usize);
        }
    }

    /// Where an entry leads that has no IBL target.
    pub(super) fn empty_entry(&self, way: Way) -> CacheAddr {
        let first = &self.chunks[0];
        let stub =
            || EMPTY_ENTRIES.iter().find(|(w, _)| *w == way).map_or(CacheAddr(0), |(_, at)| first.guest.plus(*at));
        first.requests.map_or_else(stub, |r| r.miss(way))
    }
}
