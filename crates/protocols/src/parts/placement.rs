//! Who hosts what, where nobody decides it: a replica lives at the peer whose key is closest to its
//! own. Every peer goes by its own view of who is there; views differ for a while after every change.
//!
//! ```text
//!    keys  ──┬───────┬──────────────┬──────┬──   distance is XOR, as in Kademlia
//!            A       r              B      C     A hosts r; if A goes, B does; a newcomer between
//!                                                A and r would get it from A
//! ```
//!
//! Whoever gets to host a replica that it has no memory of must not vote before every vote that a former
//! host may have given has run out, unless that host has handed it over: [`Placement::inherited_until`].

use alloc::collections::BTreeMap;

use sha2::{Digest, Sha256};
use sigmalock_core::{Key, LocalTime, PeerId, ReplicaId, Span};

use super::zones::place_of_cell;

/// So many other peers are remembered. When there are more, those gone longest are forgotten; a newcomer
/// that finds nobody gone is not taken note of.
pub const PEERS_MAX: usize = 1 << 14;
/// Peers that were here so recently count when a peer asks itself whether it is cut off from most.
pub const KNOWN_FOR: Span = Span::from_secs(3_600);

/// One peer's view of who hosts what.
#[derive(Debug, Clone, Hash)]
pub struct Placement {
    me: PeerId,
    place: Place,
    hosts: bool,
    lease_max: Span,
    /// Views of two peers differ for no longer than this, as far as anybody counts on it.
    settle: Span,
    /// From then on this view is taken for complete.
    settled_at: LocalTime,
    /// Whether half of the known hosts or more are gone.
    cut_off: bool,
    /// How many hosts were here at about the same time, at most, and when last.
    peak: (usize, LocalTime),
    peers: BTreeMap<PeerId, Known>,
    /// If replicas are cells of the key space: how many there are.
    cells: Option<u16>,
}

/// Another peer.
#[derive(Debug, Clone, Copy, Hash)]
struct Known {
    place: Place,
    hosts: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Up { since: LocalTime },
    Gone { at: LocalTime, clean: bool },
}

impl State {
    const fn is_up(self) -> bool {
        matches!(self, Self::Up { .. })
    }
    const fn changed_at(self) -> LocalTime {
        match self {
            Self::Up { since } => since,
            Self::Gone { at, .. } => at,
        }
    }
}

/// What a peer has handed over to this one in its present session, or when that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HandedOver {
    /// Nothing, as far as known.
    Nothing,
    /// Whatever was this peer's to host.
    Mine {
        /// From when on it vouches for those who hosted before it, on this peer's clock.
        from: LocalTime,
    },
    /// All it had: it has left.
    Everything {
        /// The same.
        from: LocalTime,
    },
}

impl Placement {
    /// The view of a peer that knows nobody yet. Without `hosts` it is a client only. `settle` is the
    /// longest that a view is expected to be wrong after a change: how long silence lasts until a peer is
    /// taken for gone, and then some.
    #[must_use]
    pub fn new(me: PeerId, key: Key, hosts: bool, lease_max: Span, settle: Span) -> Self {
        let (place, settled_at) = (place_of(&key), LocalTime::MIN);
        let peers = BTreeMap::new();
        let peak = (usize::from(hosts), LocalTime::MIN);
        let (cut_off, cells) = (false, None);
        Self { me, place, hosts, lease_max, settle, settled_at, cut_off, peak, peers, cells }
    }

    /// The same, but replicas are the cells of the key space, so that a peer's votes weigh its zone: see
    /// [`super::zones`].
    #[must_use]
    pub fn by_zone(mut self, cells: u16) -> Self {
        self.cells = Some(cells);
        self
    }

    fn place_of_replica(&self, replica: &ReplicaId) -> Place {
        place_of(&match self.cells {
            Some(cells) => place_of_cell(replica.index, cells),
            None => key_of(replica),
        })
    }

    /// This view may lack somebody: the peer is about to join a swarm, or has slept. Not needed by who
    /// founds one.
    pub fn unsettle(&mut self, now: LocalTime) {
        self.settled_at = self.settled_at.max(now + self.settle);
    }

    /// Somebody who is in the swarm, as far as an address book or whoever this peer joins through knows.
    /// Counts as gone since now, until there is a session.
    pub fn expect(&mut self, peer: PeerId, key: Key, hosts: bool, now: LocalTime) {
        let room = self.peers.len() < PEERS_MAX && peer != self.me;
        if room && !self.peers.contains_key(&peer) {
            let state = State::Gone { at: now, clean: false };
            self.peers.insert(peer, Known { place: place_of(&key), hosts, state });
            self.count(now);
        }
    }

