//! A progress line on a terminal, for work that takes longer than a second.
//!
//! Nothing is ever shown when standard error is no terminal, and the line is removed before the program goes on.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes of input taken so far and known in all.
#[derive(Debug, Default)]
pub struct Counter {
    done: AtomicU64,
    total: AtomicU64,
    /// The size of some input is unknown, so there is no percentage.
    open_ended: AtomicBool,
}

impl Counter {
    pub(crate) fn expect(&self, size: Option<u64>) {
        match size {
            Some(size) => _ = self.total.fetch_add(size, Ordering::Relaxed),
            None => self.open_ended.store(true, Ordering::Relaxed),
        }
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn line(&self) -> String {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let mega = |bytes: u64| bytes / 1_000_000;
        if self.open_ended.load(Ordering::Relaxed) || total == 0 {
            format!("read {} MB", mega(done))
        } else {
            format!("read {} of {} MB ({}%)", mega(done), mega(total), done.min(total) * 100 / total)
        }
    }
}

/// Shows a [`Counter`] while it lives.
#[derive(Debug)]
pub struct Progress {
    /// What is being counted; shared with the inputs.
    pub counter: Arc<Counter>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts to watch; the line appears after a second, on a terminal only.
    #[must_use]
    pub fn start(program: &'static str) -> Self {
        let counter = Arc::new(Counter::default());
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = io::stderr().is_terminal().then(|| {
            let (counter, stop) = (Arc::clone(&counter), Arc::clone(&stop));
            thread::spawn(move || show(program, &counter, &stop))
        });
        Self { counter, stop, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn show(program: &str, counter: &Counter, (stopped, changed): &(Mutex<bool>, Condvar)) {
    let mut wait = Duration::from_secs(1);
    let mut shown = false;
    let mut guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let (next, _) = changed.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner);
        guard = next;
        if *guard {
            break;
        }
        let _ = write!(io::stderr(), "\r{program}: {}\x1b[K", counter.line());
        shown = true;
        wait = Duration::from_millis(200);
    }
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_a_percentage_only_if_sizes_are_known() {
        let counter = Counter::default();
        counter.expect(Some(4_000_000));
        counter.add(1_000_000);
        assert_eq!(counter.line(), "read 1 of 4 MB (25%)");
        counter.expect(None);
        assert_eq!(counter.line(), "read 1 MB");
    }
}
