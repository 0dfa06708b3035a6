//! How long a thread has run, and how often it has been given a processor: what `/proc/TID/schedstat` says. On a machine whose
//! processors are all busy a thread that goes on may not run for long, so the time that passes says nothing of how far it has got.

use std::time::Duration;

use grind_types::Tid;

/// What the kernel's scheduler knows of a thread; nothing of one that is gone, or where the kernel does not keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// For how long it has run. Of a thread that runs just now the last few milliseconds are missing.
    pub ran: Duration,
    /// How many times it has been given a processor, also the one that it has now. 0: not known.
    pub times: u64,
}

impl Schedule {
    /// What is known now.
    pub fn of(tid: Tid) -> Self {
        std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok().and_then(|s| Self::read(&s)).unwrap_or_default()
    }

    /// Nanoseconds that it ran, nanoseconds that it waited to, and times that it was let (`Documentation/scheduler/sched-stats`).
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let ran = Duration::from_nanos(words.next()?.parse().ok()?);
        Some(Self { ran, times: words.nth(1)?.parse().ok()? })
    }

    /// Whether a thread that was like `before` when it was let go on has got a processor since.
    pub fn has_run_since(&self, before: &Self) -> bool {
        self.times == 0 || self.times != before.times || self.ran != before.ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_computes_has_run() {
        let me = Tid(nix::unistd::gettid().as_raw());
        let before = Schedule::of(me);
        assert!(before.times > 0, "{before:?}");
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(50) {}
        std::thread::sleep(Duration::from_millis(1));
        let after = Schedule::of(me);
        assert!(after.has_run_since(&before) && after.ran > before.ran, "{before:?} {after:?}");
    }

    #[test]
    fn what_is_no_schedule_says_nothing() {
        assert_eq!(Schedule::read("12 3 4\n"), Some(Schedule { ran: Duration::from_nanos(12), times: 4 }));
        for text in ["", "12", "12 3", "a b c", "1 2 -3"] {
            assert_eq!(Schedule::read(text), None, "{text}");
        }
        assert!(Schedule::default().has_run_since(&Schedule::default()));
    }
}
