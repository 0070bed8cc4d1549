//! Who uses a protocol: the users of its family, what they ask, and what goes on record of it.
//!
//! The engine ([`crate::world`]) knows peers, messages, clocks, disks and faults, and no family of protocols. A family
//! brings a crowd: a type that is all its users at once, and acts on the world it lives in. What it puts into the
//! history, the oracles of the family see.

use std::fmt;

use sigmalock_core::{CallId, Input, PeerId, Protocol};
use sigmalock_protocols::parts::Driven;

use crate::script::Action;
use crate::watch::Watch;
use crate::world::World;

/// All users of a run. What they do, they do through the world, at once: what comes of it happens before the rest of
/// what the protocol wanted.
pub(crate) trait Crowd<P: Driven>: Clone {
    /// What the queue keeps for them until its time comes.
    type Deed: Copy + fmt::Debug;

    /// Whether nobody wants anything any more: a healed world ends there.
    fn is_content(&self) -> bool;

    /// The run begins: those who are there from the beginning.
    fn gather<W: Watch>(world: &mut World<'_, P, Self, W>);

    /// The time of a deed has come. If its peer stands still, it is put off ([`crate::peer::Peer::deferred`]).
    fn act<W: Watch>(world: &mut World<'_, P, Self, W>, deed: Self::Deed);

    /// The script tells somebody to do something. What is not for users of this family does not happen.
    fn on_told<W: Watch>(world: &mut World<'_, P, Self, W>, action: &Action);

    /// A protocol answers.
    fn on_reply<W: Watch>(
        world: &mut World<'_, P, Self, W>, index: usize, call: CallId,
        reply: <P as Protocol>::Reply,
    );

    /// A peer has begun a life.
    fn on_start<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize);

    /// A peer has stopped.
    fn on_crash<W: Watch>(world: &mut World<'_, P, Self, W>, index: usize);

    /// The faults are over.
    fn on_healed<W: Watch>(world: &mut World<'_, P, Self, W>);

    /// A peer that is up is about to be given an input. For families whose oracles look at peers, not at users.
    #[inline]
    fn on_input<W: Watch>(_: &mut World<'_, P, Self, W>, _index: usize, _: &Input<P>) {}

    /// It has been given it, and has not stopped over it.
    #[inline]
    fn on_turn<W: Watch>(_: &mut World<'_, P, Self, W>, _index: usize) {}

    /// A message leaves a peer.
    #[inline]
    fn on_said<W: Watch>(
        _: &mut World<'_, P, Self, W>, _index: usize, _to: PeerId, _: &<P as Protocol>::Message,
    ) {
    }
}
