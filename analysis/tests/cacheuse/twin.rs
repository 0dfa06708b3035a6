//! The slow and obvious twin: hears what the recorder hears, keeps every line as a list of all calls that were active when it
//! was loaded (method 1 of Weidendorfer and Breitbart), and charges each of them when the line goes.
//!
//! Which calls are active it asks the model of calls, which is tested elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cg_calls::{ArcId, Calls, Config, CounterKey, JumpKind, RootChange, SiteId, Spot};
use grind_analysis::callgrind::code::{Catalogue, Origin};
use grind_analysis::callgrind::settings::Settings;
use grind_names::opened::Opened;
use grind_trace::{Block, Done, Handler, Sink, Site, SiteKind, SpaceId, Special, Target, Transfer};
use grind_types::{Module, Pid, Query, Tid};

/// AcCost1, SpLoss1, AcCost2, SpLoss2.
pub(crate) type Costs = [i64; 4];

/// What was found of a process: by address of the instruction, and by addresses of call and target.
#[derive(Clone, Default, Debug)]
pub(crate) struct Found {
    pub(crate) own: HashMap<u64, Costs>,
    pub(crate) arcs: HashMap<(u64, u64), Costs>,
}

impl Found {
    fn add(&mut self, other: Found) {
        other.own.into_iter().for_each(|(k, c)| add(self.own.entry(k).or_default(), c));
        other.arcs.into_iter().for_each(|(k, c)| add(self.arcs.entry(k).or_default(), c));
    }
}

pub(crate) fn add(to: &mut Costs, costs: Costs) {
    to.iter_mut().zip(costs).for_each(|(a, b)| *a += b);
}

/// A cache: sets, ways, line size.
pub(crate) type Shape = (u64, usize, u64);

#[derive(Clone, Default)]
struct Line {
    number: u64,
    /// A name for the place where it is, which the next line there has, too.
    place: usize,
    count: i64,
    bytes: Vec<bool>,
    /// In a first level: the place in the last level that it came from.
    below: usize,
    owner: Option<usize>,
}

/// For each set its lines, the newest first.
#[derive(Clone)]
struct Cache {
    sets: Vec<Vec<Line>>,
    size: u64,
}

impl Cache {
    fn new((sets, ways, size): Shape) -> Self {
        let mut place = 0;
        let mut line = || {
            place += 1;
            Line { place, bytes: vec![false; size as usize], ..Line::default() }
        };
        Self { sets: (0..sets).map(|_| (0..ways).map(|_| line()).collect()).collect(), size }
    }

    /// The line is the newest now; what it replaced.
    fn touch(&mut self, number: u64) -> Option<Line> {
        let n = self.sets.len() as u64;
        let set = &mut self.sets[(number % n) as usize];
        if let Some(at) = set.iter().position(|l| l.number == number) {
            let found = set.remove(at);
            set.insert(0, found);
            return None;
        }
        let old = set.pop().unwrap();
        let bytes = vec![false; self.size as usize];
        set.insert(0, Line { number, place: old.place, bytes, ..Line::default() });
        Some(old)
    }

    fn newest(&mut self, number: u64) -> &mut Line {
        let n = self.sets.len() as u64;
        &mut self.sets[(number % n) as usize][0]
    }
}

/// Who loaded a line: the instruction (or the call of what is skipped), and all calls that were active.
#[derive(Clone)]
struct Owner {
    address: u64,
    /// The root that they are below.
    root: usize,
    arcs: Vec<(u64, u64)>,
}

/// What all lines loaded below a root have cost since the last dump.
#[derive(Clone)]
struct Root {
    costs: Costs,
}

#[derive(Clone)]
struct Thread {
    calls: Calls,
    begun: bool,
    recording: bool,
    /// By port: data, instructions.
    caches: [Cache; 2],
    /// Of the thread itself, and of handlers (whose numbers nobody needs to find again).
    root: usize,
    executions: HashMap<u32, u64>,
}

