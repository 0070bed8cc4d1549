//! Section II, the system model.

use sigmalock_core::Span;
use sigmalock_protocols::sigma::Config;
use sigmalock_sim::faults::Fault;
use sigmalock_sim::script::Script;

use crate::stage::*;

/// "The replicas are always available, but their internal states may be randomly reset": to a client, a
/// host that has just lost its memory is one like the others. It is asked and it answers, and once all
/// that it may have forgotten has run out, its vote is as good as any. Here it has to be: another host
/// is gone for good.
#[test]
fn section_ii_a_reset_replica_is_asked_like_any_other_and_soon_votes_again() {
    let quorum = quorum(3, 2);
    let script = Script::default()
        .acquire(ms(0), client(0), &name(), Some(ms(100)))
        .fault(secs(1), Fault::Reset(host(0)))
        .acquire(secs(2), client(1), &name(), Some(ms(100)))
        .fault(secs(10), Fault::Crash(host(2)))
        .acquire(secs(20), client(2), &name(), Some(ms(100)));
    let (outcome, mail) = watched(&story(quorum, script), &Config::new(quorum));
    let answer = |sent: &&Sent| sent.from == host(0) && sent.to == client(1);
    let answer = mail.sent.iter().find(answer).unwrap();
    assert_eq!((answer.kind.as_str(), answer.at), ("RESPONSE", ms(2_010)));
    // Two round trips at most, the second one for the token.
    assert_eq!(waits(&outcome).len(), 3);
    assert!(waits(&outcome).iter().all(|wait| *wait <= ms(50)), "{:?}", waits(&outcome));
}

/// "The number of clients is unpredictable and can be very large": nothing was prepared for the thousand
/// that come within the same second, and all are served, by three hosts.
#[test]
fn section_ii_a_thousand_clients_nobody_knew_of_are_all_served() {
    let quorum = quorum(3, 2);
    let crowd = (0..1_000).fold(Script::default(), |script, k| {
        script.acquire(ms(k), client(k), &name(), Some(Span::ZERO))
    });
    assert_eq!(clean(&story(quorum, crowd), &Config::new(quorum)).entries, 1_000);
}

/// "Messages could be replicated": copies, some at once and some ten seconds late, cost nobody anything.
#[test]
fn section_ii_replicated_messages_are_harmless() {
    let quorum = quorum(9, 6);
    let mut entries = Vec::new();
    for copies in [0.0, 0.3] {
        let mut world = world(1, quorum, delays(50, 150), loops(4));
        (world.network.duplication, world.network.late) = (copies, copies);
        world.network.late_max = secs(10);
        world.duration = secs(300);
        entries.push(clean(&world, &Config::new(quorum)).entries);
    }
    let [without, with] = entries[..] else { unreachable!() };
    assert!(with > without * 9 / 10, "{with} of {without} entries");
}

/// "A client who has collected majority permissions is said to be the winner": not one vote fewer, and
/// not one answer more. With hosts at 10, 20 … 50 ms a client is inside when the m-th answer comes; with
/// n − m hosts gone it still wins, with one more gone it does not.
#[test]
fn section_ii_the_winner_is_who_has_m_votes() {
    let quorum = quorum(5, 3);
    for down in 0..5 {
        let mut script = Script::default();
        for k in 0..5 {
            let one_way = ms(10 * (k + 1));
            script.links.push(link(client(0), host(k), one_way));
            script.links.push(link(host(k), client(0), one_way));
        }
        for k in 0..down {
            script = script.fault(ms(0), Fault::Crash(host(k)));
        }
        let script = script.acquire(ms(1), client(0), &name(), Some(ms(100)));
        let outcome = clean(&story(quorum, script), &Config::new(quorum));
        let mth_answer = ms(1 + 2 * 10 * (down + 3));
        let expected = (down <= 2).then_some(mth_answer);
        assert_eq!(entry_of(&outcome, client(0)), expected, "{down} hosts are down");
    }
}
