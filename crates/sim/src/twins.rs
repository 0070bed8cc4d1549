//! Two peers of one name at the same time: one runs from a copy of the other's disk, on another machine.
//!
//! To protocols both are the same peer. Whoever else there is, host or client, has a session with one of the two at most,
//! as in live peers (`node/transport`): while that lasts the other one knocks in vain. Who has knocked for twice as long as
//! it takes to notice a silence, or was there before the one that there is a session with, is told that there are two, and
//! disowns its disk. With which of them somebody can have a session is up to cuts, which tell the two apart. What was said
//! in a session that is over is not heard.

use std::collections::BTreeMap;

use sigmalock_core::{MemberRequest, Span};
use sigmalock_protocols::parts::Driven;

use crate::crowd::Crowd;
use crate::faults::Memory;
use crate::history::{TrueTime, What};
use crate::peer::Peer;
use crate::watch::Watch;
use crate::world::{Packet, World};

/// A life of one of the two.
type Life = (usize, u32);

/// Who of the two has been at the door of which other peer.
pub(crate) type Doors = BTreeMap<usize, Door>;

/// Who has been there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Door {
    /// Counts sessions with either.
    session: u8,
    latest: Option<Life>,
    /// Who had a session before the latest.
    former: Option<Life>,
    /// Who knocks while there is a session with the other, and since when.
    knock: Option<(Life, TrueTime)>,
    /// When the next look at who knocks is due.
    looks_at: TrueTime,
}

/// To whom a message goes, and in which session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) to: usize,
    pub(crate) session: u8,
}

impl<P: Driven, C: Crowd<P>, W: Watch> World<'_, P, C, W> {
    /// The other one of the two, if it is one of them.
    fn twin_of(&self, index: usize) -> Option<usize> {
        match self.population.twins()? {
            [one, other] if index == one => Some(other),
            [one, other] if index == other => Some(one),
            _ => None,
        }
    }

    fn seen(&self, observer: usize, about: usize) -> Option<u32> {
        self.overlay.as_ref()?.seen(observer, about)
    }

    /// The session of one of the two with another peer, as one side of it sees it, if it does.
    fn session(&self, observer: usize, about: usize) -> Option<u8> {
        let door = match (self.twin_of(observer), self.twin_of(about)) {
            (Some(_), None) => about,
            (None, Some(_)) => observer,
            _ => return Some(0),
        };
        self.seen(observer, about)?;
        Some(self.overlay.as_ref()?.doors.get(&door)?.session)
    }

    /// The way of a message to whoever is at this place, or has the same name; `None`: there is no session.
    #[inline]
    pub(crate) fn way(&self, from: usize, to: usize) -> Option<Way> {
        if self.population.twin_of.is_none() {
            return Some(Way { to, session: 0 });
        }
        let to = match (self.twin_of(from), self.twin_of(to)) {
            (Some(_), Some(_)) => from,
            (None, Some(other)) if self.seen(from, to).is_none() => other,
            _ => to,
        };
        Some(Way { to, session: self.session(from, to)? })
    }

    /// Whether a message is heard: it was said in the session that its receiver has with its sender.
    pub(crate) fn is_of_this_session(&self, packet: Packet) -> bool {
        self.session(packet.to as usize, packet.from as usize) == Some(packet.session)
    }

    /// Looks of the two, and at the two. False if it is about others.
    pub(crate) fn look_at_twins(&mut self, observer: usize, about: usize) -> bool {
        match (self.twin_of(observer), self.twin_of(about)) {
            (None, None) => return false,
            // Nobody has a session with itself.
            (Some(_), Some(_)) => {}
            (Some(_), None) => self.look_out(observer, about),
            (None, Some(other)) => self.look_at(observer, about, other),
        }
        true
    }

    /// One of the two may have lost its session with another peer. Whether it gets one is up to that.
    fn look_out(&mut self, twin: usize, other: usize) {
        let Some(life) = self.seen(twin, other) else { return };
        let lives = self.peers[other].life == life && self.sees(twin, other, true);
        if !lives || self.seen(other, twin) != Some(self.peers[twin].life) {
            self.see(twin, other, None);
        }
    }

    /// A peer looks at one of the two.
    fn look_at(&mut self, observer: usize, twin: usize, other: usize) {
        let known = self.seen(observer, twin);
        let there = self.sees(observer, twin, known.is_some()).then(|| self.peers[twin].life);
        if known.is_some() && known != there {
            self.see(observer, twin, None);
            self.schedule_look(twin, observer, Span::ZERO);
            self.schedule_look(observer, other, Span::ZERO);
        }
        let Some(life) = there.filter(|_| known != there) else { return };
        if self.seen(observer, other).is_some() {
            self.knock(observer, (twin, life));
        } else {
            self.meet(observer, (twin, life));
        }
    }

    /// A session begins, for both.
    fn meet(&mut self, observer: usize, who: Life) {
        let Some(overlay) = &mut self.overlay else { return };
        let door = overlay.doors.entry(observer).or_default();
        if door.latest != Some(who) {
            door.former = door.latest.replace(who);
        }
        door.session = door.session.wrapping_add(1);
        door.knock = None;
        let (twin, life) = who;
        if self.seen(twin, observer).is_some() {
            self.see(twin, observer, None);
        }
        self.see(observer, twin, Some(life));
        let life = self.peers[observer].life;
        self.see(twin, observer, Some(life));
    }

    /// One of the two knocks while there is a session with the other.
    fn knock(&mut self, observer: usize, who: Life) {
        let now = self.now;
        let Some(overlay) = &mut self.overlay else { return };
        let patience = overlay.open.silence * 2;
        let door = overlay.doors.entry(observer).or_default();
        let since = door.knock.filter(|(knocks, _)| *knocks == who).map_or(now, |(_, at)| at);
        door.knock = Some((who, since));
        let told = now.since(since) >= patience || door.former == Some(who);
        if door.looks_at <= now {
            let again = if told { patience * 4 } else { patience };
            door.looks_at = now + again;
            self.schedule_look(observer, who.0, again);
        }
        if told && let Some(wish) = P::of_members(MemberRequest::Disown) {
            let id = self.peers[who.0].next_call();
            self.request(who.0, id, wish);
        }
    }

    /// A copy of a peer's disk is started.
    pub(crate) fn start_twin(&mut self, twin: usize) {
        let Some(original) = self.twin_of(twin) else { return };
        let Peer { disk, shelf, .. } = &self.peers[original];
        self.peers[twin].disk = shelf.as_ref().unwrap_or(disk).clone();
        self.record(What::Doubled(self.population.id(original)));
        self.restart(twin, Memory::Disk);
    }

    /// Puts on record that one of the two has come to know that it is not the member that it was by its disk.
    pub(crate) fn look_who_noticed(&mut self, index: usize, was_member: bool) {
        let is_member = self.peers[index].protocol.as_ref().is_some_and(P::is_member);
        if was_member && !is_member && self.twin_of(index).is_some() {
            self.record(What::Noticed(self.population.id(index)));
        }
    }
}
