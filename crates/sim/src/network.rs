//! The network between peers: what becomes of each message.

use sigmalock_core::{PeerId, Span};

use crate::faults::Cut;
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::rng::Rng;
use crate::script::{Link, Rule, RuleEffect};

/// A model of the network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// One-way delays.
    pub latency: Latency,
    /// Whether a delay is drawn once for each ordered pair of peers instead of for each message.
    pub pairwise: bool,
    /// Whether messages between two peers arrive in the order in which they were sent. Late
    /// duplicates keep no order.
    pub fifo: bool,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message is doubled; the copy has a delay of its own.
    pub duplication: f64,
    /// The probability of a copy that arrives up to `late_max` after its own delay, whatever became
    /// of the original.
    pub late: f64,
    /// How much later than usual a late copy may be.
    pub late_max: Span,
}

impl Network {
    /// A network that only takes time.
    #[must_use]
    pub const fn perfect(latency: Latency) -> Self {
        Self {
            latency,
            pairwise: false,
            fifo: false,
            loss: 0.0,
            duplication: 0.0,
            late: 0.0,
            late_max: Span::ZERO,
        }
    }
}

/// One end of a message: where the peer is in the world's table, and what it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) index: usize,
    pub(crate) id: PeerId,
}

/// When the original and the copy of a message arrive, if they do.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) arrives: Option<TrueTime>,
    pub(crate) copy: Option<TrueTime>,
}

/// What a peer's message to itself takes, about as long as over a loopback interface. Never no time:
/// a world in which time stands still could run for ever.
const TO_SELF: Span = Span::from_micros(50);

/// The network at work.
#[derive(Debug, Clone)]
pub(crate) struct Wires {
    model: Network,
    pair_seed: u64,
    rng: Rng,
    cuts: Vec<Cut>,
    /// The last arrival on each ordered pair, by the places of its ends; kept for FIFO only.
    last: Vec<Vec<TrueTime>>,
    links: Vec<Link>,
    rules: Vec<(Rule, u64)>,
}

impl Wires {
    pub(crate) fn new(model: Network, seed: u64, links: Vec<Link>, rules: Vec<Rule>) -> Self {
        Self {
            model,
            pair_seed: Rng::split(seed, 0x7061_6972).bits(),
            rng: Rng::split(seed, 0x6e65_7477),
            cuts: Vec::new(),
            last: Vec::new(),
            links,
            rules: rules.into_iter().map(|rule| (rule, 0)).collect(),
        }
    }

    pub(crate) fn cut(&mut self, cut: Cut) {
        self.cuts.push(cut);
    }

    pub(crate) fn mend(&mut self, id: u32) -> bool {
        let before = self.cuts.len();
        self.cuts.retain(|cut| cut.id != id);
        self.cuts.len() < before
    }

    /// From here on nothing is cut, lost or copied.
    pub(crate) fn heal(&mut self) {
        self.cuts.clear();
        self.rules.clear();
        self.model.loss = 0.0;
        self.model.duplication = 0.0;
        self.model.late = 0.0;
    }

    /// Decides on one message. A cut swallows what is *sent* while it lasts; what was under way
    /// before arrives.
    #[inline]
    pub(crate) fn fate(&mut self, now: TrueTime, from: End, to: End, kind: &str) -> Fate {
        if from.index == to.index {
            return Fate { arrives: Some(now + TO_SELF), copy: None };
        }
        if !self.cuts.is_empty() && self.cuts.iter().any(|cut| cut.stops(from.id, to.id)) {
            return Fate::default();
        }
        if let Some(effect) = self.ruled(from.id, to.id, kind) {
            return self.apply_rule(effect, now, from, to);
        }
        let mut fate = Fate::default();
        if !self.rng.chance(self.model.loss) {
            fate.arrives = Some(self.arrival(now, from, to));
        }
        if self.rng.chance(self.model.duplication) {
            fate.copy = Some(self.arrival(now, from, to));
        } else if self.rng.chance(self.model.late) {
            let late = self.rng.span(Span::ZERO, self.model.late_max);
            fate.copy = Some(now + self.delay(from.id, to.id) + late);
        }
        fate
    }

    #[inline]
    fn arrival(&mut self, now: TrueTime, from: End, to: End) -> TrueTime {
        let arrival = now + self.delay(from.id, to.id);
        if self.model.fifo { self.in_order(arrival, from.index, to.index) } else { arrival }
    }

    fn in_order(&mut self, arrival: TrueTime, from: usize, to: usize) -> TrueTime {
        if self.last.len() <= from {
            self.last.resize_with(from + 1, Vec::new);
        }
        let row = &mut self.last[from];
        if row.len() <= to {
            row.resize(to + 1, TrueTime(0));
        }
        row[to] = row[to].max(arrival);
        row[to]
    }

    #[inline]
    fn delay(&mut self, from: PeerId, to: PeerId) -> Span {
        if let Some(link) = self.links.iter().find(|link| link.from == from && link.to == to) {
            return link.delay;
        }
        if self.model.pairwise {
            let pair = from.0.rotate_left(32) ^ to.0;
            self.model.latency.draw(&mut Rng::split(self.pair_seed, pair), from, to)
        } else {
            self.model.latency.draw(&mut self.rng, from, to)
        }
    }

