//! What the literal Sigma shows of itself to people. It does not keep when votes were given, nor in which life: a request
//! is its client's id, with its timestamp in place of a call.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sigmalock_core::report::WAITERS_SHOWN_MAX;
use sigmalock_core::{
    CallId, HolderReport, Incarnation, Inspect, LocalReport, LocalTime, Mode, Name, OwnerReport,
    PeerId, ReplicaId, ReplicaReport, RequestId, Span, Token, VotesReport,
};

use super::replica::Replica;
use super::{Literal, Wish};

fn request((client, timestamp): (PeerId, u64)) -> RequestId {
    RequestId { client, incarnation: Incarnation(0), call: CallId(timestamp) }
}

impl Inspect for Literal {
    fn replicas(&self, _: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        let first = ReplicaId { name: name.clone(), index: 0 };
        let of_name = self.replicas.range(first..).take_while(|(id, _)| id.name == *name);
        of_name.map(|(id, replica)| replica.report(id.index)).collect()
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        let Some(call) = self.whose(name) else { return LocalReport::default() };
        let Some(wish) = self.wishes.get(call) else { return LocalReport::default() };
        let votes = Some(wish.votes_report(self.me));
        let Some(guard) = wish.guard else {
            let waiters = alloc::vec![call];
            return LocalReport { waiters, waiting: 1, votes, ..LocalReport::default() };
        };
        let holder = HolderReport {
            call,
            mode: Mode::Exclusive,
            request: Some(request((self.me, wish.timestamp))),
            token: None,
            held_for: now.since(guard.since()),
            ends_in: guard.deadline().since(now),
        };
        LocalReport { holders: alloc::vec![holder], ..LocalReport::default() }
    }

    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        let hosted = self.replicas.keys().map(|replica| &replica.name);
        let names: BTreeSet<&Name> = hosted
            .chain(self.wishes.iter().map(|(_, wish)| &wish.name))
            .filter(|name| after.is_none_or(|after| *name > after))
            .collect();
        names.into_iter().take(limit).cloned().collect()
    }
}

impl Replica {
    fn report(&self, index: u16) -> ReplicaReport {
        let owner = self.owner.map(|owner| OwnerReport {
            request: request(owner),
            mode: Mode::Exclusive,
            held_for: Span::ZERO,
            ends_in: Span::ZERO,
        });
        let waiters = self.queue.iter().map(|(timestamp, client)| request((*client, *timestamp)));
        ReplicaReport {
            index,
            owners: owner.into_iter().collect(),
            waiters: waiters.take(WAITERS_SHOWN_MAX).collect(),
            waiting: self.queue.len() as u32,
            token: Token(self.grants),
            abstains_for: Span::ZERO,
        }
    }
}

impl Wish {
    fn votes_report(&self, me: PeerId) -> VotesReport {
        let mut report = VotesReport::default();
        for resp in &self.resp {
            *match resp {
                Some(resp) if resp.owner == me => &mut report.mine,
                Some(_) => &mut report.theirs,
                None => &mut report.unknown,
            } += 1;
        }
        report
    }
}
