//! Locks among peers that agree on who is in.
//!
//! Two protocols in one: [`crate::views`] agrees on a numbered membership, and [`crate::sigma`] has its
//! members vote on names. This layer is what lies between them: which view a promise was made in, and from
//! when on a peer may make any.
//!
//! ```text
//!            ┌──────────── agreed ────────────┐
//!   users ──►│ locks (Sigma) ◄── view ── views │◄──► other peers: every message of locks
//!            └─────────────────────────────────┘     says which view its sender is in
//! ```
//!
//! # The rules
//!
//! 1. *A promise counts between peers of the same view only.* What a host says in another view than the
//!    client's is not heard; it is kept for a moment if it comes from a later one. With the next view a client
//!    counts anew. Only a guard it has got stands until its deadline.
//! 2. *Views are at least a lease apart*, as every member counts it from when it learned the view itself; or
//!    the newcomer has found out which votes are out (4). So of the votes that count in a view, none are left
//!    when the next but one begins.
//! 3. *Who lost its data is out* until views have removed it and added it again.
//! 4. *Whoever is new asks the others first* (Sigma's `joining`), once they are in the new view, and gives its vote to whoever may
//!    have won without it. If they do not answer, it waits for a lease before it votes. So does who came back,
//!    and everybody in a view that an operator made, and the one with whom a view becomes large.
//!
//! By 2 and 4, two who are inside were let in by the same view or by neighbours, whose quorums have a voter in
//! common (`views/seating`); and by 1 that voter has been in all the while, and knows whom it voted for.
//! Where only some members vote on a name, a quorum of them may be cut off together and never learn of later
//! views; so there a guard lasts no longer than more than half of all members are known to accept no view but
//! the next ([`Views::counts_until`]).
//!
//! Tokens survive because whoever votes in a new view goes by its wall clock until it knows better, as
//! hosts without memory do, and newcomers are told what the others know.
//!
//! # What it guarantees
//!
//! - At most one request holds an unexpired guard for a name, whatever crashes, pauses and partitions
//!   there are, as long as clock rates differ by less than the margin. Unless an operator says that somebody is gone
//!   who is not.
//! - While more than half of a view are up, hear each other and remember what they promised, whoever waits
//!   gets in.
//!
//! # Where to read on
//!
//! `whereabouts` is which view others are at, `around` what locks see of a view, `relay` how both protocols are
//! spoken to.

mod around;
mod config;
mod inspect;
mod message;
mod mutant;
mod relay;
mod whereabouts;

use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, LockReply, LockRequest, Part,
    PeerId, Protocol, View,
};

pub use self::config::{Beginning, Config};
pub use self::message::Message;
pub use self::mutant::Mutant;
use self::whereabouts::Whereabouts;
use crate::parts::quorum::VOTERS_MAX;
use crate::sigma::{self, Sigma};
use crate::views::{self, Change, Standing, Views};

/// One peer's share of both.
#[derive(Clone)]
pub struct Agreed {
    me: PeerId,
    config: Config,
    views: Views,
    locks: Sigma,
    /// The view that locks go by.
    view: u64,
    /// The view in which this peer came to be a member, as of the last view it knew; 0 if it was none.
    since: u64,
    /// From then on it may vote, as a member since then.
    votes_from: LocalTime,
    /// Whether that is on disk.
    votes: bool,
    /// Whether somebody has vouched for what is on its disk, and for its being the only one of its name; and nobody whom
    /// it reaches is in another view of the same number.
    vouched_for: bool,
    /// Who else is at which view.
    others: Whereabouts,
    /// Kept for their memory.
    from_views: Vec<Effect<Views>>,
    from_locks: Vec<Effect<Sigma>>,
}

/// What timers are for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A timer of views.
    Views(views::Timer),
    /// A timer of locks.
    Locks(sigma::Timer),
    /// This peer may vote.
    Votes,
}

/// Where things are kept that must survive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DurableKey {
    /// What views keep.
    View(views::Record),
    /// As a member since which view this peer votes.
    Votes,
    /// What locks keep.
    Locks(sigma::DurableKey),
}

/// What is kept there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durable {
    /// Under [`DurableKey::View`].
    View(views::Saved),
    /// Under [`DurableKey::Votes`].
    Votes(u64),
    /// Under [`DurableKey::Locks`].
    Locks(sigma::Durable),
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// A note of views.
    Views(views::Note),
    /// A note of locks.
    Locks(sigma::Note),
    /// A promise was made in another view, and not heard.
    OtherView,
    /// This peer begins to vote.
    Votes,
    /// A record on disk that makes no sense.
    Malformed,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Views(note) => note.fmt(f),
            Self::Locks(note) => note.fmt(f),
            Self::OtherView => f.write_str("a promise of another view not heard"),
            Self::Votes => f.write_str("a member begins to vote"),
            Self::Malformed => f.write_str("malformed record"),
        }
    }
}

type Cx<'a, 'b> = &'a mut Context<'b, Agreed>;

