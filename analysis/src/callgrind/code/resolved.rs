//! A catalogue with the names and lines of everything that one part of a profile needs. Invariant: whatever is asked of it has been
//! looked up before, at once, in the order of addresses.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use cg_calls::{FunctionId, NodeIndex, Profile, SiteId};
use grind_names::made::Found;
use grind_symbols::{Inlined, Name, Svma, sanitised};
use grind_types::fault;

use super::{Catalogue, interpreted};
use crate::callgrind::rows::{self, OwnCosts, Program, Source};
use grind_session::broken;

impl Catalogue {
    /// Of targets of calls and jumps that other code has lain at, and the functions that those were of: how they are told.
    fn replaced_targets(&mut self, profile: &Profile) -> HashMap<(u64, FunctionId), u64> {
        if self.replaced.is_empty() {
            return HashMap::new();
        }
        let arcs = profile.arcs.iter().map(|arc| (arc.target, arc.to));
        let all = arcs.chain(profile.jumps.iter().map(|jump| (jump.target, jump.to)));
        let all = all.map(|(target, to)| (target, profile.nodes[to.0 as usize].functions[0]));
        all.map(|(target, function)| ((target, function), self.told_target(target, function))).collect()
    }

    /// The address of a site, as it is told.
    fn site_addr(&self, id: SiteId) -> u64 {
        self.told(self.sites[id.0 as usize].addr, self.site_ages[id.0 as usize])
    }

    /// The instructions of a counter, and what one execution of each costs.
    fn counter(&self, counter: u32) -> impl Iterator<Item = (u64, &[u64])> {
        let age = self.counters.age_of(counter);
        self.counters.of(counter).map(move |(addr, costs)| (self.told(addr, age), costs))
    }

    /// The address of the first of them.
    fn counter_start(&self, counter: u32) -> u64 {
        self.told(self.counters.start(counter), self.counters.age_of(counter))
    }

    /// Looks up everything that a part of `profile` and `own` needs. Slow: debug information is read.
    #[must_use]
    pub fn resolve(&mut self, profile: &Profile, own: &[OwnCosts]) -> Resolved<'_> {
        self.name_made();
        let targets = self.replaced_targets(profile);
        let target = |target: u64, to: NodeIndex| {
            let function = profile.nodes[to.0 as usize].functions[0];
            *targets.get(&(target, function)).unwrap_or(&target)
        };
        let site = |id: SiteId| self.site_addr(id);
        let mut addrs: Vec<u64> = own.iter().map(|(addr, _)| *addr).collect();
        addrs.extend(profile.arcs.iter().flat_map(|arc| [site(arc.site), target(arc.target, arc.to)]));
        addrs.extend(profile.jumps.iter().flat_map(|jump| [site(jump.site), target(jump.target, jump.to)]));
        addrs.extend(profile.skipped.iter().map(|row| site(row.site)));
        // Counters count for several nodes. In the order of their addresses, most of what follows is sorted already.
        let counters = profile.counters.iter().map(|row| (self.counter_start(row.counter), row.counter));
        let mut counters: Vec<(u64, u32)> = counters.collect();
        counters.sort_unstable();
        counters.dedup();
        addrs.extend(counters.into_iter().flat_map(|(_, counter)| self.counter(counter)).map(|(addr, _)| addr));
        addrs.sort();
        addrs.dedup();

