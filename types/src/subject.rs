//! What the engine's log speaks of: the only home of the subjects' names. The engine says things through the `log` crate, whose
//! reader is the driver's; without one a line costs a comparison. What runs millions of times (a fragment, a hit) never says
//! anything: only stops, requests and what changes the code cache do.

/// Every stop of a thread, and what it is taken for.
pub const DISPATCH: &str = "dispatch";
/// Translations, and branches that are made to lead to fragments.
pub const LINK: &str = "link";
/// The code cache is emptied, and why.
pub const FLUSH: &str = "flush";
/// Code that changes: its fragments die, its pages are protected and opened.
pub const SMC: &str = "smc";
/// Signals: what comes, to whom it is handed, who dies of it.
pub const SIGNAL: &str = "signal";
/// What the program asks for by client requests, and others from outside.
pub const REQUEST: &str = "request";
/// Threads and processes: their births, images and ends.
pub const PROCESS: &str = "process";

/// All of them.
pub const ALL: [&str; 7] = [DISPATCH, LINK, FLUSH, SMC, SIGNAL, REQUEST, PROCESS];
