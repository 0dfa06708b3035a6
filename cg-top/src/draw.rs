//! The picture: a line about the run, functions by what they cost lately, threads, and what keys do.

use callgrind_control_protocol::Activity;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use crate::state::State;
use crate::table;

/// As many threads as are shown at most.
const THREADS: usize = 8;

/// The width of a rate, with the blank before it, and that of names below which columns give way.
const COLUMN: u16 = 9;
const NAME: u16 = 30;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws what is known. What is beyond the last function is not scrolled to.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let threads = match &state.activity {
        Some(activity) if state.threads => activity.threads.len().min(THREADS) as u16 + 1,
        _ => 0,
    };
    let parts = [Constraint::Length(1), Constraint::Min(2), Constraint::Length(threads), Constraint::Length(1)];
    let [head, functions, below, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(Line::styled(heading(state), BOLD)), head);
    frame.render_widget(Paragraph::new(Line::styled(state.footer(), REVERSED)), foot);
    let Some(activity) = &state.activity else {
        return frame.render_widget(Paragraph::new("waiting for the run ..."), functions);
    };
    let room = usize::from(functions.height.saturating_sub(1));
    state.first = state.first.min(activity.functions.len().saturating_sub(room.max(1)));
    draw_functions(frame, functions, activity, state.by(), state.first);
    if threads > 0 {
        draw_threads(frame, below, activity);
    }
}

fn heading(state: &State) -> String {
    let mut text = format!("PID {}: {}", state.pid(), state.command());
    if let Some(activity) = &state.activity {
        let rate = table::rate(activity.total.first().copied().unwrap_or(0), activity.micros);
        let paused = if state.is_paused() { "  PAUSED" } else { "" };
        let known = activity.known;
        let threads = match activity.threads.len() {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        };
        text = format!("{rate} Ir/s  {threads}  {known} functions{paused}  {text}");
    }
    text
}

fn draw_functions(frame: &mut Frame<'_>, area: Rect, activity: &Activity, by: &str, first: usize) {
    let most = area.width.saturating_sub(NAME + COLUMN) / COLUMN;
    let columns = table::columns(activity, by, usize::from(most));
    let sorted = table::sorted_by(activity, by);
    let right = |text: String, width: u16| format!("{text:>0$}", usize::from(width) - 1);
    let mut heads = vec![Cell::from(right(format!("%{by}"), COLUMN))];
    heads.extend(columns.iter().map(|&at| {
        let style = if at == sorted { REVERSED } else { BOLD };
        Cell::from(Line::styled(right(format!("{}/s", activity.events[at]), COLUMN), style))
    }));
    heads.push(Cell::from("function (file)"));
    let row = |function| {
        let cells = table::cells(activity, function, &columns, sorted).into_iter().map(|cell| right(cell, COLUMN));
        Row::new(cells.chain([table::name(function)]))
    };
    let rows = activity.functions.iter().skip(first).take(usize::from(area.height)).map(row);
    let mut widths = vec![Constraint::Length(COLUMN - 1); columns.len() + 1];
    // A number that is cut says something else: names give way first.
    widths.push(Constraint::Fill(1));
    frame.render_widget(Table::new(rows, widths).header(Row::new(heads).style(BOLD)), area);
}

