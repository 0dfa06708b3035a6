//! Names of objects, files and functions, each kept once and known by a small number.
//!
//! A function is a name in a file of an object: two static functions of one name in two files are two functions. Numbers
//! are given in the order in which names first come and never change, so they can be used before all names are known.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::hash::NameKeys;

/// An object file: the program or a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(u32);

/// A source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A function: a name in a file of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    pub(super) name: u32,
    /// The file that it is defined in.
    pub file: FileId,
    /// The object that holds its code.
    pub object: ObjectId,
}

macro_rules! dense {
    ($($id:ident),*) => {
        $(impl $id {
            /// The number, from 0 without gaps in the order in which the names came.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

dense!(ObjectId, FileId, FunctionId);

/// The names of a profile.
#[derive(Clone, Debug, Default)]
pub struct Names {
    objects: Table,
    files: Table,
    texts: Table,
    functions: Vec<Function>,
    finder: HashMap<Function, u32, BuildHasherDefault<IdHasher>>,
}

impl Names {
    /// The object called `name`; an empty name stands for "not known".
    pub fn object(&mut self, name: &[u8]) -> ObjectId {
        ObjectId(self.objects.intern(name))
    }

    /// The file called `name`.
    pub fn file(&mut self, name: &[u8]) -> FileId {
        FileId(self.files.intern(name))
    }

    /// The function called `name` in a file of an object.
    pub fn function(&mut self, name: &[u8], file: FileId, object: ObjectId) -> FunctionId {
        let name = self.text(name);
        self.function_of(Function { name, file, object })
    }

    /// The number of a function's name.
    pub(super) fn text(&mut self, name: &[u8]) -> u32 {
        self.texts.intern(name)
    }

    pub(super) fn function_of(&mut self, function: Function) -> FunctionId {
        let next = small(self.functions.len());
        let functions = &mut self.functions;
        FunctionId(*self.finder.entry(function).or_insert_with(|| {
            functions.push(function);
            next
        }))
    }

    /// The name of an object.
    ///
    /// # Panics
    /// When the number is of other names; so do the methods below.
    #[must_use]
    pub fn object_name(&self, id: ObjectId) -> &[u8] {
        self.objects.get(id.0)
    }

    /// The name of a file.
    #[must_use]
    pub fn file_name(&self, id: FileId) -> &[u8] {
        self.files.get(id.0)
    }

    /// The name of a function.
    #[must_use]
    pub fn function_name(&self, id: FunctionId) -> &[u8] {
        self.texts.get(self.functions[id.index()].name)
    }

    /// The file and the object of a function.
    #[must_use]
    pub fn get(&self, id: FunctionId) -> Function {
        self.functions[id.index()]
    }

    /// All functions, in the order of their numbers.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = FunctionId> + use<> {
        (0..small(self.functions.len())).map(FunctionId)
    }

    /// All files, in the order of their numbers.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileId> + use<> {
        (0..small(self.files.names.len())).map(FileId)
    }

    /// All objects, in the order of their numbers.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = ObjectId> + use<> {
        (0..small(self.objects.names.len())).map(ObjectId)
    }

    /// How many files there are; their numbers are below.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.files.names.len()
    }

    /// What functions are ordered by: object, file and name, as bytes.
    pub(super) fn order(&self, id: FunctionId) -> (&[u8], &[u8], &[u8]) {
        let function = self.get(id);
        (self.object_name(function.object), self.file_name(function.file), self.texts.get(function.name))
    }
}

/// Strings, each once.
#[derive(Clone, Debug, Default)]
struct Table {
    names: Vec<Box<[u8]>>,
    finder: HashMap<Box<[u8]>, u32, NameKeys>,
}

impl Table {
    fn intern(&mut self, name: &[u8]) -> u32 {
        if let Some(found) = self.finder.get(name) {
            return *found;
        }
        let id = small(self.names.len());
        self.names.push(name.into());
        self.finder.insert(name.into(), id);
        id
    }

    fn get(&self, id: u32) -> &[u8] {
        &self.names[id as usize]
    }
}

fn small(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than 2^32 names fit in memory")
}

/// Mixes small numbers for maps, faster than the standard way: the numbers come from our own counting, so nobody chooses
/// them to collide.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_a_function_is_more_than_its_name() {
        let mut names = Names::default();
        let (a, b) = (names.file(b"a.c"), names.file(b"b.c"));
        let object = names.object(b"prog");
        assert_ne!(a, b);
        assert_eq!(names.file(b"a.c"), a);
        let first = names.function(b"f", a, object);
        let second = names.function(b"f", b, object);
        assert_ne!(first, second);
        assert_eq!(names.function(b"f", a, object), first);
        assert_eq!(names.function_name(second), b"f");
        assert_eq!(names.get(second).file, b);
        assert_eq!(names.functions().len(), 2);
        assert_eq!(names.file_name(b), b"b.c");
        assert_eq!(names.object_name(object), b"prog");
    }
}
