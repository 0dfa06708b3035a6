//! The instrumentation engine: runs a guest program so that it only ever executes translated code,
//! and counts exactly what it executes. It knows nothing of profiles, options or debug info.

pub mod addr;
pub mod api;
pub mod cpuid;
pub mod error;

pub use api::*;
pub use error::EngineError;

/// Runs `program` to its end, and every process it creates.
///
/// # Errors
/// When the program cannot be started or traced.
pub fn run(_program: &Program, _settings: &Settings, _session: &mut dyn Session) -> Result<Exit, EngineError> {
    Err(EngineError::Os { what: "engine", source: std::io::Error::from_raw_os_error(38) })
}
