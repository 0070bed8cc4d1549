//! What the hub knows of one peer, and of one address it was told to join.

use std::time::Duration;

use libp2p::swarm::ConnectionId;
use libp2p::{Multiaddr, PeerId as NetworkId};
use sigmalock_core::Incarnation;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::chance;
use super::limits::{
    ADDRESSES_MAX, IDLE_CONNECTION_MAX, JOIN_PAUSE, REDIAL_EVERY, REDIAL_FOR, REFUSED_PAUSE,
    SILENCE_MAX, SPARE_CONNECTION_MAX,
};
use super::record::Remote;
use super::session::Order;
use crate::link::{PeerInfo, SessionId};

/// Growing pauses.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) const fn new((first, most): (Duration, Duration)) -> Self {
        Self { next: first, most }
    }

    /// From now on no longer than this.
    fn at_most(&mut self, most: Duration) {
        self.most = most;
        self.next = self.next.min(most);
    }

    /// The next pause; between three quarters of it and all of it, so that peers do not march in step.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.most);
        pause.mul_f64(0.75 + chance() / 4.0)
    }
}

/// A connection with a peer.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) since: Instant,
    /// It has been told to end.
    pub(crate) closing: bool,
    /// It leaves this machine.
    pub(crate) far: bool,
    /// Its other end.
    pub(crate) remote: Remote,
    /// It goes by way of a relay.
    pub(crate) relayed: bool,
}

/// A session with a peer.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) session: SessionId,
    pub(crate) since: Instant,
    pub(crate) connection: ConnectionId,
    pub(crate) far: bool,
    pub(crate) info: PeerInfo,
    pub(crate) orders: mpsc::Sender<Order>,
}

/// How a peer is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// From one attempt to the next, at the longest.
    pub(crate) every_max: Duration,
    /// Not only for a while.
    pub(crate) for_ever: bool,
}

/// The wish to reach a peer.
#[derive(Debug)]
pub(crate) struct Redial {
    /// When the next attempt is due, if the last has failed by then.
    pub(crate) at: Instant,
    until: Instant,
    backoff: Backoff,
    /// Whether an attempt has failed.
    pub(crate) failed: bool,
}

impl Redial {
    /// At once, give or take so much.
    pub(crate) fn within(jitter: Duration) -> Self {
        let now = Instant::now();
        let at = now + jitter.mul_f64(chance());
        Self { at, until: now + REDIAL_FOR, backoff: Backoff::new(REDIAL_EVERY), failed: false }
    }

    /// An attempt begins, or would have; the next is counted from now, however long this one takes. False: it has been
    /// tried for long enough.
    pub(crate) fn again(&mut self, pace: Pace) -> bool {
        self.backoff.at_most(pace.every_max);
        self.at = Instant::now() + self.backoff.pause();
        pace.for_ever || self.at < self.until
    }

    /// No later than this pace has it.
    pub(crate) fn hurry(&mut self, pace: Pace) {
        self.at = self.at.min(Instant::now() + pace.every_max.mul_f64(chance()));
    }
}

/// A peer that was refused, or that refused us.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) until: Instant,
    backoff: Backoff,
    pub(crate) text: String,
    pub(crate) logged: Instant,
}

/// Another life of a peer that knocked while this session with it was open.
#[derive(Debug)]
pub(super) struct Knock {
    session: SessionId,
    incarnation: Incarnation,
    at: Instant,
}

/// A peer, with or without a session.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    pub(crate) addresses: Vec<Multiaddr>,
    pub(crate) connections: Vec<Connection>,
    /// Connections on which a handshake is under way.
    pub(crate) shaking: Vec<ConnectionId>,
    pub(crate) live: Option<Live>,
    pub(crate) redial: Option<Redial>,
    pub(crate) refused: Option<Refused>,
    pub(crate) dialing: bool,
    pub(super) knock: Option<Knock>,
    /// The last life that it had a session in, before that of the latest session.
    pub(crate) former: Option<Incarnation>,
    /// The life of the latest session.
    pub(crate) latest: Option<Incarnation>,
}

