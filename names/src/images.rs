//! Where the variables of mapped files are in a process. Files are read once, whoever maps them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grind_symbols::{Data, Svma};
use grind_types::{MappedFile, Module};

use crate::opened::{OpenObject, Opened};

/// A file with variables: its data objects, under the name by which the kernel shows it.
#[derive(Debug)]
pub struct Image {
    /// The file.
    pub path: std::path::PathBuf,
    /// Its data objects.
    pub data: Data,
}

/// Where one is mapped.
#[derive(Clone, Debug)]
struct Mapped {
    start: u64,
    end: u64,
    /// What is to be taken off an address to get the link-time address.
    bias: u64,
    image: Arc<Image>,
}

/// The images of a process, by address.
#[derive(Clone, Debug, Default)]
pub struct Images(Vec<Mapped>);

impl Images {
    /// Whether an image has any of these addresses.
    #[must_use]
    pub fn any(&self, place: &Range<u64>) -> bool {
        self.0.iter().any(|m| m.start < place.end && place.start < m.end)
    }

    /// The image that has an address, the number of what is there, and where that lies.
    #[must_use]
    pub fn find(&self, addr: u64) -> Option<(&Arc<Image>, usize, Range<u64>)> {
        let n = self.0.partition_point(|m| m.start <= addr).checked_sub(1)?;
        let mapped = self.0.get(n).filter(|m| addr < m.end)?;
        let n = mapped.image.data.at(Svma(addr.wrapping_sub(mapped.bias)))?;
        let (there, _) = mapped.image.data.get(n)?;
        Some((&mapped.image, n, there.start.0.wrapping_add(mapped.bias)..there.end.0.wrapping_add(mapped.bias)))
    }
}

/// A file that has been read.
#[derive(Debug)]
struct Known {
    object: Arc<OpenObject>,
    image: Arc<Image>,
}

/// Reads images, and remembers the files that it has read.
#[derive(Debug)]
pub struct Reader {
    opened: Opened,
    known: HashMap<(PathBuf, Arc<MappedFile>), Known>,
}

impl Reader {
    /// Of what is `opened`.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self { opened, known: HashMap::new() }
    }

    /// Those of which these modules, which are executable, are parts.
    pub fn of(&mut self, modules: &[Module]) -> Images {
        let mut all: Vec<Mapped> = modules.iter().filter_map(|module| self.mapped(module)).collect();
        all.sort_by_key(|m| m.start);
        all.dedup_by_key(|m| m.start);
        Images(all)
    }

    fn mapped(&mut self, module: &Module) -> Option<Mapped> {
        let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) else { return None };
        let Known { object, image } = self.known.entry((path.clone(), file.clone())).or_insert_with(|| {
            let object = self.opened.file(path, file);
            let image = Arc::new(Image { path: path.clone(), data: object.data() });
            Known { object, image }
        });
        let bias = module.start.0.wrapping_sub(object.svma_of_offset(module.offset)?.0);
        let (start, end) = image.data.loaded();
        let (start, end) = (start.0.wrapping_add(bias), end.0.wrapping_add(bias));
        (start < end).then(|| Mapped { start, end, bias, image: image.clone() })
    }
}
