//! Stories, told message by message.

use crate::town::Message;
use sigmalock_core::{
    Birth, CallId, ForgetRefusal, Input, Inspect, MemberReply, MemberRequest, Message as _, Name,
    PeerId, Span, Standing,
};
use sigmalock_protocols::agreed::Mutant;
use sigmalock_protocols::parts::hosting::voters;
use sigmalock_protocols::sigma;
use sigmalock_protocols::views::{self, Badge, Change, Roster};

use crate::refutations::recovered;
use crate::town::{ALICE, BOB, Packet, STEP, Town, is_learn, name};

/// Three members take a fourth in. Two of them learn of that late, and vote for Alice meanwhile, after the
/// newcomer has asked; the first does not hear her. Then a fifth comes, and Bob wants in.
fn a_newcomer_asks_early(mutant: Option<Mutant>) -> (bool, bool) {
    let mut town = Town::of(3, mutant);
    let unheard = |packet: &Packet| {
        (packet.from, packet.to) == (ALICE, 0) || (is_learn(packet) && packet.to == ALICE)
    };
    let late =
        |packet: &Packet| unheard(packet) || (is_learn(packet) && [1, 2].contains(&packet.to));
    town.start(3, Birth::First);
    town.pass(Span::from_millis(600), |packet| !late(packet));
    assert_eq!((town.view(0).0, town.view(3).0, town.view(1).0), (4, 4, 3));
    town.ask(ALICE);
    town.pass(Span::from_millis(300), |packet| !late(packet));
    assert!(town.is_inside(ALICE));
    town.start(4, Birth::First);
    town.pass(Span::from_secs(2), |packet| !unheard(packet));
    assert_eq!(town.view(0), (5, vec![0, 1, 2, 3, 4]));
    town.ask(BOB);
    town.pass(Span::from_secs(2), |packet| !unheard(packet));
    (town.is_inside(ALICE), town.is_inside(BOB))
}

#[test]
fn a_newcomer_that_asks_those_who_are_not_yet_in_its_view_lets_two_in() {
    assert_eq!(a_newcomer_asks_early(None), (true, false));
    assert_eq!(a_newcomer_asks_early(Some(Mutant::HearsVotesOfBefore)), (true, true));
}

/// Five of nine members vote for Alice, who is cut off then. Three more come. The first does not vote on that name;
/// the others take the places of two of the five, and believe that five votes are too few. Then Bob wants in.
fn a_tenth_comes(mutant: Option<Mutant>) -> Town {
    let mut town = Town::of(9, mutant);
    let nine = town.places[&0].agreed.views().roster().unwrap().clone();
    let add = |roster: Roster, peer| roster.after(Change::Add(PeerId(peer), Badge(peer))).unwrap();
    let ten = add(nine, 9);
    let twelve = (10..12).fold(ten.clone(), add);
    let votes = |roster: &Roster, name: &Name, peer| {
        voters(&roster.seats(), name).iter().any(|voter| voter.peer.0 == peer)
    };
    let fits =
        |name: &Name| !votes(&ten, name, 9) && votes(&twelve, name, 10) && votes(&twelve, name, 11);
    let mut names = (0..).map(|k| Name::new(&format!("/job/{k}")).unwrap());
    let name = names.find(fits).unwrap();
    let mut members: Vec<u64> = (0..9).collect();
    members.sort_by_key(|peer| votes(&twelve, &name, *peer));
    let five = &members[..5];
    town.ask_for(ALICE, CallId(1), name.clone());
    town.pass(Span::from_secs(1), |packet| packet.from != ALICE || five.contains(&packet.to));
    assert!(town.is_inside(ALICE));
    for peer in 9..12 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(2), |packet| ![packet.from, packet.to].contains(&ALICE));
    }
    town.ask_for(BOB, CallId(1), name);
    town.pass(Span::from_secs(1), |packet| ![packet.from, packet.to].contains(&ALICE));
    town
}

#[test]
fn a_tenth_member_that_does_not_wait_for_a_lease_lets_two_in() {
    let mut town = a_tenth_comes(None);
    assert_eq!(
        (town.view(0).1.len(), town.is_inside(ALICE), town.is_inside(BOB)),
        (10, true, false)
    );
    town.pass(Span::from_secs(20), |packet| ![packet.from, packet.to].contains(&ALICE));
    assert_eq!(
        (town.view(0).1.len(), town.is_inside(ALICE), town.is_inside(BOB)),
        (12, false, true)
    );
    let town = a_tenth_comes(Some(Mutant::HurriesTheTenth));
    assert_eq!(
        (town.view(0).1.len(), town.is_inside(ALICE), town.is_inside(BOB)),
        (12, true, true)
    );
}

