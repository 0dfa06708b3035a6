//! Names and small integers for them.
//!
//! Names are bytes, not text: neither symbol tables nor file names promise UTF-8, and the profile shows them as they
//! are. The one thing changed is what would break a line of the profile: see [`sanitised`].

use std::{collections::HashMap, sync::Arc};

/// A function or file name as the profile shows it: bytes without line breaks and NULs.
pub type Name = Arc<[u8]>;

/// Index of a name in its table of a [`Resolution`](super::Resolution).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

impl NameId {
    /// The name `???`.
    pub const UNKNOWN: NameId = NameId(0);

    /// The position in the table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// `raw` with line breaks and NULs replaced by `?`.
pub fn sanitised(raw: &[u8]) -> Name {
    let bad = |b: &u8| matches!(b, b'\n' | b'\r' | 0);
    if raw.iter().any(bad) { raw.iter().map(|b| if bad(b) { b'?' } else { *b }).collect() } else { Arc::from(raw) }
}

/// Gives equal names equal identifiers.
pub(super) struct Interner {
    names: Vec<Name>,
    ids: HashMap<Name, NameId>,
}

impl Interner {
    pub(super) fn new() -> Interner {
        let mut interner = Interner { names: Vec::new(), ids: HashMap::new() };
        interner.intern(Arc::from(&b"???"[..]));
        interner
    }

    pub(super) fn intern(&mut self, name: Name) -> NameId {
        *self.ids.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            NameId((self.names.len() - 1) as u32)
        })
    }

    pub(super) fn into_names(self) -> Vec<Name> {
        self.names
    }
}
