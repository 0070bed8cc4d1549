//! How an operator goes on without members that are gone for good.
//!
//! A view that nobody chose is safe only if the gone cannot have chosen another one, and nobody who is left knows
//! of one. So all who are gone are named at once, and all who are left are asked:
//!
//! ```text
//!  who is told to forget                       everybody that it reaches
//!    │ KNOWN    I am at this view ───────────► │  who knows a newer one says so: nothing is forgotten
//!    │ PREPARE  no older ballot, please ─────► │  the members who are left
//!    │ ◄──────── PROMISE  nothing accepted     │  all of them must say that
//!    │ LEARN    this is the view now ────────► │  two round trips later
//! ```
//!
//! If the gone are fewer than a majority, they alone have chosen nothing. If they are more, they may have gone on
//! without this peer, added others and died in a later view, of which nobody who is left knows: that cannot be
//! verified, and takes a word of its own. If those who are left are a majority, they can choose what comes next as
//! soon as they have answered, whoever does not hear of it: so they are left to do that. Of several who are told to
//! forget at the same time one goes on, the last whose ballot all have promised, and the others find that they
//! promised it, too.

use alloc::collections::BTreeSet;

use sigmalock_core::{CallId, ForgetRefusal, PeerId};

use super::message::{Ballot, Message};
use super::mutant::Mutant;
use super::roster::{Change, Roster};
use super::{Cx, Reply, Standing, Timer, Views};
use crate::parts::Rules;

/// One such wish, from the first question to the last answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Rescue {
    id: CallId,
    gone: BTreeSet<PeerId>,
    unverified: bool,
    ballot: Ballot,
    /// Who of those who are left has promised that ballot,
    agree: BTreeSet<PeerId>,
    /// and whether one of them has accepted a change, which the gone may have chosen.
    under_way: bool,
}

impl<R: Rules> Views<R> {
    pub(super) fn on_forget(
        &mut self, cx: Cx<'_, '_, R>, id: CallId, gone: BTreeSet<PeerId>, unverified: bool,
    ) {
        if let Err(refusal) = self.may_forget(&gone, unverified) {
            return cx.reply(id, Reply::Remembered(refusal));
        }
        self.end_rescue(cx, Reply::Remembered(ForgetRefusal::Superseded));
        let members_only = self.config.breaks(Mutant::AsksMembersOnly);
        let asked = self.up.iter().filter(|peer| !members_only || self.is_in(**peer));
        asked.for_each(|peer| self.tell(cx, *peer));
        self.ask_who_is_left(cx, id, gone, unverified);
        cx.set_timer(Timer::Rescue, cx.now() + self.config.round_trip_worst * 2);
    }

    /// Under a newer ballot than any that this peer knows.
    fn ask_who_is_left(
        &mut self, cx: Cx<'_, '_, R>, id: CallId, gone: BTreeSet<PeerId>, unverified: bool,
    ) {
        self.round += 1;
        let (view, ballot) = (self.number(), Ballot { round: self.round, by: self.me });
        let (left, agree) = (self.left(&gone), BTreeSet::new());
        self.rescue = Some(Rescue { id, gone, unverified, ballot, agree, under_way: false });
        left.into_iter().for_each(|peer| self.say(cx, peer, Message::Prepare { view, ballot }));
    }

    /// Somebody who is left has promised a newer ballot: all are asked anew.
    pub(super) fn on_rescue_refused(
        &mut self, cx: Cx<'_, '_, R>, view: u64, ballot: Ballot, promised: Option<Ballot>,
    ) {
        let outbid = view == self.number() && promised > Some(ballot);
        if let Some(rescue) = self.rescue.take_if(|rescue| outbid && rescue.ballot == ballot) {
            self.round = self.round.max(promised.map_or(0, |promised| promised.round));
            self.ask_who_is_left(cx, rescue.id, rescue.gone, rescue.unverified);
        }
    }

