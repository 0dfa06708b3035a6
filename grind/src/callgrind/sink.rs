//! The analysing end of the trace: drives the model of the call graph with what the guest's threads tell.
//!
//! It runs on a thread of its own, beside the program. Every executed block and every transfer of control is told in program
//! order; what a block costs is known from its instructions. Invariants: a cost is added to a thread's totals and booked on
//! the running function at the same time, so that self costs and totals agree; a process's findings are complete when the
//! engine reports its end, and are written by then.

mod simulated;
mod through;
mod used;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgrind_control_protocol::{self as control, Frame};
use cg_calls::{Calls, Config, JumpKind, Profile, Request, SiteId, Step, StepKind};
use cg_format::callgrind::{EventSet, SystemTime};
use cg_sim::Geometries;
use cg_sim::writeback::WriteThrough;
use grind_engine::trace::{Block, Handler, Sink, Site, SiteKind, SpaceId, Special, SystemCall, Transfer};
use grind_engine::{Ask, Module};

use super::code::{Catalogue, Origin};
use super::columns::Columns;
use super::desk::{Desk, Found, Progress};
use super::parts::Trigger;
use super::settings::{CacheUse, Settings};
use crate::debuginfo;
use simulated::Simulated;
use used::{ThreadUse, Used};

/// A set of translations.
#[derive(Clone, Debug, Default)]
struct Space {
    sites: Vec<Site>,
    specials: Vec<Special>,
    blocks: Vec<Block>,
    modules: Arc<[Module]>,
    /// Counts changes of `modules`.
    version: u64,
}

/// What a record of a site means to a process.
#[derive(Clone, Copy, Debug)]
struct Hot {
    /// What is executed; [`NOTHING`] has no instructions.
    cell: u32,
    /// What that costs of the first event.
    cost: u32,
    kind: Kind,
    site: SiteId,
    /// Where it leads, or how many words a record has that is of no interest.
    target: u64,
}

/// The cell of records that tell of no execution.
const NOTHING: u32 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Block,
    Call,
    Return,
    CallIndirect,
    JumpIndirect,
    Jump(JumpKind),
    Executions,
    /// Of no interest here.
    Other,
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
    /// When so many have been, a part is due.
    pause: u64,
    /// Nanoseconds in system calls: elapsed, and of processor time.
    in_calls: [u64; 2],
    /// By site: what the last record of executions said.
    executions: HashMap<u32, u64>,
    /// If the use of lines is measured.
    used: Option<Box<ThreadUse>>,
    /// If every access is told, because the last level is written back.
    through: Option<Box<WriteThrough>>,
}

#[derive(Debug)]
struct Process {
    space: SpaceId,
    version: u64,
    known_sites: usize,
    known_blocks: usize,
    catalogue: Arc<Mutex<Catalogue>>,
    hot: Vec<Hot>,
    /// The same for records that are nothing special.
    steps: Vec<Step>,
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
    /// How many had been executed when the last part was due for `--dump-every-bb`.
    dumped: u64,
    columns: Columns,
    /// If caches or branches are simulated, but for those of `used`.
    simulated: Option<Box<Simulated>>,
    /// If the use of lines is measured.
    used: Option<Box<Used>>,
}

/// See the module's description.
#[derive(Debug)]
pub struct Recorder {
    settings: Settings,
    names: debuginfo::Options,
    config: Config,
    columns: Columns,
    /// What each process begins with.
    simulated: Option<Simulated>,
    used: Option<Used>,
    spaces: HashMap<SpaceId, Space>,
    processes: HashMap<i32, Process>,
    desk: Desk,
}

impl Recorder {
    /// A recorder of these events that hands parts to `desk`. `names` says how functions are named; `caches` are simulated.
    #[must_use]
    pub fn new(
        settings: Settings,
        names: debuginfo::Options,
        events: EventSet,
        caches: Option<&Geometries>,
        desk: Desk,
    ) -> Self {
        let columns = Columns::of(events);
        let config = Config { contexts: true, ..settings.config(columns.stride) };
        let used = caches.filter(|_| columns.uses.is_some()).and_then(|caches| {
            // Whoever asks for it has been told if it cannot be done.
            Used::new(caches, columns, settings.cache_use == CacheUse::SelfOnly).ok()
        });
        let simulated = (columns.simulated() && used.is_none()).then(|| Simulated::new(&settings, caches));
        let (spaces, processes) = (HashMap::new(), HashMap::new());
        Self { settings, names, config, columns, simulated, used, spaces, processes, desk }
    }
}

