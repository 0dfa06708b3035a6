//! The way to the sink: a thread of its own, which a few full buffers may wait for, so that the guest runs on while they are
//! analysed; or, where it has to be asked at stops, a sink at hand. That is on the engine's thread, but for full buffers, for
//! which it has a thread, too: whoever asks waits until those have been dealt with. What is sent arrives in order.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use grind_guest::slots::Segment;
use grind_layout as layout;
use grind_trace::follow::{Book, Names};
use grind_trace::{Block, Handler, NativeFrame, Sink, Site, SpaceId, Special, SystemCall};
use grind_types::frames::FrameFunction;
use grind_types::hash::Map;
use grind_types::{Module, Pid, Query, Tid};

use crate::guard::{CarefulSink, Health};

/// Full buffers that may wait for the sink before the guest has to.
const QUEUE: usize = 2;

// A segment must have been read before the guest gets to it again: when a message has been taken into the queue, `QUEUE` may
// wait there and one may be under way to it; whatever was sent before those has been dealt with but for the last.
const _: () = assert!(QUEUE as u64 + 3 <= layout::TRACE_SEGMENTS);

/// What travels to the sink's thread: what [`Sink`]'s methods of these names are told.
#[derive(Debug)]
enum Message {
    Sites { code_cache: SpaceId, sites: Vec<Site>, specials: Vec<Special> },
    Blocks { code_cache: SpaceId, blocks: Vec<Block> },
    Mapped { code_cache: SpaceId, modules: Vec<Module> },
    CodeMade { pid: Pid, moment: u32 },
    FrameCode { pid: Pid, code: u64, function: Option<FrameFunction> },
    SpaceCopied { from: SpaceId, to: SpaceId },
    Image { pid: Pid, code_cache: SpaceId },
    Moved { pid: Pid, code_cache: SpaceId },
    Stack { pid: Pid, tid: Tid, range: Range<u64> },
    Forked { parent: Pid, tid: Tid, child: Pid },
    Records { pid: Pid, tid: Tid, words: Vec<u32> },
    Objects { pid: Pid, tid: Tid, words: Vec<u32> },
    Segment { pid: Pid, tid: Tid, segment: Segment },
    Full { pid: Pid, tid: Tid, followed: Option<(SpaceId, Names)>, segment: Segment, waits: Waits },
    Asked { pid: Pid, tid: Option<Tid>, ask: Query, done: Sender<()> },
    Recording { pid: Pid, tid: Tid, on: bool },
    Stands { pid: Pid, tid: Tid, frames: Vec<NativeFrame> },
    Corrected { pid: Pid, tid: Tid, block: u32, counted: usize, executed: usize },
    SystemCall { pid: Pid, tid: Tid, call: SystemCall },
    SignalBegins { pid: Pid, tid: Tid, handler: Handler },
    SignalEnds { pid: Pid, tid: Tid },
    ThreadBorn { pid: Pid, tid: Tid },
    ThreadEnded { pid: Pid, tid: Tid },
    ProcessEnded { pid: Pid, done: Sender<()> },
}

/// The engine's end of the way to the sink.
#[derive(Debug)]
pub struct TraceChannel {
    to: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    /// The sink itself, where it is asked at stops.
    here: Option<Arc<Here>>,
    code_caches: u32,
    /// How many call contexts and call edges of each space the sink's thread has been told.
    told: RefCell<Map<SpaceId, (usize, usize)>>,
    health: Health,
}

/// A sink at hand.
struct Here {
    state: Mutex<State>,
    /// Buffers that its thread has not dealt with yet.
    waiting: Mutex<usize>,
    none: Condvar,
}

struct State {
    sink: Box<dyn Sink>,
    buffer: Vec<u32>,
    /// What its thread has been told of each space.
    names: Map<SpaceId, Names>,
}

impl Here {
    /// The sink, when no buffers wait any more.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while *waiting > 0 {
            waiting = self.none.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        drop(waiting);
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer waits for as long as this is there: until it has been dealt with or dropped.
#[derive(Debug)]
struct Waits(Arc<Here>);

impl Waits {
    fn begin(here: &Arc<Here>) -> Self {
        *here.waiting.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(here.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting -= 1;
        if *waiting == 0 {
            self.0.none.notify_all();
        }
    }
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").finish_non_exhaustive()
    }
}

impl TraceChannel {
    /// Starts the sink's thread.
    pub fn new(sink: Box<dyn Sink>) -> std::io::Result<Self> {
        let (to, from) = sync_channel(QUEUE);
        let (sink, health) = CarefulSink::new(sink);
        let serve = move || serve(Box::new(sink), &from);
        let thread = std::thread::Builder::new().name("simulate".into()).spawn(serve)?;
        Ok(Self::of(to, thread, None, health))
    }

