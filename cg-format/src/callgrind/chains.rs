//! Whole chains of calls, as a tree: what each costs by itself.
//!
//! They stand behind the functions of a part, in lines that readers of the format take for comments:
//!
//! ```text
//! #chains: 3
//! #ob=(1)
//! #fl=(2)
//! #fn=(4)
//! #fn=(7) leaf
//! #c=0 0 0 120
//! #c=1 1 10 30
//! #c=1 0 1
//! ```
//!
//! First how many there are, and the functions in them, by the numbers that they have elsewhere in the file. Then a line for each chain,
//! callers before what they call: how many callers it has, its function by its place among those, how often that was called
//! there, and self costs, of which zeros at the end are left out.
//!
//! Invariants: a chain's number is greater than its caller's; two chains differ in their callers or their functions.

use std::collections::HashMap;

use super::names::{FileId, FunctionId, Names, ObjectId};
use super::numbers::{cost, number};
use crate::count::TooLarge;
use crate::hash::NameKeys;
use crate::text::words;

/// What begins the lines of chains.
pub(super) const BEGIN: &[u8] = b"#chains:";

/// A chain of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The number of its caller's chain; none if there is no caller.
    pub parent: Option<u32>,
    /// The function that ran.
    pub function: FunctionId,
    /// How often it was called there.
    pub calls: u64,
}

/// The chains of a part.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    width: usize,
    chains: Vec<Chain>,
    costs: Vec<i64>,
    finder: HashMap<(Option<u32>, FunctionId), u32, NameKeys>,
    /// While chains are read: the one before and its callers, the outermost first.
    callers: Vec<u32>,
}

impl Chains {
    /// None yet, with so many events.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// None, with as many events.
    #[must_use]
    pub fn like(&self) -> Self {
        Self::new(self.width)
    }

    /// How many events there are.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// All of them, by number.
    #[must_use]
    pub fn all(&self) -> &[Chain] {
        &self.chains
    }

    /// The self costs of a chain, one for each event.
    #[must_use]
    pub fn costs(&self, chain: u32) -> &[i64] {
        &self.costs[chain as usize * self.width..][..self.width]
    }

    /// Adds to a chain, and returns its number. Zeros at the end of `costs` may be left out.
    ///
    /// # Errors
    /// [`TooLarge`] when a sum does not fit in 63 bits, or there are more than 32 bits can count.
    ///
    /// # Panics
    /// If `parent` is not the number of a chain, or there are more costs than events.
    pub fn add(&mut self, chain: Chain, costs: &[i64]) -> Result<u32, TooLarge> {
        assert!(chain.parent.is_none_or(|parent| (parent as usize) < self.chains.len()), "chain {:?}", chain.parent);
        let next = u32::try_from(self.chains.len()).map_err(|_| TooLarge)?;
        let number = *self.finder.entry((chain.parent, chain.function)).or_insert(next);
        if number == next {
            self.chains.push(Chain { calls: 0, ..chain });
            self.costs.resize(self.costs.len() + self.width, 0);
        }
        let calls = &mut self.chains[number as usize].calls;
        *calls = calls.checked_add(chain.calls).ok_or(TooLarge)?;
        let sums = &mut self.costs[number as usize * self.width..][..self.width];
        assert!(costs.len() <= sums.len(), "{} costs of {} events", costs.len(), sums.len());
        for (sum, cost) in sums.iter_mut().zip(costs) {
            *sum = sum.checked_add(*cost).ok_or(TooLarge)?;
        }
        Ok(number)
    }

    /// Adds to a chain that has so many callers, of those of the one that was added before: as chains are read
    /// ([`Sink::chain`](super::Sink::chain)).
    ///
    /// # Errors
    /// As [`Chains::add`].
    pub fn add_at(&mut self, depth: usize, function: FunctionId, calls: u64, costs: &[i64]) -> Result<(), TooLarge> {
        self.callers.truncate(depth);
        let parent = self.callers.last().copied();
        let number = self.add(Chain { parent, function, calls }, costs)?;
        self.callers.push(number);
        Ok(())
    }

