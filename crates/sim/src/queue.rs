//! The event queue: small keys in a heap, the events themselves in a slab beside it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::history::TrueTime;

/// Bits of a key that name the slot, so that 16 million events can be under way.
const SLOT_BITS: u32 = 24;

/// Events by true time; those of one instant come in the order in which they were put in.
///
/// A key is one `u128` (time, sequence, slot), so that the heap compares and moves 16 bytes whatever
/// an event weighs, and slots are reused, so that a steady run allocates nothing.
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<u128>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    sequence: u64,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, at: TrueTime, event: E) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(event);
                slot
            }
            None => {
                assert!(self.slots.len() < 1 << SLOT_BITS, "too many events under way");
                self.slots.push(Some(event));
                (self.slots.len() - 1) as u32
            }
        };
        let order = (self.sequence << SLOT_BITS) | u64::from(slot);
        self.sequence += 1;
        self.heap.push(Reverse((u128::from(at.0) << 64) | u128::from(order)));
    }

    /// The earliest event, unless it is later than `until`.
    #[inline]
    pub(crate) fn pop(&mut self, until: TrueTime) -> Option<(TrueTime, E)> {
        let Reverse(key) = *self.heap.peek()?;
        let at = TrueTime((key >> 64) as u64);
        if at > until {
            return None;
        }
        self.heap.pop();
        let slot = key as u32 & ((1 << SLOT_BITS) - 1);
        self.free.push(slot);
        self.slots[slot as usize].take().map(|event| (at, event))
    }

    /// What is still in the queue, in no order that means anything.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &E> {
        self.slots.iter().flatten()
    }
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
        assert!(queue.slots.len() <= 4);
    }
}
