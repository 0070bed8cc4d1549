//! What a host knows of other peers, where hosting moves: who has handed over to it, and what it has yet
//! to hand over to them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sigmalock_core::{Incarnation, LocalTime, PeerId, ReplicaId, Span};

use super::message::{HandOff, Hello};
use crate::parts::HandedOver;
use crate::parts::placement::PEERS_MAX;

/// So many hand-offs to one peer are under way at once; the next one goes out when one is acknowledged.
const UNDER_WAY_MAX: usize = 256;

/// The peers that this one has, or had, sessions with; at most [`PEERS_MAX`]. One more is not greeted,
/// and gets nothing handed over.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Neighbours {
    peers: BTreeMap<PeerId, Neighbour>,
}

/// One of them.
#[derive(Debug, Clone, Hash)]
pub(super) struct Neighbour {
    pub(super) up: bool,
    /// Since when there is, or was, a session.
    pub(super) since: LocalTime,
    /// What it has handed over to this peer in that session.
    handed_over: HandedOver,
    /// Its latest greeting, which says which life of it things are handed to.
    pub(super) hello: Option<Hello>,
    /// Until when, as it was told, this peer cannot vouch for others.
    pub(super) told: LocalTime,
    /// What is its to host, and still here.
    pub(super) waiting: BTreeSet<ReplicaId>,
    /// What has been sent to it, and not been acknowledged.
    pub(super) under_way: BTreeMap<ReplicaId, Box<HandOff>>,
    /// How often it was reminded, since it last gave a sign.
    pub(super) tries: u8,
}

impl Neighbour {
    fn new() -> Self {
        Self {
            up: false,
            since: LocalTime::MIN,
            handed_over: HandedOver::Nothing,
            hello: None,
            told: LocalTime::MIN,
            waiting: BTreeSet::new(),
            under_way: BTreeMap::new(),
            tries: 0,
        }
    }

    /// A session begins: whatever was handed over in an earlier one may have changed hands since.
    pub(super) fn begin(&mut self, now: LocalTime) {
        (self.up, self.since, self.tries) = (true, now, 0);
        self.handed_over = HandedOver::Nothing;
    }

    pub(super) fn hears(&mut self, from: LocalTime, leaving: bool) {
        self.handed_over = match self.handed_over {
            HandedOver::Everything { .. } if !leaving => return,
            _ if leaving => HandedOver::Everything { from },
            HandedOver::Mine { from: before } => HandedOver::Mine { from: from.min(before) },
            _ => HandedOver::Mine { from },
        };
        self.tries = 0;
    }

    /// It has taken something over: if it had said that it is leaving and has nothing left, that is no
    /// longer so until it says it again.
    pub(super) fn takes_more(&mut self) {
        if let HandedOver::Everything { .. } = self.handed_over {
            self.handed_over = HandedOver::Nothing;
        }
    }

    pub(super) fn owes_word(&self) -> bool {
        self.handed_over == HandedOver::Nothing
    }

    /// The life that things can be handed to.
    pub(super) fn life(&self) -> Option<Incarnation> {
        self.hello.filter(|_| self.up).map(|hello| hello.life)
    }

    /// The next replica to hand over, if there is one and it is time.
    pub(super) fn next(&mut self) -> Option<ReplicaId> {
        if self.under_way.len() >= UNDER_WAY_MAX { None } else { self.waiting.pop_first() }
    }

    pub(super) fn has_all(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }
}

impl Neighbours {
    pub(super) fn get(&self, peer: PeerId) -> Option<&Neighbour> {
        self.peers.get(&peer)
    }
    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Neighbour> {
        self.peers.get_mut(&peer)
    }
    pub(super) fn ids(&self) -> Vec<PeerId> {
        self.peers.keys().copied().collect()
    }

    /// The neighbour of this id, who may be new. `None` if there are too many.
    pub(super) fn meet(&mut self, peer: PeerId) -> Option<&mut Neighbour> {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, known| known.up);
            if self.peers.len() >= PEERS_MAX {
                return None;
            }
        }
        Some(self.peers.entry(peer).or_insert_with(Neighbour::new))
    }

    /// Hand-offs that are not acknowledged yet.
    pub(super) fn under_way(&self) -> usize {
        self.peers.values().map(|known| known.under_way.len()).sum()
    }

    pub(super) fn handed_over_by(&self, peer: PeerId) -> HandedOver {
        self.peers.get(&peer).map_or(HandedOver::Nothing, |known| known.handed_over)
    }
}

/// How long to wait for a sign that was asked for so many times already.
pub(super) fn pace(round_trip: Span, tries: u8, max: Span) -> Span {
    (round_trip * 2 * (1 << tries.min(10))).min(max)
}
