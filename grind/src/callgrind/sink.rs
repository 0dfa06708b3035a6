//! The analysing end of the trace: drives the model of the call graph with what the guest's threads tell.
//!
//! It runs on a thread of its own, beside the program. Every executed block and every transfer of control is told in program
//! order; what a block costs is known from its instructions. Invariants: a cost is added to a thread's totals and booked on
//! the running function at the same time, so that self costs and totals agree; a process's findings are complete when the
//! engine reports its end, and are written by then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgrind_control_protocol::{self as control, Frame};
use cg_calls::{Calls, Config, JumpKind, Profile, Request, SiteId};
use grind_engine::trace::{Block, Handler, Sink, Site, SiteKind, SpaceId, Special, Transfer};
use grind_engine::{Ask, Module, StaticEvents};

use super::code::{Catalogue, Origin};
use super::desk::{Desk, Found, Progress};
use super::parts::Trigger;
use super::settings::Settings;
use crate::debuginfo;

/// A set of translations.
#[derive(Clone, Debug, Default)]
struct Space {
    sites: Vec<Site>,
    blocks: Vec<Block>,
    modules: Arc<[Module]>,
    /// Counts changes of `modules`.
    version: u64,
}

/// What a record of a site means to a process.
#[derive(Clone, Copy, Debug)]
enum Hot {
    Block {
        cell: u32,
    },
    Call {
        cell: u32,
        site: SiteId,
        target: u64,
    },
    CallIndirect {
        cell: u32,
        site: SiteId,
    },
    Return {
        cell: u32,
        site: SiteId,
    },
    JumpIndirect {
        cell: u32,
        site: SiteId,
    },
    Jump {
        cell: u32,
        site: SiteId,
        target: u64,
        kind: JumpKind,
        tells: bool,
    },
    Executions {
        cell: u32,
    },
    /// Of no interest here, with so many words.
    Other(usize),
}

/// What is known of a cell beside what the catalogue has.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Its first instruction.
    start: u64,
}

#[derive(Clone, Debug)]
struct Thread {
    number: u64,
    calls: Calls,
    now: Vec<u64>,
    begun: bool,
    recording: bool,
    /// Blocks executed.
    blocks: u64,
    /// By site: what the last record of executions said.
    executions: HashMap<u32, u64>,
}

#[derive(Debug)]
struct Process {
    space: SpaceId,
    version: u64,
    known_sites: usize,
    known_blocks: usize,
    catalogue: Arc<Mutex<Catalogue>>,
    hot: Vec<Hot>,
    cells: Vec<Cell>,
    /// Costs of one execution of each cell, side by side.
    costs: Vec<u64>,
    /// The cell of each of the engine's blocks.
    cell_of_block: Vec<u32>,
    /// Cells of the first instructions of a block: by block and their number.
    heads: HashMap<(u32, usize), u32>,
    /// Cells of single instructions that count by themselves, by address.
    single: HashMap<u64, u32>,
    threads: HashMap<i32, Thread>,
    /// Of threads that have ended, since the last part.
    ended: Vec<(u64, Profile)>,
    /// Blocks that were executed by threads that have ended.
    blocks: u64,
}

/// See the module's description.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    names: debuginfo::Options,
    config: Config,
    spaces: HashMap<SpaceId, Space>,
    processes: HashMap<i32, Process>,
    desk: Desk,
}

impl Recorder {
    /// A recorder that hands parts to `desk`. `names` says how functions are named.
    #[must_use]
    pub fn new(settings: Settings, names: debuginfo::Options, costs: usize, desk: Desk) -> Self {
        let config = Config { contexts: true, ..settings.config(costs) };
        Self { settings, names, config, spaces: HashMap::new(), processes: HashMap::new(), desk }
    }
}

/// What one execution of an instruction costs; `counted`: an instruction counts as one.
fn cost_of(width: usize, counted: bool, _events: StaticEvents) -> Vec<u64> {
    let mut costs = vec![0; width];
    costs[0] = u64::from(counted);
    costs
}