    /// The sink stays here: it is asked at stops.
    pub fn at_hand(sink: Box<dyn Sink>) -> std::io::Result<Self> {
        let (sink, health) = CarefulSink::new(sink);
        let sink = Box::new(sink);
        let state = Mutex::new(State { sink, buffer: Vec::new(), names: Map::default() });
        let here = Arc::new(Here { state, waiting: Mutex::new(0), none: Condvar::new() });
        let (to, from) = sync_channel(QUEUE);
        let served = here.clone();
        let thread = std::thread::Builder::new().name("simulate".into()).spawn(move || serve_here(&served, &from))?;
        Ok(Self::of(to, thread, Some(here), health))
    }

    fn of(to: SyncSender<Message>, thread: JoinHandle<()>, here: Option<Arc<Here>>, health: Health) -> Self {
        Self { to: Some(to), thread: Some(thread), here, code_caches: 0, told: RefCell::default(), health }
    }

    /// How the sink is.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Asks the sink that is at hand.
    pub fn ask<T>(&self, question: impl FnOnce(&mut dyn Sink) -> Option<T>) -> Option<T> {
        question(&mut *self.here.as_ref()?.state().sink)
    }

    /// What a thread has recorded whose calls are followed: `read` puts it into the buffer.
    pub fn recorded(&self, pid: Pid, tid: Tid, book: &Book, read: impl FnOnce(&mut Vec<u32>)) {
        let Some(here) = &self.here else { return };
        let State { sink, buffer, .. } = &mut *here.state();
        read(buffer);
        if !buffer.is_empty() {
            sink.recorded(pid, tid, &book.names, buffer);
        }
    }

    /// Whether the sink that is at hand has dealt with all full buffers.
    pub fn has_caught_up(&self) -> bool {
        self.here.as_ref().is_some_and(|here| *here.waiting.lock().unwrap_or_else(PoisonError::into_inner) == 0)
    }

    /// A full buffer of a thread, with the book of its space if its calls are followed: the sink deals with it while the thread
    /// goes on.
    pub fn full(&self, pid: Pid, tid: Tid, followed: Option<(SpaceId, &Book)>, segment: Segment) {
        let (Some(here), Some(to)) = (&self.here, &self.to) else { return self.segment(pid, tid, segment) };
        let followed = followed.map(|(code_cache, book)| {
            let told = self.told.borrow_mut().insert(code_cache, book.names.len()).unwrap_or_default();
            (code_cache, book.names.since(told))
        });
        let _ = to.send(Message::Full { pid, tid, followed, segment, waits: Waits::begin(here) });
    }

    fn send(&self, message: Message) {
        if let Some(here) = &self.here {
            let State { sink, buffer, .. } = &mut *here.state();
            return deliver(&mut **sink, buffer, message);
        }
        if let Some(to) = &self.to {
            let _ = to.send(message);
        }
    }

    /// The number of an address space that has not been told of.
    pub fn new_code_cache(&mut self) -> SpaceId {
        self.code_caches += 1;
        SpaceId(self.code_caches - 1)
    }

    /// Sites that records of an address space may name from now on, and special instructions among them.
    pub fn sites(&self, code_cache: SpaceId, sites: &[Site], specials: &[Special]) {
        if !sites.is_empty() {
            self.send(Message::Sites { code_cache, sites: sites.to_vec(), specials: specials.to_vec() });
        }
    }

    /// Blocks that records may name from now on.
    pub fn blocks(&self, code_cache: SpaceId, blocks: &[Block]) {
        if !blocks.is_empty() {
            self.send(Message::Blocks { code_cache, blocks: blocks.to_vec() });
        }
    }

    /// Modules of an address space that are known from now on.
    pub fn mapped(&self, code_cache: SpaceId, modules: Vec<Module>) {
        self.send(Message::Mapped { code_cache, modules });
    }

