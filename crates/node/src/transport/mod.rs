//! The transport: who is there. It finds peers, keeps one session to each, and notices when one is
//! gone.
//!
//! ```text
//!            ┌────────────────────────── hub ──────────────────────────┐
//!   driver ──► commands      contacts, redials, joins, look-ups        │
//!            └──┬───────────────────────┬──────────────────────────────┘
//!               │ swarm (libp2p)        │ notes ▲   ▼ orders
//!               └─► streams ─► session · session · session   (a task each)
//!   driver ◄──────── events ──────┘ └────── outbox ◄── driver
//! ```
//!
//! - `hub`: the one task that polls the swarm. It never waits for a session nor for the driver.
//! - `session`: from handshake to parting. Frames go from here to the driver and from the driver to
//!   here without passing the hub.
//! - `handshake`: versions, `terms`, and proofs that both know the swarm key.
//! - `swarm`: what libp2p is asked to run; `streams`: bare streams on its connections; `gate`: what
//!   keeps Kademlia and the relay from serving strangers; `berth`: being reached by way of a relay.
//! - `contact`, `record`: what is known of peers, and what is told of them; `search`: whom to look for.
//! - `limits`: every number.

mod berth;
mod commands;
mod contact;
mod echo;
mod gate;
mod handshake;
mod hub;
mod injection;
mod limits;
mod notes;
mod record;
mod search;
mod session;
mod streams;
mod swarm;
mod swarm_events;
mod terms;
#[cfg(test)]
pub(crate) mod tests;

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

use futures::StreamExt as _;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, Swarm};
use sigmalock_core::Incarnation;
use tokio::sync::mpsc;

use self::berth::Berth;
use self::limits::ADDRESSES_MAX;
pub(crate) use self::limits::JOIN_PAUSE_MAX;
use crate::config::Config;
use crate::identity::Identity;
use crate::link::{Command, EVENTS_MAX, Event, PeerInfo};
use crate::origin::Origin;

/// What a transport is made from.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// What the peer was told.
    pub(crate) config: &'a Config,
    /// Who it is.
    pub(crate) identity: &'a Identity,
    /// Its present life.
    pub(crate) incarnation: Incarnation,
    /// Which swarm it belongs to.
    pub(crate) origin: &'a Arc<Origin>,
}

/// A transport that runs. It ends after [`Command::Leave`], or when `commands` is dropped; `events`
/// then ends, too.
pub(crate) struct Started {
    /// What to do.
    pub(crate) commands: mpsc::Sender<Command>,
    /// What happened.
    pub(crate) events: mpsc::Receiver<Event>,
    /// This peer, with the addresses at which it listens.
    pub(crate) me: PeerInfo,
}

/// Why there is no transport. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What others could not dial.
    #[error(
        "{0} leads others nowhere: advertise an address and a port at which they reach this peer"
    )]
    Advertise(Multiaddr),
    /// More than others take note of.
    #[error("{0} addresses are advertised, and others take note of {ADDRESSES_MAX}")]
    AdvertiseMany(usize),
    /// An address that is taken, or not of this machine.
    #[error("cannot listen on {address}: {cause}; choose another address with --listen")]
    Listen {
        /// Which.
        address: Multiaddr,
        /// What the system says.
        cause: String,
    },
    /// The system's resolver cannot be used, and an address needs it.
    #[error("names in addresses cannot be looked up: {0}; use IP addresses")]
    Dns(io::Error),
    /// The key pair cannot be used for encryption.
    #[error("the peer's identity cannot be used: {0}")]
    Noise(String),
}

/// What others are told is of use.
pub(crate) fn check(config: &Config) -> Result<(), StartError> {
    if config.advertise.len() > ADDRESSES_MAX {
        return Err(StartError::AdvertiseMany(config.advertise.len()));
    }
    if let Some(nowhere) = config.advertise.iter().find(|address| !record::leads_somewhere(address))
    {
        return Err(StartError::Advertise(nowhere.clone()));
    }
    Ok(())
}

