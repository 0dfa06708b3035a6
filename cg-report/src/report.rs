//! From sides to a page: names, columns, warnings and the head, put together.

use anyhow::{Context, bail};
use cg_format::callgrind::{Names, ObjectId};
use cg_format::mem;
use cg_format::show::commas;
use cg_model::UNKNOWN;

use crate::code::{Executed, Found};
use crate::formula::Formula;
use crate::head::{Head, Warning};
use crate::html::Page;
use crate::load::{Loaded, Side, packing};
use crate::names::last;
use crate::options::{Code, Options, Sources};
use crate::pack::{Pack, Shown};
use crate::samples::Sampled;
use crate::sources::Source;
use crate::{code, formula, memory, parts, side, sources};

/// Rows of the table for browsers without scripts.
const TOP: usize = 50;

/// Events of the report.
struct Events {
    /// Those of the new side that are shown, in their order.
    show: Vec<usize>,
    /// The one that it begins with: a place among those, and then among formulas.
    sort: usize,
    /// The one by which things are chosen.
    primary: usize,
}

/// Makes the page. What happened where is gone afterwards: it is most of what there is in memory, and packed by then.
pub(crate) fn page(options: &Options, loaded: &mut Loaded) -> anyhow::Result<Page> {
    let Loaded { names, sides, renamed, plain } = loaded;
    let names = &*names;
    let inputs: usize =
        sides.iter().map(|side| side.runs.as_ref().map_or(side.inputs.len(), |runs| runs.all.len())).sum();
    if options.label.len() > inputs {
        bail!("--label: there are {} names of {inputs} profiles", options.label.len());
    }
    let (formulas, unknown) = formulas(options, &sides[0]);
    let Events { show, sort, primary } = events(options, &formulas, sides)?;
    let mut pack = Pack::new().context("cannot start threads that compress")?;
    pack_names(&mut pack, names).map_err(packing)?;
    let shown: Vec<Shown> = show.iter().map(|event| Shown { event: *event, number: *event }).collect();
    let in_base: Vec<Shown> = sides.get(1).map_or(Vec::new(), |base| {
        let own = &sides[0].model.events;
        let place = |event: &usize| base.model.events.iter().position(|name| *name == own[*event]);
        show.iter().filter_map(|event| Some(Shown { event: place(event)?, number: *event })).collect()
    });
    // Contexts come first, and go: with them there is all twice.
    for (side, (prefix, shown)) in sides.iter_mut().zip([("", &shown), ("b.", &in_base)]) {
        let Some(contexts) = side.contexts.take() else { continue };
        let name = format!("{prefix}{}", side::CONTEXTS);
        side::pack(&mut pack, &contexts, &name, shown).map_err(packing)?;
        if prefix.is_empty() {
            let plain = plain.all(names).into_iter().map(|id| id.index() as u64);
            pack.close("fn.plain", plain).map_err(packing)?;
            parts::pack(&mut pack, &contexts, &name, shown).map_err(packing)?;
        }
    }
    let new = &sides[0];
    let incomplete = side::pack(&mut pack, new, "", &shown).map_err(packing)?;
    parts::pack(&mut pack, new, "", &shown).map_err(packing)?;
    let mut base_totals = Vec::new();
    let mut other_events = None;
    if let Some(base) = sides.get(1) {
        let own = &new.model.events;
        let shown = in_base;
        side::pack(&mut pack, base, "b.", &shown).map_err(packing)?;
        base_totals = shown.iter().map(|shown| base.model.total.cost.value(shown.event)).collect();
        other_events = uncommon(own, &base.model.events);
    }
    let embeds = options.source == Sources::Embed && !options.redact;
    let texts = if embeds {
        sources::pack(&mut pack, names, new, primary, &options.include, options.source_limit).map_err(packing)?
    } else {
        Vec::new()
    };
    if let Some(file) = &options.mem {
        let mem = memory::read(file, options.mod_filename.as_ref(), options.redact)?;
        memory::pack(&mut pack, &mem, embeds.then_some(&options.include)).map_err(packing)?;
    }
    let mut warnings = warnings(names, new, primary, incomplete, &texts);
    warnings.extend(other_events);
    let said = sides[0].sampled.iter().flat_map(Sampled::warnings);
    warnings.extend(said.map(|(kind, text)| Warning { kind, text }));
    warnings.extend(unknown);
    sides.iter_mut().for_each(Side::forget_calls);
    let objects = if options.code == Code::None || options.redact {
        Vec::new()
    } else {
        let executed = Executed::of(names, &sides[0], primary, options.code == Code::All);
        sides.iter_mut().for_each(Side::forget_rows);
        code::pack(&mut pack, names, &executed, options.root.as_deref()).map_err(packing)?
    };
    sides.iter_mut().for_each(Side::forget_rows);
    let new = &sides[0];
    warnings.extend(changed(names, &objects));
    let title = title(options, new);
    let number = show.get(sort).or(show.first()).copied().unwrap_or_default();
    let packed = pack.finish(|name| is_seen_first(name, number)).map_err(packing)?;
    let head = Head {
        title: &title,
        names,
        sides,
        base_totals: &base_totals,
        renamed,
        show: &show,
        formulas: &formulas,
        labels: &options.label,
        separate: options.separate,
        sort,
        sources: &texts,
        editor: options.editor.as_deref(),
        embeds,
        objects: &objects,
        redacted: options.redact,
        warnings: &warnings,
        columns: &packed.columns,
    };
    let head = head.json();
    Ok(Page { head, data: packed.text, table: table(names, new, primary), title })
}

