//! Which process of a tree costs what: reads profiles of trees, of either format, block by block.
//!
//! Processes are nodes of a forest, in the order in which they began; a node's inclusive cost is its own and that of all
//! processes below it. On request those that do the same under the same parent become one node, so inclusive costs stay exact.
//! Every node is of a kind: its executable, and its command if processes are folded; functions are summed by kind, so memory
//! depends on the kinds and functions there are and not on the number of processes. Invariant: the nodes' own costs add up to
//! those of all blocks; a block whose rows do not add up to what it says is refused.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use cg_format::cachegrind::{self, Detail, Header, Profile, ReadOptions, SummaryRule};
use cg_format::callgrind::{self, Call, FunctionId, Jump, PartHeader, Position, Sink};
use cg_format::count::TooLarge;
use cg_format::tree::{self, Block, Format, Process, Reader, Status};

use crate::input;
use crate::progress::Counter;
use crate::substitute::Substitution;

/// A process, or several that are folded.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is known of it, its own cost too. Of several, the first one's ids, and their status if all have the same.
    pub process: Process,
    /// Its parent's index, which is below its own.
    pub parent: Option<usize>,
    /// Its kind's index.
    pub kind: usize,
    /// How many of its processes failed.
    pub failed: u64,
    /// Its own cost and that of all below it.
    pub inclusive: Vec<i128>,
}

/// What processes of one executable, or of one command, have in common.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The executable, or the command after substitutions.
    pub name: Vec<u8>,
    /// How many processes there are of it.
    pub processes: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Their own cost.
    pub own: Vec<i128>,
    /// The same with that of all processes below them, of which none is counted twice.
    pub inclusive: Vec<i128>,
    /// Where they spent what is their own; nothing if they spent nothing.
    pub profile: Option<Profile>,
}

/// All processes.
#[derive(Debug, Default)]
pub struct Forest {
    /// The events, in the order of costs.
    pub events: Vec<String>,
    /// The processes, parents before their children.
    pub nodes: Vec<Node>,
    /// The kinds of processes, in the order in which they were met.
    pub kinds: Vec<Kind>,
    /// What all processes together cost.
    pub total: Vec<i128>,
}

/// How profiles are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Fold processes whose commands are the same after these substitutions, and whose executables are.
    pub fold: Option<&'a [Substitution]>,
    /// How much of the lines is kept.
    pub detail: Detail,
    /// Keep a profile for each node, as a kind of its own.
    pub apart: bool,
}

/// A node before its parent is known.
struct Raw {
    file: usize,
    process: Process,
    folded: Option<Vec<u8>>,
    kind: usize,
}

/// Parent, executable and command: what processes that are folded have in common.
type Alike = (Option<usize>, Vec<u8>, Vec<u8>);

/// Reads the files.
///
/// # Errors
/// A file cannot be read, says nothing of processes, counts other events than the ones before, or is not complete.
pub fn read(paths: &[OsString], how: Reading<'_>, counter: &Arc<Counter>) -> anyhow::Result<Forest> {
    let mut forest = Forest::default();
    let mut kinds: HashMap<(Vec<u8>, Option<Vec<u8>>), usize> = HashMap::new();
    let mut raw: Vec<Raw> = Vec::new();
    for (file, path) in paths.iter().enumerate() {
        let name = input::name(path);
        let opened = input::open_profile(path, counter).map_err(|why| anyhow!("{name}: {why}"))?;
        let mut reader = Reader::new(BufReader::with_capacity(1 << 18, opened)).with_context(|| name.clone())?;
        if forest.events.is_empty() {
            forest.events = reader.events().to_vec();
            forest.total = vec![0; forest.events.len()];
        } else if forest.events != reader.events() {
            let (here, there) = (reader.events().join(" "), forest.events.join(" "));
            bail!("{name}: events in data files don't match: `{here}` here, `{there}` in {}", input::name(&paths[0]));
        }
        let format = reader.format();
        while let Some(mut block) = reader.next_block().with_context(|| name.clone())? {
            let folded = match how.fold {
                Some(rules) => {
                    Some(rules.iter().try_fold(block.process.command.clone(), |text, rule| rule.apply(&text))?)
                }
                None => None,
            };
            let key = match (how.apart, &folded) {
                // Kinds become nodes.
                (true, _) => None,
                (false, folded) => Some((block.process.executable.clone(), folded.clone())),
            };
            let next = forest.kinds.len();
            let kind = key.map_or(next, |key| *kinds.entry(key).or_insert(next));
            if kind == next {
                forest.kinds.push(Kind {
                    name: folded.clone().unwrap_or_else(|| block.process.executable.clone()),
                    processes: 0,
                    failed: 0,
                    own: vec![0; forest.events.len()],
                    inclusive: vec![0; forest.events.len()],
                    profile: None,
                });
            }
            block.process.cost.resize(forest.events.len(), 0);
            add(&mut forest.kinds[kind].profile, &block, format, &forest.events, how.detail)
                .with_context(|| name.clone())?;
            for (sum, cost) in forest.total.iter_mut().zip(&block.process.cost) {
                *sum = sum.checked_add(*cost).context("the costs are too large to be added up")?;
            }
            raw.push(Raw { file, process: block.process, folded, kind });
        }
    }
    forest.grow(raw, how.apart)?;
    Ok(forest)
}

