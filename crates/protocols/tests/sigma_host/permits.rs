//! Permits at a host: which of them have the vote together, who waits for whom, and who is told that others
//! mean another number.

use sigmalock_core::{
    Acquire, CallId, Echo, Effect, Incarnation, Input, Inspect, LockReply, LockRequest, Mode, Name,
    Patience, PeerId, Refusal, ReplicaId, RequestId, Span, Token,
};
use sigmalock_protocols::parts::Hlc;
use sigmalock_protocols::sigma::message::{
    Answer, Ask, Message, OtherNumber, Response, Spent, Ticket,
};
use sigmalock_protocols::sigma::{Note, Sigma};

use super::{Peer, answer, ask, only, reborn_after, replica, ticket, used, vote};

const ALONE: Mode = Mode::Exclusive;
const READ: Mode = Mode::Shared;

/// A slot of three permits, or of two.
const fn of_3(index: u16) -> Mode {
    Mode::Slot { of: 3, index }
}
const fn of_2(index: u16) -> Mode {
    Mode::Slot { of: 2, index }
}

/// The request of a client; lower numbers asked earlier.
fn ask_as(client: u64, mode: Mode) -> Ask {
    Ask { ticket: Ticket { mode, ..ticket(client) }, ..ask(client) }
}

impl Peer {
    /// What a client is answered, and who is recalled for it.
    fn asked(&mut self, ask: Ask) -> (Answer, Vec<u64>) {
        let mut sent = self.hear(ask.ticket.request.client, Message::Request(ask));
        let (_, response) = sent.pop().expect("an answer");
        let recall = |(to, message): (PeerId, Message)| match message {
            Message::Recall { .. } => to.0,
            other => panic!("not a recall: {other:?}"),
        };
        (answer(response), sent.into_iter().map(recall).collect())
    }

    /// Whether a client gets the vote.
    fn gives(&mut self, client: u64, mode: Mode) -> bool {
        matches!(self.asked(ask_as(client, mode)).0, Answer::Yours { .. })
    }

    /// Who gets the vote when a client leaves.
    fn gives_after(&mut self, client: u64, mode: Mode) -> Vec<u64> {
        self.freed(client, mode, Spent::Nothing)
    }

    fn freed(&mut self, client: u64, mode: Mode, spent: Spent) -> Vec<u64> {
        let Ask { replica, ticket, .. } = ask_as(client, mode);
        let sent = self.hear(PeerId(client), Message::Release { replica, ticket, spent });
        sent.into_iter().map(|(to, _)| to.0).collect()
    }

    /// Of which other number a client that waits is told, and whether that one was first.
    fn tells(&mut self, client: u64, mode: Mode) -> Option<(u16, bool)> {
        match self.asked(ask_as(client, mode)).0 {
            Answer::Queued { other, .. } => other.map(|other| (other.of, other.before_you)),
            other => panic!("not queued: {other:?}"),
        }
    }

    /// The token that a client is proposed.
    fn proposes(&mut self, client: u64, mode: Mode) -> Token {
        vote(&self.asked(ask_as(client, mode)).0).1
    }
}

#[test]
fn slots_have_the_vote_together_and_each_of_them_once() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, of_3(0)) && host.gives(11, of_3(1)) && host.gives(12, of_3(2)));
    let (told, _) = host.asked(ask_as(13, of_3(1)));
    let Answer::Queued { owner: Some(owner), ahead: 1, .. } = told else {
        panic!("those of other slots are ahead: {told:?}");
    };
    assert_eq!(owner.request.client, PeerId(11), "who has the slot, not who asked first");
    assert_eq!(host.gives_after(10, of_3(0)), []);
    assert_eq!(host.gives_after(11, of_3(1)), [13]);
}

#[test]
fn a_slot_that_is_free_is_not_kept_by_those_who_wait_for_another() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, of_3(0)) && !host.gives(11, of_3(0)) && !host.gives(12, of_3(0)));
    assert!(host.gives(13, of_3(1)));
    assert!(!host.gives(14, of_3(1)) && host.gives(15, of_3(2)));
    assert_eq!(host.gives_after(13, of_3(1)), [14], "whoever is first of those");
}

