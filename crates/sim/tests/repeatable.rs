//! The same seed is the same run, whatever the number of threads.

use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::sigma;
use sigmalock_sim::lab::sweep::{Load, PointConfig};
use sigmalock_sim::lab::torture::{Victim, torture, torture_seed};
use sigmalock_sim::subject::Subject;

fn victim(protocol: ProtocolName) -> Victim {
    let (variant, membership) = (Variant::Shipped, Membership::Fixed);
    Victim {
        protocol,
        variant,
        mutant: None,
        agents: false,
        modes: false,
        quorum: None,
        membership,
    }
}

#[test]
fn a_seed_run_twice_is_the_same_run() {
    for &protocol in ProtocolName::ALL {
        for seed in 0..60 {
            let (subject, mut config) = victim(protocol).case(seed);
            config.keep_history = true;
            let [once, again] = [(), ()].map(|()| subject.run(&config, &mut []));
            // A host that founds a swarm alone has little to do.
            assert!(once.events > 100 || !protocol.is_lock());
            assert!(once.history.as_ref().is_some_and(|h| !h.is_empty()));
            assert_eq!(once.history, again.history, "{protocol} seed {seed}");
            assert_eq!(once.digest, again.digest, "{protocol} seed {seed}");
            assert_eq!(once.ledger, again.ledger, "{protocol} seed {seed}");
        }
    }
}

#[test]
fn different_seeds_are_different_runs() {
    let digests: Vec<u64> =
        (0..50).map(|seed| torture_seed(&victim(ProtocolName::Sigma), seed).digest).collect();
    let mut distinct = digests.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn one_thread_and_four_report_the_same() {
    let victim = victim(ProtocolName::Sigma);
    let report = |jobs| torture(&victim, 0..300, jobs, &|_| {}, false);
    let (one, four) = (report(1), report(4));
    assert_eq!(one.digest, four.digest);
    assert_eq!((one.seeds, one.entries, one.delivered), (four.seeds, four.entries, four.delivered));
    assert_eq!((one.faults, one.notes), (four.faults, four.notes));
}

#[test]
fn open_worlds_are_repeatable_move_replicas_and_hold() {
    let membership = Membership::Open;
    let victim = Victim { membership, ..victim(ProtocolName::Sigma) };
    let report = |jobs| torture(&victim, 0..150, jobs, &|_| {}, false);
    let (one, four) = (report(1), report(4));
    assert_eq!(one.digest, four.digest);
    assert_eq!(one.failures, []);
    assert!(one.faults["join"] > 50 && one.faults["leave"] > 50, "{:?}", one.faults);
    assert!(one.notes["replica taken over"] > 1_000 && one.entries > 1_000, "{:?}", one.notes);
    assert!(victim.replay(7).contains(" --membership open "), "{}", victim.replay(7));
}

#[test]
fn stopping_at_the_first_failure_finds_the_same_seed_on_any_number_of_threads() {
    let mutant = Some(sigma::Mutant::ShowsGrantCounter.card());
    let victim = Victim { mutant, ..victim(ProtocolName::Sigma) };
    let report = |jobs| torture(&victim, 0..1_000, jobs, &|_| {}, true);
    let (one, four) = (report(1), report(4));
    assert_eq!(one.failures.len(), 1);
    assert_eq!(one.failures, four.failures);
    assert_eq!((one.seeds, one.digest), (four.seeds, four.digest));
    let failure = &one.failures[0];
    assert!(failure.replay.contains("--mutant shows-grant-counter"), "{}", failure.replay);
    assert!(failure.replay.ends_with(&format!("--seeds {}..{}", failure.seed, failure.seed + 1)));
}

#[test]
fn a_seed_means_the_same_world_whether_its_quorum_is_drawn_or_given() {
    for seed in 0..20 {
        let drawn = victim(ProtocolName::Sigma);
        let (subject, _) = drawn.case(seed);
        let given = Victim { quorum: Some(subject.quorum), ..drawn };
        assert_eq!(torture_seed(&drawn, seed).digest, torture_seed(&given, seed).digest);
    }
}

#[test]
fn a_point_measured_twice_is_the_same_row() {
    let quorum = Quorum::new(9, 6).unwrap();
    let subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum);
    let latency = "lognormal:50ms,0.5".parse().unwrap();
    let point = PointConfig::new(subject, latency, Load::RatePerS(2.0), 9);
    let [once, again] = [(), ()].map(|()| point.measure().unwrap().0);
    assert_eq!(once, again);
}
