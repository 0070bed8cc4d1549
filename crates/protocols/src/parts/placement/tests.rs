use super::*;
use alloc::string::ToString;
use alloc::vec::Vec;
use proptest::prelude::*;
use sigmalock_core::Name;

const LEASE: Span = Span::from_secs(15);
const SETTLE: Span = Span::from_secs(1);
const HOLD: Span = Span::from_secs(16);

const fn at(s: u64) -> LocalTime {
    LocalTime::from_micros(s * 1_000_000)
}
fn replica(index: u16) -> ReplicaId {
    ReplicaId { name: Name::new("/a").unwrap(), index }
}
fn sha(text: &str) -> Key {
    Key(Sha256::digest(text.as_bytes()).into())
}
fn peer(id: u64) -> (PeerId, Key) {
    (PeerId(id), sha(&id.to_string()))
}
/// Knows peers 1 to `count` since the beginning, and is peer 0.
fn swarm(count: u64) -> Placement {
    let mut placement = Placement::new(PeerId(0), peer(0).1, true, LEASE, SETTLE);
    for (id, key) in (1..=count).map(peer) {
        placement.up(id, key, true, at(0));
    }
    placement
}
/// The first replica that peer 0 hosts.
fn own(placement: &Placement) -> ReplicaId {
    (0..999).map(replica).find(|r| placement.host_of(r) == Some(PeerId(0))).unwrap()
}
fn nothing(_: PeerId) -> HandedOver {
    HandedOver::Nothing
}

#[test]
fn the_key_of_a_replica_is_the_hash_of_its_name_as_people_write_it() {
    for index in [0, 8, 9, 99, 65_535] {
        assert_eq!(key_of(&replica(index)), sha(&replica(index).to_string()));
    }
}

#[test]
fn who_leaves_hosts_nothing_and_clients_never_do() {
    let mut placement = swarm(4);
    let mine = own(&placement);
    placement.leave();
    assert_ne!(placement.host_of(&mine), Some(PeerId(0)));
    placement.up(PeerId(9), key_of(&mine), false, at(1));
    assert_ne!(placement.host_of(&mine), Some(PeerId(9)));
    placement.up(PeerId(9), key_of(&mine), true, at(1));
    assert_eq!(placement.host_of(&mine), Some(PeerId(9)));
}

#[test]
fn a_host_that_is_gone_is_waited_for_unless_it_handed_all_over() {
    let mut placement = swarm(4);
    let mine = own(&placement);
    placement.up(PeerId(9), key_of(&mine), true, at(100));
    placement.down(PeerId(9), at(200), false);
    let before = |_: PeerId| HandedOver::Mine { from: at(3) };
    assert_eq!(placement.inherited_until(&mine, &before), at(200) + HOLD);
    let all = |_: PeerId| HandedOver::Everything { from: at(201) };
    assert_eq!(placement.inherited_until(&mine, &all), at(201));
}

#[test]
fn a_newcomer_waits_for_the_next_closest_to_hand_over() {
    let mut placement = swarm(1);
    let mine = own(&placement);
    assert_eq!(placement.inherited_until(&mine, &nothing), at(0) + HOLD);
    let handed = |_: PeerId| HandedOver::Mine { from: at(2) };
    assert_eq!(placement.inherited_until(&mine, &handed), at(2));
    placement.unsettle(at(5));
    assert_eq!(placement.inherited_until(&mine, &handed), at(5) + SETTLE);
    assert_eq!(swarm(0).inherited_until(&mine, &nothing), LocalTime::MIN, "a founder");
}

#[test]
fn who_has_not_been_handed_all_cannot_vouch_for_it() {
    let mut placement = swarm(2);
    let handed = |_: PeerId| HandedOver::Mine { from: at(2) };
    assert_eq!(placement.unsure_until(PeerId(1), &handed), at(2));
    assert_eq!(placement.unsure_until(PeerId(1), &nothing), at(0) + SETTLE);
    placement.down(PeerId(2), at(7), false);
    let unsure = placement.unsure_until(PeerId(1), &handed);
    assert_eq!(unsure, LocalTime::MIN, "of the dead it tells");
    assert_eq!(placement.unsure_until(PeerId(2), &handed), at(2));
}