/// Adds the rows of a block to `profile`.
fn add(
    profile: &mut Option<Profile>,
    block: &Block,
    format: Format,
    events: &[String],
    detail: Detail,
) -> anyhow::Result<()> {
    let (id, line) = (block.process.id, block.line);
    let name = format!("process {id}, from line {line} on");
    let before = profile.as_ref().map_or_else(|| vec![0; events.len()], |profile| profile.total().to_vec());
    match format {
        Format::Cachegrind => {
            let options = ReadOptions { detail, summary: SummaryRule::Ignored };
            cachegrind::read_more(profile, &block.text[..], &name, &options)?;
        }
        Format::Callgrind => {
            let mut sums = Sums { events, functions: HashMap::new(), differ: false };
            let names = callgrind::read(&block.text[..], &name, &mut sums)?.names;
            if sums.differ {
                bail!("{name}: it does not count `{}`", events.join(" "));
            }
            let new = || Profile::with_header(Header { events: events.to_vec(), ..Header::default() });
            let profile = profile.get_or_insert_with(new);
            for (function, costs) in sums.functions {
                let known = names.get(function);
                profile.add(names.file_name(known.file), names.function_name(function), 0, &costs)?;
            }
        }
    }
    let after = profile.as_ref().map_or(&before[..], |profile| profile.total());
    let is_whole =
        after.iter().zip(&before).map(|(after, before)| after - before).eq(block.process.cost.iter().copied());
    if !is_whole {
        bail!("{name}: its rows do not add up to its `cost:`; the file may be cut short");
    }
    Ok(())
}

/// Self costs by function.
struct Sums<'a> {
    events: &'a [String],
    functions: HashMap<FunctionId, Vec<i128>>,
    differ: bool,
}

impl Sink for Sums<'_> {
    fn part(&mut self, header: &PartHeader) {
        self.differ |= header.events != self.events;
    }

    fn row(&mut self, function: FunctionId, _at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        let sums = self.functions.entry(function).or_insert_with(|| vec![0; self.events.len()]);
        sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += i128::from(*cost));
        Ok(())
    }

    fn call(&mut self, _: FunctionId, _: Position, _: &Call, _: &[i64]) -> Result<(), TooLarge> {
        // What a call costs, its callee spends.
        Ok(())
    }

    fn jump(&mut self, _: FunctionId, _: Position, _: &Jump) {}
}

