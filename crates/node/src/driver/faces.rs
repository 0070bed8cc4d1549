//! What this peer keeps of others for people: what they are called, and where they were.

use sigmalock_core::PeerId;

use super::{Driver, Live};
use crate::address_book::Contact;
use crate::link::PeerInfo;
use crate::names::Names;

impl<P: Live> Driver<P> {
    /// Writes down how everybody is called who matters now: this peer, those it has sessions with, and members.
    pub(super) fn learn_names(&self) {
        let mut names = Names::default();
        let view = self.protocol.view(self.now);
        for member in view.iter().flat_map(|view| &view.members) {
            names.insert(member.peer, None);
        }
        for (peer, known) in &self.outlook.met {
            names.insert(*peer, known.name.clone());
        }
        for (peer, connected) in self.peers.iter() {
            names.insert(*peer, connected.info.name.clone());
        }
        names.insert(self.me.peer, self.me.name.clone());
        *self.names.write() = names;
    }

    /// A session has begun. What its peer was called before, and where it was, is of no interest any more.
    pub(super) fn meet(&mut self, info: &PeerInfo) {
        if let Some(known) = self.outlook.met.get_mut(&info.peer) {
            *known = Contact::from(info);
        }
        self.names.write().insert(info.peer, info.name.clone());
    }

    /// A session is about to end. What a member is called is known from then on, however short the session was.
    pub(super) fn keep_in_mind(&mut self, peer: PeerId) {
        let Some(view) = self.protocol.view(self.now) else { return };
        let is_member = view.members.iter().any(|member| member.peer == peer);
        if let Some((_, connected)) = self.peers.iter().find(|(id, _)| is_member && **id == peer) {
            self.outlook.met.entry(peer).or_insert_with(|| (&connected.info).into());
        }
    }

    /// A session has ended. Only members are missed.
    pub(super) fn lose_sight_of(&self, peer: PeerId) {
        if !self.outlook.met.contains_key(&peer) {
            self.names.write().remove(peer);
        }
    }
}
