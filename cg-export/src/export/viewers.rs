//! `--format=speedscope`, `folded` and `firefox`: stacks with costs, as text and JSON.
//!
//! None of these formats knows counts below 0, so profiles with such are refused before. Names are made fit for the
//! format and never for the reader: what is changed is said at each.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use fxprof_processed_profile as firefox;
use serde::Serialize;

use crate::load::{Input, lossy};
use crate::stacks::{Kind, Stacks};

#[derive(Serialize)]
struct Speedscope {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<SpeedscopeFrame>,
}

#[derive(Serialize)]
struct SpeedscopeFrame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: i64,
    end_value: i64,
    samples: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

/// Costs of one event by stack, without those of 0: lines are no matter here.
fn by_frames(stacks: &Stacks, event: usize) -> Vec<(&[usize], i64)> {
    let mut finder: HashMap<&[usize], usize> = HashMap::new();
    let mut sums: Vec<(&[usize], i64)> = Vec::new();
    for stack in stacks.stacks.iter().filter(|stack| stack.costs[event] != 0) {
        let at = *finder.entry(&stack.frames).or_insert(sums.len());
        match sums.get_mut(at) {
            // No more than the total, which fits.
            Some((_, sum)) => *sum += stack.costs[event],
            None => sums.push((&stack.frames, stack.costs[event])),
        }
    }
    sums
}

/// Writes speedscope's own format: a profile for each event.
///
/// # Errors
/// `out` cannot be written; so do the functions below.
pub(crate) fn speedscope(out: &mut dyn Write, input: &Input, stacks: &Stacks) -> io::Result<()> {
    let frames = stacks.frames.iter().map(|frame| SpeedscopeFrame {
        name: lossy(&frame.name),
        file: (!frame.file.is_empty()).then(|| lossy(&frame.file)),
    });
    let profiles = input.events.iter().enumerate().map(|(event, name)| {
        let costs = by_frames(stacks, event);
        Sampled {
            r#type: "sampled",
            name: titled(name, stacks.kind),
            unit: "none",
            start_value: 0,
            end_value: input.total[event],
            samples: costs.iter().map(|(frames, _)| frames.iter().rev().copied().collect()).collect(),
            weights: costs.iter().map(|(_, cost)| *cost).collect(),
        }
    });
    let file = Speedscope {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("cg_export ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: format!("{} ({})", input.command(), stacks.kind.describe()),
        active: 0,
        shared: Shared { frames: frames.collect() },
        profiles: profiles.collect(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    out.write_all(b"\n")
}

/// The name of an event, with a mark if its stacks are estimated.
fn titled(event: &str, kind: Kind) -> String {
    if kind == Kind::Estimated { format!("{event} (estimated stacks)") } else { event.to_owned() }
}

/// Writes folded stacks of one event: `main;f;g 12`, sorted. A `;` in a name becomes `:`. Estimated stacks have a root
/// `[estimated stacks]`.
pub(crate) fn folded(out: &mut dyn Write, stacks: &Stacks, event: usize) -> io::Result<()> {
    let mut lines: BTreeMap<Vec<u8>, i128> = BTreeMap::new();
    for stack in stacks.stacks.iter().filter(|stack| stack.costs[event] != 0) {
        let mut line = Vec::new();
        if stacks.kind == Kind::Estimated {
            line.extend_from_slice(b"[estimated stacks]");
        }
        for frame in stack.frames.iter().rev() {
            if !line.is_empty() {
                line.push(b';');
            }
            line.extend(stacks.frames[*frame].name.iter().map(|byte| if *byte == b';' { b':' } else { *byte }));
        }
        *lines.entry(line).or_default() += i128::from(stack.costs[event]);
    }
    for (line, cost) in lines {
        out.write_all(&line)?;
        writeln!(out, " {cost}")?;
    }
    Ok(())
}

/// Writes a processed profile of the Firefox Profiler: a thread for each event, a sample for each stack, with its cost as
/// weight. A weight of more than 31 bits is written as several samples. A sample takes a millisecond, for want of a time.
pub(crate) fn firefox(out: &mut dyn Write, input: &Input, stacks: &Stacks) -> io::Result<()> {
    let start = firefox::ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let interval = firefox::SamplingInterval::from_millis(1);
    let name = format!("{} ({})", input.command(), stacks.kind.describe());
    let mut profile = firefox::Profile::new(&name, start, interval);
    profile.set_os_name("Linux");
    profile.set_symbolicated(true);
    let estimated = profile.add_category("estimated stack", firefox::CategoryColor::Orange);
    let exact = profile.add_category("exact", firefox::CategoryColor::Blue);
    let category = if stacks.kind == Kind::Estimated { estimated } else { exact };
    let at = |milliseconds: usize| {
        #[allow(clippy::cast_precision_loss)]
        firefox::Timestamp::from_millis_since_reference(milliseconds as f64)
    };
    let pid = u32::try_from(input.header.pid.unwrap_or(1)).unwrap_or(1);
    let process = profile.add_process(&input.command(), pid, at(0));
    // No thread is the main one: that would bear the name of the process. Threads are sorted by when they start.
    for (event, name) in input.events.iter().enumerate() {
        let thread = profile.add_thread(process, pid.wrapping_add(u32::try_from(event).unwrap_or(0)), at(event), false);
        profile.set_thread_name(thread, &titled(name, stacks.kind));
        profile.set_thread_samples_weight_type(thread, firefox::WeightType::Samples);
        profile.add_initial_visible_thread(thread);
        let mut time = event;
        for (frames, cost) in by_frames(stacks, event) {
            let frames: Vec<firefox::FrameInfo> = frames
                .iter()
                .rev()
                .map(|frame| firefox::FrameInfo {
                    frame: firefox::Frame::Label(profile.intern_string(&lossy(&stacks.frames[*frame].name))),
                    category_pair: category.into(),
                    flags: firefox::FrameFlags::empty(),
                })
                .collect();
            let handle = profile.intern_stack_frames(thread, frames.into_iter());
            let mut rest = cost;
            while rest > 0 {
                let weight = i32::try_from(rest).unwrap_or(i32::MAX);
                profile.add_sample(thread, at(time), handle, firefox::CpuDelta::ZERO, weight);
                rest -= i64::from(weight);
                time += 1;
            }
        }
        profile.set_thread_end_time(thread, at(time));
    }
    serde_json::to_writer(&mut *out, &profile)?;
    out.write_all(b"\n")
}
