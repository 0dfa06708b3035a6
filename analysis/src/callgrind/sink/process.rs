//! What the recorder keeps of a process: what records mean, its threads, and what they have found since the last part.
//!
//! Invariants: counters and sites of the catalogue are only added; a counter of the first kind holds what one execution of its block
//! costs, and [`NOTHING`] costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use callgrind_control_protocol::{self as control, Frame};
use cg_calls::{Calls, Config, JumpKind, Node, Profile, Request, SiteId, Step, StepKind};
use grind_names::made::Registry;
use grind_trace::frames::FrameRecord;
use grind_trace::operands;
use grind_trace::{Block, Instructions, Site, SiteKind, SpaceId, Transfer};
use grind_types::hash::Map;
use grind_types::{Pid, Tid};

use super::super::code::{Catalogue, Origin};
use super::super::columns::Columns;
use super::super::dump_service::{DumpService, Found, Progress};
use super::super::parts::Trigger;
use super::Space;
use super::by_object::ByObject;
use super::cache_lines::{Told, Used};
use super::framed::Codes;
use super::functions::Followed;
use super::last_level::Simulated;
use super::meaning::{Counter, Hot, Kind, NOTHING};
use super::thread::{Thread, nothing_yet};

/// A process of the program.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) space: SpaceId,
    /// How many times it has heard what is mapped.
    pub(super) version: usize,
    pub(super) known_sites: usize,
    pub(super) known_blocks: usize,
    pub(super) catalogue: Arc<Mutex<Catalogue>>,
    pub(super) hot: Vec<Hot>,
    /// The same for records that are nothing special.
    pub(super) steps: Vec<Step>,
    pub(super) counters: Vec<Counter>,
    /// Costs of one execution of each counter, side by side.
    pub(super) costs: Vec<u64>,
    /// The counter of each of the engine's blocks.
    pub(super) counter_of_block: Vec<u32>,
    /// Counters of the first instructions of a block: by block and their number.
    pub(super) heads: HashMap<(u32, usize), u32>,
    /// Counters of single instructions that count by themselves, by address.
    pub(super) single: HashMap<u64, u32>,
    /// If emitted code follows calls.
    pub(super) followed: Followed,
    /// If frames of an interpreter are told.
    pub(super) codes: Codes,
    pub(super) threads: HashMap<Tid, Thread>,
    /// Of threads that have ended, since the last part.
    pub(super) ended: Vec<(u64, Profile)>,
    /// What the program has said of the next part.
    pub(super) descriptions: Vec<Vec<u8>>,
    /// Processes that it has created since the last part, if parts tell of them.
    pub(super) spawned: Vec<Pid>,
    /// The numbers of threads are the kernel's.
    pub(super) by_kernel: bool,
    /// Basic blocks that were executed by threads that have ended.
    pub(super) blocks: u64,
    /// How many had been executed when the last part was due for `--dump-every-bb`.
    pub(super) dumped: u64,
    pub(super) columns: Columns,
    /// Whether threads begin with collection switched on, if somebody outside has said so.
    pub(super) collects: Option<bool>,
    /// If caches or branches are simulated, but for those of `used`.
    pub(super) simulated: Option<Box<Simulated>>,
    /// If the use of lines is measured.
    pub(super) used: Option<Box<Used>>,
    /// If data objects are asked for.
    pub(super) by_object: Option<Box<ByObject>>,
}

impl Process {
    pub(super) fn new(
        space: SpaceId,
        catalogue: Catalogue,
        columns: Columns,
        simulated: Option<Simulated>,
        used: Option<Used>,
        by_object: Option<ByObject>,
    ) -> Self {
        let mut process = Self {
            space,
            version: 0,
            known_sites: 0,
            known_blocks: 0,
            catalogue: Arc::new(Mutex::new(catalogue)),
            hot: Vec::new(),
            steps: Vec::new(),
            counters: Vec::new(),
            costs: Vec::new(),
            counter_of_block: Vec::new(),
            heads: HashMap::new(),
            single: HashMap::new(),
            followed: Followed::default(),
            codes: Codes::default(),
            threads: HashMap::new(),
            ended: Vec::new(),
            descriptions: Vec::new(),
            spawned: Vec::new(),
            by_kernel: false,
            blocks: 0,
            dumped: 0,
            columns,
            collects: None,
            simulated: simulated.map(Box::new),
            used: used.map(Box::new),
            by_object: by_object.map(Box::new),
        };
        let catalogue = process.catalogue.clone();
        process.add_counter(&mut lock(&catalogue), Vec::new().into());
        process
    }

