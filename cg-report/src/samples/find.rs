//! Which rows or functions of a profile samples are of.
//!
//! Objects are the same by path, by file name if that is there once, or by build id. An address that a row has settles it. Else names
//! decide, as they are, and then without what profilers write differently: parameters, versions, hashes and parts that compilers split
//! off. Of several functions of a name all are homes, with what they cost as weights.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use cg_exchange::measured::{Frame, Spot};
use cg_format::callgrind::{FunctionId, Names, ObjectId, Place, Position};
use cg_model::{Detail, Heads, UNKNOWN};

use crate::elf::Elf;
use crate::names::last;
use crate::renaming::Renaming;

/// Where a sample is, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) function: FunctionId,
    pub(super) at: Position,
    /// What stands there costs.
    pub(super) weight: i64,
}

/// An object file, and its functions by name where there is one of it.
struct Object {
    elf: Elf,
    named: HashMap<String, Option<u64>>,
}

impl Object {
    fn new(elf: Elf) -> Self {
        let mut named: HashMap<String, Option<u64>> = HashMap::new();
        for symbol in elf.symbols.iter() {
            let other = named.entry(symbol.name().to_owned()).or_insert(Some(symbol.start));
            *other = other.filter(|start| *start == symbol.start);
        }
        Self { elf, named }
    }
}

/// Finds homes in a profile.
pub(super) struct Finder<'a> {
    names: &'a Names,
    detail: &'a Detail,
    renaming: Renaming<'a>,
    builds: &'a BTreeMap<Vec<u8>, String>,
    root: Option<&'a Path>,
    /// What functions cost by themselves.
    own: Vec<i64>,
    /// Functions that the profile has, by name and by what names have in common.
    exact: HashMap<Vec<u8>, Vec<FunctionId>>,
    loose: HashMap<Vec<u8>, Vec<FunctionId>>,
    objects: HashMap<ObjectId, Option<Object>>,
    rebuilt: BTreeSet<ObjectId>,
    event: usize,
}

impl<'a> Finder<'a> {
    /// One for a profile, whose `event` says what things cost.
    pub(super) fn new(
        names: &'a Names,
        detail: &'a Detail,
        event: usize,
        renaming: Renaming<'a>,
        builds: &'a BTreeMap<Vec<u8>, String>,
        root: Option<&'a Path>,
    ) -> Self {
        let mut own = vec![0_i64; names.functions().len()];
        let mut here = vec![false; own.len()];
        for row in &detail.rows {
            let cost = &mut own[row.function.index()];
            *cost = cost.saturating_add(detail.row_cost(row, event));
            here[row.function.index()] = true;
        }
        detail.calls.iter().for_each(|call| here[call.callee.index()] = true);
        let heads = Heads::new(names.functions().map(|id| names.function_name(id)));
        let (mut exact, mut loose): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        for id in names.functions().filter(|id| here[id.index()]) {
            let name = heads.plain(names.function_name(id));
            exact.entry(name.to_vec()).or_default().push(id);
            loose.entry(core(name).to_vec()).or_default().push(id);
        }
        let (objects, rebuilt) = Default::default();
        Self { names, detail, renaming, builds, root, own, exact, loose, objects, rebuilt, event }
    }

    /// The homes of frames; none where the profile has nothing of the kind.
    ///
    /// # Errors
    /// A name cannot be changed as options want it.
    pub(super) fn homes(&mut self, frames: &[&Frame]) -> anyhow::Result<Vec<Vec<Home>>> {
        let known: Vec<Option<ObjectId>> = frames.iter().map(|frame| self.object(&frame.object)).collect();
        let addresses: Vec<Option<u64>> =
            frames.iter().zip(&known).map(|(frame, object)| self.address(frame, (*object)?)).collect();
        let mut rows =
            self.rows(known.iter().zip(&addresses).filter_map(|(object, addr)| Some(((*object)?, (*addr)?))));
        let mut homes = Vec::with_capacity(frames.len());
        for ((frame, object), addr) in frames.iter().zip(known).zip(addresses) {
            let key = object.zip(addr);
            if let Some(found) = key.and_then(|key| rows.get_mut(&key)).filter(|found| !found.is_empty()) {
                homes.push(found.clone());
                continue;
            }
            // Who knows no name knows where it stands.
            let symbol =
                key.filter(|_| frame.name.starts_with(b"0x")).and_then(|(object, addr)| self.symbol(object, addr));
            let name = self.renaming.function(symbol.as_deref().unwrap_or(&frame.name))?;
            let functions =
                if frame.object.is_empty() || object.is_some() { self.named(&name, object) } else { Vec::new() };
            let file = self.renaming.file(&frame.file)?;
            homes.push(functions.into_iter().map(|function| self.home(function, &file, frame.line)).collect());
        }
        Ok(homes)
    }