impl Process {
    fn new(
        space: SpaceId,
        catalogue: Catalogue,
        columns: Columns,
        simulated: Option<Simulated>,
        used: Option<Used>,
    ) -> Self {
        let mut process = Self {
            space,
            version: 0,
            known_sites: 0,
            known_blocks: 0,
            catalogue: Arc::new(Mutex::new(catalogue)),
            hot: Vec::new(),
            steps: Vec::new(),
            cells: Vec::new(),
            costs: Vec::new(),
            cell_of_block: Vec::new(),
            heads: HashMap::new(),
            single: HashMap::new(),
            threads: HashMap::new(),
            ended: Vec::new(),
            blocks: 0,
            dumped: 0,
            columns,
            simulated: simulated.map(Box::new),
            used: used.map(Box::new),
        };
        let catalogue = process.catalogue.clone();
        process.add_cell(&mut lock(&catalogue), Vec::new(), columns.stride);
        process
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
        let columns = self.columns;
        for block in &space.blocks[self.known_blocks..] {
            let costs = |i: &grind_engine::trace::Instruction| (i.addr.0, columns.execution(i.counted, i.events));
            let cell = self.add_cell(catalogue, block.instructions.iter().map(costs).collect(), width);
            self.cell_of_block.push(cell);
        }
        self.known_blocks = space.blocks.len();
        if let Some(simulated) = &mut self.simulated {
            simulated.catch_up(&space.sites[self.known_sites..]);
        }
        if let Some(used) = &mut self.used {
            let width = self.columns.stride;
            used.catch_up(&space.sites[self.known_sites..], &self.cell_of_block, &self.costs, width);
        }
        for site in &space.sites[self.known_sites..] {
            let hot = self.understand(site, space, catalogue, width);
            self.hot.push(hot);
            let mut kind = match hot.kind {
                _ if hot.cell == NOTHING => StepKind::Other,
                Kind::Block => StepKind::Block,
                Kind::Call => StepKind::Call,
                Kind::CallIndirect => StepKind::CallIndirect,
                Kind::Return => StepKind::Return,
                Kind::JumpIndirect => StepKind::JumpIndirect,
                Kind::Jump(_) => StepKind::Jump,
                Kind::Executions | Kind::Other => StepKind::Other,
            };
            let Hot { cell, mut cost, site, target, .. } = hot;
            if self.simulated.is_some() {
                let row = &self.costs[cell as usize * width..][..width];
                match self.columns.packed(row) {
                    Some(packed) => cost = packed.word(),
                    None => kind = StepKind::Other,
                }
            }
            self.steps.push(Step { kind, cell, cost, site, target });
        }
        self.known_sites = space.sites.len();
    }

    fn understand(&mut self, site: &Site, space: &Space, catalogue: &mut Catalogue, width: usize) -> Hot {
        let mut hot = Hot { cell: NOTHING, cost: 0, kind: Kind::Other, site: SiteId(0), target: 0 };
        let addr = site.addr.0;
        match site.kind {
            SiteKind::Block { block } => {
                hot.kind = Kind::Block;
                hot.cell = self.cell_of_block[block as usize];
            }
            SiteKind::Transfer { how, block, tells } => {
                let first = space.blocks[block as usize].instructions[0].addr.0;
                hot.site = catalogue.add_site(addr, addr.wrapping_add(site.len.into()), first);
                if tells {
                    hot.cell = self.cell_of_block[block as usize];
                }
                (hot.kind, hot.target) = match how {
                    Transfer::Call(target) => (Kind::Call, target.0),
                    Transfer::CallIndirect => (Kind::CallIndirect, 0),
                    Transfer::Return => (Kind::Return, 0),
                    Transfer::JumpIndirect => (Kind::JumpIndirect, 0),
                    Transfer::Jump(to) => (Kind::Jump(JumpKind::Always), to.0),
                    Transfer::Taken(to) => (Kind::Jump(JumpKind::Conditional), to.0),
                    Transfer::Onward(to) => (Kind::Jump(JumpKind::FallThrough), to.0),
                };
            }
            SiteKind::Executions { .. } => {
                let cell = self.single_cell(catalogue, addr, width);
                // The cell is named apart: its executions are not one each.
                (hot.kind, hot.target) = (Kind::Executions, cell.into());
            }
            other => hot.target = other.words() as u64,
        }
        hot.cost = self.costs[hot.cell as usize * width] as u32;
        hot
    }

