//! Where functions and sections of mapped code begin and end: what the engine must know to tell a jump that may be a call
//! from one that cannot.
//!
//! A boundary too many costs time, one too few a call. So whatever symbol table or section has a say counts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use grind_types::{MappedFile, Module};

use crate::opened::Opened;

/// Reads boundaries, and remembers the files that it has read.
#[derive(Debug)]
pub struct Boundaries {
    opened: Opened,
    known: HashMap<(PathBuf, Arc<MappedFile>), Vec<u64>>,
}

impl Boundaries {
    /// Of what is `opened`.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self { opened, known: HashMap::new() }
    }

    /// The boundaries in `module`, as addresses of the program, in ascending order.
    pub fn of(&mut self, module: &Module) -> Vec<u64> {
        let image;
        let offsets = match (&module.image, &module.path, &module.file) {
            (Some(bytes), ..) => {
                image = self.opened.image(bytes).boundaries();
                &image
            }
            (None, Some(path), Some(file)) => {
                let read = || self.opened.file(path, file).boundaries();
                self.known.entry((path.clone(), file.clone())).or_insert_with(read)
            }
            _ => return Vec::new(),
        };
        let size = module.end.0.saturating_sub(module.start.0);
        let within = |offset: &u64| offset.checked_sub(module.offset).filter(|at| *at < size);
        offsets.iter().filter_map(within).map(|at| module.start.0 + at).collect()
    }
}