    fn may_forget(&self, gone: &BTreeSet<PeerId>, unverified: bool) -> Result<(), ForgetRefusal> {
        let member = self.standing() == Standing::Member;
        let Some(roster) = self.roster.as_ref().filter(|_| member) else {
            return Err(ForgetRefusal::Outside);
        };
        if gone.is_empty() || gone.contains(&self.me) {
            return Err(ForgetRefusal::Itself);
        }
        if let Some(stranger) = gone.iter().find(|peer| !roster.contains(**peer)) {
            return Err(ForgetRefusal::NotAMember(*stranger));
        }
        if let Some(peer) = gone.iter().find(|peer| self.up.contains(peer)) {
            return Err(ForgetRefusal::Here(*peer));
        }
        if gone.len() >= roster.majority() && !unverified {
            return Err(ForgetRefusal::Unverified);
        }
        // The only one that is left asks nobody: what its disk says of who is in may be of long ago.
        let asks_nobody = gone.len() + 1 == roster.members().len() && !self.is_vouched_for();
        if asks_nobody && !unverified && !self.config.breaks(Mutant::ForgetsUnvouched) {
            return Err(ForgetRefusal::Unvouched);
        }
        Ok(())
    }

    /// The members without the gone.
    fn left(&self, gone: &BTreeSet<PeerId>) -> BTreeSet<PeerId> {
        let members = self.roster.iter().flat_map(Roster::members);
        members.filter(|peer| !gone.contains(peer)).collect()
    }

    pub(super) fn on_rescue_promise(
        &mut self, from: PeerId, view: u64, ballot: Ballot, accepted: Option<(Ballot, Change)>,
    ) {
        let any = self.config.breaks(Mutant::HearsAnyPromise);
        if view == self.number()
            && let Some(rescue) = self.rescue.as_mut().filter(|r| r.ballot == ballot || any)
        {
            rescue.under_way |= accepted.is_some();
            rescue.agree.insert(from);
        }
    }

    /// All who can be heard have been: who knows a newer view has said so, and has ended this.
    pub(super) fn rescue(&mut self, cx: Cx<'_, '_, R>) {
        let Some(rescue) = self.rescue.take() else { return };
        let reply = match self.outcome(&rescue) {
            Err(refusal) => Reply::Remembered(refusal),
            Ok(()) => {
                let random = cx.random();
                let next =
                    self.roster.as_ref().and_then(|roster| roster.without(&rescue.gone, random));
                match next {
                    None => Reply::Remembered(ForgetRefusal::UnderWay),
                    Some(next) => {
                        // Whoever is left has vouched, or nobody is who could.
                        self.vouch_by_operator();
                        self.install(cx, next);
                        self.spread(cx);
                        Reply::Done
                    }
                }
            }
        };
        cx.reply(rescue.id, reply);
    }

    /// Whether the gone can be forgotten, now that those who are left have had the time to answer.
    fn outcome(&self, rescue: &Rescue) -> Result<(), ForgetRefusal> {
        // Some of them may have come, or have shown this disk to be an old one.
        if !self.config.breaks(Mutant::ForgetsWhoeverComes) {
            self.may_forget(&rescue.gone, rescue.unverified)?;
        }
        let left = self.left(&rescue.gone);
        // One that nobody has vouched for promises nothing, not even to itself.
        let alone = left.len() == 1;
        let accepted = self.acceptor.accepted().is_some();
        let outbid = !alone && self.acceptor.promised() != Some(rescue.ballot);
        let enough = self.roster.as_ref().is_some_and(|roster| left.len() >= roster.majority());
        let accepted =
            (rescue.under_way || accepted) && !self.config.breaks(Mutant::ForgetsThoughAccepted);
        if accepted {
            Err(ForgetRefusal::UnderWay)
        } else if let Some(peer) =
            left.into_iter().find(|peer| !alone && !rescue.agree.contains(peer))
        {
            Err(ForgetRefusal::Silent(peer))
        } else if outbid && !self.config.breaks(Mutant::ForgetsThoughOutbid) {
            // Another proposer, or another operator, is at it.
            Err(ForgetRefusal::UnderWay)
        } else if enough && !self.config.breaks(Mutant::ForgetsThoughEnoughAreLeft) {
            // By now they may have chosen a successor, under a newer ballot, and this peer has not heard of it.
            Err(ForgetRefusal::EnoughAreLeft)
        } else {
            Ok(())
        }
    }

    /// If an operator waits to be told, it is told this.
    pub(super) fn end_rescue(&mut self, cx: Cx<'_, '_, R>, reply: Reply) {
        if let Some(rescue) = self.rescue.take() {
            cx.cancel_timer(Timer::Rescue);
            cx.reply(rescue.id, reply);
        }
    }
}
