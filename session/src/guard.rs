//! What becomes of a panic: it costs what it must and nothing else. The driver and the sink are called through here, so that a
//! fault of theirs neither unwinds the engine nor hangs a guest that waits for an answer; the engine's own are caught by `dispatch`.
//!
//! A sink that has panicked is told of nothing more but how things end: what it has gathered may still be written, and is marked
//! by it as incomplete ([`Sink::broke`]). Before that it may be given what emitted code has counted meanwhile
//! ([`State::Settling`]). The program runs on as it would have. Invariant: nothing here ever panics.

use std::any::Any;
use std::ffi::OsString;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use grind_trace::follow::{Book, CallContext, Calls, Counts, Names, Outcome};
use grind_trace::objects::Allocator;
use grind_trace::{Block, Handler, NativeFrame, Sink, Site, SpaceId, Special, SystemCall};
use grind_types::addr::GuestAddr;
use grind_types::frames::{FrameFunction, FrameHook, ReadMemory};
use grind_types::{Module, Pid, Query, Tid};

use crate::{ControlRequest, FirstProcess, Instrumentation, Notice, ProcessReport, Session, Tally};

/// Does `act`; a panic is an error with its message.
pub fn caught<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| message(&*panic))
}

/// What a panic says.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// How a sink is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Whole,
    /// It has panicked, and nobody has noticed.
    Broken,
    /// It has panicked, and is told what has been counted up to then.
    Settling,
    /// It is told of nothing but ends.
    Closed,
}

/// How a sink is, for both sides of the way to it.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<(State, String)>>);

impl Health {
    fn with<T>(&self, act: impl FnOnce(&mut (State, String)) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> State {
        self.with(|(state, _)| *state)
    }

    /// Whether nothing has broken.
    pub fn is_whole(&self) -> bool {
        self.state() == State::Whole
    }

    /// What has broken, if nobody has done anything about it.
    pub fn unnoticed(&self) -> Option<String> {
        self.with(|(state, what)| (*state == State::Broken).then(|| what.clone()))
    }

    /// What has broken, if that is news: what has been counted is to be told next, then [`Health::close`].
    pub fn news(&self) -> Option<String> {
        self.with(|(state, what)| {
            (*state == State::Broken).then(|| {
                *state = State::Settling;
                what.clone()
            })
        })
    }

    /// Nothing more is to be told to a sink that has broken.
    pub fn close(&self) {
        self.with(|(state, _)| {
            if *state > State::Whole {
                *state = State::Closed;
            }
        });
    }
}

/// A sink whose panics end here.
pub(crate) struct CarefulSink {
    sink: Box<dyn Sink>,
    health: Health,
}

impl CarefulSink {
    pub(crate) fn new(sink: Box<dyn Sink>) -> (Self, Health) {
        let health = Health(Arc::new(Mutex::new((State::Whole, String::new()))));
        (Self { sink, health: health.clone() }, health)
    }

