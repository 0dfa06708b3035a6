//! Hooks of interpreters, in line: where a frame begins to run or becomes the one that runs, a record goes among the blocks that the
//! thread tells of, in front of what the instruction at the hook does. What the frame runs must be known by then: a code object that
//! the table ([`layout::FRAME_CODES`]) does not have stops, as if this code was not there, and so does one that is taken back.
//!
//! Invariants: registers and flags are the program's again behind it, and in front of each stop; the highest word of a record is
//! written first; of the program's memory nothing is read but the code object's address in a frame that is about to run.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::instructions::{E, NE};
use grind_fragments::fragment_table::{NOT_SPILLED, StateMapEntry, StubKind};
use grind_isa::decode::STATUS;
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_trace::frames::{FRAME_ENTERED, FRAME_SWITCHED, FRAME_WORDS};
use grind_types::addr::GuestAddr;
use grind_types::frames::{CodeAt, FrameHook};

use super::Emitter;

/// Registers that are given back at the end, and where they are meanwhile.
const TAKEN: [(Gpr, SlotWord); 2] = [(Gpr::RCX, SlotWord::T1), (Gpr::RDX, SlotWord::T2)];

impl Emitter<'_> {
    /// In front of the first instruction of a block at `pc`, where a hook is; `live`: the flags that are needed from there on.
    pub(super) fn frame_hook(&mut self, pc: GuestAddr, hook: FrameHook, live: u8) {
        let keeps_flags = live & STATUS != 0;
        for (register, word) in TAKEN {
            self.out.code.spill(word, register);
        }
        if keeps_flags {
            self.save_flags(Gpr::RCX);
        }
        let mut away = None;
        let slow = match hook {
            FrameHook::Gone { code } => {
                self.program_register(Gpr::RDX, code);
                self.if_code_is_known(E)
            }
            FrameHook::Entered { frame, code, holder } => {
                if let Some((base, offset)) = holder {
                    self.program_register(Gpr::RCX, base);
                    let c = &mut self.out.code;
                    dynasm!(c; lea rcx, [rcx + i32::from(offset)]);
                    c.store_gs(SlotWord::FrameHolder.at(), Gpr::RCX);
                }
                self.program_register(Gpr::RCX, frame);
                self.code_of_frame(code);
                let unknown = self.if_code_is_known(NE);
                self.record_frame(FRAME_ENTERED, frame, pc);
                unknown
            }
            FrameHook::Switched { frame, code, holder } => {
                if let Some((base, offset)) = holder {
                    self.program_register(Gpr::RCX, base);
                    let c = &mut self.out.code;
                    dynasm!(c; lea rcx, [rcx + i32::from(offset)]);
                    c.gs_op(0x39, Gpr::RCX, SlotWord::FrameHolder.at()); // cmp gs:[…], rcx
                    away = Some(c.jcc_away(NE));
                }
                self.program_register(Gpr::RCX, frame);
                let c = &mut self.out.code;
                dynasm!(c; mov edx, 0; test rcx, rcx);
                let none = c.jcc_away(E);
                self.code_of_frame(code);
                let unknown = self.if_code_is_known(NE);
                self.out.code.patch_here(none);
                self.record_frame(FRAME_SWITCHED, frame, pc);
                unknown
            }
        };
        away.into_iter().for_each(|from| self.out.code.patch_here(from));
        self.give_back_from_frames(keeps_flags);
        let done = self.out.code.jmp_away();
        self.out.code.patch_here(slow);
        self.give_back_from_frames(keeps_flags);
        let id = self.trans.add_stub(StubKind::Framed { pc });
        self.out.stubs.push((self.out.code.pos(), id));
        self.out.code.stop(id);
        self.out.code.patch_here(done);
    }

    fn give_back_from_frames(&mut self, keeps_flags: bool) {
        if keeps_flags {
            self.restore_flags(Gpr::RCX);
        }
        for (register, word) in TAKEN {
            self.out.code.reload(register, word);
        }
    }

    /// What the program has in a register goes to `into`, which has been taken.
    fn program_register(&mut self, into: Gpr, register: u8) {
        let register = Gpr(register);
        let taken = TAKEN.iter().find(|(taken, _)| *taken == register).map(|(_, word)| *word);
        match taken.or_else(|| register.kept(self.stolen_registers())) {
            Some(word) => self.out.code.reload(into, word),
            None => self.out.code.mov_reg(into, register),
        }
    }

    /// The code object of the frame at rcx goes to rdx.
    fn code_of_frame(&mut self, at: CodeAt) {
        let [(a, a_word), (b, b_word)] = TAKEN;
        let spilled = [(a.0, a_word as u8), (b.0, b_word as u8), NOT_SPILLED, NOT_SPILLED];
        self.state_map_entry(StateMapEntry::Spilled(spilled));
        let c = &mut self.out.code;
        dynasm!(c; mov rdx, [rcx + i32::from(at.offset)]);
        if at.tags != 0 {
            dynasm!(c; and rdx, !i32::from(at.tags));
        }
    }

    /// A jump if the code object at rdx is known, or if not, as `condition` has it. Changes rcx and the flags.
    fn if_code_is_known(&mut self, condition: u8) -> usize {
        let table = (self.tables + layout::FRAME_CODES) as i32;
        let c = &mut self.out.code;
        dynasm!(c
            ; mov ecx, edx
            ; shr ecx, layout::FRAME_CODE_SHIFT as i8
            ; and ecx, layout::FRAME_CODE_ENTRIES as i32 - 1
            ; cmp [rcx * 8 + table], rdx
        );
        c.jcc_away(condition)
    }

    /// Records a frame, whose code object is at rdx.
    fn record_frame(&mut self, first: u32, frame: u8, pc: GuestAddr) {
        const { assert!(FRAME_WORDS == 9) };
        let c = &mut self.out.code;
        c.load_gs(Gpr::RCX, SlotWord::TracePos.at());
        dynasm!(c
            ; gs mov DWORD [rcx + 32], (pc.0 >> 32) as i32
            ; gs mov DWORD [rcx + 28], pc.0 as i32
            ; gs mov [rcx + 20], rsp
            ; gs mov [rcx + 12], rdx
        );
        self.program_register(Gpr::RDX, frame);
        let c = &mut self.out.code;
        dynasm!(c
            ; gs mov [rcx + 4], rdx
            ; gs mov DWORD [rcx], first as i32
        );
        c.add_gs(SlotWord::TracePos.at(), 4 * FRAME_WORDS as i32);
    }
}