#[test]
fn writers_readers_and_permits_wait_for_each_other_in_the_order_of_asking() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, READ));
    assert!(!host.gives(11, of_2(0)) && !host.gives(12, of_2(1)) && !host.gives(13, ALONE));
    assert!(!host.gives(14, of_2(0)) && !host.gives(15, READ), "nobody joins behind others");
    assert_eq!(host.gives_after(10, READ), [11, 12], "both permits");
    assert_eq!(host.gives_after(11, of_2(0)), [], "the writer is before the next permit");
    assert_eq!(host.gives_after(12, of_2(1)), [13]);
    assert_eq!(host.gives_after(13, ALONE), [14]);
    assert_eq!(host.gives_after(14, of_2(0)), [15]);
}

#[test]
fn younger_permits_are_recalled_for_an_older_writer_or_for_the_same_slot() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(20, of_2(0)) && host.gives(21, of_2(1)));
    assert_eq!(host.asked(ask_as(11, of_2(1))).1, [21]);
    assert_eq!(host.asked(ask_as(10, ALONE)).1, [20], "the other has been asked");
}

#[test]
fn who_means_another_number_than_those_who_have_the_vote_or_were_first_is_told_theirs() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, of_3(0)));
    assert_eq!(host.tells(11, of_2(1)), Some((3, true)));
    assert_eq!((host.tells(12, ALONE), host.tells(13, READ)), (None, None), "they mean none");
    assert_eq!(host.tells(9, of_2(1)), Some((3, false)), "the vote is out, whoever was first");
    for (client, mode) in [(11, of_2(1)), (9, of_2(1)), (10, of_3(0))] {
        host.gives_after(client, mode);
    }
    assert_eq!(host.tells(21, of_2(0)), None, "nobody else wants permits");
    assert_eq!(host.tells(22, of_2(0)), None);
    assert_eq!(host.tells(23, of_3(1)), Some((2, true)));
    assert_eq!(host.tells(20, of_3(1)), None, "it was first");
    assert_eq!(host.tells(21, of_2(0)), Some((3, true)), "so these are told when they ask again");
}

#[test]
fn who_means_another_number_is_passed_by_nobody_until_it_is_gone() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, READ));
    for (client, mode) in [(11, of_3(1)), (12, of_2(0)), (13, of_3(2))] {
        assert!(!host.gives(client, mode));
    }
    assert_eq!(host.gives_after(10, READ), [11]);
    assert_eq!(host.gives_after(12, of_2(0)), [13], "it was told, and does not wait any more");
}

#[test]
fn who_is_inside_and_asks_for_more_votes_goes_before_all_others_and_others_slots_beside_it() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, of_3(0)) && !host.gives(11, ALONE));
    let inside = Ask { inside: true, ..ask_as(12, of_3(1)) };
    assert!(matches!(host.asked(inside).0, Answer::Yours { .. }));
}

#[test]
fn tokens_of_permits_grow_with_each_that_has_left_and_lie_between_those_of_others() {
    let mut host = Peer::new(|_| {});
    let written = host.proposes(10, ALONE);
    host.freed(10, ALONE, used(written));
    let first = host.proposes(11, of_2(0));
    assert_eq!(first, written.next());
    assert_eq!(host.proposes(12, of_2(1)), first, "another slot may show the same");
    host.freed(11, of_2(0), used(first));
    assert_eq!(host.proposes(13, of_2(0)), first.next());
    host.freed(12, of_2(1), used(first));
    host.freed(13, of_2(0), used(first.next()));
    let read = host.proposes(14, READ);
    assert_eq!(read, first.plus(2), "a reader's is above those of all permits");
    host.freed(14, READ, used(read));
    assert_eq!(
        host.proposes(15, of_2(1)),
        read.next(),
        "and a permit's above those of all readers"
    );
}

#[test]
fn a_host_without_memory_goes_by_its_own_proposals_not_by_the_tokens_of_other_slots() {
    let mut host = Peer::new(|_| {});
    let wall = host.proposes(10, of_2(0));
    host.gives_after(10, of_2(0));
    // Slot 1 may have been out with a higher token since before this host forgot the name.
    let low = Token(wall.0 / 2);
    host.freed(11, of_2(0), used(low));
    assert_eq!(host.proposes(12, of_2(1)), wall);
    host.freed(12, of_2(1), used(wall));
    assert_eq!(host.proposes(13, of_2(0)), wall.next(), "from here on it knows");
}

#[test]
fn what_a_permit_has_written_down_counts_at_once() {
    let mut host = Peer::new(|_| {});
    let ask = ask_as(10, of_2(0));
    let (grant, wall, _) = vote(&host.asked(ask.clone()).0);
    host.hear(PeerId(10), Message::Seal(ask, grant, wall.plus(3)));
    assert_eq!(host.proposes(11, of_2(1)), wall.plus(4), "before anybody has left");
}

