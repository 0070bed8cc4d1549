//! The hub: the one task that polls the swarm, and decides whom to dial, whom to keep and whom to
//! leave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use libp2p::kad::QueryId;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, DialError};
use libp2p::{Multiaddr, PeerId as NetworkId, Swarm};
use sigmalock_core::PeerId;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::berth::Berth;
use super::contact::{Connection, Contact, Join, Redial};
use super::handshake::Me;
use super::limits::{
    BOOTSTRAP_EVERY, COMPLAIN_EVERY, CONTACTS_MAX, DIALS_MAX, JOIN_PAUSE_MAX, PEERS_EVERY,
    REFUSALS_MAX,
};
use super::record::{Record, frame_of, reachable};
use super::search::Search;
use super::session::{Note, Order};
use super::streams::Purpose;
use super::swarm::Behaviour;
use crate::address_book::bare;
use crate::config::{Config, FaultInjection};
use crate::identity::peer_of;
use crate::link::{Command, Event, Obstacle, PeerInfo, Role};

/// Notes of sessions that may wait for the hub.
const NOTES_MAX: usize = 256;

/// The hub looks around at least so often.
const TICK_MAX: Duration = Duration::from_secs(1);

/// A look-up that is under way.
pub(super) struct LookUp {
    /// Kademlia's query, until it has answered.
    pub(super) query: Option<QueryId>,
    /// Those found that have no session yet.
    pub(super) wanted: Vec<NetworkId>,
    pub(super) until: Instant,
    pub(super) done: oneshot::Sender<()>,
}

/// A measurement that waits for its stream.
pub(super) struct Measure {
    pub(super) connection: ConnectionId,
    pub(super) rounds: u32,
    pub(super) done: oneshot::Sender<Result<Vec<u64>, String>>,
}

/// The hub.
pub(crate) struct Hub {
    pub(super) swarm: Swarm<Behaviour>,
    pub(super) me: Arc<Me>,
    pub(super) injection: Option<FaultInjection>,
    /// Where others are told to find this peer; empty: where it listens.
    pub(super) advertise: Vec<Multiaddr>,
    pub(super) mesh_max: usize,
    pub(super) contacts: BTreeMap<NetworkId, Contact>,
    /// Who has which name in protocols, of those with a session.
    pub(super) names: BTreeMap<PeerId, NetworkId>,
    pub(super) joins: Vec<Join>,
    pub(super) search: Search,
    pub(super) berths: Vec<Berth>,
    pub(super) look_ups: Vec<LookUp>,
    pub(super) measures: Vec<Measure>,
    pub(super) refusals: VecDeque<String>,
    pub(super) sessions: u64,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) note_sender: mpsc::Sender<Note>,
    notes: mpsc::Receiver<Note>,
    /// Sessions, and everything else that ends with the hub.
    pub(super) tasks: JoinSet<()>,
    /// Echoes, of which there may only be a few.
    pub(super) echoes: JoinSet<()>,
    pub(super) bootstrap_at: Option<Instant>,
    peers_at: Instant,
    ticked_at: Instant,
}

impl Hub {
    pub(crate) fn new(
        swarm: Swarm<Behaviour>, me: Me, config: &Config, events: mpsc::Sender<Event>,
    ) -> Self {
        let (note_sender, notes) = mpsc::channel(NOTES_MAX);
        let berths: Vec<_> = config.listen.iter().filter_map(Berth::new).collect();
        let relays = berths.iter().map(Berth::relay_address);
        // What leads to this very peer may lead nowhere from here.
        let advertise: Vec<Multiaddr> = config.advertise.iter().map(bare).collect();
        let joins = config.join.iter().filter(|address| !advertise.contains(&bare(address)));
        let joins = joins.cloned().chain(relays).map(Join::new).collect();
        Self {
            swarm,
            me: Arc::new(me),
            injection: config.injection,
            advertise,
            mesh_max: config.mesh_max,
            contacts: BTreeMap::new(),
            names: BTreeMap::new(),
            joins,
            search: Search::new(config.membership),
            berths,
            look_ups: Vec::new(),
            measures: Vec::new(),
            refusals: VecDeque::new(),
            sessions: 0,
            events,
            note_sender,
            notes,
            tasks: JoinSet::new(),
            echoes: JoinSet::new(),
            bootstrap_at: None,
            peers_at: Instant::now() + PEERS_EVERY,
            ticked_at: Instant::now(),
        }
    }