        let mut functions_at = HashMap::new();
        for (addr, _) in own {
            functions_at.entry(*addr).or_insert_with(|| {
                let (object, at) = self.locate(*addr);
                self.function_of(object, at).0
            });
        }
        // For each object the addresses to ask for: of instructions, and of where functions begin.
        let mut asked: Vec<Vec<Svma>> = vec![Vec::new(); self.objects.len()];
        let located = self.locate_sorted(&addrs);
        let starts = self.functions.iter().map(|f| (f.object, f.start));
        for (object, at) in located.iter().copied().chain(starts) {
            asked[object as usize].push(Svma(at));
        }
        let mut files: Vec<Name> = vec![Arc::from(&b"???"[..])];
        let mut inlining = Vec::new();
        let mut lines: Vec<Answers> = Vec::new();
        lines.resize_with(asked.len(), Answers::default);
        let mut failed = false;
        for (object, mut at) in asked.into_iter().enumerate() {
            let Some(known) = self.objects[object].object.as_ref().filter(|_| !at.is_empty()) else { continue };
            // Two runs that are sorted, as a rule.
            at.sort();
            at.dedup();
            // What fails here costs lines, not the part.
            let resolution = broken::caught(|| {
                fault::point("names");
                known.places(&at)
            });
            let Ok((places, resolution)) = resolution else {
                failed = true;
                continue;
            };
            let first = files.len();
            files.extend_from_slice(&resolution.files);
            let before = inlining.len() as u32;
            inlining.extend(resolution.inlining.iter().map(|frame| InlinedHere {
                name: resolution.functions[frame.function.index()].clone(),
                file: (first + frame.file.index()) as u32,
                outer: if frame.outer == 0 { 0 } else { before + frame.outer },
                call_line: frame.call_line,
            }));
            lines[object] = Answers { at, places, first, before, next: 0 };
        }
        let mut made_files: HashMap<Name, u32> = HashMap::new();
        let mut line_of = |object: u32, at: u64| -> (u32, u32, u32) {
            if self.objects[object as usize].object.is_none() {
                if let Some(function) = self.interpreted.function(at) {
                    let number = *made_files.entry(sanitised(&function.file)).or_insert_with_key(|file| {
                        files.push(file.clone());
                        (files.len() - 1) as u32
                    });
                    return (number, function.line, 0);
                }
                let Some(Found { file: Some(file), line, .. }) = self.made.find(at) else { return (0, 0, 0) };
                let number = *made_files.entry(file).or_insert_with_key(|file| {
                    files.push(file.clone());
                    (files.len() - 1) as u32
                });
                return (number, line, 0);
            }
            lines[object as usize].of(at, files.len()).unwrap_or_default()
        };
        let function_files = self.functions.iter().map(|f| line_of(f.object, f.start).0).collect();
        let described = |(object, at): (u32, u64)| {
            let (file, line, inlined) = line_of(object, at);
            Described { file, line, inlined, at: interpreted::shown(at) }
        };
        let sources = located.into_iter().map(described).collect();
        Resolved {
            catalogue: self,
            failed,
            targets,
            functions_at,
            files,
            inlining,
            function_files,
            addrs,
            sources,
            next: Cell::new(0),
        }
    }
}

/// What is known of the addresses of an object.
#[derive(Default)]
struct Answers {
    /// Sorted.
    at: Vec<Svma>,
    places: Vec<grind_symbols::Place>,
    /// The number of its first file among those of all objects.
    first: usize,
    /// Inlined functions of the objects before it.
    before: u32,
    /// Which is likely to be asked for next.
    next: usize,
}

impl Answers {
    /// File, line and innermost inlined function of an address. There are `files` of all objects.
    fn of(&mut self, at: u64, files: usize) -> Option<(u32, u32, u32)> {
        let index = find(&self.at, self.next, |svma| svma.0, at)?;
        self.next = index + 1;
        let place = self.places.get(index)?;
        let file = self.first.checked_add(place.file.index()).filter(|file| *file < files);
        let inlined = if place.inlined == 0 { 0 } else { self.before + place.inlined };
        Some((file.unwrap_or(0) as u32, place.line, inlined))
    }
}