    /// Tells the sink, if it is well enough.
    fn tell<T>(&mut self, until: State, otherwise: T, act: impl FnOnce(&mut dyn Sink) -> T) -> T {
        if self.health.state() > until {
            return otherwise;
        }
        match caught(|| act(&mut *self.sink)) {
            Ok(answer) => answer,
            Err(what) => {
                let _ = caught(|| self.sink.broke(&what));
                self.health.with(|health| {
                    if health.0 == State::Whole {
                        *health = (State::Broken, what);
                    }
                });
                otherwise
            }
        }
    }
}

impl Sink for CarefulSink {
    fn sites(&mut self, code_cache: SpaceId, sites: &[Site], specials: &[Special]) {
        self.tell(State::Settling, (), |sink| sink.sites(code_cache, sites, specials));
    }
    fn blocks(&mut self, code_cache: SpaceId, blocks: &[Block]) {
        self.tell(State::Settling, (), |sink| sink.blocks(code_cache, blocks));
    }
    fn mapped(&mut self, code_cache: SpaceId, modules: &[Module]) {
        self.tell(State::Settling, (), |sink| sink.mapped(code_cache, modules));
    }
    fn code_made(&mut self, pid: Pid, moment: u32) {
        self.tell(State::Settling, (), |sink| sink.code_made(pid, moment));
    }
    fn frame_code(&mut self, pid: Pid, code: u64, function: Option<FrameFunction>) {
        self.tell(State::Whole, (), |sink| sink.frame_code(pid, code, function));
    }
    fn space_copied(&mut self, from: SpaceId, to: SpaceId) {
        self.tell(State::Closed, (), |sink| sink.space_copied(from, to));
    }
    fn image(&mut self, pid: Pid, code_cache: SpaceId) {
        self.tell(State::Closed, (), |sink| sink.image(pid, code_cache));
    }
    fn moved(&mut self, pid: Pid, code_cache: SpaceId) {
        self.tell(State::Closed, (), |sink| sink.moved(pid, code_cache));
    }
    fn stack(&mut self, pid: Pid, tid: Tid, range: Range<u64>) {
        self.tell(State::Closed, (), |sink| sink.stack(pid, tid, range));
    }
    fn forked(&mut self, parent: Pid, tid: Tid, child: Pid) {
        self.tell(State::Closed, (), |sink| sink.forked(parent, tid, child));
    }
    fn records(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        self.tell(State::Whole, (), |sink| sink.records(pid, tid, words));
    }
    fn objects(&mut self, pid: Pid, tid: Tid, words: &[u32]) {
        self.tell(State::Whole, (), |sink| sink.objects(pid, tid, words));
    }
    fn asked(&mut self, pid: Pid, tid: Option<Tid>, ask: &Query) {
        self.tell(State::Whole, (), |sink| sink.asked(pid, tid, ask));
    }
    fn corrected(&mut self, pid: Pid, tid: Tid, block: u32, counted: usize, executed: usize) {
        self.tell(State::Whole, (), |sink| sink.corrected(pid, tid, block, counted, executed));
    }
    fn system_call(&mut self, pid: Pid, tid: Tid, call: &SystemCall) {
        self.tell(State::Whole, (), |sink| sink.system_call(pid, tid, call));
    }
    fn requests_wait(&mut self, pid: Pid, tid: Tid) -> bool {
        self.tell(State::Whole, false, |sink| sink.requests_wait(pid, tid))
    }
    fn serve_requests(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Whole, (), |sink| sink.serve_requests(pid, tid));
    }
    fn signal_begins(&mut self, pid: Pid, tid: Tid, handler: &Handler) {
        self.tell(State::Whole, (), |sink| sink.signal_begins(pid, tid, handler));
    }
    fn signal_ends(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Whole, (), |sink| sink.signal_ends(pid, tid));
    }
    fn recording(&mut self, pid: Pid, tid: Tid, on: bool) {
        self.tell(State::Whole, (), |sink| sink.recording(pid, tid, on));
    }
    fn stands(&mut self, pid: Pid, tid: Tid, frames: &[NativeFrame]) {
        self.tell(State::Whole, (), |sink| sink.stands(pid, tid, frames));
    }
    fn caught_up(&mut self, pid: Pid, tid: Tid, book: &Book, calls: &Calls) {
        self.tell(State::Settling, (), |sink| sink.caught_up(pid, tid, book, calls));
    }
    fn goes_on(&mut self, pid: Pid, tid: Tid, made: Option<u32>, all: bool) -> Option<Calls> {
        self.tell(State::Whole, None, |sink| sink.goes_on(pid, tid, made, all))
    }
    fn runs(&mut self, pid: Pid, tid: Tid, book: &Book, pc: u64) -> Option<CallContext> {
        self.tell(State::Whole, None, |sink| sink.runs(pid, tid, book, pc))
    }
    fn counts_yet(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Whole, (), |sink| sink.counts_yet(pid, tid));
    }

    fn is_unmade(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Whole, (), |sink| sink.is_unmade(pid, tid));
    }

    fn has_counted(&mut self, pid: Pid, tid: Tid, pc: u64) {
        self.tell(State::Whole, (), |sink| sink.has_counted(pid, tid, pc));
    }
    fn transfer(&mut self, pid: Pid, tid: Tid, book: &Book, told: u32, target: u64, sp: u64) -> Option<Outcome> {
        self.tell(State::Whole, None, |sink| sink.transfer(pid, tid, book, told, target, sp))
    }
    fn recorded(&mut self, pid: Pid, tid: Tid, names: &Names, words: &[u32]) {
        self.tell(State::Whole, (), |sink| sink.recorded(pid, tid, names, words));
    }
    fn counted(&mut self, pid: Pid, tid: Tid, book: &Book, counts: &Counts) {
        self.tell(State::Settling, (), |sink| sink.counted(pid, tid, book, counts));
    }
    fn thread_born(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Closed, (), |sink| sink.thread_born(pid, tid));
    }
    fn thread_ended(&mut self, pid: Pid, tid: Tid) {
        self.tell(State::Closed, (), |sink| sink.thread_ended(pid, tid));
    }
    fn process_ended(&mut self, pid: Pid) {
        self.tell(State::Closed, (), |sink| sink.process_ended(pid));
    }
}

