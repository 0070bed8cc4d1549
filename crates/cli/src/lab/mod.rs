//! `sigmalock lab …`: experiments in simulated time.

mod figures;
mod mutants;
mod sweep;
mod torture;

use clap::Subcommand;

use crate::outcome::Verdict;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    Figures(figures::FiguresCommand),
    Torture(torture::Torture),
    Sweep(sweep::Sweep),
    Mutants(mutants::Mutants),
}

impl Lab {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        match self {
            Self::Figures(figures) => figures.run(),
            Self::Torture(torture) => torture.run(),
            Self::Sweep(sweep) => sweep.run(),
            Self::Mutants(mutants) => mutants.run(),
        }
    }
}