impl Contact {
    /// Nothing is lost by forgetting it.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.live.is_none() && self.redial.is_none() && !self.dialing
    }

    /// It has a session, or may soon have one.
    pub(crate) fn is_hopeful(&self) -> bool {
        let redial = self.redial.as_ref().is_some_and(|redial| !redial.failed);
        self.live.is_some() || self.dialing || redial
    }

    /// Adds an address, unless there are enough. Whether it was not known.
    pub(crate) fn learn(&mut self, address: Multiaddr) -> bool {
        let is_new = self.addresses.len() < ADDRESSES_MAX && !self.addresses.contains(&address);
        if is_new {
            self.addresses.push(address);
        }
        is_new
    }

    /// Not to be dialed, because of a refusal that is not long ago.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.until > Instant::now())
    }

    /// Remembers a refusal. True if it is worth telling people: a new one, or long ago.
    pub(crate) fn refuse(&mut self, text: &str, complain_every: Duration) -> bool {
        let now = Instant::now();
        let (mut backoff, heard) = match self.refused.take() {
            Some(old) => (old.backoff, (old.text == text).then_some(old.logged)),
            None => (Backoff::new(REFUSED_PAUSE), None),
        };
        let again = heard.filter(|logged| now < *logged + complain_every);
        let logged = again.unwrap_or(now);
        let until = now + backoff.pause();
        self.refused = Some(Refused { until, backoff, text: text.into(), logged });
        again.is_none()
    }

    /// Whether there is a session with another life of this peer. If that is over, the session ends soon; if it does
    /// not, or if the life that knocks was here before that one, two peers have one identity.
    pub(crate) fn twin(&mut self, incarnation: Incarnation) -> Option<Twin> {
        let live = self.live.as_ref().filter(|live| live.info.incarnation != incarnation)?;
        let (session, now) = (live.session, Instant::now());
        let same = |knock: &Knock| (knock.session, knock.incarnation) == (session, incarnation);
        let at = self.knock.take().filter(same).map_or(now, |knock| knock.at);
        self.knock = Some(Knock { session, incarnation, at });
        let both = now > at + SILENCE_MAX * 2 || self.former == Some(incarnation);
        Some(if both { Twin::Another } else { Twin::FormerSelf })
    }

    /// A connection for a session: if there is one already, another that came long after it was open, since whoever
    /// made that one knows nothing of it.
    pub(crate) fn connection_for_session(&self) -> Option<ConnectionId> {
        let late = |connection: &&Connection| {
            let since = self.live.as_ref().map(|live| live.since + SPARE_CONNECTION_MAX);
            since.is_none_or(|since| !connection.closing && connection.since > since)
        };
        let mut all = self.connections.iter().filter(late);
        let first = all.clone().next();
        all.find(|connection| !connection.relayed).or(first).map(|connection| connection.id)
    }

    /// Until when a connection may stay as it is; `None`: as long as it likes.
    pub(crate) fn connection_ends(&self, connection: &Connection) -> Option<Instant> {
        match &self.live {
            _ if connection.closing => None,
            Some(live) if live.connection == connection.id => None,
            Some(_) => Some(connection.since + SPARE_CONNECTION_MAX),
            None => Some(connection.since + IDLE_CONNECTION_MAX),
        }
    }

    /// When the hub has something to do about this peer.
    pub(crate) fn due(&self, may_dial: bool) -> Option<Instant> {
        let ends =
            self.connections.iter().filter_map(|connection| self.connection_ends(connection));
        let waits = may_dial && !self.dialing;
        let redial = self.redial.iter().filter(|_| waits).map(|redial| redial.at);
        ends.chain(redial).min()
    }
}

/// What people are told of [`Twin::Another`].
pub(crate) const TWIN: &str = "another peer has the same identity and is connected: they run with copies of one data \
                               directory, of which only one may run";

/// Whom there is a session with, if not with who knocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    /// It has been restarted, and the end of its session was not noticed yet; or not even that.
    FormerSelf,
    /// Both live.
    Another,
}

/// An address that this peer was told to join.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) address: Multiaddr,
    /// Whom it leads to, once that is known.
    pub(crate) network: Option<NetworkId>,
    /// When it is dialed next; `None`: not until there are no sessions at all.
    pub(crate) at: Option<Instant>,
    backoff: Backoff,
    /// The dial that is under way.
    pub(crate) dialing: Option<ConnectionId>,
    pub(crate) complained: Option<Instant>,
}

impl Join {
    pub(crate) fn new(address: Multiaddr) -> Self {
        // At a relay, the first is the relay's.
        let networks = address.iter().filter_map(|part| match part {
            libp2p::multiaddr::Protocol::P2p(network) => Some(network),
            _ => None,
        });
        let network = networks.last();
        let backoff = Backoff::new(JOIN_PAUSE);
        Self {
            address,
            network,
            at: Some(Instant::now()),
            backoff,
            dialing: None,
            complained: None,
        }
    }

    /// Once more, after a while.
    pub(crate) fn again(&mut self) {
        self.dialing = None;
        self.at = Some(Instant::now() + self.backoff.pause());
    }

    /// It has led to a session.
    pub(crate) fn rest(&mut self) {
        self.dialing = None;
        self.at = None;
        self.complained = None;
        self.backoff = Backoff::new(JOIN_PAUSE);
    }
}
