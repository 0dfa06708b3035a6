//! The processor that the guest sees.

/// What CPUID and XGETBV show to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CpuModel {
    /// A fixed Haswell-class processor with AVX2 and without AVX-512: the same code paths on every machine.
    #[default]
    Baseline,
    /// The processor that is there.
    Host,
}
