//! The timer table a driver keeps for each peer.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::time::LocalTime;

/// Timers by what they are for. Each is set at most once: setting it again moves it, and it fires
/// at most once per setting and never after it was cancelled.
#[derive(Debug, Clone)]
pub struct Timers<T> {
    due: BTreeMap<T, LocalTime>,
    order: BTreeSet<(LocalTime, T)>,
}

impl<T: Ord + Clone> Timers<T> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { due: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Sets or moves a timer.
    pub fn set(&mut self, timer: T, at: LocalTime) {
        if let Some(before) = self.due.insert(timer.clone(), at) {
            let mut entry = (before, timer);
            self.order.remove(&entry);
            entry.0 = at;
            self.order.insert(entry);
        } else {
            self.order.insert((at, timer));
        }
    }

    /// Takes a timer back, if it was set.
    pub fn cancel(&mut self, timer: &T) {
        if let Some(at) = self.due.remove(timer) {
            self.order.remove(&(at, timer.clone()));
        }
    }

    /// When the earliest timer is due.
    #[must_use]
    pub fn next(&self) -> Option<LocalTime> {
        self.order.first().map(|(at, _)| *at)
    }

    /// All that are set, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = (LocalTime, &T)> {
        self.order.iter().map(|(at, timer)| (*at, timer))
    }

    /// Takes the earliest timer that is due, ties in the timers' own order.
    pub fn pop_due(&mut self, now: LocalTime) -> Option<T> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.order.pop_first()?;
        self.due.remove(&timer);
        Some(timer)
    }

    /// Forgets all timers, as a crash does.
    pub fn clear(&mut self) {
        self.due.clear();
        self.order.clear();
    }

    /// How many timers are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

impl<T: Ord + Clone> Default for Timers<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const fn at(us: u64) -> LocalTime {
        LocalTime::from_micros(us)
    }

    #[test]
    fn timers_fire_in_order_and_once() {
        let mut timers = Timers::new();
        timers.set('b', at(2));
        timers.set('a', at(2));
        timers.set('c', at(1));
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.pop_due(at(0)), None);
        let fired: Vec<char> = core::iter::from_fn(|| timers.pop_due(at(2))).collect();
        assert_eq!(fired, ['c', 'a', 'b']);
        assert!(timers.is_empty());
    }

    #[test]
    fn a_timer_set_again_moves_and_a_cancelled_one_never_fires() {
        let mut timers = Timers::new();
        timers.set('a', at(1));
        timers.set('a', at(5));
        timers.set('b', at(3));
        timers.cancel(&'b');
        timers.cancel(&'z');
        assert_eq!(timers.pop_due(at(4)), None);
        assert_eq!(timers.pop_due(at(5)), Some('a'));
        assert_eq!(timers.pop_due(at(9)), None);
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_plain_list(ops in prop::collection::vec((0u8..3, 0u8..6, 0u64..20), 0..80)) {
            let mut timers = Timers::new();
            let mut list: Vec<(LocalTime, u8)> = Vec::new();
            for (op, timer, time) in ops {
                match op {
                    0 => {
                        timers.set(timer, at(time));
                        list.retain(|(_, t)| *t != timer);
                        list.push((at(time), timer));
                        list.sort_unstable();
                    }
                    1 => {
                        timers.cancel(&timer);
                        list.retain(|(_, t)| *t != timer);
                    }
                    _ => {
                        let expected = list.first().filter(|(due, _)| *due <= at(time)).map(|(_, t)| *t);
                        if expected.is_some() { list.remove(0); }
                        prop_assert_eq!(timers.pop_due(at(time)), expected);
                    }
                }
                prop_assert_eq!(timers.len(), list.len());
                prop_assert_eq!(timers.next(), list.first().map(|(due, _)| *due));
            }
        }
    }
}
