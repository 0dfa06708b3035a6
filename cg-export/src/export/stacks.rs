//! A profile as stacks with costs, which most viewers want.
//!
//! A profile holds stacks only where contexts were recorded (`--separate-callers`): then they are exact, as far as they
//! were recorded; all of them, where whole chains of calls were (`--separate-callers=all`). Otherwise there are two ways. *Flat*: each function stands alone, nothing is claimed. *Estimated*
//! (`estimate`): costs of a function are shared out among its callers by what they saw of it. Whatever the way, the self
//! cost of every function is exact, to the last unit.

use std::collections::HashMap;

use cg_format::callgrind::{Chain, Chains, FileId, FunctionId};
use cg_model::{Heads, ModelError};

use crate::estimate;
use crate::graph::Graph;
use crate::load::{Input, add};

/// Where stacks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Exact: whole chains of calls, or the contexts in the names of functions
    Contexts,
    /// Exact: each function alone
    Flat,
    /// Shared out along the call graph; functions' own costs stay exact
    Estimated,
}

impl Kind {
    /// What outputs say of their stacks.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Contexts => "exact stacks, as far as contexts were recorded",
            Self::Flat => "functions without stacks, exact",
            Self::Estimated => "ESTIMATED stacks: shared out along the call graph; self costs of functions are exact",
        }
    }
}

/// A function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Its name, without callers.
    pub(crate) name: Vec<u8>,
    /// Its file; empty if only its name is known.
    pub(crate) file: Vec<u8>,
    /// Its object; empty if it is not known.
    pub(crate) object: Vec<u8>,
}

/// A stack and what it cost.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// Frames, the innermost first; at least one.
    pub(crate) frames: Vec<usize>,
    /// File and line that ran in the innermost; none in estimated stacks, and in those of whole chains.
    pub(crate) place: Option<(FileId, u32)>,
    /// Self cost.
    pub(crate) costs: Vec<i64>,
}

/// All stacks of a profile.
#[derive(Debug)]
pub(crate) struct Stacks {
    pub(crate) kind: Kind,
    pub(crate) frames: Vec<Frame>,
    pub(crate) stacks: Vec<Stack>,
    /// The frame of each function.
    pub(crate) frame_of: Vec<usize>,
}

/// Frames, each once.
#[derive(Debug, Default)]
pub(crate) struct FrameTable {
    frames: Vec<Frame>,
    finder: HashMap<Frame, usize>,
}

impl FrameTable {
    /// The number of a frame.
    pub(crate) fn intern(&mut self, frame: Frame) -> usize {
        if let Some(found) = self.finder.get(&frame) {
            return *found;
        }
        self.frames.push(frame.clone());
        self.finder.insert(frame, self.frames.len() - 1);
        self.frames.len() - 1
    }
}

impl Stacks {
    /// Makes stacks of a profile; without a kind, contexts if it has any, else flat ones.
    ///
    /// # Errors
    /// A sum is too large.
    pub(crate) fn new(input: &Input, kind: Option<Kind>) -> Result<Self, ModelError> {
        let mut table = FrameTable::default();
        let contexts = contexts(input, &mut table);
        let chains = !input.chains.all().is_empty();
        let kind = kind.unwrap_or(if chains || contexts.callers.iter().any(|callers| !callers.is_empty()) {
            Kind::Contexts
        } else {
            Kind::Flat
        });
        let frame_of = contexts.head.clone();
        let stacks = match kind {
            Kind::Contexts if chains => whole(&input.chains, &frame_of),
            Kind::Contexts | Kind::Flat => {
                // Contexts of one function have rows of the same lines, which are one stack without their callers.
                let mut finder: HashMap<(Vec<usize>, FileId, u32), usize> = HashMap::new();
                let mut stacks: Vec<Stack> = Vec::new();
                for row in &input.rows {
                    let function = row.function.index();
                    let mut frames = vec![contexts.head[function]];
                    if kind == Kind::Contexts {
                        frames.extend(&contexts.callers[function]);
                    }
                    let next = stacks.len();
                    let at = *finder.entry((frames.clone(), row.file, row.line)).or_insert(next);
                    if at == next {
                        stacks.push(Stack { frames, place: Some((row.file, row.line)), costs: Vec::new() });
                    }
                    add(&mut stacks[at].costs, &row.costs)?;
                }
                stacks
            }
            Kind::Estimated => estimate::stacks(input, &Graph::new(input)?, &frame_of, &mut table)?,
        };
        Ok(Self { kind, frames: table.frames, stacks, frame_of })
    }
}

/// Stacks of whole chains of calls, of those that have a cost of their own.
fn whole(chains: &Chains, frame_of: &[usize]) -> Vec<Stack> {
    let all = chains.all();
    let spent = (0..).zip(all).filter(|(n, _)| chains.costs(*n).iter().any(|cost| *cost != 0));
    let stack = |(n, chain): (u32, &Chain)| {
        let callers = std::iter::successors(Some(chain), |chain| Some(&all[chain.parent? as usize]));
        let frames = callers.map(|chain| frame_of[chain.function.index()]).collect();
        Stack { frames, place: None, costs: chains.costs(n).to_vec() }
    };
    spent.map(stack).collect()
}

/// Frames of functions and of their callers.
struct Contexts {
    head: Vec<usize>,
    callers: Vec<Vec<usize>>,
}

fn contexts(input: &Input, table: &mut FrameTable) -> Contexts {
    let names = &input.names;
    let all: Vec<FunctionId> = names.functions().collect();
    let heads = Heads::new(all.iter().map(|function| names.function_name(*function)));
    let mut named: HashMap<&[u8], Option<usize>> = HashMap::new();
    let mut head = Vec::new();
    for function in &all {
        let split = heads.split(names.function_name(*function));
        let of = names.get(*function);
        let frame = table.intern(Frame {
            name: split.head.to_vec(),
            file: names.file_name(of.file).to_vec(),
            object: names.object_name(of.object).to_vec(),
        });
        head.push(frame);
        // Of a caller only the name is told; two functions of one name cannot be told apart.
        named
            .entry(split.head)
            .and_modify(|known| *known = known.filter(|known| *known == frame))
            .or_insert(Some(frame));
    }
    let mut callers = Vec::new();
    for function in &all {
        let split = heads.split(names.function_name(*function));
        let frames =
            split.callers.into_iter().map(|name| {
                named.get(name).copied().flatten().unwrap_or_else(|| {
                    table.intern(Frame { name: name.to_vec(), file: Vec::new(), object: Vec::new() })
                })
            });
        callers.push(frames.collect());
    }
    Contexts { head, callers }
}