impl Forest {
    /// Makes nodes of processes, parents first, and adds costs up.
    fn grow(&mut self, mut raw: Vec<Raw>, apart: bool) -> anyhow::Result<()> {
        raw.sort_by_key(|raw| (raw.file, raw.process.id));
        let mut ids: HashMap<(usize, u64), usize> = HashMap::new();
        let mut same: HashMap<Alike, usize> = HashMap::new();
        let mut kinds: Vec<Option<Kind>> = std::mem::take(&mut self.kinds).into_iter().map(Some).collect();
        for Raw { file, mut process, folded, kind } in raw {
            let (id, failures) = (process.id, process.status.is_failure());
            let failed = if failures { process.processes } else { 0 };
            // Whoever names a parent that does not come before it has none.
            let parent = ids.get(&(file, process.parent)).copied();
            if let Some(folded) = &folded {
                process.command.clone_from(folded);
            }
            let next = self.nodes.len();
            let at = match &folded {
                Some(folded) => *same.entry((parent, process.executable.clone(), folded.clone())).or_insert(next),
                None => next,
            };
            if ids.insert((file, id), at).is_some() {
                bail!("there are two processes of number {id}");
            }
            if at == next {
                let inclusive = process.cost.clone();
                self.nodes.push(Node { process, parent, kind, failed, inclusive });
                continue;
            }
            let node = &mut self.nodes[at];
            node.failed += failed;
            node.process.processes = node.process.processes.saturating_add(process.processes);
            if node.process.status != process.status {
                node.process.status = Status::Unknown;
            }
            for (sum, cost) in node.process.cost.iter_mut().chain(&mut node.inclusive).zip(process.cost.repeat(2)) {
                *sum += cost;
            }
            if apart && let Some(other) = kinds[kind].take().and_then(|kind| kind.profile) {
                let first = &mut kinds[node.kind];
                match first.as_mut().map(|first| &mut first.profile) {
                    Some(Some(profile)) => profile.merge(&other)?,
                    Some(none) => *none = Some(other),
                    None => {}
                }
            }
        }
        self.kinds = kinds.into_iter().map(|kind| kind.unwrap_or_else(|| Kind::none(self.events.len()))).collect();
        for at in (0..self.nodes.len()).rev() {
            let Some(parent) = self.nodes[at].parent else { continue };
            let (above, below) = self.nodes.split_at_mut(at);
            above[parent].inclusive.iter_mut().zip(&below[0].inclusive).for_each(|(sum, cost)| *sum += cost);
        }
        self.sum_kinds();
        Ok(())
    }

    fn sum_kinds(&mut self) {
        let mut active = vec![0_u32; self.kinds.len()];
        // Ends of nodes among beginnings: a node is entered, then those below it, then it is left.
        let children = self.children();
        let mut waiting: Vec<(usize, bool)> = self.roots().map(|root| (root, true)).collect();
        while let Some((at, begins)) = waiting.pop() {
            let node = &self.nodes[at];
            if !begins {
                active[node.kind] -= 1;
                continue;
            }
            let kind = &mut self.kinds[node.kind];
            kind.processes += node.process.processes;
            kind.failed += node.failed;
            kind.own.iter_mut().zip(&node.process.cost).for_each(|(sum, cost)| *sum += cost);
            if active[node.kind] == 0 {
                kind.inclusive.iter_mut().zip(&node.inclusive).for_each(|(sum, cost)| *sum += cost);
            }
            active[node.kind] += 1;
            waiting.push((at, false));
            waiting.extend(children[at].iter().map(|child| (*child, true)));
        }
    }

    /// Writes the processes as a tree of profiles without calls, one block for each node, in the order in which they began. Its
    /// header is that of the first process.
    ///
    /// # Errors
    /// Whatever `out` answers.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let empty = || Profile::with_header(Header { events: self.events.clone(), ..Header::default() });
        let mut head = empty();
        if let Some(first) = self.nodes.first() {
            let profile = self.kinds[first.kind].profile.as_ref();
            head.header.desc = profile.map(|profile| profile.header.desc.clone()).unwrap_or_default();
            head.header.cmd.clone_from(&first.process.command);
        }
        cachegrind::write_header(out, &head)?;
        tree::write_head(out, &self.events)?;
        let mut total = vec![0; self.events.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.map_or(0, |parent| parent as u64 + 1);
            tree::write_process(out, &Process { id: at as u64 + 1, parent, ..node.process.clone() })?;
            total.iter_mut().zip(&node.process.cost).for_each(|(sum, cost)| *sum += cost);
            match &self.kinds[node.kind].profile {
                Some(profile) => cachegrind::write_rows(out, profile, &total)?,
                None => cachegrind::write_rows(out, &empty(), &total)?,
            }
        }
        Ok(())
    }

    /// The processes that have no parent here.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].parent.is_none())
    }

    /// The children of each process.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(at);
            }
        }
        children
    }
}

