//! What whoever uses a lock may rely on.

use sigmalock_core::{CallId, LockReply, LockRequest, Mode, Patience, Refusal, Span};

use crate::bench::{ANNA, BERT, Bench, HOSTS, Kit, Lock, SOON, TTL, name, wish};

const UNKNOWN: LockReply = LockReply::Refused(Refusal::UnknownCall);
const FOREVER: Patience = Patience::Forever;

pub(crate) fn who_asks_for_a_free_lock_is_let_in_once_until_a_deadline<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let begin = bench.now;
    let call = bench.ask(ANNA, FOREVER);
    bench.pass(Span::from_secs(2));
    let told = bench.when_told(ANNA, call);
    let [(at, LockReply::Granted { deadline, slot: None, .. })] = told[..] else {
        panic!("{told:?}")
    };
    assert!(at > begin, "somebody was asked");
    assert!(deadline > at && deadline <= at + TTL, "{told:?}");
}

pub(crate) fn who_holds_a_lock_is_extended_for_as_long_as_it_likes<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let call = bench.let_in(ANNA);
    bench.pass(TTL * 6);
    let told = bench.told(ANNA, call);
    assert!(told[1..].iter().all(|reply| matches!(reply, LockReply::Extended { .. })), "{told:?}");
    assert!(bench.inside_until(ANNA, call).unwrap() > bench.now, "{told:?}");
}

pub(crate) fn who_gives_it_back_is_told_so_under_that_call_and_the_next_gets_in<P: Lock>(
    kit: &Kit<P>,
) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let next = bench.ask(BERT, FOREVER);
    bench.pass(SOON);
    assert_eq!(bench.told(BERT, next), [], "somebody is inside");
    let before = bench.told(ANNA, held);
    let call = bench.release(ANNA, held);
    assert_eq!(bench.told(ANNA, call), [LockReply::Released], "there and then");
    bench.pass(SOON);
    assert_eq!(bench.told(ANNA, held), before, "nothing more is said to the call that got it");
    assert!(bench.inside_until(BERT, next).is_some());
}

pub(crate) fn what_is_over_or_was_never_there_is_no_call<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    bench.release(ANNA, held);
    for call in [held, 999] {
        let again = bench.release(ANNA, call);
        let cancel = bench.say(ANNA, LockRequest::Cancel { call: CallId(call) });
        let renew = bench.say(ANNA, LockRequest::Renew { held: CallId(call), on: false });
        for answer in [again, cancel, renew] {
            assert_eq!(bench.told(ANNA, answer), [UNKNOWN]);
        }
    }
    let evict = bench.say(ANNA, LockRequest::Evict { name: name() });
    assert_eq!(bench.told(ANNA, evict), [UNKNOWN]);
}

pub(crate) fn who_waits_can_cancel_and_who_is_inside_cannot<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let waiting = bench.ask(BERT, FOREVER);
    bench.pass(Span::from_secs(1));
    let release = bench.release(BERT, waiting);
    assert_eq!(bench.told(BERT, release), [UNKNOWN], "it is not inside");
    let cancel = bench.say(BERT, LockRequest::Cancel { call: CallId(waiting) });
    assert_eq!(bench.told(BERT, waiting), [LockReply::Cancelled]);
    assert_eq!(bench.told(BERT, cancel), [], "who waited is told");
    let cancel = bench.say(ANNA, LockRequest::Cancel { call: CallId(held) });
    assert_eq!(bench.told(ANNA, cancel), [UNKNOWN]);
    bench.release(ANNA, held);
    bench.pass(TTL * 3);
    assert_eq!(bench.told(BERT, waiting), [LockReply::Cancelled], "and nothing more");
    bench.let_in(BERT);
}

pub(crate) fn who_only_tries_is_answered_soon<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let call = bench.ask(BERT, Patience::Try);
    bench.pass(SOON);
    assert_eq!(bench.told(BERT, call), [LockReply::Busy]);
    bench.release(ANNA, held);
    bench.pass(SOON);
    let call = bench.ask(BERT, Patience::Try);
    bench.pass(SOON);
    assert!(bench.inside_until(BERT, call).is_some(), "{:?}", bench.told(BERT, call));
}

pub(crate) fn who_waits_for_a_time_is_told_at_its_end<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let (begin, patience) = (bench.now, Span::from_secs(3));
    let call = bench.ask(BERT, Patience::For(patience));
    bench.pass(TTL * 2);
    assert_eq!(bench.when_told(BERT, call), [(begin + patience, LockReply::TimedOut)]);
    bench.release(ANNA, held);
    bench.pass(TTL * 2);
    assert_eq!(bench.told(BERT, call).len(), 1, "nobody lets it in any more");
    bench.let_in(ANNA);
}

pub(crate) fn one_call_is_one_request<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let before = bench.told(ANNA, held);
    bench.say_again(ANNA, held, wish(Mode::Exclusive, TTL, FOREVER));
    let said: Vec<_> = bench.told(ANNA, held).split_off(before.len());
    assert_eq!(said, [LockReply::Refused(Refusal::DuplicateCall)]);
    let release = bench.release(ANNA, held);
    assert_eq!(
        bench.told(ANNA, release),
        [LockReply::Released],
        "the first of the two is as it was"
    );
}