/// A transport that has its addresses. The system takes connections, and nobody answers them yet.
pub(crate) struct Listening {
    swarm: Swarm<swarm::Behaviour>,
}

/// Listens, on the current tokio runtime.
pub(crate) async fn listen(config: &Config, identity: &Identity) -> Result<Listening, StartError> {
    check(config)?;
    let mut swarm = swarm::build(config, identity)?;
    listen_at(&mut swarm, &config.listen).await?;
    Ok(Listening { swarm })
}

impl Listening {
    /// Begins.
    pub(crate) fn run(self, settings: Settings<'_>) -> Started {
        let Self { mut swarm } = self;
        let Settings { config, identity, incarnation, origin } = settings;
        let told: Vec<_> = match config.advertise.as_slice() {
            [] if swarm.behaviour().relay_server.is_enabled() => {
                swarm.listeners().cloned().collect()
            }
            advertised => advertised.to_vec(),
        };
        told.into_iter().for_each(|address| swarm.add_external_address(address));

        let (commands, command_receiver) = mpsc::channel(limits::COMMANDS_MAX);
        let (events, event_receiver) = mpsc::channel(EVENTS_MAX);
        let mut me = handshake::Me::new(config, identity.network_id(), incarnation);
        me.origin = Arc::clone(origin);
        let info = PeerInfo {
            peer: me.peer,
            network: me.network,
            key: identity.key(),
            role: me.role,
            incarnation,
            addresses: swarm.listeners().cloned().collect(),
            reached_at: None,
            name: config.name.clone(),
            origin: origin.get(),
        };
        let hub = hub::Hub::new(swarm, me, config, events);
        tokio::spawn(hub.run(command_receiver));
        Started { commands, events: event_receiver, me: info }
    }
}

/// Listens, and waits until each address is known to work. For those at a relay there must be a session with that first.
async fn listen_at(
    swarm: &mut Swarm<swarm::Behaviour>, addresses: &[Multiaddr],
) -> Result<(), StartError> {
    let mut waiting: Vec<(ListenerId, Multiaddr)> = Vec::new();
    for address in addresses {
        let failed = |cause: String| StartError::Listen { address: address.clone(), cause };
        if address.iter().any(|part| part == Protocol::P2pCircuit) {
            if Berth::new(address).is_none() {
                return Err(failed("it does not say who the relay is".to_owned()));
            }
            continue;
        }
        probe(address).map_err(|error| failed(error.to_string()))?;
        let id = swarm.listen_on(address.clone()).map_err(|error| failed(plain(&error)))?;
        waiting.push((id, address.clone()));
    }
    while !waiting.is_empty() {
        match swarm.select_next_some().await {
            SwarmEvent::NewListenAddr { listener_id, .. } => {
                waiting.retain(|(id, _)| *id != listener_id);
            }
            SwarmEvent::ListenerClosed { listener_id, reason, .. } => {
                if let Some((_, address)) = waiting.iter().find(|(id, _)| *id == listener_id) {
                    let cause = reason.err().map_or_else(|| "it closed".into(), |e| e.to_string());
                    return Err(StartError::Listen { address: address.clone(), cause });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether somebody has this TCP port already. libp2p would share it with a peer of the same user, and
/// connections would go to one or the other.
fn probe(address: &Multiaddr) -> io::Result<()> {
    let mut parts = address.iter();
    let ip: IpAddr = match parts.next() {
        Some(Protocol::Ip4(ip)) => ip.into(),
        Some(Protocol::Ip6(ip)) => ip.into(),
        _ => return Ok(()),
    };
    match parts.next() {
        Some(Protocol::Tcp(port)) if port > 0 => TcpListener::bind((ip, port)).map(drop),
        _ => Ok(()),
    }
}

/// An error of libp2p without its wrapping.
fn plain(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A number from 0 to 1. For jitter: where the system has no random numbers, it is always the same.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
}
