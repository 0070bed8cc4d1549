//! Every oracle is awake: for each rule of Sigma, of its agents and of views that can be broken on purpose, the oracle whose
//! business it is objects within the ordinary ranges of seeds, where the healthy protocol gets through.

use std::collections::BTreeSet;

use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::sigma;
use sigmalock_sim::lab::mutants::hunt;
use sigmalock_sim::lab::torture::Victim;
use sigmalock_sim::mutant;
use sigmalock_sim::oracles;

/// `cargo xtask test` visits as many with fixed hosts; with agreed membership fewer, but in four kinds of company.
const ORDINARY: u64 = 5_000;

#[test]
fn every_mutant_is_caught_by_its_oracle_in_the_ordinary_ranges() {
    let escaped: Vec<&str> = mutant::all()
        .filter(|mutant| hunt(mutant, None, 0..ORDINARY, 2).is_none())
        .map(|mutant| mutant.name)
        .collect();
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}

/// Elsewhere delays hide what the margin is for.
#[test]
fn who_gives_up_no_margin_is_caught_where_clocks_are_as_wrong_as_they_may_be() {
    for broken in [sigma::Mutant::IgnoresClockRates, sigma::Mutant::RenewsWithoutMargin] {
        let caught = hunt(broken.card(), None, 0..ORDINARY, 2).expect("it is caught");
        let victim = Victim {
            protocol: ProtocolName::Sigma,
            variant: Variant::Shipped,
            mutant: None,
            agents: false,
            modes: false,
            quorum: None,
            membership: Membership::Fixed,
        };
        let (_, config) = victim.case(caught.seed);
        assert!(config.clocks.extreme, "{broken}: seed {}", caught.seed);
    }
}

#[test]
fn every_oracle_has_a_mutant() {
    let proven: BTreeSet<&str> = mutant::all().map(|mutant| mutant.oracle).collect();
    let all: BTreeSet<&str> = oracles::NAMES.into_iter().collect();
    assert_eq!(proven, all);
}
