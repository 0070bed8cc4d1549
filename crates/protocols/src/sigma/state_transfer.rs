//! How the newcomer of a view finds out which votes are out, where peers agree on who is in.
//!
//! In the view before, somebody may have won with the votes of a majority of which the newcomer knows nothing,
//! and be inside for a whole lease. Rather than wait that long, the newcomer asks the members of that view,
//! once they are in the new one: from then on they give no more votes that count in the old. If they are
//! enough, then whoever may have won is among those they name, and the newcomer gives it its own vote. If two
//! may have won, it abstains until the votes of both have run out.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use sigmalock_core::{LocalTime, Mode, Name, PeerId, ReplicaId, Span, View};

use super::host::{Host, HostState};
use super::message::{HandedVote, Message, OWNERS_MAX, VOTES_PAGE_MAX, Votes, VotesOn};
use super::tokens::Tokens;
use super::{Config, Cx, Mutant, Note, Timer, inspect};
use crate::parts::Quorum;
use crate::parts::Rules;
use crate::parts::quorum::VOTERS_MAX;

/// Owners in one page at most, unless they all have the vote of one name.
const OWNERS_PER_PAGE_MAX: usize = OWNERS_MAX;
/// How many round trips to wait for those who do not answer, if those who did are enough.
const PATIENCE: u64 = 4;

/// What a newcomer has found out so far.
#[derive(Debug, Clone, Hash)]
pub(super) struct StateTransfer {
    view: u64,
    /// The members of the view before, and how far each has come with its answer.
    members: BTreeMap<PeerId, Progress>,
    /// Whether all must answer: where some of the members vote on a name, a majority of all says little.
    needs_all: bool,
    names: BTreeMap<Name, Promised>,
    tries: u64,
}

#[derive(Debug, Clone, Hash)]
enum Progress {
    After(Option<Name>),
    Done,
}

/// What is known of the votes on a name.
#[derive(Debug, Clone, Hash)]
struct Promised {
    /// Who has votes, and how many.
    owners: Vec<(HandedVote, usize)>,
    tokens: Tokens,
    abstains_for: Span,
}

impl StateTransfer {
    fn new(state: &HostState<impl Rules>, view: &View) -> Self {
        let others = view.peers().filter(|peer| *peer != state.me);
        let members: BTreeMap<_, _> = others.map(|peer| (peer, Progress::After(None))).collect();
        let needs_all = members.len() > VOTERS_MAX && !state.breaks(Mutant::SettlesWithMost);
        Self { view: view.number, members, needs_all, names: BTreeMap::new(), tries: 0 }
    }

    /// How many have not answered, if that is few enough.
    fn unseen(&self) -> Option<usize> {
        let done = self.members.values().filter(|how| matches!(how, Progress::Done)).count();
        let unseen = self.members.len() - done;
        let enough = done > self.members.len() / 2 && self.tries >= PATIENCE && !self.needs_all;
        (unseen == 0 || enough).then_some(unseen)
    }

    fn note(&mut self, on: VotesOn) {
        let VotesOn { name, owners, tokens, abstains_for } = on;
        let known = self.names.entry(name);
        let nothing = || Promised { owners: Vec::new(), tokens: tokens.clone(), abstains_for };
        let known = known.or_insert_with(nothing);
        known.tokens.adopt(&tokens, true);
        known.abstains_for = known.abstains_for.max(abstains_for);
        for owner in owners {
            match known.owners.iter_mut().find(|(other, _)| other.ticket == owner.ticket) {
                Some((known, votes)) => {
                    known.vote.proposal = known.vote.proposal.max(owner.vote.proposal);
                    (known.sent, *votes) = (known.sent.max(owner.sent), *votes + 1);
                }
                None => known.owners.push((owner, 1)),
            }
        }
    }
}

impl<R: Rules> Host<R> {
    /// Peers have agreed on another membership, in which this one is the newcomer: what it promised as
    /// a member of an earlier one is void.
    pub(super) fn join(&mut self, cx: Cx<'_, '_, R>, view: &View) {
        self.state_transfer = Some(StateTransfer::new(&self.state, view));
        self.fetch(cx);
    }

    /// The newest view as whose newcomer this host knows what the others promised.
    pub(super) const fn settled(&self) -> u64 {
        self.settled
    }

    /// Asks those who have not answered, and again after a while.
    pub(super) fn fetch(&mut self, cx: Cx<'_, '_, R>) {
        self.end_joining(cx);
        let Some(state_transfer) = &mut self.state_transfer else { return self.reconsider_all(cx) };
        state_transfer.tries += 1;
        for (peer, progress) in &state_transfer.members {
            if let Progress::After(after) = progress {
                cx.send(*peer, Message::Fetch { after: after.clone() });
            }
        }
        let again = cx.now() + self.state.config.round_trip_worst / 2;
        cx.set_timer(Timer::Join, again);
        self.settle(cx);
    }

    /// Who has waited for a lease and votes no longer wants to know: its votes may be others' by now.
    fn end_joining(&mut self, cx: Cx<'_, '_, R>) {
        if self.votes(cx) {
            self.state_transfer = None;
        }
    }

