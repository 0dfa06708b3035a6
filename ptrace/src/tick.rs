//! A timer that interrupts what its thread waits for (`EINTR`), so that whoever waits for stops for ever can look after something
//! else from time to time. It must not be begun before a program has been launched that should not inherit its handler.
//! Invariants: the signal is handled by nothing, on the thread that began; it neither ends the process nor restarts a wait.

use std::time::Duration;

use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;

/// What interrupts.
const SIGNAL: Signal = Signal::SIGALRM;

/// See the module's description.
#[derive(Debug)]
pub struct Ticks(Timer);

extern "C" fn nothing(_: libc::c_int) {}

impl Ticks {
    /// A timer for the thread that calls. `None`: there is none.
    #[allow(unsafe_code)]
    pub fn new() -> Option<Self> {
        let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing at all.
        unsafe { sigaction(SIGNAL, &action) }.ok()?;
        SigSet::from(SIGNAL).thread_unblock().ok()?;
        let notify = SigevNotify::SigevThreadId { signal: SIGNAL, thread_id: gettid().as_raw(), si_value: 0 };
        Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify)).ok().map(Self)
    }

    /// Interrupts once, after `pause`.
    pub fn set(&mut self, pause: Duration) {
        let _ = self.0.set(Expiration::OneShot(pause.into()), TimerSetTimeFlags::empty());
    }

    /// Interrupts again and again, with `pause` in between.
    pub fn every(&mut self, pause: Duration) {
        let _ = self.0.set(Expiration::Interval(pause.into()), TimerSetTimeFlags::empty());
    }

    /// Interrupts no more.
    pub fn stop(&mut self) {
        let _ = self.0.set(Expiration::OneShot(Duration::ZERO.into()), TimerSetTimeFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_is_interrupted() {
        let mut ticks = Ticks::new().expect("a timer");
        let start = Instant::now();
        ticks.set(Duration::from_millis(30));
        // Nothing ever comes from the pipe's end.
        let (end, _other) = nix::unistd::pipe().expect("a pipe");
        assert_eq!(nix::unistd::read(&end, &mut [0]), Err(nix::errno::Errno::EINTR));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
