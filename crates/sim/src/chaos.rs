//! Faults at work, and their end.

use std::collections::VecDeque;
use std::rc::Rc;

use sigmalock_core::{Birth, Input, MemberRequest, PeerId, Span};

use sigmalock_protocols::parts::Driven;
use sigmalock_protocols::views::Roster;

use crate::crowd::Crowd;
use crate::faults::{Fault, Memory};
use crate::history::{TrueTime, What};
use crate::output::Failure;
use crate::peer::{Disk, Mail, Tear};
use crate::script::Action;
use crate::watch::Watch;
use crate::world::{Event, World};

impl<P: Driven, C: Crowd<P>, W: Watch> World<'_, P, C, W> {
    /// Puts the plan and the script into the queue.
    pub(crate) fn plan(&mut self) {
        let config = Rc::clone(&self.config);
        for (index, (at, _)) in config.faults.faults.iter().enumerate() {
            self.queue.push(*at, Event::Planned(index as u32));
        }
        for (index, step) in config.script.iter().flat_map(|script| &script.steps).enumerate() {
            self.queue.push(step.at, Event::Scripted(index as u32));
        }
        self.queue.push(config.measured_from(), Event::Measure);
        if let Some(at) = config.faults.heal_at {
            self.queue.push(at, Event::Heal);
        }
        for host in 0..self.population.hosts {
            self.schedule_end_of_life(host);
        }
    }

    fn schedule_end_of_life(&mut self, index: usize) {
        if let Some(mean) = self.config.faults.replica_life {
            let at = self.now + self.rng.exponential(mean);
            self.queue.push(at, Event::LifeEnds { peer: index as u32 });
        }
    }

    pub(crate) fn on_life_ends(&mut self, index: usize) {
        if !self.healed {
            self.apply(&Fault::Reset(self.population.id(index)));
            self.schedule_end_of_life(index);
        }
    }

    pub(crate) fn on_planned(&mut self, index: usize) {
        let config = Rc::clone(&self.config);
        let fault = &config.faults.faults[index].1;
        // An operator's word is said in a healed world, too.
        if !self.healed || matches!(fault, Fault::Forget { .. }) {
            self.apply(fault);
        }
    }

    pub(crate) fn on_scripted(&mut self, index: usize) {
        let config = Rc::clone(&self.config);
        let Some(step) = config.script.as_ref().and_then(|script| script.steps.get(index)) else {
            return;
        };
        match &step.action {
            Action::Fault(fault) => self.apply(fault),
            action => C::on_told(self, action),
        }
    }

    pub(crate) fn apply(&mut self, fault: &Fault) {
        let known = |peer: &PeerId| self.population.index(*peer).filter(|i| *i < self.peers.len());
        let up = |peer: &PeerId| known(peer).filter(|index| self.peers[*index].is_up());
        let applies = match fault {
            Fault::Crash(peer)
            | Fault::Tear(peer)
            | Fault::TearRecords(peer)
            | Fault::Reset(peer)
            | Fault::FailWrite { peer, .. }
            | Fault::Pause { peer, .. } => up(peer),
            Fault::Forget { by, .. } => up(by),
            Fault::Destroy(peer) => {
                up(peer).filter(|index| self.overlay.is_some() && !self.is_last_member(*index))
            }
            Fault::Leave(peer) => up(peer).filter(|_| self.overlay.is_some()),
            Fault::Twin(peer) => self.population.twins().map(|[_, twin]| twin).filter(|twin| {
                self.population.twin_of == Some(*peer) && self.peers[*twin].life == 0
            }),
            Fault::Join(peer) => known(peer).filter(|i| self.peers[*i].life == 0),
            Fault::Restart { peer, .. } => {
                known(peer).filter(|i| !self.peers[*i].is_up() && !self.is_absent(*i))
            }
            Fault::WallJump { peer, .. } | Fault::SlowDisk { peer, .. } | Fault::Shelve(peer) => {
                known(peer)
            }
            Fault::Cut(_) | Fault::Mend(_) => Some(0),
        };
        let Some(index) = applies else { return };
        self.watch.on_fault(self.now, fault);
        *self.faults.entry(fault.kind()).or_default() += 1;
        match fault {
            Fault::Crash(_) => self.crash(index),
            Fault::Tear(_) => self.peers[index].tears = Some(Tear::Anything),
            Fault::TearRecords(_) => self.peers[index].tears = Some(Tear::Records),
            Fault::FailWrite { found, .. } => self.fail_write(index, Failure { found: *found }),
            Fault::SlowDisk { write, .. } => self.slow_down(index, *write),
            Fault::Join(_) => self.start(index, Birth::First),
            Fault::Shelve(_) => self.peers[index].shelf = Some(self.peers[index].disk.clone()),
            Fault::Twin(_) => self.start_twin(index),
            Fault::Leave(_) => self.leave_overlay(index),
            Fault::Destroy(_) => self.on_gone(index),
            Fault::Forget { gone, .. } => self.forget(index, gone),
            Fault::Restart { memory, .. } => self.restart(index, *memory),
            Fault::Reset(_) => {
                self.crash(index);
                self.restart(index, Memory::None);
            }
            Fault::Pause { span, .. } => self.pause(index, *span),
            Fault::Cut(cut) => {
                self.wires.cut(cut.clone());
                self.on_cut(cut);
            }
            Fault::Mend(id) => {
                self.wires.mend(*id);
                self.on_mended(Some(*id));
            }
            Fault::WallJump { by_us, .. } => self.peers[index].clocks.jump(*by_us),
        }
    }

    /// The members, as a peer that is one of them knows them.
    fn members_known_to(&self, index: usize) -> Option<&Roster> {
        let peer = self.peers[index].protocol.as_ref().filter(|peer| peer.is_member())?;
        peer.roster()
    }

    /// Whether nobody who is up would be a member without this peer: there would be nothing left to mend.
    fn is_last_member(&self, index: usize) -> bool {
        let mut others = (0..self.peers.len()).filter(|other| *other != index);
        self.members_known_to(index).is_some()
            && !others.any(|other| self.members_known_to(other).is_some())
    }

    /// An operator looks who is in, and names those of them who are gone; if that peer is none, it asks another one.
    fn forget(&mut self, index: usize, gone: &[PeerId]) {
        let mut peers = std::iter::once(index).chain(0..self.peers.len());
        let member = peers.find_map(|index| Some((index, self.members_known_to(index)?)));
        let Some((index, roster)) = member else { return };
        let gone = gone.iter().copied().filter(|peer| roster.contains(*peer)).collect();
        if let Some(wish) = P::of_members(MemberRequest::Forget { gone, unverified: true }) {
            let id = self.peers[index].next_call();
            self.request(index, id, wish);
        }
    }

    fn is_absent(&self, index: usize) -> bool {
        let host = self.population.is_host(index);
        host && self.overlay.as_ref().is_some_and(|overlay| overlay.is_absent(index))
    }

    /// The peer stops. What waits in its mailbox is lost; its disk is not.
    pub(crate) fn crash(&mut self, index: usize) {
        self.cut_write_short(index);
        let peer = &mut self.peers[index];
        peer.protocol = None;
        peer.tears = None;
        peer.timers.clear();
        peer.alarm.disarm();
        peer.paused_until = None;
        peer.deferred.clear();
        for mail in std::mem::take(&mut peer.mailbox) {
            self.lose_letter(mail.packet);
        }
        C::on_crash(self, index);
        self.record(What::Crashed(self.population.id(index)));
        self.schedule_hint(index, false);
        self.schedule_looks(index, Span::ZERO);
    }

    pub(crate) fn restart(&mut self, index: usize, memory: Memory) {
        let peer = &mut self.peers[index];
        if let Some(shelf) = peer.shelf.as_mut().filter(|_| memory == Memory::Shelf) {
            std::mem::swap(shelf, &mut peer.disk);
        }
        if let Memory::Lost(count) = memory {
            peer.disk.lose(count);
        }
        let birth = if memory != Memory::None && self.config.disks {
            let records = peer.disk.records.iter();
            Birth::Recovered(records.map(|(key, value)| (key.clone(), value.clone())).collect())
        } else {
            let undone = peer.disk.undone.take().map(|_| VecDeque::new());
            peer.disk = Disk { undone, ..Disk::default() };
            Birth::Amnesiac
        };
        self.start(index, birth);
        self.schedule_hint(index, true);
    }

    /// A peer that one of its users crashed comes back, without its memory, unless it also hosts replicas: the plan
    /// alone decides which hosts forget.
    pub(crate) fn on_return(&mut self, index: usize) {
        let memory = if self.population.is_host(index) { Memory::Disk } else { Memory::None };
        self.apply(&Fault::Restart { peer: self.population.id(index), memory });
    }

    fn pause(&mut self, index: usize, span: Span) {
        let until = self.now + span;
        let peer = &mut self.peers[index];
        if peer.paused_until.is_none_or(|already| already < until) {
            peer.paused_until = Some(until);
            self.queue.push(until, Event::Wake { peer: index as u32 });
            self.record(What::FellAsleep(self.population.id(index)));
            self.on_asleep(index);
        }
    }

    pub(crate) fn on_wake(&mut self, index: usize) {
        if self.peers[index].paused_until.is_some_and(|until| until <= self.now) {
            self.wake(index);
        }
    }

    /// The pause is over. Timers, messages and users' deeds that have come due meanwhile each come
    /// in their own order, but which of the three the peer gets to first is anybody's guess.
    fn wake(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        peer.paused_until = None;
        peer.alarm.disarm();
        let mailbox = std::mem::take(&mut peer.mailbox);
        let deferred = std::mem::take(&mut peer.deferred);
        self.record(What::Woke(self.population.id(index)));
        self.on_awake(index);
        self.on_disk(index);
        let mut order = [0, 1, 2];
        self.rng.shuffle(&mut order);
        let (mut mailbox, mut deferred) = (Some(mailbox), Some(deferred));
        for source in order {
            match source {
                0 if self.peers[index].paused_until.is_none() => self.fire_due(index),
                0 => {}
                1 => {
                    for mail in mailbox.take().into_iter().flatten() {
                        self.open(mail);
                    }
                }
                _ => deferred.take().into_iter().flatten().for_each(|deed| C::act(self, deed)),
            }
        }
    }

    fn open(&mut self, mail: Mail) {
        if self.now.since(mail.came) > self.config.mail_max {
            self.lose_letter(mail.packet);
        } else {
            // Not for sure to a peer that is up and awake: what came before may have ended that.
            self.deliver(mail.packet);
        }
    }

    fn schedule_hint(&mut self, index: usize, up: bool) {
        if let Some(after) = self.config.faults.hints_after {
            let about = self.population.id(index);
            self.queue.push(self.now + after, Event::Hint { about, up });
        }
    }

    pub(crate) fn on_hint(&mut self, about: PeerId, up: bool) {
        for index in 0..self.peers.len() {
            let awake = self.peers[index].paused_until.is_none();
            if awake && self.population.id(index) != about {
                let input = if up { Input::PeerUp(about) } else { Input::PeerDown(about) };
                self.input(index, input);
            }
        }
    }

    /// The faults are over: the world becomes kind, and says so.
    pub(crate) fn heal(&mut self) {
        self.wires.heal();
        self.watch.on_heal(self.now);
        self.record(What::Healed);
        self.healed = true;
        self.on_mended(None);
        for index in 0..self.peers.len() {
            self.peers[index].tears = None;
            self.heal_disk(index);
            if self.is_absent(index) {
                continue;
            }
            if !self.peers[index].is_up() {
                self.apply(&Fault::Restart {
                    peer: self.population.id(index),
                    memory: Memory::Disk,
                });
            } else if self.peers[index].paused_until.is_some() {
                self.peers[index].paused_until = Some(TrueTime(0));
                self.on_wake(index);
            }
        }
        C::on_healed(self);
    }
}
