//! The chart as SVG: arrows fall from the moment of sending to that of arrival, bars show who is inside.

use std::fmt::Write as _;

use sigmalock_core::PeerId;

use super::text::clock;
use super::{Kind, State, Step, Trace};
use crate::history::TrueTime;
use crate::lab::figures::chart::escape;

const LEFT: f64 = 78.0;
const TOP: f64 = 62.0;
const ROW: f64 = 19.0;
const LANE: f64 = 96.0;
/// Room for words at the right of the last lane.
const RIGHT: f64 = 210.0;
/// Words that would not fit are cut; all of them are in the tooltip.
const CHAR_WIDTH: f64 = 6.2;

pub(super) fn draw(trace: &Trace) -> String {
    let rows = trace.steps.len() as f64;
    let width = LEFT + trace.lanes.len() as f64 * LANE + RIGHT;
    let height = TOP + (rows + 2.0) * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sl-trace\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"head\" x=\"12\" y=\"22\">{title}</text>\n",
        title = escape(&trace.title)
    );
    let sheet = Sheet { trace, bottom: TOP + rows * ROW + ROW / 2.0 };
    sheet.lanes(&mut svg);
    sheet.times(&mut svg);
    trace.steps.iter().enumerate().for_each(|(row, step)| sheet.step(&mut svg, row, step, width));
    if let Some(words) = trace.omissions() {
        let _ =
            writeln!(svg, r#"<text class="time" x="12" y="{:.1}">{words}</text>"#, height - 10.0);
    }
    svg.push_str("</svg>\n");
    svg
}

struct Sheet<'a> {
    trace: &'a Trace,
    bottom: f64,
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
    fn lanes(&self, svg: &mut String) {
        for (index, lane) in self.trace.lanes.iter().enumerate() {
            let x = LEFT + (index as f64 + 0.35) * LANE;
            let name = escape(&self.trace.name(*lane));
            let _ = writeln!(
                svg,
                r#"<text class="head" x="{x:.1}" y="{:.1}" text-anchor="middle">{name}</text>"#,
                TOP - 12.0
            );
            let _ = writeln!(
                svg,
                r#"<line class="life" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{:.1}"/>"#,
                self.bottom
            );
            if let Some(peer) = lane {
                self.bars(svg, *peer, x, "down", State::is_down);
                self.bars(svg, *peer, x, "inside", State::is_inside);
            }
        }
    }

    fn bars(
        &self, svg: &mut String, peer: PeerId, x: f64, class: &str,
        on: impl Fn(&State, PeerId) -> bool,
    ) {
        let mut state = self.trace.before.clone();
        let mut from = on(&state, peer).then_some(TOP);
        for (row, step) in self.trace.steps.iter().enumerate() {
            state.apply(step);
            match (from, on(&state, peer)) {
                (None, true) => from = Some(Self::y(row)),
                (Some(top), false) => {
                    bar(svg, class, x, top, Self::y(row));
                    from = None;
                }
                _ => {}
            }
        }
        from.into_iter().for_each(|top| bar(svg, class, x, top, self.bottom));
    }

    fn times(&self, svg: &mut String) {
        let mut last = None;
        for (row, step) in self.trace.steps.iter().enumerate() {
            if last != Some(step.at) {
                let _ = writeln!(
                    svg,
                    r#"<text class="time" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                    LEFT - 12.0,
                    Self::y(row) + 4.0,
                    clock(step.at)
                );
            }
            last = Some(step.at);
        }
    }

    fn step(&self, svg: &mut String, row: usize, step: &Step, width: f64) {
        let y = Self::y(row);
        match (step.peer.and_then(|peer| self.x(peer)), step.to.and_then(|peer| self.x(peer))) {
            (Some(from), Some(to)) => self.arrow(svg, row, step, (from, to)),
            (Some(x), None) => moment(svg, step, (x, y), width),
            (None, _) => {
                let class = if step.kind == Kind::Violation { "violation" } else { "fault" };
                let _ = writeln!(
                    svg,
                    r#"<g class="{class}"><line x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}"/><text x="{LEFT}" y="{:.1}">{}</text></g>"#,
                    width - 12.0,
                    y - 3.0,
                    escape(&cut(&step.text, ((width - LEFT) / CHAR_WIDTH) as usize))
                );
            }
        }
    }

    fn arrow(&self, svg: &mut String, row: usize, step: &Step, (from, to): (f64, f64)) {
        let y = Self::y(row);
        let arrives = step.kind == Kind::Message;
        let side = if from < to { -1.0 } else { 1.0 };
        let sent = step.peer.map_or(y, |peer| self.y_of_sending(peer, step.sent, row));
        let class = if arrives { "arrow" } else { "arrow lost" };
        let word = step.text.split(' ').next().unwrap_or_default();
        let times = if step.times > 1 { format!(" ×{}", step.times) } else { String::new() };
        let anchor = if from < to { "end" } else { "start" };
        let head = if arrives {
            let (back, tip) = (to + side * 7.0, to);
            format!(
                r#"<polygon points="{tip:.1},{y:.1} {back:.1},{:.1} {back:.1},{:.1}"/>"#,
                y - 3.5,
                y + 3.5
            )
        } else {
            format!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">×</text>"#,
                to + side * 7.0,
                y + 4.5
            )
        };
        let start = if arrives { sent.min(y) } else { y };
        let _ = writeln!(
            svg,
            r#"<g class="{class}"><title>{}</title><line x1="{from:.1}" y1="{start:.1}" x2="{:.1}" y2="{y:.1}"/>{head}<text class="word" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{word}{times}</text></g>"#,
            escape(&step.text),
            to + side * 4.0,
            to + side * 10.0,
            y - 2.5,
        );
    }
}

