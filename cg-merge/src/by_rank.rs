//! `--by-rank`: how evenly the ranks of a parallel program share the cost of each function.
//!
//! Profiles are read one after another on each core and only their sums by function are kept: for each function what the
//! least and the most of any rank is, and the sum over all. So memory depends on the functions there are and not on the
//! number of ranks. The table does not depend on the number of cores. Profiles may be of cachegrind or of callgrind.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::Read;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow, bail};
use cg_cli::json::Json;
use cg_cli::progress::Counter;
use cg_cli::substitute::Substitution;
use cg_cli::{input, rank};
use cg_format::cachegrind::{self, Detail, Profile, ReadOptions, SummaryRule};
use cg_format::callgrind::{Call, FunctionId, IdHasher, Jump, PartHeader, Position, Sink, read};
use cg_format::count::TooLarge;
use cg_format::hash::NameKeys;
use cg_format::show::{commas, percent, percent_text};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The event; none for the first of the first profile.
    pub(crate) event: Option<&'a str>,
    /// How ranks are made of names.
    pub(crate) rule: Option<&'a Substitution>,
    /// Functions below this percentage of the total are left out.
    pub(crate) threshold: f64,
}

/// What ranks spent in a function, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spread {
    sum: i128,
    least: i128,
    most: i128,
    /// The lowest of the ranks with the most.
    most_rank: u64,
    /// How many ranks have it.
    ranks: u64,
}

impl Spread {
    fn of(rank: u64, cost: i128) -> Self {
        Self { sum: cost, least: cost, most: cost, most_rank: rank, ranks: 1 }
    }

    fn join(&mut self, other: Self) {
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        if (other.most, std::cmp::Reverse(other.most_rank)) > (self.most, std::cmp::Reverse(self.most_rank)) {
            (self.most, self.most_rank) = (other.most, other.most_rank);
        }
        self.ranks += other.ranks;
    }

    /// Over all ranks: those without it spent 0.
    fn over(mut self, ranks: u64) -> Self {
        if self.ranks < ranks {
            self.least = self.least.min(0);
        }
        self
    }
}

/// A spread while ranks come one after another; of the last one there may be more to come.
#[derive(Debug)]
struct Coming {
    before: Option<Spread>,
    rank: u64,
    cost: i128,
}

impl Coming {
    fn add(&mut self, rank: u64, cost: i128) {
        if self.rank == rank {
            self.cost += cost;
        } else {
            *self = Self { before: Some(self.spread()), rank, cost };
        }
    }

    fn spread(&self) -> Spread {
        let mut spread = Spread::of(self.rank, self.cost);
        if let Some(before) = self.before {
            spread.join(before);
        }
        spread
    }
}

/// Something for each function, by file and then by name: looked up without a copy of either.
#[derive(Debug)]
struct ByFunction<T>(HashMap<Vec<u8>, HashMap<Vec<u8>, T, NameKeys>, NameKeys>);

impl<T> Default for ByFunction<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> ByFunction<T> {
    /// What there is for a function is changed, or made.
    fn update(&mut self, file: &[u8], name: &[u8], change: impl FnOnce(&mut T), make: impl FnOnce() -> T) {
        if !self.0.contains_key(file) {
            self.0.insert(file.to_vec(), HashMap::default());
        }
        let functions = self.0.get_mut(file).expect("it was put there");
        match functions.get_mut(name) {
            Some(known) => change(known),
            None => _ = functions.insert(name.to_vec(), make()),
        }
    }

    fn into_iter(self) -> impl Iterator<Item = (Function, T)> {
        self.0
            .into_iter()
            .flat_map(|(file, functions)| functions.into_iter().map(move |(name, value)| ((file.clone(), name), value)))
    }
}

/// File and name of a function.
type Function = (Vec<u8>, Vec<u8>);

/// Spreads of all functions.
#[derive(Debug, Default)]
struct Table {
    event: String,
    total: Option<Spread>,
    functions: ByFunction<Spread>,
}

/// The answer.
#[derive(Debug)]
pub(crate) struct Report {
    event: String,
    ranks: u64,
    files: usize,
    total: Spread,
    /// The dearest difference between most and mean first.
    functions: Vec<(Function, Spread)>,
    hidden: usize,
}

