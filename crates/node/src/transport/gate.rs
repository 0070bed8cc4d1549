//! A gate before a behaviour of libp2p: on a connection with a peer that has not proved to belong to
//! the swarm, the behaviour neither answers nor asks. What it wants to ask waits until the peer is
//! admitted. So nobody learns from Kademlia who is in the swarm, nor is relayed, without knowing its secret.

use std::collections::{BTreeSet, VecDeque};
use std::task::{Context, Poll, Waker};

use futures::future::Either as FutureEither;
use libp2p::PeerId as NetworkId;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::DeniedUpgrade;
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::derive_prelude::Either;
use libp2p::swarm::handler::{
    ConnectionEvent, FullyNegotiatedInbound, ListenUpgradeError, SendWrapper,
};
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm,
    NetworkBehaviour, NotifyHandler, SubstreamProtocol, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};

/// A behaviour behind the gate.
pub(crate) struct Gate<B> {
    /// The behaviour.
    pub(crate) inner: B,
    admitted: BTreeSet<NetworkId>,
    opening: VecDeque<(NetworkId, ConnectionId)>,
    waker: Option<Waker>,
}

impl<B> Gate<B> {
    pub(crate) fn new(inner: B) -> Self {
        Self { inner, admitted: BTreeSet::new(), opening: VecDeque::new(), waker: None }
    }

    /// Opens the gate for a peer: on these connections, and on those to come.
    pub(crate) fn admit(
        &mut self, network: NetworkId, connections: impl Iterator<Item = ConnectionId>,
    ) {
        self.admitted.insert(network);
        self.opening.extend(connections.map(|connection| (network, connection)));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Closes it for connections to come.
    pub(crate) fn dismiss(&mut self, network: &NetworkId) {
        self.admitted.remove(network);
    }
}

impl<B: NetworkBehaviour> NetworkBehaviour for Gate<B> {
    type ConnectionHandler = Gated<B::ConnectionHandler>;
    type ToSwarm = B::ToSwarm;

    fn handle_pending_inbound_connection(
        &mut self, connection: ConnectionId, local: &Multiaddr, remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        self.inner.handle_pending_inbound_connection(connection, local, remote)
    }

    fn handle_established_inbound_connection(
        &mut self, connection: ConnectionId, peer: NetworkId, local: &Multiaddr, remote: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner =
            self.inner.handle_established_inbound_connection(connection, peer, local, remote)?;
        Ok(Gated { inner, open: self.admitted.contains(&peer) })
    }

    fn handle_pending_outbound_connection(
        &mut self, connection: ConnectionId, peer: Option<NetworkId>, addresses: &[Multiaddr],
        role: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        self.inner.handle_pending_outbound_connection(connection, peer, addresses, role)
    }

    fn handle_established_outbound_connection(
        &mut self, connection: ConnectionId, peer: NetworkId, address: &Multiaddr, role: Endpoint,
        port: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        let inner = self
            .inner
            .handle_established_outbound_connection(connection, peer, address, role, port)?;
        Ok(Gated { inner, open: self.admitted.contains(&peer) })
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        self.inner.on_swarm_event(event);
    }

    fn on_connection_handler_event(
        &mut self, peer: NetworkId, connection: ConnectionId, event: THandlerOutEvent<Self>,
    ) {
        self.inner.on_connection_handler_event(peer, connection, event);
    }

    fn poll(
        &mut self, cx: &mut Context<'_>,
    ) -> Poll<ToSwarm<Self::ToSwarm, THandlerInEvent<Self>>> {
        if let Some((peer_id, connection)) = self.opening.pop_front() {
            let handler = NotifyHandler::One(connection);
            return Poll::Ready(ToSwarm::NotifyHandler { peer_id, handler, event: Word::Open });
        }
        self.waker = Some(cx.waker().clone());
        self.inner.poll(cx).map(|event| event.map_in(Word::Inner))
    }
}

/// What the gate tells a connection.
#[derive(Debug)]
pub(crate) enum Word<T> {
    /// The peer is admitted.
    Open,
    /// The behaviour's own.
    Inner(T),
}

/// One connection, with its gate.
pub(crate) struct Gated<H> {
    inner: H,
    open: bool,
}

/// What a closed gate speaks: nothing.
type Guarded<P> = Either<SendWrapper<P>, SendWrapper<DeniedUpgrade>>;

impl<H: ConnectionHandler> ConnectionHandler for Gated<H> {
    type FromBehaviour = Word<H::FromBehaviour>;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = Guarded<H::InboundProtocol>;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = H::InboundOpenInfo;
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol, Self::InboundOpenInfo> {
        self.inner.listen_protocol().map_upgrade(|protocol| {
            if self.open {
                Either::Left(SendWrapper(protocol))
            } else {
                Either::Right(SendWrapper(DeniedUpgrade))
            }
        })
    }

    fn connection_keep_alive(&self) -> bool {
        self.inner.connection_keep_alive()
    }

    fn poll(
        &mut self, cx: &mut Context<'_>,
    ) -> Poll<
        ConnectionHandlerEvent<Self::OutboundProtocol, Self::OutboundOpenInfo, Self::ToBehaviour>,
    > {
        // When the gate opens, libp2p polls again.
        if self.open { self.inner.poll(cx) } else { Poll::Pending }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::ToBehaviour>> {
        self.inner.poll_close(cx)
    }

    fn on_behaviour_event(&mut self, event: Self::FromBehaviour) {
        match event {
            Word::Open => self.open = true,
            Word::Inner(event) => self.inner.on_behaviour_event(event),
        }
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<
            '_,
            Self::InboundProtocol,
            Self::OutboundProtocol,
            Self::InboundOpenInfo,
            Self::OutboundOpenInfo,
        >,
    ) {
        self.inner.on_connection_event(match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info }) => {
                let protocol = match protocol {
                    FutureEither::Left(protocol) => protocol,
                    FutureEither::Right(never) => match never {},
                };
                ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, info })
            }
            ConnectionEvent::ListenUpgradeError(ListenUpgradeError { error, info }) => {
                let error = match error {
                    Either::Left(error) => error,
                    Either::Right(never) => match never {},
                };
                ConnectionEvent::ListenUpgradeError(ListenUpgradeError { error, info })
            }
            ConnectionEvent::FullyNegotiatedOutbound(event) => {
                ConnectionEvent::FullyNegotiatedOutbound(event)
            }
            ConnectionEvent::DialUpgradeError(event) => ConnectionEvent::DialUpgradeError(event),
            ConnectionEvent::AddressChange(event) => ConnectionEvent::AddressChange(event),
            ConnectionEvent::LocalProtocolsChange(event) => {
                ConnectionEvent::LocalProtocolsChange(event)
            }
            ConnectionEvent::RemoteProtocolsChange(event) => {
                ConnectionEvent::RemoteProtocolsChange(event)
            }
            // Of a libp2p to come.
            _ => return,
        });
    }
}
