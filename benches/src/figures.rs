//! The plot and the table of the README, from runs. Both are text that depends on the data alone, so that a test can say whether
//! they are up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::data::Run;

/// What is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Programs, in the order of rows.
    pub programs: Vec<String>,
    /// One for each metric.
    pub panel: Vec<Panel>,
}

/// A metric of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// The metric.
    pub metric: String,
    /// The run's folder.
    pub run: String,
}

/// Slowdowns of one program in one panel.
struct Pair {
    grind: f64,
    valgrind: f64,
}

/// A panel with its pairs, in the order of programs.
struct Column<'a> {
    panel: &'a Panel,
    run: &'a Run,
    pairs: Vec<Pair>,
}

fn columns<'a>(selection: &'a Selection, runs: &'a BTreeMap<String, Run>) -> Result<Vec<Column<'a>>> {
    let column = |panel: &'a Panel| {
        let run = runs.get(&panel.run).with_context(|| format!("there is no run {:?}", panel.run))?;
        let pair = |program: &String| {
            let by = |who| {
                run.value(program, &panel.metric, who)
                    .with_context(|| format!("{}: no {} of {program} by {who}", panel.run, panel.metric))
            };
            Ok(Pair { grind: by("grind")?, valgrind: by("valgrind")? })
        };
        Ok(Column { panel, run, pairs: selection.programs.iter().map(pair).collect::<Result<_>>()? })
    };
    selection.panel.iter().map(column).collect()
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0_u32, 0.0), |(n, sum), v| (n + 1, sum + v.ln()));
    (sum / f64::from(n.max(1))).exp()
}

/// The table of the README.
///
/// # Errors
/// If a run lacks what is selected.
pub fn table(selection: &Selection, runs: &BTreeMap<String, Run>) -> Result<String> {
    let columns = columns(selection, runs)?;
    let mut text = String::from("| slower than native |");
    for c in &columns {
        write!(text, " {} | Valgrind |", c.panel.title)?;
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: | ---: |".repeat(columns.len()));
    for (n, program) in selection.programs.iter().enumerate() {
        write!(text, "\n| {program} |")?;
        for c in &columns {
            write!(text, " {:.1} | {:.1} |", c.pairs[n].grind, c.pairs[n].valgrind)?;
        }
    }
    text.push_str("\n| geometric mean |");
    for c in &columns {
        let mean = |of: fn(&Pair) -> f64| geometric_mean(c.pairs.iter().map(of));
        write!(text, " **{:.1}** | {:.1} |", mean(|p| p.grind), mean(|p| p.valgrind))?;
    }
    text.push('\n');
    Ok(text)
}

/// One sentence: which runs the figures are of.
///
/// # Errors
/// If a run lacks what is selected.
pub fn source(selection: &Selection, runs: &BTreeMap<String, Run>) -> Result<String> {
    let mut seen: Vec<String> = Vec::new();
    for c in columns(selection, runs)? {
        let said = format!("{} on {}", c.run.env.cpu, c.run.env.date);
        if !seen.contains(&said) {
            seen.push(said);
        }
    }
    Ok(format!("Wall time over native, {} cores: {}.\n", columns(selection, runs)?[0].run.env.cores, seen.join("; ")))
}

const WIDTH: f64 = 860.0;
const LABELS: f64 = 120.0;
const ROW: f64 = 22.0;
const TOP: f64 = 58.0;
/// The scale's end.
const MOST: f64 = 100.0;

/// The plot: a panel for each metric, a row for each program, a logarithmic scale of slowdowns.
///
/// # Errors
/// If a run lacks what is selected.
pub fn plot(selection: &Selection, runs: &BTreeMap<String, Run>) -> Result<String> {
    let columns = columns(selection, runs)?;
    let panel = (WIDTH - LABELS) / columns.len() as f64;
    let height = TOP + ROW * selection.programs.len() as f64 + 34.0;
    let bottom = height - 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#333\">\n<title>Slowdown of grind and Valgrind, by program</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <circle cx=\"{LABELS}\" cy=\"14\" r=\"5\" fill=\"#1664a8\"/><text x=\"{}\" y=\"18\">grind</text>\n\
         <circle cx=\"{}\" cy=\"14\" r=\"4.5\" fill=\"none\" stroke=\"#b5472f\" stroke-width=\"1.5\"/>\
         <text x=\"{}\" y=\"18\">Valgrind</text>\n\
         <text x=\"{}\" y=\"18\" fill=\"#777\">times slower than native, logarithmic; further left is better</text>\n",
        LABELS + 10.0,
        LABELS + 70.0,
        LABELS + 80.0,
        LABELS + 150.0,
    );
    for (n, program) in selection.programs.iter().enumerate() {
        let y = TOP + ROW * (n as f64 + 0.5);
        writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{program}</text>", LABELS - 10.0, y + 4.0)?;
    }
    for (i, c) in columns.iter().enumerate() {
        let left = LABELS + panel * i as f64;
        let room = panel - 24.0;
        let x = |slowdown: f64| left + room * slowdown.clamp(1.0, MOST).ln() / MOST.ln();
        writeln!(svg, "<text x=\"{left:.1}\" y=\"46\" font-weight=\"bold\">{}</text>", c.panel.title)?;
        for (tick, line) in
            [(1.0, "#999"), (2.0, "#eee"), (5.0, "#eee"), (10.0, "#ccc"), (20.0, "#eee"), (50.0, "#eee")]
        {
            let at = x(tick);
            writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom:.1}\" stroke=\"{line}\"/>")?;
            if [1.0, 2.0, 5.0, 10.0, 50.0].contains(&tick) {
                writeln!(
                    svg,
                    "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#777\" font-size=\"10\">{tick}</text>",
                    bottom + 14.0
                )?;
            }
        }
        for (n, pair) in c.pairs.iter().enumerate() {
            let y = TOP + ROW * (n as f64 + 0.5);
            let (own, other) = (x(pair.grind), x(pair.valgrind));
            writeln!(
                svg,
                "<path d=\"M{own:.1} {y}H{other:.1}\" stroke=\"#ddd\" stroke-width=\"2\"/>\
                 <circle cx=\"{other:.1}\" cy=\"{y}\" r=\"4.5\" fill=\"#fff\" stroke=\"#b5472f\" stroke-width=\"1.5\"/>\
                 <circle cx=\"{own:.1}\" cy=\"{y}\" r=\"5\" fill=\"#1664a8\"/>"
            )?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// `text` with what stands between the two markers called `name` replaced.
///
/// # Errors
/// If the markers are not there.
pub fn replace_marked(text: &str, name: &str, with: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).with_context(|| format!("no line {begin:?}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no line {end:?}"))?;
    Ok(format!("{before}{begin}{with}{end}{after}"))
}

/// The files that are made from the data, by their paths in the repository, with what shall be in them.
///
/// # Errors
/// If the data are wrong, or a file cannot be read.
pub fn made(root: &std::path::Path) -> Result<Vec<(&'static str, String)>> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let selection: Selection = toml::from_str(&read("benches/figures.toml")?).context("benches/figures.toml")?;
    let runs = crate::data::runs(&root.join("benches/runs"))?;
    let table = format!("{}\n{}", table(&selection, &runs)?, source(&selection, &runs)?);
    Ok(vec![
        ("docs/speed.svg", plot(&selection, &runs)?),
        ("README.md", replace_marked(&read("README.md")?, "speed", &table)?),
    ])
}