/// Whether a column is part of what a page begins with, which shows functions and calls with their costs of one event, by its number.
fn is_seen_first(name: &str, event: usize) -> bool {
    let mut words = name.strip_prefix("b.").unwrap_or(name).split('.');
    let kind = words.next().is_some_and(|word| ["names", "fn", "arc", "cy", "chain"].contains(&word));
    let of = words.next_back().and_then(|word| word.parse::<usize>().ok());
    kind && of.is_none_or(|of| of == event)
}

/// Formulas of the profile (`event: NAME = FORMULA`) and then those of options, and what is said of some that cannot be computed.
fn formulas(options: &Options, side: &Side) -> (Vec<Formula>, Option<Warning>) {
    let events = &side.model.events;
    let shown: Vec<String> = match &options.show {
        Some(list) => list.split(',').map(str::to_owned).filter(|name| events.contains(name)).collect(),
        None => events.clone(),
    };
    let (mut known, mut unknown): (Vec<Formula>, Vec<String>) = (Vec::new(), Vec::new());
    for told in side.model.parts.iter().flat_map(|part| &part.header.types) {
        let text = String::from_utf8_lossy(&told.name);
        let Ok(formula) = Formula::parse(&text) else { continue };
        let again = known.iter().chain(&options.event).any(|other| other.name == formula.name);
        if again || events.contains(&formula.name) || unknown.contains(&formula.name) {
            continue;
        }
        known.push(formula);
        if formula::known(&shown, &known).is_err() {
            unknown.extend(known.pop().map(|formula| formula.name));
        }
    }
    let text = format!("The profile has formulas that are none of the events that are shown: {}.", unknown.join(" "));
    known.extend_from_slice(&options.event);
    (known, (!unknown.is_empty()).then_some(Warning { kind: "formulas", text }))
}

