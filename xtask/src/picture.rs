//! The chart of the README, drawn from a fresh run of `lab sweep`.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::step::Step;

const PATH: &str = "docs/throughput.svg";
const SWEEP: &str = "cargo run --release --quiet -- lab sweep --protocol sigma,strawman \
    --variant literal,shipped --n 32 --m 24 --latency uniform:50ms..150ms \
    --rate 0.5,1,1.5,2,2.5,3,3.5,4,4.5,5,6,8,10,12,16,20 --json";

/// What is drawn: protocol, variant, colour, label.
const CURVES: [(&str, &str, &str, &str); 3] = [
    ("sigma", "shipped", "#0a7f5a", "sigma"),
    ("sigma", "literal", "#c77700", "sigma, as published"),
    ("strawman", "shipped", "#b3392f", "strawman"),
];

/// The plot area, and the values at its right and upper edge.
struct Plot;

impl Plot {
    const LEFT: f64 = 56.0;
    const TOP: f64 = 24.0;
    const WIDTH: f64 = 520.0;
    const HEIGHT: f64 = 230.0;
    const RATE_MAX: f64 = 20.0;
    const THROUGHPUT_MAX: f64 = 6.0;

    fn x(rate: f64) -> f64 {
        Self::LEFT + Self::WIDTH * rate / Self::RATE_MAX
    }
    fn y(throughput: f64) -> f64 {
        Self::TOP + Self::HEIGHT * (1.0 - throughput / Self::THROUGHPUT_MAX)
    }
}

/// Runs the sweep and writes the chart.
pub(crate) fn draw() -> Result<()> {
    let rows = Step::new("sweep", SWEEP).output()?;
    std::fs::write(PATH, svg(&rows)?).with_context(|| format!("cannot write {PATH}"))?;
    eprintln!("wrote {PATH}");
    Ok(())
}

fn svg(rows: &str) -> Result<String> {
    let mut svg = String::from(HEAD);
    for tick in 0..=4 {
        let rate = Plot::RATE_MAX * f64::from(tick) / 4.0;
        let (x, y) = (Plot::x(rate), Plot::y(0.0) + 18.0);
        writeln!(svg, r#"<text class="ink" x="{x}" y="{y}" text-anchor="middle">{rate}</text>"#)?;
    }
    for throughput in [0.0, 2.0, 4.0, 6.0] {
        let (y, right) = (Plot::y(throughput), Plot::x(Plot::RATE_MAX));
        writeln!(
            svg,
            r#"<line class="grid" x1="{}" y1="{y}" x2="{right}" y2="{y}"/>"#,
            Plot::LEFT
        )?;
        let (x, y) = (Plot::LEFT - 8.0, y + 4.0);
        writeln!(
            svg,
            r#"<text class="ink" x="{x}" y="{y}" text-anchor="end">{throughput}</text>"#
        )?;
    }
    let theory = rows.lines().next().context("the sweep printed nothing")?;
    let theory = number(theory, "theory_per_s")?;
    let (y, right) = (Plot::y(theory), Plot::x(Plot::RATE_MAX));
    writeln!(
        svg,
        r#"<line class="theory" x1="{}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/>"#,
        Plot::LEFT
    )?;
    let above = y - 6.0;
    writeln!(
        svg,
        r#"<text class="ink" x="{}" y="{above:.1}">theory {theory:.2}/s</text>"#,
        Plot::LEFT + 6.0
    )?;
    for (protocol, variant, colour, label) in CURVES {
        let mut points = Vec::new();
        for row in rows.lines() {
            if text(row, "protocol")? == protocol && text(row, "variant")? == variant {
                points.push((number(row, "rate_per_s")?, number(row, "throughput_per_s")?));
            }
        }
        let (_, last) = *points.last().with_context(|| format!("no points of {label}"))?;
        let line: String =
            points.iter().map(|(x, y)| format!("{:.1},{:.1} ", Plot::x(*x), Plot::y(*y))).collect();
        writeln!(
            svg,
            r#"<polyline class="curve" stroke="{colour}" points="{}"/>"#,
            line.trim_end()
        )?;
        let (x, y) = (Plot::x(Plot::RATE_MAX) + 8.0, Plot::y(last) + 4.0);
        writeln!(svg, r#"<text fill="{colour}" x="{x}" y="{y:.1}">{label}</text>"#)?;
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

const HEAD: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 310" font-family="system-ui, sans-serif" font-size="12">
<title>Entries into the critical section per second against requests per second</title>
<style>
.ink { fill: #555 } .grid { stroke: #8884 } .theory { stroke: #888; stroke-dasharray: 5 4 }
.curve { fill: none; stroke-width: 2.2; stroke-linejoin: round }
@media (prefers-color-scheme: dark) { .ink { fill: #aaa } }
</style>
<text class="ink" x="56" y="14">entries per second</text>
<text class="ink" x="316" y="296" text-anchor="middle">requests per second (32 replicas, 24 votes, one-way delays 50–150 ms)</text>
"##;

/// A member of a flat JSON object.
fn member<'a>(row: &'a str, key: &str) -> Result<&'a str> {
    let begin = row.split_once(&format!("\"{key}\":")).map(|(_, rest)| rest);
    let begin = begin.with_context(|| format!("no {key} in {row}"))?;
    Ok(begin.split([',', '}']).next().unwrap_or(begin).trim())
}

fn number(row: &str, key: &str) -> Result<f64> {
    member(row, key)?.parse().with_context(|| format!("{key} is no number in {row}"))
}

fn text<'a>(row: &'a str, key: &str) -> Result<&'a str> {
    Ok(member(row, key)?.trim_matches('"'))
}
