//! The instrumentation engine: runs a guest program so that it only ever executes translated code,
//! and counts exactly what it executes. It knows nothing of profiles, options or debug info.
