//! Finding the hosts of a name, where there are too many peers to know them all.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::task::Context;

use sigmalock_core::{Acquire, CallId, Name, PeerId, ReplicaId};
use tokio::sync::{mpsc, oneshot};

use crate::link::Command;

/// Names whose hosts have been found lately.
const FOUND_MAX: usize = 4_096;
/// Names whose hosts are being looked for; a wish for one more is asked at once, and goes by what is
/// known.
const SEEKING_MAX: usize = 256;

/// The names looked up, and those who wait for that.
#[derive(Debug)]
pub(crate) struct LookUps {
    mesh_max: usize,
    /// The hosts of a name when it was found; one of them gone, it is looked up anew.
    found: BTreeMap<Name, Vec<PeerId>>,
    oldest: VecDeque<Name>,
    seeking: BTreeMap<Name, Seeking>,
}

#[derive(Debug)]
struct Seeking {
    places: Vec<oneshot::Receiver<()>>,
    calls: Vec<(CallId, Acquire)>,
}

impl LookUps {
    pub(crate) const fn new(mesh_max: usize) -> Self {
        Self { mesh_max, found: BTreeMap::new(), oldest: VecDeque::new(), seeking: BTreeMap::new() }
    }

    /// Gives the wish back if it can be asked at once: everybody is known, or the hosts of this name are.
    pub(crate) fn begin(
        &mut self, id: CallId, wish: Acquire, n: usize, peers: usize,
        transport: &mpsc::Sender<Command>,
    ) -> Option<Acquire> {
        if peers < self.mesh_max || self.found.contains_key(&wish.name) {
            return Some(wish);
        }
        if let Some(seeking) = self.seeking.get_mut(&wish.name) {
            seeking.calls.push((id, wish));
            return None;
        }
        if self.seeking.len() >= SEEKING_MAX {
            return Some(wish);
        }
        let mut places = Vec::with_capacity(n);
        for index in 0..n as u16 {
            let (done, over) = oneshot::channel();
            let place = ReplicaId { name: wish.name.clone(), index }.to_string().into_bytes();
            if transport.try_send(Command::LookUp { place, done }).is_ok() {
                places.push(over);
            }
        }
        self.seeking.insert(wish.name.clone(), Seeking { places, calls: vec![(id, wish)] });
        None
    }

    /// The wishes whose hosts have been found by now; the task is woken when there are more.
    pub(crate) fn poll_found(&mut self, cx: &mut Context<'_>) -> Vec<(CallId, Acquire)> {
        let mut calls = Vec::new();
        self.seeking.retain(|_, seeking| {
            seeking.places.retain_mut(|place| Pin::new(place).poll(cx).is_pending());
            if seeking.places.is_empty() {
                calls.append(&mut seeking.calls);
            }
            !seeking.places.is_empty()
        });
        calls
    }

    /// These are the hosts of a name that was looked up.
    pub(crate) fn found(&mut self, name: &Name, hosts: Vec<PeerId>) {
        if self.found.insert(name.clone(), hosts).is_none() {
            self.oldest.push_back(name.clone());
        }
        while self.oldest.len() > FOUND_MAX {
            let Some(oldest) = self.oldest.pop_front() else { return };
            self.found.remove(&oldest);
        }
    }

    /// A peer has gone, and the names it hosted have moved.
    pub(crate) fn gone(&mut self, peer: PeerId) {
        if !self.found.is_empty() {
            self.found.retain(|_, hosts| !hosts.contains(&peer));
            self.oldest.retain(|name| self.found.contains_key(name));
        }
    }
}