    /// The same process once more, as `child`; names of code that programs make are those of `made`.
    pub(super) fn copy(&self, made: Registry, child: Pid) -> Self {
        let catalogue = lock(&self.catalogue).clone().with_made(made, child);
        Self {
            space: self.space,
            version: self.version,
            known_sites: self.known_sites,
            known_blocks: self.known_blocks,
            catalogue: Arc::new(Mutex::new(catalogue)),
            hot: self.hot.clone(),
            steps: self.steps.clone(),
            counters: self.counters.clone(),
            costs: self.costs.clone(),
            counter_of_block: self.counter_of_block.clone(),
            heads: self.heads.clone(),
            single: self.single.clone(),
            followed: self.followed.clone(),
            codes: self.codes.clone(),
            threads: self.threads.clone(),
            ended: self.ended.clone(),
            descriptions: self.descriptions.clone(),
            spawned: Vec::new(),
            by_kernel: self.by_kernel,
            blocks: self.blocks,
            dumped: self.dumped,
            columns: self.columns,
            collects: self.collects,
            simulated: self.simulated.clone(),
            used: self.used.clone(),
            by_object: self.by_object.clone(),
        }
    }

    /// Registers a counter of these instructions.
    pub(super) fn add_counter(&mut self, catalogue: &mut Catalogue, instructions: Instructions) -> u32 {
        let ends = instructions.iter().filter(|i| i.ends_block).count();
        let counter = catalogue.counters.add(self.columns, instructions);
        self.know_counter(catalogue, counter, ends as u16)
    }

    /// Registers a counter of what happens at an instruction, and costs this much.
    pub(super) fn add_counter_at(&mut self, catalogue: &mut Catalogue, addr: u64, costs: Vec<u64>) -> u32 {
        let counter = catalogue.counters.add_at(addr, costs);
        self.know_counter(catalogue, counter, 0)
    }

    fn know_counter(&mut self, catalogue: &Catalogue, counter: u32, ends: u16) -> u32 {
        let at = self.costs.len();
        self.costs.resize(at + self.columns.stride, 0);
        let mut start = None;
        for (addr, costs) in catalogue.counters.of(counter) {
            start.get_or_insert(addr);
            self.costs[at..].iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        }
        self.counters.push(Counter { start: start.unwrap_or(0), ends });
        counter
    }

    /// Learns what has been said of the space since the last time.
    pub(super) fn learn_space(&mut self, space: &Space, catalogue: &mut Catalogue, width: usize) {
        for mapped in space.since(self.version) {
            self.learn(space, mapped.known, catalogue, width);
            let mut replaced = false;
            for m in mapped.modules.iter() {
                replaced |= catalogue.map(m.start.0, m.end.0, m.offset, &Origin::of(m));
            }
            if replaced {
                self.code_replaced();
            }
        }
        self.version = space.version();
        self.learn(space, (space.blocks.len(), space.sites.len()), catalogue, width);
    }

    /// Other code has come to lie where there was some.
    pub(super) fn code_replaced(&mut self) {
        self.single.clear();
        self.threads.values_mut().for_each(Thread::code_replaced);
    }

    /// Learns of so many blocks and sites what it does not know yet.
    fn learn(&mut self, space: &Space, (blocks, sites): (usize, usize), catalogue: &mut Catalogue, width: usize) {
        let (blocks, sites) = (blocks.max(self.known_blocks), sites.max(self.known_sites));
        let (new_blocks, new_sites) = (self.known_blocks..blocks, self.known_sites..sites);
        if new_blocks.is_empty() && new_sites.is_empty() {
            return;
        }
        for block in &space.blocks[new_blocks.clone()] {
            let counter = self.add_counter(catalogue, block.instructions.clone());
            self.counter_of_block.push(counter);
        }
        self.known_blocks = blocks;
        if let Some(simulated) = &mut self.simulated {
            simulated.learn_sites(&space.sites[new_sites.clone()]);
        }
        if let Some(used) = &mut self.used {
            let width = self.columns.stride;
            used.learn_blocks(&space.blocks[new_blocks.clone()], &self.counter_of_block[new_blocks]);
            let of_block = |block: u32| {
                let counter = self.counter_of_block[block as usize];
                let row = &self.costs[counter as usize * width..][..width];
                let costs = std::array::from_fn(|i| row.get(i).copied().unwrap_or(0) as u16);
                Told { counter, ends: self.counters[counter as usize].ends, costs }
            };
            used.learn_sites(&space.sites[new_sites.clone()], of_block);
        }
        for site in &space.sites[new_sites] {
            let hot = self.understand(site, space, catalogue, width);
            self.hot.push(hot);
            let mut kind = match hot.kind {
                _ if hot.counter == NOTHING => StepKind::Other,
                Kind::Block => StepKind::Block,
                Kind::Call => StepKind::Call,
                Kind::CallIndirect => StepKind::CallIndirect,
                Kind::Return => StepKind::Return,
                Kind::JumpIndirect => StepKind::JumpIndirect,
                Kind::Jump(_) => StepKind::Jump,
                Kind::Within(_) | Kind::Executions | Kind::Other => StepKind::Other,
            };
            let Hot { counter, mut cost, ends, site, target, .. } = hot;
            if self.columns.cycles.is_some() {
                cost = counter;
            } else if self.simulated.is_some() {
                let row = &self.costs[counter as usize * width..][..width];
                match self.columns.packed(row) {
                    Some(packed) => cost = packed.word(),
                    None => kind = StepKind::Other,
                }
            }
            self.steps.push(Step { kind, ends, counter, cost, site, target });
        }
        self.known_sites = sites;
    }