/// Alice has three votes of five, and is cut off; Bob has one. A sixth member hears of too few of them to know which of the
/// two has won, and abstains; perhaps it is restarted. Then come three more, who hear all that the others know, and Bob asks
/// everybody.
fn one_that_abstains_is_asked(broken: Option<sigma::Mutant>, restarted: bool) -> Town {
    let mut town = Town::breaking(broken, 5);
    let reaches = |packet: &Packet| match packet.from {
        ALICE => packet.to < 3,
        BOB => packet.to == 3,
        _ => true,
    };
    town.ask_for_long(ALICE);
    town.pass(Span::from_secs(1), reaches);
    town.ask(BOB);
    town.pass(Span::from_secs(1), reaches);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
    let alone = |packet: &Packet| ![packet.from, packet.to].contains(&ALICE);
    let is_votes = |packet: &Packet| {
        matches!(&packet.message, Message::Inside { message: sigma::Message::Votes(_), .. })
    };
    let unheard = |packet: &Packet| packet.to == 5 && [0, 4].contains(&packet.from);
    town.start(5, Birth::First);
    while town.standing(5) != Standing::Voting {
        let heard = |packet: &Packet| !(is_votes(packet) && unheard(packet));
        town.pass(STEP, |packet| alone(packet) && reaches(packet) && heard(packet));
    }
    town.packets.retain(|packet| !is_votes(packet));
    if restarted {
        let disk = town.stop(5);
        town.start(5, recovered(&disk));
        town.pass(STEP * 4, |packet| alone(packet) && reaches(packet));
        assert_eq!(town.standing(5), Standing::Voting);
    }
    for peer in 6..9 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(1), |packet| alone(packet) && reaches(packet));
    }
    town.packets.retain(alone);
    town.pass(Span::from_secs(6), alone);
    assert_eq!((town.view(BOB).1.len(), town.is_inside(ALICE)), (9, true));
    town
}

#[test]
fn a_newcomer_that_is_not_told_who_abstains_lets_two_in() {
    use sigma::Mutant::{AbstainsBriefly, ForgetsAbstentions, HushesUpAbstentions};
    for (mutant, restarted) in
        [(HushesUpAbstentions, false), (ForgetsAbstentions, true), (AbstainsBriefly, true)]
    {
        assert!(!one_that_abstains_is_asked(None, restarted).is_inside(BOB));
        let town = one_that_abstains_is_asked(Some(mutant), restarted);
        assert!(town.is_inside(BOB), "{mutant} is not caught");
    }
}

#[test]
fn a_holder_notices_nothing_of_joins_leaves_and_a_crash() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    for peer in 3..6 {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(2), |_| true);
    }
    assert_eq!(town.view(ALICE).1, [0, 1, 2, 3, 4, 5]);
    town.ask(BOB);
    town.stop(1);
    town.pass(Span::from_secs(20), |_| true);
    town.give(2, Input::Leave);
    // The dead one is voted out, and the other let go, each at least a lease after the view before.
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!(town.view(ALICE).1, [0, 3, 4, 5]);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
    town.release(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    assert!(town.is_inside(BOB));
}

#[test]
fn who_was_replaced_and_comes_back_with_its_old_disk_is_new() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    let disk = town.stop(2);
    town.pass(Span::from_secs(60), |_| true);
    assert_eq!(town.view(0).1, [0, 1]);
    town.release(ALICE);
    town.ask(BOB);
    town.pass(Span::from_secs(1), |_| true);
    assert!(town.is_inside(BOB));
    // Its disk says that it is a member, and that its vote is Alice's. What it says is not heard until it has
    // learned better; then it is added again, and takes the others' word.
    town.start(2, Birth::Recovered(disk.into_iter().collect()));
    assert_eq!(town.view(2).0, 3);
    town.pass(Span::from_secs(40), |_| true);
    assert_eq!((town.view(2).1, town.standing(2)), (vec![0, 1, 2], Standing::Voting));
    let replicas = town.places[&2].agreed.replicas(town.now, &name());
    let owner = replicas[0].owners.first().map(|owner| owner.request.client);
    assert_eq!(owner, Some(PeerId(BOB)));
    assert!(town.is_inside(BOB));
}

