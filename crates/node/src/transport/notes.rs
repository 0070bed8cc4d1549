//! What the hub does when a session says something.

use libp2p::PeerId as NetworkId;
use libp2p::swarm::ConnectionId;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::contact::{Live, Redial, TWIN, Twin};
use super::handshake::{Code, Failure};
use super::hub::Hub;
use super::limits::{REDIAL_JITTER, SESSIONS_MAX, SILENCE_MAX};
use super::session::{Admitted, Note, Order};
use crate::link::{Parting, PeerInfo, Role, SessionId};
use crate::wire::{Kind, frame};

/// Orders that may wait for a session; one that takes none is about to end anyway.
const ORDERS_MAX: usize = 8;

impl Hub {
    pub(super) fn on_note(&mut self, note: Note) {
        match note {
            Note::Shaken { connection, info, reply } => {
                if let Some(answer) = self.admit(connection, info) {
                    let _ = reply.send(answer);
                }
            }
            Note::Failed { connection, network, failure } => {
                self.on_failed(connection, network, failure);
            }
            Note::Peers(records) => {
                for (network, addresses, role) in records.into_iter().filter_map(|r| r.read()) {
                    if role == Role::Host {
                        self.learn(network, addresses);
                    }
                }
            }
            Note::Clogged(network) => self.lament(network),
            Note::Refused(network, text) => self.complain(network, text),
            Note::Warned(text) => {
                tracing::warn!("{text}");
                self.remember(text);
            }
            Note::Ended { session, connection, network, parting } => {
                self.on_ended(session, connection, network, parting);
            }
        }
    }

    /// Lets a peer in that has proved to belong here. `None`: its connection is gone, or not wanted yet.
    fn admit(
        &mut self, connection: ConnectionId, info: PeerInfo,
    ) -> Option<Result<Admitted, (Code, String)>> {
        let network = info.network;
        let over = self.contacts.get(&network)?.connections.iter().find(|c| c.id == connection)?;
        let far = over.far;
        let contact = self.contacts.get_mut(&network)?;
        match contact.twin(info.incarnation) {
            None => {}
            // It tries again, and by then that session has ended.
            Some(Twin::FormerSelf) => return None,
            Some(Twin::Another) => {
                let live = contact.live.iter();
                let warning = || Order::Send(frame(Kind::Twin, &[]));
                live.for_each(|live| drop(live.orders.try_send(warning())));
                return Some(Err((Code::Twin, TWIN.into())));
            }
        }
        if self.names.get(&info.peer).is_some_and(|other| *other != network) {
            let text = "its name in protocols is that of another peer".into();
            return Some(Err((Code::Name, text)));
        }
        if self.names.len() >= SESSIONS_MAX && !self.names.contains_key(&info.peer) {
            let text = format!("there are {SESSIONS_MAX} sessions already, which is the most");
            return Some(Err((Code::Full, text)));
        }
        // It may have come to belong somewhere since it said Hello.
        if let Some(text) = self.me.origin.objection(info.origin) {
            return Some(Err((Code::Swarm, text)));
        }
        if let Err(error) = self.me.origin.adopt(info.origin) {
            tracing::warn!("which swarm this peer belongs to cannot be written: {error}");
        }
        let first = self.peers_frame(network, far);
        let session = SessionId(self.sessions);
        self.sessions += 1;
        let (orders, order_receiver) = mpsc::channel(ORDERS_MAX);

        let connections = self.contacts.get(&network)?.connections.iter().map(|c| c.id);
        let behaviour = self.swarm.behaviour_mut();
        if let Some(relay) = behaviour.relay_server.as_mut() {
            relay.admit(network, connections.clone());
        }
        behaviour.kad.admit(network, connections);
        if info.role == Role::Host {
            self.tell_clients_of(&info);
            let kad = &mut self.swarm.behaviour_mut().kad;
            for address in &info.addresses {
                kad.inner.add_address(&network, address.clone());
            }
            self.bootstrap_at.get_or_insert_with(Instant::now);
        }
        self.names.insert(info.peer, network);
        let contact = self.contacts.get_mut(&network)?;
        contact.shaking.retain(|shaking| *shaking != connection);
        contact.redial = None;
        if contact.latest != Some(info.incarnation) {
            contact.former = contact.latest.replace(info.incarnation);
        }
        if !info.addresses.is_empty() {
            contact.addresses.clone_from(&info.addresses);
        }
        let since = Instant::now();
        let live = Live { session, since, connection, far, info, orders };
        if let Some(old) = contact.live.replace(live) {
            // The other side knows best which of its sessions lives.
            let _ = old.orders.try_send(Order::End(Parting::Closed));
            if old.connection != connection {
                self.swarm.close_connection(old.connection);
            }
        }
        for join in self.joins.iter_mut().filter(|join| join.network == Some(network)) {
            join.rest();
        }
        self.not_wanted(network);
        tracing::info!("session with {network}");
        Some(Ok(Admitted { session, orders: order_receiver, first }))
    }

