//! The report as Markdown, for the summary page of a GitHub job: totals, bounds, functions above the threshold.

use std::fmt::Write;

use cg_format::show::{commas, percent, percent_text};

use crate::grown::{self, signed};
use crate::growth::{self, FunctionVerdict, Growth};
use crate::model::{Model, Verdict};
use crate::style::number;

/// The whole report.
pub(crate) fn report(
    model: &Model,
    verdicts: &[Verdict<'_>],
    of_functions: &[FunctionVerdict<'_>],
) -> anyhow::Result<String> {
    let mut text = String::new();
    totals(&mut text, model, verdicts);
    for FunctionVerdict { bound, event, failed } in of_functions {
        let percent = number(bound.percent);
        let name = cell(bound.event.as_bytes());
        if failed.is_empty() {
            let _ = writeln!(text, "\nNo function grew by more than {percent}% in {name}.");
            continue;
        }
        let _ = writeln!(text, "\n**{} above {percent}% in {name}**\n", plural(failed.len()));
        grown(&mut text, model, *event, &failed.iter().collect::<Vec<_>>());
    }
    match &model.pair {
        None => functions(&mut text, model)?,
        Some(pair) => {
            let changed = growth::changed(model, pair)?;
            for event in &model.show {
                let of = growth::of_event(&changed, *event);
                if of.is_empty() {
                    continue;
                }
                let name = cell(model.names(&[*event])[0].as_bytes());
                let _ = writeln!(text, "\n<details><summary>{name}: {} changed</summary>\n", plural(of.len()));
                grown(&mut text, model, *event, &of);
                text.push_str("\n</details>\n");
            }
        }
    }
    Ok(text)
}

fn plural(count: usize) -> String {
    if count == 1 { "1 function".to_owned() } else { format!("{count} functions") }
}

/// A table of functions: what each was, is, and how much it grew.
fn grown(text: &mut String, model: &Model, event: usize, all: &[&Growth<'_>]) {
    let name = cell(model.names(&[event])[0].as_bytes());
    let _ = writeln!(text, "| {name} before | After | Change | % | Function | File |");
    text.push_str("| ---: | ---: | ---: | ---: | :--- | :--- |\n");
    for growth in all.iter().take(growth::MOST) {
        let [before, after] = &growth.sides;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            commas(before[event]),
            commas(after[event]),
            signed(growth.change(event)),
            grown::percent(growth.percent(event)),
            cell(growth.function),
            cell(growth.file),
        );
    }
    if all.len() > growth::MOST {
        let _ = writeln!(text, "\nand {} more", all.len() - growth::MOST);
    }
}

fn totals(text: &mut String, model: &Model, verdicts: &[Verdict<'_>]) {
    let names = model.names(&model.show);
    let total = model.profile.total();
    let Some([before, after]) = &model.sides else {
        text.push_str("| Event | Total |\n| :--- | ---: |\n");
        for (name, event) in names.iter().zip(&model.show) {
            let _ = writeln!(text, "| {} | {} |", cell(name.as_bytes()), commas(total[*event]));
        }
        return;
    };
    let bounds = !verdicts.is_empty();
    text.push_str("| Event | Before | After | Change | % |");
    text.push_str(if bounds { " Bound | |\n" } else { "\n" });
    text.push_str("| :--- | ---: | ---: | ---: | ---: |");
    text.push_str(if bounds { " ---: | :--- |\n" } else { "\n" });
    // Events with bounds are shown even if `--show` leaves them out: they decide.
    let mut rows = names.clone();
    for verdict in verdicts {
        if !rows.contains(&verdict.bound.event.as_str()) {
            rows.push(&verdict.bound.event);
        }
    }
    for name in rows {
        let Some(event) = model.profile.header.events.iter().position(|event| event == name) else { continue };
        let change = total[event];
        let growth = percent(change, before[event].abs());
        let _ = write!(
            text,
            "| {} | {} | {} | {} | {} |",
            cell(name.as_bytes()),
            commas(before[event]),
            commas(after[event]),
            signed(change),
            growth.map_or_else(|| "n/a".to_owned(), |growth| format!("{growth:+.2}%")),
        );
        // Of several bounds the lowest decides.
        let of_event = verdicts.iter().filter(|verdict| verdict.bound.event == name);
        match of_event.min_by(|a, b| a.bound.percent.total_cmp(&b.bound.percent)) {
            Some(verdict) => {
                let outcome = if verdict.failed { "**above**" } else { "ok" };
                let _ = write!(text, " {}% | {outcome} |", number(verdict.bound.percent));
            }
            None if bounds => text.push_str(" | |"),
            None => {}
        }
        text.push('\n');
    }
}

fn functions(text: &mut String, model: &Model) -> anyhow::Result<()> {
    let files = model.by_file()?;
    let outers = model.by_function(&files)?;
    if outers.is_empty() {
        return Ok(());
    }
    let names = model.names(&model.show);
    text.push_str("\n<details><summary>Functions above the threshold</summary>\n\n|");
    for name in &names {
        let _ = write!(text, " {} | % |", cell(name.as_bytes()));
    }
    text.push_str(" Function |\n|");
    text.push_str(&" ---: | ---: |".repeat(names.len()));
    text.push_str(" :--- |\n");
    for outer in &outers {
        text.push('|');
        for event in &model.show {
            let count = outer.counts.view().of(*event);
            let share = percent_text(percent(count, model.profile.total()[*event]));
            let _ = write!(text, " {} | {share} |", commas(count));
        }
        let _ = writeln!(text, " {} |", cell(outer.name));
    }
    text.push_str("\n</details>\n");
    Ok(())
}

/// A name, so that nothing in it means anything in a table of Markdown.
fn cell(name: &[u8]) -> String {
    let mut text = String::new();
    for c in String::from_utf8_lossy(name).chars() {
        match c {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '$' | '@' | '#' => {
                let _ = write!(text, "&#{};", u32::from(c));
            }
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_cell() {
        assert_eq!(cell(b"a|b<int>*\n"), "a&#124;b&lt;int&gt;&#42; ");
    }
}