    /// A process has said of which moment the code is that it makes.
    pub fn code_made(&self, pid: Pid, moment: u32) {
        self.send(Message::CodeMade { pid, moment });
    }

    /// What a code object of an interpreter is from now on, in a process.
    pub fn frame_code(&self, pid: Pid, code: u64, function: Option<FrameFunction>) {
        self.send(Message::FrameCode { pid, code, function });
    }

    /// Of a block that is on record, `executed` instructions were executed, not `counted`.
    pub fn corrected(&self, pid: Pid, tid: Tid, block: u32, counted: usize, executed: usize) {
        self.send(Message::Corrected { pid, tid, block, counted, executed });
    }

    /// A thread has made a system call.
    pub fn system_call(&self, pid: Pid, tid: Tid, call: SystemCall) {
        self.send(Message::SystemCall { pid, tid, call });
    }

    /// A handler is about to run in a thread.
    pub fn signal_begins(&self, pid: Pid, tid: Tid, handler: Handler) {
        self.send(Message::SignalBegins { pid, tid, handler });
    }

    /// A handler has returned.
    pub fn signal_ends(&self, pid: Pid, tid: Tid) {
        self.send(Message::SignalEnds { pid, tid });
    }

    /// A process was forked: what is known of the one address space holds for the other.
    pub fn space_copied(&self, from: SpaceId, to: SpaceId) {
        self.send(Message::SpaceCopied { from, to });
    }

    /// A process runs a new image, in this address space.
    pub fn image(&self, pid: Pid, code_cache: SpaceId) {
        self.send(Message::Image { pid, code_cache });
    }

    /// A process runs in this address space from now on.
    pub fn moved(&self, pid: Pid, code_cache: SpaceId) {
        self.send(Message::Moved { pid, code_cache });
    }

    /// A process has a child, which its thread `tid` has created.
    pub fn forked(&self, parent: Pid, tid: Tid, child: Pid) {
        self.send(Message::Forked { parent, tid, child });
    }

    /// The stack of a thread is between these addresses.
    pub fn stack(&self, pid: Pid, tid: Tid, range: Range<u64>) {
        self.send(Message::Stack { pid, tid, range });
    }

    /// What a thread has recorded.
    pub fn records(&self, pid: Pid, tid: Tid, words: Vec<u32>) {
        self.send(Message::Records { pid, tid, words });
    }

    /// What a thread has recorded of objects where nothing is counted.
    pub fn objects(&self, pid: Pid, tid: Tid, words: Vec<u32>) {
        self.send(Message::Objects { pid, tid, words });
    }

    /// What a thread has recorded, where it lies.
    pub fn segment(&self, pid: Pid, tid: Tid, segment: Segment) {
        self.send(Message::Segment { pid, tid, segment });
    }

    /// Something is asked by a thread, or from outside (`None`). Returns when the sink has dealt with it.
    pub fn asked(&self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        let (done, wait) = channel();
        self.send(Message::Asked { pid, tid, ask: ask.clone(), done });
        let _ = wait.recv();
    }

    /// From now on a thread records, or does not.
    pub fn recording(&self, pid: Pid, tid: Tid, on: bool) {
        self.send(Message::Recording { pid, tid, on });
    }

    /// The frames that a thread is in when its calls begin to be recorded.
    pub fn stands(&self, pid: Pid, tid: Tid, frames: Vec<NativeFrame>) {
        self.send(Message::Stands { pid, tid, frames });
    }

    /// A thread begins to live.
    pub fn thread_born(&self, pid: Pid, tid: Tid) {
        self.send(Message::ThreadBorn { pid, tid });
    }

    /// A thread has ended.
    pub fn thread_ended(&self, pid: Pid, tid: Tid) {
        self.send(Message::ThreadEnded { pid, tid });
    }

