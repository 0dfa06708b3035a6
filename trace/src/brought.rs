//! Records of lines that first-level caches bring in: which one has to go for it, and when that was used last.
//!
//! Invariant: each stands right in front of the miss that it belongs to.

use crate::operands;

/// In place of a site's number: a line is brought into the thread's data cache, for the access whose miss is told next ([`LineBrought`]).
pub const LINE_BROUGHT: u32 = u32::MAX - 17;

/// In place of a site's number, in front of the miss of a fetch ([`TraceSettings::code_ways`](crate::TraceSettings::code_ways)): a line is brought into the thread's code
/// cache. Operand: [`CODE_WAY`](crate::CODE_WAY) times its way, of all sets one behind the other, and 1 if it is the last line of the fetch.
pub const CODE_BROUGHT: u32 = u32::MAX - 18;

/// Words of a record of [`CODE_BROUGHT`].
pub const CODE_BROUGHT_WORDS: usize = 2;

/// A line is brought into a thread's data cache, and another one has to go for it, unless a way was empty. Told, where
/// [`TraceSettings::ages`](crate::TraceSettings::ages) wants it, in front of the access's miss; behind [`LINE_BROUGHT`] come, two words each, the line's address,
/// the negated address of the one that goes, when that was used last (0: the way was empty), and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineBrought {
    /// The address of the line that comes.
    pub line: u64,
    /// The address of the line that goes, and when it was used last.
    pub gone: Option<[u64; 2]>,
    /// When that is. The times of a thread only become later; those of a group of accesses that nothing is missed by are in no order.
    pub now: u64,
}

impl LineBrought {
    /// Words of a record.
    pub const WORDS: usize = 9;

    /// Reads a record of [`LINE_BROUGHT`]; nothing if its words are too few. The words behind it, too.
    #[inline]
    #[must_use]
    pub fn read(record: &[u32]) -> Option<(Self, &[u32])> {
        let (record, rest) = record.split_first_chunk::<{ Self::WORDS }>()?;
        let number = |n: usize| operands::joined(record[n], record[n + 1]);
        let gone = (number(5) != 0).then(|| [number(3).wrapping_neg(), number(5)]);
        Some((Self { line: number(1), gone, now: number(7) }, rest))
    }

    /// The words of its record.
    #[must_use]
    pub fn words(self) -> [u32; Self::WORDS] {
        let [gone, time] = self.gone.unwrap_or_default();
        let [line, gone, time, now] = [self.line, gone.wrapping_neg(), time, self.now].map(operands::halves);
        [LINE_BROUGHT, line[0], line[1], gone[0], gone[1], time[0], time[1], now[0], now[1]]
    }
}
