//! Where functions and sections of mapped code begin and end: what the engine must know to tell a jump that may be a call
//! from one that cannot.
//!
//! A boundary too many costs time, one too few a call. So whatever symbol table or section has a say counts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use grind_names::mapped;
use grind_symbols::{Object, Options};
use grind_types::{MappedFile, Module};

/// Reads boundaries, and remembers the files that it has read.
#[derive(Debug)]
pub struct Boundaries {
    names: Options,
    known: HashMap<(PathBuf, Arc<MappedFile>), Vec<u64>>,
}

impl Boundaries {
    /// `names` says where symbols are looked for.
    #[must_use]
    pub fn new(names: Options) -> Self {
        Self { names, known: HashMap::new() }
    }

    /// The boundaries in `module`, as addresses of the program, in ascending order.
    pub fn of(&mut self, module: &Module) -> Vec<u64> {
        let image;
        let offsets = match (&module.image, &module.path, &module.file) {
            (Some(bytes), ..) => {
                image = Object::from_image(bytes.to_vec(), "vdso", &self.names).boundaries();
                &image
            }
            (None, Some(path), Some(file)) => {
                let read = || mapped::object(path, file, &self.names).boundaries();
                self.known.entry((path.clone(), file.clone())).or_insert_with(read)
            }
            _ => return Vec::new(),
        };
        let size = module.end.0.saturating_sub(module.start.0);
        let within = |offset: &u64| offset.checked_sub(module.offset).filter(|at| *at < size);
        offsets.iter().filter_map(within).map(|at| module.start.0 + at).collect()
    }
}