/// Which events are shown, as options say.
fn events(options: &Options, formulas: &[Formula], sides: &[Side]) -> anyhow::Result<Events> {
    let new = &sides[0];
    let events = &new.model.events;
    let at = |option: &str, name: &str| {
        let found = events.iter().position(|event| event == name);
        found.with_context(|| {
            format!("{}: {option} event `{name}` did not appear in input: it has {}", new.model.input, events.join(" "))
        })
    };
    let base = sides.get(1);
    let common = |event: &usize| base.is_none_or(|base| base.model.events.contains(&events[*event]));
    let show: Vec<usize> = match &options.show {
        Some(list) => list.split(',').map(|name| at("--show", name)).collect::<anyhow::Result<_>>()?,
        None => (0..events.len()).filter(common).collect(),
    };
    if let (Some(event), Some(base)) = (show.iter().find(|event| !common(event)), base) {
        bail!(
            "{}: --show event `{}` is not in the base: it has {}",
            base.model.input,
            events[*event],
            base.model.events.join(" ")
        );
    }
    let names: Vec<String> = show.iter().map(|event| events[*event].clone()).collect();
    let known = formula::known(&names, formulas)?;
    let sort = match options.sort.as_deref() {
        // The page has no ratios among its events.
        Some(name) => match known.iter().filter(|(_, terms)| !terms.is_ratio()).position(|(known, _)| known == name) {
            Some(place) => place,
            None if known.iter().any(|(known, _)| known == name) => {
                bail!(
                    "--sort: {name} is a ratio, which is not the sum of that of its parts: the report can begin with a sum only"
                )
            }
            None => bail!("--sort event `{}` is not among those of --show", events[at("--sort", name)?]),
        },
        None => 0,
    };
    // What is chosen by cost is chosen by an event of the profile.
    match (show.get(sort).or(show.first()).copied(), base) {
        (Some(primary), _) => Ok(Events { show, sort, primary }),
        (None, Some(base)) => bail!("{} and {} have no event in common", new.model.input, base.model.input),
        (None, None) => bail!("{}: it counts no events", new.model.input),
    }
}

/// What the window is called: the program that ran, or the profile.
fn title(options: &Options, side: &Side) -> String {
    let command = side.model.header.cmd.trim_ascii();
    let program = command.split(|byte| *byte == b' ').next().unwrap_or_default();
    let name = if program.is_empty() || options.redact { side.model.input.as_bytes() } else { program };
    format!("{} – profile", String::from_utf8_lossy(last(name)))
}

/// What is said if an object file is not the one that ran.
fn changed(names: &Names, objects: &[(ObjectId, Found)]) -> Option<Warning> {
    let changed = objects.iter().filter(|(_, found)| *found == Found::Changed);
    let files: Vec<_> = changed.map(|(object, _)| String::from_utf8_lossy(names.object_name(*object))).collect();
    let text = format!(
        "These files are not those that ran, so their code is not shown, and lines may not fit: {}.",
        files.join(", ")
    );
    (!files.is_empty()).then_some(Warning { kind: "changed", text })
}

/// What is said if one side counts events that the other does not.
fn uncommon(new: &[String], base: &[String]) -> Option<Warning> {
    let only = |a: &[String], b: &[String]| a.iter().filter(|name| !b.contains(name)).cloned().collect::<Vec<_>>();
    let (added, missing) = (only(new, base), only(base, new));
    if added.is_empty() && missing.is_empty() {
        return None;
    }
    let said = |what: &str, names: &[String]| {
        if names.is_empty() { String::new() } else { format!(" Only the {what} has {}.", names.join(" ")) }
    };
    let text =
        format!("Only events of both sides are compared.{}{}", said("new profile", &added), said("base", &missing));
    Some(Warning { kind: "events", text })
}

fn pack_names(pack: &mut Pack, names: &Names) -> std::io::Result<()> {
    let functions: Vec<_> = names.functions().collect();
    pack.text("names.fn", joined(functions.iter().map(|id| names.function_name(*id))))?;
    pack.text("names.file", joined(names.files().map(|id| names.file_name(id))))?;
    pack.text("names.obj", joined(names.objects().map(|id| names.object_name(id))))?;
    pack.close("fn.file", functions.iter().map(|id| names.get(*id).file.index() as u64))?;
    pack.close("fn.obj", functions.iter().map(|id| names.get(*id).object.index() as u64))?;
    // What equal costs are ordered by, and what would take the page a second.
    let mut sorted = functions;
    sorted.sort_by_cached_key(|id| (names.function_name(*id), *id));
    pack.numbers("fn.byname", sorted.iter().map(|id| id.index() as u64))
}