    pub(super) fn on_failed(
        &mut self, connection: ConnectionId, network: NetworkId, failure: Failure,
    ) {
        self.swarm.close_connection(connection);
        match failure {
            Failure::Refused(text) => self.complain(network, text),
            Failure::Nonsense(what) => self.complain(network, format!("{network} sent {what}")),
            Failure::Clogged => self.redial(network),
            Failure::Io(error) => {
                tracing::debug!(%network, %error, "no handshake");
                self.redial(network);
            }
        }
        if let Some(contact) = self.contacts.get_mut(&network) {
            contact.shaking.retain(|shaking| *shaking != connection);
            contact.connections.retain(|old| old.id != connection);
        }
        self.not_wanted(network);
    }

    fn on_ended(
        &mut self, session: SessionId, connection: ConnectionId, network: NetworkId,
        parting: Parting,
    ) {
        let Some(contact) = self.contacts.get_mut(&network) else { return };
        let Some(live) = contact.live.take_if(|live| live.session == session) else { return };
        tracing::info!("the session with {network} has ended: {parting:?}");
        self.names.remove(&live.info.peer);
        let behaviour = self.swarm.behaviour_mut();
        behaviour.kad.dismiss(&network);
        if let Some(relay) = behaviour.relay_server.as_mut() {
            relay.dismiss(&network);
        }
        // Who refuses us may do so after we have let it in.
        if live.since.elapsed() > SILENCE_MAX {
            contact.refused = None;
        }
        // Whatever is still in its sockets must not be taken for news.
        self.swarm.close_connection(connection);
        contact.connections.retain(|old| old.id != connection);
        match parting {
            Parting::Goodbye => {
                contact.addresses.clear();
                self.swarm.behaviour_mut().kad.inner.remove_peer(&network);
            }
            Parting::Closed | Parting::Silent => self.redial(network),
            Parting::Nonsense => self.complain(network, format!("{network} sent nonsense")),
        }
        self.consider(network);
    }

    /// Tries to get a peer back, if it can be dialed.
    fn redial(&mut self, network: NetworkId) {
        if let Some(contact) = self.contacts.get_mut(&network)
            && !contact.addresses.is_empty()
            && contact.redial.is_none()
            && !contact.is_refused()
        {
            contact.redial = Some(Redial::within(REDIAL_JITTER));
        }
    }
}

#[cfg(test)]
mod tests {
    use libp2p::Multiaddr;
    use libp2p::swarm::DialError;

    use super::super::contact::{Connection, Contact, Join};
    use super::super::handshake::Me;
    use super::super::limits::REDIAL_EVERY;
    use super::super::record::Remote;
    use super::super::{swarm, tests::config};
    use super::*;
    use crate::identity::{Identity, key_of, new_incarnation, peer_of};