    /// Returns when the sink has dealt with everything of the process.
    pub fn process_ended(&self, pid: Pid) {
        let (done, wait) = channel();
        self.send(Message::ProcessEnded { pid, done });
        let _ = wait.recv();
    }
}

impl Drop for TraceChannel {
    fn drop(&mut self) {
        self.to = None;
        // It cannot have panicked: the sink is called with care.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(mut sink: Box<dyn Sink>, from: &Receiver<Message>) {
    let mut buffer = Vec::new();
    for message in from {
        deliver(&mut *sink, &mut buffer, message);
    }
}

/// Deals with full buffers for a sink at hand.
fn serve_here(here: &Here, from: &Receiver<Message>) {
    let mut buffer = Vec::new();
    for message in from {
        let Message::Full { pid, tid, followed, segment, waits: _waits } = message else { continue };
        let n = segment.read(&mut buffer);
        drop(segment);
        let State { sink, names, .. } = &mut *here.state.lock().unwrap_or_else(PoisonError::into_inner);
        match followed {
            Some((code_cache, news)) => {
                let names = names.entry(code_cache).or_default();
                names.extend(news);
                sink.recorded(pid, tid, names, &buffer[..n]);
            }
            None => sink.records(pid, tid, &buffer[..n]),
        }
    }
}

fn deliver(sink: &mut dyn Sink, buffer: &mut Vec<u32>, message: Message) {
    match message {
        Message::Sites { code_cache, sites, specials } => sink.sites(code_cache, &sites, &specials),
        Message::Blocks { code_cache, blocks } => sink.blocks(code_cache, &blocks),
        Message::Mapped { code_cache, modules } => sink.mapped(code_cache, &modules),
        Message::CodeMade { pid, moment } => sink.code_made(pid, moment),
        Message::FrameCode { pid, code, function } => sink.frame_code(pid, code, function),
        Message::SpaceCopied { from, to } => sink.space_copied(from, to),
        Message::Image { pid, code_cache } => sink.image(pid, code_cache),
        Message::Moved { pid, code_cache } => sink.moved(pid, code_cache),
        Message::Stack { pid, tid, range } => sink.stack(pid, tid, range),
        Message::Forked { parent, tid, child } => sink.forked(parent, tid, child),
        Message::Records { pid, tid, words } => sink.records(pid, tid, &words),
        Message::Objects { pid, tid, words } => sink.objects(pid, tid, &words),
        Message::Segment { pid, tid, segment } => {
            let n = segment.read(buffer);
            // Only now may its slot be used for something else.
            drop(segment);
            sink.records(pid, tid, &buffer[..n]);
        }
        // Only a sink at hand is told of that apart, on its thread.
        Message::Full { .. } => {}
        Message::Asked { pid, tid, ask, done } => {
            sink.asked(pid, tid, &ask);
            let _ = done.send(());
        }
        Message::Corrected { pid, tid, block, counted, executed } => {
            sink.corrected(pid, tid, block, counted, executed);
        }
        Message::SystemCall { pid, tid, call } => sink.system_call(pid, tid, &call),
        Message::SignalBegins { pid, tid, handler } => sink.signal_begins(pid, tid, &handler),
        Message::SignalEnds { pid, tid } => sink.signal_ends(pid, tid),
        Message::Recording { pid, tid, on } => sink.recording(pid, tid, on),
        Message::Stands { pid, tid, frames } => sink.stands(pid, tid, &frames),
        Message::ThreadBorn { pid, tid } => sink.thread_born(pid, tid),
        Message::ThreadEnded { pid, tid } => sink.thread_ended(pid, tid),
        Message::ProcessEnded { pid, done } => {
            sink.process_ended(pid);
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use grind_trace::follow::{CallContext, CallContextId, CallEdge, CallKind};

    use super::*;

    /// Words, and how many call contexts and call edges were known.
    type Seen = (Vec<u32>, usize, usize);

    /// Notes what it is told; buffers only when it is let.
    struct Notes {
        let_on: Receiver<()>,
        seen: Sender<Seen>,
    }

    impl Sink for Notes {
        fn sites(&mut self, _: SpaceId, _: &[Site], _: &[Special]) {}
        fn space_copied(&mut self, _: SpaceId, _: SpaceId) {}
        fn image(&mut self, _: Pid, _: SpaceId) {}
        fn moved(&mut self, _: Pid, _: SpaceId) {}
        fn forked(&mut self, _: Pid, _: Tid, _: Pid) {}
        fn records(&mut self, _: Pid, _: Tid, words: &[u32]) {
            self.seen.send((words.to_vec(), 0, 0)).expect("somebody listens");
        }
        fn recorded(&mut self, _: Pid, _: Tid, names: &Names, words: &[u32]) {
            self.let_on.recv().expect("told to go on");
            let (call_contexts, call_edges) = names.len();
            self.seen.send((words.to_vec(), call_contexts, call_edges)).expect("somebody listens");
        }
        fn thread_ended(&mut self, _: Pid, tid: Tid) {
            let _ = self.seen.send((vec![100 + tid.0 as u32], 0, 0));
        }
        fn process_ended(&mut self, pid: Pid) {
            let _ = self.seen.send((vec![1000 + pid.0 as u32], 0, 0));
        }
    }

    fn trace_channel() -> (TraceChannel, Sender<()>, Receiver<Seen>) {
        let (go, let_on) = channel();
        let (seen, look) = channel();
        (TraceChannel::at_hand(Box::new(Notes { let_on, seen })).expect("a thread"), go, look)
    }

    fn learn(book: &mut Book, target: u64) {
        let to =
            book.call_context(CallContext { function: target as u32, callers: 0, level: 0, skip: None, off: false });
        book.call_edge(CallEdge { kind: CallKind::Call, site: 1, from: CallContextId::NONE, target, to });
    }

    #[test]
    fn full_buffers_are_dealt_with_in_order_while_nobody_asks() {
        let (mut trace_channel, go, look) = trace_channel();
        let mut book = Book::default();
        let code_caches = [trace_channel.new_code_cache(), trace_channel.new_code_cache()];
        for n in 0..3 {
            learn(&mut book, 100 + u64::from(n));
            // Returns although nothing is dealt with yet.
            trace_channel.full(Pid(1), Tid(1), Some((code_caches[0], &book)), Segment::Copied(vec![n]));
        }
        assert!(look.try_recv().is_err());
        learn(&mut book, 200);
        (0..4).for_each(|_| go.send(()).expect("the sink is there"));
        trace_channel.recorded(Pid(1), Tid(1), &book, |to| *to = vec![3]);
        trace_channel.records(Pid(1), Tid(1), vec![4]);
        assert_eq!(trace_channel.ask(|_| Some(5)), Some(5));
        // Another space knows nothing of that.
        go.send(()).expect("the sink is there");
        trace_channel.full(Pid(1), Tid(1), Some((code_caches[1], &Book::default())), Segment::Copied(vec![6]));
        // Nor is there a book where calls are told.
        trace_channel.full(Pid(1), Tid(1), None, Segment::Copied(vec![7]));
        drop(trace_channel);
        let seen: Vec<_> = look.iter().collect();
        let expected = [(0, 2, 1), (1, 3, 2), (2, 4, 3), (3, 5, 4), (4, 0, 0), (6, 1, 0), (7, 0, 0)];
        assert_eq!(seen, expected.map(|(word, call_contexts, call_edges)| (vec![word], call_contexts, call_edges)));
    }

    #[test]
    fn a_sink_that_panics_with_a_buffer_keeps_nobody_waiting() {
        let (trace_channel, go, look) = trace_channel();
        drop((go, look));
        for n in 0..QUEUE as u32 + 3 {
            trace_channel.full(Pid(1), Tid(1), Some((SpaceId(0), &Book::default())), Segment::Copied(vec![n]));
        }
        assert_eq!(trace_channel.ask(|_| Some(1)), Some(1));
        assert!(trace_channel.health().news().is_some(), "somebody learns of it");
        assert_eq!(trace_channel.health().news(), None, "once");
        drop(trace_channel);
    }

    #[test]
    fn a_sink_that_has_panicked_is_told_of_ends_alone() {
        let (trace_channel, go, look) = trace_channel();
        go.send(()).expect("the sink is there");
        drop(go);
        trace_channel.full(Pid(1), Tid(1), None, Segment::Copied(vec![1]));
        trace_channel.recorded(Pid(1), Tid(1), &Book::default(), |to| *to = vec![2]);
        trace_channel.recorded(Pid(1), Tid(1), &Book::default(), |to| *to = vec![3]);
        trace_channel.records(Pid(1), Tid(1), vec![4]);
        trace_channel.thread_ended(Pid(1), Tid(1));
        trace_channel.process_ended(Pid(1));
        assert!(trace_channel.health().news().is_some());
        trace_channel.health().close();
        trace_channel.process_ended(Pid(2));
        drop(trace_channel);
        let seen: Vec<Vec<u32>> = look.iter().map(|(words, ..)| words).collect();
        assert_eq!(seen, [vec![1], vec![2], vec![101], vec![1001], vec![1002]]);
    }
}