#[test]
fn who_lost_its_memory_votes_again_when_it_was_removed_and_added() {
    let mut town = Town::of(3, None);
    let _lost = town.stop(1);
    town.pass(Span::from_secs(1), |_| true);
    town.start(1, Birth::Amnesiac);
    town.pass(STEP, |_| true);
    assert_eq!(town.standing(1), Standing::Lost);
    town.pass(Span::from_secs(40), |_| true);
    assert_eq!(town.standing(1), Standing::Voting);
    let (number, members) = town.view(1);
    assert_eq!((number, members), (5, vec![0, 1, 2]));
}

#[test]
fn an_operator_can_go_on_without_a_majority_after_a_lease() {
    let mut town = Town::of(3, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    town.stop(1);
    town.stop(2);
    town.ask(BOB);
    let forget = |town: &mut Town, gone: &[u64], unverified| {
        let gone = gone.iter().copied().map(PeerId).collect();
        town.give(
            0,
            Input::Request {
                id: CallId(9),
                request: MemberRequest::Forget { gone, unverified }.into(),
            },
        );
        town.pass(Span::from_secs(1), |_| true);
        town.places.get_mut(&0).unwrap().answered.pop()
    };
    let refused = |why: ForgetRefusal| Some(MemberReply::Refused(why));
    assert_eq!(forget(&mut town, &[1, 2, 7], true), refused(ForgetRefusal::NotAMember(PeerId(7))));
    assert_eq!(forget(&mut town, &[0], true), refused(ForgetRefusal::Itself));
    assert_eq!(forget(&mut town, &[1, 2], false), refused(ForgetRefusal::Unverified));
    assert_eq!(forget(&mut town, &[1], false), refused(ForgetRefusal::Silent(PeerId(2))));
    assert_eq!(forget(&mut town, &[1, 2], true), Some(MemberReply::Done));
    town.pass(Span::from_secs(14), |_| true);
    assert!(!town.is_inside(BOB));
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.view(0).1, [0]);
    assert!(town.is_inside(ALICE) != town.is_inside(BOB), "one of them is inside");
}

#[test]
fn survivors_too_few_to_vote_anybody_out_do_not_stand_in_an_operators_way() {
    for phase in 0..8 {
        let mut town = Town::of(5, None);
        for dead in 2..5 {
            town.stop(dead);
        }
        // Long enough for both to wish the dead out, again and again.
        town.pass(Span::from_secs(35) + STEP * 7 * phase, |_| true);
        let gone = [2, 3, 4].map(PeerId).into();
        let request = MemberRequest::Forget { gone, unverified: true }.into();
        town.give(0, Input::Request { id: CallId(9), request });
        town.pass(Span::from_secs(1), |_| true);
        let told = town.places[&0].answered.last();
        assert_eq!(told, Some(&MemberReply::Done), "phase {phase}");
        assert_eq!(town.view(1).1, [0, 1]);
    }
}

#[test]
fn a_newcomer_that_is_answered_after_it_has_begun_to_vote_does_not_vote_twice() {
    let mut town = Town::of(2, None);
    town.ask(ALICE);
    town.pass(Span::from_secs(1), |_| true);
    // Nobody answers the newcomer for a lease, and Alice does not reach it.
    let unheard = |packet: &Packet| {
        let fetch = sigmalock_core::Message::kind(&packet.message) == "FETCH";
        fetch || (packet.from, packet.to) == (ALICE, 2)
    };
    town.start(2, Birth::First);
    town.pass(Span::from_secs(5), |packet| !unheard(packet));
    assert!(matches!(town.standing(2), Standing::Learning { .. }));
    town.ask(BOB);
    town.pass(Span::from_secs(15), |packet| !unheard(packet));
    assert_eq!(town.standing(2), Standing::Voting);
    let owners = |town: &Town| {
        let replicas = town.places[&2].agreed.replicas(town.now, &name());
        let owners = replicas.iter().flat_map(|replica| &replica.owners);
        owners.map(|owner| owner.request.client.0).collect::<Vec<_>>()
    };
    assert_eq!(owners(&town), [BOB]);
    town.pass(Span::from_secs(2), |packet| (packet.from, packet.to) != (ALICE, 2));
    assert_eq!(owners(&town), [BOB]);
    assert!(town.is_inside(ALICE) && !town.is_inside(BOB));
}

