//! A gate before a behaviour of libp2p: on a connection with a peer that has not proved to belong to
//! the swarm, the behaviour neither answers nor asks. What it wants to ask waits until the peer is
//! admitted. So nobody learns from Kademlia who is in the swarm without knowing its secret.

use std::collections::{BTreeSet, VecDeque};
use std::task::{Context, Poll, Waker};

use libp2p::PeerId as NetworkId;
use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::DeniedUpgrade;
use libp2p::core::{Endpoint, Multiaddr};
use libp2p::swarm::derive_prelude::Either;
use libp2p::swarm::handler::{ConnectionEvent, InboundUpgradeSend};
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

impl<B, P> NetworkBehaviour for Gate<B>
where
    B: NetworkBehaviour,
    B::ConnectionHandler:
        ConnectionHandler<InboundProtocol = Either<P, DeniedUpgrade>, InboundOpenInfo = ()>,
    Either<P, DeniedUpgrade>: InboundUpgradeSend,
{
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

impl<H, P> ConnectionHandler for Gated<H>
where
    H: ConnectionHandler<InboundProtocol = Either<P, DeniedUpgrade>, InboundOpenInfo = ()>,
    Either<P, DeniedUpgrade>: InboundUpgradeSend,
{
    type FromBehaviour = Word<H::FromBehaviour>;
    type ToBehaviour = H::ToBehaviour;
    type InboundProtocol = H::InboundProtocol;
    type OutboundProtocol = H::OutboundProtocol;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = H::OutboundOpenInfo;

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        if self.open {
            self.inner.listen_protocol()
        } else {
            SubstreamProtocol::new(Either::Right(DeniedUpgrade), ())
        }
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
        self.inner.on_connection_event(event);
    }
}
