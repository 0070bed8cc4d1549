//! Semaphores: who is inside with whom, and who is told what.

use sigmalock_core::{CallId, Inspect, LockReply, LockRequest, Mode, Patience, Refusal, Span};

use super::{FOREVER, TRY, TTL, Town, UNKNOWN, entry, name};

/// Which slot somebody was given.
fn slot(told: &[(u64, LockReply)]) -> Option<u16> {
    told.iter().find_map(|(_, reply)| match reply {
        LockReply::Granted { slot, .. } => *slot,
        _ => None,
    })
}

#[test]
fn two_permits_let_two_in_by_different_slots_and_the_third_by_the_first_that_is_free() {
    let permit = Mode::Permit { of: 2 };
    let mut town = Town::new(2, 1, 9);
    let first = slot(&town.ask_as(0, 1, permit, FOREVER)).expect("it is in");
    let second = slot(&town.ask_as(1, 2, permit, FOREVER)).expect("it is in");
    assert_ne!(first, second);
    assert_eq!(town.ask_as(0, 3, permit, FOREVER), []);
    assert_eq!(town.ask_as(1, 4, permit, TRY), [(4, LockReply::Busy)]);
    let told = town.leave(1, 2);
    assert_eq!((slot(&told), entry(&told).map(|(call, _)| call)), (Some(second), Some(3)));
    let told = town.request(0, 20, LockRequest::Evict { name: name() });
    assert_eq!(told, [(1, LockReply::Lost), (3, LockReply::Lost), (20, LockReply::Released)]);
    assert_eq!(town.leave(0, 1), [(1_001, LockReply::Released)]);
    assert_eq!(town.leave(0, 3), [(1_003, LockReply::Released)]);
    let patience = Patience::For(Span::from_secs(3));
    for call in [5, 6] {
        assert!(slot(&town.ask_as(0, call, permit, FOREVER)).is_some());
    }
    assert_eq!(town.ask_as(1, 7, permit, patience), []);
    assert_eq!(town.request(1, 8, LockRequest::Cancel { call: CallId(9) }), [(8, UNKNOWN)]);
    assert!(town.pass(Span::from_secs(3)).contains(&(7, LockReply::TimedOut)));
    assert_eq!(town.ask_as(1, 9, permit, FOREVER), []);
    let told = town.request(1, 10, LockRequest::Cancel { call: CallId(9) });
    assert_eq!(told, [(9, LockReply::Cancelled)]);
    town.leave(0, 5);
    town.leave(0, 6);
    town.pass(TTL);
    assert!(town.peers.iter().all(|(peer, _)| peer.is_idle()), "and nothing is kept");
}

#[test]
fn permits_that_cannot_be_are_refused() {
    let mut town = Town::new(1, 1, 9);
    for of in [0, 65] {
        let refusal = LockReply::Refused(Refusal::BadPermits { at_most: 64 });
        assert_eq!(town.ask_as(0, 1, Mode::Permit { of }, TRY), [(1, refusal)]);
    }
    for mode in [Mode::Slot { of: 2, index: 2 }, Mode::Slot { of: 65, index: 0 }] {
        let refusal = LockReply::Refused(Refusal::NoSuchMode { mode });
        assert_eq!(town.ask_as(0, 1, mode, TRY), [(1, refusal)]);
    }
}

#[test]
fn a_permit_keeps_writers_and_readers_out_and_they_keep_it_out() {
    let permit = Mode::Permit { of: 2 };
    let modes = [permit, Mode::Shared, Mode::Exclusive];
    for inside in modes {
        let mut town = Town::new(2, 2, 9);
        assert!(entry(&town.ask_as(0, 1, inside, TRY)).is_some());
        for (call, wants) in (2..).zip(modes) {
            let told = town.ask_as(1, call, wants, TRY);
            let joins = inside == wants && wants != Mode::Exclusive;
            assert_eq!(entry(&told).is_some(), joins, "{wants} beside {inside}: {told:?}");
            assert_eq!(told.contains(&(call, LockReply::Busy)), !joins);
        }
    }
}

#[test]
fn whoever_waits_is_passed_by_nobody_that_it_could_not_be_inside_with() {
    let permit = Mode::Permit { of: 2 };
    let mut town = Town::new(2, 1, 9);
    assert!(slot(&town.ask_as(0, 1, permit, FOREVER)).is_some());
    // A writer, a permit though one is left, a reader and a permit.
    let wants = [(1, Mode::Exclusive), (0, permit), (0, Mode::Shared), (1, permit)];
    for (call, (peer, mode)) in (2..).zip(wants) {
        town.pass(Span::from_millis(1));
        assert_eq!(town.ask_as(peer, call, mode, FOREVER), [], "{mode}");
    }
    let entered = |told: &[(u64, LockReply)]| entry(told).map(|(call, _)| call);
    assert_eq!(entered(&town.leave(0, 1)), Some(2));
    assert_eq!(entered(&town.leave(1, 2)), Some(3));
    assert_eq!(
        town.heard().len(),
        2,
        "the reader waits for the permit, and the other permit for it"
    );
    assert_eq!(entered(&town.leave(0, 3)), Some(4));
    assert_eq!(entered(&town.leave(0, 4)), Some(5));
}

