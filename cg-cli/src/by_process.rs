//! `--by-process`: the report of a tree of processes, the same in all programs that print it.
//!
//! Three tables: the tree, with each process's own and inclusive cost; the same by executable, or by command where processes
//! are folded; and functions over all processes, with what each executable or command spent in them. What is below the
//! threshold is left out, and the report says how much. Percentages are of all processes together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;

use cg_format::cachegrind::Detail;
use cg_format::show::{commas, percent, percent_text};
use cg_format::tree::Status;

use crate::json::Json;
use crate::options::{comma_list, event};
use crate::processes::{self, Forest, Reading};
use crate::progress::Counter;
use crate::substitute::Substitution;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// As [`Reading::fold`].
    pub fold: Option<&'a [Substitution]>,
    /// The events to show, separated by commas; none for the first.
    pub show: Option<&'a str>,
    /// The event to sort by; none for the first shown.
    pub sort: Option<&'a str>,
    /// What is below this percentage of the total is left out.
    pub threshold: f64,
}

/// The answer.
#[derive(Debug)]
pub struct Report {
    forest: Forest,
    shown: Vec<usize>,
    sort: usize,
    threshold: f64,
    folded: bool,
}

/// File and name of a function.
type Function<'a> = (&'a [u8], &'a [u8]);

/// A function, what it costs, and what each kind of processes spent in it.
type Spent<'a> = (Function<'a>, Vec<i128>, Vec<(usize, Vec<i128>)>);

impl Report {
    /// Reads the files.
    ///
    /// # Errors
    /// As [`processes::read`], or an event does not exist.
    pub fn read(paths: &[OsString], question: Question<'_>, counter: &Arc<Counter>) -> anyhow::Result<Self> {
        let how = Reading { fold: question.fold, detail: Detail::Functions, apart: false };
        let forest = processes::read(paths, how, counter)?;
        let index = |option: &str, list: &str| -> anyhow::Result<Vec<usize>> {
            comma_list(list).iter().map(|name| event(option, name, &forest.events)).collect()
        };
        let shown = question.show.map_or(Ok(vec![0]), |list| index("--show", list))?;
        let sort = question.sort.map_or(Ok(Vec::new()), |list| index("--sort", list))?;
        let sort = sort.first().or(shown.first()).copied().unwrap_or(0);
        Ok(Self { forest, shown, sort, threshold: question.threshold, folded: question.fold.is_some() })
    }

    #[allow(clippy::cast_precision_loss)]
    fn matters(&self, cost: &[i128]) -> bool {
        let total = self.forest.total[self.sort].unsigned_abs() as f64;
        cost[self.sort].unsigned_abs() as f64 * 100.0 >= self.threshold * total
    }

