//! Which view others are at, as far as their messages say, and what that means for what they promise.
//!
//! Who is behind is told of the newer view, once; what it promised meanwhile is not heard, and it is asked
//! again when it has caught up. What somebody promises who is ahead is kept until this peer is there, too.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sigmalock_core::PeerId;

/// So many promises from later views are kept until this peer knows those; more are lost, and asked for again.
const EARLY_MAX: usize = 1_024;
/// So many peers are remembered. With one more all are forgotten, and told once more what they may know.
const PEERS_MAX: usize = 4_096;

/// What is known of one peer.
#[derive(Debug, Clone, Copy, Default)]
struct Whereabout {
    /// The newest view that it was heard in.
    newest: u64,
    /// At which view this peer was when it last said something about that.
    told_at: u64,
    /// Whether a promise of it was not heard, because it was at an earlier view.
    missed: bool,
}

/// What is known of all of them.
#[derive(Debug, Clone)]
pub(super) struct Whereabouts<M> {
    peers: BTreeMap<PeerId, Whereabout>,
    early: Vec<(PeerId, u64, M)>,
}

impl<M> Default for Whereabouts<M> {
    fn default() -> Self {
        Self { peers: BTreeMap::new(), early: Vec::new() }
    }
}

impl<M> Whereabouts<M> {
    /// A peer speaks, and says at which view it is. True if one of the two should be told of the
    /// other's view, and has not been. What comes late says nothing.
    pub(super) fn differs(&mut self, peer: PeerId, view: u64, mine: u64) -> bool {
        let known = self.of(peer);
        if view < known.newest || (view, mine) == (known.newest, known.told_at) {
            return false;
        }
        (known.newest, known.told_at) = (view, mine);
        view != mine
    }

    /// A peer has said to the views at which one it is: they tell who knows less.
    pub(super) fn note(&mut self, peer: PeerId, view: u64) {
        let known = self.of(peer);
        known.newest = known.newest.max(view);
    }

    fn of(&mut self, peer: PeerId) -> &mut Whereabout {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            self.peers.clear();
        }
        self.peers.entry(peer).or_default()
    }

    /// A promise of an earlier view was not heard. Who has moved on since has nothing to catch up with.
    pub(super) fn miss(&mut self, peer: PeerId, mine: u64) {
        if let Some(known) = self.peers.get_mut(&peer).filter(|known| known.newest < mine) {
            known.missed = true;
        }
    }

    /// A peer is at this one's view. True if a promise of it was missed, which may be asked for again.
    pub(super) fn catches_up(&mut self, peer: PeerId) -> bool {
        self.peers.get_mut(&peer).is_some_and(|known| core::mem::take(&mut known.missed))
    }

    /// Keeps a promise of a later view, if there is room.
    pub(super) fn keep(&mut self, from: PeerId, view: u64, message: M) {
        if self.early.len() < EARLY_MAX {
            self.early.push((from, view, message));
        }
    }

    /// This peer is at another view: nobody has missed anything in it, and what came too early may be heard now.
    pub(super) fn move_on(&mut self) -> Vec<(PeerId, u64, M)> {
        self.peers.values_mut().for_each(|known| known.missed = false);
        core::mem::take(&mut self.early)
    }

    /// A peer is gone; it may come back as another.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.peers.remove(&peer);
    }
}
