//! What the hub does when the driver wants something.

use libp2p::PeerId as NetworkId;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::ConnectionId;
use sigmalock_core::PeerId;
use std::num::NonZeroUsize;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::hub::{Hub, LookUp, Measure};
use super::limits::{ECHOES_MAX, GOODBYE_MAX, LOOK_UP_MAX, LOOK_UP_PEERS, LOOK_UPS_MAX};
use super::record::worth_telling;
use super::session::Order;
use super::streams::Purpose;
use crate::link::{Command, Description, Parting};

impl Hub {
    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::LookUp { place, done } => self.look_up(place, done),
            Command::Meet { peer, address } => self.learn(peer, vec![address]),
            Command::Seek(members) => self.seek(members),
            Command::Reset => {
                for live in self.contacts.values().filter_map(|contact| contact.live.as_ref()) {
                    let _ = live.orders.try_send(Order::End(Parting::Silent));
                    // In case that it is stuck and takes no orders.
                    self.swarm.close_connection(live.connection);
                }
            }
            Command::Expel(session) => {
                let live = self.contacts.values().filter_map(|contact| contact.live.as_ref());
                for live in live.filter(|live| live.session == session) {
                    let _ = live.orders.try_send(Order::End(Parting::Nonsense));
                }
            }
            Command::Measure { peer, rounds, done } => self.measure(peer, rounds, done),
            Command::Describe(reply) => {
                let _ = reply.send(self.describe());
            }
            // The loop has seen to it.
            Command::Leave => {}
        }
    }

    fn describe(&mut self) -> Description {
        let me = Protocol::P2p(self.me.network);
        let listening = self
            .swarm
            .listeners()
            .map(|address| match address.iter().last() {
                Some(Protocol::P2p(_)) => address.clone(),
                _ => address.clone().with(me.clone()),
            })
            .collect();
        let kad = &mut self.swarm.behaviour_mut().kad.inner;
        let table_len = kad.kbuckets().map(|bucket| bucket.num_entries()).sum();
        let advertised = worth_telling(&self.told());
        let refusals = self.refusals.iter().cloned().collect();
        Description { listening, advertised, refusals, table_len }
    }

    fn look_up(&mut self, place: Vec<u8>, done: oneshot::Sender<()>) {
        if self.look_ups.len() >= LOOK_UPS_MAX {
            let _ = done.send(());
            return;
        }
        let most = NonZeroUsize::new(LOOK_UP_PEERS).unwrap_or(NonZeroUsize::MIN);
        let query = self.swarm.behaviour_mut().kad.inner.get_n_closest_peers(place, most);
        let until = Instant::now() + LOOK_UP_MAX;
        self.look_ups.push(LookUp { query: Some(query), wanted: Vec::new(), until, done });
    }

    /// Nobody needs to wait for a session with this peer any longer.
    pub(super) fn not_wanted(&mut self, network: NetworkId) {
        for look_up in &mut self.look_ups {
            look_up.wanted.retain(|wanted| *wanted != network);
        }
        self.end_look_ups(Instant::now());
    }

    /// Answers look-ups that have what they wanted, or have taken too long.
    pub(super) fn end_look_ups(&mut self, now: Instant) {
        let over = |look_up: &mut LookUp| {
            look_up.until <= now || (look_up.query.is_none() && look_up.wanted.is_empty())
        };
        for look_up in self.look_ups.extract_if(.., over) {
            let _ = look_up.done.send(());
        }
    }

    fn measure(
        &mut self, peer: PeerId, rounds: u32, done: oneshot::Sender<Result<Vec<u64>, String>>,
    ) {
        let network = self.names.get(&peer).copied();
        let contact = network.and_then(|network| self.contacts.get(&network));
        let Some(live) = contact.and_then(|contact| contact.live.as_ref()) else {
            let _ = done.send(Err(format!("there is no session with {peer}")));
            return;
        };
        if self.measures.len() >= ECHOES_MAX {
            let _ = done.send(Err("too many measurements at a time".into()));
            return;
        }
        let (network, connection) = (live.info.network, live.connection);
        self.measures.push(Measure { connection, rounds, done });
        self.swarm.behaviour_mut().streams.open(network, connection, Purpose::Echo);
    }

    pub(super) fn take_measure(&mut self, connection: ConnectionId) -> Option<Measure> {
        let index = self.measures.iter().position(|measure| measure.connection == connection)?;
        Some(self.measures.remove(index))
    }

    /// Says goodbye to everybody, and ends.
    pub(super) async fn leave(mut self) {
        for live in self.contacts.values().filter_map(|contact| contact.live.as_ref()) {
            let _ = live.orders.try_send(Order::Goodbye);
        }
        let _ = tokio::time::timeout(GOODBYE_MAX, self.drain()).await;
    }
}