/// Names as lines of valid UTF-8. Bytes that are not are shown as `\xNN`, so that different names stay different.
fn joined<'a>(names: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = Vec::new();
    for (i, name) in names.enumerate() {
        if i > 0 {
            text.push(b'\n');
        }
        for chunk in name.utf8_chunks() {
            text.extend_from_slice(chunk.valid().replace('\n', "\\n").as_bytes());
            chunk.invalid().iter().for_each(|byte| text.extend_from_slice(format!("\\x{byte:02x}").as_bytes()));
        }
    }
    text
}

fn warnings(names: &Names, side: &Side, event: usize, incomplete: usize, texts: &[Source]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind, text| warnings.push(Warning { kind, text });
    let name = &side.model.events[event];
    let total = side.model.total.cost.value(event);
    let costs = |wanted: &dyn Fn(&cg_model::Row) -> bool| {
        let rows = side.detail.rows.iter().filter(|row| wanted(row));
        rows.fold(0_i128, |sum, row| sum + i128::from(side.detail.row_cost(row, event)))
    };
    if total == 0 {
        warn("zero", format!("Nothing was counted: the total of {name} is 0."));
    }
    for (_, header, _) in &side.inputs {
        for text in header.desc.iter().filter_map(|line| mem::near(str::from_utf8(line).ok()?)) {
            warn("near", format!("Misses are \u{2248}: {text}."));
        }
    }
    let rows = costs(&|_| true);
    if rows != i128::from(total) {
        warn(
            "total",
            format!(
                "The profile states a total of {} {name}, but its rows add up to {}: {} are in no function.",
                commas(i128::from(total)),
                commas(rows),
                commas(i128::from(total) - rows)
            ),
        );
    }
    if side.unnamed > 0 {
        warn(
            "names",
            format!(
                "A number stands for a name that the profile does not have ({} times): it is shown as (NUMBER) or ???.",
                commas(i128::from(side.unnamed))
            ),
        );
    }
    let unknown = costs(&|row| row.at().place.line == 0 || names.file_name(row.at().file) == UNKNOWN);
    if total > 0 && unknown * 2 > i128::from(total) {
        let percent = unknown as f64 * 100.0 / total as f64;
        warn(
            "lines",
            format!(
                "{percent:.0} % of {name} have no source line. Build the program with -g, and install debug symbols of \
                 its libraries."
            ),
        );
    }
    if let Some(rest) = side.chains.as_ref().and_then(|chains| chains.rest.get(event)).filter(|rest| **rest != 0) {
        let percent = *rest as f64 * 100.0 / total.max(1) as f64;
        warn(
            "chains",
            format!(
                "{} {name} ({percent:.2} %) are in no chain of calls, as when there are more of them than --context-limit \
                 allows: they stand as functions of which no caller is known.",
                commas(*rest)
            ),
        );
    }
    if incomplete > 0 {
        warn(
            "incomplete",
            format!(
                "Functions marked as incomplete: {incomplete}. Their callers saw another cost than they spent with \
                 what they called, as happens where counting began or ended within a call, and with signals."
            ),
        );
    }
    let count = |state| texts.iter().filter(|source| source.state == state).count();
    let newer = count(sources::State::Newer);
    if newer > 0 {
        warn("newer", format!("{} changed after the profile was written: lines may not fit.", were(newer)));
    }
    let large = count(sources::State::TooLarge);
    if large > 0 {
        warn(
            "clipped",
            format!("Source files without room in the report: {large}. Raise --source-limit to have them."),
        );
    }
    warnings
}

fn were(files: usize) -> String {
    if files == 1 { "1 source file was".to_owned() } else { format!("{files} source files were") }
}

fn table(names: &Names, side: &Side, event: usize) -> Vec<[String; 3]> {
    let (own, inclusive): (Vec<i64>, Vec<i64>) =
        (side.model.own(event).collect(), side.model.inclusive(event).collect());
    let mut order: Vec<_> = names.functions().collect();
    order.sort_by_key(|id| (std::cmp::Reverse(inclusive[id.index()]), names.function_name(*id)));
    let show = |value: i64| commas(i128::from(value));
    let rows = order.into_iter().take(TOP).map(|id| {
        let name = String::from_utf8_lossy(names.function_name(id)).into_owned();
        [show(inclusive[id.index()]), show(own[id.index()]), name]
    });
    rows.collect()
}