    /// Runs until the driver leaves, or is gone.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.tick();
        loop {
            let due = self.due();
            tokio::select! {
                event = self.swarm.select_next_some() => self.on_swarm(event),
                Some(note) = self.notes.recv() => self.on_note(note),
                command = commands.recv() => match command {
                    None => return,
                    Some(Command::Leave) => return self.leave().await,
                    Some(command) => self.on_command(command),
                },
                Some(_) = self.tasks.join_next() => {}
                Some(_) = self.echoes.join_next() => {}
                () = tokio::time::sleep_until(due) => self.tick(),
            }
        }
    }

    /// Until all sessions have ended. The swarm must run meanwhile, or nothing would leave.
    pub(super) async fn drain(&mut self) {
        self.echoes.abort_all();
        while !self.names.is_empty() {
            tokio::select! {
                _ = self.swarm.select_next_some() => {}
                note = self.notes.recv() => match note {
                    Some(Note::Ended { network, .. }) => {
                        let contact = self.contacts.get_mut(&network);
                        if let Some(live) = contact.and_then(|contact| contact.live.take()) {
                            self.names.remove(&live.info.peer);
                        }
                    }
                    Some(_) => {}
                    None => return,
                },
            }
        }
    }

    /// When there is something to do, if nothing happens before.
    pub(super) fn due(&self) -> Instant {
        let may_dial = self.dials_left() > 0;
        let contacts = self.contacts.values().filter_map(|contact| contact.due(may_dial));
        let joins =
            self.joins.iter().filter(|join| join.dialing.is_none()).filter_map(|join| join.at);
        let look_ups = self.look_ups.iter().map(|look_up| look_up.until);
        let berths = self.berths.iter().filter(|berth| self.is_up(&berth.relay));
        let berths = berths.filter_map(Berth::due);
        let due =
            contacts.chain(joins).chain(look_ups).chain(berths).chain(self.bootstrap_at).min();
        // Counted from the last time, however much happens in between.
        let tick = self.ticked_at + TICK_MAX;
        due.map_or(tick, |due| due.min(tick))
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.ticked_at = now;
        self.close_idle(now);
        self.dial_due(now);
        self.join_due(now);
        self.berth_due(now);
        self.end_look_ups(now);
        if self.bootstrap_at.is_some_and(|at| at <= now) {
            self.bootstrap_at = Some(now + BOOTSTRAP_EVERY);
            // An error says that there is nobody in the table.
            let _ = self.swarm.behaviour_mut().kad.inner.bootstrap();
        }
        if self.peers_at <= now {
            self.peers_at = now + PEERS_EVERY;
            self.remind_somebody();
        }
    }

    fn close_idle(&mut self, now: Instant) {
        for (network, contact) in &mut self.contacts {
            let over = |connection: &&Connection| {
                contact.connection_ends(connection).is_some_and(|end| end <= now)
            };
            let over: Vec<_> = contact.connections.iter().filter(over).map(|c| c.id).collect();
            for connection in contact.connections.iter_mut().filter(|c| over.contains(&c.id)) {
                tracing::debug!(%network, "a connection without a session is closed");
                connection.closing = true;
                self.swarm.close_connection(connection.id);
            }
        }
    }

    /// How many more dials there may be under way.
    fn dials_left(&self) -> usize {
        DIALS_MAX.saturating_sub(self.contacts.values().filter(|contact| contact.dialing).count())
    }

    fn dial_due(&mut self, now: Instant) {
        let mut room = self.dials_left();
        let sought = self.contacts.values().filter(|contact| contact.redial.is_some()).count();
        let due = |(network, contact): (&NetworkId, &Contact)| {
            let at = contact.redial.as_ref().filter(|_| !contact.dialing)?.at;
            (at <= now).then_some((at, *network))
        };
        let mut due: Vec<(Instant, NetworkId)> = self.contacts.iter().filter_map(due).collect();
        // Where not all may be dialed, whoever has waited for longest.
        due.sort_unstable();
        for (_, network) in due {
            let pace = self.search.pace(peer_of(&network), sought);
            let Some(contact) = self.contacts.get_mut(&network) else { continue };
            if contact.live.is_some() {
                contact.redial = None;
            } else if contact.is_refused() || !contact.connections.is_empty() {
                contact.redial.take_if(|redial| !redial.again(pace));
            } else if room > 0 {
                room -= 1;
                let addresses = contact.addresses.clone();
                contact.dialing = true;
                contact.redial.take_if(|redial| !redial.again(pace));
                self.dial(network, addresses);
            }
        }
    }

    /// These belong here, and whoever else does not: they are looked for as long as that is so.
    pub(super) fn seek(&mut self, members: BTreeSet<PeerId>) {
        self.search.members(members);
        let sought = self.contacts.values().filter(|contact| contact.redial.is_some()).count();
        for (network, contact) in &mut self.contacts {
            let pace = self.search.pace(peer_of(network), sought);
            let away = contact.live.is_none() && !contact.addresses.is_empty();
            if pace.for_ever && away && *network != self.me.network {
                let redial = contact.redial.get_or_insert_with(|| Redial::within(pace.every_max));
                redial.hurry(pace);
            }
        }
    }

    /// Dials a peer, from a new port: with the port of the listener, two peers that dial each other
    /// would meet in the middle.
    fn dial(&mut self, network: NetworkId, addresses: Vec<Multiaddr>) {
        let options = DialOpts::peer_id(network)
            .condition(PeerCondition::DisconnectedAndNotDialing)
            .addresses(addresses)
            .allocate_new_port()
            .build();
        match self.swarm.dial(options) {
            Ok(()) => {}
            // Kademlia does so already, or the peer itself was quicker.
            Err(DialError::DialPeerConditionFalse(_)) => {
                if let Some(contact) = self.contacts.get_mut(&network) {
                    contact.dialing = false;
                }
            }
            Err(error) => {
                tracing::debug!(%network, %error, "not dialed");
                self.dial_failed(network);
            }
        }
    }

    /// An attempt to reach a peer came to nothing.
    pub(super) fn dial_failed(&mut self, network: NetworkId) {
        let Some(contact) = self.contacts.get_mut(&network) else { return };
        contact.dialing = false;
        if let Some(redial) = &mut contact.redial
            && !std::mem::replace(&mut redial.failed, true)
        {
            self.swarm.behaviour_mut().kad.inner.remove_peer(&network);
        }
        self.not_wanted(network);
    }

    fn join_due(&mut self, now: Instant) {
        let alone = self.names.is_empty();
        for index in 0..self.joins.len() {
            let join = &mut self.joins[index];
            if join.network == Some(self.me.network) {
                join.rest();
                continue;
            }
            if join.at.is_none() && alone {
                join.again();
            }
            if join.dialing.is_some() || join.at.is_none_or(|at| at > now) {
                continue;
            }
            let contact = join.network.and_then(|network| self.contacts.get(&network));
            if contact.is_some_and(|contact| contact.live.is_some()) {
                join.rest();
                continue;
            }
            if contact.is_some_and(|contact| {
                contact.is_refused() || !contact.connections.is_empty() || contact.dialing
            }) {
                join.again();
                continue;
            }
            let address = join.address.clone();
            let options = DialOpts::unknown_peer_id().address(address).allocate_new_port().build();
            join.dialing = Some(options.connection_id());
            if let Err(error) = self.swarm.dial(options) {
                self.join_failed(index, &error);
            }
        }
    }

    /// Asks relays with which there is a session to be reached by way of them.
    fn berth_due(&mut self, now: Instant) {
        for index in 0..self.berths.len() {
            let berth = &self.berths[index];
            if berth.due().is_some_and(|at| at <= now) && self.is_up(&berth.relay) {
                // An error is one of the address, which was said at the start.
                let listener = self.swarm.listen_on(berth.address.clone()).ok();
                self.berths[index].asked(listener);
            }
        }
    }

    /// Whether there is a session with a peer.
    fn is_up(&self, network: &NetworkId) -> bool {
        self.contacts.get(network).is_some_and(|contact| contact.live.is_some())
    }

    /// A join address could not be reached. Said at once, and then now and again.
    pub(super) fn join_failed(&mut self, index: usize, error: &DialError) {
        let join = &mut self.joins[index];
        // Where this very peer listens, libp2p sees no address to dial; by another name, it meets itself.
        if let DialError::LocalPeerId { .. } | DialError::NoAddresses = error {
            tracing::debug!("{} is this peer itself", join.address);
            join.network = Some(self.me.network);
            return join.rest();
        }
        let now = Instant::now();
        if join.complained.is_none_or(|at| at + COMPLAIN_EVERY <= now) {
            join.complained = Some(now);
            let (address, why, pause) = (&join.address, reason(error), JOIN_PAUSE_MAX);
            tracing::warn!(
                "{address} cannot be reached ({why}); trying again, at most {pause:?} apart"
            );
        }
        join.again();
    }

    /// Somebody told of a peer. It is dialed unless there is reason not to.
    pub(super) fn learn(&mut self, network: NetworkId, addresses: Vec<Multiaddr>) {
        let sessions = self.contacts.values().filter(|contact| contact.is_hopeful()).count();
        if network == self.me.network || sessions >= self.mesh_max {
            return;
        }
        let Some(contact) = self.contact(network) else { return };
        let mut news = contact.redial.is_none();
        for address in addresses {
            // A peer that has moved is not looked for with the patience that it is owed where it was.
            news |= contact.learn(address);
        }
        let busy = contact.live.is_some() || contact.dialing || !contact.connections.is_empty();
        if !busy && news && !contact.is_refused() {
            contact.redial = Some(Redial::within(Duration::ZERO));
        }
    }

    /// What is known of a peer; `None` if as many are known as may be.
    pub(super) fn contact(&mut self, network: NetworkId) -> Option<&mut Contact> {
        if !self.contacts.contains_key(&network) && self.contacts.len() >= CONTACTS_MAX {
            let idle = self.contacts.iter().find(|(_, contact)| contact.is_idle());
            let idle = idle.map(|(network, _)| *network)?;
            self.contacts.remove(&idle);
        }
        Some(self.contacts.entry(network).or_default())
    }

    /// Opens a session, if that is for this side to do and there is none, or one that the other side knows nothing of:
    /// the lower of the two does, so that there are never two.
    pub(super) fn consider(&mut self, network: NetworkId) {
        let opens = self.me.network < network;
        let Some(contact) = self.contacts.get_mut(&network) else { return };
        if !opens || !contact.shaking.is_empty() {
            return;
        }
        if let Some(id) = contact.connection_for_session() {
            contact.shaking.push(id);
            self.swarm.behaviour_mut().streams.open(network, id, Purpose::Session);
        }
    }

    /// The frame that tells a peer of the others; those closest to it, if they are too many.
    pub(super) fn peers_frame(&self, to: NetworkId, far: bool) -> Vec<u8> {
        let place = crate::identity::key_of(&to);
        let mut others: Vec<_> = self
            .contacts
            .values()
            .filter_map(|contact| contact.live.as_ref())
            .filter(|live| live.info.role == Role::Host && live.info.network != to)
            .filter(|live| !reachable(&live.info.addresses, far).is_empty())
            .map(|live| (distance(&live.info.key.0, &place.0), &live.info))
            .collect();
        others.sort_by_key(|(distance, _)| *distance);
        let records: Vec<_> = others
            .iter()
            .take(super::limits::RECORDS_MAX)
            .map(|(_, info)| Record::new(info, far))
            .collect();
        frame_of(&records)
    }

    /// Where others are told to find this peer.
    pub(super) fn told(&self) -> Vec<Multiaddr> {
        match self.advertise.as_slice() {
            [] => self.swarm.listeners().chain(self.swarm.external_addresses()).cloned().collect(),
            advertised => advertised.to_vec(),
        }
    }

    /// Newcomers look for hosts. Clients hear of them here, for they have nothing to offer that anybody would
    /// look for.
    pub(super) fn tell_clients_of(&self, info: &PeerInfo) {
        let live = self.contacts.values().filter_map(|contact| contact.live.as_ref());
        let clients = live.filter(|live| live.info.role == Role::ClientOnly);
        for client in clients.filter(|client| client.info.network != info.network) {
            if !reachable(&info.addresses, client.far).is_empty() {
                let frame = frame_of(&[Record::new(info, client.far)]);
                let _ = client.orders.try_send(Order::Send(frame));
            }
        }
    }

    /// Tells one peer of all others again, in case that it missed some.
    fn remind_somebody(&self) {
        let live: Vec<_> = self.contacts.values().filter_map(|c| c.live.as_ref()).collect();
        let index = (super::chance() * live.len() as f64) as usize;
        if let Some(live) = live.get(index) {
            let frame = self.peers_frame(live.info.network, live.far);
            let _ = live.orders.try_send(Order::Send(frame));
        }
    }

    /// A peer was refused, or has refused us: people are told.
    pub(super) fn complain(&mut self, network: NetworkId, text: String) {
        let Some(contact) = self.contact(network) else { return };
        if contact.refuse(&text, COMPLAIN_EVERY) {
            tracing::warn!("{text}");
        } else {
            tracing::debug!("{text}");
        }
        self.remember(text.clone());
        // If there is no room, the next refusal will tell.
        let _ = self.events.try_send(Event::Kept(peer_of(&network), Obstacle::Refusal, text));
    }

    /// Large packets get lost on the way to or from a peer: people are told, and it is looked for all the same.
    pub(super) fn lament(&mut self, network: NetworkId) {
        let text = format!(
            "packets of full size do not arrive at {network}, or from there, and small ones do: look at the MTU of all \
             links on the way"
        );
        if self.refusals.contains(&text) {
            tracing::debug!("{text}");
        } else {
            tracing::warn!("{text}");
        }
        self.remember(text.clone());
        let _ = self.events.try_send(Event::Kept(peer_of(&network), Obstacle::Size, text));
    }

    /// Keeps a sentence for whoever asks, as the latest.
    pub(super) fn remember(&mut self, text: String) {
        self.refusals.retain(|other| *other != text);
        if self.refusals.len() == REFUSALS_MAX {
            self.refusals.pop_front();
        }
        self.refusals.push_back(text);
    }
}

/// The distance of two places, as Kademlia has it.
fn distance(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|index| a[index] ^ b[index])
}

/// Why a dial failed, in few words.
fn reason(error: &DialError) -> String {
    match error {
        DialError::Transport(attempts) => match attempts.first() {
            Some((_, error)) => super::plain(error),
            None => "no address".into(),
        },
        other => super::plain(other),
    }
}
