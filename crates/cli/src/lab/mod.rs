//! `sigmalock lab …`: experiments in simulated time.

mod compare;
mod figures;
mod mutants;
mod plan;
mod sweep;
mod torture;
mod trace;
mod victim;
mod zones;

use clap::Subcommand;

use crate::outcome::Verdict;

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    Figures(figures::FiguresCommand),
    Torture(torture::Torture),
    Sweep(sweep::Sweep),
    Mutants(mutants::Mutants),
    Compare(compare::Compare),
    Plan(plan::Plan),
    Trace(trace::TraceCommand),
    Zones(zones::Zones),
}

impl Lab {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        match self {
            Self::Figures(figures) => figures.run(),
            Self::Torture(torture) => torture.run(),
            Self::Sweep(sweep) => sweep.run(),
            Self::Mutants(mutants) => mutants.run(),
            Self::Compare(compare) => compare.run(),
            Self::Plan(plan) => plan.run(),
            Self::Trace(trace) => trace.run(),
            Self::Zones(zones) => zones.run(),
        }
    }
}
