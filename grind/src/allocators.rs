//! Allocators of memory, by the names of their functions: those of C, operators `new` and `delete` of C++, and those that the user names;
//! and by what else than its return a call of one may be left.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use cg_cli::glob::Pattern;
use grind_names::opened::Opened;
use grind_symbols::demangle;
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
        b"longjmp"
        | b"_longjmp"
        | b"siglongjmp"
        | b"__longjmp_chk"
        | b"__cxa_throw"
        | b"__cxa_rethrow"
        | b"_Unwind_RaiseException"
        | b"_Unwind_ForcedUnwind" => Allocator::Leave,
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

/// An allocator that the user names (`--alloc-fn=NAME[,SIZE-ARG[,COUNT-ARG]]`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocFn {
    text: OsString,
    name: Pattern,
    allocator: Allocator,
}

impl AllocFn {
    /// What `text` says. Commas within parentheses or angle brackets are part of the name.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn parse(text: &OsStr) -> Result<Self, String> {
        let mut parts = vec![Vec::new()];
        let mut depth = 0_i32;
        for &byte in text.as_bytes() {
            match byte {
                b'(' | b'<' => depth += 1,
                b')' | b'>' => depth -= 1,
                b',' if depth <= 0 => {
                    parts.push(Vec::new());
                    continue;
                }
                _ => {}
            }
            parts.last_mut().into_iter().for_each(|part| part.push(byte));
        }
        let number = |part: &[u8]| {
            let n = str::from_utf8(part).ok().and_then(|n| n.parse::<u8>().ok());
            n.filter(|n| (1..=Allocator::ARGUMENTS).contains(n)).map(|n| n - 1).ok_or_else(|| {
                let part = String::from_utf8_lossy(part);
                format!("'{part}' is no argument's number: they are 1 to {}", Allocator::ARGUMENTS)
            })
        };
        let (name, size, count) = match parts.as_slice() {
            [name] => (name, 0, None),
            [name, size] => (name, number(size)?, None),
            [name, size, count] => (name, number(size)?, Some(number(count)?)),
            _ => return Err("it is NAME, NAME,SIZE-ARG or NAME,SIZE-ARG,COUNT-ARG".to_owned()),
        };
        if name.is_empty() {
            return Err("there is no name".to_owned());
        }
        let name = OsStr::from_bytes(name);
        let allocator = Allocator::Named { size, count };
        Ok(Self { text: name.to_owned(), name: Pattern::new(name), allocator })
    }
}

/// Where allocators begin in a file, and what they do.
type Offsets = Vec<(u64, Allocator)>;

/// Finds the allocators of modules, and remembers the files that it has read.
#[derive(Debug)]
pub struct Watchers {
    opened: Opened,
    /// Those that the user names, and whether a function has that name.
    named: Vec<(AllocFn, Cell<bool>)>,
    known: HashMap<(PathBuf, Arc<MappedFile>), Offsets>,
    said: bool,
}

impl Watchers {
    /// Of what is `opened`; `named` are allocators, too.
    #[must_use]
    pub fn new(opened: Opened, named: Vec<AllocFn>) -> Self {
        let named = named.into_iter().map(|named| (named, Cell::new(false))).collect();
        Self { opened, named, known: HashMap::new(), said: false }
    }

    /// Whether no module had one that hands out blocks; says so once.
    pub fn none(&mut self) -> bool {
        let none = !self.known.values().flatten().any(|(_, allocator)| allocator.hands_out());
        none && !std::mem::replace(&mut self.said, true)
    }

    /// The names that the user gives which no function has, each of them once.
    pub fn unmet(&mut self) -> Vec<OsString> {
        let unmet = self.named.iter().filter(|(_, met)| !met.replace(true));
        unmet.map(|(named, _)| named.text.clone()).collect()
    }

    /// The allocators in `module`, as addresses of the program, in ascending order.
    pub fn of(&mut self, module: &Module) -> Vec<(u64, Allocator)> {
        let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) else { return Vec::new() };
        let (opened, named) = (&self.opened, &self.named);
        let what = |name: &[u8]| {
            if named.is_empty() {
                return allocator(name);
            }
            let shown = opened.options().demangle.then(|| demangle(name)).flatten();
            let shown = OsStr::from_bytes(shown.as_deref().unwrap_or(name));
            let fits = |(of, met): &&(AllocFn, Cell<bool>)| {
                of.name.matches(shown) && {
                    met.set(true);
                    true
                }
            };
            named.iter().find(fits).map(|(of, _)| of.allocator).or_else(|| allocator(name))
        };
        let read = || opened.file(path, file).functions_named(what);
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
    fn allocators_of_the_user_have_a_name_and_perhaps_arguments() {
        let parse = |text: &str| AllocFn::parse(OsStr::new(text));
        let of = |text: &str| parse(text).map(|of| (of.text.into_string().expect("text"), of.allocator));
        let named = |size, count| Allocator::Named { size, count };
        assert_eq!(of("xmalloc"), Ok(("xmalloc".into(), named(0, None))));
        assert_eq!(of("g_malloc_n,2,1"), Ok(("g_malloc_n".into(), named(1, Some(0)))));
        assert_eq!(of("pool<int, 4>::take(int, long),2"), Ok(("pool<int, 4>::take(int, long)".into(), named(1, None))));
        assert!(parse("x*loc").expect("one").name.matches(OsStr::new("xmalloc")));
        for wrong in ["", ",1", "f,0", "f,4", "f,x", "f,", "f,1,2,3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

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
