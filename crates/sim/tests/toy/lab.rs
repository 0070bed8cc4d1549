//! The laboratory knows the toy, by its name alone.

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Shipped, ShippedVisitor, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::lab::compare::compare;
use sigmalock_sim::lab::sweep::{Load, PointConfig};
use sigmalock_sim::lab::torture::{Victim, torture};
use sigmalock_sim::lab::trace::{Trace, View};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::subject::Subject;

fn toy() -> ProtocolName {
    "toy".parse().unwrap()
}

fn victim(agents: bool, membership: Membership) -> Victim {
    let (protocol, variant) = (toy(), Variant::Shipped);
    Victim { protocol, variant, mutant: None, agents, modes: false, quorum: None, membership }
}

#[test]
fn it_stands_torture_alone_with_agents_and_over_views() {
    for (agents, membership, seeds) in [
        (false, Membership::Fixed, 100),
        (true, Membership::Fixed, 40),
        (false, Membership::Agreed, 15),
        (true, Membership::Agreed, 15),
    ] {
        let report = torture(&victim(agents, membership), 0..seeds, 2, &|_| (), true);
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        assert!(report.entries > seeds, "{} entries", report.entries);
    }
}

#[test]
fn it_is_in_sweeps_and_comparisons() {
    let subject = Subject::new(toy(), Variant::Shipped, Quorum::new(3, 2).unwrap());
    let latency = Latency::Constant(Span::from_millis(10));
    let mut point = PointConfig::new(subject, latency, Load::Clients(2), 1);
    (point.warmup, point.duration) = (Span::from_secs(1), Span::from_secs(60));
    let (measured, _) = point.measure().unwrap();
    assert!(measured.throughput_per_s > 0.0 && measured.violations == 0, "{measured:?}");
    let compared = compare(&point).unwrap();
    assert!(compared.throughput_per_s > Some(0.0) && compared.protocol == "toy", "{compared:?}");
}

#[test]
fn it_is_traced() {
    let trace = Trace::of_seed(&victim(false, Membership::Fixed), 1, &View::default()).text();
    assert!(trace.contains("ASK") && trace.contains("toy"), "{trace}");
}

/// It is what a live peer asks of a name that it is given.
#[test]
fn live_peers_can_run_it() {
    struct Wired;
    impl ShippedVisitor for Wired {
        type Out = &'static str;
        fn visit<P: Shipped>(self) -> &'static str {
            std::any::type_name::<P>()
        }
    }
    let protocol = toy().visit_shipped(Wired).unwrap();
    assert!(protocol.ends_with("::Toy"), "{protocol}");
}