    /// The sum of all self costs, event by event.
    #[must_use]
    pub fn total(&self) -> Vec<i128> {
        let mut total = vec![0; self.width];
        for costs in self.costs.chunks_exact(self.width.max(1)) {
            total.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += i128::from(*cost));
        }
        total
    }

    /// The chains with how many callers each has, callers before what they call and all that they call directly behind them; what one
    /// calls in the order in which it came.
    #[must_use]
    pub fn callers_first(&self) -> Vec<(u32, usize)> {
        let mut order: Vec<u32> = (0..self.chains.len() as u32).collect();
        order.sort_by_key(|n| self.caller(*n));
        self.nested(&order)
    }

    /// The same, but what one calls in the order of names.
    pub(super) fn in_order(&self, names: &Names) -> Vec<(u32, usize)> {
        let mut order: Vec<u32> = (0..self.chains.len() as u32).collect();
        let name = |n: &u32| names.order(self.chains[*n as usize].function);
        order.sort_by(|a, b| self.caller(*a).cmp(&self.caller(*b)).then_with(|| name(a).cmp(&name(b))));
        self.nested(&order)
    }

    /// The number of a chain's caller and one; 0: nobody is known to have called it.
    fn caller(&self, chain: u32) -> usize {
        self.chains[chain as usize].parent.map_or(0, |parent| parent as usize + 1)
    }

    /// Puts chains that are in the order of their callers behind those.
    fn nested(&self, order: &[u32]) -> Vec<(u32, usize)> {
        // Where those begin that a chain calls, by its number and one.
        let mut first = vec![0usize; self.chains.len() + 2];
        order.iter().for_each(|n| first[self.caller(*n) + 1] += 1);
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let called = |of: usize| order[first[of]..first[of + 1]].iter().rev().copied();
        let mut sorted = Vec::with_capacity(order.len());
        let mut waiting: Vec<(u32, usize)> = called(0).map(|n| (n, 0)).collect();
        while let Some((n, depth)) = waiting.pop() {
            sorted.push((n, depth));
            waiting.extend(called(n as usize + 1).map(|n| (n, depth + 1)));
        }
        sorted
    }

    /// Adds what another profile says, whose functions have these numbers here.
    ///
    /// # Errors
    /// As [`Chains::add`].
    pub fn append(&mut self, other: &Self, functions: &[FunctionId]) -> Result<(), TooLarge> {
        let mut numbers: Vec<u32> = Vec::with_capacity(other.chains.len());
        for (n, chain) in (0..).zip(&other.chains) {
            let parent = chain.parent.map(|parent| numbers[parent as usize]);
            let function = functions[chain.function.index()];
            numbers.push(self.add(Chain { parent, function, calls: chain.calls }, other.costs(n))?);
        }
        Ok(())
    }

    /// The functions of chains in that order, each once.
    pub(super) fn functions(&self, order: &[(u32, usize)]) -> (Vec<FunctionId>, HashMap<FunctionId, usize>) {
        let mut functions = Vec::new();
        let mut places = HashMap::new();
        for (n, _) in order {
            let function = self.chains[*n as usize].function;
            places.entry(function).or_insert_with(|| {
                functions.push(function);
                functions.len() - 1
            });
        }
        (functions, places)
    }
}

/// Equal if they have the same chains with the same counts, whatever their numbers.
impl PartialEq for Chains {
    fn eq(&self, other: &Self) -> bool {
        let mut numbers: Vec<u32> = Vec::new();
        self.width == other.width
            && self.chains.len() == other.chains.len()
            && (0u32..).zip(&self.chains).all(|(n, chain)| {
                let parent = chain.parent.map(|parent| numbers[parent as usize]);
                let Some(same) = other.finder.get(&(parent, chain.function)) else { return false };
                numbers.push(*same);
                other.chains[*same as usize].calls == chain.calls && other.costs(*same) == self.costs(n)
            })
    }
}

/// What has been read of the chains of a part: the functions, and the chain that was read last with its callers.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) object: Option<ObjectId>,
    pub(super) file: Option<FileId>,
    pub(super) functions: Vec<FunctionId>,
    /// How many callers the next chain may have.
    deepest: usize,
}

impl Reading {
    /// What a line says of a chain, behind `#c=`, with `costs` emptied and filled: how many callers it has, its function, and its
    /// calls. Nothing if it is none.
    pub(super) fn chain(&mut self, text: &[u8], costs: &mut Vec<i64>) -> Option<(usize, FunctionId, u64)> {
        let mut words = words(text);
        let mut next = || number(words.next()?)?.ok();
        let (depth, function, calls) = (next()?, next()?, next()?);
        let depth = usize::try_from(depth).ok().filter(|depth| *depth <= self.deepest)?;
        let function = *self.functions.get(usize::try_from(function).ok()?)?;
        costs.clear();
        for word in words {
            costs.push(cost(word)?.ok()?.cast_signed());
        }
        self.deepest = depth + 1;
        Some((depth, function, calls))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Part, PartHeader, WriteOptions, Writer, read_profile};
    use super::*;

