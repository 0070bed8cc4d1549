//! `lab zones`: votes that weigh zones of the key space, and peers that cheat.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use sigmalock_sim::lab::zones::{ZoneConfig, ZoneRow, run};

use crate::args::Jobs;
use crate::outcome::{BadParameters, Verdict, after_lab_help};
use crate::parallel::in_parallel;
use crate::progress::Progress;

/// Lets peers vote with their share of the key space, some of them for everybody who asks
///
/// The closing idea of the Sigma paper: a lock is held at a fraction f of the whole space, whoever owns it.
/// Compromised peers can let two in at once from a share of 2f − 1 on, and no sooner; the runs show it, while
/// peers join and leave and zones change. Each setting is run twice: where everybody reaches everybody, and in
/// the worst case, in which each half of the clients reaches half of the honest peers (split). Prints one row a
/// run, as CSV. The exit code is 1 if two were inside at once where that cannot be.
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
    /// Where to write the rows [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    jobs: Jobs,
}

const EXAMPLES: &str = "  \
  sigmalock lab zones --out zones.csv
  sigmalock lab zones --fraction 750 --step 20";

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
        let mut text = format!("{HEAD}\n");
        rows.iter().for_each(|row| text.push_str(&line(row)));
        match &self.out {
            Some(path) => std::fs::write(path, text)
                .with_context(|| format!("{} cannot be written", path.display()))?,
            None => io::stdout().lock().write_all(text.as_bytes())?,
        }
        let wrong = rows.iter().any(|row| row.predicted() == Some(false) && row.overlaps > 0);
        Ok(if wrong { Verdict::Violated } else { Verdict::Holds })
    }
}

fn line(row: &ZoneRow) -> String {
    let predicted = match row.predicted() {
        Some(true) => "broken",
        Some(false) => "safe",
        None => "changes",
    };
    format!(
        "{:.3},{},{:.4},{:.4},{:.4},{predicted},{},{},{}\n",
        f64::from(row.config.permille) / 1e3,
        row.config.split,
        row.share_least,
        row.share_most,
        row.threshold,
        row.entries,
        row.overlaps,
        row.config.seed
    )
}