#[derive(Clone)]
struct Process {
    space: SpaceId,
    version: u64,
    catalogue: Catalogue,
    /// The model's numbers of sites that transfer control.
    sites: Vec<SiteId>,
    threads: HashMap<Tid, Thread>,
    ll: Cache,
    owners: Vec<Owner>,
    roots: Vec<Root>,
    now: Found,
    dumped: Found,
    collecting: bool,
}

#[derive(Clone, Default)]
struct Space {
    sites: Vec<Site>,
    specials: Vec<Special>,
    blocks: Vec<Block>,
    modules: Vec<Module>,
    version: u64,
}

/// See the module's description.
pub(crate) struct Twin {
    settings: Settings,
    shapes: [Shape; 3],
    spaces: HashMap<SpaceId, Space>,
    processes: HashMap<Pid, Process>,
    pub(crate) found: Arc<Mutex<HashMap<Pid, Found>>>,
}

impl Twin {
    /// `shapes` are those of I1, D1 and LL.
    pub(crate) fn new(settings: Settings, shapes: [Shape; 3]) -> Self {
        let found = Arc::default();
        Self { settings, shapes, spaces: HashMap::new(), processes: HashMap::new(), found }
    }

    fn config(&self) -> Config {
        Config { contexts: true, ..self.settings.config(1) }
    }
}

