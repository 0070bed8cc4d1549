//! What the driver makes of what the transport tells it.

use sigmalock_core::{Input, Message as _, PeerId};

use super::{Driven, Driver};
use crate::link::{Command, Event, Parting, Role, SessionId};
use crate::wire::Kind;

impl<P: Driven> Driver<P> {
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Up { session, info, outbox } => {
                let peer = info.peer;
                if self.peers.session(peer).is_some() {
                    self.down(peer, false);
                }
                let hosts = info.role == Role::Host;
                self.around.placement.up(peer, info.key, hosts, self.now);
                self.peers.insert(session, info, outbox, self.now);
                self.feed(Input::PeerUp(peer));
            }
            Event::Down { session, peer, parting } => {
                if self.peers.session(peer) == Some(session) {
                    self.down(peer, parting == Parting::Goodbye);
                }
            }
            Event::Frame { session, from, kind, body } => {
                if self.peers.session(from) == Some(session) {
                    self.on_frame(session, from, kind, &body);
                }
            }
        }
        self.hear_self();
    }

    fn down(&mut self, peer: PeerId, clean: bool) {
        self.peers.remove(peer);
        self.queries.retain(|_, (asked, _)| *asked != peer);
        self.lookups.gone(peer);
        self.around.placement.down(peer, self.now, clean);
        self.feed(Input::PeerDown(peer));
    }

    fn on_frame(&mut self, session: SessionId, from: PeerId, kind: Kind, body: &[u8]) {
        self.counters.frames_in += 1;
        self.counters.bytes_in += body.len() as u64;
        let sense = match kind {
            Kind::Messages => self.on_messages(from, body),
            Kind::Query => self.on_query(from, body),
            Kind::Answer => self.on_answer(from, body),
            _ => false,
        };
        if !sense {
            self.counters.nonsense += 1;
            let _ = self.transport.try_send(Command::Expel(session));
        }
    }

    fn on_messages(&mut self, from: PeerId, mut body: &[u8]) -> bool {
        while !body.is_empty() {
            let Ok((message, rest)) = postcard::take_from_bytes::<P::Message>(body) else {
                return false;
            };
            body = rest;
            self.counters.received.add(message.kind());
            self.feed(Input::Receive { from, message });
        }
        true
    }

    /// This process did not run for a while. What its sockets hold may be older than messages may get,
    /// so all sessions end, as seen from here at once; who is still there will be back.
    pub(super) fn overslept(&mut self) {
        let _ = self.transport.try_send(Command::Reset);
        for peer in self.peers.ids() {
            self.down(peer, false);
        }
        self.around.placement.unsettle(self.now);
    }
}
