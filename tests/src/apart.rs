//! Tests without a harness, whose parts run in processes of their own: as many at a time as a harness would run, since an engine
//! traces whatever its process has started.

use std::env;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `part` with each of `names`; if one is on the command line, with that alone, in this process.
///
/// # Panics
/// If a part fails, or the one on the command line is none of `names`.
pub fn each<S: AsRef<str> + Sync>(names: &[S], part: impl Fn(&str)) {
    if let Some(only) = env::args().nth(1).filter(|word| !word.starts_with('-')) {
        assert!(names.iter().any(|name| name.as_ref() == only), "there is no part `{only}`");
        return part(&only);
    }
    let this = env::current_exe().expect("the path of this test");
    let at_a_time = env::var("RUST_TEST_THREADS").ok().and_then(|n| n.parse().ok());
    let at_a_time = at_a_time.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = name.as_ref();
                    let done = Command::new(&this).arg(name).output().expect("this test can be started again");
                    let said = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                    println!("{}", said.concat().trim_end());
                    if !done.status.success() {
                        failed.lock().expect("no thread has panicked").push(name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no thread has panicked");
    assert!(failed.is_empty(), "failed: {}", failed.join(", "));
}
