//! Locks, or whatever else members do together, among peers that agree on who is in.
//!
//! Two protocols in one: [`crate::views`] agrees on a numbered membership, and another one, such as
//! [`crate::sigma`], has its members make promises, such as votes on names. This layer is what lies between
//! them: which view a promise was made in, and from when on a peer may make any. It works over any protocol that
//! can say which of its messages are promises ([`OverViews`]).
//!
//! ```text
//!            ┌────────────── agreed ─────────────┐
//!   users ──►│ inside (Sigma …) ◄── view ── views │◄──► other peers: every message of the protocol
//!            └────────────────────────────────────┘     inside says which view its sender is in
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
//! 4. *Whoever is new asks the others first* (Sigma's `state_transfer`), once they are in the new view, and gives its vote to whoever may
//!    have won without it. If they do not answer, it waits for a lease before it votes. So does who came back,
//!    and everybody in a view that an operator made, and the one with whom a view becomes large.
//!
//! By 2 and 4, two who are inside were let in by the same view or by neighbours, whose quorums have a voter in
//! common ([`crate::parts::hosting::ByView`]); and by 1 that voter has been in all the while, and knows whom it voted for.
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
//! `over` is what the protocol inside has to be, `whereabouts` which view others are at, `relay` how both
//! protocols are spoken to.

mod config;
mod inspect;
mod message;
mod mutant;
mod over;
mod relay;
mod request;
mod whereabouts;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, MemberRequest, Message as _,
    Part, PeerId, Protocol, View,
};

pub use self::config::{Beginning, Config};
pub use self::message::Message;
pub use self::mutant::Mutant;
pub use self::over::OverViews;
pub use self::request::{Reply, Request};
use self::whereabouts::Whereabouts;
use crate::catalogue::{Card, Family, Membership, Promises, Variant};
use crate::parts::hosting::Terms;
use crate::parts::quorum::VOTERS_MAX;
use crate::parts::{Driven, GoesBy, Rules, Sound};
use crate::views::{self, Change, Roster, Standing, Views};

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "agreed",
    about: "a protocol run by the members of a view",
    source: "our own",
    family: Family::Layer,
    memberships: &[Membership::Agreed],
    variants: &[Variant::Shipped],
    promises: Promises::EXCLUSION,
    answers: &[],
    mutants: Mutant::CARDS,
};

/// One peer's share of both.
#[derive(Clone)]
pub struct Agreed<P: OverViews, R: Rules = Sound> {
    me: PeerId,
    config: Config<R>,
    views: Views<R>,
    inside: P,
    /// The view that the protocol inside goes by.
    view: u64,
    /// The view in which this peer came to be a member, as of the last view it knew; 0 if it was none.
    since: u64,
    /// From then on it may vote, as a member since then.
    promises_from: LocalTime,
    /// Whether that is on disk.
    votes: bool,
    /// Whether somebody has vouched for what is on its disk, and for its being the only one of its name; and nobody whom
    /// it reaches is in another view of the same number.
    vouched_for: bool,
    /// Until when it is certain that promises counted now are not passed over by a later view.
    counts_until: LocalTime,
    /// In which view that was found out, and whether this peer's word counted.
    counted_in: (u64, bool),
    /// Who else is at which view.
    others: Whereabouts<P::Message>,
    /// Kept for their memory.
    from_views: Vec<Effect<Views<R>>>,
    from_inside: Vec<Effect<P>>,
}

/// What timers are for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer<T> {
    /// A timer of views.
    Views(views::Timer),
    /// A timer of the protocol inside.
    Inside(T),
    /// This peer may vote.
    Votes,
}

/// Where things are kept that must survive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DurableKey<K> {
    /// What views keep.
    View(views::Record),
    /// As a member since which view this peer votes.
    Votes,
    /// What the protocol inside keeps.
    Inside(K),
}

/// What is kept there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durable<D> {
    /// Under [`DurableKey::View`].
    View(Box<views::Saved>),
    /// Under [`DurableKey::Votes`].
    Votes(u64),
    /// Under [`DurableKey::Inside`].
    Inside(D),
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note<N> {
    /// A note of views.
    Views(views::Note),
    /// A note of the protocol inside.
    Inside(N),
    /// A promise was made in another view, and not heard.
    OtherView,
    /// This peer begins to vote.
    Votes,
    /// A record on disk that makes no sense.
    Malformed,
}

impl<N: fmt::Display> fmt::Display for Note<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Views(note) => note.fmt(f),
            Self::Inside(note) => note.fmt(f),
            Self::OtherView => f.write_str("a promise of another view not heard"),
            Self::Votes => f.write_str("a member begins to vote"),
            Self::Malformed => f.write_str("malformed record"),
        }
    }
}

type Cx<'a, 'b, P, R> = &'a mut Context<'b, Agreed<P, R>>;

