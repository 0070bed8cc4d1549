//! Without faults, where peers have agents, no peer's users come before somebody who waits at another
//! peer more often than one grant allows.
//!
//! Among agents order holds between peers, not between users: a request in the swarm stands for all who
//! wait at its peer. Once it is known everywhere ([`super::fifo`] says when), every other peer may use up
//! the grant that it has or that is ahead, and asks again behind it. Something that ends at the peer that
//! waits may have it ask anew, so the count begins again. Only requests that wait for ever count as
//! overtaken. Readers, and those who want permits, stand for themselves in the swarm: they overtake nobody with
//! whom they may be inside, nor with whom they waited from the beginning.

use std::collections::BTreeMap;

use sigmalock_core::{Mode, Name, PeerId, RequestId, Span};

use super::board::{Board, Lock, request_of};
use super::{Oracle, Setting, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone)]
pub struct Turns {
    head_start: Span,
    entries_per_grant: u64,
    board: Board,
    names: BTreeMap<Name, Row>,
}

/// One lock.
#[derive(Debug, Clone, Default)]
struct Row {
    /// When something last ended at a peer.
    ended: BTreeMap<PeerId, TrueTime>,
    /// How often the users of a peer (the second) came before those of another (the first).
    came_before: BTreeMap<(PeerId, PeerId), u64>,
}

impl Turns {
    /// The oracle for one run, in which so many are let in under one grant.
    #[must_use]
    pub fn new(setting: Setting, entries_per_grant: u64) -> Self {
        let head_start = setting.one_way_worst * 3;
        Self { head_start, entries_per_grant, board: Board::default(), names: BTreeMap::new() }
    }
}

impl Turns {
    /// The peers at which somebody has waited for long, whom `entering` passes.
    fn waiting(&self, lock: &Lock, row: &Row, entering: RequestId, at: TrueTime) -> Vec<PeerId> {
        let alone = self.board.mode(entering) == Mode::Exclusive;
        let since = if alone { at } else { self.board.asked(entering).unwrap_or(at) };
        let long = |((asked, request), forever): (&(TrueTime, RequestId), &bool)| {
            let ended = row.ended.get(&request.client).copied().unwrap_or_default();
            let long = (*asked).max(ended) + self.head_start < since;
            (*forever && long && !self.board.share(*request, entering)).then_some(request.client)
        };
        let mut peers: Vec<PeerId> = lock.waiting.iter().filter_map(long).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }
}

impl Oracle for Turns {
    fn name(&self) -> &'static str {
        "turns"
    }

    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>) {
        let at = record.at;
        if let (Some(request), Some((name, lock))) =
            (request_of(&record.what), self.board.lock_of(&record.what))
        {
            let peer = request.client;
            let passed = match (&record.what, self.names.get(name)) {
                (What::Granted { .. }, Some(row)) => self.waiting(lock, row, request, at),
                _ => Vec::new(),
            };
            let row = self.names.entry(name.clone()).or_default();
            if let What::Granted { .. } = &record.what {
                for waits in passed {
                    if waits == peer {
                        continue;
                    }
                    let count = row.came_before.entry((waits, peer)).or_default();
                    *count += 1;
                    if *count == self.entries_per_grant + 1 {
                        let sentence =
                            format!("{count} users of {peer} came before somebody at {waits}");
                        violations.push(Violation { oracle: "turns", at, sentence });
                    }
                }
            }
            if !matches!(record.what, What::Asked { .. } | What::Extended { .. }) {
                row.ended.insert(peer, at);
                row.came_before.retain(|(waits, _), _| *waits != peer);
            }
        }
        self.board.see(record);
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, _: &mut Vec<Violation>) {}
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    /// Client 1 asks at 0; the users of client 2, who ask from `asked_ms` on, come and go.
    fn overtakers(asked_ms: u64, count: u64) -> usize {
        let mut tale = vec![(0, asked(1))];
        for turn in 0..count {
            let at = asked_ms + turn;
            tale.extend([(at, asked(2)), (at, granted(2, 9_999)), (at, released(2))]);
        }
        judge(Turns::new(setting(), 3), &tale, 9_999).len()
    }

    #[test]
    fn one_grant_may_be_used_up() {
        assert_eq!(overtakers(400, 3), 0);
        assert_eq!(overtakers(0, 99), 0, "or more, while the request is not known everywhere");
    }

    #[test]
    fn one_more_is_seen_once() {
        assert_eq!(overtakers(400, 4), 1);
        assert_eq!(overtakers(400, 99), 1);
    }
}