impl Kind {
    fn none(events: usize) -> Self {
        let zeros = vec![0; events];
        Self { name: Vec::new(), processes: 0, failed: 0, own: zeros.clone(), inclusive: zeros, profile: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::tree::{write_head, write_process};

    /// `(id, parent, executable, command, failed, cost)`
    fn file(processes: &[(u64, u64, &str, &str, bool, i128)]) -> Vec<u8> {
        let mut text = b"cmd: x\nevents: Ir\n".to_vec();
        write_head(&mut text, &["Ir"]).unwrap();
        for (id, parent, executable, command, failed, cost) in processes {
            let process = Process {
                id: *id,
                parent: *parent,
                pid: 1,
                processes: 1,
                status: Status::Exited((*failed).into()),
                executable: executable.as_bytes().to_vec(),
                command: command.as_bytes().to_vec(),
                cost: vec![*cost],
            };
            write_process(&mut text, &process).unwrap();
            text.extend_from_slice(format!("fl=a\nfn={executable}\n1 {cost}\n").as_bytes());
        }
        text.extend_from_slice(b"summary: 0\n");
        text
    }

    fn forest(text: &[u8], fold: Option<&[Substitution]>) -> anyhow::Result<Forest> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        std::fs::write(&path, text).unwrap();
        let how = Reading { fold, detail: Detail::Functions, apart: false };
        read(&[path.into()], how, &Arc::default())
    }

    const BUILD: [(u64, u64, &str, &str, bool, i128); 6] = [
        (4, 3, "/as", "as a.s", false, 1000),
        (3, 2, "/cc", "cc1 a.c", false, 300),
        (5, 2, "/cc", "cc1 b.c", true, 400),
        (6, 5, "/as", "as b.s", true, 2000),
        (2, 1, "/cc", "cc *.c", true, 20),
        (1, 0, "/make", "make", false, 1),
    ];

    #[test]
    fn inclusive_costs_are_of_all_that_a_process_started() {
        let forest = forest(&file(&BUILD), None).unwrap();
        let inclusive: Vec<i128> = forest.nodes.iter().map(|node| node.inclusive[0]).collect();
        assert_eq!(inclusive, [3721, 3720, 1300, 1000, 2400, 2000]);
        assert_eq!(forest.total, [3721]);
        let cc = forest.kinds.iter().find(|kind| kind.name == b"/cc").unwrap();
        // A cc below a cc is not counted twice.
        assert_eq!((cc.processes, cc.failed, cc.own[0], cc.inclusive[0]), (3, 2, 720, 3720));
        assert_eq!(cc.profile.as_ref().unwrap().total(), [720]);
    }

    #[test]
    fn processes_that_do_the_same_under_the_same_parent_fold() {
        let rules = [Substitution::parse("s/ [ab][.]/ ?./").unwrap()];
        let forest = forest(&file(&BUILD), Some(&rules)).unwrap();
        let nodes: Vec<_> = forest
            .nodes
            .iter()
            .map(|n| (String::from_utf8_lossy(&n.process.command).into_owned(), n.process.processes, n.inclusive[0]))
            .collect();
        let expected = [("make", 1, 3721), ("cc *.c", 1, 3720), ("cc1 ?.c", 2, 3700), ("as ?.s", 2, 3000)];
        assert_eq!(nodes, expected.map(|(command, n, cost)| (command.to_owned(), n, cost)));
        assert_eq!(forest.nodes[2].process.status, Status::Unknown);
        assert_eq!(forest.nodes[2].failed, 1);
        assert_eq!(forest.total, [3721]);
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let mut text = file(&BUILD);
        let cut = text.windows(6).rposition(|w| w == b"\n1 1\ns").unwrap();
        text.truncate(cut);
        assert!(forest(&text, None).unwrap_err().chain().any(|e| e.to_string().contains("cut short")));
        let twice = file(&[BUILD[0], BUILD[0]]);
        assert!(forest(&twice, None).unwrap_err().to_string().contains("two processes of number 4"));
        assert!(forest(b"cmd: x\nevents: Ir\nsummary: 0\n", None).is_err());
    }

    /// Parents that do not exist, come later, or are the process itself.
    #[test]
    fn wrong_parents_are_none() {
        let wrong = file(&[(1, 7, "/a", "a", false, 1), (2, 2, "/b", "b", false, 2), (3, 4, "/c", "c", false, 3)]);
        let forest = forest(&wrong, None).unwrap();
        assert!(forest.nodes.iter().all(|node| node.parent.is_none()));
    }
}
