//! The counts of a row of a report, one for each event: a profile's own row where there is just one, else a sum.
//!
//! Most functions have one file and, where lines do not matter, one row, so most counts of a report are never copied.

/// Counts that somebody else keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    Narrow(&'a [i64]),
    Wide(&'a [i128]),
}

impl View<'_> {
    /// The count of an event.
    #[inline]
    pub(crate) fn of(self, event: usize) -> i128 {
        match self {
            Self::Narrow(counts) => i128::from(counts[event]),
            Self::Wide(counts) => counts[event],
        }
    }

    /// All counts.
    pub(crate) fn iter(self) -> impl Iterator<Item = i128> {
        (0..self.len()).map(move |event| self.of(event))
    }

    fn len(self) -> usize {
        match self {
            Self::Narrow(counts) => counts.len(),
            Self::Wide(counts) => counts.len(),
        }
    }
}

impl PartialEq for View<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Narrow(a), Self::Narrow(b)) => a == b,
            (Self::Wide(a), Self::Wide(b)) => a == b,
            (a, b) => a.iter().eq(b.iter()),
        }
    }
}

impl<'a> From<&'a [i128]> for View<'a> {
    fn from(counts: &'a [i128]) -> Self {
        Self::Wide(counts)
    }
}

impl<'a> From<&'a Vec<i128>> for View<'a> {
    fn from(counts: &'a Vec<i128>) -> Self {
        Self::Wide(counts)
    }
}

impl<'a> From<&'a Counts<'_>> for View<'a> {
    fn from(counts: &'a Counts<'_>) -> Self {
        match counts {
            Counts::Seen(view) => *view,
            Counts::Own(counts) => Self::Wide(counts),
        }
    }
}

/// Counts that may be somebody else's.
#[derive(Debug)]
pub(crate) enum Counts<'a> {
    Seen(View<'a>),
    Own(Vec<i128>),
}

impl Counts<'_> {
    /// The counts.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        self.into()
    }

    /// The counts, to be changed.
    pub(crate) fn own(&mut self) -> &mut Vec<i128> {
        if let Self::Seen(view) = self {
            *self = Self::Own(view.iter().collect());
        }
        match self {
            Self::Own(counts) => counts,
            Self::Seen(_) => unreachable!("made our own above"),
        }
    }

    /// Adds counts, event by event.
    pub(crate) fn add(&mut self, counts: View<'_>) -> anyhow::Result<()> {
        add(self.own(), counts)
    }
}

/// Adds counts to a sum, event by event.
pub(crate) fn add<'a>(sum: &mut [i128], counts: impl Into<View<'a>>) -> anyhow::Result<()> {
    for (value, count) in sum.iter_mut().zip(counts.into().iter()) {
        *value = cg_format::count::sum(*value, count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_compared_and_added_whoever_keeps_them() {
        let (narrow, wide) = ([1_i64, -2, 3], [1_i128, -2, 3]);
        let mut counts = Counts::Seen(View::Narrow(&narrow));
        assert!(counts.view() == View::Wide(&wide) && counts.view() == View::Narrow(&narrow));
        counts.add(View::Wide(&wide)).unwrap();
        assert!(counts.view() != View::Narrow(&narrow));
        assert_eq!(counts.view().iter().collect::<Vec<_>>(), [2, -4, 6]);
        assert_eq!(counts.view().of(1), -4);
        assert_eq!(narrow, [1, -2, 3]);
    }
}