#[test]
fn a_newcomer_that_is_told_of_the_dead_waits_for_their_votes_only_where_they_were() {
    let mut old = swarm(4);
    old.down(PeerId(2), at(7), false);
    let lost: Vec<_> = old.lost(at(9)).collect();
    assert_eq!(lost, [(PeerId(2), peer(2).1, at(7))]);
    assert_eq!(old.present().count(), 3);
    assert_eq!(old.lost(at(8) + HOLD).count(), 0, "their votes are over");
    let mut young = Placement::new(PeerId(9), peer(9).1, true, LEASE, SETTLE);
    for (id, key, gone) in lost {
        young.mourn(id, key, gone);
    }
    for (id, key) in [1, 3, 4].map(peer) {
        young.up(id, key, true, at(10));
    }
    let handed = |_: PeerId| HandedOver::Mine { from: at(10) };
    let waits = |index| young.inherited_until(&replica(index), &handed);
    let mine = (0..200).filter(|index| young.host_of(&replica(*index)) == Some(PeerId(9)));
    let (waiting, free): (Vec<_>, Vec<_>) = mine.partition(|index| waits(*index) == at(7) + HOLD);
    assert!(!waiting.is_empty() && free.len() > waiting.len(), "{waiting:?} {free:?}");
    assert!(free.into_iter().all(|index| waits(index) == at(10) + SETTLE), "the dead count");
}

#[test]
fn who_sees_half_of_the_last_hours_hosts_or_fewer_does_not_vote() {
    let mut placement = swarm(3);
    placement.down(PeerId(1), at(1), false);
    assert!(placement.may_vote());
    placement.down(PeerId(2), at(2), false);
    assert!(!placement.may_vote(), "two of four");
    placement.up(PeerId(2), peer(2).1, true, at(3));
    assert!(placement.may_vote());
    assert_eq!(placement.settled_at, at(3) + SETTLE, "others may be back unseen");
    placement.down(PeerId(2), at(4), true);
    assert!(placement.may_vote(), "two of three: who left does not count");
    placement.down(PeerId(3), at(5), false);
    assert!(!placement.may_vote());
    placement.tick(at(6) + KNOWN_FOR);
    assert!(placement.may_vote(), "nobody else was seen for an hour");
}

#[test]
fn a_swarm_whose_dead_are_replaced_does_not_run_out_of_majorities() {
    let mut placement = swarm(4);
    for round in 0..20 {
        placement.down(peer(1 + round).0, at(30 * round), false);
        assert!(placement.may_vote(), "four of five, and one that was here just now");
        let (id, key) = peer(5 + round);
        placement.up(id, key, true, at(30 * round + 1));
    }
    for dead in 21..=23 {
        placement.down(PeerId(dead), at(700), false);
    }
    assert!(!placement.may_vote(), "two of five");
    placement.tick(at(701) + KNOWN_FOR);
    assert!(placement.may_vote(), "nobody else was seen for an hour");
}

#[test]
fn a_newcomer_does_not_make_up_for_one_who_sleeps() {
    let mut placement = swarm(4);
    placement.down(PeerId(1), at(10), false);
    placement.up(PeerId(5), peer(5).1, true, at(12));
    for lost in [2, 3] {
        placement.down(PeerId(lost), at(14), false);
    }
    assert!(!placement.may_vote(), "three of six: the sleeper may be with the others");
}

#[test]
fn who_starts_alone_among_many_does_not_vote() {
    let mut placement = swarm(0);
    for (id, key) in (1..=2).map(peer) {
        placement.expect(id, key, true, at(1));
    }
    placement.at_least(3, at(1));
    assert!(!placement.may_vote(), "one of three");
    placement.up(PeerId(2), peer(2).1, true, at(2));
    assert!(placement.may_vote());
    placement.expect(PeerId(2), peer(2).1, true, at(3));
    assert!(placement.may_vote(), "it is known to be up");
}

