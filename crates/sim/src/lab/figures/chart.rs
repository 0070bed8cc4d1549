//! Line charts as SVG text: narrow enough to be read on a phone and in a column of a paper, light or dark.
//! Series differ in colour, dash and marker, so that none of the three is needed alone.

use std::fmt::Write as _;

/// The width of the drawing. A phone of 360 points shows it at four fifths, so that the smallest text is
/// about eleven points there.
const WIDTH: f64 = 420.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const PLOT_HEIGHT: f64 = 224.0;
const HEADING: f64 = 26.0;
const LEGEND_ROW: f64 = 20.0;
const BELOW: f64 = 52.0;
/// Of the legend's text, generously.
const CHAR_WIDTH: f64 = 7.7;
const SAMPLE_WIDTH: f64 = 34.0;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
}

/// One direction of a panel.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0, with a tick at every `step`.
    pub(crate) fn linear(label: &'static str, high: f64, step: f64) -> Self {
        let count = (high / step).floor() as u32;
        let ticks = (0..=count).map(|i| f64::from(i) * step).map(|at| (at, at.to_string()));
        Self { label, scale: Scale::Linear, low: 0.0, high, ticks: ticks.collect() }
    }

    /// Logarithmic, with these ticks.
    pub(crate) fn log(label: &'static str, low: f64, high: f64, ticks: &[f64]) -> Self {
        let ticks = ticks.iter().map(|at| (*at, thousands(*at))).collect();
        Self { label, scale: Scale::Log, low, high, ticks }
    }

    /// Where a value lies, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

pub(crate) fn thousands(value: f64) -> String {
    let digits = value.to_string();
    match digits.len() {
        4.. if value.fract() == 0.0 => {
            let (head, tail) = digits.split_at(digits.len() - 3);
            format!("{head},{tail}")
        }
        _ => digits,
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

impl Stroke {
    const fn dashes(self) -> &'static str {
        match self {
            Self::Solid => "",
            Self::Dashed => r#" stroke-dasharray="7 4""#,
            Self::Dotted => r#" stroke-dasharray="2 3""#,
        }
    }
}

/// One line of a panel.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// 0 to 5, or 9 for that of text.
    pub(crate) colour: usize,
    pub(crate) stroke: Stroke,
    /// Whether points are marked; each colour has its own mark.
    pub(crate) marks: bool,
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether the legend has it.
    pub(crate) listed: bool,
}

impl Series {
    /// A solid line with marks.
    pub(crate) fn new(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        let (stroke, marks, listed) = (Stroke::Solid, true, true);
        Self { name: name.into(), colour, stroke, marks, points, listed }
    }
    /// A line from edge to edge, without marks.
    pub(crate) fn level(name: impl Into<String>, colour: usize, axis: &Axis, value: f64) -> Self {
        let points = vec![(axis.low, value), (axis.high, value)];
        Self { stroke: Stroke::Dashed, marks: false, ..Self::new(name, colour, points) }
    }
    /// Only an entry of the legend: what a kind of line means, whatever its colour.
    pub(crate) fn key(name: impl Into<String>, stroke: Stroke) -> Self {
        Self { stroke, marks: false, ..Self::new(name, 9, Vec::new()) }
    }
    pub(crate) fn stroke(self, stroke: Stroke) -> Self {
        Self { stroke, ..self }
    }
    pub(crate) fn unlisted(self) -> Self {
        Self { listed: false, ..self }
    }
}

/// A pair of axes with its lines. Panels stand below each other.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) heading: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// Draws panels.
pub(crate) fn draw(title: &str, panels: &[Panel]) -> String {
    let height: f64 = panels.iter().map(Panel::height).sum();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sl\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        escape(title)
    );
    let mut top = 0.0;
    for panel in panels {
        panel.draw(&mut svg, top);
        top += panel.height();
    }
    svg.push_str("</svg>\n");
    svg
}

