//! Hooks of interpreters that emitted code leaves to the engine (`grind_codegen`'s `frames`): what a frame runs that has not been met yet.
//! The driver reads what that is, while the program stands there and cannot have taken it back; the sink is told, and the code object is
//! known from then on, until the program takes it back.
//!
//! Invariants: what is in the table of known code objects has been told to the sink for this process, which is why a process that
//! shares its translations with another gets its own first; what any thread has recorded before, of what was at the same address, has been
//! handed over by then.

use grind_fragments::fragment_table::StubKind;
use grind_ptrace::{Stopped, register};
use grind_trace::frames::FrameRecord;
use grind_types::addr::GuestAddr;
use grind_types::frames::FrameHook;

use super::Dispatcher;
use super::announce::announce;

impl Dispatcher<'_> {
    /// What has to be done before a stub within an instruction can be served. `None` if the thread died over it.
    pub(super) fn ready_to_serve(&mut self, t: Stopped, kind: StubKind) -> Option<Stopped> {
        match kind {
            StubKind::Framed { .. } => self.own_code_cache(t),
            _ => Some(t),
        }
    }

    /// `t` is about to execute the instruction at `pc`, where a hook is. Does what emitted code does there.
    pub(super) fn framed_code(&mut self, t: &Stopped, pc: GuestAddr) {
        let tid = t.tid();
        let Ok(mut regs) = t.regs() else { return };
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let hook = code_cache.borrow().hook_at(pc).map(|(hook, module)| (hook, module.clone()));
        let Some((hook, module)) = hook else { return };
        let (entered, frame, at) = match hook {
            FrameHook::Gone { code } => {
                let address = *register(&mut regs, code);
                if code_cache.borrow().knows_code(GuestAddr(address)) {
                    code_cache.borrow().know_code(GuestAddr(address), false);
                }
                return;
            }
            FrameHook::Entered { frame, code, .. } => (true, *register(&mut regs, frame), code),
            FrameHook::Switched { frame, code, .. } => (false, *register(&mut regs, frame), code),
        };
        let Some((pid, slot)) = self.threads.get(&tid).map(|th| (th.pid, th.slot)) else { return };
        let Some(p) = self.processes.get(&pid) else { return };
        let threads = p.threads.clone();
        let Some(word) = p.memory.word(frame.wrapping_add_signed(at.offset.into())) else { return };
        let code = at.address(word);
        let function = self.session.frame_function(&module, &|at, to| p.memory.read(at, to), code);
        for thread in threads.into_iter().filter(|thread| *thread != tid) {
            self.hand_over_ahead(thread);
        }
        self.drain(tid, slot);
        if let Some(trace_channel) = &self.trace_channel {
            announce(trace_channel, &mut code_cache.borrow_mut());
            trace_channel.frame_code(pid, code, function);
        }
        code_cache.borrow().know_code(GuestAddr(code), true);
        let recording = self.process_of(tid).zip(self.threads.get(&tid));
        if recording.is_some_and(|(p, th)| th.counted_slot(p.counting) == Some(slot)) {
            let record = FrameRecord { entered, frame, code, sp: regs.rsp, pc: pc.0 };
            self.append(tid, slot, &record.words());
        }
    }
}
