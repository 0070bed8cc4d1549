//! The chart as SVG: arrows fall from the moment of sending to that of arrival, bars show who is inside.
//!
//! First everything that is drawn, then everything that is written, so that no line runs through a word.

use std::fmt::Write as _;

use sigmalock_core::PeerId;

use super::family::{self, Family};
use super::legend;
use super::mark::Mark;
use super::text::clock;
use super::{Kind, Presence, Step, Trace};
use crate::history::TrueTime;
use crate::lab::figures::chart::escape;

const LEFT: f64 = 78.0;
const TOP: f64 = 62.0;
const ROW: f64 = 19.0;
const LANE: f64 = 104.0;
/// Room for words at the right of the last lane, at least and at most.
const RIGHT: f64 = 230.0;
const RIGHT_MAX: f64 = 560.0;
/// Words that would not fit are cut; all of them are in the tooltip.
const CHAR_WIDTH: f64 = 6.2;
/// The same of the small words at arrows.
const SMALL_CHAR_WIDTH: f64 = 5.9;

pub(super) fn draw(trace: &Trace) -> String {
    let rows = trace.steps.len() as f64;
    let width = width(trace);
    let bottom = TOP + rows * ROW + ROW / 2.0;
    let mut sheet = Sheet {
        trace,
        width,
        bottom,
        lines: String::new(),
        labels: String::new(),
        used: Used::default(),
    };
    sheet.lanes();
    sheet.times();
    trace.steps.iter().enumerate().for_each(|(row, step)| sheet.step(row, step));
    let Sheet { lines, labels, used, .. } = sheet;
    let mut y = bottom + 2.0 * ROW;
    let mut foot = String::new();
    if let Some(words) = trace.omissions() {
        // Writing to a string cannot fail.
        let _ = writeln!(foot, r#"<text class="time" x="12" y="{y:.1}">{words}</text>"#);
        y += ROW;
    }
    let (legend, height) = legend::draw(&used, width, y);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sl-trace\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"head\" x=\"12\" y=\"22\">{title}</text>\n{lines}{labels}{foot}{legend}</svg>\n",
        title = escape(&trace.title)
    )
}

/// Wide enough for all words, where that is not too wide.
fn width(trace: &Trace) -> f64 {
    let lanes = LEFT + trace.lanes.len() as f64 * LANE;
    let words = trace.steps.iter().filter(|step| step.to.is_none()).map(|step| {
        let lane = step.peer.and_then(|peer| trace.lane(peer));
        let from = lane.map_or(LEFT + 40.0, |lane| LEFT + (lane as f64 + 0.35) * LANE);
        from + 24.0 + step.text.chars().count() as f64 * CHAR_WIDTH
    });
    words.fold(lanes + RIGHT, f64::max).min(lanes + RIGHT_MAX).round()
}

/// What occurs in a drawing, for its legend.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) families: Vec<Family>,
    pub(super) lost: bool,
    pub(super) marks: Vec<Mark>,
    pub(super) bars: Vec<&'static str>,
    pub(super) faults: bool,
    pub(super) violations: bool,
}

struct Sheet<'a> {
    trace: &'a Trace,
    width: f64,
    bottom: f64,
    lines: String,
    labels: String,
    used: Used,
}

