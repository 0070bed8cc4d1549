//! `sigmalock lab …`: experiments in simulated time.

mod mutants;
mod sweep;
mod torture;
mod zones;

use clap::Subcommand;

use crate::outcome::Verdict;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    Torture(torture::Torture),
    Sweep(sweep::Sweep),
    Mutants(mutants::Mutants),
    Zones(zones::Zones),
}

impl Lab {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        match self {
            Self::Torture(torture) => torture.run(),
            Self::Sweep(sweep) => sweep.run(),
            Self::Mutants(mutants) => mutants.run(),
            Self::Zones(zones) => zones.run(),
        }
    }
}
