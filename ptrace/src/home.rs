//! Which registers are not the program's while a thread runs translated code: r11 holds the address of the thread's slot words
//! ([`grind_layout::base_of`]), and, if code does more than counting, others ([`StolenRegisters`]) whatever is needed between the
//! program's instructions, and r9 the clock that caches are kept by, or what the thread has executed; some of those words are
//! what the program has in them. Nobody else has to know: whoever asks for registers gets the program's, and whoever sets them in
//! translated code has it put away.
//!
//! Invariants: in translated code, r11 is that address but behind a system call, which overwrites it, until what the program then
//! has is put away ([`grind_asm::PUT_AWAY`]), and r9 is the clock, or the total, but around system calls, when that is in its
//! slot word ([`AT_SYSTEM_CALLS`]), as it is elsewhere; the clock also while the engine knows registers, the total from when a
//! thread stops until it goes on, so that the engine may read and change it there. Elsewhere they are the program's. Where one
//! of the others is in use, for what an instruction of the program's says or for our own ends, it stays as it is as long as
//! nobody changes the program's; so nothing that the engine has to set may be in it.
//!
//! The list belongs to the thread that traces, as everything that ptrace knows does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use grind_asm::{PUT_AWAY, R9_BACK, SYSCALL, TRAP};
use grind_layout::registers::{Gpr, StolenRegisters};
use grind_layout::{self as layout, SlotWord};
use grind_types::Tid;
use grind_types::addr::CacheAddr;
use nix::libc;
use nix::sys::ptrace;
use nix::unistd;

use super::{Regs, Result, Stopped, gone, register};

/// Where translated code lies in an address space.
#[derive(Clone, Debug, Default)]
pub struct Home(Rc<RefCell<Kept>>);

#[derive(Clone, Debug, Default)]
struct Kept {
    ranges: Vec<Range<CacheAddr>>,
    stolen_registers: StolenRegisters,
}

impl Home {
    /// There is some here, too.
    pub fn add(&self, range: Range<CacheAddr>) {
        self.0.borrow_mut().ranges.push(range);
    }

    /// What is emitted from now on, the first of all, takes these.
    pub fn take(&self, stolen_registers: StolenRegisters) {
        self.0.borrow_mut().stolen_registers = stolen_registers;
    }