fn word(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Process {
    fn thread(&mut self, tid: Tid, config: &Config, shapes: [Shape; 3]) {
        let roots = &mut self.roots;
        self.threads.entry(tid).or_insert_with(|| {
            roots.push(Root { costs: [0; 4] });
            let mut calls = Calls::new(config.clone(), &[0]);
            calls.changes();
            Thread {
                calls,
                begun: false,
                recording: true,
                caches: [Cache::new(shapes[1]), Cache::new(shapes[0])],
                root: roots.len() - 1,
                executions: HashMap::new(),
            }
        });
    }

    fn learn_space(&mut self, space: &Space) {
        if self.version != space.version {
            self.version = space.version;
            for m in &space.modules {
                self.catalogue.map(m.start.0, m.end.0, m.offset, &Origin::of(m));
            }
        }
        for site in &space.sites[self.sites.len()..] {
            let id = match site.kind {
                SiteKind::Transfer { block, .. } => {
                    let first = space.blocks[block as usize].instructions[0].addr.0;
                    self.catalogue.add_site(site.addr.0, site.addr.0 + u64::from(site.len), first)
                }
                _ => SiteId(0),
            };
            self.sites.push(id);
        }
    }

    fn arc_name(&mut self, tid: Tid, arc: ArcId) -> (u64, u64) {
        let (_, site, target, _) = self.threads[&tid].calls.describe_arc(arc);
        (cg_calls::Code::site(&mut self.catalogue, site).addr, target)
    }

    /// What has happened to the thread's root.
    fn roots_changed(&mut self, tid: Tid) {
        let changes = self.threads.get_mut(&tid).unwrap().calls.changes();
        for change in changes.root {
            let root = self.threads[&tid].root;
            match change {
                RootChange::Ended => {
                    self.roots.push(Root { costs: [0; 4] });
                    self.threads.get_mut(&tid).unwrap().root = self.roots.len() - 1;
                }
                RootChange::Called(arc) => {
                    let name = self.arc_name(tid, arc);
                    add(self.now.arcs.entry(name).or_default(), self.roots[root].costs);
                    self.owners.iter_mut().filter(|o| o.root == root).for_each(|o| o.arcs.push(name));
                }
            }
        }
    }

    fn retire(&mut self, first: bool, line: Line, collecting: bool) {
        let Some(owner) = line.owner else { return };
        if !collecting {
            return;
        }
        let mut costs = [0; 4];
        if line.count > 0 {
            let unused = line.bytes.chunks(line.bytes.len() / 32).filter(|p| !p.contains(&true)).count();
            let level = if first { 0 } else { 2 };
            costs[level] = 1000 / line.count;
            costs[level + 1] = (unused * line.bytes.len() / 32) as i64;
        }
        if first {
            let below = self.ll.sets.iter_mut().flatten().find(|l| l.place == line.below).unwrap();
            below.count += line.count;
            below.bytes.iter_mut().zip(&line.bytes).for_each(|(b, o)| *b |= o);
        }
        let Owner { address, root, arcs } = &self.owners[owner];
        add(self.now.own.entry(*address).or_default(), costs);
        add(&mut self.roots[*root].costs, costs);
        for arc in arcs {
            add(self.now.arcs.entry(*arc).or_default(), costs);
        }
    }

    fn owner(&mut self, tid: Tid, address: u64) -> usize {
        let t = self.threads.get_mut(&tid).unwrap();
        let spot = t.calls.spot(0);
        let address = match t.calls.describe_spot(spot) {
            (_, CounterKey::Skipped(site)) if matches!(spot, Spot::Skipped(_)) => {
                cg_calls::Code::site(&mut self.catalogue, site).addr
            }
            _ => address,
        };
        let bottom = t.calls.handlers().last();
        let arcs: Vec<ArcId> =
            (bottom.unwrap_or(0)..t.calls.frames()).filter_map(|frame| t.calls.frame_arc(frame)).collect();
        let mut root = t.root;
        if bottom.is_some() {
            self.roots.push(Root { costs: [0; 4] });
            root = self.roots.len() - 1;
        }
        let arcs = arcs.into_iter().map(|arc| self.arc_name(tid, arc)).collect();
        self.owners.push(Owner { address, root, arcs });
        self.owners.len() - 1
    }

    fn access(&mut self, tid: Tid, instruction: u64, port: usize, addr: u64, size: u64, count: i64) {
        let collecting = self.threads[&tid].calls.collecting();
        let line_size = self.ll.size;
        for number in addr / line_size..=(addr + size - 1) / line_size {
            let cache = &mut self.threads.get_mut(&tid).unwrap().caches[port];
            let old = cache.touch(number);
            let line = cache.newest(number);
            line.count += count;
            let part = line_size / 32;
            for byte in (addr..addr + size).filter(|b| b / line_size == number) {
                let first = (byte % line_size / part * part) as usize;
                line.bytes[first..first + part as usize].fill(true);
            }
            let Some(old) = old else { continue };
            let owner = self.owner(tid, instruction);
            self.retire(true, old, collecting);
            let old = self.ll.touch(number);
            if let Some(old) = old {
                self.ll.newest(number).owner = Some(owner);
                self.retire(false, old, collecting);
            }
            let below = self.ll.newest(number).place;
            let line = self.threads.get_mut(&tid).unwrap().caches[port].newest(number);
            (line.owner, line.below) = (Some(owner), below);
        }
    }

    fn flush_thread(&mut self, tid: Tid, shapes: [Shape; 3]) {
        let t = self.threads.get_mut(&tid).unwrap();
        self.collecting = t.calls.collecting();
        let new = [Cache::new(shapes[1]), Cache::new(shapes[0])];
        let [data, code] = std::mem::replace(&mut t.caches, new);
        for line in code.sets.into_iter().chain(data.sets).flatten() {
            self.retire(true, line, self.collecting);
        }
    }

    fn flush(&mut self, shapes: [Shape; 3]) {
        let all = std::mem::replace(&mut self.ll, Cache::new(shapes[2]));
        for line in all.sets.into_iter().flatten() {
            self.retire(false, line, self.collecting);
        }
    }

    fn end_thread(&mut self, tid: Tid, shapes: [Shape; 3]) {
        if self.threads.contains_key(&tid) {
            self.flush_thread(tid, shapes);
            self.threads.get_mut(&tid).unwrap().calls.end(&[0]);
            self.threads.remove(&tid);
        }
    }

    fn dump(&mut self) {
        self.dumped.add(std::mem::take(&mut self.now));
        // What was shown is not given to a caller that is found out later.
        self.roots.iter_mut().for_each(|r| r.costs = [0; 4]);
    }

    fn record(&mut self, tid: Tid, space: &Space, number: u32, record: &[u32]) {
        let site = space.sites[number as usize];
        let addr = site.addr.0;
        let register = |n: usize| word(record[n], record[n + 1]);
        if !self.threads[&tid].begun {
            let t = self.threads.get_mut(&tid).unwrap();
            t.begun = true;
            t.calls.begin(&mut self.catalogue, addr);
        }
        match site.kind {
            SiteKind::Stretch { instructions, bytes, members, .. } => {
                self.access(tid, addr, 1, addr, bytes.into(), instructions.into());
                for n in 1..=usize::from(members) {
                    let member = space.sites[number as usize + n];
                    let SiteKind::Member { group, offset, size, .. } = member.kind else { panic!("{member:?}") };
                    let address = register(1 + 2 * usize::from(group)) + u64::from(offset);
                    self.access(tid, member.addr.0, 0, address, size.into(), 1);
                }
            }
            SiteKind::Repeated { size, source, target, target_first, narrow } => {
                assert!(!narrow, "32-bit addresses");
                let (count, left) = (register(1), register(7));
                let (from, to) = (register(3), register(5));
                let back = (register(9) as i64) < from as i64 || (register(11) as i64) < to as i64;
                for n in 0..count - left {
                    let moved = (n * u64::from(size)) as i64 * if back { -1 } else { 1 };
                    let at = |start: u64| start.wrapping_add_signed(moved);
                    let target_at = (target != Target::Unused).then(|| at(to));
                    let source_at = source.then(|| at(from));
                    let both = if target_first { [target_at, source_at] } else { [source_at, target_at] };
                    both.into_iter().flatten().for_each(|a| self.access(tid, addr, 0, a, size.into(), 1));
                }
            }
            SiteKind::Special { index, .. } => {
                for touch in space.specials[index as usize].touches(record) {
                    let size = touch.size.min(self.ll.size);
                    assert!(touch.done != Done::Modify || size > 0);
                    self.access(tid, addr, 0, touch.address, size, 1);
                }
            }
            SiteKind::Executions { .. } => {
                let now = register(1);
                let t = self.threads.get_mut(&tid).unwrap();
                let more = now - t.executions.insert(number, now).unwrap_or(0);
                if more > 1 {
                    self.access(tid, addr, 1, addr, site.len.into(), more as i64 - 1);
                }
            }
            SiteKind::Transfer { how, .. } => {
                let id = self.sites[number as usize];
                let catalogue = &mut self.catalogue;
                let calls = &mut self.threads.get_mut(&tid).unwrap().calls;
                let sp = register(1);
                match how {
                    Transfer::Call(to) => calls.call(catalogue, id, to.0, sp, &[0]),
                    Transfer::CallIndirect => calls.call(catalogue, id, register(3), sp, &[0]),
                    Transfer::Return => calls.ret(catalogue, id, register(3), sp, &[0]),
                    Transfer::JumpIndirect => calls.jump(catalogue, id, register(3), sp, JumpKind::Always, &[0]),
                    Transfer::Jump(to) => calls.jump(catalogue, id, to.0, sp, JumpKind::Always, &[0]),
                    Transfer::Taken(to) => calls.jump(catalogue, id, to.0, sp, JumpKind::Conditional, &[0]),
                    Transfer::Onward(to) => calls.jump(catalogue, id, to.0, sp, JumpKind::FallThrough, &[0]),
                };
                self.roots_changed(tid);
            }
            SiteKind::Block { .. } => {}
            kind => panic!("a record of {kind:?}"),
        }
    }
}

impl Sink for Twin {
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
        space.modules = modules.to_vec();
        space.version += 1;
    }
    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        let copy = self.spaces.get(&from).cloned().unwrap_or_default();
        self.spaces.insert(to, copy);
    }
    fn image(&mut self, pid: Pid, space: SpaceId) {
        let catalogue = Catalogue::new(self.settings.clone(), Opened::new(grind_symbols::Options::default()));
        let mut process = Process {
            space,
            version: 0,
            catalogue,
            sites: Vec::new(),
            threads: HashMap::new(),
            ll: Cache::new(self.shapes[2]),
            owners: Vec::new(),
            roots: Vec::new(),
            now: Found::default(),
            dumped: Found::default(),
            collecting: true,
        };
        process.catalogue.counters.add_at(0, []);
        process.thread(Tid::main_of(pid), &self.config(), self.shapes);
        self.processes.insert(pid, process);
    }
    fn moved(&mut self, pid: Pid, space: SpaceId) {
        self.processes.get_mut(&pid).unwrap().space = space;
    }
    fn forked(&mut self, parent: Pid, tid: Tid, child: Pid) {
        let mut copy = self.processes[&parent].clone();
        let mut thread = copy.threads.remove(&tid).unwrap();
        for other in copy.threads.keys().copied().collect::<Vec<_>>() {
            copy.end_thread(other, self.shapes);
        }
        thread.executions.clear();
        copy.threads.insert(Tid::main_of(child), thread);
        // Parts that were written before are the parent's.
        copy.dumped = Found::default();
        self.processes.insert(child, copy);
    }
    fn records(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        let config = self.config();
        let p = self.processes.get_mut(&pid).unwrap();
        let space = &self.spaces[&p.space];
        p.learn_space(space);
        p.thread(tid, &config, self.shapes);
        let mut rest = words;
        while let Some(&number) = rest.first() {
            let (record, after) = rest.split_at(space.sites[number as usize].kind.words());
            p.record(tid, space, number, record);
            rest = after;
        }
    }
    fn asked(&mut self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        let config = self.config();
        let p = self.processes.get_mut(&pid).unwrap();
        match ask {
            Query::Dump(_) => p.dump(),
            Query::Zero => {
                p.now = Found::default();
                p.roots.iter_mut().for_each(|r| r.costs = [0; 4]);
            }
            Query::ToggleCollect => {
                let tid = tid.unwrap();
                p.thread(tid, &config, self.shapes);
                p.threads.get_mut(&tid).unwrap().calls.toggle_collect(&[0]);
            }
            Query::Look | Query::Peek | Query::Collect(_) | Query::SkipObject(_) | Query::Describe(_) => {}
        }
    }
    fn signal_begins(&mut self, pid: Pid, tid: Tid, handler: &Handler) {
        let p = self.processes.get_mut(&pid).unwrap();
        p.learn_space(&self.spaces[&p.space]);
        let t = p.threads.get_mut(&tid).unwrap();
        if t.recording && t.begun {
            t.calls.signal_enter(&mut p.catalogue, handler.addr.0, handler.sp, handler.stack.clone(), &[0]);
        }
    }
    fn signal_ends(&mut self, pid: Pid, tid: Tid) {
        if let Some(t) = self.processes.get_mut(&pid).and_then(|p| p.threads.get_mut(&tid)) {
            t.calls.signal_leave(&[0]);
        }
    }
    fn recording(&mut self, pid: Pid, tid: Tid, on: bool) {
        let config = self.config();
        let p = self.processes.get_mut(&pid).unwrap();
        p.thread(tid, &config, self.shapes);
        p.threads.get_mut(&tid).unwrap().recording = on;
        if !on {
            p.flush_thread(tid, self.shapes);
            if p.threads.values().all(|t| !t.recording) {
                p.flush(self.shapes);
            }
            let t = p.threads.get_mut(&tid).unwrap();
            if std::mem::take(&mut t.begun) {
                t.calls.end(&[0]);
                p.roots_changed(tid);
            }
        }
    }
    fn thread_ended(&mut self, pid: Pid, tid: Tid) {
        self.processes.get_mut(&pid).unwrap().end_thread(tid, self.shapes);
    }
    fn process_ended(&mut self, pid: Pid) {
        let Some(mut p) = self.processes.remove(&pid) else { return };
        for tid in p.threads.keys().copied().collect::<Vec<_>>() {
            p.end_thread(tid, self.shapes);
        }
        p.flush(self.shapes);
        p.dump();
        self.found.lock().unwrap().insert(pid, p.dumped);
    }
}
