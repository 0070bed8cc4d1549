//! The libp2p swarm of a peer: what it is made of.

use std::time::Duration;

use libp2p::connection_limits::{self, ConnectionLimits};
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::dummy::DummyTransport;
use libp2p::core::transport::timeout::TransportTimeout;
use libp2p::core::transport::{Boxed, Transport as _};
use libp2p::core::upgrade::Version;
use libp2p::kad::store::MemoryStore;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{
    Multiaddr, PeerId as NetworkId, StreamProtocol, Swarm, dcutr, dns, identify, kad, mdns, noise,
    ping, quic, relay, tcp, yamux,
};
use rustix::process::{Resource, getrlimit};

use super::StartError;
use super::gate::Gate;
use super::limits::{
    CONNECT_MAX, CONNECT_QUIC_MAX, CONNECTIONS_IN_MAX, CONNECTIONS_PENDING_MAX,
    CONNECTIONS_PER_PEER_MAX, HANDSHAKE_MAX, LOOK_UP_MAX, PING_EVERY, RELAYED_BYTES_MAX,
    RELAYED_MAX,
};
use super::streams;
use crate::config::Config;
use crate::identity::Identity;
use crate::link::Role;

/// Sessions keep connections alive, and their heartbeats end them; libp2p's own idea of an idle
/// connection must not.
const LIBP2P_IDLE: Duration = Duration::from_secs(3_600);

/// What runs on the swarm.
#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p::swarm::derive_prelude")]
pub(crate) struct Behaviour {
    pub(crate) limits: connection_limits::Behaviour,
    pub(crate) streams: streams::Behaviour,
    pub(crate) kad: Gate<kad::Behaviour<MemoryStore>>,
    pub(crate) identify: identify::Behaviour,
    pub(crate) ping: ping::Behaviour,
    pub(crate) mdns: Toggle<mdns::tokio::Behaviour>,
    pub(crate) relay_client: Toggle<relay::client::Behaviour>,
    pub(crate) relay_server: Toggle<Gate<relay::Behaviour>>,
    pub(crate) dcutr: Toggle<dcutr::Behaviour>,
}

/// Makes the swarm; it listens nowhere yet.
pub(crate) fn build(config: &Config, identity: &Identity) -> Result<Swarm<Behaviour>, StartError> {
    let network = identity.network_id();
    let (transport, relay_client) = transport(config, identity)?;
    let behaviour = Behaviour {
        limits: connection_limits::Behaviour::new(limits()),
        streams: streams::Behaviour::default(),
        kad: Gate::new(kademlia(network, config.role)),
        identify: identify::Behaviour::new(
            identify::Config::new("/sigmalock/1".into(), identity.keypair().public())
                .with_agent_version(concat!("sigmalock/", env!("CARGO_PKG_VERSION")).into())
                .with_hide_listen_addrs(!config.advertise.is_empty()),
        ),
        ping: ping::Behaviour::new(ping::Config::new().with_interval(PING_EVERY)),
        mdns: local_discovery(config, network).into(),
        relay_server: (relay_client.is_some() && config.role == Role::Host)
            .then(|| Gate::new(relay::Behaviour::new(network, relaying())))
            .into(),
        dcutr: relay_client.as_ref().map(|_| dcutr::Behaviour::new(network)).into(),
        relay_client: relay_client.into(),
    };
    let settings =
        libp2p::swarm::Config::with_tokio_executor().with_idle_connection_timeout(LIBP2P_IDLE);
    Ok(Swarm::new(transport, behaviour, network, settings))
}

/// Sessions last, so that what libp2p thinks is enough for a relayed connection is not.
fn relaying() -> relay::Config {
    relay::Config {
        max_circuit_duration: RELAYED_MAX,
        max_circuit_bytes: RELAYED_BYTES_MAX,
        ..relay::Config::default()
    }
}

/// Whoever reaches the port may connect, and must leave descriptors for others: an eighth of all is enough.
fn limits() -> ConnectionLimits {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 8;
    let files = u32::try_from(files).unwrap_or(u32::MAX);
    ConnectionLimits::default()
        .with_max_pending_incoming(Some(CONNECTIONS_PENDING_MAX.min(files / 2)))
        .with_max_pending_outgoing(Some(CONNECTIONS_PENDING_MAX))
        .with_max_established_incoming(Some(CONNECTIONS_IN_MAX.min(files)))
        .with_max_established_per_peer(Some(CONNECTIONS_PER_PEER_MAX))
}

