//! Faults on purpose, for tests of what becomes of a panic: `GRIND_FAULT=PLACE[:N]` makes the `N`th passage of a place panic. Only
//! in builds with debug assertions; elsewhere nothing of it is left.

/// Panics if this is the place and the time for it.
#[inline]
#[allow(clippy::missing_panics_doc, reason = "that is what it is for")]
pub fn point(place: &str) {
    #[cfg(debug_assertions)]
    asked::point(place);
    #[cfg(not(debug_assertions))]
    let _ = place;
}

#[cfg(debug_assertions)]
mod asked {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    pub(super) fn point(place: &str) {
        let wanted = WANTED.get_or_init(|| {
            let text = std::env::var("GRIND_FAULT").ok()?;
            let (place, n) = text.split_once(':').unwrap_or((&text, "1"));
            Some((place.to_owned(), n.parse().ok()?))
        });
        if let Some((wanted, n)) = wanted
            && wanted == place
            && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *n
        {
            panic!("a fault was asked for in `{place}`");
        }
    }
}