    /// Objects of other builds than those that were sampled.
    pub(super) fn rebuilt(&self) -> Vec<Vec<u8>> {
        self.rebuilt.iter().map(|object| self.names.object_name(*object).to_vec()).collect()
    }

    /// The object of the profile that samples call so.
    fn object(&mut self, name: &[u8]) -> Option<ObjectId> {
        if name.is_empty() {
            return None;
        }
        let names = self.names;
        if let Some(same) = names.objects().find(|id| names.object_name(*id) == name) {
            return Some(same);
        }
        let mut alike = names.objects().filter(|id| last(names.object_name(*id)) == last(name));
        if let (Some(only), None) = (alike.next(), alike.next()) {
            return Some(only);
        }
        let build = std::str::from_utf8(name)
            .ok()
            .filter(|name| name.len() >= 8 && name.bytes().all(|c| c.is_ascii_hexdigit()))?;
        let all: Vec<ObjectId> = names.objects().collect();
        all.into_iter().find(|id| {
            let elf = self.open(*id).map(|object| &object.elf);
            elf.is_some_and(|elf| elf.build.eq_ignore_ascii_case(build))
        })
    }

    fn open(&mut self, id: ObjectId) -> Option<&Object> {
        let (name, root) = (self.names.object_name(id), self.root);
        self.objects.entry(id).or_insert_with(|| Elf::open(name, root).map(Object::new)).as_ref()
    }

    /// The address of a frame in its object, as rows have it.
    fn address(&mut self, frame: &Frame, id: ObjectId) -> Option<u64> {
        let spot = frame.spot?;
        let build = self.builds.get(&frame.object).cloned();
        let Object { elf, named } = self.open(id)?;
        if build.is_some_and(|build| !elf.build.is_empty() && !elf.build.eq_ignore_ascii_case(&build)) {
            self.rebuilt.insert(id);
            return None;
        }
        match spot {
            Spot::InFile(place) => elf.address(place),
            Spot::InFunction(behind) => {
                let name = std::str::from_utf8(&frame.name).ok()?;
                named.get(name).copied().flatten()?.checked_add(behind)
            }
        }
    }

    fn symbol(&mut self, object: ObjectId, addr: u64) -> Option<Vec<u8>> {
        let symbol = self.open(object)?.elf.symbol(addr)?;
        Some(symbol.name().as_bytes().to_vec())
    }

    /// Rows at addresses of objects.
    fn rows(&self, wanted: impl Iterator<Item = (ObjectId, u64)>) -> HashMap<(ObjectId, u64), Vec<Home>> {
        let mut rows: HashMap<(ObjectId, u64), Vec<Home>> = wanted.map(|key| (key, Vec::new())).collect();
        if rows.is_empty() || !self.detail.addresses {
            return HashMap::new();
        }
        for row in &self.detail.rows {
            let (function, at) = (row.function, row.at());
            let found = rows.get_mut(&(self.names.get(function).object, at.place.addr)).filter(|_| at.place.addr != 0);
            if let Some(found) = found {
                found.push(Home { function, at, weight: self.detail.row_cost(row, self.event) });
            }
        }
        rows
    }

