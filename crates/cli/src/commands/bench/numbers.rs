//! Times, and what is said of them.

use std::time::Duration;

use serde::Serialize;

/// Times of one kind of thing.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u64>);

/// What is said of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn extend_ns(&mut self, times: impl IntoIterator<Item = u64>) {
        self.0.extend(times);
    }

    /// Nothing, if nothing was measured.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        // The nearest rank: a time that was really measured.
        let at = |percent: usize| sorted[(last * percent).div_ceil(100)] as f64 / 1e3;
        Some(Summary { count: sorted.len(), p50_us: at(50), p99_us: at(99) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let mut times = Times::default();
        assert_eq!(times.summary(), None);
        for us in (1..=101).rev() {
            times.push(Duration::from_micros(us));
        }
        let expected = Summary { count: 101, p50_us: 51.0, p99_us: 100.0 };
        assert_eq!(times.summary(), Some(expected));
        let mut one = Times::default();
        one.extend_ns([7_000]);
        assert_eq!(one.summary(), Some(Summary { count: 1, p50_us: 7.0, p99_us: 7.0 }));
    }
}