    fn connection(index: usize) -> Connection {
        let (id, since) = (ConnectionId::new_unchecked(index), Instant::now());
        let remote = Remote { address: Multiaddr::empty(), dialed: false };
        Connection { id, since, closing: false, far: false, remote, relayed: false }
    }

    /// A hub that has a connection, but no session yet, with each of these.
    fn hub(strangers: &[NetworkId]) -> Hub {
        let (config, identity) = (config(vec![]), Identity::ephemeral());
        let swarm = swarm::build(&config, &identity).unwrap();
        let me = Me::new(&config, identity.network_id(), new_incarnation().unwrap());
        let mut hub = Hub::new(swarm, me, &config, mpsc::channel(1).0);
        for (index, network) in strangers.iter().enumerate() {
            let connection = connection(index);
            let contact = Contact { connections: vec![connection], ..Contact::default() };
            hub.contacts.insert(*network, contact);
        }
        hub
    }

    fn info(network: NetworkId) -> PeerInfo {
        PeerInfo {
            peer: peer_of(&network),
            network,
            key: key_of(&network),
            role: Role::Host,
            incarnation: new_incarnation().unwrap(),
            addresses: vec![],
            reached_at: None,
            name: None,
            origin: 0,
        }
    }

    #[tokio::test]
    async fn a_second_peer_with_the_same_name_in_protocols_is_refused() {
        let [first, second] = [(); 2].map(|()| Identity::ephemeral().network_id());
        let mut hub = hub(&[first, second]);
        let admitted = hub.admit(ConnectionId::new_unchecked(0), info(first));
        assert!(matches!(admitted, Some(Ok(_))));
        let namesake = PeerInfo { peer: peer_of(&first), ..info(second) };
        let refused = hub.admit(ConnectionId::new_unchecked(1), namesake);
        assert!(matches!(refused, Some(Err((Code::Name, _)))));
    }

    #[tokio::test]
    async fn a_new_session_with_a_peer_ends_the_old_one() {
        let network = Identity::ephemeral().network_id();
        let mut hub = hub(&[network]);
        let connection = ConnectionId::new_unchecked(0);
        let info = info(network);
        let Some(Ok(mut old)) = hub.admit(connection, info.clone()) else { panic!() };
        let Some(Ok(new)) = hub.admit(connection, info) else { panic!() };
        assert!(matches!(old.orders.try_recv(), Ok(Order::End(Parting::Closed))));
        assert_ne!(old.session, new.session);
        // What the old one says when it ends is not taken for the end of the new one.
        hub.on_ended(old.session, connection, network, Parting::Closed);
        assert!(hub.contacts[&network].live.as_ref().is_some_and(|l| l.session == new.session));
        assert_eq!(hub.names.len(), 1);
    }

    #[tokio::test]
    async fn another_life_of_a_peer_waits_for_the_end_of_the_first_or_is_told_that_there_are_two() {
        let network = Identity::ephemeral().network_id();
        let mut hub = hub(&[network]);
        let connection = ConnectionId::new_unchecked(0);
        let (first, second) = (info(network), info(network));
        let Some(Ok(mut admitted)) = hub.admit(connection, first.clone()) else { panic!() };
        assert!(hub.admit(connection, second.clone()).is_none());
        assert!(admitted.orders.try_recv().is_err());
        tokio::time::sleep(SILENCE_MAX * 21 / 10).await;
        let refused = hub.admit(connection, second.clone());
        assert!(matches!(refused, Some(Err((Code::Twin, _)))));
        assert!(
            matches!(admitted.orders.try_recv(), Ok(Order::Send(_))),
            "and the first is told, too"
        );
        hub.on_ended(admitted.session, connection, network, Parting::Closed);
        hub.contacts.get_mut(&network).unwrap().connections.push(self::connection(0));
        assert!(matches!(hub.admit(connection, second), Some(Ok(_))));
        let refused = hub.admit(connection, first);
        assert!(matches!(refused, Some(Err((Code::Twin, _)))), "it lives on, beside its successor");
    }

