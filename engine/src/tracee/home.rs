//! Which register is not the program's while a thread runs translated code: r11 holds the address of the thread's scratch words
//! ([`crate::arena::base_of`]), and one of these what the program has in it. Nobody else has to know: whoever asks for registers
//! gets the program's, and whoever sets them in translated code has it put away.
//!
//! Invariants: in translated code, r11 is that address but behind a system call, which overwrites it, until what the program then
//! has is put away ([`crate::asm::PUT_AWAY`]); elsewhere it is the program's.
//!
//! The list belongs to the thread that traces, as everything that ptrace knows does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::{Regs, Result, Stopped, gone};
use crate::arena::{self, Scratch};
use crate::asm::PUT_AWAY;

/// Where translated code lies in an address space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home(Rc<RefCell<Vec<Range<u64>>>>);

impl Home {
    /// There is some here, too.
    pub(crate) fn add(&self, range: Range<u64>) {
        self.0.borrow_mut().push(range);
    }

    /// The same in memory of its own.
    pub(crate) fn copy(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    fn has(&self, at: u64) -> bool {
        self.0.borrow().iter().any(|r| r.contains(&at))
    }
}

thread_local! {
    static HOMES: RefCell<HashMap<i32, Home>> = RefCell::default();
}

/// `tid` runs code of `home` from now on.
pub(crate) fn settle(tid: i32, home: &Home) {
    HOMES.with_borrow_mut(|homes| homes.insert(tid, home.clone()));
}

/// `tid` has ended, or is another program.
pub(crate) fn leave(tid: i32) {
    HOMES.with_borrow_mut(|homes| homes.remove(&tid));
}

/// Whether `at` is in the translated code that `tid` runs.
pub(super) fn is_translated(tid: i32, at: u64) -> bool {
    HOMES.with_borrow(|homes| homes.get(&tid).is_some_and(|home| home.has(at)))
}

/// Where the program's r11 is.
fn word(regs: &Regs) -> ptrace::AddressType {
    regs.gs_base.wrapping_add(Scratch::R11.at().into()) as ptrace::AddressType
}

/// Turns the registers of `t` into the program's.
pub(super) fn show(t: &Stopped, regs: &mut Regs) -> Result<()> {
    // Behind a system call, for an instruction or two, it is the program's or the base of the slot.
    let ours = regs.r11 == arena::base_of(regs.gs_base) || regs.r11 == regs.gs_base;
    if ours && is_translated(t.tid, regs.rip) {
        regs.r11 = gone(ptrace::read(t.pid(), word(regs)))? as u64;
    }
    Ok(())
}

/// Turns the program's registers into those that `t` is to have.
pub(super) fn hide(t: &Stopped, regs: &mut Regs) -> Result<()> {
    if is_translated(t.tid, regs.rip) && !puts_away(t.pid(), regs.rip) {
        gone(ptrace::write(t.pid(), word(regs), regs.r11 as libc::c_long))?;
        regs.r11 = arena::base_of(regs.gs_base);
    }
    Ok(())
}

/// Whether the program's r11 is put away at `at`.
fn puts_away(pid: Pid, at: u64) -> bool {
    let code = ptrace::read(pid, at as ptrace::AddressType).map(|word| word.to_le_bytes());
    code.is_ok_and(|code| code.starts_with(&PUT_AWAY))
}
