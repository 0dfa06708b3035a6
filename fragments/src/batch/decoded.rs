//! Instructions that have been decoded before: what bytes at an address say hangs on nothing else, and builds, test suites and
//! scripts run the same libraries in one process after the other; and whoever translates all anew decodes all once more.
//!
//! Invariant: nothing is taken from here unless the bytes that it was decoded from are those that are there now, all of them. What
//! further bytes might make another instruction of (the end of what is mapped, the beginning of a client request) is not kept.

use std::cell::RefCell;
use std::ops::Range;

use grind_isa::decode::{self, Class, CodeBytes, Insn};
use grind_types::addr::GuestAddr;
use grind_types::hash::Map;
use iced_x86::InstructionInfoFactory;

use super::Registers;

/// Instructions that are kept; all are dropped when there are more.
const KEPT: usize = 1 << 16;

/// Instructions that lie one behind the other.
#[derive(Clone, Debug)]
struct Run {
    insns: Range<u32>,
    bytes: Range<u32>,
}

/// What has been decoded.
#[derive(Debug, Default)]
struct Decoded {
    /// The guest sees the baseline processor.
    masked: bool,
    /// By the address of its first instruction.
    runs: Map<GuestAddr, Run>,
    insns: Vec<Insn>,
    /// What they do with registers, once that has been asked for.
    registers: Vec<Option<Registers>>,
    bytes: Vec<u8>,
}

thread_local! {
    /// Of all processes: the thread that traces them translates for them.
    static DECODED: RefCell<Decoded> = RefCell::default();
}

/// Which of what is kept an instruction is, if it is.
pub(super) type Place = Option<u32>;

/// A batch begins: the places that earlier ones have got are void.
pub(super) fn begin(masked: bool) {
    DECODED.with_borrow_mut(|decoded| {
        if decoded.insns.len() > KEPT || decoded.masked != masked {
            *decoded = Decoded { masked, ..Decoded::default() };
        }
    });
}

/// As [`decode::decode_block`]; `places` gets an entry for each instruction.
pub(super) fn decode_block(
    reader: &mut impl CodeBytes,
    pc: GuestAddr,
    masked: bool,
    through: usize,
    mut stop: impl FnMut(GuestAddr) -> bool,
    (out, places): (&mut Vec<Insn>, &mut Vec<Place>),
) -> usize {
    DECODED.with_borrow_mut(|decoded| {
        debug_assert_eq!(decoded.masked, masked);
        let first = out.len();
        let Some(Run { insns, .. }) = decoded.run(pc, reader.at(pc)) else {
            let n = decode::decode_block(reader, pc, masked, through, stop, out);
            places.resize(out.len(), None);
            decoded.keep(&out[first..], &mut places[first..]);
            return n;
        };
        let mut through = through;
        let mut next = pc;
        for i in insns {
            let insn = decoded.insns[i as usize];
            if next != pc && stop(next) {
                return out.len() - first;
            }
            out.push(insn);
            places.push(Some(i));
            next = insn.next();
            if insn.class == Class::Jcc && through > 0 {
                through -= 1;
            } else if insn.class.ends_block() {
                return out.len() - first;
            }
        }
        // It was cut off there when it was decoded.
        if !stop(next) {
            decode::decode_block(reader, next, masked, through, stop, out);
            out.truncate(first + decode::MAX_INSNS);
            places.resize(out.len(), None);
        }
        out.len() - first
    })
}

/// What instructions, which are at these places, do with registers.
pub(super) fn registers(insns: &[Insn], places: &[Place], info: &mut InstructionInfoFactory, out: &mut Vec<Registers>) {
    DECODED.with_borrow_mut(|decoded| {
        out.extend(insns.iter().zip(places).map(|(insn, place)| match place {
            // (Of a jump whose target is known it does less.)
            Some(i) if decoded.is(*i, insn) => {
                *decoded.registers[*i as usize].get_or_insert_with(|| Registers::of(insn, info))
            }
            _ => Registers::of(insn, info),
        }));
    });
}

impl Decoded {
    /// The instructions at `pc`, if `bytes` begin with theirs.
    fn run(&self, pc: GuestAddr, bytes: &[u8]) -> Option<Run> {
        let run = self.runs.get(&pc)?;
        bytes.starts_with(&self.bytes[run.bytes.start as usize..run.bytes.end as usize]).then(|| run.clone())
    }

    /// Keeps a block that has been decoded.
    fn keep(&mut self, block: &[Insn], places: &mut [Place]) {
        let Some(first) = block.first().filter(|_| block.len() < decode::MAX_INSNS) else { return };
        if block.iter().any(decode::hangs_on_what_follows) {
            return;
        }
        let (insns, bytes) = (self.insns.len() as u32, self.bytes.len() as u32);
        block.iter().for_each(|insn| self.bytes.extend_from_slice(insn.bytes()));
        self.insns.extend_from_slice(block);
        self.registers.resize(self.insns.len(), None);
        for (i, place) in (insns..).zip(places) {
            *place = Some(i);
        }
        let run = Run { insns: insns..self.insns.len() as u32, bytes: bytes..self.bytes.len() as u32 };
        self.runs.insert(first.pc(), run);
    }