    /// A newcomer asks which votes are out. Who does not know that itself has nothing to say.
    pub(super) fn on_fetch(&mut self, cx: Cx<'_, '_, R>, from: PeerId, after: Option<Name>) {
        if !cx.hosting.asks_others() {
            return cx.note(Note::Malformed);
        }
        let knows = self.votes(cx) || self.state.breaks(Mutant::AnswersThoughItWaits);
        if self.state_transfer.is_some() || !knows {
            return;
        }
        let now = cx.now();
        let begin =
            after.as_ref().map_or(Bound::Unbounded, |name| Bound::Excluded(inspect::beyond(name)));
        let mut rest = self.replicas.range((begin, Bound::Unbounded)).peekable();
        let hushes = self.state.breaks(Mutant::HushesUpAbstentions);
        let (mut names, mut owners) = (Vec::new(), 0);
        while names.len() < VOTES_PAGE_MAX
            && let Some((id, replica)) = rest.next_if(|(_, replica)| {
                owners == 0 || owners + replica.owners.len() <= OWNERS_PER_PAGE_MAX
            })
        {
            owners += replica.owners.len();
            names.push(VotesOn {
                name: id.name.clone(),
                owners: replica.owners.iter().map(super::handing::handed).collect(),
                tokens: replica.tokens.clone(),
                abstains_for: replica.abstain_until.since(if hushes {
                    LocalTime::NEVER
                } else {
                    now
                }),
            });
        }
        let (more, floor) = (rest.peek().is_some(), self.state.floor);
        cx.send(from, Message::Votes(Box::new(Votes { after, names, more, floor })));
    }

    pub(super) fn on_votes(&mut self, cx: Cx<'_, '_, R>, from: PeerId, votes: Votes) {
        self.end_joining(cx);
        let (config, Some(state_transfer)) = (&self.state.config, &mut self.state_transfer) else {
            return;
        };
        if !votes.names.iter().all(|on| is_sane(config, on)) || votes.names.len() > VOTES_PAGE_MAX {
            return cx.note(Note::Malformed);
        }
        match state_transfer.members.get(&from) {
            Some(Progress::After(after)) if *after == votes.after => {}
            _ => return cx.note(Note::StaleResponse),
        }
        let last = votes.names.last().map(|on| on.name.clone());
        let progress = match last.filter(|_| votes.more) {
            Some(name) => {
                cx.send(from, Message::Fetch { after: Some(name.clone()) });
                Progress::After(Some(name))
            }
            None => Progress::Done,
        };
        state_transfer.members.insert(from, progress);
        if state_transfer.names.len() + votes.names.len() > config.limits.replicas_max {
            // More than it can host: it waits instead.
            self.state_transfer = None;
            return cx.note(Note::TooManyReplicas);
        }
        votes.names.into_iter().for_each(|on| state_transfer.note(on));
        self.raise_floor(cx, votes.floor);
        self.settle(cx);
    }

    /// If enough have answered, takes on the votes of those who may have won.
    fn settle(&mut self, cx: Cx<'_, '_, R>) {
        let Some(state_transfer) = &self.state_transfer else { return };
        let blindly = self.state.breaks(Mutant::SettlesWithoutAsking);
        let Some(unseen) = state_transfer.unseen().or(blindly.then_some(0)) else { return };
        let unseen = if self.state.breaks(Mutant::IgnoresTheUnseen) { 0 } else { unseen };
        let wins = Quorum::of_view(state_transfer.members.len()).m();
        let Some(state_transfer) = self.state_transfer.take() else {
            return debug_assert!(false, "it was there a moment ago");
        };
        cx.cancel_timer(Timer::Join);
        let mine = |name: &Name| {
            let seats = cx.hosting.seats(name).into_iter();
            let mut replicas = seats.map(|index| ReplicaId { name: name.clone(), index });
            replicas.find(|id| cx.hosting.host_of(id) == Some(self.state.me))
        };
        let hosted = state_transfer.names.into_iter();
        let hosted: Vec<_> =
            hosted.filter_map(|(name, promised)| Some((mine(&name)?, promised))).collect();
        let new = hosted.iter().filter(|(id, _)| !self.replicas.contains_key(id)).count();
        let fits = self.replicas.len() + new <= self.state.config.limits.replicas_max;
        if !fits && !self.state.breaks(Mutant::TakesOnWhatFits) {
            // Users were faster, and there is no room for all. It waits instead, and has said nothing: restarted, it would
            // not know.
            return cx.note(Note::TooManyReplicas);
        }
        for (id, promised) in hosted {
            let Promised { owners, tokens, abstains_for } = promised;
            let may_have_won = |(_, votes): &&(HandedVote, usize)| votes + unseen >= wins;
            let winners = owners.iter().filter(may_have_won);
            let winners: Vec<HandedVote> = winners.map(|(owner, _)| *owner).collect();
            if !self.make(cx, &id) {
                return cx.note(Note::TooManyReplicas);
            }
            if let Some(replica) = self.replicas.get_mut(&id) {
                replica.take_on(&mut self.state, cx, &winners, &tokens, abstains_for);
            }
        }
        self.settled = state_transfer.view;
    }

    /// Whether this host may vote, as far as that does not depend on the name.
    fn votes(&self, cx: Cx<'_, '_, R>) -> bool {
        cx.may_vote() && self.state.abstain_until <= cx.now()
    }
}

fn is_sane(config: &Config<impl Rules>, on: &VotesOn) -> bool {
    let lease = |ttl: Span| ttl > Span::ZERO && ttl <= config.lease_max;
    on.owners.len() <= OWNERS_MAX
        && on.abstains_for <= config.lease_max
        && on.owners.iter().all(|owner| lease(owner.ttl) && lease(owner.vote.lease.ttl))
        && Mode::all_share(on.owners.iter().map(|owner| owner.ticket.mode))
}
