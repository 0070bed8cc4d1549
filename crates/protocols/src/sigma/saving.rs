//! What a replica writes down, and what it makes of that in its next life.

use alloc::vec::Vec;

use sigmalock_core::{Echo, Lease, LocalTime, Span, Token};

use super::host::HostState;
use super::message::{Ticket, Vote};
use super::owners::Owner;
use super::queue::Waiter;
use super::replica::Replica;
use super::tokens::Tokens;
use super::{Cx, Durable, DurableKey, Mutant};
use crate::parts::Rules;

/// A replica as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Saved {
    owners: Vec<(Ticket, Span, Token)>,
    tokens: Tokens,
    /// Whether it abstained. How much of that was left, nobody knows in a later life.
    abstains: bool,
}

impl Replica {
    /// Brings back what the disk knows. Restored votes run a full lease from now, because nobody knows how
    /// much of it was left; so does an abstention, for the longest.
    pub(super) fn restore(
        &mut self, state: &mut HostState<impl Rules>, now: LocalTime, saved: &Saved,
    ) {
        self.tokens = saved.tokens.clone();
        if saved.abstains && !state.breaks(Mutant::ForgetsAbstentions) {
            let longest = state.config.lease_max;
            let brief = state.breaks(Mutant::AbstainsBriefly);
            self.abstain_until = now + if brief { longest / 2 } else { longest };
        }
        if state.moves {
            // Somebody else may have hosted it since.
            self.tokens.doubt();
        }
        for &(ticket, ttl, proposal) in &saved.owners {
            self.owners.insert(Owner {
                ticket,
                ttl,
                vote: Vote {
                    grant: state.next_grant(),
                    lease: Lease { given: now.stamp(), ttl },
                    proposal,
                },
                // A true echo, if a useless one: the owner's clock read that long before this restart, so
                // what is computed from it ends too early, never too late.
                echo: Echo { sent: LocalTime::MIN, heard: now.stamp() },
                since: now,
                // Perhaps, perhaps not: so it counts.
                sealed: true,
                recalled_at: None,
                stale: state.moves,
            });
        }
    }

    /// Brings back a waiter that the disk knows. As with the owner, its echo is true and useless.
    pub(super) fn restore_waiter(
        &mut self, state: &HostState<impl Rules>, now: LocalTime, ticket: Ticket, ttl: Span,
    ) {
        if self.owners.get(&ticket).is_some() {
            return;
        }
        let echo = Echo { sent: LocalTime::MIN, heard: now.stamp() };
        let expires = now + state.config.retry_max * 2 + state.config.lease_max;
        self.queue.insert(Waiter { ticket, ttl, echo, expires }, state.config.limits.queue_len_max);
        // The disk knows.
        let _ = self.queue.take_unsaved().count();
    }

    /// Persists what a later life must know, before anything is sent that rests on it.
    pub(super) fn save(&mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        let on_disk = state.config.durable && !state.breaks(Mutant::NeverPersists);
        if core::mem::take(&mut self.dirty) && on_disk {
            let owners = self.owners.iter().map(|o| (o.ticket, o.ttl, o.vote.proposal)).collect();
            let abstains = self.abstain_until > cx.now();
            let saved = Saved { owners, tokens: self.tokens.clone(), abstains };
            cx.persist(DurableKey::Replica(self.id.clone()), Some(Durable::Replica(saved)));
        }
        for (ticket, ttl) in self.queue.take_unsaved() {
            if on_disk {
                let key = DurableKey::Waiter { replica: self.id.clone(), ticket };
                cx.persist(key, ttl.map(Durable::Waiter));
            }
        }
    }
}