    pub(super) fn understand(&mut self, site: &Site, space: &Space, catalogue: &mut Catalogue, width: usize) -> Hot {
        let mut hot = Hot { counter: NOTHING, cost: 0, ends: 0, kind: Kind::Other, site: SiteId(0), target: 0 };
        let addr = site.addr.0;
        match site.kind {
            SiteKind::Block { block } => {
                hot.kind = Kind::Block;
                hot.counter = self.counter_of_block[block as usize];
            }
            SiteKind::Transfer { how, block, tells } => {
                let first = space.blocks[block as usize].instructions[0].addr.0;
                hot.site = catalogue.add_site(addr, addr.wrapping_add(site.len.into()), first);
                self.followed.told.insert(hot.site, self.hot.len() as u32);
                if tells {
                    hot.counter = self.counter_of_block[block as usize];
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
            SiteKind::Jump { how, block, tells } => {
                let first = space.blocks[block as usize].instructions[0].addr.0;
                hot.site = catalogue.add_site(addr, addr.wrapping_add(site.len.into()), first);
                if tells {
                    hot.counter = self.counter_of_block[block as usize];
                }
                (hot.kind, hot.target) = match how {
                    Transfer::Jump(to) => (Kind::Within(JumpKind::Always), to.0),
                    Transfer::Taken(to) => (Kind::Within(JumpKind::Conditional), to.0),
                    _ => (Kind::Block, 0),
                };
            }
            SiteKind::Executions { block } => {
                let counter = self.single_counter(catalogue, addr);
                if let Some(first) = self.columns.cycles {
                    let instruction = space.blocks[block as usize].instructions.iter().find(|i| i.addr == site.addr);
                    let cycles =
                        catalogue.counters.executed_apart(counter, instruction.map(|i| i.events).unwrap_or_default());
                    // What an execution costs beside itself: the counter's own executions are none of it.
                    self.costs[counter as usize * width + first..][..cycles.len()].copy_from_slice(&cycles);
                }
                // The counter is named apart: its executions are not one each.
                (hot.kind, hot.target) = (Kind::Executions, counter.into());
            }
            other => hot.target = other.words() as u64,
        }
        hot.cost = self.costs[hot.counter as usize * width] as u32;
        hot.ends = self.counters[hot.counter as usize].ends;
        hot
    }

    pub(super) fn thread(&mut self, tid: Tid, config: &Config) -> &mut Thread {
        // As the reference numbers them: the lowest number that is free.
        let free = (1..).find(|n| self.threads.values().all(|t| t.number != *n)).unwrap_or(1);
        let number = if self.by_kernel { u64::try_from(tid.0).unwrap_or(free) } else { free };
        self.threads.entry(tid).or_insert_with(|| {
            let now = nothing_yet(config);
            let collect_at_start = self.collects.unwrap_or(config.collect_at_start);
            let calls = Calls::new(Config { collect_at_start, ..config.clone() }, &now);
            Thread {
                number,
                calls,
                now,
                begun: false,
                recording: true,
                counted: None,
                unmade: 0,
                blocks: 0,
                pause: u64::MAX,
                in_calls: [0; 2],
                in_counted_call: false,
                executions: HashMap::new(),
                idle: None,
                used: None,
                through: None,
                frames: Vec::new(),
                missed: Map::default(),
            }
        })
    }

    /// What all threads have found since the last part.
    pub(super) fn take(&mut self, trigger: Trigger) -> Found {
        let mut threads: Vec<(u64, Profile)> = std::mem::take(&mut self.ended);
        if let Some(used) = &mut self.used {
            let by_object = &mut self.by_object;
            let tell = |by, object, uses| by_object.iter_mut().for_each(|of| of.used(Node::clone(&by), object, uses));
            threads.extend(used.settle(true, self.threads.values_mut().filter_map(Thread::line_use), tell));
        }
        let mut running: Vec<&mut Thread> = self.threads.values_mut().collect();
        running.sort_by_key(|t| t.number);
        threads.extend(running.into_iter().map(|t| (t.number, t.calls.take(&t.now))));
        threads.sort_by_key(|(number, _)| *number);
        self.by_object.iter_mut().for_each(|of| of.executed(threads.iter().map(|(_, profile)| profile)));
        let objects = self
            .by_object
            .as_mut()
            .and_then(|of| of.part(self.threads.values_mut().map(|t| (&t.calls, &mut t.missed))));
        let mut merged: Vec<(u64, Profile)> = Vec::new();
        for (number, profile) in threads {
            match merged.last_mut().filter(|(last, _)| *last == number) {
                Some((_, last)) => last.merge(profile),
                None => merged.push((number, profile)),
            }
        }
        let spawned = std::mem::take(&mut self.spawned).into_iter();
        let spawned = spawned.map(|child| format!("Spawned pid: {child}").into_bytes());
        Found {
            trigger,
            descriptions: spawned.chain(std::mem::take(&mut self.descriptions)).collect(),
            blocks: self.executed_blocks(),
            threads: merged,
            objects,
        }
    }

    /// The process has just been forked, and its profile begins with nothing: what was collected and said was its parent's.
    pub(super) fn begin_anew(&mut self, pid: Pid, dump_service: &DumpService) {
        self.descriptions.clear();
        self.spawned.clear();
        self.zero(pid, dump_service);
    }

    pub(super) fn zero(&mut self, pid: Pid, dump_service: &DumpService) {
        self.ended.clear();
        if let Some(used) = &mut self.used {
            used.zero();
        }
        self.by_object.iter_mut().for_each(|by_object| by_object.forget());
        for t in self.threads.values_mut() {
            t.calls.zero(&t.now);
            t.missed.clear();
        }
        dump_service.zeroed(pid, self.executed_blocks());
    }

    /// How many basic blocks all threads have executed to their ends.
    pub(super) fn executed_blocks(&self) -> u64 {
        self.threads.values().fold(self.blocks, |sum, t| sum.wrapping_add(t.blocks_ended()))
    }

    /// Does what functions ask for that thread `tid` has entered or left.
    #[cold]
    pub(super) fn requests(&mut self, pid: Pid, tid: Tid, catalogue: &mut Catalogue, dump_service: &DumpService) {
        while let Some(request) = self.threads.get_mut(&tid).and_then(|t| t.calls.take_request()) {
            let trigger = match request {
                Request::Zero(_) => {
                    self.zero(pid, dump_service);
                    continue;
                }
                Request::DumpBefore(f) => Trigger::Before(catalogue.name(f).to_vec()),
                Request::DumpAfter(f) => Trigger::After(catalogue.name(f).to_vec()),
            };
            dump_service.write(pid, self.take(trigger), catalogue);
        }
    }

    /// Goes through records up to one after which a function asks for something; returns what is left.
    pub(super) fn follow<'w>(&mut self, tid: Tid, catalogue: &mut Catalogue, words: &'w [u32]) -> &'w [u32] {
        let width = self.costs.len() / self.counters.len().max(1);
        let Some(t) = self.threads.get_mut(&tid) else { return &[] };
        let mut rest = words;
        if !t.begun
            && let Some(first) = words.first().and_then(|n| self.hot.get(*n as usize))
        {
            t.begun = true;
            let counter = if first.kind == Kind::Executions { first.target as usize } else { first.counter as usize };
            t.calls.begin(catalogue, self.counters[counter].start);
        }
        loop {
            if t.pause == u64::MAX {
                let Thread { calls, now, .. } = &mut *t;
                let (rows, steps) = (&self.costs[..], &self.steps[..]);
                let done = match self.columns {
                    Columns { stride: 1, .. } => calls.fast_path(steps, rest, &mut now[0]),
                    Columns { stride: 4, cycles: Some(_), .. } => {
                        calls.fast_path_rows::<4>(rows, steps, rest, now, |_, _, _| None)
                    }
                    Columns { stride: 8, cycles: Some(_), .. } => {
                        calls.fast_path_rows::<8>(rows, steps, rest, now, |_, _, _| None)
                    }
                    _ => 0,
                };
                rest = &rest[done..];
            }
            let Some((&number, operands)) = rest.split_first() else { break };
            let Some(hot) = self.hot.get(number as usize) else {
                let Some((record, after)) = FrameRecord::split(rest) else { return &[] };
                rest = after;
                if self.codes.framed(t, catalogue, record) {
                    return rest;
                }
                continue;
            };
            if hot.counter != NOTHING {
                if t.blocks >= t.pause {
                    return rest;
                }
                t.blocks += u64::from(hot.ends);
                t.calls.block(hot.counter);
                if width > 1 {
                    let costs = &self.costs[hot.counter as usize * width..][1..width];
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
            let Some((sp, after)) = operands::number(operands) else { return &[] };
            rest = after;
            let asks = if hot.kind == Kind::Call {
                t.calls.call(catalogue, hot.site, hot.target, sp, &t.now)
            } else if let Kind::Jump(kind) = hot.kind {
                t.calls.jump(catalogue, hot.site, hot.target, sp, kind, &t.now)
            } else if let Kind::Within(kind) = hot.kind {
                t.calls.jump_within(catalogue, hot.site, hot.target, kind);
                continue;
            } else if hot.kind == Kind::Executions {
                t.executed_apart(number, hot, sp, &self.costs);
                continue;
            } else {
                let Some((target, after)) = operands::number(rest) else { return &[] };
                rest = after;
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
    pub(super) fn dump_after_blocks(
        &mut self,
        pid: Pid,
        tid: Tid,
        every: u64,
        catalogue: &mut Catalogue,
        dump_service: &DumpService,
    ) {
        let executed = self.executed_blocks();
        if executed >= self.dumped + every {
            self.dumped += (executed - self.dumped) / every * every;
            dump_service.write(pid, self.take(Trigger::Blocks(every)), catalogue);
        }
        let left = self.dumped + every - executed;
        if let Some(t) = self.threads.get_mut(&tid) {
            t.pause = t.blocks + left;
        }
    }

    /// The counter of the instruction at `addr`, for costs that are told apart from its executions.
    pub(super) fn single_counter(&mut self, catalogue: &mut Catalogue, addr: u64) -> u32 {
        if let Some(counter) = self.single.get(&addr) {
            return *counter;
        }
        let counter = self.add_counter_at(catalogue, addr, Vec::new());
        self.single.insert(addr, counter);
        counter
    }

    /// The counter of the first `n` instructions of a block.
    pub(super) fn head(&mut self, catalogue: &mut Catalogue, block: u32, n: usize, all: &Block) -> u32 {
        if n >= all.instructions.len() {
            return self.counter_of_block[block as usize];
        }
        if let Some(counter) = self.heads.get(&(block, n)) {
            return *counter;
        }
        let counter = self.add_counter(catalogue, all.instructions.first(n));
        self.heads.insert((block, n), counter);
        counter
    }

    /// How far the threads are.
    pub(super) fn progress(&self) -> Progress {
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
                figure("distinct-bbs", self.counter_of_block.len()),
                figure("distinct-functions", catalogue.functions()),
            ],
        }
    }

    pub(super) fn end_thread(&mut self, tid: Tid) {
        if let Some(mut t) = self.threads.remove(&tid) {
            if let (Some(used), Some(of_thread)) = (&mut self.used, &mut t.used) {
                used.flush_thread(of_thread, t.calls.collecting());
            }
            t.count_after_all();
            t.calls.end(&t.now);
            if let Some(used) = &mut self.used {
                if let Some(of_thread) = &mut t.used {
                    used.thread_ended(of_thread, &mut t.calls);
                }
                let threads = self.threads.values_mut().chain(std::iter::once(&mut t));
                let by_object = &mut self.by_object;
                let tell =
                    |by, object, uses| by_object.iter_mut().for_each(|of| of.used(Node::clone(&by), object, uses));
                let deferred = used.settle(false, threads.filter_map(Thread::line_use), tell);
                self.ended.extend(deferred);
                if let Some(of_thread) = &t.used {
                    used.thread_gone(of_thread, t.number, &t.calls);
                }
            }
            if let Some(by_object) = &mut self.by_object {
                by_object.thread_ended(tid, &t.calls, std::mem::take(&mut t.missed));
            }
            self.blocks = self.blocks.wrapping_add(t.blocks_ended());
            self.ended.push((t.number, t.calls.take(&t.now)));
        }
    }
}

/// The catalogue is only ever locked by one side at a time; what a panic left is as good as anything.
pub(super) fn lock(catalogue: &Mutex<Catalogue>) -> std::sync::MutexGuard<'_, Catalogue> {
    catalogue.lock().unwrap_or_else(PoisonError::into_inner)
}
