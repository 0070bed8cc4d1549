//! Random numbers that are the same on every machine and for every number of threads.
//!
//! What `std` computes of logarithms and cosines is the platform's and differs in the last bits; so whatever a history
//! depends on goes through `libm`. Square roots and rounding are exact everywhere.

use sigmalock_core::Span;

/// One stream of random numbers: xoshiro256++, small and quick.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

/// One step of SplitMix64, which spreads any seed over all 64 bits.
const fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([
            splitmix(&mut state),
            splitmix(&mut state),
            splitmix(&mut state),
            splitmix(&mut state),
        ])
    }

    /// One of the many streams of a seed. What one stream is used for cannot disturb another.
    #[must_use]
    pub const fn split(seed: u64, stream: u64) -> Self {
        let mut state = stream;
        Self::new(seed ^ splitmix(&mut state))
    }

    /// 64 random bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound`; 0 if there is none.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        // The bias of multiply-and-shift is below 2^-40 for every bound used here.
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// A number between `low` and `high`, both included.
    #[inline]
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// A span between `low` and `high`, both included.
    #[inline]
    pub const fn span(&mut self, low: Span, high: Span) -> Span {
        Span::from_micros(self.between(low.as_micros(), high.as_micros()))
    }

    /// A number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// An exponentially distributed span.
    pub fn exponential(&mut self, mean: Span) -> Span {
        let factor = -libm::log(1.0 - self.unit());
        Span::from_micros((mean.as_micros() as f64 * factor) as u64)
    }

    /// A number of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// One of the items, which must not be none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // First outputs of SplitMix64 from 0, as in its reference implementation.
        let mut state = 0;
        assert_eq!(splitmix(&mut state), 0xe220_a839_7b1d_cdaf);
        // First outputs of xoshiro256++ from (1, 2, 3, 4), as in its reference implementation.
        let mut rng = Rng([1, 2, 3, 4]);
        assert_eq!(
            [rng.bits(), rng.bits(), rng.bits()],
            [41_943_041, 58_720_359, 3_588_806_011_781_223]
        );
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        assert_eq!(Rng::split(7, 1).bits(), Rng::split(7, 1).bits());
        assert_ne!(Rng::split(7, 1).bits(), Rng::split(7, 2).bits());
        assert_ne!(Rng::split(7, 1).bits(), Rng::split(8, 1).bits());
    }

    #[test]
    fn distributions_have_the_mean_they_should() {
        let mut rng = Rng::new(1);
        let mean =
            |mut draw: Box<dyn FnMut() -> f64>| (0..100_000).map(|_| draw()).sum::<f64>() / 1e5;
        let mut r = rng.clone();
        assert!((mean(Box::new(move || r.between(10, 20) as f64)) - 15.0).abs() < 0.05);
        let mut r = rng.clone();
        let exponential = move || r.exponential(Span::from_secs(1)).as_secs_f64();
        assert!((mean(Box::new(exponential)) - 1.0).abs() < 0.02);
        let mut r = rng.clone();
        assert!(mean(Box::new(move || r.normal())).abs() < 0.02);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.between(5, 5), 5);
    }
}
