//! scratch
use sigmalock_core::{Patience, PeerId, Span};
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_sim::workload::Errand;
use sigmalock_sim::faults::Fault;
use sigmalock_sim::run::RunConfig;
use sigmalock_sim::script::{Action, RuleEffect, Script};

use crate::stage::*;

#[test]
fn hole_8_a() {
    let quorum = quorum(3, 2);
    let [a, c, b] = [client(0), client(1), client(2)];
    let mut script = Script::default();
    for (k, who) in [(0, a), (1, c), (2, b)] {
        script.links.push(link(who, host(k), ms(5)));
    }
    let script = script
        .rule(first("REQUEST", a, host(2), RuleEffect::Drop))
        .rule(first("RESPONSE", host(1), c, RuleEffect::Duplicate(secs(1))))
        .acquire(ms(0), a, &name(), Some(secs(5)))
        .acquire(ms(1), c, &name(), Some(secs(1)))
        .acquire(ms(2), b, &name(), Some(secs(1)));
    let world = story(quorum, script);
    let l = literal(&world, &LiteralConfig::new(quorum), "exclusion");
    println!("8a {:?} {:?}", entries(&l), l.violations);
    let l = shipped(&world, &Config::new(quorum), "exclusion");
    println!("8a {:?} {:?}", entries(&l), l.violations);
}
#[test]
fn hole_8_b() {
    let quorum = quorum(3, 2);
    let [c, a, b, d] = [client(0), client(1), client(2), client(3)];
    let mut script = Script::default();
    for (k, who) in [(0, b), (1, a), (2, d)] {
        script.links.push(link(who, host(k), ms(5)));
        script = script.acquire(ms(k), who, &name(), Some(secs(5)));
    }
    let script = script
        .rule(first("YIELD", a, host(1), RuleEffect::Duplicate(secs(2))))
        .rule(first("YIELD", d, host(2), RuleEffect::Drop))
        .acquire(ms(500), c, &name(), Some(secs(5)))
        .at(secs(1), Action::Cancel { peer: d, name: name() });
    let world = story(quorum, script);
    let l = literal(&world, &LiteralConfig::new(quorum), "exclusion");
    println!("8b {:?} {:?}", entries(&l), l.violations);
    let l = shipped(&world, &Config::new(quorum), "exclusion");
    println!("8b {:?} {:?}", entries(&l), l.violations);
}
#[test]
fn hole_12_story() {
    let quorum = quorum(4, 3);
    let [x1, x2, h, w, n, n2] = [0, 1, 2, 3, 4, 5].map(client);
    let script = Script::default()
        .fault(ms(62_000), Fault::Reset(host(3)))
        .fault(ms(63_000), Fault::Reset(host(2)));
    let ask = |script: Script, at: u64, peer: PeerId, stay: u64| {
        let errand = Errand { inside: Some(ms(stay)), ..Errand::new(secs(1), Patience::Forever) };
        script.at(ms(at), Action::Acquire { peer, name: name(), errand })
    };
    let script = ask(script, 0, x1, 1_000);
    let script = ask(script, 100, x2, 60_000);
    let script = ask(script, 200, h, 4_000);
    let script = ask(script, 61_500, w, 100);
    let script = ask(script, 62_500, n, 100);
    let script = ask(script, 63_500, n2, 100);
    let world = RunConfig { duration: secs(300), ..story(quorum, script) };
    let l = literal(&world, &LiteralConfig::whole(quorum), "exclusion");
    println!("12 {:?} {:?}", entries(&l), l.violations);
    let config = Config { lease_max: secs(1), round_trip_worst: ms(100), ..Config::new(quorum) };
    let l = shipped(&world, &config, "exclusion");
    println!("12 {:?} {:?}", entries(&l), l.violations);
}
