//! Views: peers agree on who is in, one change at a time.
//!
//! A view is a numbered membership. The next one differs from it by one peer, and is chosen by more than
//! half of it: single-decree Paxos for each view, whose acceptors are the members of that view. So there is
//! one successor, whatever crashes and partitions do, and two majorities, of one view or of neighbours,
//! always have somebody in common. That is what votes of locks are counted in.
//!
//! # What it assumes
//!
//! - What was persisted is there after a restart. Who lost it lost its badge, too, the number under which it is
//!   a member, and is out until views have removed it and added it again.
//! - Clocks may be anything; their rates differ by less than a percent.
//! - What was said before a peer was down is not heard when it is up again. Only `vouching` asks for that.
//!
//! # What it guarantees
//!
//! - Each view has one successor, and every peer sees the views in order.
//! - A member accepts a successor no sooner than the longest lease after it learned the view itself, or
//!   when the view's newcomer has said that it knows what the others promised. So votes given in older
//!   views than the last but one have run out.
//! - While more than half of a view are up and hear each other, wishes are granted. The dead are removed
//!   after [`Config::dead_after`].
//!
//! # Where to read on
//!
//! `roster` is a view, `message` the conversation, `acceptor` what a member must not forget, `campaign` a
//! proposal, `choice` how they meet, `wishes` what is to be proposed, `news` how those who know less hear of a
//! newer view, `failure_detector` how a peer notices them and who is dead, `confirmations` until when a large view
//! counts, `strangers` who is of another swarm, or in another view of the same number, `founding` how hosts that know of none make one, `vouching` how
//! old backups and copies of a disk are noticed, `rescue` how an operator goes on without members that are gone,
//! `disk` what must survive, `request` what a peer may be asked for, `dispatch` who hears which message. The
//! shape of the agreement is Lamport's ("Paxos Made Simple"); that one view decides the next is as in his
//! "Reconfiguring a State Machine".

mod acceptor;
mod campaign;
mod choice;
mod config;
mod confirmations;
mod disk;
mod dispatch;
mod failure_detector;
mod founding;
mod inspect;
mod message;
mod mutant;
mod news;
mod request;
mod rescue;
mod roster;
mod strangers;
mod vouching;
mod wishes;

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use crate::catalogue::{
    Card, Family, ListedMembers, MembersProtocol, Membership, Plan, Promises, Variant,
};
use crate::parts::{Driven, Rules, Sound};
use sigmalock_core::{Context, ForgetRefusal, Input, LocalTime, MemberRequest, PeerId, Protocol};

pub use acceptor::Acceptor;
use campaign::Campaign;
pub use config::Config;
use confirmations::Confirmations;
pub use disk::{Loss, Record, Saved};
use founding::Founding;
pub use founding::Pledge;
pub use message::{Ballot, Message};
pub use mutant::Mutant;
pub use request::{Reply, Request};
use rescue::Rescue;
pub use roster::{Badge, Change, Roster, count};
use strangers::Strangers;
pub use vouching::{Acquaintance, Life, STARTS_MAX, Start};
use vouching::{Acquaintances, Starts, Vouching};
use wishes::Wishes;

/// So many members at most; one more is not proposed.
pub const MEMBERS_MAX: usize = 1_024;

/// Nobody is so many rounds ahead of the others; who says so would leave no round for anybody.
const ROUNDS_AHEAD_MAX: u64 = 1 << 32;

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "views",
    about: "peers agree on who is in, one change at a time",
    source: "after Paxos",
    family: Family::Members,
    memberships: &[Membership::Agreed],
    variants: &[Variant::Shipped],
    promises: Promises::EXCLUSION,
    answers: &[],
    mutants: Mutant::CARDS,
};

/// How a peer stands to the swarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Not in.
    Outside,
    /// In under a badge that is not its own, or perhaps in: what it promised is lost. It takes part in nothing
    /// until it was removed and added again.
    Lost,
    /// In.
    Member,
}

/// What timers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Look around: who is dead, who knows less.
    Look,
    /// Propose what is wished for, perhaps not for the first time.
    Propose,
    /// Those who are left have had the time to say what they know.
    Rescue,
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// A view was learned.
    Learned(u64),
    /// A successor of a view was chosen.
    Chosen(u64),
    /// A proposal came too early.
    TooEarly,
    /// Another proposer was ahead.
    Outbid,
    /// A message that makes no sense.
    Malformed,
    /// The disk of this peer is not the newest that it had: others remember more.
    OldDisk,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learned(view) => write!(f, "view {view} learned"),
            Self::Chosen(view) => write!(f, "successor of view {view} chosen"),
            Self::TooEarly => f.write_str("a proposal came too early"),
            Self::Outbid => f.write_str("another proposer was ahead"),
            Self::Malformed => f.write_str("malformed message"),
            Self::OldDisk => f.write_str("an old disk was put back"),
        }
    }
}

