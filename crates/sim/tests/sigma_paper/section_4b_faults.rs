//! Section IV, second half: "In reality, many things may go wrong", and how it is served.

use std::collections::BTreeMap;

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::sigma::{Config, LiteralConfig};
use sigmalock_sim::faults::Fault;
use sigmalock_sim::history::What;
use sigmalock_sim::run::RunConfig;
use sigmalock_sim::script::Script;

use crate::stage::*;

/// Fault 2, "its queue has gone and those waiting clients will get stuck forever", and its cure, the
/// informed backoff. One host forgets who waits and another one dies, so that the waiter needs the
/// forgetful one. By the pseudo code alone it is never called; with the backoff of the text it asks again
/// in time, and so it does in the shipped one.
#[test]
fn section_iv_only_informed_backoff_brings_a_forgotten_waiter_back() {
    let quorum = quorum(3, 2);
    let script = Script::default()
        .acquire(ms(0), client(0), &name(), Some(secs(2)))
        .acquire(ms(100), client(1), &name(), Some(ms(10)))
        .fault(ms(200), Fault::Reset(host(0)))
        .fault(ms(1_500), Fault::Crash(host(1)));
    let world = story(quorum, script);
    let pseudo_code = LiteralConfig::new(quorum);
    let with_backoff = LiteralConfig { informed_backoff: true, ..pseudo_code.clone() };
    let entry = |config| {
        let outcome = literal(&world, config, "exclusion");
        assert_eq!(outcome.violations, []);
        entry_of(&outcome, client(1))
    };
    assert_eq!(entry(&pseudo_code), None);
    assert_eq!(entry(&with_backoff), Some(ms(2_040)), "one hand-over after the holder has left");
    assert!(entry_of(&clean(&world, &Config::new(quorum)), client(1)).is_some());
}

/// Fault 3: "replica grants permission to clients with renewable lease. When the lease expires, replica
/// will grant permission to the next client". A holder crashes inside; the next one is let in when the
/// lease is over, not before and not much later. One that does not crash renews, and stays for as long
/// as it likes.
#[test]
fn section_iv_a_crashed_holder_is_replaced_after_its_lease_and_a_live_one_renews_it() {
    let quorum = quorum(5, 3);
    let holder = Script::default().acquire(ms(0), client(0), &name(), Some(secs(40)));
    let stays = holder.acquire(ms(100), client(1), &name(), Some(ms(10)));
    let crashes = stays.clone().fault(secs(20), Fault::Crash(client(0)));
    let outcome = clean(&story(quorum, stays), &Config::new(quorum));
    assert_eq!(entry_of(&outcome, client(1)), Some(ms(40_040)));
    let outcome = clean(&story(quorum, crashes), &Config::new(quorum));
    let history = outcome.history.as_ref().unwrap().iter();
    let promised = history.filter_map(|record| match record.what {
        What::Extended { until, .. } => Some(since_start(until)),
        _ => None,
    });
    let lease_end = promised.max().unwrap();
    let next = entry_of(&outcome, client(1)).unwrap();
    assert!(lease_end <= next && next <= lease_end + ms(200), "{next}, after {lease_end}");
}

/// Fault 4: "message loss can be mapped to arbitrary crash of clients or replicas". One message in ten is
/// lost, and all forty are served, none of them twice and no two at once.
#[test]
fn section_iv_with_one_message_in_ten_lost_everybody_is_served() {
    let quorum = quorum(9, 6);
    for seed in 0..10 {
        let crowd = (0..40).fold(Script::default(), |script, k| {
            script.acquire(ms(400 * k), client(k), &name(), Some(ms(100)))
        });
        let mut world = RunConfig { seed, ..story(quorum, crowd) };
        world.network = delays(20, 80);
        world.network.loss = 0.1;
        let outcome = clean(&world, &Config::new(quorum));
        assert_eq!(outcome.entries, 40, "seed {seed}");
    }
}