fn draw_threads(frame: &mut Frame<'_>, area: Rect, activity: &Activity) {
    let mut threads: Vec<_> = activity.threads.iter().collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.instructions), thread.id));
    let all = activity.threads.iter().map(|thread| thread.instructions).fold(0, u64::saturating_add);
    let head = match activity.threads.len().saturating_sub(THREADS) {
        0 => "threads".to_owned(),
        others => format!("threads ({others} more)"),
    };
    let mut lines = vec![Line::styled(head, BOLD)];
    lines.extend(threads.into_iter().take(THREADS).map(|thread| {
        let (rate, share) = (table::rate(thread.instructions, activity.micros), table::share(thread.instructions, all));
        Line::raw(format!("{share:>8} {rate:>8}  {:>8} {}", thread.id, thread.name))
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgrind_control_protocol::{ActiveFunction, ActiveThread, ActivityRequest};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn activity(snapshot: u64) -> Activity {
        let function = |name: &str, file: &str, cost: &[u64]| ActiveFunction {
            name: name.to_owned(),
            file: file.to_owned(),
            cost: cost.to_vec(),
        };
        Activity {
            snapshot,
            micros: 500_000,
            took: 900,
            events: ["Ir", "I1mr", "Dr", "DLmr"].map(str::to_owned).to_vec(),
            total: vec![1_155_000_000, 400, 300_000_000, 2_000_000],
            known: 312,
            threads: (1..=10)
                .map(|n| ActiveThread { id: 4710 + n, instructions: n * 21_000_000, name: format!("worker {n}") })
                .collect(),
            functions: vec![
                function("std::sort<int*>(int*, int*)", "/src/algo.h", &[900_000_000, 0, 200_000_000, 500_000]),
                function("leaf", "/src/leaf.c", &[200_000_000, 400, 100_000_000, 1_500_000]),
                function("memcpy", "???", &[55_000_000, 0, 0, 0]),
            ],
        }
    }

    /// What is on a terminal of this size, and no blanks at the ends of lines.
    fn picture(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
        (0..height).map(row).collect()
    }

    fn press(state: &mut State, keys: &str) -> bool {
        let code = |c| match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            'v' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        keys.chars().fold(false, |_, c| state.key(KeyEvent::new(code(c), KeyModifiers::NONE)))
    }

    #[test]
    fn a_run_is_drawn() {
        let mut state = State::new(4711, "./prog 3", ActivityRequest::default());
        assert!(picture(&mut state, 60, 5).contains("waiting for the run"));
        state.take(activity(1));
        let expected = "\
2.31G Ir/s  10 threads  312 functions  PID 4711: ./prog 3
     %Ir     Ir/s   I1mr/s     Dr/s   DLmr/s function (file)
    77.9    1.80G        0     400M    1.00M std::sort<int*>(int*, int*) (algo.h)
    17.3     400M      800     200M    3.00M leaf (leaf.c)
     4.8     110M        0        0        0 memcpy

threads (2 more)
    18.2     420M      4720 worker 10
    16.4     378M      4719 worker 9
    14.5     336M      4718 worker 8
    12.7     294M      4717 worker 7
    10.9     252M      4716 worker 6
     9.1     210M      4715 worker 5
     7.3     168M      4714 worker 4
     5.5     126M      4713 worker 3
q quit  p pause  <> sort by Ir  / filter  t threads  arrows scroll
";
        assert_eq!(picture(&mut state, 90, 16), expected);
        // Where there is less room, what says least gives way.
        let narrow = picture(&mut state, 62, 16);
        assert_eq!(narrow.lines().nth(1), Some("     %Ir     Ir/s   I1mr/s function (file)"));
        // Numbers are never cut.
        let narrower = picture(&mut state, 30, 16);
        assert_eq!(narrower.lines().nth(2), Some("    77.9    1.80G std::sort<in"));
    }

    #[test]
    fn keys_change_the_picture() {
        let mut state = State::new(4711, "./prog 3", ActivityRequest::default());
        state.take(activity(1));
        press(&mut state, "t<");
        let expected = "\
2.31G Ir/s  10 threads  312 functions  PID 4711: ./prog 3
   %DLmr     Ir/s   I1mr/s     Dr/s   DLmr/s function (file)
    75.0     400M      800     200M    3.00M leaf (leaf.c)
    25.0    1.80G        0     400M    1.00M std::sort<int*>(int*, int*) (algo.h)
     0.0     110M        0        0        0 memcpy
q quit  p pause  <> sort by DLmr  / filter  t threads  arrows scroll
";
        assert_eq!(picture(&mut state, 90, 6), expected);
        assert_eq!((state.wanted().by.as_str(), state.wanted().since), ("DLmr", 1));
        press(&mut state, "/le");
        assert!(picture(&mut state, 90, 6).ends_with("show names with: le_   (Enter: do, Esc: do not)\n"));
        press(&mut state, "q\n");
        assert_eq!(state.wanted().text, "leq");
        assert!(picture(&mut state, 90, 6).contains("/ filter: leq"));
        press(&mut state, "/x\u{1b}");
        assert_eq!(state.wanted().text, "leq");
        // There is no scrolling beyond the end.
        press(&mut state, "vvvvvvvv");
        assert!(picture(&mut state, 90, 5).contains("memcpy"));
        assert_eq!(state.first, 1);
        press(&mut state, "p");
        let mut other = activity(2);
        other.known = 999;
        state.take(other);
        let paused = picture(&mut state, 90, 6);
        assert!(paused.contains("312 functions  PAUSED") && paused.contains("p go on"), "{paused}");
        assert!(!press(&mut state, "p") && press(&mut state, "q") && press(&mut state, "\u{1b}"));
        assert!(state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }
}
