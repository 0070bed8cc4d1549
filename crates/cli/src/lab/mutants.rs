//! `lab mutants`: are the oracles awake?

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use sigmalock_sim::lab::mutants::hunt;
use sigmalock_sim::mutant;

use crate::args::SeedRuns;
use crate::outcome::{Verdict, after_lab_help};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Breaks the protocol one rule at a time and waits for an oracle to notice
///
/// Each mutant is tortured until the oracle whose business it is objects, with a seed that the healthy
/// protocol gets through. A mutant that gets through all its seeds is a hole in the oracles: exit code 1.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
#[command(mut_arg("seeds", |seeds| seeds.default_value("0..10000")))]
pub(crate) struct Mutants {
    /// Only say which mutants there are: one name a line, also with --json
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    runs: SeedRuns,
    /// One JSON object per mutant, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab mutants
  sigmalock lab mutants --list";

/// What became of a mutant: a line of `--json`.
#[derive(Serialize)]
struct Hunt {
    mutant: &'static str,
    oracle: &'static str,
    caught: bool,
    seed: Option<u64>,
    replay: Option<String>,
}

impl Mutants {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let mut out = io::stdout().lock();
        if self.list {
            mutant::all().try_for_each(|mutant| writeln!(out, "{mutant}"))?;
            return Ok(Verdict::Holds);
        }
        let SeedRuns { replicas, seeds, jobs } = &self.runs;
        let quorum = replicas.quorum()?;
        let progress = Progress::new(mutant::all().count() as u64, "mutants");
        let mut hunts = Vec::new();
        for mutant in mutant::all() {
            progress.say(mutant.name);
            let failure = hunt(mutant, quorum, seeds.clone(), jobs.count());
            hunts.push(Hunt {
                mutant: mutant.name,
                oracle: mutant.oracle,
                caught: failure.is_some(),
                seed: failure.as_ref().map(|failure| failure.seed),
                replay: failure.map(|failure| failure.replay),
            });
            progress.step();
        }
        drop(progress);
        if self.json {
            for hunt in &hunts {
                writeln!(out, "{}", serde_json::to_string(hunt)?)?;
            }
        } else {
            print_for_people(&mut out, &hunts)?;
        }
        let escaped = hunts.iter().any(|hunt| !hunt.caught);
        Ok(if escaped { Verdict::Violated } else { Verdict::Holds })
    }
}

fn print_for_people(out: &mut dyn Write, hunts: &[Hunt]) -> io::Result<()> {
    let mut table = Table::new([
        ("mutant", Align::Left),
        ("its oracle", Align::Left),
        ("caught at seed", Align::Right),
    ]);
    for hunt in hunts {
        table.row([
            hunt.mutant.to_owned(),
            hunt.oracle.to_owned(),
            hunt.seed.map_or_else(|| "ESCAPED".to_owned(), |seed| seed.to_string()),
        ]);
    }
    table.print(out)?;
    let escaped = hunts.iter().filter(|hunt| !hunt.caught).count();
    match escaped {
        0 => writeln!(out, "all {} mutants caught", hunts.len()),
        _ => writeln!(out, "{escaped} of {} mutants escaped", hunts.len()),
    }
}