    /// The report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let forest = &self.forest;
        let processes: u64 = forest.kinds.iter().map(|kind| kind.processes).sum();
        let failed: u64 = forest.kinds.iter().map(|kind| kind.failed).sum();
        let ending = if processes == 1 { "" } else { "es" };
        let _ = writeln!(text, "{processes} process{ending}, {failed} failed");
        for (event, total) in forest.events.iter().zip(&forest.total) {
            let _ = writeln!(text, "{event}: {}", commas(*total));
        }
        self.tree_text(&mut text);
        self.kinds_text(&mut text);
        self.functions_text(&mut text);
        text
    }

    fn tree_text(&self, text: &mut String) {
        let children = self.forest.children();
        let mut rows = Vec::new();
        let mut hidden = 0_usize;
        let mut waiting: Vec<(usize, usize)> = self.forest.roots().map(|root| (root, 0)).collect();
        waiting.reverse();
        while let Some((at, depth)) = waiting.pop() {
            let node = &self.forest.nodes[at];
            waiting.extend(children[at].iter().rev().map(|child| (*child, depth + 1)));
            if !self.matters(&node.inclusive) {
                hidden += 1;
                continue;
            }
            let process = &node.process;
            let what = if process.command.is_empty() { &process.executable } else { &process.command };
            // Deeper than this nobody sees anything.
            let mut name = format!("{}{}", "  ".repeat(depth.min(40)), String::from_utf8_lossy(what));
            match (process.processes, process.status) {
                (1, Status::Exited(0)) => {}
                (1, status) => _ = write!(name, "  [{status}]"),
                (n, _) if node.failed > 0 => _ = write!(name, "  [{n} processes, {} failed]", node.failed),
                (n, _) => _ = write!(name, "  [{n} processes]"),
            }
            rows.push((self.cells(&process.cost, Some(&node.inclusive)), name));
        }
        self.table(text, "Processes", true, "process", &rows);
        self.tell_hidden(text, hidden, "processes");
    }

    fn kinds_text(&self, text: &mut String) {
        let mut kinds: Vec<_> = self.forest.kinds.iter().filter(|kind| kind.processes > 0).collect();
        kinds.sort_by(|a, b| b.own[self.sort].cmp(&a.own[self.sort]).then_with(|| a.name.cmp(&b.name)));
        let all = kinds.len();
        kinds.retain(|kind| self.matters(&kind.inclusive));
        let rows: Vec<_> = kinds
            .iter()
            .map(|kind| {
                let mut name = String::from_utf8_lossy(&kind.name).into_owned();
                let _ = match (kind.processes, kind.failed) {
                    (1, 0) => Ok(()),
                    (1, _) => write!(name, "  [failed]"),
                    (n, 0) => write!(name, "  [{n} processes]"),
                    (n, failed) => write!(name, "  [{n} processes, {failed} failed]"),
                };
                (self.cells(&kind.own, Some(&kind.inclusive)), name)
            })
            .collect();
        let (title, what) = if self.folded { ("Commands", "command") } else { ("Programs", "executable") };
        self.table(text, title, true, what, &rows);
        self.tell_hidden(text, all - kinds.len(), if self.folded { "commands" } else { "programs" });
    }

    fn functions_text(&self, text: &mut String) {
        let (functions, hidden) = self.functions();
        let mut rows = Vec::new();
        for ((file, name), cost, by_kind) in &functions {
            let name = format!("{}:{}", String::from_utf8_lossy(file), String::from_utf8_lossy(name));
            rows.push((self.cells(cost, None), name));
            for (kind, cost) in by_kind.iter().filter(|(_, cost)| self.matters(cost)) {
                let name = format!("    {}", String::from_utf8_lossy(&self.forest.kinds[*kind].name));
                rows.push((self.cells(cost, None), name));
            }
        }
        let what = if self.folded { "file:function, and by command" } else { "file:function, and by executable" };
        self.table(text, "Functions", false, what, &rows);
        self.tell_hidden(text, hidden, "functions");
    }

    fn tell_hidden(&self, text: &mut String, hidden: usize, what: &str) {
        if hidden > 0 {
            let _ = writeln!(text, "{what} below the threshold of {}%: {hidden}", self.threshold);
        }
    }

    /// Functions over all kinds, the dearest first, and how many are below the threshold.
    fn functions(&self) -> (Vec<Spent<'_>>, usize) {
        let mut functions: HashMap<Function<'_>, Vec<(usize, Vec<i128>)>> = HashMap::new();
        for (at, profile) in self.forest.kinds.iter().enumerate().filter_map(|(i, k)| Some((i, k.profile.as_ref()?))) {
            for file in profile.files() {
                for function in file.functions().filter(|function| !function.rows().is_empty()) {
                    let rows = function.rows();
                    let mut cost = vec![0; self.forest.events.len()];
                    for row in 0..rows.len() {
                        cost.iter_mut().enumerate().for_each(|(event, sum)| *sum += rows.count(row, event));
                    }
                    functions.entry((file.name(), function.name())).or_default().push((at, cost));
                }
            }
        }
        let all = functions.len();
        let mut functions: Vec<Spent<'_>> = functions
            .into_iter()
            .map(|(function, mut by_kind)| {
                by_kind.sort_by(|a, b| b.1[self.sort].cmp(&a.1[self.sort]).then(a.0.cmp(&b.0)));
                let mut sum = vec![0; self.forest.events.len()];
                for (_, cost) in &by_kind {
                    sum.iter_mut().zip(cost).for_each(|(sum, cost)| *sum += cost);
                }
                (function, sum, by_kind)
            })
            .filter(|(_, sum, _)| self.matters(sum))
            .collect();
        functions.sort_by(|a, b| b.1[self.sort].cmp(&a.1[self.sort]).then(a.0.cmp(&b.0)));
        let hidden = all - functions.len();
        (functions, hidden)
    }

    fn cells(&self, own: &[i128], inclusive: Option<&[i128]>) -> Vec<String> {
        let mut cells = Vec::new();
        for event in &self.shown {
            for cost in [Some(own), inclusive].into_iter().flatten() {
                let share = percent_text(percent(cost[*event], self.forest.total[*event]));
                cells.push(format!("{} ({})", commas(cost[*event]), share.trim()));
            }
        }
        cells
    }

    fn table(&self, text: &mut String, title: &str, inclusive: bool, what: &str, rows: &[(Vec<String>, String)]) {
        let line = "-".repeat(80);
        let _ = writeln!(text, "\n{line}\n-- {title}\n{line}");
        let mut titles = Vec::new();
        for event in self.shown.iter().map(|event| &self.forest.events[*event]) {
            titles.extend(if inclusive {
                vec![format!("{event} own"), format!("{event} incl")]
            } else {
                vec![event.clone()]
            });
        }
        let cells = rows.iter().map(|row| &row.0).chain([&titles]);
        let widths = cells.fold(vec![0; titles.len()], |widths: Vec<usize>, cells| {
            widths.iter().zip(cells).map(|(width, cell)| cell.len().max(*width)).collect()
        });
        let what = what.to_owned();
        for (cells, name) in [(&titles, &what)].into_iter().chain(rows.iter().map(|row| (&row.0, &row.1))) {
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(text, "{cell:>width$}  ");
            }
            let _ = writeln!(text, "{name}");
        }
    }

    /// The report as JSON: all processes, and the functions above the threshold.
    #[must_use]
    pub fn json(&self) -> String {
        let mut json = Json::default();
        let forest = &self.forest;
        json.begin_object();
        json.key("events");
        json.begin_array();
        forest.events.iter().for_each(|event| json.string(event.as_bytes()));
        json.end_array();
        counts(&mut json, "total", &forest.total);
        json.key("processes");
        json.begin_array();
        for node in &forest.nodes {
            json.begin_object();
            let process = &node.process;
            let parent = node.parent.map_or(0, |parent| forest.nodes[parent].process.id);
            let numbers =
                [("id", process.id), ("parent", parent), ("pid", process.pid), ("processes", process.processes)];
            for (key, number) in numbers.into_iter().chain([("failed", node.failed)]) {
                json.key(key);
                json.integer(number.into());
            }
            json.key("status");
            json.string(process.status.to_string().as_bytes());
            json.name("executable", &process.executable);
            json.name("command", &process.command);
            counts(&mut json, "own", &process.cost);
            counts(&mut json, "inclusive", &node.inclusive);
            json.end_object();
        }
        json.end_array();
        json.key(if self.folded { "commands" } else { "programs" });
        json.begin_array();
        for kind in forest.kinds.iter().filter(|kind| kind.processes > 0) {
            json.begin_object();
            json.name("name", &kind.name);
            for (key, number) in [("processes", kind.processes), ("failed", kind.failed)] {
                json.key(key);
                json.integer(number.into());
            }
            counts(&mut json, "own", &kind.own);
            counts(&mut json, "inclusive", &kind.inclusive);
            json.end_object();
        }
        json.end_array();
        let (functions, hidden) = self.functions();
        json.key("functions");
        json.begin_array();
        for ((file, name), cost, by_kind) in functions {
            json.begin_object();
            json.name("file", file);
            json.name("function", name);
            counts(&mut json, "own", &cost);
            json.key("by");
            json.begin_array();
            for (kind, cost) in by_kind {
                json.begin_object();
                json.name("name", &forest.kinds[kind].name);
                counts(&mut json, "own", &cost);
                json.end_object();
            }
            json.end_array();
            json.end_object();
        }
        json.end_array();
        json.key("hidden");
        json.integer(hidden as i128);
        json.end_object();
        json.finish()
    }
}

fn counts(json: &mut Json, key: &str, counts: &[i128]) {
    json.key(key);
    json.begin_array();
    counts.iter().for_each(|count| json.integer(*count));
    json.end_array();
}