/// One peer's share of the views.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Views<R = Sound> {
    config: Config<R>,
    me: PeerId,
    roster: Option<Roster>,
    /// The number under which this peer is, or asks to be, a member.
    badge: Option<Badge>,
    /// It has lost its memory, and has not been a member since.
    forgot: Option<Loss>,
    /// The swarm that it is to be a founder of, if it is in none yet.
    pledge: Option<Pledge>,
    founding: Founding,
    starts: Starts,
    acquaintances: Acquaintances,
    /// How many records it has written to count those of others.
    counted: u64,
    vouching: Vouching,
    learned_at: LocalTime,
    /// Whether the newcomer of the newest view knows what the others promised.
    settled: bool,
    acceptor: Acceptor,
    campaign: Option<Campaign>,
    /// An operator's wish to go on without some.
    rescue: Option<Rescue>,
    /// When it proposes, if it does.
    proposes_at: LocalTime,
    /// The highest round heard of, about the present view.
    round: u64,
    wishes: Wishes,
    /// Who is removed though it is alive wants back in.
    wants_in: bool,
    /// It was told to leave; a wish of before may still bring it in.
    leaving: bool,
    up: BTreeSet<PeerId>,
    /// Members that cannot be reached, and since when.
    down: BTreeMap<PeerId, LocalTime>,
    confirmed: Confirmations,
    strangers: Strangers,
}

type Cx<'a, 'b, R> = &'a mut Context<'b, Views<R>>;

impl<R: Rules> Views<R> {
    /// A peer that has not started yet.
    #[must_use]
    pub fn new(me: PeerId, config: Config<R>) -> Self {
        Self {
            config,
            me,
            roster: None,
            badge: None,
            forgot: None,
            pledge: None,
            founding: Founding::default(),
            starts: Starts::new(),
            acquaintances: Acquaintances::new(),
            counted: 0,
            vouching: Vouching::default(),
            learned_at: LocalTime::MIN,
            settled: false,
            acceptor: Acceptor::default(),
            campaign: None,
            rescue: None,
            proposes_at: LocalTime::NEVER,
            round: 0,
            wishes: Wishes::default(),
            wants_in: false,
            leaving: false,
            up: BTreeSet::new(),
            down: BTreeMap::new(),
            confirmed: Confirmations::default(),
            strangers: Strangers::default(),
        }
    }

