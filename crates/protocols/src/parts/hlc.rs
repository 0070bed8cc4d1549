//! Hybrid logical clocks: timestamps that follow causes like Lamport's, and follow the wall clock
//! otherwise, so that somebody new does not overtake everybody who has been waiting.

use core::fmt;

use sigmalock_core::WallTime;

/// How many timestamps fit into one millisecond, as bits.
const COUNTER_BITS: u32 = 20;

/// A timestamp: milliseconds of the wall clock, then a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hlc(u64);

impl Hlc {
    /// A bare number: Lamport's clock, for protocols that follow the text to the letter.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
    /// For the wire.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Hlc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> COUNTER_BITS, self.0 & ((1 << COUNTER_BITS) - 1))
    }
}

/// A peer's hybrid logical clock.
#[derive(Debug, Clone, Default, Hash)]
pub struct HybridClock {
    last: Hlc,
}

impl HybridClock {
    /// A new timestamp, later than all before it and all seen.
    pub fn tick(&mut self, wall: WallTime) -> Hlc {
        let physical = (wall.as_micros() / 1_000) << COUNTER_BITS;
        self.last = Hlc(physical.max(self.last.0.saturating_add(1)));
        self.last
    }
    /// Another peer's timestamp: ours will be later.
    pub fn observe(&mut self, seen: Hlc) {
        self.last = self.last.max(seen);
    }
    /// The latest timestamp made or seen.
    #[must_use]
    pub fn latest(&self) -> Hlc {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn wall(ms: u64) -> WallTime {
        WallTime::from_micros(ms * 1_000)
    }

    #[test]
    fn time_passes_and_ties_are_counted() {
        let mut clock = HybridClock::default();
        let first = clock.tick(wall(5));
        let second = clock.tick(wall(5));
        let third = clock.tick(wall(6));
        assert!(first < second && second < third);
        assert_eq!(alloc::format!("{first} {second} {third}"), "5.0 5.1 6.0");
    }

    #[test]
    fn a_clock_that_jumped_back_still_moves_forward() {
        let mut clock = HybridClock::default();
        let before = clock.tick(wall(100));
        assert!(clock.tick(wall(1)) > before);
    }

    #[test]
    fn what_was_seen_is_earlier_than_what_is_made() {
        let mut fast = HybridClock::default();
        let mut slow = HybridClock::default();
        let seen = fast.tick(wall(1_000));
        slow.observe(seen);
        assert!(slow.tick(wall(1)) > seen);
        assert_eq!(fast.latest(), seen);
    }
}