    #[tokio::test]
    async fn who_belongs_nowhere_belongs_to_the_swarm_it_meets_first_and_to_no_other() {
        let [first, outsider, second] = [(); 3].map(|()| Identity::ephemeral().network_id());
        let mut hub = hub(&[first, outsider, second]);
        let of = |network, origin| PeerInfo { origin, ..info(network) };
        for (index, peer) in [of(first, 7), of(outsider, 0)].into_iter().enumerate() {
            let admitted = hub.admit(ConnectionId::new_unchecked(index), peer);
            assert!(matches!(admitted, Some(Ok(_))));
        }
        let refused = hub.admit(ConnectionId::new_unchecked(2), of(second, 8));
        assert!(matches!(refused, Some(Err((Code::Swarm, _)))));
    }

    #[tokio::test]
    async fn clients_are_told_of_a_host_that_comes() {
        let [client, host] = [(); 2].map(|()| Identity::ephemeral().network_id());
        let mut hub = hub(&[client, host]);
        let info_of = |network, role| {
            let addresses = vec!["/ip4/127.0.0.1/tcp/7421".parse().unwrap()];
            PeerInfo { role, addresses, ..info(network) }
        };
        let admitted = hub.admit(ConnectionId::new_unchecked(0), info_of(client, Role::ClientOnly));
        let Some(Ok(mut told)) = admitted else { panic!() };
        assert!(told.orders.try_recv().is_err());
        let _host = hub.admit(ConnectionId::new_unchecked(1), info_of(host, Role::Host));
        assert!(matches!(told.orders.try_recv(), Ok(Order::Send(_))));
    }

    #[tokio::test]
    async fn an_address_that_leads_to_this_peer_itself_is_not_tried_again_nor_complained_of() {
        let mut hub = hub(&[]);
        let address: Multiaddr = "/ip4/127.0.0.1/tcp/7421".parse().unwrap();
        let itself = DialError::LocalPeerId { address: address.clone() };
        for error in [itself, DialError::NoAddresses] {
            hub.joins = vec![Join::new(address.clone())];
            hub.join_failed(0, &error);
            let join = &hub.joins[0];
            assert!(join.at.is_none() && join.complained.is_none(), "{error}");
            assert_eq!(join.network, Some(hub.me.network));
        }
        hub.joins = vec![Join::new(address)];
        hub.join_failed(0, &DialError::Aborted);
        assert!(hub.joins[0].at.is_some() && hub.joins[0].complained.is_some());
    }

    #[tokio::test]
    async fn members_are_looked_for_though_they_were_given_up_and_others_are_not() {
        let [member, other] = [(); 2].map(|()| Identity::ephemeral().network_id());
        let mut hub = hub(&[]);
        let addresses = vec!["/ip4/127.0.0.1/tcp/7421".parse().unwrap()];
        for network in [member, other] {
            let contact = Contact { addresses: addresses.clone(), ..Contact::default() };
            hub.contacts.insert(network, contact);
        }
        hub.seek([peer_of(&member)].into());
        let due = |network| hub.contacts[&network].redial.as_ref().map(|redial| redial.at);
        assert!(due(member).is_some_and(|at| at <= Instant::now() + REDIAL_EVERY.1));
        assert!(due(other).is_none());
    }

    #[tokio::test]
    async fn the_hub_looks_around_in_time_however_much_happens() {
        let hub = hub(&[]);
        let due = hub.due();
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert_eq!(hub.due(), due);
    }

    #[tokio::test]
    async fn nobody_is_let_in_whose_connection_is_gone() {
        let network = Identity::ephemeral().network_id();
        let mut hub = hub(&[network]);
        assert!(hub.admit(ConnectionId::new_unchecked(7), info(network)).is_none());
        assert!(hub.names.is_empty());
    }
}