    fn ruled(&mut self, from: PeerId, to: PeerId, kind: &str) -> Option<RuleEffect> {
        let mut effect = None;
        for (rule, seen) in &mut self.rules {
            if rule.matches(from, to, kind) {
                *seen += 1;
                if effect.is_none() && rule.nth.is_none_or(|nth| nth == *seen) {
                    effect = Some(rule.effect);
                }
            }
        }
        effect
    }

    fn apply_rule(&mut self, effect: RuleEffect, now: TrueTime, from: End, to: End) -> Fate {
        match effect {
            RuleEffect::Drop => Fate::default(),
            RuleEffect::Delay(delay) => Fate { arrives: Some(now + delay), copy: None },
            RuleEffect::Duplicate(after) => {
                let arrives = self.arrival(now, from, to);
                Fate { arrives: Some(arrives), copy: Some(now + after) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: End = End { index: 0, id: PeerId(0) };
    const B: End = End { index: 1, id: PeerId(1) };
    const C: End = End { index: 2, id: PeerId(2) };

    fn uniform() -> Network {
        let (low, high) = (Span::from_millis(0), Span::from_millis(200));
        Network::perfect(Latency::Uniform { low, high })
    }

    fn wires(model: Network) -> Wires {
        Wires::new(model, 1, Vec::new(), Vec::new())
    }

    fn arrivals(wires: &mut Wires, from: End, to: End, count: u64) -> Vec<Fate> {
        (0..count).map(|i| wires.fate(TrueTime(i * 1_000), from, to, "X")).collect()
    }

    #[test]
    fn fifo_channels_keep_their_order_and_others_do_not() {
        let order = |model| {
            let fates = arrivals(&mut wires(model), A, B, 1_000);
            fates.iter().map(|f| f.arrives.unwrap()).collect::<Vec<_>>().is_sorted()
        };
        assert!(order(Network { fifo: true, ..uniform() }));
        assert!(!order(uniform()));
    }

    #[test]
    fn loss_and_duplication_come_as_often_as_they_should() {
        let model = Network { loss: 0.1, duplication: 0.05, ..uniform() };
        let fates = arrivals(&mut wires(model), A, B, 100_000);
        let lost = fates.iter().filter(|f| f.arrives.is_none()).count();
        let copied = fates.iter().filter(|f| f.copy.is_some()).count();
        assert!((9_600..10_400).contains(&lost), "{lost}");
        assert!((4_700..5_300).contains(&copied), "{copied}");
    }

    #[test]
    fn late_copies_are_late_but_not_later_than_they_may_be() {
        let late_max = Span::from_secs(3);
        let model = Network { late: 0.5, late_max, loss: 0.5, ..uniform() };
        let bound = model.latency.worst() + late_max;
        let mut latest = Span::ZERO;
        for (i, fate) in arrivals(&mut wires(model), A, B, 10_000).iter().enumerate() {
            let Some(copy) = fate.copy else { continue };
            latest = latest.max(copy.since(TrueTime(i as u64 * 1_000)));
        }
        assert!(latest <= bound && latest > Span::from_secs(2));
    }

    #[test]
    fn a_cut_stops_one_direction_between_its_groups_and_no_other() {
        let mut wires = wires(uniform());
        wires.cut(Cut { id: 7, from: vec![A.id], to: vec![B.id] });
        let arrives =
            |wires: &mut Wires, from, to| wires.fate(TrueTime(0), from, to, "X").arrives.is_some();
        assert!(!arrives(&mut wires, A, B));
        assert!(arrives(&mut wires, B, A), "one-way");
        assert!(arrives(&mut wires, A, C) && arrives(&mut wires, C, B), "not transitive");
        assert!(wires.mend(7) && !wires.mend(7));
        assert!(arrives(&mut wires, A, B));
    }

    #[test]
    fn pairwise_delays_are_fixed_for_each_ordered_pair() {
        let mut wires = wires(Network { pairwise: true, ..uniform() });
        let mut delay = |from, to| wires.fate(TrueTime(0), from, to, "X").arrives.unwrap();
        assert_eq!(delay(A, B), delay(A, B));
        assert_ne!(delay(A, B), delay(B, A));
        assert_ne!(delay(A, B), delay(A, C));
    }

    #[test]
    fn scripted_links_and_rules_override_the_model() {
        let link = Link { from: A.id, to: B.id, delay: Span::from_millis(7) };
        let rule = |nth, effect| Rule {
            kind: Some("X".into()),
            from: Some(A.id),
            to: Some(B.id),
            nth: Some(nth),
            effect,
        };
        let second = Span::from_secs(1);
        let rules = vec![
            rule(2, RuleEffect::Drop),
            rule(3, RuleEffect::Delay(second)),
            rule(4, RuleEffect::Duplicate(second)),
        ];
        let mut wires = Wires::new(uniform(), 1, vec![link], rules);
        let mut fate = |kind| wires.fate(TrueTime(0), A, B, kind);
        let usual = Fate { arrives: Some(TrueTime(7_000)), copy: None };
        let late = TrueTime(1_000_000);
        assert_eq!([fate("Y"), fate("X"), fate("X")], [usual, usual, Fate::default()]);
        assert_eq!(fate("X"), Fate { arrives: Some(late), copy: None });
        assert_eq!(fate("X"), Fate { copy: Some(late), ..usual });
        assert_eq!(fate("X"), usual);
    }
}
