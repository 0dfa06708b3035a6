//! System calls that the guest makes on grind's behalf, at a stop. The thread must be at a point where its registers are
//! known; they are put back afterwards. All signals but SIGTRAP are blocked meanwhile, so the guest notices nothing.

use nix::libc;

use super::{How, Regs, Stop, Stopped};

/// A place in the guest from which system calls are made: `syscall; int3`, and, in the code cache, the same with `int 0x80` a
/// little behind; or a `syscall` of the guest's own, over which a thread is stepped, so that nothing has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gadget {
    /// Where the instruction is.
    pub at: u64,
    borrowed: bool,
}

/// The bytes of a [`Gadget`].
pub(crate) const GADGET: [u8; 3] = [0x0f, 0x05, 0xcc];

/// Why a remote system call gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// The kernel's errno.
    Errno(i32),
    /// The thread died.
    Gone,
}

impl Gadget {
    /// The bytes of a gadget are at `at`.
    pub const fn new(at: u64) -> Self {
        Self { at, borrowed: false }
    }

    /// A `syscall` of the guest's own is at `at`.
    pub const fn borrowed(at: u64) -> Self {
        Self { at, borrowed: true }
    }

    /// Bytes to be put where the gadget is to be.
    pub const BYTES: [u8; 3] = GADGET;

    /// `int 0x80; int3`.
    pub const INT80_BYTES: [u8; 3] = [0xcd, 0x80, 0xcc];

    /// How far behind they are.
    pub const INT80_OFFSET: u64 = 8;

    /// Bytes that are kept for all of it, up to behind the last `int3`.
    pub const LEN: u64 = 16;

    /// Where they are.
    pub fn int80(self) -> u64 {
        self.at + Self::INT80_OFFSET
    }

    /// Lets `t` make system call `nr`. The registers are as before afterwards.
    ///
    /// The thread is handed back unless it died.
    pub fn call(self, t: Stopped, nr: i64, args: [u64; 6]) -> (Option<Stopped>, Result<u64, RemoteError>) {
        match self.try_call(t, nr, args) {
            Ok((t, value)) => {
                let r = if value as i64 >= -4095 && (value as i64) < 0 {
                    Err(RemoteError::Errno(-(value as i64) as i32))
                } else {
                    Ok(value)
                };
                (Some(t), r)
            }
            Err(()) => (None, Err(RemoteError::Gone)),
        }
    }

    fn try_call(self, t: Stopped, nr: i64, args: [u64; 6]) -> Result<(Stopped, u64), ()> {
        // All of them, whoever uses which at present.
        let saved: Regs = t.raw_regs().map_err(drop)?;
        let mask = t.sigmask().map_err(drop)?;
        t.set_sigmask(!(1 << (libc::SIGTRAP - 1))).map_err(drop)?;
        let mut regs = saved;
        regs.rip = self.at;
        regs.rax = nr as u64;
        // Not in a system call: the kernel must not take the value of rax for one to be restarted.
        regs.orig_rax = u64::MAX;
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
        t.set_raw_regs(regs).map_err(drop)?;
        super::suspend_filters(t.tid(), true);
        let mut t = t;
        let (how, end) = if self.borrowed { (How::Step, self.at + 2) } else { (How::Continue, self.at + 3) };
        loop {
            let (next, stop) = t.resume_and_wait(how, 0).map_err(drop)?;
            t = next;
            match stop {
                Stop::Signal(libc::SIGTRAP) if t.rip() == Ok(end) => break,
                Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. } => {
                    // Killed in between. The end is reported once more by the dispatcher's own wait.
                    let _ = t.resume(How::Continue, 0);
                    return Err(());
                }
                _ => {}
            }
        }
        super::suspend_filters(t.tid(), false);
        let value = t.raw_regs().map_err(drop)?.rax;
        t.set_raw_regs(saved).map_err(drop)?;
        t.set_sigmask(mask).map_err(drop)?;
        Ok((t, value))
    }
}