impl Report {
    /// Reads profiles.
    ///
    /// # Errors
    /// A rank is not to be found in a name, or a profile cannot be read or does not count the event.
    pub(crate) fn read(paths: &[OsString], question: Question<'_>, counter: &Arc<Counter>) -> anyhow::Result<Self> {
        let found = rank::ranks(paths, question.rule)?;
        let mut files = Vec::new();
        for (path, rank) in paths.iter().zip(found) {
            let rank = rank.with_context(|| {
                format!("{}: its name does not tell a rank; --rank=s/OLD/NEW/ makes one of it", input::name(path))
            })?;
            files.push((rank, path));
        }
        // A rank may have run several programs.
        files.sort_by_key(|(rank, _)| *rank);
        let groups: Vec<&[(u64, &OsString)]> = files.chunk_by(|a, b| a.0 == b.0).collect();
        let event = match question.event {
            Some(event) => event.to_owned(),
            None => first_event(&paths[0])?,
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get).min(groups.len().max(1));
        let tables: Vec<anyhow::Result<Table>> = thread::scope(|scope| {
            let runs = groups.chunks(groups.len().div_ceil(cores).max(1));
            let threads: Vec<_> = runs.map(|run| scope.spawn(|| table(run, &event, counter))).collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|result| result.unwrap_or_else(|_| Err(anyhow!("a thread failed")))).collect()
        });
        let mut whole = Table { event, ..Table::default() };
        for table in tables {
            whole.join(table?);
        }
        let ranks = groups.len() as u64;
        let total = whole.total.context("no profiles are named")?;
        let mut functions: Vec<(Function, Spread)> =
            whole.functions.into_iter().map(|(function, spread)| (function, spread.over(ranks))).collect();
        let all = functions.len();
        #[allow(clippy::cast_precision_loss)]
        functions.retain(|(_, spread)| spread.sum.abs() as f64 * 100.0 >= question.threshold * total.sum.abs() as f64);
        let hidden = all - functions.len();
        // Times the number of ranks, to stay with integers.
        let lost = |spread: &Spread| spread.most * i128::from(ranks) - spread.sum;
        functions.sort_by(|a, b| lost(&b.1).cmp(&lost(&a.1)).then_with(|| a.0.cmp(&b.0)));
        Ok(Self { event: whole.event, ranks, files: files.len(), total, functions, hidden })
    }

    /// The table as text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}: {} ranks, {} profiles\n\n", self.event, self.ranks, self.files);
        let titles =
            ["min", "mean", "max", "max/mean", "max rank", "lost", "lost %", "file:function"].map(str::to_owned);
        let mut rows = vec![titles, self.row(&self.total, "TOTAL".to_owned())];
        rows.extend(self.functions.iter().map(|((file, name), spread)| {
            self.row(spread, format!("{}:{}", String::from_utf8_lossy(file), String::from_utf8_lossy(name)))
        }));
        let widths: Vec<usize> =
            (0..7).map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0)).collect();
        for row in &rows {
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(text, "{cell:>width$}  ");
            }
            let _ = writeln!(text, "{}", row[7]);
        }
        text.push_str(
            "\nlost: what the ranks together wait for the one with the most, if they wait for each other there\n",
        );
        if self.hidden > 0 {
            let _ = writeln!(text, "functions below the threshold: {}", self.hidden);
        }
        text
    }

    fn row(&self, spread: &Spread, name: String) -> [String; 8] {
        let lost = self.lost(spread);
        [
            commas(spread.least),
            commas(self.mean(spread)),
            commas(spread.most),
            self.ratio(spread).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}")),
            spread.most_rank.to_string(),
            commas(lost),
            percent_text(percent(lost, self.total.sum)).trim().to_owned(),
            name,
        ]
    }

    /// The mean over all ranks, rounded.
    fn mean(&self, spread: &Spread) -> i128 {
        let ranks = i128::from(self.ranks);
        (spread.sum + ranks / 2).div_euclid(ranks)
    }

    /// What ranks would spend together if all had the most, less what they spent.
    fn lost(&self, spread: &Spread) -> i128 {
        spread.most * i128::from(self.ranks) - spread.sum
    }

    #[allow(clippy::cast_precision_loss)]
    fn ratio(&self, spread: &Spread) -> Option<f64> {
        (spread.sum > 0).then(|| spread.most as f64 * self.ranks as f64 / spread.sum as f64)
    }

    /// The table as JSON.
    pub(crate) fn json(&self) -> String {
        let mut json = Json::default();
        json.begin_object();
        json.key("event");
        json.string(self.event.as_bytes());
        json.key("ranks");
        json.integer(i128::from(self.ranks));
        json.key("profiles");
        json.integer(self.files as i128);
        json.key("total");
        json.begin_object();
        self.members(&mut json, &self.total);
        json.end_object();
        json.key("functions");
        json.begin_array();
        for ((file, name), spread) in &self.functions {
            json.begin_object();
            json.name("file", file);
            json.name("function", name);
            self.members(&mut json, spread);
            json.end_object();
        }
        json.end_array();
        json.key("hidden");
        json.integer(self.hidden as i128);
        json.end_object();
        json.finish()
    }

    fn members(&self, json: &mut Json, spread: &Spread) {
        let lost = self.lost(spread);
        for (key, value) in [("sum", spread.sum), ("min", spread.least), ("max", spread.most), ("lost", lost)] {
            json.key(key);
            json.integer(value);
        }
        json.key("max_by_mean");
        match self.ratio(spread) {
            Some(ratio) => json.float(ratio),
            None => json.null(),
        }
        json.key("max_rank");
        json.integer(i128::from(spread.most_rank));
    }
}

