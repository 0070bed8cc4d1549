//! The peers there is a session with, and what is to be said to each.

use std::collections::BTreeMap;

use serde::Serialize;
use sigmalock_core::{LocalTime, PeerId};

use crate::link::{Outbox, PeerInfo, SessionId};
use crate::wire::{Frames, Kind};

/// Everybody this peer can talk to.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    peers: BTreeMap<PeerId, Peer>,
    /// Those with something in `frames`.
    spoken_to: Vec<PeerId>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) session: SessionId,
    pub(crate) info: PeerInfo,
    pub(crate) since: LocalTime,
    outbox: Outbox,
    frames: Frames,
}

/// Frames for a peer that may not leave yet.
#[derive(Debug)]
pub(crate) struct Letter {
    to: PeerId,
    session: SessionId,
    frames: Vec<u8>,
}

impl Letter {
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }
}

impl Peers {
    pub(crate) fn insert(
        &mut self, session: SessionId, info: PeerInfo, outbox: Outbox, now: LocalTime,
    ) {
        let peer = Peer { session, since: now, outbox, frames: Frames::new(), info };
        self.peers.insert(peer.info.peer, peer);
    }

    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<Peer> {
        self.peers.remove(&peer)
    }

    pub(crate) fn session(&self, peer: PeerId) -> Option<SessionId> {
        self.peers.get(&peer).map(|peer| peer.session)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PeerId, &Peer)> {
        self.peers.iter()
    }

    pub(crate) fn ids(&self) -> Vec<PeerId> {
        self.peers.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    /// Adds a protocol message to what goes to a peer. False if it cannot be reached, or the message is
    /// too long for any frame: the message is lost, as messages may be.
    pub(crate) fn say(&mut self, to: PeerId, message: &impl Serialize) -> bool {
        self.with(to, |frames| frames.push_message(message))
    }

    /// Adds a frame of another kind.
    pub(crate) fn tell(&mut self, to: PeerId, kind: Kind, body: &impl Serialize) -> bool {
        self.with(to, |frames| frames.push(kind, body))
    }

    fn with(&mut self, to: PeerId, then: impl FnOnce(&mut Frames) -> bool) -> bool {
        let Some(peer) = self.peers.get_mut(&to) else { return false };
        if peer.frames.is_empty() {
            self.spoken_to.push(to);
        }
        then(&mut peer.frames)
    }

    /// Whether anything has been said that was not taken.
    pub(crate) fn are_spoken_to(&self) -> bool {
        !self.spoken_to.is_empty()
    }

    /// Takes all that has been said, peer by peer.
    pub(crate) fn letters<'a>(&'a mut self) -> impl Iterator<Item = Letter> + use<'a> {
        let peers = &mut self.peers;
        self.spoken_to.drain(..).filter_map(move |to| {
            let peer = peers.get_mut(&to).filter(|peer| !peer.frames.is_empty())?;
            Some(Letter { to, session: peer.session, frames: peer.frames.take() })
        })
    }

    /// Hands a letter to the transport, unless the session it was written for is over.
    pub(crate) fn post(&self, letter: Letter) {
        if let Some(peer) = self.peers.get(&letter.to).filter(|peer| peer.session == letter.session)
        {
            // If it does not take the letter its session is about to end, and that will be heard of.
            let _ = peer.outbox.send(letter.frames);
        }
    }
}
