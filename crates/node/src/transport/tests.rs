//! Real sockets on loopback, many peers in one process.

mod advertising;
mod faults;
mod handshakes;
mod measure;
mod mesh;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libp2p::Multiaddr;
use libp2p::multiaddr::Protocol;
use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::{Settings, listen};
use crate::config::{Config, Membership};
use crate::identity::{Identity, new_incarnation};
use crate::key::SwarmKey;
use crate::link::{Command, Description, Event, Outbox, Parting, PeerInfo, Role, SessionId};

pub(crate) fn config(join: Vec<Multiaddr>) -> Config {
    let listen = vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()];
    Config { listen, join, mesh_max: 128, ..Config::new(key(), Membership::Open) }
}

/// One for all peers of these tests, save where they say otherwise.
pub(crate) fn key() -> SwarmKey {
    static KEY: OnceLock<SwarmKey> = OnceLock::new();
    KEY.get_or_init(|| SwarmKey::generate().unwrap()).clone()
}

/// A transport, and what its driver would know.
pub(super) struct Peer {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) me: PeerInfo,
    /// Sessions that are up.
    pub(super) up: Vec<(SessionId, PeerInfo, Outbox)>,
    /// Sessions that were.
    pub(super) down: Vec<(sigmalock_core::PeerId, Parting)>,
    /// How often it was said that another peer has its identity.
    pub(super) twins: u32,
}

impl Peer {
    pub(super) async fn start(config: &Config) -> Self {
        Self::start_as(config, &Identity::ephemeral()).await
    }

    pub(super) async fn start_as(config: &Config, identity: &Identity) -> Self {
        let incarnation = new_incarnation().unwrap();
        let settings = Settings { config, identity, incarnation, origin: &Arc::default() };
        let started = listen(config, identity).await.unwrap().run(settings);
        let super::Started { commands, events, me } = started;
        Self { commands, events, me, up: vec![], down: vec![], twins: 0 }
    }

    /// Where others can join it.
    pub(super) fn address(&self) -> Multiaddr {
        self.me.addresses[0].clone().with(Protocol::P2p(self.me.network))
    }

    /// The next event, which has been taken note of; `None` if the transport has ended.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        match &event {
            Event::Up { session, info, outbox } => {
                self.up.retain(|(_, other, _)| other.peer != info.peer);
                self.up.push((*session, PeerInfo::clone(info), outbox.clone()));
            }
            Event::Down { session, peer, parting } => {
                self.up.retain(|(other, ..)| other != session);
                self.down.push((*peer, *parting));
            }
            Event::Twin => self.twins += 1,
            Event::Kept(..) => {}
            Event::Frame { .. } => {}
        }
        Some(event)
    }

    /// Takes events until something is so, or the time is over.
    pub(super) async fn until(
        &mut self, limit: Duration, mut is_so: impl FnMut(&Self) -> bool,
    ) -> bool {
        let end = Instant::now() + limit;
        while !is_so(self) {
            let left = end.saturating_duration_since(Instant::now());
            match timeout(left, self.next()).await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return is_so(self),
            }
        }
        true
    }

    pub(super) async fn until_up(&mut self, peers: usize, limit: Duration) -> bool {
        self.until(limit, |peer| peer.up.len() == peers).await
    }

    /// What arrives in the next while, so that one can see that nothing does.
    pub(super) async fn idle(&mut self, time: Duration) {
        self.until(time, |_| false).await;
    }

    pub(super) async fn describe(&self) -> Description {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Describe(reply)).await.unwrap();
        answer.await.unwrap()
    }

    /// Waits for a refusal that says this, and returns it.
    pub(super) async fn refusal(&self, limit: Duration, says: &str) -> String {
        let end = Instant::now() + limit;
        loop {
            let refusals = self.describe().await.refusals;
            if let Some(found) = refusals.iter().find(|text| text.contains(says)) {
                return found.clone();
            }
            assert!(Instant::now() < end, "no refusal says {says:?}: {refusals:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
