//! Where the variables of mapped files are in a process, and which structures they are. Files are read once, whoever maps them; types are
//! read when they are asked for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use grind_symbols::{Data, Layout, Pointee, Svma};
use grind_types::mapped_file::Stamp;
use grind_types::{MappedFile, Module};

use crate::opened::{OpenObject, Opened};

/// A file with variables: its data objects, under the name by which the kernel shows it.
#[derive(Debug)]
pub struct Image {
    /// The file.
    pub path: std::path::PathBuf,
    /// Its data objects.
    pub data: Data,
    file: Arc<MappedFile>,
    object: Arc<OpenObject>,
    /// By number: the layouts of variables that have been asked for.
    layouts: Mutex<HashMap<usize, Option<Arc<Layout>>>>,
}

impl Image {
    /// The layout of a variable, or of an element of it, if that is a structure: slow where it has not been asked for before.
    #[must_use]
    pub fn layout(&self, number: usize) -> Option<Arc<Layout>> {
        let (variable, true) = self.data.get(number)? else { return None };
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        let size = variable.end.0.wrapping_sub(variable.start.0);
        let found = || self.object.layout_of_variable(variable.start, size).map(Arc::new);
        layouts.entry(number).or_insert_with(found).clone()
    }
}

/// A place in the code of a file.
#[derive(Clone, Debug)]
pub struct Call {
    image: Arc<Image>,
    at: Svma,
}

impl Call {
    /// The source file and line that it was made from: slow.
    #[must_use]
    pub fn line(&self) -> Option<(PathBuf, u32)> {
        let (file, line) = self.image.object.line_at(self.at)?;
        (line > 0).then(|| (PathBuf::from(OsStr::from_bytes(&file)), line))
    }

    /// What the pointer called `name` leads to here: slow.
    #[must_use]
    pub fn pointee(&self, name: &[u8]) -> Option<Pointee> {
        self.image.object.pointee(self.at, name)
    }

    /// Whether a source may be what the file was made from: nobody has written to it since.
    #[must_use]
    pub fn is_made_from(&self, source: &Stamp) -> bool {
        self.image.file.stamp().is_some_and(|own| !source.is_written_after(&own))
    }
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

/// The images of a process.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// By address.
    mapped: Vec<Mapped>,
    /// By number: modules of files, where they lie, and what is to be taken off an address there.
    modules: Vec<(u32, Range<u64>, u64, Arc<Image>)>,
}

impl Images {
    /// Whether an image has any of these addresses.
    #[must_use]
    pub fn any(&self, place: &Range<u64>) -> bool {
        self.mapped.iter().any(|m| m.start < place.end && place.start < m.end)
    }

    /// The code at an address of the module of this number, if that is mapped there from a file.
    #[must_use]
    pub fn call(&self, module: u32, addr: u64) -> Option<Call> {
        let n = self.modules.binary_search_by_key(&module, |(number, ..)| *number).ok()?;
        let (_, place, bias, image) = &self.modules[n];
        place.contains(&addr).then(|| Call { image: image.clone(), at: Svma(addr.wrapping_sub(*bias)) })
    }

    /// The image that has an address, the number of what is there, and where that lies.
    #[must_use]
    pub fn find(&self, addr: u64) -> Option<(&Arc<Image>, usize, Range<u64>)> {
        let n = self.mapped.partition_point(|m| m.start <= addr).checked_sub(1)?;
        let mapped = self.mapped.get(n).filter(|m| addr < m.end)?;
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
        let all: Vec<(u32, &Module, Mapped)> =
            (0..).zip(modules).filter_map(|(n, module)| Some((n, module, self.mapped(module)?))).collect();
        let place = |module: &Module| module.start.0..module.end.0;
        let modules = all.iter().map(|(n, module, m)| (*n, place(module), m.bias, m.image.clone())).collect();
        let mut mapped: Vec<Mapped> = all.into_iter().map(|(.., mapped)| mapped).collect();
        mapped.sort_by_key(|m| m.start);
        mapped.dedup_by_key(|m| m.start);
        Images { mapped, modules }
    }

    fn mapped(&mut self, module: &Module) -> Option<Mapped> {
        let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) else { return None };
        let Known { object, image } = self.known.entry((path.clone(), file.clone())).or_insert_with(|| {
            let object = self.opened.file(path, file);
            let (path, data, file, layouts) = (path.clone(), object.data(), file.clone(), Mutex::default());
            let image = Arc::new(Image { path, data, file, object: object.clone(), layouts });
            Known { object, image }
        });
        let bias = module.start.0.wrapping_sub(object.svma_of_offset(module.offset)?.0);
        let (start, end) = image.data.loaded();
        let (start, end) = (start.0.wrapping_add(bias), end.0.wrapping_add(bias));
        (start < end).then(|| Mapped { start, end, bias, image: image.clone() })
    }
}
