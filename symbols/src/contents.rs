//! What a file has at link-time addresses, and where symbols of given names are: for whoever knows a program's own tables and code.
//! Nothing is made of it here.

use super::image::u64_at;
use super::{Object, Svma};

/// Bytes of a relocation with an addend.
const RELOCATION: usize = 24;

/// A relocation to an address of the same file.
const RELATIVE: u64 = 8;

impl Object {
    /// Where the symbols of these names are, and their bytes, in the same order.
    #[must_use]
    pub fn symbols_named<const N: usize>(&self, names: [&str; N]) -> [Option<(Svma, u64)>; N] {
        let mut found = [None; N];
        if let Some(image) = &self.image {
            self.each_symbol(image, |_, start, size, name| {
                if let Some(n) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                    found[n].get_or_insert((Svma(start), size));
                }
            });
        }
        found
    }

    /// `n` bytes of the file from an address on, if it has them all.
    #[must_use]
    pub fn bytes(&self, at: Svma, n: u64) -> Option<Vec<u8>> {
        self.image.as_ref()?.bytes_at(at.0, n)
    }

    /// The address that the word at an address is when the file has been loaded, if it is one of the same file.
    #[must_use]
    pub fn pointer(&self, at: Svma) -> Option<Svma> {
        let relocations = self.section_bytes(".rela.dyn").map(|(_, bytes)| bytes).unwrap_or_default();
        let word = |of: &[u8], n: usize| u64_at(of, 8 * n);
        let relocated = relocations.chunks_exact(RELOCATION).find(|r| word(r, 0) == Some(at.0));
        match relocated {
            Some(r) => (word(r, 1)? as u32 as u64 == RELATIVE).then(|| word(r, 2).map(Svma))?,
            None => u64_at(&self.bytes(at, 8)?, 0).filter(|to| *to != 0).map(Svma),
        }
    }

    /// The address of a section, and what is in it.
    #[must_use]
    pub fn section_bytes(&self, name: &str) -> Option<(Svma, Vec<u8>)> {
        let image = self.image.as_ref()?;
        let at = image.section(name)?.address;
        Some((Svma(at), image.data(name).ok()??))
    }

    /// The offset in the file of the byte at an address, if it is part of an executable segment.
    #[must_use]
    pub fn offset_of(&self, at: Svma) -> Option<u64> {
        self.image.as_ref()?.offset_of_svma(at.0)
    }
}