    fn thread(&mut self, tid: i32, config: &Config) -> &mut Thread {
        // As the reference numbers them: the lowest number that is free.
        let number = (1..).find(|n| self.threads.values().all(|t| t.number != *n)).unwrap_or(1);
        self.threads.entry(tid).or_insert_with(|| {
            let now = vec![0; config.costs];
            let calls = Calls::new(config.clone(), &now);
            Thread {
                number,
                calls,
                now,
                begun: false,
                recording: true,
                blocks: 0,
                pause: u64::MAX,
                in_calls: [0; 2],
                executions: HashMap::new(),
                used: None,
                through: None,
            }
        })
    }

    /// What all threads have found since the last part.
    fn take(&mut self, trigger: Trigger) -> Found {
        let mut threads: Vec<(u64, Profile)> = std::mem::take(&mut self.ended);
        if let Some(used) = &mut self.used {
            threads.extend(used.settle(true, self.threads.values_mut()));
        }
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
        if let Some(used) = &mut self.used {
            used.zero();
        }
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
        if !t.begun
            && let Some(first) = words.first().and_then(|n| self.hot.get(*n as usize))
        {
            t.begun = true;
            let cell = if first.kind == Kind::Executions { first.target as usize } else { first.cell as usize };
            t.calls.begin(catalogue, self.cells[cell].start);
        }
        loop {
            if t.pause == u64::MAX {
                let done = t.calls.express(&self.steps, rest, &mut t.now[0], &mut t.blocks);
                rest = &rest[done..];
            }
            let Some((&number, operands)) = rest.split_first() else { break };
            let Some(hot) = self.hot.get(number as usize) else { return &[] };
            if hot.cell != NOTHING {
                if t.blocks >= t.pause {
                    return rest;
                }
                t.blocks += 1;
                t.calls.block(hot.cell);
                if width > 1 {
                    let costs = &self.costs[hot.cell as usize * width..][1..width];
                    t.now[1..].iter_mut().zip(costs).for_each(|(now, cost)| *now += cost);
                }
            }
            t.now[0] += u64::from(hot.cost);
            if hot.kind == Kind::Block {
                rest = operands;
                continue;
            }
            if hot.kind == Kind::Other {
                let Some((_, after)) = rest.split_at_checked(hot.target as usize) else { return &[] };
                rest = after;
                continue;
            }
            let Some(([low, high], after)) = operands.split_first_chunk() else { return &[] };
            rest = after;
            let sp = word(*low, *high);
            let asks = if hot.kind == Kind::Call {
                t.calls.call(catalogue, hot.site, hot.target, sp, &t.now)
            } else if let Kind::Jump(kind) = hot.kind {
                t.calls.jump(catalogue, hot.site, hot.target, sp, kind, &t.now)
            } else if hot.kind == Kind::Executions {
                let before = t.executions.insert(number, sp).unwrap_or(0);
                let more = sp.wrapping_sub(before);
                t.calls.cost(hot.target as u32, 0, more);
                t.now[0] = t.now[0].wrapping_add(more);
                continue;
            } else {
                let Some(([low, high], after)) = rest.split_first_chunk() else { return &[] };
                rest = after;
                let target = word(*low, *high);
                match hot.kind {
                    Kind::Return => t.calls.ret(catalogue, hot.site, target, sp, &t.now),
                    Kind::CallIndirect => t.calls.call(catalogue, hot.site, target, sp, &t.now),
                    _ => t.calls.jump(catalogue, hot.site, target, sp, JumpKind::Always, &t.now),
                }
            };
            if asks {
                return rest;
            }
        }
        rest
    }

    /// Writes a part if so many blocks have been executed since the last one that was due for that, and sees to it that `tid`
    /// comes here again when the next one is.
    fn dump_after_blocks(&mut self, pid: i32, tid: i32, every: u64, catalogue: &mut Catalogue, desk: &Desk) {
        let executed = self.executed_blocks();
        if executed >= self.dumped + every {
            self.dumped += (executed - self.dumped) / every * every;
            desk.write(pid, self.take(Trigger::Blocks(every)), catalogue);
        }
        let left = self.dumped + every - executed;
        if let Some(t) = self.threads.get_mut(&tid) {
            t.pause = t.blocks + left;
        }
    }

    /// The cell of the instruction at `addr`, for costs that are told apart from its executions.
    fn single_cell(&mut self, catalogue: &mut Catalogue, addr: u64, width: usize) -> u32 {
        if let Some(cell) = self.single.get(&addr) {
            return *cell;
        }
        let cell = self.add_cell(catalogue, vec![(addr, Vec::new())], width);
        self.single.insert(addr, cell);
        cell
    }

