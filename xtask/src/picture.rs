//! The chart of the README, drawn from fresh runs of `lab sweep`: Figures 3 and 7 of the paper in one.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::step::Step;

const PATH: &str = "docs/throughput.svg";

/// The bounds of the one-way delays in milliseconds, and the colour of their curves.
const DELAYS: [(u32, u32, &str); 3] =
    [(90, 110, "#0a7f5a"), (50, 150, "#2a6fb0"), (0, 200, "#8a4fa0")];

const RATES: &str = "0.5,1,1.5,2,2.5,3,3.5,4,4.5,5,6,7,8,10,12,14,16,18,20";

/// The plot area, and the values at its right and upper edge.
const LEFT: f64 = 44.0;
const TOP: f64 = 30.0;
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 230.0;
const RATE_MAX: f64 = 20.0;
const ENTRIES_MAX: f64 = 5.6;

fn x(rate: f64) -> f64 {
    LEFT + WIDTH * rate / RATE_MAX
}
fn y(entries: f64) -> f64 {
    TOP + HEIGHT * (1.0 - entries / ENTRIES_MAX)
}

/// Runs the sweeps and writes the chart.
pub(crate) fn draw() -> Result<()> {
    let mut svg = String::from(HEAD);
    axes(&mut svg)?;
    for (low, high, colour) in DELAYS {
        let line = format!(
            "cargo run --release --quiet -- lab sweep --protocol sigma,strawman --n 32 --m 24 \
             --latency uniform:{low}ms..{high}ms --back-off 0s..100s --rate {RATES} --json"
        );
        let rows = Step::new("sweep", line).output()?;
        for protocol in ["sigma", "strawman"] {
            let points = curve(&rows, protocol)?;
            let path: Vec<String> = points
                .iter()
                .map(|(rate, entries)| format!("{:.1},{:.1}", x(*rate), y(*entries)))
                .collect();
            let path = path.join(" ");
            writeln!(svg, r#"<polyline class="{protocol}" stroke="{colour}" points="{path}"/>"#)?;
            if protocol == "sigma" {
                let (_, last) = *points.last().context("a curve without points")?;
                let (x, y) = (x(RATE_MAX) + 8.0, y(last) + 4.0);
                writeln!(
                    svg,
                    r#"<text fill="{colour}" x="{x}" y="{y:.1}">{low}–{high} ms</text>"#
                )?;
            }
        }
    }
    svg.push_str("</svg>\n");
    std::fs::write(PATH, svg).with_context(|| format!("cannot write {PATH}"))?;
    eprintln!("wrote {PATH}");
    Ok(())
}

fn axes(svg: &mut String) -> Result<()> {
    for rate in [0.0, 5.0, 10.0, 15.0, 20.0] {
        let (x, y) = (x(rate), y(0.0) + 18.0);
        writeln!(svg, r#"<text class="ink" x="{x}" y="{y}" text-anchor="middle">{rate}</text>"#)?;
    }
    for entries in [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] {
        let (y, right) = (y(entries), x(RATE_MAX));
        writeln!(svg, r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/>"#)?;
        let (x, y) = (LEFT - 8.0, y + 4.0);
        writeln!(
            svg,
            r#"<text class="ink" x="{x}" y="{y:.1}" text-anchor="end">{entries}</text>"#
        )?;
    }
    let labels = [(10.0, 5.1, "Sigma"), (7.4, 2.05, "strawman")];
    for (rate, entries, label) in labels {
        writeln!(
            svg,
            r#"<text class="ink label" x="{}" y="{:.1}">{label}</text>"#,
            x(rate),
            y(entries)
        )?;
    }
    Ok(())
}

/// Requests and entries per second.
fn curve(rows: &str, protocol: &str) -> Result<Vec<(f64, f64)>> {
    let of_it = rows.lines().filter(|row| row.contains(&format!("\"protocol\":\"{protocol}\"")));
    of_it.map(|row| Ok((number(row, "rate_per_s")?, number(row, "throughput_per_s")?))).collect()
}

/// A number of a flat JSON object.
fn number(row: &str, key: &str) -> Result<f64> {
    let (_, rest) =
        row.split_once(&format!("\"{key}\":")).with_context(|| format!("no {key} in {row}"))?;
    let text = rest.split([',', '}']).next().unwrap_or(rest);
    text.trim().parse().with_context(|| format!("{key} is no number in {row}"))
}

const HEAD: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 312" font-family="system-ui, sans-serif" font-size="12">
<title>Entries into the critical section per second against requests per second</title>
<style>
.ink { fill: #555 } .label { font-size: 13px } .grid { stroke: #8884 }
.sigma, .strawman { fill: none; stroke-width: 2.2; stroke-linejoin: round }
.strawman { stroke-dasharray: 5 4; stroke-width: 1.8 }
@media (prefers-color-scheme: dark) { .ink { fill: #aaa } }
</style>
<text class="ink" x="24" y="16">entries per second</text>
<text class="ink" x="304" y="302" text-anchor="middle">requests per second — 24 of 32 votes, one-way delays as labelled</text>
"##;
