//! `sigmalock lab …`: experiments in simulated time.

mod compare;
mod figures;
mod mutants;
mod plan;
mod protocols;
mod sweep;
mod torture;
mod trace;
mod victim;
mod zones;

use clap::Subcommand;

use sigmalock_protocols::catalogue::{ProtocolName, Variant};

use crate::outcome::{LAB_EXIT_CODES, Verdict};

/// What there is to look at, and where to begin.
pub(crate) fn after_help() -> String {
    let list = |names: Vec<(&str, &str)>| -> String {
        names.into_iter().map(|(name, what)| format!("  {name:<10}{what}\n")).collect()
    };
    let cards = ProtocolName::ALL.iter().map(|name| name.card());
    let protocols = list(cards.map(|card| (card.name, card.about)).collect());
    let variants = list(Variant::ALL.map(|name| (name.as_str(), how_true(name))).to_vec());
    format!(
        "Protocols:\n{protocols}\nVariants:\n{variants}\n\
         Begin with:\n  \
         sigmalock lab trace scenarios/01-uncontended.txt   a run, message by message\n  \
         sigmalock lab compare --duration 1m                both, side by side\n  \
         sigmalock lab protocols                            what there is to know of each\n  \
         sigmalock lab mutants --list                       rules that can be left out\n\n\
         {LAB_EXIT_CODES}"
    )
}

const fn how_true(variant: Variant) -> &'static str {
    match variant {
        Variant::Literal => "as published or taught, holes included: to see what goes wrong",
        Variant::Shipped => "with what it takes to survive loss, crashes, sleep and clocks",
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    Figures(figures::FiguresCommand),
    Torture(torture::Torture),
    Sweep(sweep::Sweep),
    Mutants(mutants::Mutants),
    Compare(compare::Compare),
    Plan(plan::Plan),
    Protocols(protocols::Protocols),
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
            Self::Protocols(protocols) => protocols.run(),
            Self::Trace(trace) => trace.run(),
            Self::Zones(zones) => zones.run(),
        }
    }
}