impl Panel {
    fn legend(&self) -> Vec<(f64, usize, &Series)> {
        let (mut x, mut row) = (LEFT, 0);
        let mut places = Vec::new();
        for series in self.series.iter().filter(|series| series.listed) {
            let width = SAMPLE_WIDTH + series.name.chars().count() as f64 * CHAR_WIDTH + 12.0;
            if x > LEFT && x + width > WIDTH {
                (x, row) = (LEFT, row + 1);
            }
            places.push((x, row, series));
            x += width;
        }
        places
    }

    fn legend_height(&self) -> f64 {
        self.legend().last().map_or(0.0, |(_, row, _)| (row + 1) as f64 * LEGEND_ROW + 4.0)
    }

    fn height(&self) -> f64 {
        HEADING + self.legend_height() + 10.0 + PLOT_HEIGHT + BELOW
    }

    fn draw(&self, svg: &mut String, top: f64) {
        text(svg, LEFT, top + 18.0, "start", "head", &self.heading);
        for (x, row, series) in self.legend() {
            let y = top + HEADING + row as f64 * LEGEND_ROW + 10.0;
            line(svg, series, &[(x, y), (x + SAMPLE_WIDTH - 8.0, y)]);
            if series.marks {
                mark(svg, series.colour, x + (SAMPLE_WIDTH - 8.0) / 2.0, y);
            }
            text(svg, x + SAMPLE_WIDTH, y + 4.5, "start", "ink", &series.name);
        }
        let plot = top + HEADING + self.legend_height() + 10.0;
        self.axes(svg, plot);
        for series in &self.series {
            let place = |(x, y): &(f64, f64)| (self.place_x(*x), self.place_y(plot, *y));
            let points: Vec<_> = series.points.iter().map(place).collect();
            if !points.is_empty() {
                line(svg, series, &points);
            }
            if series.marks {
                points.iter().for_each(|(x, y)| mark(svg, series.colour, *x, *y));
            }
        }
    }

    fn place_x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn place_y(&self, plot: f64, value: f64) -> f64 {
        plot + (1.0 - self.y.share(value)) * PLOT_HEIGHT
    }

    fn axes(&self, svg: &mut String, plot: f64) {
        let (right, bottom) = (WIDTH - RIGHT, plot + PLOT_HEIGHT);
        for (value, label) in &self.y.ticks {
            let y = self.place_y(plot, *value);
            rule(svg, "grid", (LEFT, y), (right, y));
            text(svg, LEFT - 7.0, y + 4.5, "end", "ink", label);
        }
        for (value, label) in &self.x.ticks {
            let x = self.place_x(*value);
            rule(svg, "grid", (x, plot), (x, bottom));
            text(svg, x, bottom + 18.0, "middle", "ink", label);
        }
        rule(svg, "axis", (LEFT, bottom), (right, bottom));
        rule(svg, "axis", (LEFT, plot), (LEFT, bottom));
        text(svg, (LEFT + right) / 2.0, bottom + 39.0, "middle", "ink", self.x.label);
        let middle = plot + PLOT_HEIGHT / 2.0;
        let turned = format!(
            "<text class=\"ink\" text-anchor=\"middle\" transform=\"translate(13 {middle}) \
             rotate(-90)\">{}</text>",
            escape(self.y.label)
        );
        svg.push_str(&turned);
        svg.push('\n');
    }
}

fn line(svg: &mut String, series: &Series, points: &[(f64, f64)]) {
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (colour, dashes, path) = (series.colour, series.stroke.dashes(), path.join(" "));
    // Writing to a string cannot fail.
    let _ = writeln!(svg, r#"<polyline class="line c{colour}"{dashes} points="{path}"/>"#);
}

/// The mark of a colour: circle, square, triangle, diamond, cross, or a triangle on its head.
fn mark(svg: &mut String, colour: usize, x: f64, y: f64) {
    let shape = match colour {
        0 => format!(r#"<circle class="mark c0" cx="{x:.1}" cy="{y:.1}" r="3.3"/>"#),
        1 => polygon(colour, x, y, &[(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)]),
        2 => polygon(colour, x, y, &[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)]),
        3 => polygon(colour, x, y, &[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)]),
        4 => polygon(colour, x, y, &[(0.0, 4.2), (4.0, -3.0), (-4.0, -3.0)]),
        _ => polygon(colour, x, y, &[(-4.0, -1.5), (4.0, -1.5), (4.0, 1.5), (-4.0, 1.5)]),
    };
    svg.push_str(&shape);
    svg.push('\n');
}