/// Kademlia under a name of our own, so that swarms never mix with public networks. Only the hub adds
/// peers to its table, when they have proved to belong here.
fn kademlia(network: NetworkId, role: Role) -> kad::Behaviour<MemoryStore> {
    let mut config = kad::Config::new(StreamProtocol::new("/sigmalock/kad/1"));
    config
        .set_kbucket_inserts(kad::BucketInserts::Manual)
        .set_record_filtering(kad::StoreInserts::FilterBoth)
        .set_periodic_bootstrap_interval(None)
        .set_query_timeout(LOOK_UP_MAX);
    let mut kad = kad::Behaviour::with_config(network, MemoryStore::new(network), config);
    kad.set_mode(Some(match role {
        Role::Host => kad::Mode::Server,
        Role::ClientOnly => kad::Mode::Client,
    }));
    kad
}

fn local_discovery(config: &Config, network: NetworkId) -> Option<mdns::tokio::Behaviour> {
    if !config.mdns {
        return None;
    }
    mdns::tokio::Behaviour::new(mdns::Config::default(), network)
        .inspect_err(|error| {
            tracing::warn!("peers on the local network are not looked for: {error}");
        })
        .ok()
}

/// Whether this system says how names are looked up.
fn resolves() -> bool {
    dns::tokio::Transport::system(DummyTransport::<()>::new()).is_ok()
}

type Muxed = Boxed<(NetworkId, StreamMuxerBox)>;

/// TCP, and the rest only for those who need it: each costs memory.
fn transport(
    config: &Config, identity: &Identity,
) -> Result<(Muxed, Option<relay::client::Behaviour>), StartError> {
    let keypair = identity.keypair();
    let noise =
        || noise::Config::new(keypair).map_err(|error| StartError::Noise(error.to_string()));
    let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
    let mut transport = TransportTimeout::with_outgoing_timeout(tcp, CONNECT_MAX)
        .upgrade(Version::V1Lazy)
        .authenticate(noise()?)
        .multiplex(yamux::Config::default())
        .timeout(HANDSHAKE_MAX)
        .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)))
        .boxed();
    let uses = |protocol: fn(&Protocol<'_>) -> bool| {
        let addresses = config.listen.iter().chain(&config.join);
        addresses.flat_map(Multiaddr::iter).any(|part| protocol(&part))
    };
    if uses(|part| matches!(part, Protocol::QuicV1)) {
        let mut settings = quic::Config::new(keypair);
        settings.handshake_timeout = HANDSHAKE_MAX;
        let quic = quic::tokio::Transport::new(settings);
        transport = transport
            .or_transport(TransportTimeout::with_outgoing_timeout(quic, CONNECT_QUIC_MAX))
            .map(|either, _| match either {
                futures::future::Either::Left(muxed) => muxed,
                futures::future::Either::Right((peer, muxer)) => (peer, StreamMuxerBox::new(muxer)),
            })
            .boxed();
    }
    let mut client = None;
    if config.relay {
        let (relayed, behaviour) = relay::client::new(identity.network_id());
        client = Some(behaviour);
        let relayed = relayed
            .upgrade(Version::V1Lazy)
            .authenticate(noise()?)
            .multiplex(yamux::Config::default())
            .timeout(HANDSHAKE_MAX)
            .map(|(peer, muxer), _| (peer, StreamMuxerBox::new(muxer)));
        // Relayed addresses first: TCP would take them for its own.
        transport = relayed.or_transport(transport).map(|either, _| either.into_inner()).boxed();
    }
    let needs_dns = uses(|part| {
        matches!(
            part,
            Protocol::Dns(_) | Protocol::Dns4(_) | Protocol::Dns6(_) | Protocol::Dnsaddr(_)
        )
    });
    // In a swarm of several machines others may advertise host names.
    if needs_dns || (!config.is_private() && resolves()) {
        transport = dns::tokio::Transport::system(transport).map_err(StartError::Dns)?.boxed();
    }
    Ok((transport, client))
}
