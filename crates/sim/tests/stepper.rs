//! A run that is stepped is the run, a fork of it has its future, and whoever intervenes has another one.

use sigmalock_core::{PeerId, Span, Standing};
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::faults::{Fault, Memory};
use sigmalock_sim::history::TrueTime;
use sigmalock_sim::lab::torture::{Victim, torture_seed};
use sigmalock_sim::stepper::{Presence, Sight, Stepper};

const MEMBERSHIPS: [Membership; 3] = [Membership::Fixed, Membership::Open, Membership::Agreed];

fn victim(protocol: ProtocolName, variant: Variant, membership: Membership) -> Victim {
    let (mutant, agents, modes, quorum) = (None, false, false, None);
    Victim { protocol, variant, mutant, agents, modes, quorum, membership }
}

/// Sigma, in every kind of world, alone and with agents.
fn victims() -> impl Iterator<Item = Victim> {
    MEMBERSHIPS.into_iter().flat_map(|membership| {
        let victim = victim(ProtocolName::Sigma, Variant::Shipped, membership);
        [victim, Victim { agents: true, ..victim }]
    })
}

const fn at(ms: u64) -> TrueTime {
    TrueTime(ms * 1_000)
}

#[test]
fn a_seed_that_is_stepped_to_its_end_has_the_digest_of_its_run() {
    for victim in victims() {
        for seed in 0..4 {
            let mut stepper = Stepper::of_seed(&victim, seed);
            while stepper.step() {}
            let (digest, outcome) = (stepper.digest(), stepper.finish());
            let report = torture_seed(&victim, seed);
            assert_eq!((digest, outcome.digest), (report.digest, report.digest), "{victim:?}");
            assert_eq!((outcome.entries, outcome.notes), (report.entries, report.notes));
        }
    }
}

#[test]
fn a_fork_has_the_future_of_its_run_and_another_one_if_something_goes_wrong_in_it() {
    for victim in victims() {
        let report = torture_seed(&victim, 1);
        let mut stepper = Stepper::of_seed(&victim, 1);
        assert!(stepper.run_until(at(9_000)), "it is not over");
        assert_eq!(stepper.now(), at(9_000));
        let fork = stepper.fork();
        let mut other = stepper.fork();
        let up = |peer: &PeerId| stepper.picture(*peer).unwrap().presence == Presence::Up;
        let peer = stepper.peers().into_iter().find(up).unwrap();
        other.inject(&Fault::Crash(peer));
        assert_eq!(other.picture(peer).unwrap().presence, Presence::Down);
        assert!(up(&peer), "in the other run it lives");
        other.inject(&Fault::Restart { peer, memory: Memory::Disk });
        assert_eq!(stepper.finish().digest, report.digest);
        assert_eq!(fork.finish().digest, report.digest);
        assert_ne!(other.finish().digest, report.digest);
    }
}

#[test]
fn whoever_watches_changes_nothing_and_sees_where_every_message_went() {
    let victim = victim(ProtocolName::Sigma, Variant::Shipped, Membership::Fixed);
    for seed in 0..8 {
        let mut stepper = Stepper::of_seed(&victim, seed);
        stepper.watch(true);
        stepper.run_until(at(20_000));
        let mut under_way = 0_i64;
        for seen in stepper.take_seen() {
            under_way += match seen.what {
                Sight::Sent { arrives: Some(_), .. } | Sight::Copied { .. } => 1,
                Sight::Delivered { .. } | Sight::Lost { .. } => -1,
                _ => 0,
            };
        }
        let listed = stepper.under_way();
        assert_eq!(listed.len() as i64, under_way, "seed {seed}");
        assert!(listed.iter().all(|message| message.text.starts_with(message.kind)));
        assert_eq!(stepper.take_seen(), [], "it is told once");
        stepper.watch(false);
        let digest = stepper.finish().digest;
        assert_eq!(digest, torture_seed(&victim, seed).digest);
    }
}

#[test]
fn every_kind_of_thing_is_seen_to_happen() {
    let victim = victim(ProtocolName::Sigma, Variant::Shipped, Membership::Agreed);
    let mut seen = Vec::new();
    for seed in 0..12 {
        let mut stepper = Stepper::of_seed(&victim, seed);
        stepper.watch(true);
        while stepper.step() {
            seen.extend(stepper.take_seen().into_iter().map(|seen| match seen.what {
                Sight::Sent { arrives: Some(_), .. } => "sent",
                Sight::Sent { arrives: None, .. } => "lost by the network",
                Sight::Copied { .. } => "copied",
                Sight::Delivered { .. } => "delivered",
                Sight::Lost { .. } => "lost",
                Sight::Fired(..) => "fired",
                Sight::Asked(..) => "asked",
                Sight::Replied(..) => "replied",
                Sight::Noted(..) => "noted",
                Sight::Fault(_) => "fault",
                Sight::Healed => "healed",
                Sight::Record(_) => "record",
            }));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 12, "{seen:?}");
}

#[test]
fn every_lock_protocol_has_its_picture_taken() {
    for protocol in ProtocolName::locks() {
        for variant in Variant::ALL {
            let victim = victim(protocol, variant, Membership::Fixed);
            let (mut replicas, mut inside, mut waiting) = (0, 0, 0);
            for seed in 0..5 {
                let mut stepper = Stepper::of_seed(&victim, seed);
                for second in 1..10 {
                    stepper.run_until(at(second * 1_000));
                    for peer in stepper.peers() {
                        let picture = stepper.picture(peer).unwrap();
                        assert_eq!((picture.peer, picture.view), (peer, None));
                        for name in picture.names {
                            replicas += name.replicas.len();
                            inside += name.local.holders.len();
                            waiting += name.local.waiting;
                        }
                    }
                }
            }
            assert!(replicas > 0 && inside > 0 && waiting > 0, "{variant} {protocol}");
        }
    }
}

#[test]
fn where_peers_agree_on_who_is_in_a_picture_shows_it() {
    let victim = victim(ProtocolName::Sigma, Variant::Shipped, Membership::Agreed);
    let mut stepper = Stepper::of_seed(&victim, 2);
    stepper.run_until(at(25_000));
    let views = stepper.peers().into_iter().filter_map(|peer| stepper.picture(peer)?.view);
    assert!(views.filter(|view| view.standing == Standing::Voting).count() > 0);
    assert_eq!(stepper.picture(PeerId(999)), None, "there is no such peer");
}

#[test]
fn a_run_that_is_over_stays_as_it_is() {
    let victim = victim(ProtocolName::Sigma, Variant::Shipped, Membership::Fixed);
    let mut stepper = Stepper::of_seed(&victim, 3);
    assert!(!stepper.run_until(TrueTime(0) + Span::from_secs(100_000)));
    let (now, digest) = (stepper.now(), stepper.digest());
    assert!(!stepper.step());
    assert_eq!((stepper.now(), stepper.digest()), (now, digest));
    assert_eq!(stepper.violations(), []);
    assert_eq!(stepper.finish().end, now);
}
