//! What the hub does when libp2p says something.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use libp2p::core::ConnectedPoint;
use libp2p::kad::{self, QueryResult};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{PeerId as NetworkId, Stream, mdns};

use tokio::time::Instant;

use super::contact::{Connection, Redial};
use super::handshake::{Failure, Side};
use super::hub::Hub;
use super::limits::{ECHOES_MAX, LOOK_UP_PEERS};
use super::record::{Remote, is_loopback, reachable};
use super::session::Session;
use super::streams::{self, Opened, Purpose};
use super::swarm::BehaviourEvent;
use super::{echo, plain};

impl Hub {
    pub(super) fn on_swarm(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour(event),
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, .. } => {
                self.on_disconnected(peer_id, connection_id);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.on_dial_error(connection_id, peer_id, &error);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                tracing::debug!("a connection from {send_back_addr} failed: {}", plain(&error));
            }
            SwarmEvent::NewListenAddr { address, .. }
                if self.swarm.behaviour().relay_server.is_enabled()
                    && self.advertise.is_empty() =>
            {
                self.swarm.add_external_address(address);
            }
            SwarmEvent::ListenerError { error, .. } => {
                tracing::warn!("a listener has trouble: {error}");
            }
            SwarmEvent::ListenerClosed { listener_id, addresses, reason } => {
                if self.berths.iter_mut().any(|berth| berth.closed(listener_id)) {
                    return tracing::debug!("the relay does not take this peer in: {reason:?}");
                }
                tracing::warn!("no longer listening on {addresses:?}: {reason:?}");
            }
            _ => {}
        }
    }

    fn on_behaviour(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Streams(event) => self.on_stream(event),
            BehaviourEvent::Mdns(mdns::Event::Discovered(found)) => {
                for (network, address) in found {
                    self.learn(network, vec![address]);
                }
            }
            BehaviourEvent::Kad(kad::Event::OutboundQueryProgressed {
                id,
                result: QueryResult::GetClosestPeers(found),
                step,
                ..
            }) if step.last => {
                let peers = found.map_or_else(
                    |kad::GetClosestPeersError::Timeout { peers, .. }| peers,
                    |found| found.peers,
                );
                self.on_found(id, peers);
            }
            _ => {}
        }
    }

    fn on_connected(&mut self, network: NetworkId, id: ConnectionId, endpoint: &ConnectedPoint) {
        let address = endpoint.get_remote_address();
        let join = self.joins.iter_mut().find(|join| join.dialing == Some(id));
        if let Some(join) = join {
            join.network = Some(network);
            join.again();
        }
        let Some(contact) = self.contact(network) else {
            self.swarm.close_connection(id);
            return;
        };
        contact.dialing = false;
        if endpoint.is_dialer() {
            contact.learn(address.clone());
        }
        contact.connections.push(Connection {
            id,
            since: Instant::now(),
            closing: false,
            far: !is_loopback(address),
            remote: Remote { address: address.clone(), dialed: endpoint.is_dialer() },
            relayed: address.iter().any(|part| part == Protocol::P2pCircuit),
        });
        self.prefer_direct(network);
        self.consider(network);
    }

    /// A hole was punched: the session moves from the relay to the new connection.
    fn prefer_direct(&mut self, network: NetworkId) {
        let Some(contact) = self.contacts.get(&network) else { return };
        let Some(live) = &contact.live else { return };
        let relayed = contact.connections.iter().any(|c| c.id == live.connection && c.relayed);
        if relayed && contact.connections.iter().any(|connection| !connection.relayed) {
            self.swarm.close_connection(live.connection);
        }
    }

    fn on_disconnected(&mut self, network: NetworkId, id: ConnectionId) {
        self.measures.retain(|measure| measure.connection != id);
        let Some(contact) = self.contacts.get_mut(&network) else { return };
        contact.connections.retain(|connection| connection.id != id);
        contact.shaking.retain(|connection| *connection != id);
        // Of a session on it, its own task will tell.
        self.consider(network);
    }

    fn on_dial_error(&mut self, id: ConnectionId, network: Option<NetworkId>, error: &DialError) {
        if let Some(index) = self.joins.iter().position(|join| join.dialing == Some(id)) {
            self.join_failed(index, error);
        } else if let Some(network) = network {
            tracing::debug!(%network, "cannot be reached: {}", plain(error));
            self.dial_failed(network);
        }
    }

    fn on_stream(&mut self, event: streams::Event) {
        let streams::Event { peer, connection, opened } = event;
        match opened {
            Opened::ByUs(Purpose::Session, stream) => {
                self.begin(peer, connection, Side::Opener, stream);
            }
            Opened::ByThem(Purpose::Session, stream) => {
                let Some(contact) = self.contacts.get_mut(&peer) else { return };
                // The lower one opens, and one handshake at a time is enough for a connection.
                if self.me.network > peer && !contact.shaking.contains(&connection) {
                    contact.shaking.push(connection);
                    self.begin(peer, connection, Side::Accepter, stream);
                }
            }
            Opened::Failed(Purpose::Session, why) => {
                let failure = match why {
                    Some(error) => Failure::Io(io::Error::other(error)),
                    None => Failure::Refused(format!("{peer} is not a peer of sigmalock")),
                };
                self.on_failed(connection, peer, failure);
            }
            Opened::ByThem(Purpose::Echo, stream) => {
                let admitted =
                    self.contacts.get(&peer).is_some_and(|contact| contact.live.is_some());
                if admitted && self.echoes.len() < ECHOES_MAX {
                    self.echoes.spawn(echo::serve(stream));
                }
            }
            Opened::ByUs(Purpose::Echo, stream) => {
                if let Some(measure) = self.take_measure(connection) {
                    self.tasks.spawn(async move {
                        let times = echo::measure(stream, measure.rounds).await;
                        let _ = measure.done.send(times);
                    });
                }
            }
            Opened::Failed(Purpose::Echo, why) => {
                if let Some(measure) = self.take_measure(connection) {
                    let _ = measure.done.send(Err(why.unwrap_or_else(|| "no echo there".into())));
                }
            }
        }
    }

    /// A stream for a session is there.
    fn begin(&mut self, network: NetworkId, connection: ConnectionId, side: Side, stream: Stream) {
        let Some(contact) = self.contacts.get(&network) else { return };
        let Some(over) = contact.connections.iter().find(|c| c.id == connection) else { return };
        let mine = self.told();
        let session = Session {
            me: Arc::clone(&self.me),
            network,
            connection,
            side,
            addresses: reachable(&mine, over.far),
            remote: over.remote.clone(),
            notes: self.note_sender.clone(),
            events: self.events.clone(),
            injection: self.injection,
        };
        self.tasks.spawn(session.run(stream));
    }

    /// Kademlia has found the peers closest to a place.
    fn on_found(&mut self, id: kad::QueryId, peers: Vec<kad::PeerInfo>) {
        let Some(index) = self.look_ups.iter().position(|l| l.query == Some(id)) else { return };
        let mut wanted = Vec::new();
        for peer in peers.into_iter().take(LOOK_UP_PEERS) {
            let network = peer.peer_id;
            if network == self.me.network {
                continue;
            }
            let Some(contact) = self.contact(network) else { continue };
            for address in peer.addrs {
                contact.learn(address);
            }
            if contact.live.is_none() && !contact.is_refused() {
                if contact.connections.is_empty() && !contact.dialing {
                    contact.redial = Some(Redial::within(Duration::ZERO));
                }
                wanted.push(network);
            }
        }
        let look_up = &mut self.look_ups[index];
        look_up.query = None;
        look_up.wanted = wanted;
        self.end_look_ups(Instant::now());
    }
}
