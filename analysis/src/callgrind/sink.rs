//! The analysing end of the trace: drives the model of the call graph with what the guest's threads tell.
//!
//! It runs on a thread of its own, beside the program. Every executed block and every transfer of control is told in program
//! order; what a block costs is known from its instructions. Invariants: a cost is added to a thread's totals and booked on
//! the running function at the same time, so that self costs and totals agree; a process's findings are complete when the
//! engine reports its end, and are written by then.

mod by_object;
mod cache_lines;
mod chains;
mod followed;
mod framed;
mod functions;
mod last_level;
mod meaning;
mod mirrored;
mod misses;
mod objects;
mod peek;
mod process;
mod processes;
mod simulated;
mod thread;
mod through;
mod used;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use cg_calls::Config;
use cg_format::callgrind::{EventSet, SystemTime};
use cg_sim::{Geometries, Levels};
use grind_names::made::Registry;
use grind_names::opened::Opened;
use grind_trace::follow;
use grind_trace::{Block, Handler, NativeFrame, Sink, Site, SpaceId, Special, SystemCall};
use grind_types::frames::FrameFunction;
use grind_types::{Module, Pid, Query, Tid, fault};

use super::code::Catalogue;
use super::columns::Columns;
use super::dump_service::DumpService;
use super::parts::Trigger;
use super::settings::{CacheUse, ForkCosts, Settings, Threads};
use crate::cycles::Pricing;
use by_object::ByObject;
pub use by_object::Wanted;
use cache_lines::Used;
use grind_objects::Images;
use grind_session::broken;
use last_level::Simulated;
use process::{Process, lock};
use processes::{Fork, Processes};
use thread::{Idle, Thread};

/// A set of translations.
#[derive(Clone, Debug, Default)]
struct Space {
    sites: Vec<Site>,
    specials: Vec<Special>,
    blocks: Vec<Block>,
    /// What was mapped, and then was mapped next, and so on: the last of them, which not every process may have seen.
    maps: VecDeque<Mapped>,
    /// How many there have been before those.
    forgotten: usize,
    /// If emitted code follows calls.
    functions: functions::Functions,
    /// Files that are mapped, if data objects are asked for.
    images: Images,
}

/// What is mapped.
#[derive(Clone, Debug)]
struct Mapped {
    /// How many blocks and sites had been told of before: they are of what was mapped then.
    known: (usize, usize),
    modules: Arc<[Module]>,
}

impl Space {
    /// How many times what is mapped has been told.
    fn version(&self) -> usize {
        self.forgotten + self.maps.len()
    }

    /// What has been told since it was the `version`th time.
    fn since(&self, version: usize) -> impl Iterator<Item = &Mapped> {
        self.maps.iter().skip(version.saturating_sub(self.forgotten))
    }

    /// Everybody has seen so many of them. (The last one stays: it says what is mapped.)
    fn seen(&mut self, version: usize) {
        while self.maps.len() > 1 && self.forgotten < version {
            self.maps.pop_front();
            self.forgotten += 1;
        }
    }
}

/// See the module's description.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    opened: Opened,
    config: Config,
    columns: Columns,
    /// What each process begins with.
    simulated: Option<Simulated>,
    used: Option<Used>,
    /// If data objects are asked for.
    objects: Option<Wanted>,
    spaces: HashMap<SpaceId, Space>,
    processes: Processes,
    dump_service: DumpService,
    made: Registry,
    /// If cycles are estimated.
    pricing: Option<Pricing>,
    /// What processes have asked to be skipped: programs that they execute inherit it.
    skipped: HashMap<Pid, Vec<Vec<u8>>>,
}

impl Recorder {
    /// A recorder of these events that hands parts to `dump_service`. Names are those of what is `opened`; `caches` are simulated, and
    /// beyond the first level `levels`, if that is more than the last level of `caches`.
    #[must_use]
    pub fn new(
        settings: Settings,
        opened: Opened,
        events: EventSet,
        (caches, levels): (Option<&Geometries>, Option<&Levels>),
        dump_service: DumpService,
    ) -> Self {
        let columns = Columns::of(events);
        let gated = settings.followed();
        let chains = settings.whole_chains.then_some(settings.chain_limit);
        let config = Config { contexts: true, gated, kept: columns.kept(), chains, ..settings.config(columns.stride) };
        let used = caches.filter(|_| columns.uses.is_some()).and_then(|caches| {
            // Whoever asks for it has been told if it cannot be done.
            Used::new(caches, columns, settings.cache_use == CacheUse::SelfOnly, settings.uses_kept).ok()
        });
        let simulated = (columns.records() && used.is_none()).then(|| Simulated::new(&settings, caches, levels));
        let (spaces, processes) = (HashMap::new(), Processes::default());
        let made = Registry::default();
        Self {
            settings,
            opened,
            config,
            columns,
            simulated,
            used,
            objects: None,
            spaces,
            processes,
            dump_service,
            made,
            pricing: None,
            skipped: HashMap::new(),
        }
    }

