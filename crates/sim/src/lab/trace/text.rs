//! The chart as text: lanes on the left, words on the right.

use std::fmt::Write as _;

use sigmalock_core::Span;

use super::{Kind, State, Step, Trace};
use crate::history::TrueTime;

const TIME_WIDTH: usize = 11;
const LANE_WIDTH_MIN: usize = 8;

pub(super) fn write(trace: &Trace) -> String {
    let names: Vec<String> = trace.lanes.iter().map(|lane| trace.name(*lane)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = (longest + 2).max(LANE_WIDTH_MIN);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", trace.title);
    let heads: String = names.iter().map(|name| format!("{name:<width$}")).collect();
    let _ = writeln!(out, "{:>TIME_WIDTH$}  {}", "", heads.trim_end());
    let mut state = trace.before.clone();
    let mut last = None;
    for step in &trace.steps {
        let time = if last == Some(step.at) { String::new() } else { clock(step.at) };
        last = Some(step.at);
        let lanes = row(trace, &state, step, width);
        state.apply(step);
        let words = match step.kind {
            Kind::Violation => format!("!!! {}", step.text),
            Kind::Fault => format!("*** {}", step.text),
            Kind::Message | Kind::LostMessage => step.text.clone(),
            _ => format!("▶ {}", step.text),
        };
        let times =
            if step.times > 1 { format!(", and {} more", step.times - 1) } else { String::new() };
        let _ = writeln!(out, "{time:>TIME_WIDTH$}  {lanes}  {words}{times}");
    }
    if let Some(words) = trace.omissions() {
        let _ = writeln!(out, "{:>TIME_WIDTH$}  ({words})", "");
    }
    let _ = writeln!(
        out,
        "\n┃ inside   ┊ down or asleep   ● let in   ○ leaves   ◇ asks   ✗ loses it   × lost on the way"
    );
    out
}

pub(super) fn clock(at: TrueTime) -> String {
    match at.0 {
        0 => "0ms".to_owned(),
        us => Span::from_micros(us).to_string(),
    }
}

/// The lanes of one line.
fn row(trace: &Trace, state: &State, step: &Step, width: usize) -> String {
    let mut cells: Vec<char> = vec![' '; trace.lanes.len() * width];
    for (index, lane) in trace.lanes.iter().enumerate() {
        cells[index * width] = match lane {
            Some(peer) if state.is_down(*peer) && state.is_inside(*peer) => '╏',
            Some(peer) if state.is_down(*peer) => '┊',
            Some(peer) if state.is_inside(*peer) => '┃',
            _ => '│',
        };
    }
    let place = |peer| trace.lane(peer).map(|lane| lane * width);
    match (step.peer.and_then(place), step.to.and_then(place)) {
        (Some(from), Some(to)) if from != to => {
            arrow(&mut cells, from, to, step.kind == Kind::Message);
        }
        (Some(at), None) => {
            cells[at] = match step.kind {
                Kind::Asked => '◇',
                Kind::Granted => '●',
                Kind::Released => '○',
                Kind::Lost | Kind::Refused => '✗',
                Kind::Down | Kind::Asleep | Kind::Up => '▪',
                _ => '·',
            };
        }
        (None, _) if step.kind == Kind::Violation => cells.fill('━'),
        _ => {}
    }
    cells.into_iter().collect::<String>()
}

fn arrow(cells: &mut [char], from: usize, to: usize, arrives: bool) {
    let (low, high) = (from.min(to), from.max(to));
    for cell in &mut cells[low + 1..high] {
        *cell = match *cell {
            ' ' => '─',
            '┃' | '╏' => '╂',
            _ => '┼',
        };
    }
    let thick = |cell: char, thin, thick| if matches!(cell, '┃' | '╏') { thick } else { thin };
    if from < to {
        cells[from] = thick(cells[from], '├', '┠');
        cells[to - 1] = if arrives { '►' } else { '×' };
    } else {
        cells[from] = thick(cells[from], '┤', '┨');
        cells[to + 1] = if arrives { '◄' } else { '×' };
    }
}