impl Sheet<'_> {
    fn x(&self, peer: PeerId) -> Option<f64> {
        self.trace.lane(peer).map(|lane| LEFT + (lane as f64 + 0.35) * LANE)
    }

    fn y(row: usize) -> f64 {
        TOP + row as f64 * ROW + ROW / 2.0
    }

    /// The height at which a peer said something: where it did or heard something at that moment, before the
    /// row in which it arrives; else at the first step from then on.
    fn y_of_sending(&self, peer: PeerId, at: TrueTime, row: usize) -> f64 {
        let steps = &self.trace.steps;
        let first = steps.partition_point(|step| step.at < at);
        if first == 0 && steps.first().is_some_and(|step| step.at > at) {
            return TOP;
        }
        let moment = steps[first..row].iter().take_while(|step| step.at == at);
        let cause = |step: &Step| step.to.or(step.peer) == Some(peer);
        let causes = moment.enumerate().filter(|(_, step)| cause(step));
        Self::y(first + causes.last().map_or(0, |(place, _)| place))
    }

    /// Names, lifelines, and bars where somebody is inside or down.
    fn lanes(&mut self) {
        for (index, lane) in self.trace.lanes.iter().enumerate() {
            let x = LEFT + (index as f64 + 0.35) * LANE;
            let name = escape(&self.trace.name(*lane));
            let _ = writeln!(
                self.lines,
                r#"<text class="head" x="{x:.1}" y="{:.1}" text-anchor="middle">{name}</text>"#,
                TOP - 12.0
            );
            let _ = writeln!(
                self.lines,
                r#"<line class="life" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{:.1}"/>"#,
                self.bottom
            );
            if let Some(peer) = lane {
                use Presence::{Down, Inside, InsideAsleep, Overdue};
                // Who is asleep inside has a narrow bar on a wide one.
                self.bars(*peer, x, "down", &[Down, InsideAsleep]);
                self.bars(*peer, x, "inside", &[Inside, InsideAsleep]);
                self.bars(*peer, x, "overdue", &[Overdue]);
            }
        }
    }

    fn bars(&mut self, peer: PeerId, x: f64, class: &'static str, on: &[Presence]) {
        let mut state = self.trace.before.clone();
        let start = self.trace.steps.first().map_or(TrueTime(0), |step| step.at);
        let mut from = on.contains(&state.presence(peer, start)).then_some(TOP);
        let mut bars = Vec::new();
        for (row, step) in self.trace.steps.iter().enumerate() {
            state.apply(step);
            match (from, on.contains(&state.presence(peer, step.at))) {
                (None, true) => from = Some(Self::y(row)),
                (Some(top), false) => {
                    bars.push((top, Self::y(row)));
                    from = None;
                }
                _ => {}
            }
        }
        bars.extend(from.map(|top| (top, self.bottom)));
        for (top, bottom) in bars {
            self.lines.push_str(&bar(class, x, top, bottom));
            note(&mut self.used.bars, class);
        }
    }

    fn times(&mut self) {
        let mut last = None;
        for (row, step) in self.trace.steps.iter().enumerate() {
            if last != Some(step.at) {
                let _ = writeln!(
                    self.lines,
                    r#"<text class="time" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                    LEFT - 12.0,
                    Self::y(row) + 4.0,
                    clock(step.at)
                );
            }
            last = Some(step.at);
        }
    }

    fn step(&mut self, row: usize, step: &Step) {
        let y = Self::y(row);
        match (step.peer.and_then(|peer| self.x(peer)), step.to.and_then(|peer| self.x(peer))) {
            (Some(from), Some(to)) => self.arrow(row, step, (from, to)),
            (Some(x), None) => self.moment(step, (x, y)),
            (None, _) => {
                let violation = step.kind == Kind::Violation;
                let class = if violation { "violation" } else { "fault" };
                self.used.violations |= violation;
                self.used.faults |= !violation;
                let _ = writeln!(
                    self.lines,
                    r#"<line class="{class}" x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/>"#,
                    self.width - 12.0
                );
                let sign = if violation { "HARM: " } else { "" };
                let words = cut(&format!("{sign}{}", step.text), self.width - LEFT, CHAR_WIDTH);
                self.label(class, &step.text, &words, (LEFT, y - 4.5), Anchor::Start, CHAR_WIDTH);
            }
        }
    }

    fn arrow(&mut self, row: usize, step: &Step, (from, to): (f64, f64)) {
        let y = Self::y(row);
        let arrives = step.kind == Kind::Message;
        let side = if from < to { -1.0 } else { 1.0 };
        let sent = step.peer.map_or(y, |peer| self.y_of_sending(peer, step.sent, row));
        let (family, label) = family::of_message(&step.text, step.to);
        let class = if arrives { family.class() } else { "lost" };
        if arrives {
            note(&mut self.used.families, family);
        }
        self.used.lost |= !arrives;
        let (start, stop) = (if arrives { sent.min(y) } else { y }, to + side * 4.0);
        let _ = writeln!(
            self.lines,
            r#"<g class="arrow {class}"><line x1="{from:.1}" y1="{start:.1}" x2="{stop:.1}" y2="{y:.1}"/>{}</g>"#,
            head(arrives, to, y, side)
        );
        let times = if step.times > 1 { format!(" ×{}", step.times) } else { String::new() };
        let anchor = if from < to { Anchor::End } else { Anchor::Start };
        let (at, class) = ((to + side * 12.0, y - 2.5), format!("word {class}"));
        self.label(&class, &step.text, &format!("{label}{times}"), at, anchor, SMALL_CHAR_WIDTH);
    }

    fn moment(&mut self, step: &Step, (x, y): (f64, f64)) {
        let mark = Mark::of(step.kind);
        note(&mut self.used.marks, mark);
        let class = mark.class();
        let _ = writeln!(self.lines, r#"<g class="{class}">{}</g>"#, mark.shape(x, y));
        let words = cut(&step.text, self.width - x - 9.0, CHAR_WIDTH);
        let class = format!("moment {class}");
        self.label(&class, &step.text, &words, (x + 11.0, y + 4.0), Anchor::Start, CHAR_WIDTH);
    }

    /// Words on a ground of their own, above all lines.
    fn label(
        &mut self, class: &str, all: &str, words: &str, (x, y): (f64, f64), anchor: Anchor,
        char_width: f64,
    ) {
        let width = words.chars().count() as f64 * char_width + 4.0;
        let (left, anchor) = match anchor {
            Anchor::Start => (x - 2.0, "start"),
            Anchor::End => (x + 2.0 - width, "end"),
        };
        let _ = writeln!(
            self.labels,
            r#"<g class="{class}"><title>{}</title><rect class="ground" x="{left:.1}" y="{:.1}" width="{width:.1}" height="13" rx="2"/><text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text></g>"#,
            escape(all),
            y - 10.0,
            escape(words)
        );
    }
}

#[derive(Clone, Copy)]
enum Anchor {
    Start,
    End,
}

/// The head of an arrow, or the place where the message was lost.
pub(super) fn head(arrives: bool, to: f64, y: f64, side: f64) -> String {
    let back = to + side * 8.0;
    if arrives {
        let (low, high) = (y + 3.5, y - 3.5);
        return format!(
            r#"<polygon points="{to:.1},{y:.1} {back:.1},{high:.1} {back:.1},{low:.1}"/>"#
        );
    }
    format!(r#"<path transform="translate({back:.1} {y:.1})" d="M-4-4L4 4M4-4L-4 4"/>"#)
}

pub(super) fn bar(class: &str, x: f64, top: f64, bottom: f64) -> String {
    let width = if class == "down" { 17.0 } else { 9.0 };
    format!(
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{width}\" height=\"{:.1}\"/>\n",
        x - width / 2.0,
        (bottom - top).max(3.0)
    )
}

fn note<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

fn cut(text: &str, width: f64, char_width: f64) -> String {
    let chars = (width / char_width) as usize;
    match text.chars().count() {
        count if count > chars => {
            format!("{}…", text.chars().take(chars.saturating_sub(1)).collect::<String>())
        }
        _ => text.to_owned(),
    }
}

const STYLE: &str = include_str!("trace.css");
