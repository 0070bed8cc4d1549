//! Remembering which requests are over, for as long as anything about them can still arrive.

use alloc::collections::{BTreeSet, VecDeque};

use sigmalock_core::LocalTime;

/// A bounded set of what is over. When it is full, the oldest entry goes.
#[derive(Debug, Clone, Hash)]
pub struct Tombstones<T> {
    order: VecDeque<(LocalTime, T)>,
    members: BTreeSet<T>,
    len_max: usize,
}

impl<T: Ord + Copy> Tombstones<T> {
    /// An empty set of at most `len_max`.
    #[must_use]
    pub const fn new(len_max: usize) -> Self {
        Self { order: VecDeque::new(), members: BTreeSet::new(), len_max }
    }

    /// Remembers `over` until `until`. Entries are expected in the order of their ends.
    pub fn insert(&mut self, over: T, now: LocalTime, until: LocalTime) {
        self.prune(now);
        if self.members.insert(over) {
            self.order.push_back((until, over));
            if self.order.len() > self.len_max {
                self.drop_oldest();
            }
        }
        debug_assert_eq!(self.order.len(), self.members.len(), "each is there once, and in both");
        debug_assert!(self.order.len() <= self.len_max, "it is bounded");
    }

    /// Whether it is known to be over.
    #[must_use]
    pub fn contains(&self, over: &T) -> bool {
        self.members.contains(over)
    }

    /// Forgets what has had its time.
    pub fn prune(&mut self, now: LocalTime) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest();
        }
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn drop_oldest(&mut self) {
        if let Some((_, over)) = self.order.pop_front() {
            self.members.remove(&over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(us: u64) -> LocalTime {
        LocalTime::from_micros(us)
    }

    #[test]
    fn what_is_over_is_remembered_until_its_time() {
        let mut stones = Tombstones::new(10);
        stones.insert('a', at(0), at(5));
        stones.insert('b', at(1), at(6));
        stones.prune(at(4));
        assert!(stones.contains(&'a') && stones.contains(&'b'));
        stones.prune(at(5));
        assert!(!stones.contains(&'a') && stones.contains(&'b'));
        stones.prune(at(6));
        assert!(stones.is_empty());
    }

    #[test]
    fn the_bound_drops_the_oldest() {
        let mut stones = Tombstones::new(2);
        for (i, c) in "abc".chars().enumerate() {
            stones.insert(c, at(0), at(10 + i as u64));
        }
        assert!(!stones.contains(&'a') && stones.contains(&'b') && stones.contains(&'c'));
    }
}
