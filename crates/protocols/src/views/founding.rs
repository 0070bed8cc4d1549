//! How hosts that were started alike, and know of no swarm, make one together.
//!
//! Each is told how many of them there are, and there is no swarm before all of them have pledged themselves to the
//! same one. So a host that lost its data, or is cut off when it first starts, founds nothing: the others are missing,
//! and have no pledge to give but to the swarm that they are in. Nor does one that sees a host that was told another
//! number: of two groups that are told different ones, each might be complete.
//!
//! ```text
//!  blank peers                                each other
//!    │ BLANK    I am in no swarm ────────────► │  and expect so many of us
//!
//!  the first by number who sees that many     the others
//!    │ PLEDGE   make this swarm with me ─────► │  who is free pledges itself, on disk first
//!    │ ◄────────────────────────── PLEDGED     │  again and again, until it is told more
//!    │ LEARN    here it is ──────────────────► │  when all have; to all of them
//!    │ ◄──────── DECLINED  not (any more) ───► │  somebody is pledged elsewhere, or does not answer
//! ```
//!
//! Whoever proposed a swarm alone decides on it, and says of any that it has not decided on that it never will; so a
//! pledge ends by its word only. Two swarms would take two pledges of every host: each of them must have lost its
//! data in between.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sigmalock_core::{LocalTime, PeerId};

use super::message::Message;
use super::mutant::Mutant;
use super::roster::{Badge, Roster};
use super::{Cx, MEMBERS_MAX, Note, Views};
use crate::parts::Rules;

/// A pledge to a swarm that is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pledge {
    /// Which swarm.
    origin: u64,
    /// Who proposed it, and decides.
    by: PeerId,
}

/// What a blank peer knows of the others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Founding {
    /// How many hosts begin together; 0 if this peer founds nothing.
    expects: u16,
    /// The others that can be reached, are blank, and expect as many.
    blank: BTreeMap<PeerId, Badge>,
    /// The others that can be reached, are blank, and expect another number.
    otherwise: BTreeMap<PeerId, u16>,
    /// It looks around before, and pledges itself to nothing.
    looks_until: LocalTime,
    /// What this peer has proposed.
    pub(super) proposal: Option<Proposal>,
    /// It proposes nothing before.
    pause_until: LocalTime,
}

/// A swarm that this peer has proposed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Proposal {
    origin: u64,
    members: BTreeMap<PeerId, Badge>,
    pledged: BTreeSet<PeerId>,
    /// Until then all must have answered.
    until: LocalTime,
}

impl Founding {
    /// A peer cannot be reached.
    pub(super) fn part(&mut self, peer: PeerId) {
        self.blank.remove(&peer);
        self.otherwise.remove(&peer);
    }
}

impl<R: Rules> Views<R> {
    /// How many of those who begin together are here, itself included, and how many are expected; if this peer
    /// is one of them.
    #[must_use]
    pub fn founding(&self) -> Option<(usize, usize)> {
        let expects = usize::from(self.founding.expects);
        self.is_blank().then_some((self.founding.blank.len() + 1, expects))
    }

    /// Who else begins a swarm, too, and was told that so many do: not as many as this peer was told.
    #[must_use]
    pub fn told_otherwise(&self) -> Option<(PeerId, u16)> {
        let other = self.founding.otherwise.iter().next()?;
        self.is_blank().then_some((*other.0, *other.1))
    }

    /// Who else has proposed a swarm and has this peer's pledge to it.
    #[must_use]
    pub fn pledged_to(&self) -> Option<PeerId> {
        self.pledge.map(|pledge| pledge.by).filter(|by| *by != self.me)
    }

    /// Whether this peer was never in a swarm. Who lost its memory may have been in one.
    fn was_never_in(&self) -> bool {
        let forgot = self.forgot.is_some() && !self.config.breaks(Mutant::FoundsThoughForgetful);
        self.roster.is_none() && !forgot
    }

    /// Whether it is to make one with others.
    fn is_blank(&self) -> bool {
        self.founding.expects > 0 && self.was_never_in()
    }

