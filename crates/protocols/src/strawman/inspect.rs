//! What the strawman shows of itself to people.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sigmalock_core::{
    Inspect, LocalReport, LocalTime, Mode, Name, OwnerReport, ReplicaId, ReplicaReport, RequestId,
    Token, VotesReport,
};

use super::{Claim, Strawman};
use crate::parts::User;

impl Inspect for Strawman {
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        let first = ReplicaId { name: name.clone(), index: 0 };
        let of_name = self.replicas.range(first..).take_while(|(id, _)| id.name == *name);
        let report = |(id, _): (&ReplicaId, _)| {
            let owner = self.owner_of(now, id).map(|owner| OwnerReport {
                request: owner.bid.request,
                mode: Mode::Exclusive,
                held_for: now.since(owner.given),
                ends_in: owner.until().since(now),
            });
            ReplicaReport {
                index: id.index,
                owners: owner.into_iter().collect(),
                waiters: Vec::new(),
                waiting: 0,
                token: Token::default(),
                abstains_for: self.abstains_until.since(now),
            }
        };
        of_name.map(report).collect()
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        let request = |call| RequestId { client: self.me, incarnation: self.incarnation, call };
        let first = |(_, claim): &(_, &Claim)| claim.name == *name && claim.guard().is_none();
        let votes = self.claims.iter().find(first).map(|(_, claim)| claim.votes_report());
        LocalReport { votes, ..self.claims.report(now, name, request) }
    }

    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        let hosted = self.replicas.keys().map(|replica| &replica.name);
        let used = self.claims.iter().map(|(_, claim)| &claim.name);
        let names: BTreeSet<&Name> =
            hosted.chain(used).filter(|name| after.is_none_or(|after| *name > after)).collect();
        names.into_iter().take(limit).cloned().collect()
    }
}

impl Claim {
    fn votes_report(&self) -> VotesReport {
        let mut report = VotesReport::default();
        for seat in &self.seats {
            *match (seat.expiry > LocalTime::MIN, seat.rejected) {
                (true, _) => &mut report.mine,
                (false, true) => &mut report.theirs,
                (false, false) => &mut report.unknown,
            } += 1;
        }
        report
    }
}