/// Who is asleep inside has a narrow bar on a wide one.
fn bar(svg: &mut String, class: &str, x: f64, top: f64, bottom: f64) {
    let width = if class == "down" { 17.0 } else { 9.0 };
    let _ = writeln!(
        svg,
        r#"<rect class="{class}" x="{:.1}" y="{top:.1}" width="{width}" height="{:.1}"/>"#,
        x - width / 2.0,
        (bottom - top).max(3.0)
    );
}

fn moment(svg: &mut String, step: &Step, (x, y): (f64, f64), width: f64) {
    let class = match step.kind {
        Kind::Granted | Kind::Extended => "good",
        Kind::Lost | Kind::Refused | Kind::Down | Kind::Asleep => "bad",
        Kind::Note => "note",
        _ => "plain",
    };
    let _ = writeln!(
        svg,
        r#"<g class="{class}"><title>{}</title><circle cx="{x:.1}" cy="{y:.1}" r="4"/><text class="word" x="{:.1}" y="{:.1}">{}</text></g>"#,
        escape(&step.text),
        x + 9.0,
        y + 4.0,
        escape(&cut(&step.text, ((width - x - 9.0) / CHAR_WIDTH) as usize))
    );
}

fn cut(text: &str, chars: usize) -> String {
    match text.chars().count() {
        count if count > chars => format!("{}…", text.chars().take(chars - 1).collect::<String>()),
        _ => text.to_owned(),
    }
}

const STYLE: &str = "
.sl-trace { font: 12px system-ui, sans-serif }
.sl-trace .paper { fill: #fff } .sl-trace .head { fill: #111; font-weight: 600; font-size: 13px }
.sl-trace .time { fill: #777; font-variant-numeric: tabular-nums } .sl-trace .life { stroke: #bbb }
.sl-trace .inside { fill: #009e73 } .sl-trace .down { fill: #ddd }
.sl-trace .arrow line { stroke: #0072b2 } .sl-trace .arrow polygon { fill: #0072b2 }
.sl-trace .arrow .word { fill: #24557a; font-size: 10px }
.sl-trace .lost line { stroke: #d55e00; stroke-dasharray: 4 3 } .sl-trace .lost text { fill: #d55e00 }
.sl-trace .word { paint-order: stroke; stroke: #fff; stroke-width: 3px; fill: #222; font-size: 11px }
.sl-trace .good circle { fill: #009e73 } .sl-trace .bad circle { fill: #d55e00 }
.sl-trace .plain circle { fill: #555 } .sl-trace .note circle { fill: #bbb } .sl-trace .note .word { fill: #777 }
.sl-trace .violation line { stroke: #c2001b; stroke-width: 2 }
.sl-trace .violation text { fill: #c2001b; font-weight: 600 }
.sl-trace .violation text, .sl-trace .fault text { paint-order: stroke; stroke: #fff; stroke-width: 3px; font-size: 11px }
.sl-trace .fault line { stroke: #b07c00; stroke-dasharray: 6 4 } .sl-trace .fault text { fill: #8a6100 }
@media (prefers-color-scheme: dark) {
.sl-trace .paper { fill: #16181b } .sl-trace .head { fill: #f0f1f2 } .sl-trace .time { fill: #9aa0a6 }
.sl-trace .life { stroke: #4a4f56 } .sl-trace .down { fill: #3a3f45 } .sl-trace .inside { fill: #35c79a }
.sl-trace .arrow line { stroke: #56a9e0 } .sl-trace .arrow polygon { fill: #56a9e0 }
.sl-trace .arrow .word { fill: #9fd0f2 } .sl-trace .word { stroke: #16181b; fill: #dfe2e5 }
.sl-trace .note .word { fill: #9aa0a6 } .sl-trace .violation line { stroke: #ff6b78 }
.sl-trace .violation text { fill: #ff8a94; stroke: #16181b }
.sl-trace .fault text { fill: #e6b440; stroke: #16181b }
}
";
