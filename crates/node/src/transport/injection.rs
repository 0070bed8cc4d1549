//! Faults on purpose: frames of the driver that come late, or not at all.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::chance;
use super::limits::DELAYED_MAX;
use crate::config::FaultInjection;
use crate::wire::{HEAD_LEN, Kind};

/// Frames on their way, in order.
#[derive(Debug)]
pub(crate) struct Delayed {
    injection: FaultInjection,
    queue: VecDeque<(Instant, Vec<u8>)>,
}

impl Delayed {
    pub(crate) fn new(injection: FaultInjection) -> Self {
        Self { injection, queue: VecDeque::new() }
    }

    /// Takes whole frames; each is lost or kept by itself.
    pub(crate) fn push(&mut self, frames: &[u8]) {
        let mut kept = Vec::with_capacity(frames.len());
        let mut rest = frames;
        while let Some((head, _)) = rest.split_first_chunk::<HEAD_LEN>() {
            let [a, b, c, d, kind] = *head;
            let end = (u32::from_le_bytes([a, b, c, d]) as usize + 4).min(rest.len());
            let (frame, behind) = rest.split_at(end);
            if kind != Kind::Messages as u8 || chance() >= self.injection.loss {
                kept.extend_from_slice(frame);
            }
            rest = behind;
        }
        let (low, high) = self.injection.delay;
        let delay = low + high.saturating_sub(low).mul_f64(chance());
        let earliest = self.queue.back().map_or_else(Instant::now, |(due, _)| *due);
        self.queue.push_back(((Instant::now() + delay).max(earliest), kept));
    }

    /// As much is on its way as may be; the rest has to wait where it is.
    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= DELAYED_MAX
    }

    /// The next frames, when their time has come; never, if there are none.
    pub(crate) async fn next_due(&mut self) -> Option<Vec<u8>> {
        match self.queue.front() {
            Some((due, _)) => tokio::time::sleep_until(*due).await,
            None => std::future::pending().await,
        }
        self.queue.pop_front().map(|(_, frames)| frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame;
    use std::time::Duration;

    #[tokio::test]
    async fn frames_come_late_in_order_and_some_never() {
        let delay = (Duration::from_millis(10), Duration::from_millis(50));
        let mut delayed = Delayed::new(FaultInjection { delay, loss: 0.5 });
        let start = Instant::now();
        for number in 0..1_000u32 {
            let frames = [
                frame(Kind::Messages, &number.to_le_bytes()),
                frame(Kind::Query, &number.to_le_bytes()),
            ];
            delayed.push(&frames.concat());
        }
        let (mut queries, mut messages) = (0, 0);
        for number in 0..1_000u32 {
            let frames = delayed.next_due().await.unwrap();
            assert!(frames.ends_with(&frame(Kind::Query, &number.to_le_bytes())));
            queries += 1;
            messages += usize::from(frames.len() > HEAD_LEN + 4);
        }
        let took = start.elapsed();
        assert!(took >= delay.0 && took <= delay.1 + Duration::from_millis(150), "{took:?}");
        assert_eq!(queries, 1_000);
        assert!((350..650).contains(&messages), "{messages} of 1000");
    }
}