    /// The swarm has at least so many hosts, as another peer says.
    pub fn at_least(&mut self, hosts: usize, now: LocalTime) {
        if hosts > self.peak.0 {
            self.peak = (hosts, now);
        }
        self.count(now);
    }

    /// Somebody who was in the swarm and has not been since then, as another peer says. Nobody who is here.
    pub fn mourn(&mut self, peer: PeerId, key: Key, at: LocalTime) {
        let room = self.peers.len() < PEERS_MAX && peer != self.me;
        if room && !self.peers.contains_key(&peer) {
            let state = State::Gone { at, clean: false };
            self.peers.insert(peer, Known { place: place_of(&key), hosts: true, state });
        }
    }

    /// The other hosts that are up.
    pub fn present(&self) -> impl Iterator<Item = (PeerId, Key)> {
        let up = self.hosts_known().filter(|(_, known)| known.state.is_up());
        up.map(|(id, known)| (id, key_at(&known.place)))
    }

    /// The hosts that went without good-bye, as long as votes of theirs may be out, and since when.
    pub fn lost(&self, now: LocalTime) -> impl Iterator<Item = (PeerId, Key, LocalTime)> {
        let hold = self.lease_max + self.settle;
        self.hosts_known().filter_map(move |(id, known)| match known.state {
            State::Gone { at, clean: false } if now.since(at) <= hold => {
                Some((id, key_at(&known.place), at))
            }
            _ => None,
        })
    }

    /// A session with this peer begins, perhaps not the first.
    pub fn up(&mut self, peer: PeerId, key: Key, hosts: bool, now: LocalTime) {
        if peer == self.me {
            return;
        }
        self.tick(now);
        if !self.peers.contains_key(&peer) && self.peers.len() >= PEERS_MAX && !self.make_room() {
            return;
        }
        let could_vote = self.may_vote();
        let state = State::Up { since: now };
        self.peers.insert(peer, Known { place: place_of(&key), hosts, state });
        self.count(now);
        if !could_vote && self.may_vote() {
            self.unsettle(now);
        }
    }

    /// The session with this peer is over; `clean` if it said good-bye.
    pub fn down(&mut self, peer: PeerId, now: LocalTime, clean: bool) {
        if let Some(known) = self.peers.get_mut(&peer)
            && known.state.is_up()
        {
            known.state = State::Gone { at: now, clean };
            self.peak.0 -= usize::from(clean && known.hosts).min(self.peak.0);
        }
        self.tick(now);
    }

    /// This peer is about to leave: it hosts nothing any more.
    pub fn leave(&mut self) {
        self.hosts = false;
        self.count(self.peak.1);
    }

    /// Forgets who has been gone for long. Good to call now and then.
    pub fn tick(&mut self, now: LocalTime) {
        let lease_max = self.lease_max + self.settle;
        self.peers.retain(|_, known| match known.state {
            State::Up { .. } => true,
            State::Gone { at, clean: true } => now.since(at) <= lease_max,
            State::Gone { at, clean: false } => now.since(at) <= lease_max.max(KNOWN_FOR),
        });
        self.count(now);
    }

    fn make_room(&mut self) -> bool {
        let gone = self.peers.iter().filter(|(_, known)| !known.state.is_up());
        let longest = gone.min_by_key(|(_, known)| known.state.changed_at()).map(|(id, _)| *id);
        longest.is_some_and(|id| self.peers.remove(&id).is_some())
    }

