//! Calls that emitted code follows by itself: what it has in common with whoever knows the rules.
//!
//! A translation belongs to a *call context*: the function that runs, on which level of recursion, or the call of a skipped stub; and
//! whether costs are collected, since functions may switch that. Where they are not, totals stand still.
//! Counters of a translation thus count for a context, and a call, a return or a jump that has been made before in the same
//! call context always has the same effect, its *call edge*. Emitted code keeps a shadow stack of such call edges for each thread;
//! whatever it has not met before, or cannot decide, stops, and the [`crate::Sink`] decides, once it knows what has
//! happened since it was asked last.
//!
//! Invariants: numbers of call contexts and call edges are never used twice in a space and mean the same in all processes that share
//! it, so they are made of what does not depend on a process; the stack that emitted code sees is a window of the whole
//! one: nothing below it is ever touched without a stop.

use std::time::{Duration, Instant};

use grind_layout as layout;
pub use grind_layout::{TOTALS, WINDOW};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::hash::{Map, Set};

use crate::transfer::Transfer;

/// Number of a [`CallContext`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallContextId(pub u32);

impl CallContextId {
    /// That of all code where calls are not followed.
    pub const NONE: CallContextId = CallContextId(0);
}

/// Whom executions count for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallContext {
    /// The function that is running, by a number of the sink's that is the same for all processes of a space.
    pub function: u32,
    /// The callers that tell its contexts apart, by such a number of lists of them; 0: there are none.
    pub callers: u32,
    /// Its level of recursion, from 0.
    pub level: u32,
    /// A skipped stub is running: the site of the call that led to it, and that it counts for.
    pub skip: Option<u32>,
    /// Nothing is collected: totals stand still.
    pub off: bool,
}

/// How a call edge begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A call.
    Call,
    /// A jump that is a call.
    Jump,
    /// A call of a skipped stub.
    Stub,
    /// A jump to a skipped stub.
    JumpToStub,
    /// The jump out of that stub, which is the call proper.
    Through,
}

/// A call that has been made before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallEdge {
    /// How it begins.
    pub kind: CallKind,
    /// The site of the instruction.
    pub site: u32,
    /// The caller.
    pub from: CallContextId,
    /// Where it leads.
    pub target: u64,
    /// The callee.
    pub to: CallContextId,
}

/// No call edge: a frame that only the sink can pop.
pub const NO_CALL_EDGE: u32 = u32::MAX;

/// What a thread has executed: instructions; reads, and writes with modifications, if caches are simulated; conditional
/// branches and indirect jumps, if branches are. What is not counted is 0.
pub type Totals = [u64; TOTALS];

/// Which of the [`Totals`] is that of instructions that lock the bus, where it is asked for: one that would be idle. `None`: none
/// is, since there are those of accesses (`data`) and of branches.
#[must_use]
pub const fn bus_total(data: bool, branches: bool) -> Option<usize> {
    match (data, branches) {
        (_, false) => Some(3),
        (false, true) => Some(1),
        (true, true) => None,
    }
}

/// The first total of a thread that begins, which must not be 0: that is what the frame below all others was entered at, and what
/// was told last is known by its total, even if nothing has been collected yet.
pub const FIRST: u64 = 1;

/// A frame of the shadow stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stack pointer after the call; that of the frame below for a jump.
    pub sp: u64,
    /// The thread's totals at that time.
    pub entered: Totals,
    /// Number of its [`CallEdge`], or [`NO_CALL_EDGE`].
    pub call_edge: u32,
}

/// What emitted code knows of a thread's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// What the thread has executed.
    pub totals: Totals,
    /// How many of the frames that it knew the last time are as they were; the lowest ones.
    pub kept: usize,
    /// Those above them, the innermost last.
    pub frames: Vec<Frame>,
    /// There are others below them: where they have all been left, whatever comes is to be asked about.
    pub hides: bool,
    /// How many calls of functions are going on, where that has changed; by the functions' numbers. Those on the last level of
    /// recursion do not count.
    pub active: Vec<(u32, u64)>,
}

