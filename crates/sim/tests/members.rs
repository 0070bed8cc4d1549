//! Views in the engine, alone: in the worlds of `lab torture --protocol views` each has one successor, nobody accepts or
//! promises what it must not, and in the end all who want are in.

use sigmalock_core::{Span, Standing};
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::history::TrueTime;
use sigmalock_sim::lab::torture::{Victim, torture, torture_seed};
use sigmalock_sim::stepper::Stepper;

const VIEWS: Victim = Victim {
    protocol: ProtocolName::Views,
    variant: Variant::Shipped,
    mutant: None,
    agents: false,
    modes: false,
    quorum: None,
    membership: Membership::Agreed,
};

#[test]
fn each_view_has_one_successor_and_in_the_end_all_who_want_are_in() {
    let report = torture(&VIEWS, 0..3_000, 2, &|_| (), true);
    assert_eq!(report.failures, []);
    assert!(report.entries > 20_000, "little happened: {} views", report.entries);
    for kind in [
        "crash",
        "torn crash",
        "restart with disk",
        "restart without disk",
        "restart with an old disk",
        "restart with lost writes",
        "reset",
        "slow disk",
        "failing write",
        "cut",
        "join",
        "leave",
        "destruction",
        "forget",
    ] {
        assert!(report.faults[kind] > 20, "{kind}: {:?}", report.faults);
    }
}

#[test]
fn a_seed_that_is_stepped_has_the_digest_of_its_run_and_shows_who_is_in() {
    let mut members = 0;
    for seed in 0..20 {
        let mut stepper = Stepper::of_seed(&VIEWS, seed);
        stepper.run_until(TrueTime(0) + Span::from_secs(20));
        let pictures = stepper.peers().into_iter().filter_map(|peer| stepper.picture(peer));
        let views = pictures.filter_map(|picture| picture.view);
        members += views.filter(|view| view.standing == Standing::Voting).count();
        assert_eq!(stepper.finish().digest, torture_seed(&VIEWS, seed).digest, "seed {seed}");
    }
    assert!(members > 20, "{members}");
}