    /// Functions of a name, of an object if that is known.
    fn named(&self, name: &[u8], object: Option<ObjectId>) -> Vec<FunctionId> {
        let fits = |id: &FunctionId| object.is_none_or(|object| self.names.get(*id).object == object);
        let of = |known: &HashMap<Vec<u8>, Vec<FunctionId>>, name: &[u8]| -> Vec<FunctionId> {
            known.get(name).into_iter().flatten().copied().filter(fits).collect()
        };
        let exact = of(&self.exact, name);
        if exact.is_empty() { of(&self.loose, core(name)) } else { exact }
    }

    /// A function as a home: at the line of the file that its samples name, if it is one of a file that the function has code of.
    fn home(&self, function: FunctionId, called: &[u8], number: u32) -> Home {
        let weight = self.own[function.index()];
        let file = self.names.get(function).file;
        let mine = self.detail.rows.partition_point(|row| row.function < function);
        let mine = self.detail.rows[mine..].iter().take_while(|row| row.function == function);
        let line = mine.map(|row| row.at()).find(|at| {
            let name = self.names.file_name(at.file);
            number != 0 && at.place.line == number && name != UNKNOWN && last(name) == last(called)
        });
        let at = line.map_or((0, file), |at| (at.place.line, at.file));
        Home { function, at: Position { place: Place { addr: 0, line: at.0 }, file: at.1 }, weight }
    }
}

/// What names of a function have in common, whoever writes them: without parameters, versions of symbols, hashes of Rust, and the marks
/// of parts that compilers split off.
fn core(name: &[u8]) -> &[u8] {
    let mut rest = name;
    loop {
        let before = rest;
        rest = rest.strip_suffix(b" const").unwrap_or(rest);
        rest = without_version(without_parameters(without_hash(without_part(rest))));
        if rest.len() == before.len() {
            return if rest.is_empty() { name } else { rest };
        }
    }
}

fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b'@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Without `(…)` at the end, unless that is a name: `operator()`.
fn without_parameters(name: &[u8]) -> &[u8] {
    if name.last() != Some(&b')') {
        return name;
    }
    let mut depth = 0_i32;
    for (at, byte) in name.iter().enumerate().rev() {
        depth += i32::from(*byte == b')') - i32::from(*byte == b'(');
        if depth == 0 {
            let own = name[..at].ends_with(b"operator") || name[..at].ends_with(b"::") || at == 0;
            return if own { name } else { &name[..at] };
        }
    }
    name
}

/// Without `::h0123456789abcdef`.
fn without_hash(name: &[u8]) -> &[u8] {
    const DIGITS: usize = 16;
    match name.len().checked_sub(DIGITS + 3).map(|at| name.split_at(at)) {
        Some((start, hash)) if hash.starts_with(b"::h") && hash[3..].iter().all(u8::is_ascii_hexdigit) => start,
        _ => name,
    }
}

/// Without ` [clone …]`, `.cold`, `.part.0` and the like.
fn without_part(name: &[u8]) -> &[u8] {
    let clone = b" [clone ";
    if name.ends_with(b"]")
        && let Some(at) = name.windows(clone.len()).position(|window| window == clone)
    {
        return &name[..at];
    }
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let bare = if digits > 0 { name[..name.len() - digits].strip_suffix(b".") } else { Some(name) };
    let parts: [&[u8]; 5] = [b".cold", b".part", b".isra", b".constprop", b".lto_priv"];
    parts.iter().find_map(|part| bare?.strip_suffix(*part)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_written_differently_have_a_core() {
        for (name, wanted) in [
            ("operator()(int, char) const", "operator()"),
            ("run(std::vector<int (*)(int)>)", "run"),
            ("a::(anonymous namespace)::f(int)", "a::(anonymous namespace)::f"),
            ("a::(anonymous namespace)", "a::(anonymous namespace)"),
            ("(below main)", "(below main)"),
            ("__libc_start_main@@GLIBC_2.34", "__libc_start_main"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("f(int) [clone .constprop.0]", "f"),
            ("f.part.0.cold", "f"),
            ("f.0", "f.0"),
            ("@x", "@x"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(core(name.as_bytes())), wanted, "{name}");
        }
    }
}
