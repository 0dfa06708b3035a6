//! How the C library gives memory back, which decides how much a report takes.
//!
//! glibc takes large pieces of memory from the system one by one and returns each as it is freed, but what counts as large grows with
//! every piece that is freed, up to 32 MB. After the first lists of a profile are gone, all that follows comes from one heap, whose holes
//! stay: a third of what the program has at most. A fixed bound keeps that from happening. It is read from the environment
//! when a program begins, so the program begins once more. Whoever has set the bound, or where this cannot be, is left alone:
//! nothing depends on it but memory, and no descriptor, argument or output is touched.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// What glibc reads: pieces from so many bytes on are returned when they are freed.
pub(crate) const BOUND: &str = "MALLOC_MMAP_THRESHOLD_";
/// Where glibc itself begins.
const BYTES: &str = "131072";

/// Begins the program once more with the bound, unless there is one.
pub(crate) fn settle() {
    if cfg!(not(target_env = "gnu")) || std::env::var_os(BOUND).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) else { return };
    // It comes back only if it failed; then this goes on as it is.
    let _ = Command::new(program).arg0(name).args(arguments).env(BOUND, BYTES).exec();
}
