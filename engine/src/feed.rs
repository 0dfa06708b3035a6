//! The way to the sink: a thread of its own, which a few full buffers may wait for, so that the guest runs on while they are
//! analysed; or, where it has to be asked at stops, a sink at hand on the engine's thread. What is sent arrives in order.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use crate::api::{Ask, Module};
use crate::arena;
use crate::follow::Book;
use crate::slots::Segment;
use crate::trace::{Block, Handler, Sink, Site, SpaceId, Special, SystemCall};

/// Full buffers that may wait for the sink before the guest has to.
const QUEUE: usize = 3;

// A segment must have been read before the guest gets to it again: when a message has been taken into the queue, `QUEUE` may
// wait there and one may be under way to it; whatever was sent before those has been dealt with but for the last.
const _: () = assert!(QUEUE as u64 + 3 <= arena::TRACE_SEGMENTS);

/// What travels to the sink's thread.
#[derive(Debug)]
enum Message {
    Sites(SpaceId, Vec<Site>, Vec<Special>),
    Blocks(SpaceId, Vec<Block>),
    Mapped(SpaceId, Vec<Module>),
    SpaceCopied(SpaceId, SpaceId),
    Image(i32, SpaceId),
    Moved(i32, SpaceId),
    Forked(i32, i32, i32),
    Records(i32, i32, Vec<u32>),
    Segment(i32, i32, Segment),
    Asked(i32, i32, Ask, Sender<()>),
    Recording(i32, i32, bool),
    Corrected(i32, i32, u32, usize, usize),
    SystemCall(i32, i32, SystemCall),
    SignalBegins(i32, i32, Handler),
    SignalEnds(i32, i32),
    ThreadEnded(i32, i32),
    ProcessEnded(i32, Sender<()>),
}

/// The engine's end of the way to the sink.
#[derive(Debug)]
pub(crate) struct Feed {
    to: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    /// The sink itself, where it is asked at stops.
    here: Option<RefCell<Here>>,
    spaces: u32,
}

/// A sink on the engine's own thread.
struct Here {
    sink: Box<dyn Sink>,
    buffer: Vec<u32>,
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").finish_non_exhaustive()
    }
}

impl Feed {
    /// Starts the sink's thread.
    pub(crate) fn new(sink: Box<dyn Sink>) -> std::io::Result<Self> {
        let (to, from) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("simulate".into()).spawn(move || serve(sink, &from))?;
        Ok(Self { to: Some(to), thread: Some(thread), here: None, spaces: 0 })
    }

    /// The sink stays here: it is asked at stops.
    pub(crate) fn at_hand(sink: Box<dyn Sink>) -> Self {
        let here = Here { sink, buffer: Vec::new() };
        Self { to: None, thread: None, here: Some(RefCell::new(here)), spaces: 0 }
    }

