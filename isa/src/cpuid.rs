//! The processor that the guest sees. The baseline model describes a fixed Haswell-class processor (family 6, model 60), the
//! one that Valgrind describes too, so that a program and its libraries choose the same code on every machine with AVX2,
//! and the same as under the oracle. A feature that the host lacks is never shown. Sources: Intel SDM volume 2A (CPUID),
//! and the values Valgrind 3.19 hands to its guests.

use std::arch::x86_64::__cpuid_count;
use std::sync::LazyLock;

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
    // Beyond the last leaf, Intel processors answer as for the highest basic one.
    let beyond = leaf > MAX_BASIC && leaf < 0x8000_0000 || leaf > MAX_EXTENDED;
    let (leaf, subleaf) = if beyond { (MAX_BASIC, 0) } else { (leaf, subleaf) };
    match (leaf, subleaf) {
        (0, _) => [MAX_BASIC, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        (1, _) => {
            let [_, _, c, d] = HOST[0];
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
            let [_, b, _, _] = HOST[1];
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
            let [_, _, c, d] = HOST[2];
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

/// Leaves 1, 7 and 0x8000_0001 of the processor that is there. In a virtual machine each question is a way out of it.
static HOST: LazyLock<[[u32; 4]; 3]> = LazyLock::new(|| {
    [1, 7, 0x8000_0001].map(|leaf| {
        let r = __cpuid_count(leaf, 0);
        [r.eax, r.ebx, r.ecx, r.edx]
    })
});

/// An answer, as emitted code reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What eax is asked with.
    pub leaf: u32,
    /// What ecx is asked with.
    pub subleaf: u32,
    /// Not 0 if ecx does not matter.
    pub any_subleaf: u32,
    /// eax, ebx, ecx, edx.
    pub answer: [u32; 4],
    unused: u32,
}

impl Row {
    /// The row as it lies in memory.
    pub fn words(&self) -> [u64; 4] {
        let [a, b, c, d] = self.answer;
        let pair = |low, high| u64::from(low) | u64::from(high) << 32;
        [pair(self.leaf, self.subleaf), pair(self.any_subleaf, a), pair(b, c), pair(d, self.unused)]
    }
}

/// What programs ask for: all leaves that there are, with the first few subleaves of each, as emitted code looks it up. (What
/// else they ask for, [`baseline`] says.)
#[derive(Debug)]
pub struct Table {
    /// By [`Table::place`]: the number of the first row of such a leaf.
    index: [u8; 32],
    /// Those of one leaf stand together. The last is of a leaf whose place leads elsewhere.
    rows: Vec<Row>,
}

impl Table {
    /// That of the baseline.
    pub fn baseline() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(Table::new);
        &TABLE
    }

    fn new() -> Self {
        /// One more than C libraries ask for until they know that there are no more.
        const SUBLEAVES: u32 = 6;
        const NOBODYS: Row = Row { leaf: 0x1000_0000, subleaf: 0, any_subleaf: 0, answer: [0; 4], unused: 0 };
        let row =
            |leaf, subleaf, any_subleaf| Row { leaf, subleaf, any_subleaf, answer: baseline(leaf, subleaf), unused: 0 };
        let mut rows = Vec::new();
        let mut firsts = [None; 32];
        for leaf in (0..=MAX_BASIC).chain(0x8000_0000..=MAX_EXTENDED) {
            firsts[Self::place(leaf)] = Some(rows.len() as u8);
            if BY_SUBLEAF.contains(&leaf) {
                rows.extend((0..SUBLEAVES).map(|subleaf| row(leaf, subleaf, 0)));
            } else {
                rows.push(row(leaf, 0, 1));
            }
        }
        rows.push(NOBODYS);
        Table { index: firsts.map(|first| first.unwrap_or(rows.len() as u8 - 1)), rows }
    }

    /// Where the index has a leaf: its low four bits, and its highest.
    fn place(leaf: u32) -> usize {
        (leaf & 15 | leaf >> 27 & 16) as usize
    }

    /// Bytes of the index, behind which are the rows.
    pub const INDEX_SIZE: u64 = 32;

    /// The table as it lies in memory.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let index = self.index.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        index.chain(self.rows.iter().flat_map(Row::words))
    }
}

/// Leaves whose answers differ by the subleaf.
const BY_SUBLEAF: [u32; 4] = [4, 7, 0xb, 0xd];

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

    /// As emitted code looks it up.
    fn found(leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        let table = Table::baseline();
        let first = usize::from(table.index[Table::place(leaf)]);
        let row = table.rows[first..].iter().find(|r| r.leaf != leaf || r.any_subleaf != 0 || r.subleaf == subleaf)?;
        (row.leaf == leaf).then_some(row.answer)
    }

    #[test]
    fn the_table_answers_what_is_answered_without_it() {
        let known = (0..=MAX_BASIC).chain(0x8000_0000..=MAX_EXTENDED);
        for leaf in known.clone().chain([
            0xe,
            0xf,
            0x14,
            0x1000_0000,
            0x4000_0000,
            0x8000_0009,
            0x8000_000f,
            0xc000_0000,
            u32::MAX,
        ]) {
            for subleaf in (0..70).chain([u32::MAX]) {
                let answer = found(leaf, subleaf);
                assert!(answer.is_none_or(|a| a == baseline(leaf, subleaf)), "leaf {leaf:x}, subleaf {subleaf}");
            }
            assert_eq!(found(leaf, 0).is_some(), known.clone().any(|l| l == leaf), "leaf {leaf:x}");
        }
    }

    #[test]
    fn a_row_lies_in_memory_as_its_words_say() {
        let row = Table::baseline().rows[1];
        assert_eq!(size_of::<Row>(), size_of_val(&row.words()));
        let bytes: Vec<u8> = row.words().into_iter().flat_map(u64::to_le_bytes).collect();
        let at = |o: usize| u32::from_le_bytes(*bytes[o..].first_chunk().unwrap());
        assert_eq!(at(std::mem::offset_of!(Row, leaf)), row.leaf);
        assert_eq!(at(std::mem::offset_of!(Row, subleaf)), row.subleaf);
        assert_eq!(at(std::mem::offset_of!(Row, any_subleaf)), row.any_subleaf);
        assert_eq!([0, 4, 8, 12].map(|o| at(std::mem::offset_of!(Row, answer) + o)), row.answer);
    }

    #[test]
    fn leaves_beyond_the_last_answer_as_the_last() {
        assert_eq!(baseline(0x4000_0000, 0), baseline(0xd, 0));
        assert_eq!(baseline(0x16, 0), baseline(0xd, 0));
        assert_eq!(baseline(0x8000_0009, 5), baseline(0xd, 0));
    }
}
