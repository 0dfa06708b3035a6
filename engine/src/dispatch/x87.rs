//! What an instruction, or the kernel in a handler's frame, has written down of where the last instruction of the x87 was: an address of the code cache, in place of
//! which the program is to find its own. It is not known any more once the code there has been thrown away; then it is 0, as after the unit
//! has been reset. Never is anything written where there is no such address.

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::StubKind;
use grind_guest::process::Process;
use grind_isa::decode;
use grind_ptrace::register;
use grind_ptrace::{Regs, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use iced_x86::{Decoder, DecoderOptions, Register};

use super::Dispatcher;

impl Dispatcher<'_> {
    /// Does what a stub within an instruction asks for; the thread goes on behind it.
    pub(super) fn serve_within(&mut self, t: &Stopped, kind: StubKind) {
        match kind {
            StubKind::MissPath { site, off } => self.miss_path_of_special(t.tid(), site, off),
            StubKind::SavedX87 { pc } => {
                if let (Ok(regs), Some(p)) = (t.regs(), self.process_of(t.tid())) {
                    show_own_address(p, &p.code_cache.borrow(), pc, &regs);
                }
            }
            StubKind::Watched { pc, returns } => self.watched_code(t, pc, returns),
            StubKind::Framed { pc } => self.framed_code(t, pc),
            _ => {}
        }
    }
}

/// Offset of the pointer to the saved floating-point registers in a `struct ucontext`: flags, link, stack, then 23 words.
const UC_FPREGS: u64 = 8 + 8 + 24 + 23 * 8;

/// Where an area of saved registers has the address of the last instruction of the x87.
const SAVED_RIP: u64 = 8;

/// Where such an area says which of its components have been written.
const WRITTEN: u64 = 512;

impl Dispatcher<'_> {
    /// The kernel has built a handler's frame; the handler is about to run.
    pub(super) fn show_own_address_in_frame(&self, t: &Stopped) {
        let show = || {
            // The return address, then the context.
            let frame = t.regs().ok()?.rsp;
            let p = self.process_of(t.tid())?;
            let saved = p.memory.word(frame + 8 + UC_FPREGS).filter(|&at| at != 0)?;
            replace(p, &p.code_cache.borrow(), GuestAddr(saved.wrapping_add(SAVED_RIP)), 8)
        };
        let _: Option<()> = show();
    }
}

/// The instruction at `pc` has just been executed with these registers.
fn show_own_address(p: &Process, code_cache: &CodeCache, pc: GuestAddr, regs: &Regs) -> Option<()> {
    let mut code = [0; 15];
    let n = p.memory.read(pc.0, &mut code);
    let ins = Decoder::with_ip(64, &code[..n], pc.0, DecoderOptions::NONE).decode();
    let (offset, size) = decode::saved_x87_address(ins.code())?;
    let operand = ins.virtual_address(0, 0, |name, _, _| match name {
        Register::FS => Some(regs.fs_base),
        Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
        r if r.is_gpr64() => Some(*register(&mut regs.clone(), r.number() as u8)),
        r if r.is_gpr32() => Some(*register(&mut regs.clone(), r.number() as u8) & 0xffff_ffff),
        _ => None,
    })?;
    if decode::saves_what_is_asked_for(ins.code())
        && (regs.rax & 1 == 0 || p.memory.word(operand.wrapping_add(WRITTEN))? & 1 == 0)
    {
        return None;
    }
    replace(p, code_cache, GuestAddr(operand.wrapping_add(offset)), size)
}

/// If the `size` bytes at `at` are an address of the code cache, they become the program's.
fn replace(p: &Process, code_cache: &CodeCache, at: GuestAddr, size: usize) -> Option<()> {
    let mut word = [0; 8];
    if p.memory.read(at.0, &mut word[..size]) != size {
        return None;
    }
    let cached = in_cache(code_cache, u64::from_le_bytes(word), size)?;
    let own =
        code_cache.trans.place(cached).map_or(GuestAddr(0), |place| code_cache.trans.pc_of(place.block, place.index));
    p.memory.write(at.0, &own.0.to_le_bytes()[..size]).ok()
}

/// The address of the code cache that a word of so many bytes shows, which may be just the lower half.
fn in_cache(code_cache: &CodeCache, word: u64, size: usize) -> Option<CacheAddr> {
    code_cache.chunks.iter().find_map(|c| {
        let upper = if size == 8 { 0 } else { c.guest.0 & !0xffff_ffff };
        [upper, upper.wrapping_add(1 << 32)]
            .into_iter()
            .map(|u| CacheAddr(u.wrapping_add(word)))
            .find(|a| code_cache.is_cache(*a))
    })
}
