//! What grind reads and writes of slots again and again, mapped: slot words and, where calls are followed, frames. A look there
//! is no system call then. Only of the first threads; of others, all goes through the file. Both show the same memory, so
//! nothing depends on which way is taken.

use std::cell::RefCell;
use std::fs::File;
use std::rc::Rc;

use grind_layout as layout;
use grind_layout::shared_memory::SharedMemory;
use grind_types::hash::Map;

/// Parts that are mapped at most, since a process may only have some ten thousands of mappings.
pub(super) const MOST: usize = 1 << 12;

/// Where parts of a slot that are used much begin, and how many bytes they have.
const PARTS: [(u64, u64); 2] = [
    (layout::HEADER, layout::HEADER_SIZE),
    (layout::FRAMES, layout::ACTIVE + 8 * layout::MOST_FUNCTIONS as u64 - layout::FRAMES),
];

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Mapped(RefCell<Map<u64, Rc<SharedMemory>>>);

impl Mapped {
    /// Where the `len` bytes from `offset` of slot `id` on are mapped, and how far behind its beginning.
    pub(super) fn part(&self, file: &File, id: u32, offset: u64, len: usize) -> Option<(Rc<SharedMemory>, usize)> {
        let inside = |(start, size): &(u64, u64)| offset >= *start && offset + len as u64 <= start + size;
        let part = PARTS.iter().position(inside)?;
        let (start, size) = PARTS[part];
        let key = u64::from(id) * PARTS.len() as u64 + part as u64;
        let mut parts = self.0.borrow_mut();
        let memory = match parts.get(&key) {
            Some(memory) => memory.clone(),
            None => {
                if parts.len() >= MOST {
                    return None;
                }
                let at = u64::from(id) * layout::SLOT_SIZE + start;
                let memory = Rc::new(SharedMemory::map(file, at, size as usize).ok()?);
                parts.insert(key, memory.clone());
                memory
            }
        };
        Some((memory, (offset - start) as usize))
    }
}
