//! Two services over one membership: each keeps its contract, and neither knows of the other's locks.

use sigmalock_core::{LockReply, LockRequest, Mode, Patience, PeerId};
use sigmalock_protocols::agreed::{Agreed, Request};
use sigmalock_protocols::parts::Beside;
use sigmalock_protocols::parts::beside::Either;
use sigmalock_protocols::sigma::Sigma;
use sigmalock_protocols::strawman::Strawman;

use super::bench::{ANNA, BERT, Bench, HOSTS, Kit, SOON, TTL, wish};
use super::{VIEWS, agreed, inside};

type Two = Agreed<Beside<Sigma, Strawman>>;
type Asked = Either<LockRequest, LockRequest>;

fn two() -> Bench<Two> {
    let peer = |me| agreed(me, Beside::new(inside::<Sigma>(me), inside::<Strawman>(me)));
    Bench::new(&Kit { peer, as_published: false, ready: VIEWS })
}

/// Asks one of the two for the one name there is.
fn ask(bench: &mut Bench<Two>, peer: u64, call: u64, of: fn(LockRequest) -> Asked) -> u64 {
    bench.put(peer, call, Request::Inside(of(wish(Mode::Exclusive, TTL, Patience::Forever))));
    bench.pass(SOON);
    call
}

#[test]
fn one_name_is_two_locks_and_each_service_excludes_in_its_own() {
    let mut bench = two();
    let sigma = ask(&mut bench, ANNA, 1_001, Either::First);
    let strawman = ask(&mut bench, BERT, 1_002, Either::Second);
    assert!(bench.inside_until(ANNA, sigma).is_some());
    assert!(bench.inside_until(BERT, strawman).is_some(), "that of the other is none of its");
    // And under one number of a call.
    let waits = [
        (BERT, ask(&mut bench, BERT, 1_003, Either::First)),
        (ANNA, ask(&mut bench, ANNA, 1_004, Either::Second)),
    ];
    for (peer, call) in waits {
        assert!(bench.inside_until(peer, call).is_none(), "{:?}", bench.told(peer, call));
    }
    // Who gives back that of one service lets in who waits for that one.
    bench.put(ANNA, 1_005, Request::Inside(Either::First(released(sigma))));
    bench.pass(SOON);
    assert!(bench.inside_until(BERT, 1_003).is_some() && bench.inside_until(ANNA, 1_004).is_none());
    bench.put(BERT, 1_006, Request::Inside(Either::Second(released(strawman))));
    bench.pass(SOON);
    assert!(bench.inside_until(ANNA, 1_004).is_some());
    let unknown = |told: Vec<LockReply>| matches!(told[..], [LockReply::Refused(_)]);
    bench.put(ANNA, 1_007, Request::Inside(Either::First(released(1_004))));
    bench.pass(SOON);
    assert!(unknown(bench.told(ANNA, 1_007)), "the call of one is none of the other's");
}

#[test]
fn both_of_them_are_in_one_view() {
    let bench = two();
    for peer in 0..HOSTS {
        let roster = bench.protocol(peer).views().roster().expect("a view");
        assert_eq!(roster.members().len() as u64, HOSTS);
        assert!(roster.since(PeerId(peer)).is_some(), "{peer}");
    }
}

fn released(held: u64) -> LockRequest {
    LockRequest::Release { held: sigmalock_core::CallId(held) }
}
