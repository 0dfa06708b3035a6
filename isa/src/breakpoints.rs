//! Where a thread that runs a program's own code has to stop: at client requests, and, if the program sees the baseline processor, at
//! instructions that would show it another one or write more than it has made room for. The bytes of a request are found wherever
//! they are. Those instructions are too short for that: whether such bytes are one is known by decoding what leads there.
//!
//! Invariant: no place is told of that is not the first byte of such an instruction, as long as decoding begins at an instruction.

use iced_x86::{Decoder, DecoderOptions};
use memchr::{memchr_iter, memmem};

use crate::decode::{self, Class};

/// Where client requests begin in `code`, as offsets.
#[must_use]
pub fn requests(code: &[u8]) -> Vec<usize> {
    memmem::find_iter(code, &decode::REQUEST_PREAMBLE).collect()
}

/// Where in `code` bytes are that may be of an instruction that differs by processor (`cpuid`, `xgetbv`, `xsave`, `xrstor` and their kin),
/// as offsets.
#[must_use]
pub fn suspects(code: &[u8]) -> Vec<usize> {
    let may_be = |&at: &usize| {
        let [opcode, operand] = [1, 2].map(|i| code.get(at + i).copied().unwrap_or(0));
        let (kind, in_memory) = (operand >> 3 & 7, operand >> 6 != 3);
        match opcode {
            0xa2 => true,
            0x01 => operand == 0xd0,
            0xae => in_memory && (4..=6).contains(&kind),
            0xc7 => in_memory && (3..=5).contains(&kind),
            _ => false,
        }
    };
    memchr_iter(0x0f, code).filter(may_be).collect()
}

/// What a suspect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An instruction that differs, which begins at this address.
    Differs(u64),
    /// A part of something else.
    Harmless,
    /// What leads there is no code.
    Unknown,
}

/// What the bytes at address `suspect` are. `code` begins at address `start` with an instruction and goes on behind the suspect.
#[must_use]
pub fn judge(code: &[u8], start: u64, suspect: u64) -> Verdict {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::MPX);
    while decoder.can_decode() {
        let ins = decoder.decode();
        if ins.is_invalid() {
            break;
        }
        if ins.next_ip() > suspect {
            let differs = matches!(decode::class_of(&ins), Class::Cpuid | Class::Xgetbv | Class::XsaveMasked);
            return if differs { Verdict::Differs(ins.ip()) } else { Verdict::Harmless };
        }
    }
    Verdict::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_their_bytes() {
        let request = [&decode::REQUEST_PREAMBLE[..], &[0x48, 0x87, 0xdb]].concat();
        let code = [&[0x90; 5], &request[..], &[0xc3], &request[..15]].concat();
        assert_eq!(requests(&code), [5]);
    }

    #[test]
    fn suspects_are_judged_by_what_leads_to_them() {
        // mov $0xa20f, %eax; cpuid; xgetbv; mfence; xsave64 (%rsp); cmpxchg16b (%rdi); xsavec 64(%rsp)
        let code = [
            &[0xb8, 0x0f, 0xa2, 0, 0][..],
            &[0x0f, 0xa2],
            &[0x0f, 0x01, 0xd0],
            &[0x0f, 0xae, 0xf0],
            &[0x48, 0x0f, 0xae, 0x24, 0x24],
            &[0x48, 0x0f, 0xc7, 0x0f],
            &[0x0f, 0xc7, 0x64, 0x24, 0x40],
            &[0xc3],
        ]
        .concat();
        assert_eq!(suspects(&code), [1, 5, 7, 14, 22]);
        let verdicts: Vec<_> = suspects(&code).iter().map(|&at| judge(&code, 0x1000, 0x1000 + at as u64)).collect();
        assert_eq!(
            verdicts,
            [
                Verdict::Harmless,
                Verdict::Differs(0x1005),
                Verdict::Differs(0x1007),
                Verdict::Differs(0x100d),
                Verdict::Differs(0x1016),
            ]
        );
        // `push %es` is none in 64-bit code.
        assert_eq!(judge(&[0x06, 0x0f, 0xa2], 0, 1), Verdict::Unknown);
    }
}
