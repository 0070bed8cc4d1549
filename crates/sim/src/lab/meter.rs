//! What a run of one lock shows beside throughput: hand-offs, and who got how much.

use std::collections::BTreeMap;

use sigmalock_core::{PeerId, RequestId};

use crate::history::{Record, TrueTime, What};
use crate::measure::Histogram;
use crate::watch::Watch;

/// Watches a run of one lock from the moment at which it is measured.
#[derive(Debug)]
pub struct Meter {
    from: TrueTime,
    /// Requests made while measuring.
    pub asked: u64,
    /// Times from somebody's leaving to the next entry, where whoever enters was waiting already.
    pub hand_offs: Histogram,
    entries: BTreeMap<PeerId, u64>,
    waiting: BTreeMap<RequestId, TrueTime>,
    left: Option<TrueTime>,
}

impl Meter {
    /// Measures from this moment on.
    #[must_use]
    pub fn new(from: TrueTime) -> Self {
        Self {
            from,
            asked: 0,
            hand_offs: Histogram::default(),
            entries: BTreeMap::new(),
            waiting: BTreeMap::new(),
            left: None,
        }
    }

    /// Jain's index of how entries were shared among so many clients: 1 if all had the same, 1/clients
    /// if one had them all; none without entries.
    #[must_use]
    pub fn fairness(&self, clients: usize) -> Option<f64> {
        jain(self.entries.values().copied(), clients)
    }

    fn enter(&mut self, at: TrueTime, request: &RequestId) {
        let asked = self.waiting.remove(request);
        let left = self.left.take();
        if at < self.from {
            return;
        }
        *self.entries.entry(request.client).or_default() += 1;
        if let (Some(asked), Some(left)) = (asked, left)
            && asked < left
        {
            self.hand_offs.add(at.since(left));
        }
    }
}

impl Watch for Meter {
    fn on_record(&mut self, record: &Record) {
        match &record.what {
            What::Asked { request, .. } => {
                self.waiting.insert(*request, record.at);
                self.asked += u64::from(record.at >= self.from);
            }
            What::Granted { request, .. } => self.enter(record.at, request),
            What::Released(_) => self.left = Some(record.at),
            What::Ended(request, _) => {
                self.waiting.remove(request);
            }
            _ => {}
        }
    }
}

/// (Σx)² / (clients · Σx²).
fn jain(shares: impl Iterator<Item = u64>, clients: usize) -> Option<f64> {
    let (sum, squares) = shares.fold((0.0, 0.0), |(sum, squares), share| {
        let share = share as f64;
        (sum + share, squares + share * share)
    });
    (squares > 0.0 && clients > 0).then(|| sum * sum / (clients as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sigmalock_core::{CallId, Incarnation, Mode, Name, Span};

    fn request(client: u64, call: u64) -> RequestId {
        RequestId { client: PeerId(client), incarnation: Incarnation(1), call: CallId(call) }
    }

    #[test]
    fn jains_index_is_one_for_equal_shares_and_one_nth_for_a_monopoly() {
        assert_eq!(jain([3, 3, 3, 3].into_iter(), 4), Some(1.0));
        assert_eq!(jain([8].into_iter(), 4), Some(0.25));
        assert_eq!(jain([2, 1].into_iter(), 2), Some(0.9));
        assert_eq!(jain([].into_iter(), 4), None);
    }

    #[test]
    fn a_hand_off_is_from_leaving_to_the_entry_of_one_who_waited() {
        let name = Name::new("/a").unwrap();
        let mut meter = Meter::new(TrueTime(100));
        let mut see = |at, what| meter.on_record(&Record { at: TrueTime(at), what });
        let asked = |request| What::Asked {
            request,
            name: name.clone(),
            mode: Mode::Exclusive,
            forever: true,
            until: None,
        };
        let granted =
            |request| What::Granted { request, token: None, slot: None, until: TrueTime(9_999) };
        see(110, asked(request(1, 1)));
        see(120, granted(request(1, 1)));
        see(130, asked(request(2, 1)));
        see(140, What::Released(request(1, 1)));
        see(147, granted(request(2, 1)));
        // Who enters next has not asked yet, so that is no hand-off.
        see(150, What::Released(request(2, 1)));
        see(190, asked(request(1, 2)));
        see(200, granted(request(1, 2)));
        assert_eq!((meter.asked, meter.hand_offs.count()), (3, 1));
        assert_eq!(meter.hand_offs.mean(), Span::from_micros(7));
        assert_eq!(meter.fairness(2), Some(0.9));
    }
}
