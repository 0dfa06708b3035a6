//! The numbers of a table of functions and of threads, as text: rates, shares, which columns there are.

use std::fmt::Write;

use callgrind_control_protocol::{ActiveFunction, Activity};

/// A number of `cost` in so many microseconds, by the second: three digits, and k, M, G or T.
pub(crate) fn rate(cost: u64, micros: u64) -> String {
    if micros == 0 {
        return "-".to_owned();
    }
    let mut value = cost as f64 * 1e6 / micros as f64;
    let mut unit = "";
    for larger in ["k", "M", "G", "T"] {
        if value < 999.5 {
            break;
        }
        value /= 1e3;
        unit = larger;
    }
    let decimals = match value {
        _ if unit.is_empty() => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// A share of all, in percent.
pub(crate) fn share(part: u64, all: u64) -> String {
    if all == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", part as f64 * 100.0 / all as f64)
}

/// The events that are shown where at most `most` have room: instructions, that which functions are sorted by, then misses and
/// mispredictions, then others; in the order of the run.
pub(crate) fn columns(activity: &Activity, by: &str, most: usize) -> Vec<usize> {
    let events = &activity.events;
    let is_miss = |event: &str| event.contains("mr") || event.contains("mw") || event == "Bcm" || event == "Bim";
    let rank = |at: usize| match events[at].as_str() {
        "Ir" => 0,
        event if event == by => 1,
        event if is_miss(event) => 2,
        _ => 3,
    };
    let mut columns: Vec<usize> = (0..events.len()).collect();
    columns.sort_by_key(|&at| rank(at));
    columns.truncate(most.max(1));
    columns.sort_unstable();
    columns
}

/// The cells of a function: its share of the event that functions are sorted by, its rates, and its names.
pub(crate) fn cells(activity: &Activity, function: &ActiveFunction, columns: &[usize], by: usize) -> Vec<String> {
    let cost = |at: usize| function.cost.get(at).copied().unwrap_or(0);
    let all = activity.total.get(by).copied().unwrap_or(0);
    let rates = columns.iter().map(|&at| rate(cost(at), activity.micros));
    std::iter::once(share(cost(by), all)).chain(rates).collect()
}

/// Function and file.
pub(crate) fn name(function: &ActiveFunction) -> String {
    match function.file.as_str() {
        "" | "???" => function.name.clone(),
        file => format!("{} ({})", function.name, file.rsplit('/').next().unwrap_or(file)),
    }
}

/// The number of the event that functions are sorted by.
pub(crate) fn sorted_by(activity: &Activity, by: &str) -> usize {
    activity.events.iter().position(|event| event == by).unwrap_or(0)
}

/// One look at run `pid`, as text: a line about it, its threads, and its functions by event `by`, rates by the second.
#[must_use]
pub fn text(pid: u32, activity: &Activity, by: &str) -> String {
    let (columns, by) = (columns(activity, by, usize::MAX), sorted_by(activity, by));
    let mut text = format!(
        "PID {pid}: {} instructions/s over {} ms, {} functions known\n",
        rate(activity.total.first().copied().unwrap_or(0), activity.micros),
        activity.micros / 1000,
        activity.known
    );
    for thread in &activity.threads {
        let rate = rate(thread.instructions, activity.micros);
        let _ = writeln!(text, "  thread {} {rate:>8}/s  {}", thread.id, thread.name);
    }
    let sorted = activity.events.get(by).map_or("Ir", String::as_str);
    let _ = write!(text, "  {:>7}", format!("%{sorted}"));
    for &at in &columns {
        let _ = write!(text, " {:>8}", format!("{}/s", activity.events[at]));
    }
    text.push_str("  function (file)\n");
    for function in &activity.functions {
        let mut line = String::from(" ");
        let widths = std::iter::once(8).chain(std::iter::repeat(9));
        for (cell, width) in cells(activity, function, &columns, by).into_iter().zip(widths) {
            let _ = write!(line, "{cell:>width$}");
        }
        let _ = writeln!(text, "{line}  {}", name(function));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        for (cost, micros, expected) in [
            (0, 500_000, "0"),
            (1, 500_000, "2"),
            (499, 500_000, "998"),
            (499_749, 500_000_000, "999"),
            (499_750, 500_000_000, "1.00k"),
            (500, 500_000, "1.00k"),
            (1_155_000_000, 500_000, "2.31G"),
            (61_728, 500_000, "123k"),
            (6_172, 500_000, "12.3k"),
            (u64::MAX, 1_000_000, "18446744T"),
            (5, 0, "-"),
        ] {
            assert_eq!(rate(cost, micros), expected, "{cost} in {micros}");
        }
        assert_eq!((share(1, 3), share(1, 0)), ("33.3".to_owned(), "-".to_owned()));
    }

    #[test]
    fn what_has_no_room_goes_last_by_worth() {
        let events = ["Ir", "I1mr", "Dr", "DLmr", "Dw"].map(str::to_owned).to_vec();
        let activity = Activity { events, ..Activity::default() };
        assert_eq!(columns(&activity, "Ir", 9), [0, 1, 2, 3, 4]);
        assert_eq!(columns(&activity, "Dw", 3), [0, 1, 4]);
        assert_eq!(columns(&activity, "Ir", 3), [0, 1, 3]);
        assert_eq!(columns(&activity, "Dr", 0), [0]);
    }
}