impl<P: OverViews, R: Rules> Agreed<P, R> {
    /// A peer that has not started yet, nor has the protocol inside.
    #[must_use]
    pub fn new(me: PeerId, config: Config<R>, inside: P) -> Self {
        Self {
            me,
            views: Views::new(me, config.views.clone()),
            inside,
            config,
            view: 0,
            since: 0,
            promises_from: LocalTime::MIN,
            votes: false,
            vouched_for: false,
            counts_until: LocalTime::NEVER,
            counted_in: (0, false),
            others: Whereabouts::default(),
            from_views: Vec::new(),
            from_inside: Vec::new(),
        }
    }

    /// Its share of the agreement on who is in.
    #[must_use]
    pub const fn views(&self) -> &Views<R> {
        &self.views
    }

    fn on_start(&mut self, cx: Cx<'_, '_, P, R>, incarnation: Incarnation, birth: Birth<Self>) {
        let (views, inside) = match birth {
            Birth::First => (Birth::First, Birth::First),
            Birth::Amnesiac => (Birth::Amnesiac, Birth::Amnesiac),
            Birth::Recovered(records) => {
                let (mut views, mut inside) = (Vec::new(), Vec::new());
                for record in records {
                    match record {
                        (DurableKey::View(key), Durable::View(saved)) => views.push((key, *saved)),
                        (DurableKey::Inside(key), Durable::Inside(saved)) => {
                            inside.push((key, saved));
                        }
                        (DurableKey::Votes, Durable::Votes(since)) => {
                            (self.since, self.votes) = (since, true);
                        }
                        _ => cx.note(Note::Malformed),
                    }
                }
                (Birth::Recovered(views), Birth::Recovered(inside))
            }
        };
        self.pass_in(cx, Input::Start { incarnation, birth: inside });
        self.pass_views(cx, Input::Start { incarnation, birth: views });
        match self.config.beginning {
            Beginning::Found => self.ask_views(cx, views::Request::Found),
            Beginning::Expect(hosts) => self.ask_views(cx, views::Request::Expect { hosts }),
            Beginning::Join => {}
            Beginning::Watch => return,
        }
        self.ask_views(cx, views::Request::Join);
    }

    fn on_message(&mut self, cx: Cx<'_, '_, P, R>, from: PeerId, message: Message<P::Message>) {
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
            Message::Inside { view, message } => {
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
                self.on_inside(cx, from, view, message);
            }
        }
    }

    /// Rule 1.
    fn on_inside(&mut self, cx: Cx<'_, '_, P, R>, from: PeerId, view: u64, message: P::Message) {
        let later = view > self.view;
        let heard = view == self.view
            || !P::is_promise(&message)
            || (later && self.config.breaks(Mutant::CountsLaterViews))
            || (message.kind() == "RENEWED" && self.config.breaks(Mutant::HearsAnyRenewal))
            || (!later
                && message.kind() == "VOTES"
                && self.config.breaks(Mutant::HearsVotesOfBefore));
        if heard {
            return self.pass_in(cx, Input::Receive { from, message });
        }
        cx.note(Note::OtherView);
        if later {
            self.others.keep(from, view, message);
        } else {
            self.others.miss(from, self.view);
        }
    }

    /// Somebody who was behind may be so no more: what it said then may be asked again.
    fn ask_again(&mut self, cx: Cx<'_, '_, P, R>, from: PeerId, view: u64) {
        if view == self.view && self.others.catches_up(from) {
            self.pass_in(cx, Input::PeerUp(from));
        }
    }

    /// What views have come to matters to the protocol inside: first whether this peer is in, then whether it may vote.
    fn follow(&mut self, cx: Cx<'_, '_, P, R>) {
        let late = self.config.breaks(Mutant::VotesBeforeItFollows);
        if !late {
            self.follow_view(cx);
        }
        let unrivalled = !self.views.is_astray() && !self.views.has_rivals();
        let vouched_for = self.views.is_vouched_for() && unrivalled;
        let was = core::mem::replace(&mut self.vouched_for, vouched_for);
        if vouched_for && !was {
            self.with_inside(cx, P::go_on);
        }
        if late {
            self.follow_view(cx);
        }
    }

    /// If views have come to a new one, so does the protocol inside.
    fn follow_view(&mut self, cx: Cx<'_, '_, P, R>) {
        let Some(roster) = self.views.roster() else { return };
        let member = self.views.standing() == Standing::Member;
        let since = roster.since(self.me).filter(|_| member).unwrap_or_default();
        if (roster.number(), since) == (self.view, self.since) {
            return;
        }
        let (number, last) = (roster.number(), roster.last());
        let newcomer = roster.is_newcomer(self.me);
        let members = roster.seats();
        // With the tenth, quorums grow by more than its vote: it had better wait.
        let grows_large =
            members.len() == VOTERS_MAX + 1 && !self.config.breaks(Mutant::HurriesTheTenth);
        let part = match since {
            0 => Part::Outside,
            since if since == self.since || number == 1 => Part::Stays,
            _ if newcomer && !grows_large => Part::Newcomer,
            // It might ask, too: nobody settled the view in which it came, so that lasted a lease. But to wait
            // takes no such argument.
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
        self.pass_in(cx, Input::ViewChanged(View { number, members, part }));
        for (from, view, message) in self.others.move_on() {
            let any = self.config.breaks(Mutant::HearsWhatCameEarly);
            let view = if any { self.view } else { view };
            self.on_inside(cx, from, view, message);
        }
    }

    /// Whether the hosts that have made a swarm may have been one a moment ago: those that have lost all they had do not
    /// know. Who makes one alone says that there is none.
    fn may_have_been_another(&self, founders: usize) -> bool {
        founders > 1 && !self.config.breaks(Mutant::VotesAtOnceInANewSwarm)
    }

    /// This peer is a member since another view, or of a view that nobody was asked about: votes are out
    /// that it does not know of, for a lease from now.
    fn begin(&mut self, cx: Cx<'_, '_, P, R>, waits: bool) {
        self.promises_from = LocalTime::MIN;
        if core::mem::take(&mut self.votes) && !self.config.breaks(Mutant::VotesAsItsDiskSays) {
            cx.persist(DurableKey::Votes, None);
        }
        if self.since != 0 && waits {
            self.promises_from = cx.now() + self.config.views.view_min();
            cx.set_timer(Timer::Votes, self.promises_from);
        } else if self.since != 0 {
            self.vote(cx);
        }
    }

    /// From here on this peer votes, and its disk knows.
    fn vote(&mut self, cx: Cx<'_, '_, P, R>) {
        (self.promises_from, self.votes) = (LocalTime::MIN, true);
        cx.cancel_timer(Timer::Votes);
        cx.persist(DurableKey::Votes, Some(Durable::Votes(self.since)));
        cx.note(Note::Votes);
    }

    /// Whether the newcomer has just found out which votes are out.
    fn settles(&self) -> bool {
        self.since != 0 && !self.votes && self.inside.settled() == self.view
    }

    /// It votes from now on.
    fn on_settled(&mut self, cx: Cx<'_, '_, P, R>) {
        if !self.votes {
            self.vote(cx);
        }
        self.ask_views(cx, views::Request::Settled { view: self.view });
        self.with_inside(cx, P::go_on);
    }

    /// On which terms this peer is in.
    fn terms(&self) -> Terms {
        let unconfirmed = self.config.breaks(Mutant::GoesOnUnconfirmed);
        Terms {
            promises: self.since != 0 && self.vouched_for,
            promises_from: self.promises_from,
            counts_until: if unconfirmed { LocalTime::NEVER } else { self.counts_until },
        }
    }

    fn on_request(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, request: Request<P::Request>) {
        let request = match request {
            Request::Inside(request) => return self.pass_in(cx, Input::Request { id, request }),
            Request::Members(wish) => wish.into(),
        };
        self.pass_views(cx, Input::Request { id, request });
    }
}

