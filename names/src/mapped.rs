//! What is known of the symbols of mapped files: the files as the engine has opened them, for [`grind_symbols`] to read.
//!
//! Neither of the two crates knows the other; here they meet, and nothing else happens here.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use grind_symbols::{Object, OpenFile, Options};
use grind_types::MappedFile;

/// A file that is held open as long as anybody needs it.
#[derive(Debug)]
struct Held(Arc<MappedFile>);

impl OpenFile for Held {
    fn file(&self) -> Result<(&File, u64), io::ErrorKind> {
        self.0.file()
    }

    fn is_unchanged(&self) -> bool {
        self.0.is_unchanged()
    }
}

/// The ELF file that is, or was, mapped under the name `path`: see [`Object::mapped`].
#[must_use]
pub fn object(path: &Path, file: &Arc<MappedFile>, options: &Options) -> Object {
    Object::mapped(path, Box::new(Held(file.clone())), options)
}