    /// Asks the sink that is at hand.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&mut dyn Sink) -> Option<T>) -> Option<T> {
        question(&mut *self.here.as_ref()?.borrow_mut().sink)
    }

    /// What a thread has recorded whose calls are followed: `read` puts it into the buffer.
    pub(crate) fn recorded(&self, pid: i32, tid: i32, book: &Book, read: impl FnOnce(&mut Vec<u32>)) {
        let Some(here) = &self.here else { return };
        let Here { sink, buffer } = &mut *here.borrow_mut();
        read(buffer);
        if !buffer.is_empty() {
            sink.recorded(pid, tid, book, buffer);
        }
    }

    fn send(&self, message: Message) {
        if let Some(here) = &self.here {
            let Here { sink, buffer } = &mut *here.borrow_mut();
            return deliver(&mut **sink, buffer, message);
        }
        if let Some(to) = &self.to {
            // If the sink's thread has panicked, the run's results are void; dropping the feed passes the panic on.
            let _ = to.send(message);
        }
    }

    pub(crate) fn new_space(&mut self) -> SpaceId {
        self.spaces += 1;
        SpaceId(self.spaces - 1)
    }

    pub(crate) fn sites(&self, space: SpaceId, sites: &[Site], specials: &[Special]) {
        if !sites.is_empty() {
            self.send(Message::Sites(space, sites.to_vec(), specials.to_vec()));
        }
    }

    pub(crate) fn blocks(&self, space: SpaceId, blocks: &[Block]) {
        if !blocks.is_empty() {
            self.send(Message::Blocks(space, blocks.to_vec()));
        }
    }

    pub(crate) fn mapped(&self, space: SpaceId, modules: Vec<Module>) {
        self.send(Message::Mapped(space, modules));
    }

    pub(crate) fn corrected(&self, pid: i32, tid: i32, block: u32, counted: usize, executed: usize) {
        self.send(Message::Corrected(pid, tid, block, counted, executed));
    }

    pub(crate) fn system_call(&self, pid: i32, tid: i32, call: SystemCall) {
        self.send(Message::SystemCall(pid, tid, call));
    }

    pub(crate) fn signal_begins(&self, pid: i32, tid: i32, handler: Handler) {
        self.send(Message::SignalBegins(pid, tid, handler));
    }

    pub(crate) fn signal_ends(&self, pid: i32, tid: i32) {
        self.send(Message::SignalEnds(pid, tid));
    }

    pub(crate) fn space_copied(&self, from: SpaceId, to: SpaceId) {
        self.send(Message::SpaceCopied(from, to));
    }

    pub(crate) fn image(&self, pid: i32, space: SpaceId) {
        self.send(Message::Image(pid, space));
    }

    pub(crate) fn moved(&self, pid: i32, space: SpaceId) {
        self.send(Message::Moved(pid, space));
    }

    pub(crate) fn forked(&self, parent: i32, tid: i32, child: i32) {
        self.send(Message::Forked(parent, tid, child));
    }

    pub(crate) fn records(&self, pid: i32, tid: i32, words: Vec<u32>) {
        self.send(Message::Records(pid, tid, words));
    }

    pub(crate) fn segment(&self, pid: i32, tid: i32, segment: Segment) {
        self.send(Message::Segment(pid, tid, segment));
    }

    /// Returns when the sink has dealt with it.
    pub(crate) fn asked(&self, pid: i32, tid: i32, ask: &Ask) {
        let (done, wait) = channel();
        self.send(Message::Asked(pid, tid, ask.clone(), done));
        let _ = wait.recv();
    }

    pub(crate) fn recording(&self, pid: i32, tid: i32, on: bool) {
        self.send(Message::Recording(pid, tid, on));
    }

    pub(crate) fn thread_ended(&self, pid: i32, tid: i32) {
        self.send(Message::ThreadEnded(pid, tid));
    }

    /// Returns when the sink has dealt with everything of the process.
    pub(crate) fn process_ended(&self, pid: i32) {
        let (done, wait) = channel();
        self.send(Message::ProcessEnded(pid, done));
        let _ = wait.recv();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.to = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn serve(mut sink: Box<dyn Sink>, from: &Receiver<Message>) {
    let mut buffer = Vec::new();
    for message in from {
        deliver(&mut *sink, &mut buffer, message);
    }
}

fn deliver(sink: &mut dyn Sink, buffer: &mut Vec<u32>, message: Message) {
    match message {
        Message::Sites(space, sites, specials) => sink.sites(space, &sites, &specials),
        Message::Blocks(space, blocks) => sink.blocks(space, &blocks),
        Message::Mapped(space, modules) => sink.mapped(space, &modules),
        Message::SpaceCopied(from, to) => sink.space_copied(from, to),
        Message::Image(pid, space) => sink.image(pid, space),
        Message::Moved(pid, space) => sink.moved(pid, space),
        Message::Forked(parent, tid, child) => sink.forked(parent, tid, child),
        Message::Records(pid, tid, words) => sink.records(pid, tid, &words),
        Message::Segment(pid, tid, segment) => {
            let n = segment.read(buffer);
            // Only now may its slot be used for something else.
            drop(segment);
            sink.records(pid, tid, &buffer[..n]);
        }
        Message::Asked(pid, tid, ask, done) => {
            sink.asked(pid, tid, &ask);
            let _ = done.send(());
        }
        Message::Corrected(pid, tid, block, counted, executed) => {
            sink.corrected(pid, tid, block, counted, executed);
        }
        Message::SystemCall(pid, tid, call) => sink.system_call(pid, tid, &call),
        Message::SignalBegins(pid, tid, handler) => sink.signal_begins(pid, tid, &handler),
        Message::SignalEnds(pid, tid) => sink.signal_ends(pid, tid),
        Message::Recording(pid, tid, on) => sink.recording(pid, tid, on),
        Message::ThreadEnded(pid, tid) => sink.thread_ended(pid, tid),
        Message::ProcessEnded(pid, done) => {
            sink.process_ended(pid);
            let _ = done.send(());
        }
    }
}