    /// Names of code that programs make while they run are those of `made`.
    #[must_use]
    pub fn with_made(self, made: Registry) -> Self {
        Self { made, ..self }
    }

    /// Data objects are found, if that is `wanted`: they need records of misses, or of nothing but what allocators do.
    #[must_use]
    pub fn with_objects(self, wanted: Option<Wanted>) -> Self {
        let mut used = self.used;
        used.iter_mut().for_each(|used| used.by_object = wanted.as_ref().is_some_and(|wanted| wanted.misses));
        Self { objects: wanted, used, ..self }
    }

    /// Cycles are estimated by `pricing`, if there is one.
    #[must_use]
    pub fn with_pricing(self, pricing: Option<Pricing>) -> Self {
        Self { pricing, ..self }
    }
}

impl Sink for Recorder {
    fn sites(&mut self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        let space = self.spaces.entry(space).or_default();
        space.sites.extend_from_slice(sites);
        space.specials.extend_from_slice(specials);
    }

    fn blocks(&mut self, space: SpaceId, blocks: &[Block]) {
        self.spaces.entry(space).or_default().blocks.extend_from_slice(blocks);
    }

    fn mapped(&mut self, space: SpaceId, modules: &[Module]) {
        let seen = self.processes.version(space);
        let space = self.spaces.entry(space).or_default();
        space.seen(seen.unwrap_or(usize::MAX));
        let known = (space.blocks.len(), space.sites.len());
        space.maps.push_back(Mapped { known, modules: modules.into() });
        if let Some(wanted) = &mut self.objects {
            space.images = wanted.images.of(modules);
        }
    }