    /// The peer that hosts a replica: the closest one that is up.
    #[must_use]
    pub fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        let place = self.place_of_replica(replica);
        let me = self.hosts.then(|| (distance(&self.place, &place), self.me));
        let up = self.hosts_known().filter(|(_, known)| known.state.is_up());
        let others = up.map(|(id, known)| (distance(&known.place, &place), id));
        me.into_iter().chain(others).min().map(|(_, id)| id)
    }

    /// Until when somebody else may have a vote out for a replica that this peer hosts and has no memory
    /// of. Those closer to it than this peer have hosted it, and are gone; of those farther away the
    /// closest did, or vouches for those before it, if it was not this peer all the time.
    #[must_use]
    pub fn inherited_until(
        &self, replica: &ReplicaId, handed_over: &dyn Fn(PeerId) -> HandedOver,
    ) -> LocalTime {
        let place = self.place_of_replica(replica);
        let mine = distance(&self.place, &place);
        let mut until = self.settled_at;
        let mut next: Option<(Place, LocalTime)> = None;
        for (id, known) in self.hosts_known() {
            let theirs = distance(&known.place, &place);
            if theirs < mine && known.state.is_up() {
                continue;
            }
            let closer = theirs < mine;
            let end = self.word_of(known, closer, handed_over(id));
            if closer {
                until = until.max(end);
            } else if next.is_none_or(|(closest, _)| theirs < closest) {
                next = Some((theirs, end));
            }
        }
        next.map_or(until, |(_, end)| until.max(end))
    }

    /// Until when this peer cannot vouch, to another, for those who hosted before it. Who is gone does not
    /// matter here: drivers tell those they meet whom they have lost ([`Placement::lost`]), so that a
    /// newcomer waits for the votes of the dead only where they were. Of a peer that is up and has said
    /// nothing yet, only what it has handed over and is still under way matters: the rest it will hand to
    /// the other itself. (Were it waited for, peers that join together would wait for each other's word in
    /// a circle.)
    #[must_use]
    pub fn unsure_until(
        &self, asked_by: PeerId, handed_over: &dyn Fn(PeerId) -> HandedOver,
    ) -> LocalTime {
        let others = self.hosts_known().filter(|(id, _)| *id != asked_by);
        let ends = others.map(|(id, known)| match (known.state, handed_over(id)) {
            (State::Gone { .. }, _) => LocalTime::MIN,
            (State::Up { since }, HandedOver::Nothing) => since + self.settle,
            (State::Up { .. }, handed_over) => self.word_of(known, false, handed_over),
        });
        ends.fold(self.settled_at, LocalTime::max)
    }

    /// When the votes of a peer have run out, or are accounted for: `all` of them, or those for replicas
    /// that this peer is closer to.
    fn word_of(&self, known: &Known, all: bool, handed_over: HandedOver) -> LocalTime {
        let end = known.state.changed_at() + self.lease_max + self.settle;
        match handed_over {
            HandedOver::Everything { from } => end.min(from),
            HandedOver::Mine { from } if !all => end.min(from),
            HandedOver::Mine { .. } | HandedOver::Nothing => end,
        }
    }

    /// Whether more than half of the hosts known over the last hour are up, this peer among them. Who
    /// sees fewer may be cut off from a swarm that goes on without it. Where the dead are replaced by
    /// newcomers, no more count than were ever here at about the same time. Who has just gone is still
    /// counted: it may only be asleep, and wake up on the other side of a cut.
    #[must_use]
    pub const fn may_vote(&self) -> bool {
        !self.cut_off
    }

    fn count(&mut self, now: LocalTime) {
        let me = usize::from(self.hosts);
        let (mut up, mut here, mut known) = (me, me, me);
        let just_now = self.lease_max + self.settle;
        for (_, peer) in self.hosts_known() {
            match peer.state {
                State::Up { .. } => (up, here, known) = (up + 1, here + 1, known + 1),
                State::Gone { at, clean: false } => {
                    here += usize::from(now.since(at) <= just_now);
                    known += 1;
                }
                State::Gone { clean: true, .. } => {}
            }
        }
        if here >= self.peak.0 || now.since(self.peak.1) > KNOWN_FOR {
            self.peak = (here, now);
        }
        self.cut_off = 2 * up <= known.min(self.peak.0);
    }

    fn hosts_known(&self) -> impl Iterator<Item = (PeerId, &Known)> {
        self.peers.iter().filter(|(_, known)| known.hosts).map(|(id, known)| (*id, known))
    }
}

/// The place of a replica in the key space: the hash of its name as people write it, `NAME:i`.
#[must_use]
pub fn key_of(replica: &ReplicaId) -> Key {
    let mut digits = [0u8; 6];
    let mut at = digits.len();
    let mut number = u32::from(replica.index) + 1;
    while number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    at -= 1;
    digits[at] = b':';
    let hash = Sha256::new_with_prefix(replica.name.as_str()).chain_update(&digits[at..]);
    Key(hash.finalize().into())
}

/// A key, or how far two of them are apart, most significant part first.
type Place = [u64; 4];

fn place_of(key: &Key) -> Place {
    let part = |at: usize| {
        key.0[at * 8..at * 8 + 8].iter().fold(0, |part, byte| part << 8 | u64::from(*byte))
    };
    core::array::from_fn(part)
}

fn key_at(place: &Place) -> Key {
    let mut key = [0; 32];
    for (bytes, part) in key.chunks_mut(8).zip(place) {
        bytes.copy_from_slice(&part.to_be_bytes());
    }
    Key(key)
}

fn distance(a: &Place, b: &Place) -> Place {
    core::array::from_fn(|at| a[at] ^ b[at])
}

#[cfg(test)]
mod tests;
