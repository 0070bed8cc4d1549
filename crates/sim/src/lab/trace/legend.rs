//! Under the drawing: what its arrows, bars and signs mean; those that occur, and no others.

use std::fmt::Write as _;

use super::drawing::{Used, bar, head};
use super::family::Family;
use super::mark::Mark;

const LEFT: f64 = 14.0;
const ROW: f64 = 22.0;
const CHAR_WIDTH: f64 = 6.1;
/// How long an arrow is here.
const ARROW: f64 = 34.0;
const BARS: [(&str, &str); 3] = [
    ("inside", "inside"),
    ("overdue", "its time is over, it does not know"),
    ("down", "down or asleep"),
];

/// The legend from this height on, and where it ends.
pub(super) fn draw(used: &Used, width: f64, y: f64) -> (String, f64) {
    let mut flow = Flow { out: String::new(), width, x: LEFT, y };
    for family in Family::ALL.into_iter().filter(|family| used.families.contains(family)) {
        flow.entry(ARROW, family.words(), |x, y| arrow(family.class(), true, x, y));
    }
    if used.lost {
        flow.entry(ARROW, "lost on the way", |x, y| arrow("lost", false, x, y));
    }
    for (class, words) in BARS.into_iter().filter(|(class, _)| used.bars.contains(class)) {
        flow.entry(17.0, words, |x, y| bar(class, x + 8.5, y - 7.0, y + 7.0));
    }
    for mark in Mark::ALL.into_iter().filter(|mark| used.marks.contains(mark)) {
        let class = mark.class();
        let draw = |x, y| format!(r#"<g class="{class}">{}</g>"#, mark.shape(x + 6.0, y));
        flow.entry(12.0, mark.words(), draw);
    }
    for (class, words, occurs) in [
        ("fault", "something breaks, or is mended", used.faults),
        ("violation", "an oracle objects: harm", used.violations),
    ] {
        if occurs {
            let draw = |x: f64, y: f64| {
                let end = x + ARROW;
                format!(
                    r#"<line class="{class}" x1="{x:.1}" y1="{y:.1}" x2="{end:.1}" y2="{y:.1}"/>"#
                )
            };
            flow.entry(ARROW, words, draw);
        }
    }
    let bottom = flow.y + ROW;
    (flow.out, bottom)
}

fn arrow(class: &str, arrives: bool, x: f64, y: f64) -> String {
    let end = x + ARROW;
    let (stop, head) = (end - 4.0, head(arrives, end, y, -1.0));
    format!(
        r#"<g class="arrow {class}"><line x1="{x:.1}" y1="{y:.1}" x2="{stop:.1}" y2="{y:.1}"/>{head}</g>"#
    )
}

/// Entries beside each other, and then below.
struct Flow {
    out: String,
    width: f64,
    x: f64,
    y: f64,
}

impl Flow {
    fn entry(&mut self, sample: f64, words: &str, draw: impl FnOnce(f64, f64) -> String) {
        let long = sample + 8.0 + words.chars().count() as f64 * CHAR_WIDTH + 18.0;
        if self.x > LEFT && self.x + long > self.width {
            (self.x, self.y) = (LEFT, self.y + ROW);
        }
        let (x, y) = (self.x, self.y);
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.out,
            r#"{}<text class="legend" x="{:.1}" y="{:.1}">{words}</text>"#,
            draw(x, y - 4.0).trim_end(),
            x + sample + 8.0,
            y
        );
        self.x += long;
    }
}
