//! What the driver makes of what the transport tells it.

use sigmalock_core::{Input, Key, MemberRequest, Message as _, PeerId, Span};
use sigmalock_protocols::parts::Ask;

use super::{Driver, Live};
use crate::control::{Query, Question};
use crate::link::{Command, Event, Parting, Role, SessionId};
use crate::wire::Kind;

/// So many hosts, and so many lost ones, are told of at the beginning of a session.
const HOSTS_TOLD_MAX: usize = 1_024;

impl<P: Live> Driver<P> {
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Up { session, info, outbox } => {
                let peer = info.peer;
                if self.peers.session(peer).is_some() {
                    self.down(peer, false);
                }
                let hosts = info.role == Role::Host;
                let (key, now) = (info.key, self.now);
                self.with_placement(|placement| placement.up(peer, key, hosts, now));
                self.meet(&info);
                self.peers.insert(session, *info, outbox, self.now);
                self.tell_whom_we_know(peer);
                self.outlook.kept.remove(&peer);
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
            Event::Kept(peer, obstacle, why) => {
                self.outlook.lives(peer, obstacle, self.now);
                self.outlook.refusal = Some((self.now, why));
            }
            Event::Twin => {
                let id = self.calls.next_call();
                self.ask(id, Ask::Members(MemberRequest::Disown));
            }
        }
        self.hear_self();
    }

    /// Whoever we meet must know for whose votes it may have to wait.
    fn tell_whom_we_know(&mut self, peer: PeerId) {
        let Some(placement) = self.protocol.placement() else { return };
        let present = placement.present().take(HOSTS_TOLD_MAX).collect();
        let lost = placement.lost(self.now).take(HOSTS_TOLD_MAX);
        let lost = lost.map(|(id, key, at)| (id, key, self.now.since(at).as_micros())).collect();
        let question = Question::Known { present, lost };
        self.peers.tell(peer, Kind::Query, &Query { id: 0, question });
    }

    /// Who is there, and who was, as another peer says. False if that is too much.
    pub(super) fn on_known(
        &mut self, present: Vec<(PeerId, Key)>, lost: Vec<(PeerId, Key, u64)>,
    ) -> bool {
        if present.len() > HOSTS_TOLD_MAX || lost.len() > HOSTS_TOLD_MAX {
            return false;
        }
        let now = self.now;
        self.with_placement(|placement| {
            // Whoever says so is there too.
            placement.at_least(present.len() + 1, now);
            for (peer, key) in present {
                placement.expect(peer, key, true, now);
            }
            for (peer, key, ago) in lost {
                placement.mourn(peer, key, now - Span::from_micros(ago));
            }
        });
        true
    }

    fn down(&mut self, peer: PeerId, clean: bool) {
        self.keep_in_mind(peer);
        self.peers.remove(peer);
        self.queries.retain(|_, (asked, _)| *asked != peer);
        self.lookups.gone(peer);
        let now = self.now;
        self.with_placement(|placement| placement.down(peer, now, clean));
        self.feed(Input::PeerDown(peer));
        self.lose_sight_of(peer);
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
        let now = self.now;
        self.with_placement(|placement| placement.unsettle(now));
    }
}
