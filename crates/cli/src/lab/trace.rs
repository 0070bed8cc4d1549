//! `lab trace`: a run as a message-sequence chart.

use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use sigmalock_core::Span;
use sigmalock_protocols::catalogue::ProtocolName;
use sigmalock_sim::lab::torture::{Victim, torture};
use sigmalock_sim::lab::trace::{STEPS_MAX, Trace, View};
use sigmalock_sim::scenario::Scenario;

use super::victim::VictimFlags;
use crate::args::{self, Jobs, Replicas};
use crate::outcome::{BadParameters, Verdict, after_lab_help, complain};
use crate::progress::Progress;

/// Shows a run as a message-sequence chart, from a scenario file or a seed of torture
///
/// A lane per peer, an arrow per message, and the moments that matter: asked, let in, sealed, lost,
/// left, faults, and what an oracle objects to. Long runs are shown around the first violation if there is
/// one. With --seeds, the first seed that violates something. If something was violated, the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = after_lab_help(EXAMPLES))]
pub(crate) struct TraceCommand {
    /// A scenario, as in the folder `scenarios`
    #[arg(value_name = "FILE", required_unless_present_any = ["seed", "seeds"])]
    #[arg(conflicts_with_all = ["seed", "seeds"])]
    scenario: Option<PathBuf>,
    /// The seed of a tortured world
    #[arg(long, value_name = "S", value_parser = args::seed, allow_hyphen_values = true)]
    seed: Option<u64>,
    /// The first of these seeds that violates something, else the first of all; B not included
    #[arg(long, value_name = "A..B", value_parser = args::seeds, conflicts_with = "seed")]
    #[arg(allow_hyphen_values = true)]
    seeds: Option<Range<u64>>,
    /// Which protocol is tortured
    #[arg(long, value_name = "P", default_value = "sigma", value_parser = protocol)]
    protocol: ProtocolName,
    #[command(flatten)]
    victim: VictimFlags,
    #[command(flatten)]
    replicas: Replicas,
    #[command(flatten)]
    jobs: Jobs,
    /// Only what happens between these times of the run
    #[arg(long, value_name = "FROM..TO", value_parser = args::span_range)]
    #[arg(allow_hyphen_values = true)]
    window: Option<(Span, Span)>,
    /// At most so many steps [default: 120]
    #[arg(long, value_name = "K", value_parser = steps, allow_hyphen_values = true)]
    steps: Option<usize>,
    /// Only what these peers do and say to each other, by the names of their lanes
    #[arg(long, value_name = "X[,X…]", value_delimiter = ',')]
    peers: Vec<String>,
    /// Also draw it, into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// One JSON object per step, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock lab trace scenarios/02-three-way-collision.txt --svg collision.svg
  sigmalock lab trace --n 3 --m 2 --mutant grants-twice --seeds 0..200
  sigmalock lab trace --seed 7 --n 3 --m 2 --window 0s..2s --steps 40";

fn protocol(text: &str) -> Result<ProtocolName, String> {
    text.parse().map_err(|why: sigmalock_protocols::catalogue::UnknownName| why.to_string())
}

fn steps(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=STEPS_MAX).contains(count));
    count.ok_or_else(|| format!("this should be a whole number between 1 and {STEPS_MAX}"))
}

impl TraceCommand {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let peers = self.peers.clone();
        let view = View { window: self.window, steps: self.steps, peers };
        let trace = match &self.scenario {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|why| {
                    BadParameters(format!("cannot read {}: {why}", path.display()))
                })?;
                let scenario = Scenario::parse(&text)
                    .map_err(|why| BadParameters(format!("{}: {why}", path.display())))?;
                Trace::of_scenario(&scenario, path.display().to_string(), &view)
            }
            None => {
                let victim = self.victim.victim(self.protocol, &self.replicas)?;
                Trace::of_seed(&victim, self.first_seed(&victim), &view)
            }
        };
        if let Some(path) = &self.svg {
            fs::write(path, trace.svg())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let mut out = io::stdout().lock();
        if self.json {
            for row in trace.rows() {
                writeln!(out, "{}", serde_json::to_string(&row)?)?;
            }
        } else {
            write!(out, "{}", trace.text())?;
        }
        Ok(if trace.violations.is_empty() { Verdict::Holds } else { Verdict::Violated })
    }

    fn first_seed(&self, victim: &Victim) -> u64 {
        let Some(seeds) = &self.seeds else { return self.seed.unwrap_or(0) };
        let progress = Progress::new(seeds.end - seeds.start, "seeds");
        let step = |_| progress.step();
        let report = torture(victim, seeds.clone(), self.jobs.count(), &step, true);
        drop(progress);
        match report.failures.first() {
            Some(failure) => failure.seed,
            None => {
                let (from, to) = (seeds.start, seeds.end);
                complain(format_args!("no seed of {from}..{to} violates anything; this is {from}"));
                from
            }
        }
    }
}