/// A driver whose panics end here. It is asked again and again: what it cannot do is not done.
pub struct CarefulSession<'s>(pub &'s mut dyn Session);

impl CarefulSession<'_> {
    fn tell<T>(&mut self, otherwise: T, act: impl FnOnce(&mut dyn Session) -> T) -> T {
        match caught(|| act(self.0)) {
            Ok(answer) => answer,
            Err(what) => {
                let _ = caught(|| self.0.broke(&what, true));
                otherwise
            }
        }
    }
}

impl Session for CarefulSession<'_> {
    fn follow_exec(&mut self, pid: Pid, path: &Path, args: &[OsString]) -> bool {
        self.tell(false, |session| session.follow_exec(pid, path, args))
    }
    fn image_started(&mut self, pid: Pid, parent: Option<Pid>, exe: &Path, args: &[OsString]) {
        self.tell((), |session| session.image_started(pid, parent, exe, args));
    }
    fn first_process(&mut self, how: FirstProcess) {
        self.tell((), |session| session.first_process(how));
    }
    fn forked(&mut self, parent: Pid, child: Pid) {
        self.tell((), |session| session.forked(parent, child));
    }
    fn mapped(&mut self, module: &Module) {
        self.tell((), |session| session.mapped(module));
    }
    fn process_ends(&mut self, report: &ProcessReport<'_>) {
        // What is not written now is lost, so it has a second chance, which may leave out what has failed.
        let written = self.tell(false, |session| {
            session.process_ends(report);
            true
        });
        if !written {
            self.tell((), |session| session.process_ends(report));
        }
    }
    fn code_made(&mut self, pid: Pid, modules: &[Module]) -> u32 {
        self.tell(0, |session| session.code_made(pid, modules))
    }
    fn process_left(&mut self, pid: Pid) {
        self.tell((), |session| session.process_left(pid));
    }
    fn asked(&mut self, report: &ProcessReport<'_>, tid: Option<Tid>, ask: &Query) {
        self.tell((), |session| session.asked(report, tid, ask));
    }
    fn peeked(&mut self, report: &ProcessReport<'_>) {
        self.tell((), |session| session.peeked(report));
    }
    fn control_request(&mut self) -> Option<ControlRequest> {
        self.tell(None, |session| session.control_request())
    }
    fn wants_tally(&mut self) -> bool {
        self.tell(false, |session| session.wants_tally())
    }
    fn tally(&mut self, tally: &Tally) -> bool {
        self.tell(false, |session| session.tally(tally))
    }
    fn about_to_write(&mut self, pid: Pid, descriptor: i32) -> bool {
        self.tell(false, |session| session.about_to_write(pid, descriptor))
    }
    fn boundaries(&mut self, module: &Module) -> Vec<u64> {
        self.tell(Vec::new(), |session| session.boundaries(module))
    }
    fn watched(&mut self, module: &Module) -> Vec<(u64, Allocator)> {
        self.tell(Vec::new(), |session| session.watched(module))
    }
    fn frame_hooks(&mut self, pid: Pid, module: &Module) -> Vec<(u64, FrameHook)> {
        self.tell(Vec::new(), |session| session.frame_hooks(pid, module))
    }
    fn frame_function(&mut self, module: &Module, memory: ReadMemory<'_>, code: u64) -> Option<FrameFunction> {
        self.tell(None, |session| session.frame_function(module, memory, code))
    }
    fn client_print(&mut self, pid: Pid, text: &[u8]) {
        self.tell((), |session| session.client_print(pid, text));
    }
    fn client_stack(&mut self, pid: Pid, modules: &[Module], frames: &[GuestAddr]) {
        self.tell((), |session| session.client_stack(pid, modules, frames));
    }
    fn redundant_instrumentation(&mut self, pid: Pid, request: Instrumentation) {
        self.tell((), |session| session.redundant_instrumentation(pid, request));
    }
    fn forks_count_anew(&self) -> bool {
        self.0.forks_count_anew()
    }
    fn tool_name(&self) -> &str {
        self.0.tool_name()
    }
    fn notice(&mut self, pid: Pid, notice: Notice) {
        self.tell((), |session| session.notice(pid, notice));
    }
    fn broke(&mut self, what: &str, goes_on: bool) {
        self.tell((), |session| session.broke(what, goes_on));
    }
}
