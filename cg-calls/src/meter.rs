//! Turns running totals into totals of what was collected: collection may be switched off for a while, and a signal handler
//! has a meter of its own, which stands still for the code that it interrupted. Totals may also stand still by themselves while
//! collection is off; then nothing is left to do for that but to know it.
//!
//! Invariant: readings never decrease while the totals do not.

/// Reads running totals, without the stretches that do not count.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    collecting: bool,
    /// Totals stand still while collection is off.
    gated: bool,
    /// What the totals were ahead of the reading when collection was last switched on.
    ahead: Vec<u64>,
    /// The reading while collection is off.
    frozen: Vec<u64>,
}

impl Meter {
    /// A meter that reads zero at `now`.
    pub(crate) fn new(now: &[u64], collecting: bool, gated: bool) -> Meter {
        Meter { collecting, gated, ahead: now.to_vec(), frozen: vec![0; now.len()] }
    }

    /// Whether the reading follows the totals.
    #[inline]
    fn follows(&self) -> bool {
        self.collecting || self.gated
    }

    /// The reading of the `i`th total.
    #[inline]
    pub(crate) fn read(&self, now: &[u64], i: usize) -> u64 {
        if self.follows() { now[i].wrapping_sub(self.ahead[i]) } else { self.frozen[i] }
    }

    /// All readings.
    pub(crate) fn read_all(&self, now: &[u64]) -> Vec<u64> {
        (0..now.len()).map(|i| self.read(now, i)).collect()
    }

    /// Writes all readings.
    #[inline]
    pub(crate) fn read_into(&self, now: &[u64], readings: &mut [u64]) {
        if !self.follows() {
            readings.copy_from_slice(&self.frozen);
        } else {
            for (reading, (now, ahead)) in readings.iter_mut().zip(now.iter().zip(&self.ahead)) {
                *reading = now.wrapping_sub(*ahead);
            }
        }
    }

    /// Adds to each sum what the reading grew by since it was `since`.
    #[inline]
    pub(crate) fn add_since(&self, now: &[u64], since: &[u64], sums: &mut [u64]) {
        if !self.follows() {
            for (sum, (frozen, since)) in sums.iter_mut().zip(self.frozen.iter().zip(since)) {
                *sum += frozen - since;
            }
        } else if let ([now], [ahead], [since], [sum]) = (now, &self.ahead[..], since, &mut *sums) {
            *sum += now.wrapping_sub(*ahead) - since;
        } else {
            let readings = now.iter().zip(&self.ahead).map(|(now, ahead)| now.wrapping_sub(*ahead));
            for (sum, (reading, since)) in sums.iter_mut().zip(readings.zip(since)) {
                *sum += reading - since;
            }
        }
    }

    /// The same for those whose `mask` is all ones; it is zero for the others.
    #[inline]
    pub(crate) fn add_some_since(&self, now: &[u64], since: &[u64], mask: &[u64], sums: &mut [u64]) {
        let all = sums.iter_mut().zip(since.iter().zip(mask));
        if self.follows() {
            for ((sum, (since, mask)), (now, ahead)) in all.zip(now.iter().zip(&self.ahead)) {
                *sum = sum.wrapping_add(now.wrapping_sub(*ahead).wrapping_sub(*since) & mask);
            }
        } else {
            for ((sum, (since, mask)), frozen) in all.zip(&self.frozen) {
                *sum = sum.wrapping_add(frozen.wrapping_sub(*since) & mask);
            }
        }
    }

    /// How far totals are ahead of the reading, if that follows them.
    #[inline]
    pub(crate) fn ahead(&self) -> Option<&[u64]> {
        self.follows().then_some(&self.ahead)
    }

    /// Sets totals to what they are when they read `reading`, while collecting.
    pub(crate) fn totals_of(&self, reading: &[u64], now: &mut [u64]) {
        for (now, (reading, ahead)) in now.iter_mut().zip(reading.iter().zip(&self.ahead)) {
            *now = reading.wrapping_add(*ahead);
        }
    }

    pub(crate) fn collecting(&self) -> bool {
        self.collecting
    }

    /// Switches collection on or off at `now`; the reading stays the same.
    pub(crate) fn toggle(&mut self, now: &[u64]) {
        if self.gated {
            self.flip();
            return;
        }
        let reading = self.read_all(now);
        self.collecting = !self.collecting;
        self.resume(now, reading);
    }

    /// The same where totals stand still while collection is off, and need not be known.
    pub(crate) fn flip(&mut self) {
        debug_assert!(self.gated, "only then the reading stays the same");
        self.collecting = !self.collecting;
    }

    /// From `now` on totals stand still by themselves while collection is off, or do not; the reading stays the same.
    pub(crate) fn gate(&mut self, gated: bool, now: &[u64]) {
        let reading = self.read_all(now);
        self.gated = gated;
        self.resume(now, reading);
    }

    /// Goes on from `reading` at `now`, whatever happened in between.
    pub(crate) fn resume(&mut self, now: &[u64], reading: Vec<u64>) {
        for (ahead, (now, reading)) in self.ahead.iter_mut().zip(now.iter().zip(&reading)) {
            *ahead = now.wrapping_sub(*reading);
        }
        self.frozen = reading;
    }
}
