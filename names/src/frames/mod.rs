//! Functions of interpreted programs: where an interpreter's code says which of them runs, and what they are called. Each interpreter
//! is a module of its own, which knows its versions; what is recorded, and what profiles are made of it, is not known here.
//!
//! Invariants: an interpreter that is not known through and through has no hooks at all, and it is said why; what is read of the
//! program's memory may be anything.

mod cpython;
mod stores;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grind_symbols::Object;
use grind_types::frames::{FrameFunction, FrameHook, ReadMemory};
use grind_types::{MappedFile, Module};

use crate::opened::Opened;

/// Interpreters that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// CPython.
    Python,
}

impl Language {
    /// Its name in the option that asks for it.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }

    /// Its name, as it is shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
        }
    }

    /// The interpreter that is known.
    #[must_use]
    pub fn interpreter(self) -> &'static str {
        match self {
            Self::Python => "CPython",
        }
    }

    /// What a file of its own says of it, by the name that it has; nothing if it is none.
    fn find(self, path: &Path, object: &Object) -> Option<Result<Box<dyn Interpreter>, Refusal>> {
        match self {
            Self::Python => {
                let found = cpython::find(path, object)?;
                Some(found.map(|found| Box::new(found) as Box<dyn Interpreter>))
            }
        }
    }
}

/// An interpreter of one file.
trait Interpreter: fmt::Debug {
    /// Where its hooks are, by offsets in the file, in ascending order.
    fn hooks(&self) -> &[(u64, FrameHook)];
    /// Why it is not shown in a process whose environment is this, as the kernel has it; nothing if it is.
    fn refuses(&self, environment: &[u8]) -> Option<Refusal>;
    /// What the code object at an address is, if it is a function.
    fn function(&self, memory: ReadMemory<'_>, code: u64) -> Option<FrameFunction>;
}

/// Why functions of an interpreter are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The file does not say which version it is.
    NoVersion,
    /// It is a version that is not known: major and minor number.
    Version(u8, u8),
    /// Something that must be in its symbol table is not.
    NoSymbol(&'static str),
    /// Its code is not as that of this version is known to be.
    OtherCode,
    /// Each instruction of the interpreted program is carried out by a function of its own, which leads to the next one.
    Chained,
    /// It makes machine code while it runs, as this variable of the environment says.
    Translates(&'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion => write!(f, "it does not say which version it is"),
            Self::Version(major, minor) => write!(f, "version {major}.{minor} is not known (3.8 to 3.14 are)"),
            Self::NoSymbol(name) => write!(f, "it has no symbol {name}"),
            Self::OtherCode => {
                write!(f, "where it changes from one function to another is not to be found in its code")
            }
            Self::Chained => write!(f, "its evaluation function is a chain of functions (it is built with tail calls)"),
            Self::Translates(variable) => {
                write!(
                    f,
                    "it is to make machine code of functions, in which they call one another unseen (leave out {variable})"
                )
            }
        }
    }
}

/// The interpreter of a file, if it is one.
type Known = Option<Result<Box<dyn Interpreter>, Refusal>>;

/// Finds the interpreters of modules, and remembers the files that it has read.
#[derive(Debug)]
pub struct Frames {
    language: Language,
    opened: Opened,
    known: HashMap<(PathBuf, Arc<MappedFile>), Known>,
    /// Those that have been refused and nobody has been told of.
    refused: Vec<(PathBuf, Refusal)>,
    /// Those that have been refused for what a process is to do.
    told: Vec<(PathBuf, Refusal)>,
}

impl Frames {
    /// Of what is `opened`.
    #[must_use]
    pub fn new(language: Language, opened: Opened) -> Self {
        Self { language, opened, known: HashMap::new(), refused: Vec::new(), told: Vec::new() }
    }

    /// Whose functions are looked for.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Whether no interpreter has been found at all, known or not.
    #[must_use]
    pub fn none(&self) -> bool {
        self.known.values().all(Option::is_none)
    }

    /// The interpreters that have been refused since this was asked last, and why.
    pub fn refused(&mut self) -> Vec<(PathBuf, Refusal)> {
        std::mem::take(&mut self.refused)
    }

    fn of(&mut self, module: &Module) -> Option<&dyn Interpreter> {
        let (Some(path), Some(file), None) = (&module.path, &module.file, &module.image) else { return None };
        let key = (path.clone(), file.clone());
        if !self.known.contains_key(&key) {
            let found = self.language.find(path, &self.opened.file(path, file));
            if let Some(Err(refusal)) = &found {
                self.refused.push((path.clone(), refusal.clone()));
            }
            self.known.insert(key.clone(), found);
        }
        self.known.get(&key)?.as_ref()?.as_ref().ok().map(|found| &**found)
    }

    /// The hooks in `module`, as addresses of the program, in ascending order. The `environment` is that of its process: entries that
    /// each end with a null byte.
    pub fn hooks(&mut self, module: &Module, environment: &dyn Fn() -> Vec<u8>) -> Vec<(u64, FrameHook)> {
        if let Some(refusal) = self.of(module).and_then(|found| found.refuses(&environment())) {
            // In each process that has it, but it is said once.
            let told = (module.path.clone().unwrap_or_default(), refusal);
            if !self.told.contains(&told) {
                self.refused.push(told.clone());
                self.told.push(told);
            }
            return Vec::new();
        }
        let size = module.end.0.saturating_sub(module.start.0);
        let within = |(offset, hook): &(u64, FrameHook)| {
            let at = offset.checked_sub(module.offset).filter(|at| *at < size)?;
            Some((module.start.0 + at, *hook))
        };
        self.of(module).map(|found| found.hooks().iter().filter_map(within).collect()).unwrap_or_default()
    }

    /// What the code object at `code` is, which a hook of `module` has met; nothing if it is no function.
    pub fn function(&mut self, module: &Module, memory: ReadMemory<'_>, code: u64) -> Option<FrameFunction> {
        self.of(module)?.function(memory, code)
    }
}
