//! What fencing tokens are for: no lock can stop a holder that does not notice that its time is up, only
//! the resource can.

use sigmalock_core::{Name, Span};
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::sigma::{Config, Sigma};
use sigmalock_sim::history::What;
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::oracles;
use sigmalock_sim::run::{Outcome, RunConfig, run};
use sigmalock_sim::workload::{Arrivals, Habit, Length, Workload};

const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

/// Four clients, of which one in five falls asleep for longer than its lease and, told that its lock is
/// lost, writes once more all the same.
fn overstayers(seed: u64, register_checks: bool) -> RunConfig {
    let network = Network::perfect(Latency::Constant(Span::from_millis(10)));
    let arrivals = Arrivals::Loops { clients: 4, think: Length::Exponential(secs(1)) };
    let mut workload = Workload::new(Name::new("/a").unwrap(), arrivals);
    workload.inside = Length::Constant(secs(1));
    workload.sleep = Habit { probability: 0.2, length: Length::Uniform(Span::ZERO, secs(5)) };
    workload.asleep = Length::Constant(secs(15));
    workload.overstay = Habit { probability: 1.0, length: Length::Exponential(secs(1)) };
    let mut world = RunConfig::new(seed, 3, network, workload);
    world.register_checks = register_checks;
    world.keep_history = true;
    world.duration = secs(300);
    world
}

fn judged(world: &RunConfig) -> Outcome {
    let config = Config::new(Quorum::new(3, 2).unwrap());
    let hosting = world.population().hosting();
    run(
        world,
        |me| Sigma::new(me, config.clone(), Box::new(hosting)),
        &mut oracles::all(world.setting(true)),
    )
}

fn refusals(outcome: &Outcome) -> usize {
    let refused = |what: &What| matches!(what, What::Wrote { accepted: false, .. });
    outcome.history.iter().flatten().filter(|record| refused(&record.what)).count()
}

/// The lock does all it can: never are two inside at once. A register that takes whatever comes has its
/// data overwritten from the past nevertheless, and the `register` oracle says so, and it alone. With
/// the check on, the very same run is clean.
#[test]
fn a_register_that_does_not_look_at_tokens_takes_stale_writes() {
    let (mut stale, mut refused) = (0, 0);
    for seed in 0..5 {
        let careless = judged(&overstayers(seed, false));
        assert!(careless.violations.iter().all(|violation| violation.oracle == "register"));
        assert_eq!(refusals(&careless), 0);
        stale += careless.violations.len();
        let careful = judged(&overstayers(seed, true));
        assert_eq!(careful.violations, [], "seed {seed}");
        assert_eq!(careful.entries, careless.entries, "the register is all that differs");
        refused += refusals(&careful);
    }
    assert!(stale > 20, "{stale} stale writes were taken");
    assert_eq!(refused, stale, "the check refuses exactly those");
}