/// Above any site's number, and added to what [`depth_told`] understands: of the frames that emitted code has of a thread's calls
/// there are so many. The second word of the record is the call edge of the innermost of them, or [`NO_CALL_EDGE`] if nothing is new.
/// Such records stand in front of a miss: those of all frames that have come since the last one (some perhaps again), the
/// outermost first, or one without a call edge. Frames below are as they were.
pub const FRAME_TOLD: u32 = 1 << 31;

/// Words of such a record.
pub const FRAME_WORDS: usize = 2;

/// How many frames the first word of a record says that there are; nothing if it is not such a record.
#[inline]
#[must_use]
pub const fn depth_told(word: u32) -> Option<usize> {
    let offset = word.wrapping_sub(FRAME_TOLD) as u64;
    if offset >= layout::FRAMES && offset < layout::FRAMES + layout::FRAMES_SIZE {
        Some(((offset - layout::FRAMES) / layout::FRAME) as usize)
    } else {
        None
    }
}

/// Above any word of [`FRAME_TOLD`], and added to the number of a call edge: where each call is told ([`crate::CallTrace::each`]), a
/// call of that call edge was made. Behind it stand the thread's totals, those that it has, as two words each.
pub const CALL_TOLD: u32 = 3 << 30;

/// The same for a return, added to how many frames it has left: one or two.
pub const RETURN_TOLD: u32 = CALL_TOLD + MOST_TOLD;

/// Calls of so many call edges can be told. Far above are the numbers of records that are none of a site.
pub const MOST_TOLD: u32 = 1 << 29;

/// What happens whenever a site leads there in that call context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackEffect {
    /// Nothing.
    Nothing,
    /// A frame is pushed.
    Push {
        /// The call edge's kind.
        kind: CallKind,
        /// Levels that the callee has: it is on the last one if more calls of it are going on.
        levels: u32,
        /// Where it returns to; 0 if it pushes nothing.
        returns_to: u64,
    },
}

/// What a transfer of control has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The call context before.
    pub from: CallContext,
    /// The call context from there on.
    pub to: CallContext,
    /// Whether that is so every time; if not, it has to be asked for each time.
    pub always: Option<StackEffect>,
}

impl Outcome {
    /// Whether it is a call from one function to another, and not out of a stub that is skipped.
    fn is_of_another_function(&self) -> bool {
        self.from.function != self.to.function && self.from.skip.is_none() && self.to.skip.is_none()
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug)]
struct Met {
    to: CallContext,
    levels: u32,
    /// It switches collection on or off.
    switches: bool,
}

/// What a thread has executed in some call context since that was asked for last.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// How often what sites tell of was executed: site, call context, executions.
    pub executed: Vec<(u32, CallContextId, u64)>,
    /// Executions of single instructions: address, call context, executions.
    pub repeated: Vec<(u64, CallContextId, u64)>,
    /// Jumps that pushed nothing, but for those that are executions of a [`crate::SiteKind::Jump`]: site, call context,
    /// target, how many.
    pub jumps: Vec<(u32, CallContextId, u64, u64)>,
    /// By call edge: calls, and what was executed during those that have returned.
    pub call_edges: Vec<(u32, u64, Totals)>,
}

/// What the numbers of call contexts and call edges mean.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By number.
    pub call_contexts: Vec<CallContext>,
    /// By number.
    pub call_edges: Vec<CallEdge>,
}

impl Names {
    /// What has come behind so many call contexts and call edges.
    pub fn since(&self, (call_contexts, call_edges): (usize, usize)) -> Self {
        Self {
            call_contexts: self.call_contexts[call_contexts..].to_vec(),
            call_edges: self.call_edges[call_edges..].to_vec(),
        }
    }

    /// How many call contexts and call edges there are.
    pub fn len(&self) -> (usize, usize) {
        (self.call_contexts.len(), self.call_edges.len())
    }

    /// Adds what has come.
    pub fn extend(&mut self, news: Self) {
        self.call_contexts.extend(news.call_contexts);
        self.call_edges.extend(news.call_edges);
    }
}