pub(crate) fn who_is_cut_off_is_told_by_its_deadline_and_the_next_gets_in_after_it<P: Lock>(
    kit: &Kit<P>,
) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let next = bench.ask(BERT, FOREVER);
    bench.pass(SOON);
    let deadline = bench.inside_until(ANNA, held).unwrap();
    bench.cut(ANNA);
    bench.pass(TTL * 4);
    let (at, last) = *bench.when_told(ANNA, held).last().unwrap();
    assert_eq!(last, LockReply::Lost);
    // What was on its way when it was cut off does not arrive.
    assert!(at <= deadline, "{at:?} {deadline:?}");
    let (entered, _) = bench.when_told(BERT, next)[0];
    assert!(entered >= deadline, "{entered:?} {deadline:?}");
    let release = bench.release(ANNA, held);
    assert_eq!(bench.told(ANNA, release), [UNKNOWN], "it has nothing to give back");
}

pub(crate) fn who_is_put_out_is_told_and_the_next_waits_until_it_has_left<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let next = bench.ask(BERT, FOREVER);
    bench.pass(Span::from_secs(1));
    let evict = bench.say(ANNA, LockRequest::Evict { name: name() });
    if kit.as_published && bench.told(ANNA, evict) == [UNKNOWN] {
        return assert!(bench.inside_until(ANNA, held).is_some(), "nothing changed");
    }
    assert_eq!(bench.told(ANNA, evict), [LockReply::Released]);
    assert_eq!(bench.told(ANNA, held).last(), Some(&LockReply::Lost));
    bench.pass(Span::from_secs(1));
    assert_eq!(bench.told(BERT, next), [], "it may need a moment");
    bench.release(ANNA, held);
    bench.pass(SOON);
    assert!(bench.inside_until(BERT, next).is_some());
}

pub(crate) fn who_does_not_answer_is_not_renewed<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let pause = bench.say(ANNA, LockRequest::Renew { held: CallId(held), on: false });
    if kit.as_published && bench.told(ANNA, pause) == [UNKNOWN] {
        return;
    }
    assert_eq!(bench.told(ANNA, pause), [LockReply::Released]);
    let deadline = bench.inside_until(ANNA, held).unwrap();
    let next = bench.ask(BERT, FOREVER);
    bench.pass(TTL * 2);
    assert_eq!(bench.told(ANNA, held).last(), Some(&LockReply::Lost));
    let (entered, _) = bench.when_told(BERT, next)[0];
    assert!(entered >= deadline, "{entered:?} {deadline:?}");
    // Whoever answers again in time stays.
    let other = bench.ask(ANNA, FOREVER);
    bench.release(BERT, next);
    bench.pass(SOON);
    for on in [false, true] {
        bench.say(ANNA, LockRequest::Renew { held: CallId(other), on });
    }
    bench.pass(TTL * 3);
    assert!(bench.inside_until(ANNA, other).unwrap() > bench.now);
}

pub(crate) fn a_ttl_that_cannot_be_kept_and_a_mode_that_there_is_not_are_refused<P: Lock>(
    kit: &Kit<P>,
) {
    let mut bench = Bench::new(kit);
    let mut refused = |mode, ttl| {
        let call = bench.say(ANNA, wish(mode, ttl, FOREVER));
        bench.pass(Span::from_secs(1));
        matches!(bench.told(ANNA, call)[..], [LockReply::Refused(_)])
    };
    assert!(refused(Mode::Permit { of: 0 }, TTL) && refused(Mode::Permit { of: 65 }, TTL));
    if !kit.as_published {
        assert!(refused(Mode::Exclusive, Span::from_millis(1)));
        assert!(refused(Mode::Exclusive, Span::from_secs(3_600)));
    }
    // Nothing changed.
    bench.let_in(BERT);
}

pub(crate) fn users_of_one_peer_take_turns<P: Lock>(kit: &Kit<P>) {
    if kit.as_published {
        return;
    }
    let mut bench = Bench::new(kit);
    let mut waiting: Vec<u64> = (0..3).map(|_| bench.ask(ANNA, FOREVER)).collect();
    for left in (1..=3).rev() {
        bench.pass(TTL * 2);
        let inside: Vec<u64> = waiting
            .iter()
            .copied()
            .filter(|call| bench.inside_until(ANNA, *call).is_some())
            .collect();
        assert_eq!(inside.len(), 1, "of {left}");
        bench.release(ANNA, inside[0]);
        waiting.retain(|call| *call != inside[0]);
    }
}

pub(crate) fn a_new_life_knows_no_call_of_the_last_and_gets_in_after_it<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    let held = bench.let_in(ANNA);
    let deadline = bench.inside_until(ANNA, held).unwrap();
    bench.restart(ANNA);
    let release = bench.release(ANNA, held);
    assert_eq!(bench.told(ANNA, release), [UNKNOWN]);
    if kit.as_published {
        return;
    }
    let call = bench.ask(ANNA, FOREVER);
    bench.pass(TTL * 4);
    let (entered, _) = bench.when_told(ANNA, call)[0];
    assert!(bench.inside_until(ANNA, call).is_some() && entered >= deadline, "{entered:?}");
}

pub(crate) fn with_most_of_those_who_guard_away_nobody_gets_in<P: Lock>(kit: &Kit<P>) {
    let mut bench = Bench::new(kit);
    (1..HOSTS).for_each(|host| bench.cut(host));
    let call = bench.ask(ANNA, FOREVER);
    bench.pass(TTL * 4);
    assert_eq!(bench.told(ANNA, call), []);
}