/// Spreads over the ranks of a run of files; each group is of one rank.
fn table(groups: &[&[(u64, &OsString)]], event: &str, counter: &Arc<Counter>) -> anyhow::Result<Table> {
    let mut functions = ByFunction::<Coming>::default();
    let mut total: Option<Spread> = None;
    for group in groups {
        let rank = group[0].0;
        let mut sum = 0;
        for (_, path) in *group {
            let name = input::name(path);
            if let Some(profile) = plain(path, &name, counter)? {
                let Some(at) = profile.header.events.iter().position(|known| known == event) else {
                    bail!("{name}: there is no event `{event}`, but: {}", profile.header.events.join(" "));
                };
                for file in profile.files() {
                    for function in file.functions().filter(|function| !function.rows().is_empty()) {
                        let rows = function.rows();
                        let cost = (0..rows.len()).map(|row| rows.count(row, at)).sum();
                        sum += cost;
                        let new = || Coming { before: None, rank, cost };
                        functions.update(file.name(), function.name(), |known| known.add(rank, cost), new);
                    }
                }
                continue;
            }
            let opened = input::open(path, counter).with_context(|| name.clone())?;
            let mut sums = Sums { event, at: None, missing: None, functions: HashMap::default() };
            let outcome = read(opened, &name, &mut sums)?;
            if let Some(events) = sums.missing {
                bail!("{name}: there is no event `{event}`, but: {events}");
            }
            let names = outcome.names;
            for (function, cost) in sums.functions {
                let (file, name) = (names.file_name(names.get(function).file), names.function_name(function));
                sum += cost;
                // Functions of one name in two objects are one here.
                functions.update(file, name, |known| known.add(rank, cost), || Coming { before: None, rank, cost });
            }
        }
        let mut all = Spread::of(rank, sum);
        if let Some(before) = total {
            all.join(before);
        }
        total = Some(all);
    }
    let mut table = Table { total, ..Table::default() };
    for ((file, name), coming) in functions.into_iter() {
        let spread = coming.spread();
        table.functions.update(&file, &name, |known| known.join(spread), || spread);
    }
    Ok(table)
}

