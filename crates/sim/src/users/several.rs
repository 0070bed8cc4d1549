//! Users that take several locks at once.

use sigmalock_core::{CallId, RequestId};

use super::{Phase, Session, Users};
use crate::history::What;
use crate::run::LockProtocol;
use crate::watch::Watch;
use crate::workload::Workload;
use crate::world::World;

impl<P: LockProtocol, W: Watch> World<'_, P, Users, W> {
    /// All names that are taken at once with this one, in the order of all; none, if it is the only one.
    pub(super) fn further_names(&mut self, name: usize) -> Vec<usize> {
        let Workload { together, any_order, .. } = self.config.workload;
        if together < 2 {
            return Vec::new();
        }
        let count = 1 + self.users.rng.below(together as u64) as usize;
        let mut names: Vec<usize> = (0..self.users.names.len()).filter(|k| *k != name).collect();
        self.users.rng.shuffle(&mut names);
        names.truncate(count - 1);
        names.push(name);
        if !any_order {
            names.sort_by_key(|name| self.users.names[*name].as_str().to_owned());
        }
        names
    }

    /// It is out of all locks that it has beside the one it asked for last. They are yet to be given back;
    /// what is said about them meanwhile is said to nobody.
    pub(super) fn take_others(&mut self, user: u32) -> Vec<CallId> {
        let record = &mut self.users.list[user as usize];
        record.wants.clear();
        let index = record.peer as usize;
        let others = std::mem::take(&mut record.held);
        self.users.busy -= others.len();
        for session in &others {
            self.peers[index].calls.retain(|(call, _)| *call != session.request.call);
            self.record(What::Released(session.request));
        }
        others.into_iter().map(|session| session.request.call).collect()
    }

    /// One of the locks that it has is lost while it waits for another, or works: it gives up all.
    pub(super) fn lose_one_of_several(&mut self, user: u32, request: RequestId) {
        self.record(What::Lost(request));
        self.record(What::Left(request));
        let record = &mut self.users.list[user as usize];
        let index = record.peer as usize;
        record.held.retain(|session| session.request != request);
        self.users.busy -= 1;
        self.peers[index].calls.retain(|(call, _)| *call != request.call);
        let mut calls = self.take_others(user);
        calls.push(request.call);
        self.give_back(index, calls);
        match self.users.list[user as usize].session {
            Some(Session { phase: Phase::Waiting, .. }) => self.cancel(user),
            Some(_) => self.leave(user),
            None => {}
        }
    }
}
