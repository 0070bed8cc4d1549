//! Section IV, first half: the race for votes without faults.

use sigmalock_core::Span;
use sigmalock_protocols::sigma::Config;
use sigmalock_sim::run::RunConfig;
use sigmalock_sim::script::Script;

use crate::stage::*;

/// Outcome 1: the client is the winner, as it learns from the m-th vote. It has then said nothing but
/// its REQUESTs, and says nothing more until its RELEASEs.
#[test]
fn section_iv_outcome_1_with_m_votes_a_client_is_inside_after_one_round_trip() {
    let quorum = quorum(5, 3);
    let script = Script::default().acquire(ms(0), client(0), &name(), Some(ms(100)));
    let (outcome, mail) = watched(&story(quorum, script), &Config::new(quorum));
    assert_eq!(entries(&outcome), [(client(0), ms(20))]);
    assert_eq!(mail.times("REQUEST", client(0)), [ms(0); 5]);
    assert_eq!(mail.times("RELEASE", client(0)), [ms(120); 5]);
    assert_eq!(mail.sent.len(), 15, "and five RESPONSEs");
}

/// Outcome 2: somebody else has won. The client does nothing, since it is registered at the replicas
/// already; when its turn comes they say so, unasked, and it is inside one hand-over after the winner
/// has left.
#[test]
fn section_iv_outcome_2_who_has_lost_says_nothing_until_it_is_called() {
    let quorum = quorum(5, 3);
    let script = Script::default().acquire(ms(0), client(0), &name(), Some(ms(300))).acquire(
        ms(100),
        client(1),
        &name(),
        Some(ms(50)),
    );
    let (outcome, mail) = watched(&story(quorum, script), &Config::new(quorum));
    let called: Vec<_> = mail.sent.iter().filter(|sent| sent.kind == "GRANT").collect();
    assert_eq!(called.len(), 5);
    assert!(called.iter().all(|sent| sent.to == client(1) && sent.at == ms(330)), "{called:?}");
    assert_eq!(entries(&outcome), [(client(0), ms(20)), (client(1), ms(340))]);
    let said: Vec<_> = mail.sent.iter().filter(|sent| sent.from == client(1)).collect();
    let before = said.iter().take_while(|sent| sent.at < ms(340));
    assert!(before.clone().all(|sent| sent.kind == "REQUEST" && sent.at == ms(100)), "{said:?}");
    assert_eq!(before.count(), 5);
}

/// Outcome 3: votes are split so that nobody can win, and whoever has some yields them. Each of the three
/// is first at one replica; the replicas then agree on who asked first, and serve all three in order.
#[test]
fn section_iv_outcome_3_when_nobody_can_win_all_yield_and_the_first_is_chosen() {
    let quorum = quorum(3, 2);
    let mut script = Script::default();
    for k in 0..3 {
        script.links.push(link(client(k), host(k), ms(5)));
        script = script.acquire(ms(k), client(k), &name(), Some(ms(20)));
    }
    let (outcome, mail) = watched(&story(quorum, script), &Config::new(quorum));
    for k in 0..3 {
        assert_eq!(mail.times("YIELD", client(k)).len(), 1);
    }
    let order: Vec<_> = entries(&outcome).into_iter().map(|(who, _)| who).collect();
    assert_eq!(order, [client(0), client(1), client(2)]);
    assert!(entries(&outcome)[0].1 <= ms(40), "two round trips after the first asked");
}

/// "This self-stabilization process will quickly settle": of fifty that ask at the same instant, over
/// delays from nothing to 200 ms, one is inside within two worst round trips, whatever the seed, and by
/// then nobody has yielded more than five times.
#[test]
fn section_iv_yield_settles_a_collision_of_fifty_within_a_few_round_trips() {
    let quorum = quorum(32, 24);
    for seed in 0..10 {
        let crowd = (0..50).fold(Script::default(), |script, k| {
            script.acquire(ms(0), client(k), &name(), Some(Span::ZERO))
        });
        let world = RunConfig { seed, network: delays(0, 200), ..story(quorum, crowd) };
        let (outcome, mail) = watched(&world, &Config::new(quorum));
        let settled = entries(&outcome)[0].1;
        assert!(settled < ms(800), "seed {seed}: {settled}");
        let times = (0..50).map(|k| {
            let mut yields = mail.times("YIELD", client(k));
            yields.retain(|at| *at < settled);
            yields.dedup();
            yields.len()
        });
        let times = times.max().unwrap();
        assert!((1..=5).contains(&times), "seed {seed}: {times}");
        assert_eq!(outcome.entries, 50, "and all are served");
    }
}