/// A profile without calls, whose reader is several times as fast: one row for each function. None if it may be one of calls,
/// whatever else is wrong with it.
fn plain(path: &OsString, name: &str, counter: &Arc<Counter>) -> anyhow::Result<Option<Profile>> {
    let mut opened = input::open(path, counter).with_context(|| name.to_owned())?;
    let mut start = Vec::new();
    opened.by_ref().take(5).read_to_end(&mut start).with_context(|| name.to_owned())?;
    if !(start.starts_with(b"desc:") || start.starts_with(b"cmd:")) {
        return Ok(None);
    }
    let options = ReadOptions { detail: Detail::Functions, summary: SummaryRule::Ignored };
    let Ok(profile) = cachegrind::read(start.as_slice().chain(opened), name, &options) else { return Ok(None) };
    // Names with numbers are those of the other format, whose first lines may be the same.
    let numbered = |name: &[u8]| name.first() == Some(&b'(') && name.get(1).is_some_and(u8::is_ascii_digit);
    let other = profile.files().any(|file| numbered(file.name()) || file.functions().any(|f| numbered(f.name())));
    Ok((!other).then_some(profile))
}

impl Table {
    fn join(&mut self, other: Self) {
        if let Some(total) = other.total {
            match &mut self.total {
                Some(known) => known.join(total),
                None => self.total = Some(total),
            }
        }
        for ((file, name), spread) in other.functions.into_iter() {
            self.functions.update(&file, &name, |known| known.join(spread), || spread);
        }
    }
}

/// Sums of one event by function, without its lines.
#[derive(Debug)]
struct Sums<'a> {
    event: &'a str,
    /// Where the event is among the costs of the part at hand.
    at: Option<usize>,
    /// The events of the first part that does not count it.
    missing: Option<String>,
    functions: HashMap<FunctionId, i128, std::hash::BuildHasherDefault<IdHasher>>,
}

impl Sink for Sums<'_> {
    fn part(&mut self, header: &PartHeader) {
        self.at = header.events.iter().position(|event| event == self.event);
        if self.at.is_none() {
            self.missing.get_or_insert_with(|| header.events.join(" "));
        }
    }

    fn row(&mut self, function: FunctionId, _at: Position, costs: &[i64]) -> Result<(), TooLarge> {
        if let Some(cost) = self.at.and_then(|at| costs.get(at)) {
            *self.functions.entry(function).or_default() += i128::from(*cost);
        }
        Ok(())
    }

    fn call(&mut self, _function: FunctionId, _at: Position, _call: &Call, _costs: &[i64]) -> Result<(), TooLarge> {
        // What a call costs, its callee spends.
        Ok(())
    }

    fn jump(&mut self, _function: FunctionId, _at: Position, _jump: &Jump) {
        // Jumps have no cost.
    }
}

/// The first event of a profile, by its header.
fn first_event(path: &OsString) -> anyhow::Result<String> {
    /// Keeps the first event that comes.
    #[derive(Debug, Default)]
    struct First(Option<String>);
    impl Sink for First {
        fn part(&mut self, header: &PartHeader) {
            self.0 = self.0.take().or_else(|| header.events.first().cloned());
        }
        fn row(&mut self, _: FunctionId, _: Position, _: &[i64]) -> Result<(), TooLarge> {
            Ok(())
        }
        fn call(&mut self, _: FunctionId, _: Position, _: &Call, _: &[i64]) -> Result<(), TooLarge> {
            Ok(())
        }
        fn jump(&mut self, _: FunctionId, _: Position, _: &Jump) {}
    }
    let name = input::name(path);
    if path == "-" {
        bail!("standard input has no name to tell a rank by");
    }
    let mut first = First::default();
    let opened = input::open(path, &Arc::new(Counter::default())).with_context(|| name.clone())?;
    read(opened, &name, &mut first)?;
    first.0.with_context(|| format!("{name}: there are no events"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_do_not_depend_on_the_order_of_ranks() {
        let costs = [(0, 5), (1, 9), (2, 9), (3, 1)];
        let mut expected = None;
        for start in 0..4 {
            let mut spread: Option<Spread> = None;
            for i in 0..4 {
                let (rank, cost) = costs[(start + i * 3) % 4];
                let one = Spread::of(rank, cost);
                spread = Some(spread.map_or(one, |mut known| {
                    known.join(one);
                    known
                }));
            }
            let spread = spread.unwrap();
            assert_eq!(*expected.get_or_insert(spread), spread);
            assert_eq!(spread, Spread { sum: 24, least: 1, most: 9, most_rank: 1, ranks: 4 });
        }
    }
}