/// What a site leads to.
#[derive(Clone, Debug, Default)]
pub struct BridgeChain {
    /// Where bridges are, by their targets.
    pub bridges: Vec<(GuestAddr, CacheAddr)>,
    /// Where the first one is, or the table's code.
    pub head: CacheAddr,
    /// Where the stop is that asks the sink.
    pub stop: CacheAddr,
    /// The number of its table of targets, if it has one.
    pub table: Option<u32>,
}

impl BridgeChain {
    /// Where its newest bridge to `target` begins.
    pub fn bridge(&self, target: GuestAddr) -> Option<CacheAddr> {
        self.bridges.iter().rev().find(|(to, _)| *to == target).map(|(_, at)| *at)
    }
}

/// The call contexts and call edges of a space.
#[derive(Clone, Debug)]
pub struct Book {
    /// What they are.
    pub names: Names,
    call_context_ids: Map<CallContext, CallContextId>,
    call_edge_ids: Map<CallEdge, u32>,
    /// By call edge: where the code is that returns from it, in the present translations; 0 if there is none.
    pub returns: Vec<CacheAddr>,
    /// The other way round, of all code that ever did: frames may last longer than what pushed them.
    pub by_return: Map<CacheAddr, u32>,
    /// Counters of calls and of inclusive costs: counter, call edge, and of which total if it is the latter.
    pub counters: Vec<(u32, u32, Option<u8>)>,
    /// Counters of jumps to where no frame is pushed, beside what is executed by the way: counter, site, call context, target.
    pub jumps: Vec<(u32, u32, CallContextId, u64)>,
    /// Counters of what is executed: counter, site, call context. No counter: only `deferred` tells how often that is.
    pub exits: Vec<(u32, u32, CallContextId)>,
    /// Counters that count for others of `exits`, too: counter, which one, and whether they are taken off there.
    pub deferred: Vec<(u32, u32, bool)>,
    /// By the field by which a site is left: what it leads to.
    pub chains: Map<CacheAddr, BridgeChain>,
    /// By page: the fields of `chains` that lead there.
    pub led: Map<u64, Vec<CacheAddr>>,
    /// What calls from other functions have come to lately, by their targets, where that was as it always is.
    met: Map<u64, Met>,
    /// What indirect jumps within a function have led to.
    within: Set<(u64, CallContextId)>,
    /// Tables of targets in use.
    pub tables: u32,
    /// Stops that were of no use for the future, since when.
    vain: Option<(u32, Duration, Instant)>,
    /// There are so many of them that calls should rather be told.
    pub given_up: bool,
}

/// After so many stops in vain it is seen how long they took.
const IN_VAIN: u32 = 4096;

/// What a stop takes beside what is done at it.
const STOP: Duration = Duration::from_micros(8);

impl Default for Book {
    fn default() -> Self {
        // Nobody's.
        let nobody = CallContext { function: u32::MAX, callers: 0, level: 0, skip: None, off: false };
        Self {
            names: Names { call_contexts: vec![nobody], call_edges: Vec::new() },
            call_context_ids: Map::default(),
            call_edge_ids: Map::default(),
            returns: Vec::new(),
            by_return: Map::default(),
            counters: Vec::new(),
            jumps: Vec::new(),
            exits: Vec::new(),
            deferred: Vec::new(),
            chains: Map::default(),
            led: Map::default(),
            met: Map::default(),
            within: Set::default(),
            tables: 0,
            vain: None,
            given_up: false,
        }
    }
}

impl Book {
    /// The rules have changed: what was decided elsewhere says nothing any more.
    pub fn forget_decisions(&mut self) {
        self.met.clear();
        self.within.clear();
    }

    /// The number of a call context.
    pub fn call_context(&mut self, call_context: CallContext) -> CallContextId {
        let next = CallContextId(self.names.call_contexts.len() as u32);
        let id = *self.call_context_ids.entry(call_context).or_insert(next);
        if id == next {
            self.names.call_contexts.push(call_context);
        }
        id
    }

    /// The number of a call context that has one.
    pub fn known_call_context(&self, call_context: CallContext) -> Option<CallContextId> {
        self.call_context_ids.get(&call_context).copied()
    }

