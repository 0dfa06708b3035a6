//! The instrumentation engine: runs a guest program so that it only ever executes translated code,
//! and counts exactly what it executes. It knows nothing of profiles, options or debug info.

mod dispatch;

use grind_session::{Exit, Program, Session, Settings};
use grind_trace::Sink;
use grind_types::{EngineError, Pid};

use dispatch::Target;

/// Runs `program` to its end, and every process it creates.
///
/// # Errors
/// When the program cannot be started or traced.
pub fn run(program: &Program, settings: &Settings, session: &mut dyn Session) -> Result<Exit, EngineError> {
    dispatch::run(Target::Program(program), settings, session, None)
}

/// The same, with a trace for `sink`: what `settings.trace` asks for.
///
/// # Errors
/// As [`run`].
pub fn run_traced(
    program: &Program,
    settings: &Settings,
    session: &mut dyn Session,
    sink: Box<dyn Sink>,
) -> Result<Exit, EngineError> {
    dispatch::run(Target::Program(program), settings, session, Some(sink))
}

/// Follows process `pid`, which runs already, until it ends or until [`grind_session::Wanted::Detach`] is wanted of it and of all that it has
/// started since; with a trace for `sink`, if there is one. The driver is asked what it wants several times a second.
///
/// # Errors
/// When it cannot be traced; it goes on as if nothing had been then.
pub fn attach(
    pid: Pid,
    settings: &Settings,
    session: &mut dyn Session,
    sink: Option<Box<dyn Sink>>,
) -> Result<Exit, EngineError> {
    dispatch::run(Target::Process(pid), settings, session, sink)
}
