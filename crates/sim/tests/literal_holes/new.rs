//! scratch
use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_sim::faults::Fault;
use sigmalock_sim::run::RunConfig;
use sigmalock_sim::script::{RuleEffect, Script};

use crate::stage::*;

/// Hole 4: a REQUEST by the present owner is queued behind itself, and when the owner leaves, the vote goes
/// to it once more, though it is done. The paper's own retry does this, if the holder leaves while the
/// next one asks again: all replicas then belong to a ghost, and the one after waits for a whole lease. The
/// shipped one is asked to show it whatever the moment at which the holder leaves.
#[test]
fn hole_4_a_retry_of_the_owner_is_granted_once_more_when_it_has_left() {
    let quorum = quorum(3, 2);
    let (mut literal_worst, mut shipped_worst) = (Span::ZERO, Span::ZERO);
    for hold in (400..800).step_by(5) {
        let script = Script::default()
            .acquire(ms(0), client(0), &name(), Some(ms(hold)))
            .acquire(ms(100), client(1), &name(), Some(ms(100)))
            .acquire(secs(5), client(2), &name(), Some(ms(100)));
        let world = story(quorum, script);
        let waited = |outcome| *waits(&outcome).last().unwrap();
        let l = literal(&world, &LiteralConfig::whole(quorum), "exclusion");
        println!("{hold} {:?}", waits(&l));
        literal_worst = literal_worst.max(waited(l));
        shipped_worst = shipped_worst.max(waited(shipped(&world, &Config::new(quorum), "exclusion")));
    }
    println!("{literal_worst} {shipped_worst}");
}

/// Hole 7
#[test]
fn hole_7_x() {
    let quorum = quorum(3, 2);
    let mut script = Script::default();
    for k in 0..3 {
        script.links.push(link(client(k), host(k), ms(5)));
        script = script.acquire(ms(k), client(k), &name(), Some(ms(100)));
    }
    let script = script.fault(ms(23), Fault::Reset(host(2))).fault(ms(150), Fault::Crash(host(1)));
    let world = story(quorum, script);
    for c in [LiteralConfig::new(quorum), LiteralConfig::whole(quorum)] {
    println!("{:?}", entries(&literal(&world, &c, "exclusion")));
    }
    println!("{:?}", entries(&shipped(&world, &Config::new(quorum), "exclusion")));
}

#[test]
fn hole_8_story() {
    let quorum = quorum(3, 2);
    let (a, b) = (client(0), client(1));
    let mut script = Script::default()
        .acquire(ms(0), a, &name(), Some(ms(100)))
        .acquire(ms(500), b, &name(), Some(secs(2)))
        .acquire(ms(900), a, &name(), Some(ms(100)));
    for k in 0..2 {
        script = script.rule(first("RESPONSE", host(k), a, RuleEffect::Duplicate(secs(1))));
    }
    let world = story(quorum, script);
    let l = literal(&world, &LiteralConfig::new(quorum), "exclusion");
    println!("{:?} {:?}", entries(&l), l.violations);
    let l = shipped(&world, &Config::new(quorum), "exclusion");
    println!("{:?} {:?}", entries(&l), l.violations);
}
#[test]
fn hole_8_drawn() {
    let quorum = quorum(4, 3);
    for dup in [0.0, 0.3] {
    let (mut o, mut e, mut e2)=(0,0,0);
    for seed in 0..10 {
        let mut world = world(seed, quorum, delays(0, 200), fresh(2.0));
        world.network.late = dup;
        world.network.late_max = secs(3);
        world.workload.inside = sigmalock_sim::workload::Length::Constant(ms(300));
        world.duration = secs(200);
        let l = literal(&world, &LiteralConfig::whole(quorum), "exclusion");
        o += l.violations.len();
        e += l.entries;
        let s = shipped(&world, &Config::new(quorum), "exclusion");
        e2 += s.entries;
        assert_eq!(s.violations, []);
    }
    println!("dup {dup} overlaps {o} {e} {e2}");
    }
}
#[test]
fn hole_12() {
    let quorum = quorum(32, 24);
    for life in [None, Some(secs(300)), Some(secs(100)), Some(secs(30))] {
        for (lo,hi) in [(100,100), (90,110)] {
        let mut world = world(1, quorum, delays(lo,hi), pooled(5.0));
        world.workload.ttl = sigmalock_sim::workload::Length::Constant(secs(1));
        world.faults.replica_life = life;
        (world.warmup, world.duration) = (secs(60), secs(240));
        let t = std::time::Instant::now();
        let lit = LiteralConfig { lease: Some(secs(1)), ..LiteralConfig::whole(quorum) };
        let l = literal(&world, &lit, "exclusion");
        let lit10 = LiteralConfig { lease: Some(secs(10)), ..LiteralConfig::whole(quorum) };
        let l10 = literal(&world, &lit10, "exclusion");
        let t1 = t.elapsed();
        let s = shipped(&world, &Config { lease_max: secs(1), round_trip_worst: ms(300), ..Config::new(quorum) }, "exclusion");
        println!("{life:?} {lo} literal {:.2} {} l10 {:.2} shipped {:.2} {t1:?} {:?}", l.throughput_per_s, l.violations.len(), l10.throughput_per_s, s.throughput_per_s, t.elapsed());
        }
    }
}
#[test]
fn hole_15() {
    let quorum = quorum(3, 2);
    let mut script = Script::default()
        .rule(first("REQUEST", client(0), host(2), RuleEffect::Drop))
        .rule(first("REQUEST", client(1), host(2), RuleEffect::Delay(ms(200))))
        .acquire(ms(0), client(0), &name(), Some(ms(300)))
        .acquire(ms(50), client(1), &name(), Some(ms(100)))
        .acquire(ms(100), client(2), &name(), Some(ms(100)))
        .fault(ms(310), Fault::Crash(host(1)));
    let world = story(quorum, script);
    for c in [LiteralConfig::new(quorum), LiteralConfig::whole(quorum)] {
    println!("{:?}", entries(&literal(&world, &c, "exclusion")));
    }
    println!("{:?}", entries(&shipped(&world, &Config::new(quorum), "exclusion")));
}
#[test]
fn hole_16() {
    let quorum = quorum(3, 2);
    let mut script = Script::default().acquire(ms(0), client(0), &name(), Some(secs(2)));
    for k in 1..4 {
        script = script.acquire(ms(100 * k), client(k), &name(), Some(ms(100))).fault(secs(1), Fault::Crash(client(k)));
    }
    let script = script.acquire(ms(1500), client(4), &name(), Some(ms(100)));
    let world = story(quorum, script);
    let l = entries(&literal(&world, &LiteralConfig::whole(quorum), "exclusion"));
    println!("{:?}", l);
    println!("{:?}", entries(&shipped(&world, &Config::new(quorum), "exclusion")));
}
