//! Allocators of memory, by the names of their functions: those of C, and operators `new` and `delete` of C++.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use grind_names::mapped;
use grind_symbols::Options;
use grind_trace::objects::Allocator;
use grind_types::{MappedFile, Module};

/// What the function of this name does with blocks of memory, if it is one of the allocators that are known.
#[must_use]
pub fn allocator(name: &[u8]) -> Option<Allocator> {
    Some(match name {
        b"malloc" | b"valloc" | b"pvalloc" => Allocator::Allocate,
        b"calloc" => Allocator::AllocateArray,
        b"realloc" => Allocator::Reallocate,
        b"reallocarray" => Allocator::ReallocateArray,
        b"memalign" | b"aligned_alloc" => Allocator::AllocateAligned,
        b"posix_memalign" => Allocator::AllocateTo,
        b"free" | b"cfree" => Allocator::Free,
        // operator new(unsigned long), operator new[], with whatever is behind the size.
        _ if name.starts_with(b"_Znwm") || name.starts_with(b"_Znam") => match &name[5..] {
            b"" | b"RKSt9nothrow_t" | b"St11align_val_t" | b"St11align_val_tRKSt9nothrow_t" => Allocator::Allocate,
            _ => return None,
        },
        // operator delete(void*), operator delete[], with whatever is behind the address.
        _ if name.starts_with(b"_ZdlPv") || name.starts_with(b"_ZdaPv") => match &name[6..] {
            b""
            | b"m"
            | b"RKSt9nothrow_t"
            | b"St11align_val_t"
            | b"mSt11align_val_t"
            | b"St11align_val_tRKSt9nothrow_t" => Allocator::Free,
            _ => return None,
        },
        _ => return None,
    })
}

/// Where allocators begin in a file, and what they do.
type Offsets = Vec<(u64, Allocator)>;

/// Finds the allocators of modules, and remembers the files that it has read.
#[derive(Debug)]
pub struct Watchers {
    names: Options,
    known: HashMap<(PathBuf, Arc<MappedFile>), Offsets>,
    said: bool,
}

impl Watchers {
    /// `names` says where symbols are looked for.
    #[must_use]
    pub fn new(names: Options) -> Self {
        Self { names, known: HashMap::new(), said: false }
    }

    /// Whether no module had one that hands out blocks; says so once.
    pub fn none(&mut self) -> bool {
        let none = !self.known.values().flatten().any(|(_, allocator)| *allocator != Allocator::Free);
        none && !std::mem::replace(&mut self.said, true)
    }

    /// The allocators in `module`, as addresses of the program, in ascending order.
    pub fn of(&mut self, module: &Module) -> Vec<(u64, Allocator)> {
        let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) else { return Vec::new() };
        let read = || mapped::object(path, file, &self.names).functions_named(allocator);
        let offsets = self.known.entry((path.clone(), file.clone())).or_insert_with(read);
        let size = module.end.0.saturating_sub(module.start.0);
        let within = |(offset, what): &(u64, Allocator)| {
            let at = offset.checked_sub(module.offset).filter(|at| *at < size)?;
            Some((module.start.0 + at, *what))
        };
        offsets.iter().filter_map(within).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_known_by_their_arguments() {
        for name in ["_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamSt11align_val_t"] {
            assert_eq!(allocator(name.as_bytes()), Some(Allocator::Allocate), "{name}");
        }
        for name in ["_ZdlPv", "_ZdaPvm", "_ZdlPvmSt11align_val_t", "free"] {
            assert_eq!(allocator(name.as_bytes()), Some(Allocator::Free), "{name}");
        }
        // At a place that the caller gives.
        for name in ["_ZnwmPv", "_ZdlPvS_", "mallocx", "xmalloc"] {
            assert_eq!(allocator(name.as_bytes()), None, "{name}");
        }
    }
}
