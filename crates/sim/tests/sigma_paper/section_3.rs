//! Section III, the strawman and the odds of broken exclusion. Figure 3, the performance of the strawman,
//! has a test program of its own, `strawman`.

use sigmalock_protocols::catalogue::Variant;
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_protocols::strawman::{self, Strawman};
use sigmalock_sim::faults::Fault;
use sigmalock_sim::oracles;
use sigmalock_sim::run::{RunConfig, run};
use sigmalock_sim::script::{RuleEffect, Script};
use sigmalock_sim::theory::exclusivity_break_log10;

use crate::stage::*;

/// "Losers release acquired votes, back-off and retry after a random period. This also guarantees that
/// deadlock will not occur." Three clients with one vote each of the two they need, which is how a
/// deadlock begins; all three lose, and all three get in before long.
#[test]
fn section_iii_losers_of_the_strawman_let_go_so_nobody_waits_for_ever() {
    let quorum = quorum(3, 2);
    for variant in [Variant::Literal, Variant::Shipped] {
        let config = strawman::Config::new(quorum, variant);
        for seed in 0..20 {
            let mut script = Script::default();
            for k in 0..3 {
                script.links.push(link(client(k), host(k), ms(5)));
                script = script.acquire(ms(0), client(k), &name(), Some(ms(20)));
            }
            let world = RunConfig { seed, ..story(quorum, script) };
            let mut judges = oracles::all(world.setting(false));
            let hosting = world.population().hosting();
            let make = |me| Strawman::new(me, config.clone(), Box::new(hosting));
            let outcome = run(&world, make, &mut judges);
            assert_eq!(outcome.violations, [], "seed {seed}");
            let entries = entries(&outcome);
            assert_eq!(entries.len(), 3, "seed {seed}");
            assert!(entries[0].1 > ms(100), "nobody wins the first round");
        }
    }
}

/// "To tolerate up to k replica reset n=3k+1 and m=2k+1 are needed." The holder has exactly m votes, its
/// REQUESTs to the other k replicas being lost, and then r of its voters forget it. A second client finds
/// k + r free votes: with r = k it waits for the holder to leave, with one reset more it is let in too.
/// This is the literal one, whose replicas vote at once after a reset. The shipped one has it better: its
/// replicas abstain for a lease, and nobody is let in beside the holder however many were reset.
#[test]
fn section_iii_of_3k_plus_1_replicas_k_may_be_reset_and_k_plus_1_may_not() {
    for k in [1, 2] {
        let quorum = quorum(3 * k + 1, 2 * k + 1);
        for resets in 0..=2 * k + 1 {
            let world = resets_while_inside(k, resets);
            let outcome = literal(&world, &LiteralConfig::new(quorum), "exclusion");
            let broken = !outcome.violations.is_empty();
            assert_eq!(broken, resets > k, "k = {k}, {resets} resets: {:?}", outcome.violations);
            assert_eq!(outcome.entries, 2, "k = {k}, {resets} resets");
            let careful = shipped(&world, &Config::new(quorum), "exclusion");
            assert_eq!(careful.violations, [], "k = {k}, {resets} resets");
        }
    }
}

/// One client is inside from 20 ms to 5 s with the votes of the first m hosts, of which some are reset at
/// 1 s; another one asks at 2 s.
fn resets_while_inside(k: u16, resets: u16) -> RunConfig {
    let (n, m) = (3 * k + 1, 2 * k + 1);
    let (holder, second) = (client(0), client(1));
    let mut script = Script::default().acquire(ms(0), holder, &name(), Some(secs(5))).acquire(
        secs(2),
        second,
        &name(),
        Some(ms(10)),
    );
    for other in m..n {
        script = script.rule(first("REQUEST", holder, host(other.into()), RuleEffect::Drop));
    }
    for voter in 0..resets {
        script = script.fault(secs(1), Fault::Reset(host(voter.into())));
    }
    story(quorum(n, m), script)
}

/// Figure 2: with hosts that live for 10,000 s and critical sections of 10 s, the chance that resets break
/// exclusion is 10⁻⁴⁰ at 24 of 32, and the larger m is the smaller it is. (C(32, 16) · 10⁻⁴⁸ = 6.0 · 10⁻⁴⁰.)
#[test]
fn section_iii_at_24_of_32_resets_break_exclusion_once_in_10_to_the_40() {
    let odds = |n, m| exclusivity_break_log10(quorum(n, m), secs(10), secs(10_000));
    assert!((odds(32, 24) - 6.0e-40_f64.log10()).abs() < 0.01, "{}", odds(32, 24));
    for m in 18..=32 {
        assert!(odds(32, m) < odds(32, m - 1) - 2.0, "each step of m gains a hundredfold");
    }
    assert!(odds(64, 48) < odds(32, 24) && odds(32, 24) < odds(16, 12), "and so do more replicas");
}
