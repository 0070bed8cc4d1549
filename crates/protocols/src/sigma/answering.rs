//! What a replica says to those who ask for its vote.

use sigmalock_core::{Echo, LocalTime, Span};

use super::host::HostState;
use super::message::{Answer, Ask, Message, OtherNumber, Response, Ticket};
use super::queue::Waiter;
use super::replica::Replica;
use super::{Cx, Mutant, Note};
use crate::parts::Rules;

impl Replica {
    /// What REQUEST, YIELD and SEAL have in common: whoever asks is owner, or queued, and is told.
    pub(super) fn answer(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ask: &Ask,
    ) {
        if self.tombstones.contains(&ask.ticket.request) {
            return cx.note(Note::RequestOfTheDead);
        }
        let now = cx.now();
        let echo = Echo { sent: ask.sent, heard: now.stamp() };
        if state.breaks(Mutant::GrantsTwice) {
            self.owners.clear();
        }
        if self.owners.get(&ask.ticket).is_some() && !self.may_confirm(state, cx) {
            let wait = self.voting_at(state, cx).since(now).min(state.config.retry_max);
            let wait = wait.max(state.config.claim_window);
            let answer = Answer::Queued { owner: None, ahead: 0, turn: wait, wait, other: None };
            return self.send(state, cx, ask.ticket, echo, answer);
        }
        match self.owners.get_mut(&ask.ticket) {
            Some(owner) => owner.renew_by(echo, owner.vote.lease.ttl),
            None => {
                // Who has just given the vote back has a place, even if all others are taken.
                let room = state.config.limits.queue_len_max + usize::from(self.owners.is_empty());
                let (ticket, ttl) = (ask.ticket, ask.ttl);
                // The answer sets the expiry, once the place in the queue is known.
                let expires = LocalTime::NEVER;
                if !self.queue.insert(Waiter { ticket, ttl, echo, expires }, room) {
                    cx.note(Note::QueueFull);
                    let owner = self.owners.eldest_for(ticket.mode).map(|owner| owner.ticket);
                    let answer = Answer::Full { owner, wait: state.config.retry_max };
                    return self.send(state, cx, ask.ticket, echo, answer);
                }
                if ask.inside {
                    self.queue.prefer(ask.ticket);
                }
                self.pass_on(state, cx, Some(ask.ticket));
                self.recall_younger(state, cx, ask);
            }
        }
        self.respond(state, cx, ask.ticket);
        if state.breaks(Mutant::AnswersTwice) {
            self.respond(state, cx, ask.ticket);
        }
    }

    /// An older request waits here, or one that is inside already: owners that keep it waiting are asked to
    /// yield, unless they are inside. Asked again after a while, in case the message was lost.
    fn recall_younger(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ask: &Ask,
    ) {
        let (now, asker) = (cx.now(), ask.ticket);
        if self.owners.get(&asker).is_some() {
            return;
        }
        for owner in self.owners.iter_mut() {
            let due = owner.recalled_at.is_none_or(|at| now.since(at) >= state.config.claim_window);
            let later = owner.ticket > asker || ask.inside;
            if later && !owner.ticket.mode.shares_with(asker.mode) && due {
                owner.recalled_at = Some(now);
                cx.note(Note::Recalled);
                let (replica, ticket) = (self.id.clone(), owner.ticket);
                let grant = owner.vote.grant;
                cx.send(ticket.request.client, Message::Recall { replica, ticket, grant });
            }
        }
    }

    /// Who means another number of permits than this request, if the vote is out for such, or else if the
    /// first who waits for a permit does.
    fn other_number(&self, state: &HostState<impl Rules>, ticket: Ticket) -> Option<OtherNumber> {
        let mine = ticket.mode.permits().filter(|_| !state.breaks(Mutant::HushesUpNumbers))?;
        let first = self.owners.permit().or_else(|| self.queue.permit())?;
        let of = first.mode.permits().filter(|of| *of != mine)?;
        Some(OtherNumber { of, before_you: first < ticket })
    }

    /// Answers a message about a request with where it stands.
    fn respond(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket,
    ) {
        let (echo, answer) = match self.owners.get(&ticket) {
            Some(owner) => (owner.echo, Answer::Yours { vote: owner.vote, asked: true }),
            None => {
                let now = cx.now();
                let eldest = self.owners.eldest_for(ticket.mode);
                let age = eldest.map_or(Span::ZERO, |owner| now.since(owner.since));
                let owner = eldest.map(|owner| owner.ticket);
                let voting_at = self.voting_at(state, cx);
                self.wake_to_vote(state, cx);
                let other = self.other_number(state, ticket);
                let Some((place, before)) = self.queue.find(&ticket) else { return };
                // The paper's informed backoff: T_w = T_CS · (P + ½). An owner that has stayed longer
                // than the average is the better witness.
                let service = self.service.max(age.min(state.config.retry_max));
                let wait = state.config.ask_again_in(service, before as u64);
                let wait = wait.max(voting_at.since(now));
                let echo = self.queue.expect(place, now + wait * 2 + state.config.lease_max);
                let ahead = (before + self.owners.before(ticket.mode)) as u32;
                let turn = state.config.turn_in(service, before as u64);
                let turn = turn.max(voting_at.since(now));
                (echo, Answer::Queued { owner, ahead, turn, wait, other })
            }
        };
        self.save(state, cx);
        self.send(state, cx, ticket, echo, answer);
    }

    pub(super) fn send(
        &self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket,
        echo: Echo, answer: Answer,
    ) {
        state.responses += 1;
        let response = Response {
            replica: self.id.clone(),
            ticket,
            life: state.incarnation,
            sequence: state.responses,
            echo,
            clock: state.clock.latest(),
            answer,
        };
        cx.send(ticket.request.client, Message::Response(response));
    }
}
