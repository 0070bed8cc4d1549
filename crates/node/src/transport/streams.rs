//! Bare streams on connections that exist: a behaviour of libp2p that does nothing else.
//!
//! Streams are opened on one named connection, never by dialing, and none that arrives is lost: it
//! waits in its connection until the swarm's task has taken it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll, Waker};

use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::{InboundUpgrade, OutboundUpgrade, UpgradeInfo};
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::handler::{
    ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, StreamUpgradeError, SubstreamProtocol, THandler,
    THandlerInEvent, THandlerOutEvent, ToSwarm,
};
use libp2p::{PeerId as NetworkId, Stream, StreamProtocol};

use super::limits::OPEN_MAX;

/// Streams that one connection may have waiting for the swarm's task; more are closed.
const ARRIVED_MAX: usize = 8;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A session.
    Session,
    /// Echoes.
    Echo,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Session, Self::Echo];

    const fn protocol(self) -> StreamProtocol {
        StreamProtocol::new(match self {
            Self::Session => "/sigmalock/session/1",
            Self::Echo => "/sigmalock/echo/1",
        })
    }
}

/// A stream, or none.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The other side opened it.
    ByThem(Purpose, Stream),
    /// This side did.
    ByUs(Purpose, Stream),
    /// This side wanted to, and could not; `None`: the other does not know what that is.
    Failed(Purpose, Option<String>),
}

/// What the swarm is told.
#[derive(Debug)]
pub(crate) struct Event {
    /// With whom.
    pub(crate) peer: NetworkId,
    /// On which connection.
    pub(crate) connection: ConnectionId,
    /// What.
    pub(crate) opened: Opened,
}

/// The behaviour.
#[derive(Default)]
pub(crate) struct Behaviour {
    todo: VecDeque<ToSwarm<Event, Purpose>>,
    waker: Option<Waker>,
}

impl Behaviour {
    /// Opens a stream. An [`Event`] says how that went, unless the connection ends first.
    pub(crate) fn open(&mut self, peer: NetworkId, connection: ConnectionId, purpose: Purpose) {
        let handler = NotifyHandler::One(connection);
        self.todo.push_back(ToSwarm::NotifyHandler { peer_id: peer, handler, event: purpose });
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl NetworkBehaviour for Behaviour {
    type ConnectionHandler = Handler;
    type ToSwarm = Event;

    fn handle_established_inbound_connection(
        &mut self, _: ConnectionId, _: NetworkId, _: &Multiaddr, _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    fn handle_established_outbound_connection(
        &mut self, _: ConnectionId, _: NetworkId, _: &Multiaddr, _: Endpoint, _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(Handler::default())
    }

    fn on_swarm_event(&mut self, _: FromSwarm<'_>) {}

    fn on_connection_handler_event(
        &mut self, peer: NetworkId, connection: ConnectionId, opened: THandlerOutEvent<Self>,
    ) {
        self.todo.push_back(ToSwarm::GenerateEvent(Event { peer, connection, opened }));
    }

    fn poll(
        &mut self, cx: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        match self.todo.pop_front() {
            Some(event) => Poll::Ready(event),
            None => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The behaviour's part of one connection.
#[derive(Default)]
pub(crate) struct Handler {
    wanted: VecDeque<Purpose>,
    opened: VecDeque<Opened>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Purpose;
    type ToBehaviour = Opened;
    type InboundProtocol = Offer<2>;
    type OutboundProtocol = Offer<1>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Purpose;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        SubstreamProtocol::new(Offer(Purpose::ALL), ())
    }

    fn poll(
        &mut self, _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Offer<1>, Purpose, Opened>> {
        // What is pushed below comes from calls after which libp2p polls again.
        if let Some(opened) = self.opened.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(opened));
        }
        if let Some(purpose) = self.wanted.pop_front() {
            let protocol = SubstreamProtocol::new(Offer([purpose]), purpose).with_timeout(OPEN_MAX);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, purpose: Purpose) {
        self.wanted.push_back(purpose);
    }

    fn on_connection_event(&mut self, event: ConnectionEvent<'_, Offer<2>, Offer<1>, (), Purpose>) {
        let opened = match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound {
                protocol: (purpose, stream),
                ..
            }) if self.opened.len() < ARRIVED_MAX => Opened::ByThem(purpose, stream),
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound {
                protocol: (purpose, stream),
                ..
            }) => Opened::ByUs(purpose, stream),
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info, error }) => {
                Opened::Failed(info, why(&error))
            }
            _ => return,
        };
        self.opened.push_back(opened);
    }
}

fn why(error: &StreamUpgradeError<Infallible>) -> Option<String> {
    match error {
        StreamUpgradeError::NegotiationFailed => None,
        other => Some(other.to_string()),
    }
}

/// The protocols that may be spoken on a stream to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer<const N: usize>([Purpose; N]);

impl<const N: usize> UpgradeInfo for Offer<N> {
    type Info = StreamProtocol;
    type InfoIter = std::array::IntoIter<StreamProtocol, N>;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.map(Purpose::protocol).into_iter()
    }
}

impl<const N: usize> Offer<N> {
    fn chosen(&self, stream: Stream, protocol: &StreamProtocol) -> (Purpose, Stream) {
        let purpose = self.0.into_iter().find(|purpose| purpose.protocol() == *protocol);
        (purpose.unwrap_or(self.0[0]), stream)
    }
}

impl<const N: usize> InboundUpgrade<Stream> for Offer<N> {
    type Output = (Purpose, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, protocol: StreamProtocol) -> Self::Future {
        ready(Ok(self.chosen(stream, &protocol)))
    }
}

impl<const N: usize> OutboundUpgrade<Stream> for Offer<N> {
    type Output = (Purpose, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_outbound(self, stream: Stream, protocol: StreamProtocol) -> Self::Future {
        ready(Ok(self.chosen(stream, &protocol)))
    }
}