    /// The same in memory of its own.
    pub fn copy(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    fn has(&self, at: u64) -> bool {
        self.0.borrow().ranges.iter().any(|r| r.contains(&CacheAddr(at)))
    }

    fn stolen_registers(&self) -> StolenRegisters {
        self.0.borrow().stolen_registers
    }
}

thread_local! {
    static HOMES: RefCell<HashMap<Tid, Home>> = RefCell::default();
}

/// `tid` runs code of `home` from now on.
pub fn settle(tid: Tid, home: &Home) {
    HOMES.with_borrow_mut(|homes| homes.insert(tid, home.clone()));
}

/// `tid` has ended, or is another program.
pub fn leave(tid: Tid) {
    HOMES.with_borrow_mut(|homes| homes.remove(&tid));
}

/// Whether `at` is in the translated code that `tid` runs.
pub(super) fn is_translated(tid: Tid, at: u64) -> bool {
    HOMES.with_borrow(|homes| homes.get(&tid).is_some_and(|home| home.has(at)))
}

/// What that code has taken besides r11.
fn stolen_registers(tid: Tid) -> StolenRegisters {
    HOMES.with_borrow(|homes| homes.get(&tid).map(Home::stolen_registers).unwrap_or_default())
}

/// What the program has in a register, by its slot word.
fn kept(t: &Stopped, regs: &Regs, word: SlotWord) -> Result<u64> {
    gone(ptrace::read(t.raw(), at(regs, word))).map(|v| v as u64)
}

fn keep(t: &Stopped, regs: &Regs, word: SlotWord, value: u64) -> Result<()> {
    gone(ptrace::write(t.raw(), at(regs, word), value as libc::c_long))
}

fn at(regs: &Regs, word: SlotWord) -> ptrace::AddressType {
    regs.gs_base.wrapping_add(word.at().into()) as ptrace::AddressType
}

/// Turns the registers of `t` into the program's. If caches are simulated, their clock is in its slot word then, too.
pub(super) fn show(t: &Stopped, regs: &mut Regs) -> Result<()> {
    if !is_translated(t.tid, regs.rip) {
        return Ok(());
    }
    // Behind a system call, for an instruction or two, it is the program's or the base of the slot.
    if regs.r11 == layout::base_of(regs.gs_base) || regs.r11 == regs.gs_base {
        regs.r11 = kept(t, regs, SlotWord::R11)?;
    }
    let stolen_registers = stolen_registers(t.tid);
    if stolen_registers == StolenRegisters::R11 || is_at(t.raw(), regs.rip, &AT_SYSTEM_CALLS) {
        // (There a new thread still has its creator's words, which may be about to change.)
        return Ok(());
    }
    if stolen_registers.clock() {
        put_clock(t, regs)?;
    }
    for &(r, word) in stolen_registers.bound().iter().filter(|(r, _)| *r != Gpr::R11).chain(stolen_registers.free()) {
        *register(regs, r.0) = kept(t, regs, word)?;
    }
    Ok(())
}

/// Turns the program's registers into those that `t` is to have.
pub(super) fn hide(t: &Stopped, regs: &mut Regs) -> Result<()> {
    let stolen_registers = stolen_registers(t.tid);
    let comes = is_translated(t.tid, regs.rip);
    if !comes && stolen_registers.in_r9().is_none() {
        return Ok(());
    }
    let mut now = t.raw_regs()?;
    let was = is_translated(t.tid, now.rip);
    if stolen_registers.clock() && was && !is_at(t.raw(), now.rip, &AT_SYSTEM_CALLS) {
        put_clock(t, &now)?;
    }
    if !comes {
        return Ok(());
    }
    let calls = is_at(t.raw(), regs.rip, &AT_SYSTEM_CALLS);
    if !is_at(t.raw(), regs.rip, &[&PUT_AWAY]) {
        keep(t, regs, SlotWord::R11, regs.r11)?;
        regs.r11 = layout::base_of(regs.gs_base);
    }
    for &(r, word) in stolen_registers.free() {
        let value = *register(regs, r.0);
        // Where it is in use it stays as it is.
        let in_use = was && !calls && kept(t, &now, word)? == value;
        keep(t, regs, word, value)?;
        if in_use {
            *register(regs, r.0) = *register(&mut now, r.0);
        }
    }
    if let Some(word) = stolen_registers.in_r9() {
        keep(t, regs, SlotWord::R9, regs.r9)?;
        if !calls {
            regs.r9 = kept(t, regs, word)?.max(stolen_registers.clock().into());
        }
    }
    Ok(())
}

/// Where all registers but r11 are the program's, and what else is in r9 is in its slot word: an instruction that makes a
/// system call, and the two behind it.
const AT_SYSTEM_CALLS: [&[u8]; 3] = [&SYSCALL, &PUT_AWAY, &R9_BACK];

/// Whether r9 is ours at one of these places in translated code, and not at the other.
pub(super) fn differs(t: &Stopped, one: u64, other: u64) -> bool {
    stolen_registers(t.tid).in_r9().is_some()
        && is_at(t.raw(), one, &AT_SYSTEM_CALLS) != is_at(t.raw(), other, &AT_SYSTEM_CALLS)
}

/// `t` has stopped: what it has executed, if that is in r9, is in its slot word until it goes on.
pub(super) fn stopped(t: &Stopped) -> Result<()> {
    if let Some(regs) = with_total(t)? {
        keep(t, &regs, SlotWord::Total, regs.r9)?;
    }
    Ok(())
}

/// `t` goes on: that is in r9 again, as it is by now.
pub(super) fn goes_on(t: &Stopped) -> Result<()> {
    if let Some(regs) = with_total(t)? {
        let total = kept(t, &regs, SlotWord::Total)?;
        if total != regs.r9 {
            t.set_raw_regs(Regs { r9: total, ..regs })?;
        }
    }
    Ok(())
}

/// The registers of `t`, if what it has executed is in r9 where it is.
fn with_total(t: &Stopped) -> Result<Option<Regs>> {
    if !stolen_registers(t.tid).total() {
        return Ok(None);
    }
    let regs = t.raw_regs()?;
    Ok((is_translated(t.tid, regs.rip) && !is_at(t.raw(), regs.rip, &AT_SYSTEM_CALLS)).then_some(regs))
}

/// The clock, which is in r9, to its slot word. (Where it has been moved on in that word, that is the later time.)
fn put_clock(t: &Stopped, now: &Regs) -> Result<()> {
    if kept(t, now, SlotWord::Clock)? < now.r9 {
        keep(t, now, SlotWord::Clock, now.r9)?;
    }
    Ok(())
}

/// Whether the code at `at` begins with one of these.
fn is_at(pid: unistd::Pid, at: u64, beginnings: &[&[u8]]) -> bool {
    let code = ptrace::read(pid, at.wrapping_sub(1) as ptrace::AddressType).map(|word| word.to_le_bytes());
    code.is_ok_and(|code| begins(code, beginnings))
}

/// The same of the code behind a first byte. Behind a stop there is its number, or the rest of an instruction that is dead, which may
/// look like anything; what is looked for is never behind that byte.
fn begins(code: [u8; 8], beginnings: &[&[u8]]) -> bool {
    code[0] != TRAP && beginnings.iter().any(|b| code[1..].starts_with(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_stop_is_no_system_call() {
        for beginning in AT_SYSTEM_CALLS {
            let mut code = [0; 8];
            code[1..=beginning.len()].copy_from_slice(beginning);
            assert!(begins(code, &AT_SYSTEM_CALLS), "{code:x?}");
            code[0] = TRAP;
            assert!(!begins(code, &AT_SYSTEM_CALLS), "{code:x?}");
        }
    }
}
