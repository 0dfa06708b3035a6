//! Contexts: a function and its last callers, as far as they are to be told apart.
//!
//! A *path* is what the model remembers of the functions on the stack: the top one and as many callers as any function may
//! want. Several paths may show as one *context*, the top function and as many callers as that function wants; a context has
//! a *node* for each level of recursion. Paths are made by pushing a function; the same function on top of itself, or one of
//! its group, does not deepen the path. All three are numbered densely and never forgotten.

use crate::code::FunctionId;
use rustc_hash::FxHashMap;

/// A path, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) u32);

impl PathId {
    /// The path of nothing: below a thread's or a signal handler's first function.
    pub(crate) const EMPTY: PathId = PathId(0);
}

/// What one function wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) callers: u16,
    pub(crate) recursions: u32,
    pub(crate) group: u32,
    /// Functions below it are told apart by it.
    pub(crate) owns: bool,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathInfo {
    /// The function that its costs are booked on.
    pub(crate) top: FunctionId,
    /// The node of the first level of recursion.
    pub(crate) first_node: u32,
    /// How many nodes there are.
    pub(crate) recursions: u32,
    group: u32,
    /// The innermost function of the path by which those below it are told apart.
    owner: Option<FunctionId>,
}

/// Functions, and the owner of the first one.
type Key = (Box<[FunctionId]>, Option<FunctionId>);

/// All paths, contexts and nodes of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Contexts {
    /// Longest path.
    longest: usize,
    infos: Vec<PathInfo>,
    lists: Vec<Box<[FunctionId]>>,
    children: FxHashMap<(u32, u32), PathId>,
    by_list: FxHashMap<Key, PathId>,
    contexts: FxHashMap<Key, u32>,
    /// By context: its functions. By node: context and level.
    context_lists: Vec<Box<[FunctionId]>>,
    nodes: Vec<(u32, u32)>,
}

impl Contexts {
    /// `most_callers` is the most that any function wants.
    pub(crate) fn new(most_callers: u16) -> Contexts {
        let empty = PathInfo { top: FunctionId(u32::MAX), first_node: u32::MAX, recursions: 0, group: 0, owner: None };
        Contexts {
            longest: usize::from(most_callers) + 1,
            infos: vec![empty],
            lists: vec![Box::default()],
            children: FxHashMap::default(),
            by_list: FxHashMap::default(),
            contexts: FxHashMap::default(),
            context_lists: Vec::new(),
            nodes: Vec::new(),
        }
    }

    pub(crate) fn info(&self, path: PathId) -> PathInfo {
        self.infos[path.0 as usize]
    }

    /// The path after `function` was called from `path`. `wish` is the function's.
    pub(crate) fn push(&mut self, path: PathId, function: FunctionId, wish: Wish) -> PathId {
        if let Some(found) = self.children.get(&(path.0, function.0)) {
            return *found;
        }
        let above = self.info(path);
        let same = path != PathId::EMPTY && (above.top == function || wish.group != 0 && above.group == wish.group);
        let found = if same { path } else { self.intern(path, function, wish) };
        self.children.insert((path.0, function.0), found);
        found
    }

    fn intern(&mut self, path: PathId, function: FunctionId, wish: Wish) -> PathId {
        let callers = &self.lists[path.0 as usize];
        let callers = callers.iter().take(self.longest - 1).copied();
        let list: Box<[_]> = std::iter::once(function).chain(callers).collect();
        let owner = if wish.owns { None } else { self.infos[path.0 as usize].owner };
        let key = (list.clone(), owner);
        if let Some(found) = self.by_list.get(&key) {
            return *found;
        }
        let id = PathId(self.infos.len().try_into().expect("fewer than 2^32 paths"));
        let shown: Box<[_]> = list.iter().take(usize::from(wish.callers) + 1).copied().collect();
        let recursions = wish.recursions.max(1);
        let context = (shown, owner);
        let first_node = match self.contexts.get(&context) {
            Some(first) => *first,
            None => {
                let first = u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes");
                let number = self.context_lists.len() as u32;
                self.nodes.extend((1..=recursions).map(|level| (number, level)));
                // Callers may be told apart up to that one, or beyond.
                let further = owner.filter(|owner| !context.0[1..].contains(owner));
                self.context_lists.push(context.0.iter().copied().chain(further).collect());
                self.contexts.insert(context, first);
                first
            }
        };
        let owner = if wish.owns { Some(function) } else { owner };
        self.infos.push(PathInfo { top: function, first_node, recursions, group: wish.group, owner });
        self.by_list.insert(key, id);
        self.lists.push(list);
        id
    }

    /// The callers that tell a path apart, the last one first.
    pub(crate) fn callers(&self, path: PathId) -> &[FunctionId] {
        self.lists[path.0 as usize].get(1..).unwrap_or_default()
    }

    /// The functions of a node, its own first, and its level of recursion.
    pub(crate) fn node(&self, node: u32) -> (&[FunctionId], u32) {
        let (context, level) = self.nodes[node as usize];
        (&self.context_lists[context as usize], level)
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }
}
