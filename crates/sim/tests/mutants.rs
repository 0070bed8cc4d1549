//! Every oracle is awake: for each rule of Sigma, of its agents and of views that can be broken on purpose, the oracle whose
//! business it is objects within 10,000 seeds, where the healthy protocol gets through.

use std::collections::BTreeSet;

use sigmalock_sim::lab::mutants::{hunt, oracle_for};
use sigmalock_sim::mutant::Mutant;
use sigmalock_sim::oracles;

#[test]
fn every_mutant_is_caught_by_its_oracle_within_ten_thousand_seeds() {
    let escaped: Vec<&str> = Mutant::all()
        .filter(|mutant| hunt(*mutant, None, 0..10_000, 2).is_none())
        .map(Mutant::as_str)
        .collect();
    assert!(escaped.is_empty(), "not caught: {escaped:?}");
}

#[test]
fn every_oracle_has_a_mutant() {
    let proven: BTreeSet<&str> = Mutant::all().map(oracle_for).collect();
    let all: BTreeSet<&str> = oracles::NAMES.into_iter().collect();
    assert_eq!(proven, all);
}
