//! One simulated peer: its life, clocks, timers, disk and mailbox.

use std::collections::{BTreeMap, VecDeque};

use sigmalock_core::{
    CallId, Effect, Incarnation, LocalTime, PeerId, Protocol, Surroundings, Timers, WallTime,
};

use crate::clock::{Clocks, PeerClocks};
use crate::history::TrueTime;
use crate::output::{Change, Output};
use crate::rng::Rng;
use crate::world::Packet;

#[derive(Clone)]
pub(crate) struct Peer<P: Protocol, D> {
    /// `None` while the peer is down.
    pub(crate) protocol: Option<P>,
    pub(crate) life: u32,
    pub(crate) incarnation: Incarnation,
    pub(crate) clocks: PeerClocks,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers<P::Timer>,
    pub(crate) alarm: Alarm,
    pub(crate) disk: Disk<P>,
    /// What waits for a disk that is slow, or about to fail.
    pub(crate) output: Option<Box<Output<P>>>,
    /// A copy of its disk, as it was at some time, or as another machine has gone on with it.
    pub(crate) shelf: Option<Disk<P>>,
    /// When the pause ends, if the peer stands still.
    pub(crate) paused_until: Option<TrueTime>,
    /// It is to crash between two effects, at the next chance.
    pub(crate) tears: Option<Tear>,
    pub(crate) mailbox: Vec<Mail>,
    /// What its users would have done during a pause.
    pub(crate) deferred: Vec<D>,
    pub(crate) calls_made: u64,
    /// Whose call is whose, for the calls under way.
    pub(crate) calls: Vec<(CallId, u32)>,
}

/// In the middle of what a peer is to crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tear {
    /// Of whatever takes several effects.
    Anything,
    /// Of what takes several records.
    Records,
}

impl Tear {
    fn is_due<P: Protocol>(self, effects: &[Effect<P>]) -> bool {
        let records = || effects.iter().filter(|effect| matches!(effect, Effect::Persist { .. }));
        match self {
            Self::Anything => effects.len() > 1,
            Self::Records => records().nth(1).is_some(),
        }
    }
}

/// What survives the lives of a peer.
pub(crate) struct Disk<P: Protocol> {
    pub(crate) records: BTreeMap<P::DurableKey, P::Durable>,
    /// How many were ever written.
    pub(crate) writes: u64,
    /// What the last ones overwrote, if it may be lost that they were written.
    pub(crate) undone: Option<VecDeque<Change<P>>>,
}

impl<P: Protocol> Default for Disk<P> {
    fn default() -> Self {
        Self { records: BTreeMap::new(), writes: 0, undone: None }
    }
}

impl<P: Protocol> Clone for Disk<P> {
    fn clone(&self) -> Self {
        Self { records: self.records.clone(), writes: self.writes, undone: self.undone.clone() }
    }
}

/// A message that waits for its receiver to wake up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mail {
    pub(crate) came: TrueTime,
    pub(crate) packet: Packet,
}

/// The one entry that a peer's timers have in the event queue: for the earliest of them. When that
/// moves, the entry is superseded by a new one with the next number, and the old one does nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alarm {
    pub(crate) set_for: LocalTime,
    pub(crate) number: u32,
}

impl Alarm {
    /// Whatever is in the queue is void.
    pub(crate) fn disarm(&mut self) {
        self.set_for = LocalTime::NEVER;
        self.number = self.number.wrapping_add(1);
    }
}

impl<P: Protocol, D> Peer<P, D> {
    pub(crate) fn new(id: PeerId, seed: u64, clocks: Clocks) -> Self {
        let mut rng = Rng::split(seed, id.0);
        let clocks = PeerClocks::draw(clocks, &mut rng);
        Self {
            protocol: None,
            life: 0,
            incarnation: Incarnation(0),
            clocks,
            rng,
            timers: Timers::new(),
            alarm: Alarm { set_for: LocalTime::NEVER, number: 0 },
            disk: Disk::default(),
            output: None,
            shelf: None,
            paused_until: None,
            tears: None,
            mailbox: Vec::new(),
            deferred: Vec::new(),
            calls_made: 0,
            calls: Vec::new(),
        }
    }

    /// How many records were ever written, those included that are about to be.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.disk.writes + self.output.as_ref().map_or(0, |output| output.pending())
    }

    /// Whether it crashes in the middle of this.
    #[inline]
    pub(crate) fn is_torn_by(&self, effects: &[Effect<P>]) -> bool {
        self.tears.is_some_and(|tear| tear.is_due(effects))
    }

    pub(crate) fn is_up(&self) -> bool {
        self.protocol.is_some()
    }

    /// A new life: clocks that have nothing to do with the old ones, and a number never used before.
    pub(crate) fn be_born(&mut self, scramble: bool, moves: bool) {
        if self.life > 0 {
            self.clocks.reboot(&mut self.rng);
        }
        self.life += 1;
        // Only equality of incarnations means anything, so they had better not come in order.
        let high = if scramble { self.rng.below(1 << 16) << 32 } else { 0 };
        self.incarnation = Incarnation(high | u64::from(self.life));
        if moves {
            // What one host numbers another one gets to see.
            self.incarnation = Incarnation(self.rng.bits());
        }
        // Calls are numbered within a life: what is late must not take a new call for an old one.
        self.calls_made = 0;
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        self.calls_made += 1;
        CallId(self.calls_made)
    }
}

/// What a peer sees around it during one input.
pub(crate) struct Around<'a> {
    pub(crate) wall: WallTime,
    pub(crate) rng: &'a mut Rng,
    pub(crate) written: u64,
}

impl Surroundings for Around<'_> {
    fn wall(&self) -> WallTime {
        self.wall
    }
    fn random(&mut self) -> u64 {
        self.rng.bits()
    }
    fn written(&self) -> u64 {
        self.written
    }
}