impl Process {
    fn new(space: SpaceId, catalogue: Catalogue) -> Self {
        Self {
            space,
            version: 0,
            known_sites: 0,
            known_blocks: 0,
            catalogue: Arc::new(Mutex::new(catalogue)),
            hot: Vec::new(),
            cells: Vec::new(),
            costs: Vec::new(),
            cell_of_block: Vec::new(),
            heads: HashMap::new(),
            single: HashMap::new(),
            threads: HashMap::new(),
            ended: Vec::new(),
            blocks: 0,
        }
    }

    /// Registers a cell with the instructions `addr` and what they cost.
    fn add_cell(&mut self, catalogue: &mut Catalogue, instructions: Vec<(u64, Vec<u64>)>, width: usize) -> u32 {
        let start = instructions.first().map_or(0, |(addr, _)| *addr);
        let mut sum = vec![0; width];
        for (_, costs) in &instructions {
            sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        self.costs.extend(sum);
        self.cells.push(Cell { start });
        catalogue.add_cell(instructions)
    }

    /// Learns what has been said of the space since the last time.
    fn catch_up(&mut self, space: &Space, catalogue: &mut Catalogue, width: usize) {
        if self.version != space.version {
            self.version = space.version;
            for m in space.modules.iter() {
                let origin = match (&m.image, &m.path) {
                    (Some(image), _) => Origin::Image(image.clone()),
                    (None, Some(path)) => Origin::File(path.clone()),
                    (None, None) => Origin::Anonymous,
                };
                catalogue.map(m.start.0, m.end.0, m.offset, &origin);
            }
        }
        for block in &space.blocks[self.known_blocks..] {
            let costs = |i: &grind_engine::trace::Instruction| (i.addr.0, cost_of(width, i.counted, i.events));
            let cell = self.add_cell(catalogue, block.instructions.iter().map(costs).collect(), width);
            self.cell_of_block.push(cell);
        }
        self.known_blocks = space.blocks.len();
        for site in &space.sites[self.known_sites..] {
            let hot = match site.kind {
                SiteKind::Block { block } => Hot::Block { cell: self.cell_of_block[block as usize] },
                SiteKind::Transfer { how, block, tells } => {
                    let first = space.blocks[block as usize].instructions[0].addr.0;
                    let cell = self.cell_of_block[block as usize];
                    let addr = site.addr.0;
                    let site = catalogue.add_site(addr, addr.wrapping_add(site.len.into()), first);
                    match how {
                        Transfer::Call(target) => Hot::Call { cell, site, target: target.0 },
                        Transfer::CallIndirect => Hot::CallIndirect { cell, site },
                        Transfer::Return => Hot::Return { cell, site },
                        Transfer::JumpIndirect => Hot::JumpIndirect { cell, site },
                        Transfer::Jump(to) => Hot::Jump { cell, site, target: to.0, kind: JumpKind::Always, tells },
                        Transfer::Taken(to) => {
                            Hot::Jump { cell, site, target: to.0, kind: JumpKind::Conditional, tells }
                        }
                        Transfer::Onward(to) => {
                            Hot::Jump { cell, site, target: to.0, kind: JumpKind::FallThrough, tells }
                        }
                    }
                }
                SiteKind::Executions { .. } => {
                    let addr = site.addr.0;
                    let cell = match self.single.get(&addr) {
                        Some(cell) => *cell,
                        None => {
                            let cell = self.add_cell(catalogue, vec![(addr, vec![0; width])], width);
                            self.single.insert(addr, cell);
                            cell
                        }
                    };
                    Hot::Executions { cell }
                }
                other => Hot::Other(other.words()),
            };
            self.hot.push(hot);
        }
        self.known_sites = space.sites.len();
    }

    fn thread(&mut self, tid: i32, config: &Config) -> &mut Thread {
        // As the reference numbers them: the lowest number that is free.
        let number = (1..).find(|n| self.threads.values().all(|t| t.number != *n)).unwrap_or(1);
        self.threads.entry(tid).or_insert_with(|| {
            let now = vec![0; config.costs];
            let calls = Calls::new(config.clone(), &now);
            Thread { number, calls, now, begun: false, recording: true, blocks: 0, executions: HashMap::new() }
        })
    }

    /// What all threads have found since the last part.
    fn take(&mut self, trigger: Trigger) -> Found {
        let mut threads: Vec<(u64, Profile)> = std::mem::take(&mut self.ended);
        let mut running: Vec<&mut Thread> = self.threads.values_mut().collect();
        running.sort_by_key(|t| t.number);
        threads.extend(running.into_iter().map(|t| (t.number, t.calls.take(&t.now))));
        threads.sort_by_key(|(number, _)| *number);
        let mut merged: Vec<(u64, Profile)> = Vec::new();
        for (number, profile) in threads {
            match merged.last_mut().filter(|(last, _)| *last == number) {
                Some((_, last)) => last.merge(profile),
                None => merged.push((number, profile)),
            }
        }
        Found { trigger, blocks: self.executed_blocks(), threads: merged }
    }

    fn zero(&mut self, pid: i32, desk: &Desk) {
        self.ended.clear();
        for t in self.threads.values_mut() {
            t.calls.zero(&t.now);
        }
        desk.zeroed(pid, self.executed_blocks());
    }

    /// How many blocks all threads have executed.
    fn executed_blocks(&self) -> u64 {
        self.blocks + self.threads.values().map(|t| t.blocks).sum::<u64>()
    }

    /// Does what functions ask for that thread `tid` has entered or left.
    #[cold]
    fn requests(&mut self, pid: i32, tid: i32, catalogue: &mut Catalogue, desk: &Desk) {
        while let Some(request) = self.threads.get_mut(&tid).and_then(|t| t.calls.take_request()) {
            let trigger = match request {
                Request::Zero(_) => {
                    self.zero(pid, desk);
                    continue;
                }
                Request::DumpBefore(f) => Trigger::Before(catalogue.name(f).to_vec()),
                Request::DumpAfter(f) => Trigger::After(catalogue.name(f).to_vec()),
            };
            desk.write(pid, self.take(trigger), catalogue);
        }
    }

    /// Goes through records up to one after which a function asks for something; returns what is left.
    fn follow<'w>(&mut self, tid: i32, catalogue: &mut Catalogue, words: &'w [u32]) -> &'w [u32] {
        let width = self.costs.len() / self.cells.len().max(1);
        let Some(t) = self.threads.get_mut(&tid) else { return &[] };
        let mut rest = words;
        while let Some((&number, operands)) = rest.split_first() {
            let Some(hot) = self.hot.get(number as usize) else { return &[] };
            let execute = |t: &mut Thread, catalogue: &mut Catalogue, cell: u32| {
                if !t.begun {
                    t.begun = true;
                    t.calls.begin(catalogue, self.cells[cell as usize].start);
                }
                t.calls.block(cell);
                t.blocks += 1;
                let costs = &self.costs[cell as usize * width..][..width];
                t.now.iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
            };
            let asks = match *hot {
                Hot::Block { cell } => {
                    rest = operands;
                    execute(t, catalogue, cell);
                    continue;
                }
                Hot::Call { cell, site, target } => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    execute(t, catalogue, cell);
                    t.calls.call(catalogue, site, target, word(*low, *high), &t.now)
                }
                Hot::CallIndirect { cell, site } | Hot::Return { cell, site } | Hot::JumpIndirect { cell, site } => {
                    let Some(([low, high, to_low, to_high], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    execute(t, catalogue, cell);
                    let (sp, target) = (word(*low, *high), word(*to_low, *to_high));
                    match hot {
                        Hot::CallIndirect { .. } => t.calls.call(catalogue, site, target, sp, &t.now),
                        Hot::Return { .. } => t.calls.ret(catalogue, site, target, sp, &t.now),
                        _ => t.calls.jump(catalogue, site, target, sp, JumpKind::Always, &t.now),
                    }
                }
                Hot::Jump { cell, site, target, kind, tells } => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    if tells {
                        execute(t, catalogue, cell);
                    }
                    t.calls.jump(catalogue, site, target, word(*low, *high), kind, &t.now)
                }
                Hot::Executions { cell } => {
                    let Some(([low, high], after)) = operands.split_first_chunk() else { return &[] };
                    rest = after;
                    let now = word(*low, *high);
                    let before = t.executions.insert(number, now).unwrap_or(0);
                    let more = now.wrapping_sub(before);
                    t.calls.cost(cell, 0, more);
                    t.now[0] = t.now[0].wrapping_add(more);
                    continue;
                }
                Hot::Other(words) => {
                    let Some((_, after)) = rest.split_at_checked(words) else { return &[] };
                    rest = after;
                    continue;
                }
            };
            if asks {
                return rest;
            }
        }
        rest
    }

    /// The cell of the first `n` instructions of a block.
    fn head(&mut self, catalogue: &mut Catalogue, block: u32, n: usize, all: &Block, width: usize) -> u32 {
        if n >= all.instructions.len() {
            return self.cell_of_block[block as usize];
        }
        if let Some(cell) = self.heads.get(&(block, n)) {
            return *cell;
        }
        let first = all.instructions[..n].iter().map(|i| (i.addr.0, cost_of(width, i.counted, i.events))).collect();
        let cell = self.add_cell(catalogue, first, width);
        self.heads.insert((block, n), cell);
        cell
    }

    /// How far the threads are.
    fn progress(&self) -> Progress {
        let catalogue = lock(&self.catalogue);
        let mut running: Vec<&Thread> = self.threads.values().collect();
        running.sort_by_key(|t| t.number);
        let threads = running.iter().map(|t| {
            let frames = t.calls.going_on(&t.now).into_iter().rev().map(|active| Frame {
                function: String::from_utf8_lossy(catalogue.name(active.function)).into_owned(),
                calls: active.calls,
                cost: active.costs,
            });
            control::Thread { id: t.number, total: t.calls.collected(&t.now), frames: frames.collect() }
        });
        let figure = |name: &str, value: usize| (name.to_owned(), value as u64);
        Progress {
            threads: threads.collect(),
            figures: vec![
                ("executed-bbs".to_owned(), self.executed_blocks()),
                figure("distinct-bbs", self.cell_of_block.len()),
                figure("distinct-functions", catalogue.functions()),
            ],
        }
    }

    fn end_thread(&mut self, tid: i32) {
        if let Some(mut t) = self.threads.remove(&tid) {
            t.calls.end(&t.now);
            self.blocks += t.blocks;
            self.ended.push((t.number, t.calls.take(&t.now)));
        }
    }
}

