//! Who hosts what: the replicas of a name, and the peers that keep them.
//!
//! A protocol that keeps replicas owns one of these, asks it, and does not know which it is:
//!
//! - [`Fixed`]: decided once and for all.
//! - [`Open`]: by hash among those who are there, as each peer sees it ([`super::Placement`]); hosts hand over
//!   what they have.
//! - [`ByView`]: by a membership that peers agree on ([`crate::agreed`]), which tells it of every view, and of
//!   the terms on which this peer is in.

mod by_view;
mod fixed;
mod open;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use sigmalock_core::{Context, LocalTime, Name, PeerId, Protocol, ReplicaId, View};

pub use by_view::{ByView, Terms, voters};
pub use fixed::Fixed;
pub use open::Open;

use super::placement::{HandedOver, Placement};

/// What a peer has handed over, as far as the protocol knows that asks.
pub type Word<'a> = &'a dyn Fn(PeerId) -> HandedOver;

/// How it is decided who hosts what.
pub trait Hosting: fmt::Debug + Send + Sync {
    /// The peer that hosts a replica, as far as this peer knows.
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId>;
    /// The replicas of a name, ascending.
    fn seats(&self, name: &Name) -> Vec<u16>;
    /// Whether there can be a replica of this index.
    fn has_replica(&self, index: u16) -> bool;

    /// Whether others may host tomorrow.
    fn moves(&self) -> bool {
        false
    }
    /// Whether hosts hand over what they have.
    fn hands_over(&self) -> bool {
        false
    }
    /// Whether who begins to host asks the others which promises are out.
    fn asks_others(&self) -> bool {
        false
    }

    /// Whether this peer may promise anything: it is not cut off, and one of those who may.
    fn may_vote(&self, _now: LocalTime) -> bool {
        true
    }
    /// Until when somebody else may have a promise out for a replica that this peer hosts and has no memory of: a
    /// former host that is gone, or one that has not yet handed its replicas over.
    fn inherited_until(&self, _replica: &ReplicaId, _handed_over: Word<'_>) -> LocalTime {
        LocalTime::MIN
    }
    /// Until when this peer cannot vouch, towards another, that whatever was hosted before it has run out or been
    /// handed over.
    fn unsure_until(&self, _asked_by: PeerId, _handed_over: Word<'_>) -> LocalTime {
        LocalTime::MIN
    }
    /// Until when it is certain that promises counted now are not passed over by a later membership.
    fn counts_until(&self) -> LocalTime {
        LocalTime::NEVER
    }

    /// Peers have agreed on another membership. False if that does not matter here.
    fn follow(&mut self, _view: &View) -> bool {
        false
    }
    /// This peer is in it on these terms from now on.
    fn stand(&mut self, _terms: Terms) {}
    /// This peer's own view of who is there, if it goes by one.
    fn placement(&self) -> Option<&Placement> {
        None
    }
    /// The same, for whoever sees peers come and go.
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        None
    }

    /// The same once more.
    fn copy(&self) -> Box<dyn Hosting>;
    /// What tells it from another one.
    fn digest(&self, state: &mut dyn Hasher);
}

impl Hash for Box<dyn Hosting> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest(state);
    }
}

impl Clone for Box<dyn Hosting> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

/// The world of a protocol that keeps replicas: what its driver lends it for one input, and who hosts what.
pub struct World<'a, P: Protocol> {
    context: Context<'a, P>,
    /// Who hosts what.
    pub hosting: &'a dyn Hosting,
}

impl<'a, P: Protocol> World<'a, P> {
    /// For one input.
    pub fn new(cx: &'a mut Context<'_, P>, hosting: &'a dyn Hosting) -> Self {
        Self { context: cx.reborrow(), hosting }
    }

    /// Whether this peer may promise anything.
    #[must_use]
    pub fn may_vote(&self) -> bool {
        self.hosting.may_vote(self.now())
    }
}

impl<'a, P: Protocol> Deref for World<'a, P> {
    type Target = Context<'a, P>;

    fn deref(&self) -> &Self::Target {
        &self.context
    }
}

impl<P: Protocol> DerefMut for World<'_, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.context
    }
}