    /// Whether that swarm can begin: all that begin one here mean the same.
    fn may_begin(&self) -> bool {
        let broken = self.config.breaks(Mutant::FoundsThoughToldOtherwise);
        self.is_blank() && (self.founding.otherwise.is_empty() || broken)
    }

    /// Whether it may make one alone: one that it is pledged to may have begun.
    pub(super) fn may_found(&self) -> bool {
        let free = self.pledge.is_none() || self.config.breaks(Mutant::FoundsThoughPledged);
        self.was_never_in() && free
    }

    /// So many hosts begin together, and this is one of them.
    pub(super) fn expect(&mut self, cx: Cx<'_, '_, R>, hosts: u16) {
        self.wants_in = true;
        self.founding.expects = hosts.min(MEMBERS_MAX as u16);
        if hosts > 1 {
            self.founding.looks_until = cx.now() + self.config.look_around();
        }
        self.look(cx);
    }

    /// A life begins. If a former self proposed a swarm and did not get to decide on it, nobody ever will.
    pub(super) fn take_back_pledge(&mut self, cx: Cx<'_, '_, R>) {
        if self.pledge.is_some_and(|pledge| pledge.by == self.me) {
            self.pledge_to(cx, None);
        }
    }

    /// Reminds who has its pledge, tells the others that it is blank, and proposes a swarm if it can.
    pub(super) fn found(&mut self, cx: Cx<'_, '_, R>) {
        if let Some(Pledge { origin, by }) = self.pledge.filter(|pledge| pledge.by != self.me) {
            cx.send(by, Message::Pledged { origin });
        }
        if !self.is_blank() {
            return;
        }
        let (expects, badge) = (self.founding.expects, self.badge(cx));
        for peer in self.up.iter().copied().collect::<Vec<_>>() {
            cx.send(peer, Message::Blank { expects, badge });
        }
        if self.founding.proposal.as_ref().is_some_and(|proposal| proposal.until <= cx.now()) {
            self.give_up(cx);
        }
        self.propose_swarm(cx);
    }

    /// The first of those who are there proposes a swarm, if they are enough.
    fn propose_swarm(&mut self, cx: Cx<'_, '_, R>) {
        let Founding { expects, blank, pause_until, .. } = &self.founding;
        let first = blank.keys().next().is_none_or(|other| self.me < *other);
        let enough = blank.len() + 1 >= usize::from(*expects);
        let waits = cx.now() < self.founding.looks_until.max(*pause_until);
        if !self.may_begin() || self.pledge.is_some() || !first || !enough || waits {
            return;
        }
        let others = blank.clone().into_iter().take(usize::from(*expects) - 1);
        let (expects, badge, origin) = (*expects, self.badge(cx), cx.random());
        let members: BTreeMap<PeerId, Badge> = others.chain([(self.me, badge)]).collect();
        let until = cx.now() + self.config.round_trip_worst * 4;
        self.pledge_to(cx, Some(Pledge { origin, by: self.me }));
        members.keys().filter(|peer| **peer != self.me).for_each(|peer| {
            cx.send(*peer, Message::Pledge { origin, expects });
        });
        let pledged = BTreeSet::from([self.me]);
        self.founding.proposal = Some(Proposal { origin, members, pledged, until });
        self.decide(cx);
    }

    /// If all have pledged themselves, there is a swarm.
    fn decide(&mut self, cx: Cx<'_, '_, R>) {
        let Some(proposal) = &self.founding.proposal else { return };
        let all = if self.config.breaks(Mutant::FoundsWithMost) {
            proposal.members.len() / 2 + 1
        } else {
            proposal.members.len()
        };
        if proposal.pledged.len() >= all
            && let Some(proposal) = self.founding.proposal.take()
        {
            self.install(cx, Roster::founded_together(&proposal.members, proposal.origin));
            self.spread(cx);
        }
    }

