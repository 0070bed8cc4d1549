//! `lab mutants`: are the oracles awake?

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;

use clap::Args;
use serde::Serialize;
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::sigma::Mutant;
use sigmalock_sim::lab::torture::{Victim, torture};

use crate::args::{self, Jobs, Replicas};
use crate::outcome::{Verdict, after_help};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// Breaks the protocol one rule at a time and waits for an oracle to notice
///
/// Each mutant is tortured until an oracle objects. One that gets through all its seeds unnoticed is
/// a hole in the oracles: exit code 1.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Mutants {
    /// Only say which mutants there are
    #[arg(long)]
    list: bool,
    /// Without these, each seed draws one of the usual sizes.
    #[command(flatten)]
    replicas: Replicas,
    /// Seeds in which a mutant must be caught, B not included
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = args::seeds)]
    #[arg(allow_hyphen_values = true)]
    seeds: Range<u64>,
    #[command(flatten)]
    jobs: Jobs,
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
    caught: bool,
    oracles: BTreeSet<&'static str>,
    seed: Option<u64>,
    seeds_tried: u64,
    replay: Option<String>,
}

impl Mutants {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let mut out = io::stdout().lock();
        if self.list {
            Mutant::ALL.iter().try_for_each(|mutant| writeln!(out, "{mutant}"))?;
            return Ok(Verdict::Holds);
        }
        let quorum = self.replicas.quorum()?;
        let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
        let progress = Progress::new(Mutant::ALL.len() as u64, "mutants");
        let mut hunts = Vec::new();
        for mutant in Mutant::ALL {
            progress.say(mutant.as_str());
            hunts.push(self.hunt(&Victim { protocol, variant, mutant: Some(*mutant), quorum }));
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

    /// Most mutants are caught at once, so the first packs of seeds are small.
    fn hunt(&self, victim: &Victim) -> Hunt {
        let Range { mut start, end } = self.seeds;
        let mut pack = self.jobs.count() as u64;
        while start < end {
            let stop = start.saturating_add(pack).min(end);
            let report = torture(victim, start..stop, self.jobs.count(), &|_| (), true);
            if let Some(failure) = report.failures.first() {
                return Hunt {
                    mutant: victim.mutant.map_or("", Mutant::as_str),
                    caught: true,
                    oracles: failure.violations.iter().map(|violation| violation.oracle).collect(),
                    seed: Some(failure.seed),
                    seeds_tried: failure.seed - self.seeds.start + 1,
                    replay: Some(failure.replay.clone()),
                };
            }
            (start, pack) = (stop, pack.saturating_mul(2));
        }
        Hunt {
            mutant: victim.mutant.map_or("", Mutant::as_str),
            caught: false,
            oracles: BTreeSet::new(),
            seed: None,
            seeds_tried: end - self.seeds.start,
            replay: None,
        }
    }
}

fn print_for_people(out: &mut dyn Write, hunts: &[Hunt]) -> io::Result<()> {
    let mut table =
        Table::new([("mutant", Align::Left), ("caught by", Align::Left), ("seed", Align::Right)]);
    for hunt in hunts {
        let oracles = hunt.oracles.iter().copied().collect::<Vec<_>>().join(", ");
        table.row([
            hunt.mutant.to_owned(),
            if hunt.caught { oracles } else { "NOBODY".to_owned() },
            hunt.seed.map_or_else(|| "-".to_owned(), |seed| seed.to_string()),
        ]);
    }
    table.print(out)?;
    let escaped = hunts.iter().filter(|hunt| !hunt.caught).count();
    match escaped {
        0 => writeln!(out, "all {} mutants caught", hunts.len()),
        _ => writeln!(out, "{escaped} of {} mutants escaped", hunts.len()),
    }
}