impl Agreed {
    /// A peer that has not started yet.
    #[must_use]
    pub fn new(me: PeerId, config: Config) -> Self {
        Self {
            me,
            views: Views::new(me, config.views.clone()),
            locks: Sigma::new(me, config.locks.clone()),
            config,
            view: 0,
            since: 0,
            votes_from: LocalTime::MIN,
            votes: false,
            vouched_for: false,
            others: Whereabouts::default(),
            from_views: Vec::new(),
            from_locks: Vec::new(),
        }
    }

    /// Its share of the agreement on who is in.
    #[must_use]
    pub const fn views(&self) -> &Views {
        &self.views
    }

    /// How many replicas this peer remembers as a host.
    #[must_use]
    pub fn hosted(&self) -> usize {
        self.locks.hosted()
    }

    /// Whether a peer that leaves may go: the others know that it is out, or there are none.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.views.standing() != Standing::Member || self.views.is_alone()
    }

    fn on_start(&mut self, cx: Cx<'_, '_>, incarnation: Incarnation, birth: Birth<Self>) {
        let (views, locks) = match birth {
            Birth::First => (Birth::First, Birth::First),
            Birth::Amnesiac => (Birth::Amnesiac, Birth::Amnesiac),
            Birth::Recovered(records) => {
                let (mut views, mut locks) = (Vec::new(), Vec::new());
                for record in records {
                    match record {
                        (DurableKey::View(key), Durable::View(saved)) => views.push((key, saved)),
                        (DurableKey::Locks(key), Durable::Locks(saved)) => locks.push((key, saved)),
                        (DurableKey::Votes, Durable::Votes(since)) => {
                            (self.since, self.votes) = (since, true);
                        }
                        _ => cx.note(Note::Malformed),
                    }
                }
                (Birth::Recovered(views), Birth::Recovered(locks))
            }
        };
        self.pass_locks(cx, Input::Start { incarnation, birth: locks });
        self.pass_views(cx, Input::Start { incarnation, birth: views });
        match self.config.beginning {
            Beginning::Found => self.ask_views(cx, views::Request::Found),
            Beginning::Expect(hosts) => self.ask_views(cx, views::Request::Expect { hosts }),
            Beginning::Join => {}
            Beginning::Watch => return,
        }
        self.ask_views(cx, views::Request::Join);
    }

    fn on_message(&mut self, cx: Cx<'_, '_>, from: PeerId, message: Message) {
        match message {
            Message::Views(message) => {
                let known = match message {
                    views::Message::Known { view, .. } => Some(view),
                    _ => None,
                };
                self.pass_views(cx, Input::Receive { from, message });
                if let Some(view) = known {
                    self.others.note(from, view);
                    self.ask_again(cx, from, view);
                }
            }
            Message::Locks { view, message } => {
                if from != self.me && self.others.differs(from, view, self.view) {
                    let message = views::Message::Known {
                        view,
                        settled: false,
                        sent: LocalTime::MIN,
                        writes: None,
                    };
                    self.pass_views(cx, Input::Receive { from, message });
                }
                self.ask_again(cx, from, view);
                self.on_locks(cx, from, view, message);
            }
        }
    }

    /// Rule 1.
    fn on_locks(&mut self, cx: Cx<'_, '_>, from: PeerId, view: u64, message: sigma::Message) {
        let votes = matches!(message, sigma::Message::Votes(_));
        let later = view > self.view;
        let heard = view == self.view
            || !message.is_promise()
            || (later && self.config.breaks(Mutant::CountsLaterViews))
            || (message.renews() && self.config.breaks(Mutant::HearsAnyRenewal))
            || (!later && votes && self.config.breaks(Mutant::HearsVotesOfBefore));
        if heard {
            return self.pass_locks(cx, Input::Receive { from, message });
        }
        cx.note(Note::OtherView);
        if later {
            self.others.keep(from, view, message);
        } else {
            self.others.miss(from, self.view);
        }
    }

    /// Somebody who was behind may be so no more: what it said then may be asked again.
    fn ask_again(&mut self, cx: Cx<'_, '_>, from: PeerId, view: u64) {
        if view == self.view && self.others.catches_up(from) {
            self.pass_locks(cx, Input::PeerUp(from));
        }
    }

    /// What views have come to matters to locks: first whether this peer is in, then whether it may vote.
    fn follow(&mut self, cx: Cx<'_, '_>) {
        let late = self.config.breaks(Mutant::VotesBeforeItFollows);
        if !late {
            self.follow_view(cx);
        }
        let unrivalled = !self.views.is_astray() && !self.views.has_rivals();
        let vouched_for = self.views.is_vouched_for() && unrivalled;
        let was = core::mem::replace(&mut self.vouched_for, vouched_for);
        if vouched_for && !was {
            self.pass_locks(cx, Input::Fire(sigma::Timer::Join));
        }
        if late {
            self.follow_view(cx);
        }
    }

    /// If views have come to a new one, so do locks.
    fn follow_view(&mut self, cx: Cx<'_, '_>) {
        let Some(roster) = self.views.roster() else { return };
        let member = self.views.standing() == Standing::Member;
        let since = roster.since(self.me).filter(|_| member).unwrap_or_default();
        if (roster.number(), since) == (self.view, self.since) {
            return;
        }
        let (number, last) = (roster.number(), roster.last());
        let newcomer = roster.is_newcomer(self.me);
        let members: Vec<PeerId> = roster.members().collect();
        // With the tenth, quorums grow by more than its vote: it had better wait.
        let grows_large =
            members.len() == VOTERS_MAX + 1 && !self.config.breaks(Mutant::HurriesTheTenth);
        let part = match since {
            0 => Part::Outside,
            since if since == self.since || number == 1 => Part::Stays,
            _ if newcomer && !grows_large => Part::Newcomer,
            _ => Part::Returned,
        };
        let trusting =
            self.view == 0 && self.votes && self.config.breaks(Mutant::VotesAsItsDiskSays);
        self.view = number;
        let forced = last == Change::Forget && since != 0 && !trusting;
        if since != self.since {
            self.since = since;
            self.begin(cx, number > 1 || self.may_have_been_another(members.len()));
        } else if forced && !self.config.breaks(Mutant::ForgetsAtOnce) {
            self.begin(cx, true);
        }
        self.pass_locks(cx, Input::ViewChanged(View { number, members: members.into(), part }));
        for (from, view, message) in self.others.move_on() {
            self.on_locks(cx, from, view, message);
        }
    }

    /// Whether the hosts that have made a swarm may have been one a moment ago: those that keep nothing on disk do not
    /// know. Who makes one alone says that there is none.
    fn may_have_been_another(&self, founders: usize) -> bool {
        let blank = founders > 1 && !self.config.locks.durable;
        blank && !self.config.breaks(Mutant::VotesAtOnceWithoutDisks)
    }

    /// This peer is a member since another view, or of a view that nobody was asked about: votes are out
    /// that it does not know of, for a lease from now.
    fn begin(&mut self, cx: Cx<'_, '_>, waits: bool) {
        self.votes_from = LocalTime::MIN;
        if core::mem::take(&mut self.votes) && !self.config.breaks(Mutant::VotesAsItsDiskSays) {
            cx.persist(DurableKey::Votes, None);
        }
        if self.since != 0 && waits {
            self.votes_from = cx.now() + self.config.views.view_min();
            cx.set_timer(Timer::Votes, self.votes_from);
        } else if self.since != 0 {
            self.vote(cx);
        }
    }

    /// From here on this peer votes, and its disk knows.
    fn vote(&mut self, cx: Cx<'_, '_>) {
        (self.votes_from, self.votes) = (LocalTime::MIN, true);
        cx.cancel_timer(Timer::Votes);
        cx.persist(DurableKey::Votes, Some(Durable::Votes(self.since)));
        cx.note(Note::Votes);
    }

    /// Whether the newcomer has just found out which votes are out.
    fn settles(&self) -> bool {
        self.since != 0 && !self.votes && self.locks.settled() == self.view
    }

    /// It votes from now on.
    fn on_settled(&mut self, cx: Cx<'_, '_>) {
        if !self.votes {
            self.vote(cx);
        }
        self.ask_views(cx, views::Request::Settled { view: self.view });
        self.pass_locks(cx, Input::Fire(sigma::Timer::Join));
    }

    fn on_request(&mut self, cx: Cx<'_, '_>, id: CallId, request: LockRequest) {
        match request {
            LockRequest::Forget { gone, unverified } => {
                let request = views::Request::Forget { gone, unverified };
                self.pass_views(cx, Input::Request { id, request });
            }
            LockRequest::Disown => {
                self.pass_views(cx, Input::Request { id, request: views::Request::Disown });
            }
            request => self.pass_locks(cx, Input::Request { id, request }),
        }
    }
}