    fn code_made(&mut self, pid: Pid, moment: u32) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        if let Some(space) = self.spaces.get(&p.space) {
            p.learn_space(space, &mut catalogue, self.config.costs);
        }
        if catalogue.code_made(moment) {
            p.code_replaced();
        }
    }

    fn frame_code(&mut self, pid: Pid, code: u64, function: Option<FrameFunction>) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        p.codes.learn(code, function, &mut lock(&catalogue));
    }

    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let copy = self.spaces.get(&from).cloned().unwrap_or_default();
        self.spaces.insert(to, copy);
    }

    fn image(&mut self, pid: Pid, space: SpaceId) {
        let mut settings = self.settings.clone();
        settings.obj_skip.extend(self.skipped.get(&pid).cloned().unwrap_or_default());
        let catalogue = Catalogue::new(settings, self.opened.clone()).with_made(self.made.clone(), pid);
        let catalogue = catalogue.with_pricing(self.pricing.clone());
        let by_object = self.objects.as_ref().map(ByObject::new);
        let mut process =
            Process::new(space, catalogue, self.columns, self.simulated.clone(), self.used.clone(), by_object);
        process.by_kernel = self.settings.threads() == Threads::ByKernel;
        process.thread(Tid::main_of(pid), &self.config);
        if let Some(simulated) = &process.simulated {
            simulated.prefer_large_pages();
        }
        self.processes.begin(pid, process);
    }

    fn moved(&mut self, pid: Pid, space: SpaceId) {
        if let Some(p) = self.processes.get_mut(pid) {
            p.space = space;
        }
    }

    fn forked(&mut self, parent: Pid, tid: Tid, child: Pid) {
        let zero = self.settings.fork_costs() == ForkCosts::Zero;
        let Some(p) = self.processes.get_mut(parent) else { return };
        p.spawned.extend(zero.then_some(child));
        self.processes.fork(Fork {
            parent,
            tid,
            child,
            anew: zero || self.settings.tree,
            followed: self.settings.followed(),
            config: self.config.clone(),
            made: self.made.clone(),
            dump_service: self.dump_service.clone(),
        });
        if let Some(skipped) = self.skipped.get(&parent).cloned() {
            self.skipped.insert(child, skipped);
        }
    }

    fn records(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        fault::point("records");
        let Some(p) = self.processes.get_mut(pid) else { return };
        let Some(space) = self.spaces.get(&p.space) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        p.learn_space(space, &mut catalogue, self.config.costs);
        p.by_object.iter_mut().for_each(|by_object| by_object.objects.thread(tid));
        let t = p.thread(tid, &self.config);
        // What is told goes on whether or not it is collected.
        t.calls.gate(false, &t.now);
        let mut rest = words;
        loop {
            let every = self.settings.dump_every_bb;
            if every > 0 {
                p.dump_after_blocks(pid, tid, every, &mut catalogue, &self.dump_service);
            }
            if rest.is_empty() {
                return;
            }
            rest = if p.used.is_some() {
                p.follow_used(tid, &mut catalogue, space, rest)
            } else if p.simulated.is_some() {
                p.follow_simulated(tid, &mut catalogue, space, rest)
            } else {
                p.follow(tid, &mut catalogue, rest)
            };
            p.requests(pid, tid, &mut catalogue, &self.dump_service);
        }
    }

    fn objects(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        let by_object = self.processes.get_mut(pid).and_then(|p| p.by_object.as_mut());
        let Some(objects) = by_object.map(|by_object| &mut by_object.objects) else { return };
        objects.thread(tid);
        let mut rest = words;
        while let Some(after) = objects.record(rest) {
            rest = after;
            // Nothing is counted there.
            let _ = objects.allocated();
        }
    }

    fn stack(&mut self, pid: Pid, tid: Tid, range: Range<u64>) {
        if let Some(p) = self.processes.get_mut(pid) {
            p.stack_lies(tid, range);
        }
    }

    fn system_call(&mut self, pid: Pid, tid: Tid, call: &SystemCall) {
        let Some(unit) = self.settings.collect_systime else { return };
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        p.learn_space(self.spaces.get(&p.space).unwrap_or(&Space::default()), &mut catalogue, self.config.costs);
        // A call counts if it begins while the thread is instrumented, up to where it is not any more.
        let t = p.thread(tid, &self.config);
        if !t.recording || !(call.begins || t.in_counted_call) {
            return;
        }
        t.in_counted_call = !call.ends;
        if !std::mem::replace(&mut t.begun, true) {
            t.calls.begin(&mut *catalogue, call.addr.0);
        }
        let counter = p.single_counter(&mut catalogue, call.addr.0);
        let t = p.thread(tid, &self.config);
        let nanoseconds = match unit {
            SystemTime::Milliseconds => 1_000_000,
            SystemTime::Microseconds => 1000,
            SystemTime::Nanoseconds => 1,
        };
        // What remains below a unit counts with the next call.
        let Some(first) = self.columns.system_calls else { return };
        let followed = self.settings.followed();
        t.spend(followed, counter, first, u64::from(call.begins));
        for (i, time) in [call.elapsed, call.processor].into_iter().enumerate().take(self.columns.width - first - 1) {
            let before = t.in_calls[i];
            t.in_calls[i] += time;
            t.spend(followed, counter, first + 1 + i, t.in_calls[i] / nanoseconds - before / nanoseconds);
        }
    }

    fn corrected(&mut self, pid: Pid, tid: Tid, block: u32, counted: usize, executed: usize) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let Some(space) = self.spaces.get(&p.space) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        let (width, followed) = (self.config.costs, self.settings.followed());
        p.learn_space(space, &mut catalogue, width);
        p.thread(tid, &self.config);
        let Some(all) = space.blocks.get(block as usize) else { return };
        let counters = [counted, executed].map(|n| (n > 0).then(|| p.head(&mut catalogue, block, n, all)));
        let Some(t) = p.threads.get_mut(&tid) else { return };
        if !t.begun {
            t.begun = true;
            t.calls.begin(&mut *catalogue, all.instructions[0].addr.0);
        }
        let before = t.now.clone();
        // Otherwise they stand still.
        let moves = !followed || t.calls.collecting();
        let [ends, ended] = counters.map(|counter| counter.map_or(0, |counter| p.counters[counter as usize].ends));
        t.blocks = t.blocks.wrapping_sub(ends.into()).wrapping_add(ended.into());
        for (counter, sign) in counters.into_iter().zip([-1i64, 1]) {
            let Some(counter) = counter else { continue };
            t.calls.correct(counter, sign);
            if !moves {
                continue;
            }
            for (now, cost) in t.now.iter_mut().zip(&p.costs[counter as usize * width..][..width]) {
                *now = now.wrapping_add_signed(sign * *cost as i64);
            }
        }
        if let (Some(used), Some(of_thread)) = (&p.used, &mut t.used) {
            used.corrected(of_thread, all, counted, executed);
        }
        if followed {
            t.calls.correct_skipped(&before, &t.now);
        }
    }

    fn signal_begins(&mut self, pid: Pid, tid: Tid, handler: &Handler) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        if let Some(space) = self.spaces.get(&p.space) {
            p.learn_space(space, &mut catalogue, self.config.costs);
        }
        let t = p.thread(tid, &self.config);
        if let Some(idle) = t.idle.as_mut().filter(|_| !t.recording) {
            let Idle { calls, now } = &mut **idle;
            calls.signal_enter(&mut *catalogue, handler.addr.0, handler.sp, handler.stack.clone(), now);
        } else if t.recording && t.begun {
            t.calls.signal_enter(&mut *catalogue, handler.addr.0, handler.sp, handler.stack.clone(), &t.now);
            if !self.settings.followed() {
                p.requests(pid, tid, &mut catalogue, &self.dump_service);
            }
        }
    }

    fn requests_wait(&mut self, pid: Pid, tid: Tid) -> bool {
        let t = self.processes.get_mut(pid).and_then(|p| p.threads.get(&tid));
        t.is_some_and(|t| t.calls.has_request())
    }

    fn serve_requests(&mut self, pid: Pid, tid: Tid) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        p.requests(pid, tid, &mut lock(&catalogue), &self.dump_service);
    }

    fn signal_ends(&mut self, pid: Pid, tid: Tid) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        if let Some(t) = p.threads.get_mut(&tid) {
            match t.idle.as_mut().filter(|_| !t.recording) {
                Some(idle) => idle.calls.signal_leave(&idle.now),
                None => t.calls.signal_leave(&t.now),
            };
            if !self.settings.followed() {
                p.requests(pid, tid, &mut catalogue, &self.dump_service);
            }
        }
    }

    fn recording(&mut self, pid: Pid, tid: Tid, on: bool) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        let t = p.thread(tid, &self.config);
        t.recording = on;
        t.frames.clear();
        if !on {
            t.through = None;
            t.in_counted_call = false;
            t.count_after_all();
            if let Some(simulated) = &mut p.simulated {
                simulated.empty_caches();
            }
            p.empty_used(tid);
        }
        let followed = self.settings.followed();
        let t = p.thread(tid, &self.config);
        if followed {
            t.change_over(on, &self.config);
        }
        if !on && std::mem::take(&mut t.begun) {
            t.calls.end(&t.now);
            p.requests(pid, tid, &mut catalogue, &self.dump_service);
        }
    }

    fn stands(&mut self, pid: Pid, tid: Tid, frames: &[NativeFrame]) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        let Some(space) = self.spaces.get(&p.space) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        p.learn_space(space, &mut catalogue, self.config.costs);
        let t = p.thread(tid, &self.config);
        if t.recording && !std::mem::replace(&mut t.begun, true) {
            let of = |f: &NativeFrame| cg_calls::Native {
                at: f.at,
                sp: f.sp,
                returns_to: f.returns_to,
                interrupted: f.interrupted,
            };
            let frames: Vec<_> = frames.iter().map(of).collect();
            t.calls.begin_within(&mut *catalogue, &frames, &t.now);
        }
    }

    fn asked(&mut self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        let Some(p) = self.processes.get_mut(pid) else { return };
        match ask {
            Query::Dump(words) => {
                let trigger = match words {
                    Some(words) if tid.is_none() => Trigger::Command(words.clone()),
                    words => Trigger::Request(words.clone()),
                };
                let catalogue = p.catalogue.clone();
                self.dump_service.write(pid, p.take(trigger), &mut lock(&catalogue));
            }
            Query::Zero => p.zero(pid, &self.dump_service),
            Query::ToggleCollect => {
                let Some(tid) = tid else { return };
                let t = p.thread(tid, &self.config);
                t.calls.toggle_collect(&t.now);
            }
            Query::Collect(on) => {
                p.collects = Some(*on);
                let Some(tid) = tid else { return };
                let t = p.thread(tid, &self.config);
                t.calls.collect(*on, &t.now);
            }
            Query::SkipObject(path) => {
                lock(&p.catalogue).skip_object(path);
                p.threads.values_mut().for_each(Thread::rules_changed);
                self.skipped.entry(pid).or_default().push(path.clone());
            }
            Query::Describe(text) => {
                let line = text.iter().map(|&b| if b == b'\n' { b' ' } else { b }).collect();
                p.descriptions.push(line);
            }
            Query::Look => self.dump_service.report(pid, p.progress()),
            Query::Peek => {
                if let Some(space) = self.spaces.get(&p.space) {
                    self.dump_service.report_findings(pid, p.findings(&space.sites));
                }
            }
        }
    }

    fn caught_up(&mut self, pid: Pid, tid: Tid, book: &follow::Book, calls: &follow::Calls) {
        self.pull_stack_followed(pid, tid, book, calls);
    }

    fn goes_on(&mut self, pid: Pid, tid: Tid, made: Option<u32>, all: bool) -> Option<follow::Calls> {
        self.show_followed(pid, tid, made, all)
    }

    fn runs(&mut self, pid: Pid, tid: Tid, _book: &follow::Book, pc: u64) -> Option<follow::CallContext> {
        self.call_context_of(pid, tid, pc)
    }

    fn counts_yet(&mut self, pid: Pid, tid: Tid) {
        if let Some(t) = self.processes.get_mut(pid).and_then(|p| p.threads.get_mut(&tid)) {
            t.count_after_all();
        }
    }

    fn is_unmade(&mut self, pid: Pid, tid: Tid) {
        if let Some(t) = self.processes.get_mut(pid).and_then(|p| p.threads.get_mut(&tid)) {
            t.unmade += u64::from(t.counted.is_some());
        }
    }

    fn has_counted(&mut self, pid: Pid, tid: Tid, pc: u64) {
        self.count_once(pid, tid, pc);
    }

    fn transfer(
        &mut self,
        pid: Pid,
        tid: Tid,
        _book: &follow::Book,
        told: u32,
        target: u64,
        sp: u64,
    ) -> Option<follow::Outcome> {
        self.decide(pid, tid, told, target, sp)
    }

    fn broke(&mut self, what: &str) {
        self.dump_service.incomplete(&broken::first(what));
    }

    fn recorded(&mut self, pid: Pid, tid: Tid, names: &follow::Names, words: &[u32]) {
        if self.columns.records() {
            self.follow_misses(pid, tid, names, words);
        } else {
            self.follow_each(pid, tid, names, words);
        }
    }

    fn counted(&mut self, pid: Pid, tid: Tid, book: &follow::Book, counts: &follow::Counts) {
        self.take_counts(pid, tid, book, counts);
    }

    fn thread_ended(&mut self, pid: Pid, tid: Tid) {
        if let Some(p) = self.processes.get_mut(pid) {
            p.end_thread(tid);
            if let Some(simulated) = &mut p.simulated {
                simulated.thread_ended(tid);
            }
        }
    }

    fn process_ended(&mut self, pid: Pid) {
        let Some(mut p) = self.processes.remove(pid) else { return };
        let catalogue = p.catalogue.clone();
        // What panics here costs itself alone; the panic goes on when the rest has been written.
        let mut failure: Option<broken::Panic> = None;
        let dump_service = &self.dump_service;
        let mut careful = |act: &mut dyn FnMut()| {
            if let Err(panic) = broken::caught(act) {
                dump_service.incomplete(&broken::first("for an unknown reason"));
                failure.get_or_insert(panic);
            }
        };
        for tid in p.threads.keys().copied().collect::<Vec<_>>() {
            careful(&mut || p.end_thread(tid));
        }
        careful(&mut || {
            fault::point("last");
            if let Some(used) = &mut p.used {
                used.flush();
                dump_service.statistics(pid, used.statistics());
            }
        });
        careful(&mut || dump_service.write(pid, p.take(Trigger::End), &mut lock(&catalogue)));
        if let Some(panic) = failure {
            resume_unwind(panic);
        }
        if self.processes.is_empty() {
            // The run is over; to free so many small things would only delay its end.
            std::mem::forget((p, catalogue, std::mem::take(&mut self.spaces)));
        }
    }
}
