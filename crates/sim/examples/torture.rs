//! Torture without the command line, which takes longer to build: a line for each seed, for runs to be compared.
//!
//! `torture <protocol> <membership> <from> <to> [mutant]`

use std::io::Write as _;

use sigmalock_protocols::catalogue::{LAYERS, Membership, ProtocolName, Variant};
use sigmalock_sim::lab::torture::{Victim, torture_seed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, membership, from, to, mutant @ ..] = &args[..] else {
        return Err("torture <protocol> <membership> <from> <to> [mutant]".into());
    };
    let protocol: ProtocolName = protocol.parse()?;
    let membership: Membership = membership.parse()?;
    let variant = Variant::Shipped;
    // Those that are told as stories, too.
    let cards = LAYERS.iter().copied().chain(ProtocolName::ALL.iter().map(|name| name.card()));
    let mut mutants = cards.flat_map(|card| card.mutants);
    let mutant = match mutant.first() {
        Some(name) => Some(mutants.find(|card| card.name == name).ok_or("no such mutant")?),
        None => None,
    };
    let agents = mutant.is_some_and(|mutant| mutant.agents);
    let modes = mutant.is_some_and(|mutant| mutant.modes);
    let victim = Victim { protocol, variant, mutant, agents, modes, quorum: None, membership };
    let mut out = std::io::stdout().lock();
    for seed in from.parse()?..to.parse()? {
        let report = torture_seed(&victim, seed);
        write!(out, "{seed} {:016x} {} {}", report.digest, report.delivered, report.entries)?;
        for violation in &report.violations {
            write!(out, " {}: {}", violation.oracle, violation.sentence)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