    fn part(names: &mut Names, order: &[usize]) -> Part {
        let file = names.file(b"a.c");
        let object = names.object(b"prog");
        let [main, leaf, other] = [&b"main"[..], b"leaf", b"other"].map(|name| names.function(name, file, object));
        let mut part = Part::new(PartHeader { events: vec!["Ir".into(), "Dr".into()], ..PartHeader::default() });
        let root = part.add_chain(Chain { parent: None, function: main, calls: 0 }, &[120]).unwrap();
        let all = [(leaf, 10, &[30, 4][..]), (main, 1, &[0, 0]), (other, 2, &[5])];
        for n in order {
            let (function, calls, costs) = all[*n];
            let chain = part.add_chain(Chain { parent: Some(root), function, calls }, costs).unwrap();
            if *n == 1 {
                part.add_chain(Chain { parent: Some(chain), function: leaf, calls: 3 }, &[1, 1]).unwrap();
            }
        }
        part
    }

    #[test]
    fn what_is_written_is_read_again_whatever_the_order() {
        let section = "#chains: 5\n#ob=(1) prog\n#fl=(1) a.c\n#fn=(1) main\n#fn=(2) leaf\n#fn=(3) other\n\
            #c=0 0 0 120\n#c=1 1 10 30 4\n#c=1 0 1\n#c=2 1 3 1 1\n#c=1 2 2 5\ntotals: 0 0\n";
        for order in [[0, 1, 2], [2, 1, 0]] {
            let mut names = Names::default();
            let part = part(&mut names, &order);
            let mut text = Vec::new();
            Writer::new(WriteOptions::default()).part(&mut text, &names, &part, &[]).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.ends_with(section), "{text}");
            let read = read_profile(text.as_bytes(), "p").unwrap();
            assert_eq!(read.parts[0].chains().total(), [156, 5]);
            let mut again = Vec::new();
            Writer::new(WriteOptions::default()).part(&mut again, &read.names, &read.parts[0], &[]).unwrap();
            assert_eq!(String::from_utf8(again).unwrap(), text);
        }
    }

    #[test]
    fn the_same_chain_is_added_up() {
        let mut names = Names::default();
        let (mut one, two) = (part(&mut names, &[0, 1, 2]), part(&mut names, &[2, 0, 1]));
        assert_eq!(one.chains(), two.chains());
        let before = one.chains().all().len();
        let root = one.chains().all()[0];
        assert_eq!(one.add_chain(root, &[1]), Ok(0));
        assert_eq!((one.chains().all().len(), one.chains().costs(0)), (before, &[121, 0][..]));
        assert_ne!(one.chains(), two.chains());
        assert_eq!(one.add_chain(root, &[i64::MAX]), Err(TooLarge));
    }

    #[test]
    fn callers_stand_before_what_they_call_and_profiles_are_added_up() {
        let mut names = Names::default();
        let part = part(&mut names, &[0, 1, 2]);
        let chains = part.chains();
        assert_eq!(chains.callers_first(), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 1)]);
        // Elsewhere two of the functions have each other's numbers.
        let functions: Vec<FunctionId> = names.functions().collect();
        let map = [functions[1], functions[0], functions[2]];
        let mut sum = Chains::new(2);
        sum.append(chains, &functions).unwrap();
        sum.append(chains, &functions).unwrap();
        assert_eq!((sum.all().len(), sum.total()), (5, vec![312, 10]));
        assert_eq!((sum.all()[1].calls, sum.costs(1)), (20, &[60, 8][..]));
        sum.append(chains, &map).unwrap();
        assert_eq!((sum.all().len(), sum.total()), (10, vec![468, 15]));
        assert_eq!(sum.all()[sum.all().len() - 1].function, functions[2]);
    }

    #[test]
    fn lines_that_say_nothing_of_chains_are_comments_and_wrong_ones_are_told() {
        let read = |section: &str| read_profile(format!("events: Ir\nfn=f\n1 1\n{section}").as_bytes(), "p");
        assert!(read("#c=nonsense\n#fn=x\n").is_ok(), "there are no chains");
        let good = "#chains: 2\n#fn=f\n# a comment\n#\n#c=0 0 1 7\n#c=1 0 1 -2\n";
        assert_eq!(read(good).unwrap().parts[0].chains().total(), [5]);
        for bad in ["#c=1 0 1 7", "#c=0 1 1 7", "#c=0 0", "#c=", "#c=0 0 1 x", "#c=0 0 1 7 7", "#c=-1 0 0"] {
            let error = read(&format!("#chains: 1\n#fn=f\n{bad}\n")).expect_err(bad);
            assert_eq!(error.line, Some(6), "{bad}: {error}");
        }
        // Chains end with their part.
        assert!(read("#chains: 1\n#fn=f\ntotals: 1\n#c=nonsense\n").is_ok());
    }
}