fn polygon(colour: usize, x: f64, y: f64, corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    format!(r#"<polygon class="mark c{colour}" points="{}"/>"#, corners.join(" "))
}

fn rule(svg: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
    let words = escape(words);
    let _ = writeln!(
        svg,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#
    );
}

/// Text as XML has it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The colours are those of Okabe and Ito, which the colour-blind can tell apart; brighter on dark paper.
const STYLE: &str = "
.sl { font: 14px system-ui, sans-serif }
.sl .paper { fill: #fff } .sl .ink { fill: #444 } .sl .head { fill: #111; font-weight: 600; font-size: 15px }
.sl .grid { stroke: #e4e4e4 } .sl .axis { stroke: #777 }
.sl .line { fill: none; stroke-width: 1.8; stroke-linejoin: round } .sl .mark { stroke: none }
.sl .line.c0 { stroke: #0072b2 } .sl .mark.c0 { fill: #0072b2 }
.sl .line.c1 { stroke: #d55e00 } .sl .mark.c1 { fill: #d55e00 }
.sl .line.c2 { stroke: #008f68 } .sl .mark.c2 { fill: #008f68 }
.sl .line.c3 { stroke: #b8558a } .sl .mark.c3 { fill: #b8558a }
.sl .line.c4 { stroke: #b07c00 } .sl .mark.c4 { fill: #b07c00 }
.sl .line.c5 { stroke: #3590c8 } .sl .mark.c5 { fill: #3590c8 }
.sl .line.c9 { stroke: #444 }
@media (prefers-color-scheme: dark) {
.sl .paper { fill: #16181b } .sl .ink { fill: #b8bcc2 } .sl .head { fill: #f0f1f2 }
.sl .grid { stroke: #2c3036 } .sl .axis { stroke: #7d838a }
.sl .line.c0 { stroke: #56a9e0 } .sl .mark.c0 { fill: #56a9e0 }
.sl .line.c1 { stroke: #f08a45 } .sl .mark.c1 { fill: #f08a45 }
.sl .line.c2 { stroke: #35c79a } .sl .mark.c2 { fill: #35c79a }
.sl .line.c3 { stroke: #e39ac0 } .sl .mark.c3 { fill: #e39ac0 }
.sl .line.c4 { stroke: #e6b440 } .sl .mark.c4 { fill: #e6b440 }
.sl .line.c5 { stroke: #8cc9ee } .sl .mark.c5 { fill: #8cc9ee }
.sl .line.c9 { stroke: #b8bcc2 }
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_drawn_where_its_axes_say() {
        let x = Axis::log("x", 10.0, 1_000.0, &[10.0, 100.0, 1_000.0]);
        let y = Axis::linear("y", 4.0, 1.0);
        let series = vec![Series::new("a < b", 0, vec![(100.0, 1.0)])];
        let svg = draw("t", &[Panel { heading: "h".to_owned(), x, y, series }]);
        // The middle of the width, three quarters down.
        let (at_x, at_y) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, 26.0 + 24.0 + 10.0 + 224.0 * 0.75);
        assert!(svg.contains(&format!(r#"cx="{at_x:.1}" cy="{at_y:.1}""#)), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains(">1,000<"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_legend_wraps_before_the_edge() {
        let axis = || Axis::linear("x", 1.0, 1.0);
        let series = |i| Series::new(format!("a long name {i}"), 0, vec![]);
        let series = (0..4).map(series).collect();
        let panel = Panel { heading: String::new(), x: axis(), y: axis(), series };
        let rows: Vec<usize> = panel.legend().iter().map(|(_, row, _)| *row).collect();
        assert_eq!(rows, [0, 0, 1, 1]);
        assert!(panel.height() > PLOT_HEIGHT + 2.0 * LEGEND_ROW);
    }
}
