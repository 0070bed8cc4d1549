//! Rules of views, each left out in turn: stories that end well with it, and badly without.

use sigmalock_core::{Birth, CallId, ForgetRefusal, Input, LockReply, LockRequest, PeerId, Span};
use sigmalock_protocols::views::Mutant;

use crate::town::{ALICE, BOB, Packet, Town};

/// Neither hears the other side.
fn within(packet: &Packet, side: &[u64]) -> bool {
    side.contains(&packet.from) == side.contains(&packet.to)
}

/// One of five is gone, and the founder is told so. All the others promise it to look at no older ballot; then it is cut
/// off, and they go on with newer ones. What it is answered, and whether two are inside in the end.
fn a_minority_is_forgotten(broken: Option<Mutant>) -> (Option<LockReply>, bool) {
    let mut town = Town::without(broken, 5);
    drop(town.stop(4));
    let request = LockRequest::Forget { gone: [PeerId(4)].into(), unverified: false };
    town.give(0, Input::Request { id: CallId(9), request });
    town.pass(Span::from_millis(150), |_| true);
    // It does not hear that the dead one is voted out, nor that others come.
    let founder = [0, BOB];
    town.part(&founder, &[1, 2, 3, ALICE]);
    town.pass(Span::from_secs(1), |packet| within(packet, &founder));
    let told = town.places.get_mut(&0).unwrap().told.pop();
    for peer in 5..8 {
        town.start(peer, Birth::First);
        town.part(&founder, &[peer]);
    }
    town.pass(Span::from_secs(120), |packet| within(packet, &founder));
    assert_eq!(town.view(3).1, [1, 2, 3, 5, 6, 7]);
    // It meets two of them, who are cut off from the others.
    let founder = [0, 1, 2, BOB];
    town.packets.clear();
    town.part(&[1, 2], &[3, 5, 6, 7, ALICE]);
    town.meet(&[0, BOB], &[1, 2]);
    town.ask(ALICE);
    town.ask(BOB);
    town.pass(Span::from_secs(40), |packet| within(packet, &founder));
    (told, town.is_inside(ALICE) && town.is_inside(BOB))
}

#[test]
fn nobody_is_forgotten_where_those_who_are_left_can_choose_what_comes_next() {
    let refused = LockReply::Refused(ForgetRefusal::EnoughAreLeft.into());
    assert_eq!(a_minority_is_forgotten(None), (Some(refused), false));
    let broken = Some(Mutant::ForgetsThoughEnoughAreLeft);
    assert_eq!(a_minority_is_forgotten(broken), (Some(LockReply::Released), true));
}