    fn is(&self, i: u32, insn: &Insn) -> bool {
        let known = &self.insns[i as usize];
        known.pc() == insn.pc() && known.class == insn.class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code in memory of ours.
    struct Bytes<'a>(u64, &'a [u8]);

    impl CodeBytes for Bytes<'_> {
        fn at(&mut self, pc: GuestAddr) -> &[u8] {
            pc.0.checked_sub(self.0).and_then(|at| self.1.get(at as usize..)).unwrap_or_default()
        }
    }

    fn both(code: &[u8], pc: GuestAddr, masked: bool, through: usize, stops: &[u64]) {
        let show = |i: &Insn| {
            let Insn { ins, class, live, reads, kills, displacement_at, .. } = i;
            format!("{ins:?} {class:?} {live} {reads} {kills} {displacement_at} {:?}", i.bytes())
        };
        let stop = |at: GuestAddr| stops.contains(&at.0);
        let mut plain = Vec::new();
        let n = decode::decode_block(&mut Bytes(0x1000, code), pc, masked, through, stop, &mut plain);
        begin(masked);
        let (mut kept, mut places) = (Vec::new(), Vec::new());
        let m = decode_block(&mut Bytes(0x1000, code), pc, masked, through, stop, (&mut kept, &mut places));
        assert_eq!((n, m, kept.len(), places.len()), (plain.len(), plain.len(), plain.len(), plain.len()));
        assert_eq!(plain.iter().map(show).collect::<Vec<_>>(), kept.iter().map(show).collect::<Vec<_>>());
        let mut info = InstructionInfoFactory::new();
        let (mut got, wanted): (Vec<_>, Vec<_>) =
            (Vec::new(), plain.iter().map(|insn| Registers::of(insn, &mut info)).collect());
        registers(&kept, &places, &mut info, &mut got);
        assert_eq!(got, wanted);
    }

    #[test]
    fn a_batch_keeps_its_places_however_much_is_decoded() {
        let mut code = [0x48, 0x89, 0xd8].repeat(100);
        code.push(0xc3);
        begin(true);
        let (mut kept, mut places) = (Vec::new(), Vec::new());
        for at in 0..=KEPT as u64 / 100 {
            let pc = 0x1000 + at * 0x1000;
            decode_block(&mut Bytes(pc, &code), GuestAddr(pc), true, 0, |_| false, (&mut kept, &mut places));
        }
        assert!(places.len() > KEPT && places.iter().all(Option::is_some));
        let (mut info, mut got) = (InstructionInfoFactory::new(), Vec::new());
        registers(&kept, &places, &mut info, &mut got);
        assert!(kept.iter().zip(&got).all(|(insn, got)| Registers::of(insn, &mut info) == *got));
        // The next one has room again.
        begin(true);
        assert!(DECODED.with_borrow(|decoded| decoded.insns.is_empty()));
    }

    /// Against the decoder, over and over: whatever is kept from before, code that has changed, is cut off elsewhere, goes on behind
    /// branches or ends with what is mapped is decoded as it stands.
    #[test]
    fn what_is_kept_is_what_is_there() {
        let mut x = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % below
        };
        // Common instructions, branches, one that needs more bytes, and halves of a client request.
        let pieces: [&[u8]; 12] = [
            &[0x90],
            &[0x48, 0x89, 0xd8],
            &[0x75, 0x02],
            &[0x0f, 0x84, 1, 0, 0, 0],
            &[0xe8, 0, 0, 0, 0],
            &[0xc3],
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x48, 0xc1, 0xc7, 0x03],
            &[0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33],
            &[0x48, 0x87, 0xdb],
            &[0x0f, 0xa2],
            &[0xff, 0x25, 0, 0, 0, 0],
        ];
        let mut code = Vec::new();
        for round in 0..20_000 {
            if round % 50 == 0 {
                code.clear();
                // Now and then a block as long as one may be.
                let (most, kinds) = if random(10) == 0 { (400, 2) } else { (40, 12) };
                (0..random(most)).for_each(|_| code.extend_from_slice(pieces[random(kinds) as usize]));
            } else if !code.is_empty() && random(3) == 0 {
                let at = random(code.len() as u64) as usize;
                code[at] = random(256) as u8;
            }
            let len = code.len() - random(4).min(code.len() as u64) as usize;
            let stops: Vec<u64> = (0..random(4)).map(|_| 0x1000 + random(80)).collect();
            both(&code[..len], GuestAddr(0x1000 + random(30)), random(50) != 0, random(3) as usize, &stops);
        }
    }
}
