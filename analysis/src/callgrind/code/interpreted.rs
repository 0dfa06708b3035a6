//! Functions of a program that is interpreted: they have no code of their own, so each has an address that no program has, by which the
//! model of the call graph knows it. Their names come with what the interpreter calls them by.
//!
//! Invariant: what has the same name, file and line is one function, however often the interpreter has made it.

use std::collections::HashMap;

use cg_calls::{FunctionId, SiteId};
use grind_symbols::sanitised;
use grind_types::frames::FrameFunction;

use super::{ADDRESS_BITS, Catalogue, Known, KnownFunction};

/// Their addresses begin with this, in the bits that no address of a program has; code that was replaced is told by smaller numbers.
const PREFIX: u64 = 0xfffe << ADDRESS_BITS;

/// From one of them to the next.
const STEP: u64 = 16;

/// How such an address is shown.
pub(super) fn shown(addr: u64) -> u64 {
    if addr & !((1 << ADDRESS_BITS) - 1) == PREFIX { addr & !PREFIX } else { addr }
}

/// What is known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Interpreted {
    /// The object that they are in, once there is one.
    object: Option<u32>,
    /// In the order of their addresses.
    functions: Vec<FrameFunction>,
    /// Their addresses, and the sites by which they call the interpreter.
    known: HashMap<FrameFunction, (u64, SiteId)>,
}

impl Interpreted {
    /// The object of an address, if it is that of such a function.
    pub(super) fn object(&self, addr: u64) -> Option<u32> {
        self.object.filter(|_| addr & !((1 << ADDRESS_BITS) - 1) == PREFIX)
    }

    /// The function at an address, if it is one of those.
    pub(super) fn function(&self, addr: u64) -> Option<&FrameFunction> {
        self.object(addr)?;
        self.functions.get(((addr & !PREFIX) / STEP) as usize)
    }
}

impl Catalogue {
    /// The address of a function that is interpreted, and the site by which it calls the interpreter.
    pub fn interpreted(&mut self, function: FrameFunction) -> (u64, SiteId) {
        if let Some(known) = self.interpreted.known.get(&function) {
            return *known;
        }
        let addr = PREFIX + STEP * self.interpreted.functions.len() as u64;
        let objects = &mut self.objects;
        let object = *self.interpreted.object.get_or_insert_with(|| {
            let language = self.settings.frames.map_or("", |language| language.name());
            objects.push(Known { name: language.as_bytes().to_vec(), object: None });
            (objects.len() - 1) as u32
        });
        let mut name = function.name.clone();
        name.extend_from_slice(format!(":{}", function.line).as_bytes());
        let id = FunctionId(u32::try_from(self.functions.len()).expect("fewer than 2^32 functions"));
        self.functions.push(KnownFunction { object, start: addr, name: sanitised(&name), linkage: false });
        self.by_start.insert((object, addr), id);
        self.interpreted.functions.push(function.clone());
        // It ends where nothing begins: no call returns there.
        let within = self.add_site(addr, addr + 1, addr);
        self.interpreted.known.insert(function, (addr, within));
        (addr, within)
    }

    /// Whether a site is in code that an interpreter has made to call functions by (`-X perf` of CPython), which has their names.
    pub fn is_trampoline(&self, site: SiteId) -> bool {
        self.names_trampoline(&self.functions[self.sites[site.0 as usize].place.function.0 as usize])
    }

    /// Whether a function is such code.
    pub(super) fn names_trampoline(&self, known: &KnownFunction) -> bool {
        self.objects[known.object as usize].object.is_none() && known.name.starts_with(b"py::")
    }
}

#[cfg(test)]
mod tests {
    use cg_calls::Code as _;

    use grind_names::opened::Opened;

    use super::*;
    use crate::callgrind::rows::Program as _;
    use crate::callgrind::settings::{Change, Settings};
    use cg_calls::Profile;
    use grind_names::frames::Language;

    #[test]
    fn functions_are_known_by_name_file_and_line() {
        let mut settings = Settings::default();
        settings.frames = Some(Language::Python);
        settings.add_rule("C.f".as_ref(), Change::Skip);
        let mut catalogue = Catalogue::new(settings, Opened::new(grind_symbols::Options::default()));
        let function = |name: &str, line| FrameFunction { name: name.into(), file: b"/x/a.py".to_vec(), line };
        let (f, within) = catalogue.interpreted(function("C.f", 7));
        let (g, _) = catalogue.interpreted(function("C.f", 9));
        assert_eq!(catalogue.interpreted(function("C.f", 7)), (f, within));
        assert_ne!(f, g);
        assert_eq!(catalogue.site(within).place, catalogue.place(f));
        assert!(!catalogue.is_trampoline(within));
        let id = catalogue.place(g).function;
        assert!(catalogue.function(id).skip, "by its name without the line");
        let resolved = catalogue.resolve(&Profile::default(), &[]);
        let about = resolved.function(id);
        assert_eq!((about.name, about.file, about.object), (&b"C.f:9"[..], &b"/x/a.py"[..], &b"Python"[..]));
    }
}