    /// The cell of the first `n` instructions of a block.
    fn head(&mut self, catalogue: &mut Catalogue, block: u32, n: usize, all: &Block, width: usize) -> u32 {
        if n >= all.instructions.len() {
            return self.cell_of_block[block as usize];
        }
        if let Some(cell) = self.heads.get(&(block, n)) {
            return *cell;
        }
        let columns = self.columns;
        let first = all.instructions[..n].iter().map(|i| (i.addr.0, columns.execution(i.counted, i.events))).collect();
        let cell = self.add_cell(catalogue, first, width);
        self.heads.insert((block, n), cell);
        cell
    }

    /// How far the threads are.
    fn progress(&self) -> Progress {
        let catalogue = lock(&self.catalogue);
        let mut running: Vec<&Thread> = self.threads.values().collect();
        running.sort_by_key(|t| t.number);
        let counted = |mut costs: Vec<u64>| {
            costs.truncate(self.columns.width);
            costs
        };
        let threads = running.iter().map(|t| {
            let frames = t.calls.going_on(&t.now).into_iter().rev().map(|active| Frame {
                function: String::from_utf8_lossy(catalogue.name(active.function)).into_owned(),
                calls: active.calls,
                cost: counted(active.costs),
            });
            control::Thread { id: t.number, total: counted(t.calls.collected(&t.now)), frames: frames.collect() }
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
            if let Some(used) = &mut self.used {
                used.flush_thread(&mut t);
            }
            t.calls.end(&t.now);
            if let Some(used) = &mut self.used {
                used.thread_ended(&mut t);
                let late = used.settle(false, self.threads.values_mut().chain(std::iter::once(&mut t)));
                self.ended.extend(late);
                used.thread_gone(&t);
            }
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
    fn sites(&mut self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        let space = self.spaces.entry(space).or_default();
        space.sites.extend_from_slice(sites);
        space.specials.extend_from_slice(specials);
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
        let mut process = Process::new(space, catalogue, self.columns, self.simulated.clone(), self.used.clone());
        process.thread(pid, &self.config);
        self.processes.insert(pid, process);
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
            steps: p.steps.clone(),
            cells: p.cells.clone(),
            costs: p.costs.clone(),
            cell_of_block: p.cell_of_block.clone(),
            heads: p.heads.clone(),
            single: p.single.clone(),
            threads: p.threads.clone(),
            ended: p.ended.clone(),
            blocks: p.blocks,
            dumped: p.dumped,
            columns: p.columns,
            simulated: p.simulated.clone(),
            used: p.used.clone(),
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
        loop {
            let every = self.settings.dump_every_bb;
            if every > 0 {
                p.dump_after_blocks(pid, tid, every, &mut catalogue, &self.desk);
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
            p.requests(pid, tid, &mut catalogue, &self.desk);
        }
    }

    fn system_call(&mut self, pid: i32, tid: i32, call: &SystemCall) {
        let Some(unit) = self.settings.collect_systime else { return };
        let Some(p) = self.processes.get_mut(&pid) else { return };
        let catalogue = p.catalogue.clone();
        let mut catalogue = lock(&catalogue);
        p.catch_up(self.spaces.get(&p.space).unwrap_or(&Space::default()), &mut catalogue, self.config.costs);
        let cell = p.single_cell(&mut catalogue, call.addr.0, self.config.costs);
        let t = p.thread(tid, &self.config);
        let nanoseconds = match unit {
            SystemTime::Milliseconds => 1_000_000,
            SystemTime::Microseconds => 1000,
            SystemTime::Nanoseconds => 1,
        };
        // What remains below a unit counts with the next call.
        let Some(first) = self.columns.system_calls else { return };
        let spend = |t: &mut Thread, event: usize, n: u64| {
            t.calls.cost(cell, event, n);
            t.now[event] += n;
        };
        spend(t, first, u64::from(call.begins));
        for (i, time) in [call.elapsed, call.processor].into_iter().enumerate().take(self.columns.width - first - 1) {
            let before = t.in_calls[i];
            t.in_calls[i] += time;
            spend(t, first + 1 + i, t.in_calls[i] / nanoseconds - before / nanoseconds);
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
        if !on {
            t.through = None;
            if let Some(simulated) = &mut p.simulated {
                simulated.empty_caches();
            }
            p.empty_used(tid);
        }
        let t = p.thread(tid, &self.config);
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
        if let Some(used) = &mut p.used {
            used.flush();
            self.desk.statistics(pid, used.statistics());
        }
        let catalogue = p.catalogue.clone();
        self.desk.write(pid, p.take(Trigger::End), &mut lock(&catalogue));
    }
}

#[inline]
fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