#[test]
fn who_means_another_number_of_permits_is_told_theirs_until_they_are_gone() {
    let permit = |of| Mode::Permit { of };
    let other = |of| LockReply::Refused(Refusal::OtherPermits { of });
    let mut town = Town::new(2, 1, 9);
    assert!(slot(&town.ask_as(0, 1, permit(2), FOREVER)).is_some());
    for (call, patience) in [(2, TRY), (3, FOREVER), (4, Patience::For(TTL))] {
        assert_eq!(town.ask_as(1, call, permit(3), patience), [(call, other(2))]);
    }
    assert_eq!(town.ask_as(0, 5, permit(1), FOREVER), [(5, other(2))], "at the same peer, too");
    assert_eq!(town.ask(1, 6, FOREVER), []);
    assert_eq!(town.leave(0, 1).len(), 2, "the writer is in");
    assert_eq!(town.ask_as(0, 7, permit(3), FOREVER), [], "whoever waits first says how many");
    assert_eq!(town.ask_as(1, 8, permit(2), FOREVER), [(8, other(3))]);
    assert!(slot(&town.leave(1, 6)).is_some());
    town.leave(0, 7);
    assert!(slot(&town.ask_as(1, 9, permit(2), TRY)).is_some(), "nobody is there any more");
    town.leave(1, 9);
    town.pass(TTL);
    assert!(town.peers.iter().all(|(peer, _)| peer.is_idle()), "and nothing is kept");
}

#[test]
fn tokens_of_permits_grow_from_holder_to_holder_of_a_slot_and_lie_between_those_of_others() {
    let permit = Mode::Permit { of: 2 };
    let mut town = Town::new(2, 4, 9);
    let mut enter =
        |call, mode| entry(&town.ask_as(1, call, mode, FOREVER)).map(|(_, token)| token);
    let before = enter(1, Mode::Exclusive);
    assert!(before.is_some());
    town.leave(1, 1);
    let mut highest = [before; 2];
    let mut last = before;
    for call in (2..12).step_by(2) {
        for call in [call, call + 1] {
            let told = town.ask_as(1, call, permit, FOREVER);
            let (token, slot) = (entry(&told).map(|(_, token)| token), slot(&told).unwrap());
            assert!(token > highest[usize::from(slot)], "{token:?} after {highest:?}");
            highest[usize::from(slot)] = token;
            last = last.max(token);
        }
        town.leave(1, call);
        town.leave(1, call + 1);
    }
    for (call, mode) in [(20, Mode::Shared), (21, Mode::Exclusive)] {
        let token = entry(&town.ask_as(0, call, mode, FOREVER)).map(|(_, token)| token);
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        town.leave(0, call);
    }
}

#[test]
fn people_see_whoever_is_inside_with_the_token_that_it_was_given_and_its_slot() {
    for mode in [Mode::Exclusive, Mode::Shared, Mode::Permit { of: 2 }] {
        let mut town = Town::new(1, 16, 99);
        let told = town.ask_as(0, 1, mode, FOREVER);
        let (call, token) = entry(&told).unwrap();
        let report = town.peers[0].0.local(town.now, &name());
        assert_eq!((report.holders.len(), report.holders[0].call), (1, CallId(call)));
        assert_eq!(report.holders[0].token, Some(token), "{mode}");
        assert_eq!(report.holders[0].mode, mode.with(slot(&told)));
        for call in [2, 3, 4] {
            town.ask_as(0, call, Mode::Permit { of: 2 }, FOREVER);
        }
        let joins = usize::from(mode.permits().is_some());
        let report = town.peers[0].0.local(town.now, &name());
        assert_eq!(report.waiting as usize, 3 - joins, "everybody once, however many slots");
        let waiters: Vec<u64> = report.waiters.iter().map(|call| call.0).collect();
        assert_eq!(waiters, [2, 3, 4][joins..]);
        let replica = &town.peers[0].0.replicas(town.now, &name())[0];
        assert_eq!((replica.waiting as usize, replica.waiters.len()), (3 - joins, 3 - joins));
        assert_eq!(replica.owners.len(), 1 + joins);
    }
}