/// The catalogue is only ever locked by one side at a time; what a panic left is as good as anything.
fn lock(catalogue: &Mutex<Catalogue>) -> std::sync::MutexGuard<'_, Catalogue> {
    catalogue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Recorder {
    fn sites(&mut self, space: SpaceId, sites: &[Site], _: &[Special]) {
        self.spaces.entry(space).or_default().sites.extend_from_slice(sites);
    }

    fn blocks(&mut self, space: SpaceId, blocks: &[Block]) {
        self.spaces.entry(space).or_default().blocks.extend_from_slice(blocks);
    }

    fn mapped(&mut self, space: SpaceId, modules: &[Module]) {
        let space = self.spaces.entry(space).or_default();
        space.modules = modules.into();
        space.version += 1;
    }

    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let copy = self.spaces.get(&from).cloned().unwrap_or_default();
        self.spaces.insert(to, copy);
    }

    fn image(&mut self, pid: i32, space: SpaceId) {
        let catalogue = Catalogue::new(self.settings.clone(), self.names.clone());
        self.processes.insert(pid, Process::new(space, catalogue));
    }

    fn moved(&mut self, pid: i32, space: SpaceId) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.space = space;
        }
    }

    fn forked(&mut self, parent: i32, tid: i32, child: i32) {
        let Some(p) = self.processes.get(&parent) else { return };
        let copy = lock(&p.catalogue).clone();
        let mut forked = Process {
            space: p.space,
            version: p.version,
            known_sites: p.known_sites,
            known_blocks: p.known_blocks,
            catalogue: Arc::new(Mutex::new(copy)),
            hot: p.hot.clone(),
            cells: p.cells.clone(),
            costs: p.costs.clone(),
            cell_of_block: p.cell_of_block.clone(),
            heads: p.heads.clone(),
            single: p.single.clone(),
            threads: p.threads.clone(),
            ended: p.ended.clone(),
            blocks: p.blocks,
        };
        let thread = forked.threads.remove(&tid);
        for other in forked.threads.keys().copied().collect::<Vec<_>>() {
            forked.end_thread(other);
        }
        if let Some(mut thread) = thread {
            // Its counters begin anew.
            thread.executions.clear();
            forked.threads.insert(child, thread);
        }
        self.processes.insert(child, forked);
    }

    fn records(&mut self, pid: i32, tid: i32, words: &[u32]) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let Some(space) = self.spaces.get(&p.space) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        p.catch_up(space, &mut catalogue, self.config.costs);
        p.thread(tid, &self.config);
        let mut rest = words;
        while !rest.is_empty() {
            rest = p.follow(tid, &mut catalogue, rest);
            p.requests(pid, tid, &mut catalogue, &self.desk);
        }
    }

    fn corrected(&mut self, pid: i32, tid: i32, block: u32, counted: usize, executed: usize) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let Some(space) = self.spaces.get(&p.space) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        let width = self.config.costs;
        p.catch_up(space, &mut catalogue, width);
        p.thread(tid, &self.config);
        let Some(all) = space.blocks.get(block as usize) else { return };
        let cells = [counted, executed].map(|n| (n > 0).then(|| p.head(&mut catalogue, block, n, all, width)));
        let Some(t) = p.threads.get_mut(&tid) else { return };
        if !t.begun {
            t.begun = true;
            t.calls.begin(&mut *catalogue, all.instructions[0].addr.0);
        }
        for (cell, sign) in cells.into_iter().zip([-1i64, 1]) {
            let Some(cell) = cell else { continue };
            t.calls.correct(cell, sign);
            for (now, cost) in t.now.iter_mut().zip(&p.costs[cell as usize * width..][..width]) {
                *now = now.wrapping_add_signed(sign * *cost as i64);
            }
        }
    }

    fn signal_begins(&mut self, pid: i32, tid: i32, handler: &Handler) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        if let Some(space) = self.spaces.get(&p.space) {
            p.catch_up(space, &mut catalogue, self.config.costs);
        }
        let t = p.thread(tid, &self.config);
        if t.recording && t.begun {
            t.calls.signal_enter(&mut *catalogue, handler.addr.0, handler.sp, handler.stack.clone(), &t.now);
            p.requests(pid, tid, &mut catalogue, &self.desk);
        }
    }

    fn signal_ends(&mut self, pid: i32, tid: i32) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        if let Some(t) = p.threads.get_mut(&tid) {
            t.calls.signal_leave(&t.now);
            p.requests(pid, tid, &mut catalogue, &self.desk);
        }
    }

    fn recording(&mut self, pid: i32, tid: i32, on: bool) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        let t = p.thread(tid, &self.config);
        t.recording = on;
        if !on && std::mem::take(&mut t.begun) {
            t.calls.end(&t.now);
            p.requests(pid, tid, &mut catalogue, &self.desk);
        }
    }

    fn asked(&mut self, pid: i32, tid: i32, ask: &Ask) {
        let Some(p) = self.processes.get_mut(&pid) else { return };
        match ask {
            Ask::Dump(words) => {
                let trigger = match words {
                    Some(words) if tid == 0 => Trigger::Command(words.clone()),
                    words => Trigger::Request(words.clone()),
                };
                let catalogue = p.catalogue.clone();
                self.desk.write(pid, p.take(trigger), &mut lock(&catalogue));
            }
            Ask::Zero => p.zero(pid, &self.desk),
            Ask::ToggleCollect => {
                let t = p.thread(tid, &self.config);
                t.calls.toggle_collect(&t.now);
            }
            Ask::Look => self.desk.report(pid, p.progress()),
        }
    }

    fn thread_ended(&mut self, pid: i32, tid: i32) {
        if let Some(p) = self.processes.get_mut(&pid) {
            p.end_thread(tid);
        }
    }

    fn process_ended(&mut self, pid: i32) {
        let Some(mut p) = self.processes.remove(&pid) else { return };
        for tid in p.threads.keys().copied().collect::<Vec<_>>() {
            p.end_thread(tid);
        }
        let catalogue = p.catalogue.clone();
        self.desk.write(pid, p.take(Trigger::End), &mut lock(&catalogue));
    }
}

#[inline]
fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