    /// The swarm that this peer proposed will not be; a later one may.
    fn give_up(&mut self, cx: Cx<'_, '_, R>) {
        let Some(Proposal { origin, members, .. }) = self.founding.proposal.take() else { return };
        let pause = self.config.round_trip_worst * (1 + cx.random() % 4);
        self.founding.pause_until = cx.now() + pause;
        self.pledge_to(cx, None);
        members.keys().filter(|peer| **peer != self.me).for_each(|peer| {
            cx.send(*peer, Message::Declined { origin });
        });
    }

    fn pledge_to(&mut self, cx: Cx<'_, '_, R>, pledge: Option<Pledge>) {
        self.pledge = pledge;
        self.save(cx);
    }

    /// Somebody is in no swarm. Who is in one says so.
    pub(super) fn on_blank(&mut self, cx: Cx<'_, '_, R>, from: PeerId, expects: u16, badge: Badge) {
        if let Some(roster) = &self.roster {
            return cx.send(from, Message::Learn(Box::new(roster.clone())));
        }
        let Founding { expects: own, blank, otherwise, pause_until, .. } = &mut self.founding;
        if !self.up.contains(&from) {
            return;
        }
        if expects != *own && otherwise.len() < MEMBERS_MAX {
            otherwise.insert(from, expects);
        } else if expects == *own && blank.len() < MEMBERS_MAX {
            if blank.insert(from, badge).is_none() {
                // It has yet to hear of the others, and the others of it.
                *pause_until = (*pause_until).max(cx.now() + self.config.look_around());
            }
            self.propose_swarm(cx);
        }
    }

    /// Somebody proposes a swarm.
    pub(super) fn on_pledge(&mut self, cx: Cx<'_, '_, R>, from: PeerId, origin: u64, expects: u16) {
        let pledge = Pledge { origin, by: from };
        let free = self.pledge.is_none_or(|mine| mine == pledge)
            || self.config.breaks(Mutant::PledgesTwice);
        let has_looked = cx.now() >= self.founding.looks_until;
        if self.may_begin() && has_looked && free && expects == self.founding.expects {
            self.pledge_to(cx, Some(pledge));
            cx.send(from, Message::Pledged { origin });
        } else {
            cx.send(from, Message::Declined { origin });
        }
    }

    /// Somebody is pledged to a swarm that this peer proposed.
    pub(super) fn on_pledged(&mut self, cx: Cx<'_, '_, R>, from: PeerId, origin: u64) {
        let roster = self.roster.as_ref().filter(|roster| roster.origin() == origin);
        if let Some(roster) = roster {
            return cx.send(from, Message::Learn(Box::new(roster.clone())));
        }
        match self.founding.proposal.as_mut().filter(|proposal| proposal.origin == origin) {
            Some(proposal) if proposal.members.contains_key(&from) => {
                proposal.pledged.insert(from);
                self.decide(cx);
            }
            // It may have decided on it, and have forgotten.
            _ if self.forgot.is_some() && !self.config.breaks(Mutant::DeclinesThoughForgetful) => {}
            _ => cx.send(from, Message::Declined { origin }),
        }
    }

    /// That swarm will not be: somebody who should be in it is pledged elsewhere, or who proposed it has given it up.
    pub(super) fn on_declined(&mut self, cx: Cx<'_, '_, R>, from: PeerId, origin: u64) {
        let anybody = self.config.breaks(Mutant::HearsAnyDecline);
        let mine = self.pledge.is_some_and(|p| p.origin == origin && (p.by == from || anybody));
        if self.founding.proposal.as_ref().is_some_and(|proposal| proposal.origin == origin) {
            self.give_up(cx);
        } else if self.roster.is_none() && mine {
            self.pledge_to(cx, None);
        } else {
            cx.note(Note::Outbid);
        }
    }

    /// Whether a view of this swarm may be learned: who is pledged to one that may have begun knows no other.
    pub(super) fn may_learn(&self, origin: u64) -> bool {
        let known = self.roster.as_ref().map(Roster::origin);
        let faithful = !self.config.breaks(Mutant::LearnsThoughPledged);
        let pledged = self.pledge.filter(|_| faithful).map(|pledge| pledge.origin);
        known.or(pledged).is_none_or(|mine| mine == origin)
    }
}