/// "If the client is notified before its scheduled retry, no harm is done. Otherwise … the client will
/// renew its Tw in its retry." The holder stays longer than advised, and leaves just before, while and just
/// after the first in the queue asks again, so that retries and calls meet in every way. Nobody is called
/// twice, and the lock changes hands as fast as if nobody had asked again.
#[test]
fn section_iv_a_retry_that_was_not_needed_does_no_harm() {
    let quorum = quorum(5, 3);
    let run = |hold: Span| {
        let mut script = Script::default().acquire(ms(0), client(0), &name(), Some(hold));
        for k in 1..4 {
            script = script.acquire(ms(50 + k), client(k), &name(), Some(ms(100)));
        }
        watched(&story(quorum, script), &Config::new(quorum))
    };
    let (_, waiting) = run(secs(8));
    let mut retries = waiting.times("REQUEST", client(1)).split_off(5);
    retries.dedup();
    assert!(retries.len() > 3, "{retries:?}");
    for retry in retries {
        for sooner in (0..=60).step_by(2) {
            let hold = retry - ms(sooner);
            let (outcome, mail) = run(hold);
            let next = |k| (client(k), ms(20) + hold + ms(20) + ms(120) * (k - 1));
            assert_eq!(entries(&outcome), [(client(0), ms(20)), next(1), next(2), next(3)]);
            let calls = mail.sent.iter().filter(|sent| sent.kind == "GRANT").count();
            assert_eq!(calls, 3 * 5, "{hold}: each is called once by each host");
        }
    }
}

/// "If … replica does go through a reset, then the queue is reconstructed with the order similar to the
/// original one." Twenty wait, a tenth of a second apart, when hosts forget: as many as may, and then all
/// of them, so that nothing but retries can have brought the queue back. They get in in the order in which
/// they asked.
#[test]
fn section_iv_after_a_reset_the_queue_is_rebuilt_in_its_old_order() {
    let quorum = quorum(9, 6);
    for forgetful in [3, 9] {
        let mut script = Script::default().acquire(ms(0), client(0), &name(), Some(secs(4)));
        for k in 1..=20 {
            script = script.acquire(ms(100 * k), client(k), &name(), Some(ms(20)));
        }
        for k in 0..forgetful {
            script = script.fault(secs(3), Fault::Reset(host(k)));
        }
        let network = delays(10, 40);
        let world = RunConfig { network, ..story(quorum, script) };
        let outcome = clean(&world, &Config::new(quorum));
        let order: Vec<PeerId> = entries(&outcome).into_iter().map(|(who, _)| who).collect();
        assert_eq!(order, (0..=20).map(client).collect::<Vec<_>>());
    }
}

/// "Sigma can be best described as quasi-FCFS", since REQUESTs take their time: at an idle lock one may
/// overtake another that asked a moment before, but nobody overtakes one that asked more than three worst
/// one-way delays before.
#[test]
fn section_iv_only_near_simultaneous_requests_overtake_each_other() {
    let quorum = quorum(3, 2);
    let mut world = world(1, quorum, delays(0, 200), pooled(2.0));
    (world.duration, world.keep_history) = (secs(1_000), true);
    let outcome = clean(&world, &Config::new(quorum));
    let mut asked = BTreeMap::new();
    let mut latest = Span::ZERO;
    let mut overtaken_by = Vec::new();
    for record in outcome.history.iter().flatten() {
        match &record.what {
            What::Asked { request, .. } => {
                asked.insert(*request, since_start(record.at));
            }
            What::Granted { request, .. } if asked[request] < latest => {
                overtaken_by.push(latest - asked[request]);
            }
            What::Granted { request, .. } => latest = asked[request],
            _ => {}
        }
    }
    let worst = overtaken_by.iter().max().copied().unwrap_or_default();
    assert!(overtaken_by.len() > 10 && worst < ms(600), "by up to {worst}: {overtaken_by:?}");
}
