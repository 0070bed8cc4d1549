//! `lab mutants`: are the oracles awake?

use clap::Args;

use crate::args::Jobs;
use crate::outcome::{Verdict, after_help};

/// Breaks the protocol one rule at a time and waits for an oracle to notice
///
/// A mutant that gets through all its seeds unnoticed is a hole in the oracles: exit code 1.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Mutants {
    /// Only say which mutants there are
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    jobs: Jobs,
    /// One JSON object per mutant, one a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
  sigmalock lab mutants
  sigmalock lab mutants --list";

impl Mutants {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        println!("{self:?}");
        Ok(Verdict::Holds)
    }
}
