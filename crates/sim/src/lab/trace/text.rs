//! The chart as text: lanes on the left, words on the right.

use std::fmt::Write as _;

use sigmalock_core::Span;

use super::mark::Mark;
use super::{Kind, Presence, State, Step, Trace};
use crate::history::TrueTime;

const TIME_WIDTH: usize = 11;
const LANE_WIDTH_MIN: usize = 8;
const LEGEND_WIDTH: usize = 110;

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
    let mut signs = String::new();
    let mut last = None;
    for step in &trace.steps {
        let time = if last == Some(step.at) { String::new() } else { clock(step.at) };
        last = Some(step.at);
        let lanes = row(trace, &state, step, width);
        state.apply(step);
        let start = match step.kind {
            Kind::Violation => "!!! ",
            Kind::Fault => "*** ",
            Kind::Message | Kind::LostMessage => "",
            _ => "▶ ",
        };
        let times =
            if step.times > 1 { format!(", and {} more", step.times - 1) } else { String::new() };
        let _ = writeln!(out, "{time:>TIME_WIDTH$}  {lanes}  {start}{}{times}", step.text);
        signs.push_str(&lanes);
        signs.push_str(start);
    }
    if let Some(words) = trace.omissions() {
        let _ = writeln!(out, "{:>TIME_WIDTH$}  ({words})", "");
    }
    let _ = write!(out, "\n{}", legend(&signs));
    out
}

pub(super) fn clock(at: TrueTime) -> String {
    match at.0 {
        0 => "0ms".to_owned(),
        us => Span::from_micros(us).to_string(),
    }
}

/// Says of the signs that occur what they mean, and of no others.
fn legend(signs: &str) -> String {
    let lifelines = Presence::ALL.into_iter().map(|presence| {
        (presence.sign(), presence.sign().to_string(), presence.words().unwrap_or_default())
    });
    let marks = Mark::ALL.map(|mark| (mark.sign(), mark.sign().to_string(), mark.words()));
    let others = [
        ('×', "×", "lost on the way"),
        ('*', "***", "something breaks, or is mended"),
        ('!', "!!!", "an oracle objects: harm"),
    ]
    .map(|(sign, shown, words)| (sign, shown.to_owned(), words));
    let mut lines = vec![String::new()];
    for (sign, shown, words) in lifelines.chain(marks).chain(others) {
        if words.is_empty() || !signs.contains(sign) {
            continue;
        }
        let entry = format!("{shown} {words}");
        let last = lines.last_mut().map(|line| (line.chars().count(), line));
        match last {
            Some((0, line)) => line.push_str(&entry),
            Some((taken, line)) if taken + 3 + entry.chars().count() <= LEGEND_WIDTH => {
                line.push_str("   ");
                line.push_str(&entry);
            }
            _ => lines.push(entry),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The lanes of one line.
fn row(trace: &Trace, state: &State, step: &Step, width: usize) -> String {
    let mut cells: Vec<char> = vec![' '; trace.lanes.len() * width];
    for (index, lane) in trace.lanes.iter().enumerate() {
        let presence = lane.map_or(Presence::Idle, |peer| state.presence(peer, step.at));
        cells[index * width] = presence.sign();
    }
    let place = |peer| trace.lane(peer).map(|lane| lane * width);
    match (step.peer.and_then(place), step.to.and_then(place)) {
        (Some(from), Some(to)) if from != to => {
            arrow(&mut cells, from, to, step.kind == Kind::Message);
        }
        (Some(at), None) => cells[at] = Mark::of(step.kind).sign(),
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