/// It was added in a view of which it hears nothing before the next one: it is nobody's newcomer, and what the members of
/// the view before promised says little.
#[test]
fn who_hears_late_that_it_is_in_waits_for_a_lease() {
    let mut town = Town::of(3, None);
    let newer = |message: &Message| match message {
        Message::Views(views::Message::Learn(roster)) => roster.number() > 3,
        _ => false,
    };
    let late = |packet: &Packet| packet.to == 3 && newer(&packet.message);
    for peer in [3, 4] {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(17), |packet| !late(packet));
    }
    assert_eq!((town.view(4), town.view(3).0), ((5, vec![0, 1, 2, 3, 4]), 3));
    town.packets.retain(|packet| !late(packet));
    town.pass(Span::from_secs(10), |_| true);
    assert!(matches!(town.standing(3), Standing::Learning { .. }));
    town.pass(Span::from_secs(6), |_| true);
    assert_eq!((town.view(3).0, town.standing(3)), (5, Standing::Voting));
}

/// What nobody can notice in time: it knows of nobody whom it could ask.
#[test]
fn a_founders_disk_of_when_it_was_alone_lets_its_own_users_in_until_it_meets_somebody() {
    let mut town = Town::of(1, None);
    let (backup, written) = (town.places[&0].disk.clone(), town.written[&0]);
    (1..3).for_each(|peer| town.start(peer, Birth::First));
    town.pass(Span::from_secs(20), |_| true);
    assert_eq!(town.view(0).1, [0, 1, 2]);
    drop(town.stop(0));
    town.written.insert(0, written);
    town.start(0, Birth::Recovered(backup.into_iter().collect()));
    town.ask(0);
    town.pass(STEP * 2, |packet| (packet.from, packet.to) == (0, 0));
    assert!(town.is_inside(0));
    town.pass(Span::from_secs(1), |_| true);
    assert_eq!((town.view(0).0, town.standing(0)), (3, Standing::OldDisk));
}

#[test]
fn a_swarm_of_another_origin_is_left_alone() {
    let mut town = Town::of(2, None);
    // Somebody else has founded a swarm, too: its view is newer by number.
    let mut other = Roster::founded_by(PeerId(8), Badge(8), 99);
    for peer in 20..26 {
        other = other.after(Change::Add(PeerId(peer), Badge(peer))).unwrap();
    }
    let message = Message::Views(views::Message::Learn(Box::new(other)));
    town.give(0, Input::Receive { from: PeerId(8), message });
    assert_eq!(town.view(0), (2, vec![0, 1]));
    assert_eq!(town.places[&0].agreed.view(town.now).unwrap().strangers, [PeerId(8)]);
}

/// Bob is told of no newer view, and asks three who have taken in two more since. Then he learns the view between.
fn what_was_said_two_views_on_is_heard_in_the_next(broken: Option<Mutant>) -> Town {
    let mut town = Town::of(3, broken);
    let to_bob = |packet: &Packet| packet.to == BOB;
    for peer in [3, 4] {
        town.start(peer, Birth::First);
        town.pass(Span::from_secs(3), |packet| !to_bob(packet));
    }
    assert_eq!((town.view(0).0, town.view(BOB).0), (5, 3));
    let next = |packet: &Packet| match &packet.message {
        Message::Views(views::Message::Learn(roster)) => to_bob(packet) && roster.number() == 4,
        _ => false,
    };
    let learn = town.packets.iter().position(next).unwrap();
    let learn = town.packets.swap_remove(learn);
    town.packets.clear();
    town.ask(BOB);
    town.pass(STEP, |_| true);
    town.pass(STEP, |packet| packet.message.kind() == "RESPONSE");
    town.packets = vec![learn];
    town.pass(STEP, |_| true);
    assert_eq!(town.view(BOB).0, 4);
    town
}

#[test]
fn what_is_promised_in_a_view_counts_in_no_earlier_one() {
    assert!(!what_was_said_two_views_on_is_heard_in_the_next(None).is_inside(BOB));
    let broken = Mutant::HearsWhatCameEarly;
    let town = what_was_said_two_views_on_is_heard_in_the_next(Some(broken));
    assert!(town.is_inside(BOB), "{broken} is not caught");
}