/// Which of the `sorted` has this key, which is likely to be that of `guess`, or of one behind it.
fn find<T>(sorted: &[T], guess: usize, key_of: impl Fn(&T) -> u64, key: u64) -> Option<usize> {
    const NEAR: usize = 16;
    for (i, item) in sorted.iter().enumerate().skip(guess).take(NEAR) {
        match key_of(item).cmp(&key) {
            Ordering::Less => {}
            Ordering::Equal => return Some(i),
            Ordering::Greater => break,
        }
    }
    sorted.binary_search_by_key(&key, key_of).ok()
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug)]
struct Described {
    /// Its number.
    file: u32,
    line: u32,
    /// The number of the innermost function that is inlined there; 0: none.
    inlined: u32,
    /// The address in its object.
    at: u64,
}

/// A function that was inlined somewhere.
#[derive(Debug)]
struct InlinedHere {
    name: Name,
    file: u32,
    /// The number of the one that it was inlined into; 0: the function that has the code.
    outer: u32,
    call_line: u32,
}

/// A catalogue with the names and lines that one part needs.
#[derive(Debug)]
pub struct Resolved<'a> {
    catalogue: &'a Catalogue,
    /// Reading debug information has panicked: lines are missing.
    pub failed: bool,
    /// See [`Catalogue::replaced_targets`].
    targets: HashMap<(u64, FunctionId), u64>,
    functions_at: HashMap<u64, FunctionId>,
    /// By number; the first is that of an unknown one.
    files: Vec<Name>,
    /// Inlined functions by their numbers less 1; an outer one comes before those that were inlined into it.
    inlining: Vec<InlinedHere>,
    /// The files of the catalogue's functions.
    function_files: Vec<u32>,
    /// All addresses that may be asked for, sorted.
    addrs: Vec<u64>,
    /// The same of each of them.
    sources: Vec<Described>,
    /// The one that is likely to be asked for next.
    next: Cell<usize>,
}

impl Program for Resolved<'_> {
    fn function(&self, id: FunctionId) -> rows::Described<'_> {
        let known = &self.catalogue.functions[id.0 as usize];
        let wanted = self.catalogue.treated(known);
        rows::Described {
            name: &known.name,
            file: &self.files[self.function_files[id.0 as usize] as usize],
            object: &self.catalogue.objects[known.object as usize].name,
            skipped: wanted.skip,
            levels: u32::from(wanted.separate_recs).max(1),
        }
    }

    fn function_at(&self, addr: u64) -> FunctionId {
        self.functions_at[&addr]
    }

    fn source(&self, addr: u64) -> Source<'_> {
        match find(&self.addrs, self.next.get(), |at| *at, addr) {
            Some(index) => {
                self.next.set(index + 1);
                let Described { file, line, inlined, at } = self.sources[index];
                Source { file: &self.files[file as usize], line, inlined, addr: at }
            }
            None => Source { file: b"???", line: 0, inlined: 0, addr },
        }
    }

    fn inlines(&self) -> Inlined {
        self.catalogue.opened.options().inlined
    }

    fn inlined(&self, number: u32) -> Option<rows::Inline<'_>> {
        let here = self.inlining.get((number as usize).checked_sub(1)?)?;
        let file = &self.files[here.file as usize];
        Some(rows::Inline { name: &here.name, file, outer: here.outer, call_line: here.call_line })
    }

    fn site(&self, id: SiteId) -> u64 {
        self.catalogue.site_addr(id)
    }

    fn target(&self, addr: u64, function: FunctionId) -> u64 {
        *self.targets.get(&(addr, function)).unwrap_or(&addr)
    }

    fn counter(&self, counter: u32) -> impl Iterator<Item = (u64, &[u64])> {
        self.catalogue.counter(counter)
    }

    fn start(&self, counter: u32) -> u64 {
        self.catalogue.counter_start(counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_found_from_wherever_one_begins() {
        let sorted: Vec<u64> = (0..100).map(|i| i * i / 3 + i).collect();
        for guess in 0..=sorted.len() {
            for key in 0..3500 {
                assert_eq!(
                    find(&sorted, guess, |k| *k, key),
                    sorted.iter().position(|k| *k == key),
                    "{key} from {guess}"
                );
            }
        }
    }
}