impl<P: OverViews, R: Rules> Driven for Agreed<P, R> {
    fn of_members(wish: MemberRequest) -> Option<Self::Request> {
        Some(Request::Members(wish))
    }
    fn roster(&self) -> Option<&Roster> {
        self.views.roster()
    }
    fn is_member(&self) -> bool {
        self.views.standing() == Standing::Member
    }
    fn has_forgotten(&self) -> bool {
        self.views.standing() == Standing::Lost || self.views.loss().is_some()
    }
    fn hosted(&self) -> usize {
        self.inside.hosted()
    }
    fn may_go(&self) -> bool {
        !self.is_member() || self.views.is_alone()
    }
}

impl<P: OverViews + GoesBy<R>, R: Rules> GoesBy<R> for Agreed<P, R> {}

impl<P: OverViews, R: Rules> Protocol for Agreed<P, R> {
    type Message = Message<P::Message>;
    type Request = Request<P::Request>;
    type Reply = Reply<P::Reply>;
    type Timer = Timer<P::Timer>;
    type DurableKey = DurableKey<P::DurableKey>;
    type Durable = Durable<P::Durable>;
    type Note = Note<P::Note>;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { incarnation, birth } => self.on_start(cx, incarnation, birth),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::Fire(Timer::Views(timer)) => self.pass_views(cx, Input::Fire(timer)),
            Input::Fire(Timer::Inside(timer)) => self.pass_in(cx, Input::Fire(timer)),
            Input::Fire(Timer::Votes) => {
                if self.since != 0 && !self.votes && self.promises_from <= cx.now() {
                    self.vote(cx);
                    self.with_inside(cx, P::go_on);
                }
            }
            Input::Request { id, request } => self.on_request(cx, id, request),
            Input::PeerUp(peer) => {
                self.pass_views(cx, Input::PeerUp(peer));
                self.pass_in(cx, Input::PeerUp(peer));
            }
            Input::PeerDown(peer) => {
                self.others.forget(peer);
                self.pass_views(cx, Input::PeerDown(peer));
                self.pass_in(cx, Input::PeerDown(peer));
            }
            Input::Leave => self.pass_views(cx, Input::Leave),
            Input::ViewChanged(_) => {}
        }
    }
}

impl<P: OverViews + fmt::Debug, R: Rules> fmt::Debug for Agreed<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreed").field("views", &self.views).field("inside", &self.inside).finish()
    }
}