    /// Whether nothing is collected in that call context.
    pub fn is_off(&self, id: CallContextId) -> bool {
        self.names.call_contexts[id.0 as usize].off
    }

    /// Whom a call from `from` returns to: of one through a stub, whoever called that.
    pub fn caller(&mut self, from: CallContextId) -> CallContextId {
        let caller = CallContext { skip: None, ..self.names.call_contexts[from.0 as usize] };
        self.call_context(caller)
    }

    /// The number of a call edge.
    pub fn call_edge(&mut self, call_edge: CallEdge) -> u32 {
        let next = self.names.call_edges.len() as u32;
        let id = *self.call_edge_ids.entry(call_edge).or_insert(next);
        if id == next {
            self.names.call_edges.push(call_edge);
            self.returns.push(CacheAddr(0));
        }
        id
    }

    /// Whether a bridge leads from the site that is left by `root` to `target`.
    pub fn leads(&self, root: CacheAddr, target: GuestAddr) -> bool {
        self.bridge(root, target).is_some()
    }

    /// Where the newest one begins.
    pub fn bridge(&self, root: CacheAddr, target: GuestAddr) -> Option<CacheAddr> {
        self.chains.get(&root)?.bridge(target)
    }

    /// Takes note of what a transfer to `target` comes to, if it comes to the same from other sites, too, as long as that is the
    /// same code: a plain call of another function is up to that function alone, unless it matters who calls (`by_caller`), and so is
    /// an indirect jump within one.
    pub fn meet(&mut self, how: Option<Transfer>, target: u64, outcome: &Outcome, by_caller: bool) {
        match (how, outcome.always) {
            (Some(Transfer::JumpIndirect), Some(StackEffect::Nothing)) if outcome.from == outcome.to => {
                let call_context = self.call_context(outcome.to);
                self.within.insert((target, call_context));
            }
            (_, Some(StackEffect::Push { kind: CallKind::Call, levels, .. }))
                if outcome.is_of_another_function() && !by_caller =>
            {
                let switches = outcome.from.off != outcome.to.off;
                self.met.insert(target, Met { to: outcome.to, levels, switches });
            }
            _ => {}
        }
    }

    /// What a transfer to `target` from a site in call context `from` comes to, as far as others tell. A call returns to `returns_to`.
    pub fn has_met(&self, how: Transfer, from: CallContextId, target: u64, returns_to: u64) -> Option<Outcome> {
        let call_context = self.names.call_contexts[from.0 as usize];
        match how {
            Transfer::JumpIndirect => {
                let nothing = Outcome { from: call_context, to: call_context, always: Some(StackEffect::Nothing) };
                self.within.contains(&(target, from)).then_some(nothing)
            }
            Transfer::Call(_) | Transfer::CallIndirect => {
                let Met { to, levels, switches } = *self.met.get(&target)?;
                let to = CallContext { off: call_context.off != switches, ..to };
                let always = Some(StackEffect::Push { kind: CallKind::Call, levels, returns_to });
                let outcome = Outcome { from: call_context, to, always };
                outcome.is_of_another_function().then_some(outcome)
            }
            _ => None,
        }
    }

    /// A stop that began then was in vain; says whether calls should rather be told from now on: if such stops take more than
    /// an eighth of the time.
    pub fn in_vain(&mut self, began: Instant) -> bool {
        let (n, spent, since) = self.vain.get_or_insert((0, Duration::ZERO, began));
        *n += 1;
        *spent += began.elapsed();
        if *n >= IN_VAIN {
            self.given_up |= (*spent + STOP * IN_VAIN) * 8 > since.elapsed();
            self.vain = None;
        }
        self.given_up
    }

    /// All translations, and their counters, are gone.
    pub fn flush(&mut self) {
        self.returns.fill(CacheAddr(0));
        self.by_return.clear();
        self.counters.clear();
        self.jumps.clear();
        self.exits.clear();
        self.deferred.clear();
        self.chains.clear();
        self.led.clear();
        self.tables = 0;
    }
}