#[test]
fn the_table_is_bounded_and_those_gone_longest_make_room() {
    let mut placement = swarm(PEERS_MAX as u64);
    placement.up(PeerId(1 << 20), peer(0).1, true, at(1));
    assert!(!placement.peers.contains_key(&PeerId(1 << 20)), "nobody is gone");
    placement.down(PeerId(7), at(2), false);
    placement.down(PeerId(6), at(3), false);
    placement.up(PeerId(1 << 20), peer(0).1, true, at(4));
    assert_eq!(placement.peers.len(), PEERS_MAX);
    assert!(!placement.peers.contains_key(&PeerId(7)));
}

#[derive(Debug, Clone)]
enum Change {
    Up(u64, bool),
    Down(u64, bool),
}

fn change() -> impl Strategy<Value = Change> {
    (1u64..7, any::<bool>(), any::<bool>())
        .prop_map(|(id, up, flag)| if up { Change::Up(id, flag) } else { Change::Down(id, flag) })
}

proptest! {
    /// Against lists of what happened, asked anew each time.
    #[test]
    fn a_naive_version_says_the_same(changes in prop::collection::vec(change(), 0..30), handed in 0u64..128) {
        let mut placement = Placement::new(PeerId(0), peer(0).1, true, LEASE, SETTLE);
        // (id, hosts, up, changed at, clean), the latest of each peer.
        let mut facts: Vec<(u64, bool, bool, LocalTime, bool)> = Vec::new();
        let mut peak = 1;
        for (second, change) in changes.iter().enumerate() {
            let now = at(second as u64);
            match *change {
                Change::Up(id, hosts) => {
                    placement.up(PeerId(id), peer(id).1, hosts, now);
                    facts.retain(|fact| fact.0 != id);
                    facts.push((id, hosts, true, now, false));
                }
                Change::Down(id, clean) => {
                    placement.down(PeerId(id), now, clean);
                    for fact in facts.iter_mut().filter(|fact| fact.0 == id && fact.2) {
                        (fact.2, fact.3, fact.4) = (false, now, clean);
                        peak -= usize::from(clean && fact.1);
                    }
                }
            }
            let here = facts.iter().filter(|f| f.1 && (f.2 || (!f.4 && now.since(f.3) <= HOLD))).count();
            peak = peak.max(1 + here);
        }
        let now = at(changes.len() as u64);
        let hosts: Vec<_> = facts.iter().filter(|fact| fact.1).collect();
        let far = |id: u64, r: &ReplicaId| {
            let (a, b) = (peer(id).1.0, sha(&r.to_string()).0);
            (0..32).map(|i| a[i] ^ b[i]).collect::<Vec<u8>>()
        };
        let word = |id: PeerId| if handed & 1 << id.0 != 0 { HandedOver::Mine { from: at(0) } } else { HandedOver::Nothing };
        for r in (0..9).map(replica) {
            let mut up: Vec<u64> = hosts.iter().filter(|f| f.2).map(|f| f.0).chain([0]).collect();
            up.sort_by_key(|id| far(*id, &r));
            prop_assert_eq!(placement.host_of(&r), Some(PeerId(up[0])));
            if up[0] != 0 { continue; }
            let until = placement.inherited_until(&r, &word);
            for f in hosts.iter().filter(|f| !f.2 && far(f.0, &r) < far(0, &r)) {
                prop_assert!(f.3 + HOLD <= now || until >= f.3 + HOLD);
            }
            let next = hosts.iter().filter(|f| f.2 && far(f.0, &r) > far(0, &r)).min_by_key(|f| far(f.0, &r));
            if let Some(f) = next {
                let gone_between = hosts.iter().any(|g| !g.2 && far(g.0, &r) > far(0, &r) && far(g.0, &r) < far(f.0, &r));
                let covered = handed & 1 << f.0 != 0;
                prop_assert!(covered || gone_between || until >= f.3 + HOLD);
            }
        }
        let known = 1 + hosts.iter().filter(|f| f.2 || !f.4).count();
        let up = 1 + hosts.iter().filter(|f| f.2).count();
        prop_assert_eq!(placement.may_vote(), 2 * up > known.min(peak));
    }
}