#[test]
fn permits_survive_a_restart_with_the_disk() {
    let mut reborn = reborn_after([ask_as(10, of_3(0)), ask_as(11, of_3(1))]);
    assert!(!reborn.gives(20, ALONE) && !reborn.gives(21, READ));
    assert_eq!(reborn.tells(22, of_2(1)), Some((3, true)));
    assert!(reborn.gives(10, of_3(0)) && reborn.gives(12, of_3(2)));
    let report = only(reborn.sigma.replicas(reborn.now, &replica().name));
    let modes: Vec<Mode> = report.owners.iter().map(|owner| owner.mode).collect();
    assert_eq!(modes, [of_3(0), of_3(1), of_3(2)]);
}

#[test]
fn people_are_shown_everybody_who_waits_once_however_many_slots_it_waits_for() {
    let mut host = Peer::new(|_| {});
    assert!(host.gives(10, ALONE));
    for (client, mode) in [(11, of_2(0)), (12, of_2(1)), (13, READ), (14, of_2(1))] {
        assert!(!host.gives(client, mode));
    }
    let report = only(host.sigma.replicas(host.now, &replica().name));
    let waiters: Vec<u64> = report.waiters.iter().map(|request| request.client.0).collect();
    assert_eq!((waiters, report.waiting), (vec![12, 13, 14], 3), "the longest line of a slot");
}

/// A client that asks for one of three permits, and is answered by three hosts.
struct Asker {
    peer: Peer,
    ticket: Ticket,
}

impl Asker {
    fn new(patience: Patience) -> Self {
        let mut peer = Peer::new(|_| {});
        let (name, mode) = (Name::new("/a").unwrap(), Mode::Slot { of: 3, index: 1 });
        let wish = Acquire { mode, ..Acquire::exclusive(name, Span::from_secs(10), patience) };
        let request = LockRequest::Acquire(wish);
        let effects = peer.give(Input::Request { id: CallId(1), request });
        let ticket = effects.into_iter().find_map(|effect| match effect {
            Effect::Send { message: Message::Request(ask), .. } => Some(ask.ticket),
            _ => None,
        });
        Self { peer, ticket: ticket.unwrap() }
    }

    /// A host says that somebody is before it, who means another number or does not.
    fn hears(&mut self, host: u64, other: Option<OtherNumber>) -> Option<LockReply> {
        let Self { peer, ticket } = self;
        let owner = Some(Ticket {
            order: Hlc::from_raw(1),
            request: RequestId { client: PeerId(9), incarnation: Incarnation(1), call: CallId(1) },
            mode: Mode::Slot { of: 2, index: 1 },
        });
        let (turn, wait) = (Span::from_secs(1), Span::from_secs(1));
        let response = Response {
            replica: ReplicaId { index: host as u16 - 1, ..replica() },
            ticket: *ticket,
            life: Incarnation(host),
            sequence: 1,
            echo: Echo { sent: peer.now, heard: peer.now.stamp() },
            clock: Hlc::from_raw(1),
            answer: Answer::Queued { owner, ahead: 1, turn, wait, other },
        };
        let message = Message::Response(response);
        let effects = peer.give(Input::Receive { from: PeerId(host), message });
        assert!(
            !effects.iter().any(|effect| matches!(effect, Effect::<Sigma>::Note(Note::Malformed)))
        );
        effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { reply, .. } if !matches!(reply, LockReply::Queued { .. }) => {
                Some(reply)
            }
            _ => None,
        })
    }
}

#[test]
fn a_client_is_refused_for_its_number_when_too_many_hosts_say_so_for_it_to_win() {
    let other = |before_you| Some(OtherNumber { of: 2, before_you });
    let refused = Some(LockReply::Refused(Refusal::OtherPermits { of: 2 }));
    let mut asker = Asker::new(Patience::Forever);
    assert_eq!(asker.hears(1, other(true)), None, "that host may remember somebody who is gone");
    assert_eq!(asker.hears(2, None), None);
    assert_eq!(asker.hears(3, other(true)), refused);
    let mut asker = Asker::new(Patience::Try);
    assert_eq!(asker.hears(1, other(true)), None);
    assert_eq!(asker.hears(2, other(true)), refused, "not merely busy");
    let mut asker = Asker::new(Patience::Forever);
    assert_eq!(asker.hears(1, other(false)), None);
    assert_eq!(asker.hears(2, other(false)), refused, "who asked later may be inside");
    assert_eq!(asker.peer.sigma.local(asker.peer.now, &replica().name).waiting, 0);
}
