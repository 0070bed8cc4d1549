//! What is counted while a run goes on, in memory that does not grow with it.

use std::collections::BTreeMap;

use sigmalock_core::Span;

use crate::history::{Ledger, Row};

/// Buckets per doubling: a quantile is off by less than one per cent.
const SUB_BITS: u32 = 7;

/// A histogram of spans with logarithmic buckets.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum_us: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; 64 << SUB_BITS], count: 0, sum_us: 0 }
    }
}

impl Histogram {
    /// Adds a span.
    pub fn add(&mut self, span: Span) {
        self.buckets[bucket(span.as_micros())] += 1;
        self.count += 1;
        self.sum_us += u128::from(span.as_micros());
    }

    /// How many spans there are.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mean; zero if there is none.
    #[must_use]
    pub fn mean(&self) -> Span {
        Span::from_micros((self.sum_us / u128::from(self.count.max(1))) as u64)
    }

    /// The span that this share of all do not exceed; zero if there is none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Span {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Span::from_micros(floor(index));
            }
        }
        Span::ZERO
    }
}

/// Small values have a bucket each; larger ones share it with those that agree in the top bits.
const fn bucket(us: u64) -> usize {
    let shift = (u64::BITS - us.leading_zeros()).saturating_sub(SUB_BITS + 1);
    ((shift as usize) << SUB_BITS) + (us >> shift) as usize
}

/// The smallest value of a bucket.
const fn floor(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    ((index - (shift << SUB_BITS)) as u64) << shift
}

/// Counts messages by kind. Kinds are few and their texts are static, so finding the row is a short
/// scan over addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    rows: Vec<(&'static str, Row)>,
}

impl Tally {
    /// The place of a kind's row.
    #[inline]
    pub(crate) fn place(&mut self, kind: &'static str) -> u8 {
        for (place, (known, _)) in self.rows.iter().enumerate() {
            if std::ptr::eq(*known, kind) {
                return place as u8;
            }
        }
        // The same text may have two addresses; the ledger puts such rows together.
        assert!(self.rows.len() < 256, "a protocol has fewer than 256 kinds of messages");
        self.rows.push((kind, Row::default()));
        (self.rows.len() - 1) as u8
    }

    #[inline]
    pub(crate) fn row(&mut self, place: u8) -> &mut Row {
        &mut self.rows[usize::from(place)].1
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut kinds: BTreeMap<&'static str, Row> = BTreeMap::new();
        for (kind, row) in &self.rows {
            let sum = kinds.entry(kind).or_default();
            sum.sent += row.sent;
            sum.sent_bytes += row.sent_bytes;
            sum.duplicated += row.duplicated;
            sum.delivered += row.delivered;
            sum.lost += row.lost;
            sum.in_flight += row.in_flight;
        }
        Ledger { kinds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_fine_and_in_order() {
        let values = (0..100_000u64).chain((20..60).map(|shift| 1 << shift));
        let mut last = 0;
        for value in values {
            let index = bucket(value);
            assert!(index >= last, "{value}");
            last = index;
            let low = floor(index);
            assert!(low <= value && (value - low) * 100 <= value, "{value} is put under {low}");
        }
        assert!(bucket(u64::MAX) < 64 << SUB_BITS);
    }

    #[test]
    fn quantiles_are_within_one_per_cent() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), Span::ZERO);
        (1..=1_000).for_each(|ms| histogram.add(Span::from_millis(ms)));
        let close = |span: Span, ms: u64| span.as_micros().abs_diff(ms * 1_000) <= ms * 10;
        assert!(close(histogram.quantile(0.5), 500) && close(histogram.quantile(0.99), 990));
        assert_eq!(histogram.mean(), Span::from_micros(500_500));
        assert_eq!(histogram.count(), 1_000);
    }

    #[test]
    fn rows_of_one_kind_are_put_together() {
        let mut tally = Tally::default();
        let other: &'static str = Box::leak(String::from("A").into_boxed_str());
        for kind in ["A", "B", other, "A"] {
            let place = tally.place(kind);
            tally.row(place).sent += 1;
        }
        assert_eq!(tally.ledger().kinds["A"].sent, 3);
        assert_eq!(tally.ledger().kinds["B"].sent, 1);
    }
}
