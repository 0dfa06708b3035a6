//! Which functions were inlined at an instruction, by the debug information of its object.
//!
//! An instruction belongs to one chain of inlined functions, so what instructions cost splits among chains exactly.

use std::rc::Rc;

use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection, ReadRef};

type Slice = EndianRcSlice<LittleEndian>;

/// Debug information that is larger stays unread.
const MOST: u64 = 1 << 30;

/// A function that an address belongs to, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// The inlined functions of an object.
pub(crate) struct Inlines {
    context: Context<Slice>,
}

impl std::fmt::Debug for Inlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlines").finish_non_exhaustive()
    }
}

impl Inlines {
    /// Reads the debug information of an object, if it has any that can be read.
    pub(crate) fn of<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<Self> {
        let debug = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug_")));
        let size = debug.fold(0_u64, |sum, section| sum.saturating_add(section.size()));
        if size == 0 || size > MOST {
            return None;
        }
        let load = |id: SectionId| -> Result<Slice, gimli::Error> {
            let bytes = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
            Ok(Slice::new(Rc::from(bytes.as_deref().unwrap_or_default()), LittleEndian))
        };
        let dwarf = Dwarf::load(load).ok()?;
        Context::from_dwarf(dwarf).ok().map(|context| Self { context })
    }

    /// The functions that an address belongs to, innermost first, with where each is left; the last one is not inlined.
    pub(crate) fn frames(&self, addr: u64) -> Vec<Frame> {
        let Ok(mut frames) = self.context.find_frames(addr).skip_all_loads() else { return Vec::new() };
        let mut found = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            let name = name.map_or_else(|| "???".to_owned(), |name| crate::names::demangled(&name));
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file).unwrap_or("???");
            let line = location.and_then(|location| location.line).unwrap_or(0);
            found.push(Frame { name: clean(&name), file: clean(file), line });
        }
        found
    }

    /// The functions that were inlined at an address, outermost first, each with the file and line of its call, as
    /// `NAME TAB FILE:LINE TAB NAME …`; empty if there are none.
    pub(crate) fn chain(&self, addr: u64) -> String {
        // The place of a call is that of the frame around it; the outermost frame is the function itself.
        let called = |pair: &[Frame]| format!("{}\t{}:{}", pair[0].name, pair[1].file, pair[1].line);
        let parts: Vec<String> = self.frames(addr).windows(2).rev().map(called).collect();
        parts.join("\t")
    }
}

/// Without what separates chains.
fn clean(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}
