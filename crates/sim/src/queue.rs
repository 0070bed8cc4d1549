//! The event queue: small keys in a heap, the events themselves in a slab beside it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::history::TrueTime;

/// Bits of a key that name the slot, so that 16 million events can be under way.
const SLOT_BITS: u32 = 24;

/// Things in slots that are reused, so that a steady run allocates nothing.
#[derive(Clone)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    #[inline]
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(item);
            return slot;
        }
        assert!(self.slots.len() < 1 << SLOT_BITS, "too many events under way");
        self.slots.push(Some(item));
        (self.slots.len() - 1) as u32
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.slots[slot as usize].as_ref()
    }

    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        let item = self.slots[slot as usize].take();
        if item.is_some() {
            self.free.push(slot);
        }
        item
    }
}

/// Events by true time; those of one instant come in the order in which they were put in. A key is
/// one `u128` (time, sequence, slot), so that the heap compares and moves 16 bytes.
#[derive(Clone)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<u128>>,
    events: Slab<E>,
    sequence: u64,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), events: Slab::new(), sequence: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: TrueTime, event: E) {
        let slot = self.events.insert(event);
        let order = (self.sequence << SLOT_BITS) | u64::from(slot);
        self.sequence += 1;
        self.heap.push(Reverse((u128::from(at.0) << 64) | u128::from(order)));
    }

    /// The earliest event, unless it is later than `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: TrueTime) -> Option<(TrueTime, E)> {
        let Reverse(key) = *self.heap.peek()?;
        let (at, slot) = decode(key);
        if at > until {
            return None;
        }
        self.heap.pop();
        self.events.take(slot).map(|event| (at, event))
    }

    /// All that is under way, with its time, in the order in which it comes.
    pub(crate) fn in_order(&self) -> Vec<(TrueTime, &E)> {
        let mut keys: Vec<u128> = self.heap.iter().map(|Reverse(key)| *key).collect();
        keys.sort_unstable();
        let event = |key: u128| {
            let (at, slot) = decode(key);
            self.events.get(slot).map(|event| (at, event))
        };
        keys.into_iter().filter_map(event).collect()
    }

    /// How many events are under way.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// What is still in the queue, in no order that means anything.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &E> {
        self.events.slots.iter().flatten()
    }
}

/// The time and the slot in a key.
#[inline]
const fn decode(key: u128) -> (TrueTime, u32) {
    (TrueTime((key >> 64) as u64), key as u32 & ((1 << SLOT_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_insertion() {
        let mut queue = Queue::new();
        for (at, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.push(TrueTime(at), event);
        }
        let order: String = std::iter::from_fn(|| queue.pop(TrueTime(5))).map(|(_, e)| e).collect();
        assert_eq!(order, "abcd");
        assert_eq!(queue.rest().collect::<Vec<_>>(), [&'e']);
    }

    #[test]
    fn slots_are_reused() {
        let mut queue = Queue::new();
        for at in 0..10_000 {
            queue.push(TrueTime(at), at);
            queue.push(TrueTime(at), at);
            queue.pop(TrueTime::default());
            queue.pop(TrueTime(at));
            queue.pop(TrueTime(at));
        }
        assert!(queue.events.slots.len() <= 4);
    }
}
