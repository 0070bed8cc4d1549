//! `lab zones`: votes that weigh zones of the key space, and peers that cheat.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use sigmalock_sim::lab::parallel::in_parallel;
use sigmalock_sim::lab::zones::{ZoneConfig, ZoneRow, run};

use crate::args::Jobs;
use crate::outcome::{BadParameters, Verdict, after_lab_help};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Lets peers vote with their share of the key space, some of them for everybody who asks
///
/// The closing idea of the Sigma paper: a lock is held at a fraction f of the whole space, whoever owns it.
/// Compromised peers can let two in at once from a share of 2f − 1 on, and no sooner; the runs show it, while
/// peers join and leave and zones change. Each setting is run twice: where everybody reaches everybody, and in
/// the worst case, in which each half of the clients reaches half of the honest peers (split). Prints one row
/// a fraction and share; with --out or --json one a run. The exit code is 1 if two were inside at once where
/// that cannot be.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct Zones {
    /// The fractions that hold the lock, in thousandths, each more than a half
    #[arg(long, value_name = "F[,F…]", value_delimiter = ',', default_value = "600,667,750,850")]
    #[arg(value_parser = clap::value_parser!(u16).range(501..=1000))]
    fraction: Vec<u16>,
    /// The compromised shares go from nothing to 90 % in steps of so many thousandths
    #[arg(long, value_name = "S", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=900))]
    step: u16,
    /// Runs for each fraction and share
    #[arg(long, value_name = "K", default_value = "3")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Also write every run into this file, as CSV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
    /// One JSON object per run, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab zones --out zones.csv
  sigmalock lab zones --fraction 750 --step 20
  sigmalock lab zones --fraction 667 --json";

/// The columns.
const HEAD: &str =
    "fraction,split,compromised_least,compromised_most,threshold,predicted,entries,overlaps,seed";

impl Zones {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let mut points = Vec::new();
        for fraction in &self.fraction {
            for share in (0..=900).step_by(self.step.into()) {
                let seeds = 1..=u64::from(self.runs);
                for split in [false, true] {
                    let config = |seed| ZoneConfig::new(*fraction, share, split, seed);
                    points.extend(seeds.clone().map(config));
                }
            }
        }
        let progress = Progress::new(points.len() as u64, "runs");
        let mut rows = Vec::new();
        in_parallel(
            &points,
            self.jobs.count(),
            |point| run(*point),
            |row| {
                progress.step();
                rows.push(row.map_err(|why| BadParameters(why.to_string()))?);
                anyhow::Ok(())
            },
        )?;
        drop(progress);
        if let Some(path) = &self.out {
            let lines: String = rows.iter().map(line).collect();
            std::fs::write(path, format!("{HEAD}\n{lines}"))
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let mut out = io::stdout().lock();
        if self.json {
            for row in &rows {
                writeln!(out, "{}", object(row))?;
            }
        } else {
            print_for_people(&mut out, &rows)?;
        }
        let wrong = rows.iter().any(|row| row.predicted() == Some(false) && row.overlaps > 0);
        Ok(if wrong { Verdict::Violated } else { Verdict::Holds })
    }
}

/// What theory says of a run.
fn predicted(row: &ZoneRow) -> &'static str {
    match row.predicted() {
        Some(true) => "broken",
        Some(false) => "safe",
        None => "changes",
    }
}

/// The runs of a setting in one row. They are next to each other.
fn print_for_people(out: &mut dyn Write, rows: &[ZoneRow]) -> io::Result<()> {
    let mut table = Table::new([
        ("held by", Align::Right),
        ("clients", Align::Left),
        ("compromised", Align::Right),
        ("breaks from", Align::Right),
        ("theory", Align::Left),
        ("two inside in", Align::Left),
        ("entries", Align::Right),
    ]);
    let setting = |row: &ZoneRow| (row.config.permille, row.config.split, row.config.compromised);
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    for runs in rows.chunk_by(|a, b| setting(a) == setting(b)) {
        let Some(first) = runs.first() else { continue };
        let least = runs.iter().map(|run| run.share_least).fold(1.0, f64::min);
        let most = runs.iter().map(|run| run.share_most).fold(0.0, f64::max);
        let broken = runs.iter().filter(|run| run.overlaps > 0).count();
        let mut theory: Vec<&str> = runs.iter().map(predicted).collect();
        theory.sort_unstable();
        theory.dedup();
        table.row([
            format!("{} %", percent(f64::from(first.config.permille) / 1e3)),
            if first.config.split { "in two camps" } else { "together" }.to_owned(),
            format!("{}–{} %", percent(least), percent(most)),
            format!("{} %", percent(first.threshold)),
            theory.join(" or "),
            format!("{broken} of {} runs", runs.len()),
            runs.iter().map(|run| run.entries).sum::<u64>().to_string(),
        ]);
    }
    table.print(out)
}

/// A run, with the columns of the CSV.
fn object(row: &ZoneRow) -> serde_json::Value {
    serde_json::json!({
        "fraction": f64::from(row.config.permille) / 1e3,
        "split": row.config.split,
        "compromised_least": row.share_least,
        "compromised_most": row.share_most,
        "threshold": row.threshold,
        "predicted": predicted(row),
        "entries": row.entries,
        "overlaps": row.overlaps,
        "seed": row.config.seed,
    })
}

fn line(row: &ZoneRow) -> String {
    format!(
        "{:.3},{},{:.4},{:.4},{:.4},{},{},{},{}\n",
        f64::from(row.config.permille) / 1e3,
        row.config.split,
        row.share_least,
        row.share_most,
        row.threshold,
        predicted(row),
        row.entries,
        row.overlaps,
        row.config.seed
    )
}
