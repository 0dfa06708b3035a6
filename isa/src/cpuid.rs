//! The processor that the guest sees. The baseline model describes a fixed Haswell-class processor (family 6, model 60), the
//! one that Valgrind describes too, so that a program and its libraries choose the same code on every machine with AVX2,
//! and the same as under the oracle. A feature that the host lacks is never shown. Sources: Intel SDM volume 2A (CPUID),
//! and the values Valgrind 3.19 hands to its guests.

use std::arch::x86_64::__cpuid_count;

use nix::libc;

/// What CPUID and XGETBV show to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CpuModel {
    /// A fixed Haswell-class processor with AVX2 and without AVX-512: the same code paths on every machine.
    #[default]
    Baseline,
    /// The processor that is there.
    Host,
}

/// The state components of the baseline: x87, SSE, AVX.
pub const BASELINE_XCR0: u64 = 7;

/// Highest basic and extended leaves.
const MAX_BASIC: u32 = 0xd;
const MAX_EXTENDED: u32 = 0x8000_0008;

/// Whether programs may change their gs base by an instruction: the kernel says so in AT_HWCAP2.
pub fn has_fsgsbase() -> bool {
    let auxv = std::fs::read("/proc/self/auxv").unwrap_or_default();
    let word = |b: &[u8]| b.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    auxv.chunks_exact(16).any(|e| word(e) == libc::AT_HWCAP2 && word(&e[8..]) & 2 != 0)
}

/// What the baseline answers in eax, ebx, ecx, edx.
pub fn baseline(leaf: u32, subleaf: u32) -> [u32; 4] {
    let host = |leaf| {
        let r = __cpuid_count(leaf, 0);
        [r.eax, r.ebx, r.ecx, r.edx]
    };
    // Beyond the last leaf, Intel processors answer as for the highest basic one.
    let beyond = leaf > MAX_BASIC && leaf < 0x8000_0000 || leaf > MAX_EXTENDED;
    let (leaf, subleaf) = if beyond { (MAX_BASIC, 0) } else { (leaf, subleaf) };
    match (leaf, subleaf) {
        (0, _) => [MAX_BASIC, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        (1, _) => {
            let [_, _, c, d] = host(1);
            // HTT and APIC bits of edx tell of the package, not of instructions: kept whatever the host says. The host's
            // bit for OSXSAVE is the kernel's.
            [0x0003_06c3, 0x0210_0800, 0x7ffa_fbff & (c | !INSTRUCTIONS_1C), 0xbfeb_fbff & (d | !INSTRUCTIONS_1D)]
        }
        (2, _) => [0x7603_6301, 0x00f0_b6ff, 0, 0x00c1_0000],
        (4, 0) => [0x1c00_4121, 0x01c0_003f, 0x3f, 0],
        (4, 1) => [0x1c00_4122, 0x01c0_003f, 0x3f, 0],
        (4, 2) => [0x1c00_4143, 0x01c0_003f, 0x1ff, 0],
        (4, 3) => [0x1c03_c163, 0x03c0_003f, 0x1fff, 6],
        (5, _) => [0x40, 0x40, 3, 0x0004_2120],
        (6, _) => [0x77, 2, 9, 0],
        (7, 0) => {
            let [_, b, _, _] = host(7);
            [0, 0x0004_27aa & (b | !INSTRUCTIONS_7B), 0, 0]
        }
        (0xa, _) => [0x0730_0803, 0, 0, 0x603],
        (0xb, 0) => [1, 2, 0x100, 2],
        (0xb, 1) => [4, 8, 0x201, 2],
        (0xb, n) => [0, 0, n, 2],
        (0xd, 0) => [BASELINE_XCR0 as u32, 0x340, 0x340, 0],
        (0xd, 2) => [0x100, 0x240, 0, 0],
        (0x8000_0000, _) => [MAX_EXTENDED, 0, 0, 0],
        (0x8000_0001, _) => {
            let [_, _, c, d] = host(0x8000_0001);
            [0, 0, 0x21 & c, 0x2c10_0800 & (d | 0x800)]
        }
        // "Intel(R) Core(TM) i7-4910MQ CPU @ 2.90GHz"
        (0x8000_0002, _) => [0x6574_6e49, 0x2952_286c, 0x726f_4320, 0x4d54_2865],
        (0x8000_0003, _) => [0x3769_2029, 0x3139_342d, 0x2051_4d30, 0x2055_5043],
        (0x8000_0004, _) => [0x2e32_2040, 0x4847_3039, 0x7a, 0],
        (0x8000_0006, _) => [0, 0, 0x0100_6040, 0],
        (0x8000_0007, _) => [0, 0, 0, 0x100],
        (0x8000_0008, _) => [0x3027, 0, 0, 0],
        _ => [0; 4],
    }
}

/// Bits of leaf 1 ecx that stand for instructions: SSE3, PCLMULQDQ, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT,
/// AES, XSAVE, OSXSAVE, AVX, F16C, RDRAND.
const INSTRUCTIONS_1C: u32 =
    1 | 1 << 1 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 22 | 1 << 23 | 0x7e00_0000;
/// Bits of leaf 1 edx that stand for instructions: FPU, TSC, CX8, SEP, CMOV, CLFSH, MMX, FXSR, SSE, SSE2.
const INSTRUCTIONS_1D: u32 = 1 | 1 << 4 | 1 << 8 | 1 << 11 | 1 << 15 | 1 << 19 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 26;
/// Bits of leaf 7 ebx that stand for instructions: BMI1, AVX2, BMI2, ERMS, INVPCID, RDSEED.
const INSTRUCTIONS_7B: u32 = 1 << 3 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_avx512_and_a_small_save_area() {
        let seven = baseline(7, 0);
        assert_eq!(seven[1] >> 16 & 1, 0, "AVX512F");
        assert_eq!(seven[1] & 1, 0, "FSGSBASE");
        assert_eq!(baseline(0xd, 0)[1], 832);
        assert_eq!(baseline(0xd, 1), [0; 4], "no XSAVEC");
    }

    #[test]
    fn leaves_beyond_the_last_answer_as_the_last() {
        assert_eq!(baseline(0x4000_0000, 0), baseline(0xd, 0));
        assert_eq!(baseline(0x16, 0), baseline(0xd, 0));
        assert_eq!(baseline(0x8000_0009, 5), baseline(0xd, 0));
    }
}
