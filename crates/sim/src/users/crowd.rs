//! Who asks when: arrivals, loops, the roll call after the heal, and what scripts say.

use sigmalock_core::{Name, PeerId, Span};

use super::{Deed, User, UserEvent, Users};
use crate::run::LockProtocol;
use crate::script::Action;
use crate::watch::Watch;
use crate::workload::{Arrivals, Errand};
use crate::world::{Event, World};

/// Who was turned away thinks at least this long before asking again, so that time passes.
pub(super) const AFTER_REFUSAL_MIN: Span = Span::from_millis(10);
/// Idle clients ask once more within this long after the heal.
const ROLL_CALL: Span = Span::from_secs(1);

impl<P: LockProtocol, W: Watch> World<'_, P, Users, W> {
    /// Makes the clients that exist from the beginning.
    pub(super) fn people(&mut self) {
        match self.config.workload.arrivals {
            Arrivals::Scripted => {}
            Arrivals::Poisson { clients_min, .. } => {
                for _ in 0..clients_min {
                    let user = self.add_client();
                    self.users.idle.push(user);
                }
                self.schedule_arrival();
            }
            Arrivals::Loops { clients, think } => {
                for _ in 0..clients {
                    let user = self.add_client();
                    let after = think.draw(&mut self.users.rng);
                    self.schedule_ask(user, after);
                }
            }
        }
    }

    fn add_client(&mut self) -> u32 {
        let k = self.users.list.len() / self.config.workload.clients_per_peer.max(1);
        let hosts = self.population.places();
        let index = if self.config.workload.clients_on_hosts { k % hosts } else { hosts + k };
        self.add_user(index)
    }

    fn add_user(&mut self, index: usize) -> u32 {
        self.ensure_peer(index);
        self.users.list.push(User {
            peer: index as u32,
            epoch: 0,
            session: None,
            held: Vec::new(),
            wants: Vec::new(),
            last: None,
        });
        (self.users.list.len() - 1) as u32
    }

    fn schedule_ask(&mut self, user: u32, after: Span) {
        if !self.healed {
            self.schedule(user, after, Deed::Ask);
        }
    }

    fn schedule_arrival(&mut self) {
        let Arrivals::Poisson { per_s, .. } = self.config.workload.arrivals else { return };
        if per_s > 0.0 && !self.healed {
            let mean = Span::from_micros((1e6 / per_s) as u64);
            let at = self.now + self.users.rng.exponential(mean);
            let arrival = UserEvent { user: 0, epoch: 0, deed: Deed::Arrive };
            self.queue.push(at, Event::User(arrival));
        }
    }

    pub(super) fn on_arrival(&mut self) {
        if self.healed {
            return;
        }
        if let Some(user) = self.idle_user() {
            self.schedule(user, Span::ZERO, Deed::Ask);
        }
        self.schedule_arrival();
    }

    /// A random idle user whose peer is up, or a new one, if there may be more.
    fn idle_user(&mut self) -> Option<u32> {
        for _ in 0..self.users.idle.len().min(4) {
            let place = self.users.rng.below(self.users.idle.len() as u64) as usize;
            let peer = self.users.list[self.users.idle[place] as usize].peer;
            if self.peers[peer as usize].is_up() {
                return Some(self.users.idle.swap_remove(place));
            }
        }
        let Arrivals::Poisson { clients_max, .. } = self.config.workload.arrivals else {
            return None;
        };
        (self.users.list.len() < clients_max).then(|| self.add_client())
    }

    /// What a user does when a session is over.
    pub(super) fn go_on(&mut self, user: u32, at_least: Span) {
        match self.config.workload.arrivals {
            Arrivals::Scripted => {}
            Arrivals::Poisson { .. } => self.users.idle.push(user),
            Arrivals::Loops { think, .. } => {
                let think = think.draw(&mut self.users.rng).max(at_least);
                self.schedule_ask(user, think);
            }
        }
    }

    /// The peer is down: whatever its users had under way is over.
    pub(super) fn forsake_users(&mut self, index: usize) {
        let calls = std::mem::take(&mut self.peers[index].calls);
        for (_, user) in calls {
            self.finish(user);
        }
    }

    /// The peer is back: its users begin anew.
    pub(super) fn encourage_users(&mut self, index: usize) {
        for user in 0..self.users.list.len() as u32 {
            let record = &self.users.list[user as usize];
            let idle = record.session.is_none() && !self.users.idle.contains(&user);
            if record.peer as usize == index && idle {
                self.users.list[user as usize].epoch += 1;
                self.go_on(user, AFTER_REFUSAL_MIN);
            }
        }
    }

    /// After the heal every idle user asks once more, and waits for as long as it takes.
    pub(super) fn roll_call(&mut self) {
        if self.config.workload.arrivals == Arrivals::Scripted {
            return;
        }
        for user in 0..self.users.list.len() as u32 {
            if self.users.list[user as usize].session.is_none() {
                self.users.list[user as usize].epoch += 1;
                self.users.expected += 1;
                let after = self.users.rng.span(Span::ZERO, ROLL_CALL);
                self.schedule(user, after, Deed::AskKindly);
            }
        }
    }

    pub(super) fn on_told(&mut self, action: &Action) {
        let place = |peer: &PeerId| self.population.index(*peer);
        match action {
            Action::Fault(_) => {}
            Action::Acquire { peer, name, errand } => {
                if let Some(index) = place(peer) {
                    self.scripted_acquire(index, name, *errand);
                }
            }
            Action::Release { peer, name } => {
                place(peer).into_iter().for_each(|index| self.scripted_release(index, name));
            }
            Action::Cancel { peer, name } => {
                place(peer).into_iter().for_each(|index| self.scripted_cancel(index, name));
            }
            Action::Write { peer, name } => {
                place(peer).into_iter().for_each(|index| self.scripted_write(index, name));
            }
        }
    }

    fn scripted_acquire(&mut self, index: usize, name: &Name, errand: Errand) {
        let user = self.add_user(index);
        let name = self.users.name(name);
        self.ask(user, name, errand);
    }

    fn scripted_release(&mut self, index: usize, name: &Name) {
        if let Some(user) = self.users.session_of(index, name) {
            self.do_now(user, Deed::Leave);
        }
    }

    fn scripted_cancel(&mut self, index: usize, name: &Name) {
        if let Some(user) = self.users.session_of(index, name) {
            self.do_now(user, Deed::Cancel);
        }
    }

    fn do_now(&mut self, user: usize, deed: Deed) {
        let epoch = self.users.list[user].epoch;
        self.on_user(UserEvent { user: user as u32, epoch, deed });
    }

    fn scripted_write(&mut self, index: usize, name: &Name) {
        let name = self.users.name(name);
        let theirs = self.users.list.iter().rev().filter(|user| user.peer as usize == index);
        let last = theirs.filter_map(|user| user.last).find(|pass| pass.name == name);
        self.write_again(last);
    }
}