    /// The newest view this peer knows.
    #[must_use]
    pub const fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// How this peer stands to the swarm, as far as it knows.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let Some(roster) = &self.roster else {
            return if self.forgot.is_some() { Standing::Lost } else { Standing::Outside };
        };
        match roster.badge(self.me) {
            None => Standing::Outside,
            badge if badge == self.badge => Standing::Member,
            Some(_) => Standing::Lost,
        }
    }

    /// How this peer lost its memory, if it has not been a member since.
    #[must_use]
    pub const fn loss(&self) -> Option<Loss> {
        self.forgot
    }

    /// Whether this peer is a member whose word counts.
    #[must_use]
    pub fn has_a_say(&self) -> bool {
        let astray = self.is_astray() && !self.config.breaks(Mutant::HasASayThoughAstray);
        let beside = self.has_rivals() && !self.config.breaks(Mutant::HasASayBesideAnother);
        self.has_a_say_alone() && !astray && !beside
    }

    /// Whether its word counts with itself.
    pub(super) fn has_a_say_alone(&self) -> bool {
        self.standing() == Standing::Member && self.is_vouched_for()
    }

    /// Whether nobody else is in its view.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.roster.as_ref().is_some_and(|roster| roster.members().len() == 1)
    }

    /// Whether there is a session with a peer.
    #[must_use]
    pub fn reaches(&self, peer: PeerId) -> bool {
        self.up.contains(&peer)
    }

    /// Since when a member cannot be reached, if so.
    #[must_use]
    pub fn silent_since(&self, peer: PeerId) -> Option<LocalTime> {
        self.down.get(&peer).copied()
    }

    /// What it has accepted as the successor of its view.
    #[must_use]
    pub const fn accepted(&self) -> Option<(Ballot, Change)> {
        self.acceptor.accepted()
    }

    /// The number under which this peer asks to be a member: on disk before anybody hears it, and the same until
    /// that membership has ended.
    fn badge(&mut self, cx: Cx<'_, '_, R>) -> Badge {
        if let Some(badge) = self.badge {
            return badge;
        }
        let badge = Badge(cx.random());
        self.badge = Some(badge);
        if self.starts.is_empty() {
            self.draw_start(cx);
        }
        self.save(cx);
        badge
    }

    fn is_newcomer(&self, view: u64) -> bool {
        let added = self.badge.map(|badge| Change::Add(self.me, badge));
        self.number() == view && self.roster.as_ref().map(Roster::last) == added
    }

    /// The number of the view that it is at; 0 if it knows of none.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.roster.as_ref().map_or(0, Roster::number)
    }

    fn is_in(&self, peer: PeerId) -> bool {
        self.roster.as_ref().is_some_and(|roster| roster.contains(peer))
    }

    /// A newer view is known.
    fn install(&mut self, cx: Cx<'_, '_, R>, roster: Roster) {
        if roster.number() <= self.number() {
            return;
        }
        cx.note(Note::Learned(roster.number()));
        let was_member = self.standing() == Standing::Member;
        self.take_for_itself(&roster);
        let over = was_member && roster.badge(self.me) != self.badge;
        if over && !self.config.breaks(Mutant::KeepsItsBadge) {
            // That membership has ended, and its badge with it.
            self.badge = None;
        }
        self.roster = Some(roster);
        if self.standing() == Standing::Member {
            self.forgot = None;
        }
        self.keep_acquaintances(cx.now());
        (self.pledge, self.founding.proposal) = (None, None);
        (self.learned_at, self.settled, self.round) = (cx.now(), false, 0);
        (self.acceptor, self.campaign) = (Acceptor::default(), None);
        self.end_rescue(cx, Reply::Remembered(ForgetRefusal::NewerView));
        if !self.config.breaks(Mutant::KeepsConfirmations) {
            self.confirmed = Confirmations::default();
        }
        if !self.config.breaks(Mutant::KeepsItsRivals) {
            self.strangers.move_on();
        }
        let members = self.roster.as_ref();
        self.down.retain(|peer, _| members.is_some_and(|roster| roster.contains(*peer)));
        self.save(cx);
        self.proposes_at = LocalTime::NEVER;
        cx.cancel_timer(Timer::Propose);
        self.join_in(cx, was_member);
        self.consider(cx);
    }

    /// Rules to break on purpose: what a peer that lost its memory must not conclude from a view that has it.
    fn take_for_itself(&mut self, next: &Roster) {
        let was_out = self.roster.as_ref().is_some_and(|roster| !roster.contains(self.me));
        let takes = self.config.breaks(Mutant::RelearnsViews)
            || (was_out && self.config.breaks(Mutant::TakesOldViewsForRemoval));
        if takes && let Some(badge) = next.badge(self.me) {
            self.badge = Some(badge);
        }
    }
}

impl<R: Rules> Driven for Views<R> {
    fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }
    fn is_member(&self) -> bool {
        self.standing() == Standing::Member
    }
    fn has_forgotten(&self) -> bool {
        self.standing() == Standing::Lost || self.loss().is_some()
    }
    fn of_members(wish: MemberRequest) -> Option<Request> {
        Some(wish.into())
    }
    fn may_go(&self) -> bool {
        !self.is_member() || self.is_alone()
    }
}

impl<R: Rules> MembersProtocol for Views<R> {
    fn standing(&self) -> Standing {
        self.standing()
    }
    fn accepted(&self) -> Option<(Ballot, Change)> {
        self.accepted()
    }
}

impl<R: Rules> ListedMembers<R> for Views<R> {
    fn plan(me: PeerId, plan: &Plan<R>) -> Self {
        let mut config = Config::with_rules(plan.lease_max, plan.rules);
        config.dead_after = plan.dead_after;
        config.round_trip_worst = plan.round_trip_worst;
        Self::new(me, config)
    }
}

impl<R: Rules> Protocol for Views<R> {
    type Message = Message;
    type Request = Request;
    type Reply = Reply;
    type Timer = Timer;
    type DurableKey = Record;
    type Durable = Saved;
    type Note = Note;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { birth, .. } => self.on_start(cx, birth),
            Input::Receive { from, .. } if from == self.me => cx.note(Note::Malformed),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::Fire(Timer::Look) => self.look(cx),
            Input::Fire(Timer::Propose) => self.propose(cx),
            Input::Fire(Timer::Rescue) => self.rescue(cx),
            Input::Request { id, request } => self.on_request(cx, id, request),
            Input::PeerUp(peer) => self.on_up(cx, peer),
            Input::PeerDown(peer) => self.on_down(cx, peer),
            Input::Leave => {
                (self.wants_in, self.leaving) = (false, true);
                self.look(cx);
            }
            Input::ViewChanged(_) => {}
        }
    }
}