impl Protocol for Agreed {
    type Message = Message;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer;
    type DurableKey = DurableKey;
    type Durable = Durable;
    type Note = Note;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { incarnation, birth } => self.on_start(cx, incarnation, birth),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::Fire(Timer::Views(timer)) => self.pass_views(cx, Input::Fire(timer)),
            Input::Fire(Timer::Locks(timer)) => self.pass_locks(cx, Input::Fire(timer)),
            Input::Fire(Timer::Votes) => {
                if self.since != 0 && !self.votes && self.votes_from <= cx.now() {
                    self.vote(cx);
                    self.pass_locks(cx, Input::Fire(sigma::Timer::Join));
                }
            }
            Input::Request { id, request } => self.on_request(cx, id, request),
            Input::PeerUp(peer) => {
                self.pass_views(cx, Input::PeerUp(peer));
                self.pass_locks(cx, Input::PeerUp(peer));
            }
            Input::PeerDown(peer) => {
                self.others.forget(peer);
                self.pass_views(cx, Input::PeerDown(peer));
                self.pass_locks(cx, Input::PeerDown(peer));
            }
            Input::Leave => self.pass_views(cx, Input::Leave),
            Input::ViewChanged(_) => {}
        }
    }
}

impl fmt::Debug for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreed").field("views", &self.views).field("locks", &self.locks).finish()
    }
}
