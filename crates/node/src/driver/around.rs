//! What the protocol sees around it.

use sigmalock_core::{Surroundings, WallTime};

use crate::clock;

/// The world as lent to the protocol during one input.
#[derive(Debug)]
pub(crate) struct Around {
    /// Records ever written to the store.
    pub(crate) written: u64,
    random: u64,
}

impl Around {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { written: 0, random: seed }
    }
}

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        clock::wall()
    }

    /// SplitMix64: jitter needs no more.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn written(&self) -> u64 {
        self.written
    }
}
