//! The clocks peers have, none of which shows true time.

use sigmalock_core::{LocalTime, Span, WallTime};

use crate::history::TrueTime;
use crate::rng::Rng;

/// The wall-clock time at which simulated worlds begin: a morning in 2025, in microseconds.
pub const WALL_EPOCH_US: u64 = 1_750_000_000_000_000;

const MILLION: i64 = 1_000_000;

/// How wrong the clocks of a run may be. The default is not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Rates are off by up to so many millionths, either way.
    pub ppm_max: u32,
    /// Whether each is off by all of that, one way or the other.
    pub extreme: bool,
    /// Monotonic clocks begin anywhere up to this.
    pub offset_max: Span,
    /// Wall clocks are off by up to this, either way.
    pub wall_error_max: Span,
}

/// A monotonic clock: offset + true time × (1 + ppm/10⁶).
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    offset: u64,
    ppm: i64,
}

impl Clock {
    /// A clock of this start and rate error.
    #[must_use]
    pub const fn new(offset: Span, ppm: i32) -> Self {
        Self { offset: offset.as_micros(), ppm: ppm as i64 }
    }

    /// What it shows.
    #[inline]
    #[must_use]
    pub const fn read(&self, at: TrueTime) -> LocalTime {
        LocalTime::from_micros(self.offset.saturating_add(self.elapsed(at.0)))
    }

    const fn elapsed(&self, at: u64) -> u64 {
        at.saturating_add_signed((at as i64).saturating_mul(self.ppm) / MILLION)
    }

    /// The first true instant at which it shows `local`.
    #[must_use]
    pub fn when(&self, local: LocalTime) -> TrueTime {
        if local == LocalTime::NEVER {
            return TrueTime(u64::MAX);
        }
        let elapsed = local.as_micros().saturating_sub(self.offset);
        if self.ppm == 0 {
            return TrueTime(elapsed);
        }
        let exact = u128::from(elapsed) * 1_000_000 / (MILLION + self.ppm) as u128;
        let mut at = u64::try_from(exact).unwrap_or(u64::MAX);
        // The division rounds; a step or two finds the first instant.
        while self.elapsed(at) < elapsed {
            at += 1;
        }
        while at > 0 && self.elapsed(at - 1) >= elapsed {
            at -= 1;
        }
        TrueTime(at)
    }
}

/// The clocks of one peer, and how the next life will find them.
#[derive(Debug, Clone)]
pub(crate) struct PeerClocks {
    limits: Clocks,
    pub(crate) clock: Clock,
    wall_error_us: i64,
}

impl PeerClocks {
    pub(crate) fn draw(limits: Clocks, rng: &mut Rng) -> Self {
        let ppm = match i64::from(limits.ppm_max) {
            most if limits.extreme => *rng.pick(&[-most, most]),
            most => signed(rng, most.unsigned_abs()),
        };
        let wall_error_us = signed(rng, limits.wall_error_max.as_micros());
        let clock = Clock { offset: 0, ppm };
        let mut clocks = Self { limits, clock, wall_error_us };
        clocks.reboot(rng);
        clocks
    }

    /// A new life starts its monotonic clock anywhere: two lives' readings do not compare.
    pub(crate) fn reboot(&mut self, rng: &mut Rng) {
        self.clock.offset = rng.between(0, self.limits.offset_max.as_micros());
    }

    pub(crate) fn jump(&mut self, by_us: i64) {
        self.wall_error_us = self.wall_error_us.saturating_add(by_us);
    }

    #[inline]
    pub(crate) fn wall(&self, at: TrueTime) -> WallTime {
        WallTime::from_micros((WALL_EPOCH_US + at.0).saturating_add_signed(self.wall_error_us))
    }
}

fn signed(rng: &mut Rng, max: u64) -> i64 {
    let max = max.min(i64::MAX as u64 / 2);
    rng.between(0, 2 * max) as i64 - max as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_offset_and_rate() {
        let clock = Clock::new(Span::from_secs(100), 5_000);
        assert_eq!(clock.read(TrueTime(0)).as_micros(), 100_000_000);
        assert_eq!(clock.read(TrueTime(10_000_000)).as_micros(), 110_050_000);
        let slow = Clock::new(Span::ZERO, -5_000);
        assert_eq!(slow.read(TrueTime(10_000_000)).as_micros(), 9_950_000);
    }

    #[test]
    fn when_is_the_first_instant_that_shows_a_reading() {
        for ppm in [-5_000, -4_999, -1, 0, 1, 333, 5_000] {
            let clock = Clock::new(Span::from_micros(17), ppm);
            for reading in (17..3_000).chain(1_000_000_000..1_000_001_000) {
                let at = clock.when(LocalTime::from_micros(reading));
                assert!(clock.read(at).as_micros() >= reading);
                assert!(at.0 == 0 || clock.read(TrueTime(at.0 - 1)).as_micros() < reading);
            }
            assert_eq!(clock.when(LocalTime::MIN), TrueTime(0));
            assert_eq!(clock.when(LocalTime::NEVER), TrueTime(u64::MAX));
        }
    }

    #[test]
    fn clocks_never_run_backwards() {
        let clock = Clock::new(Span::ZERO, -5_000);
        let readings: Vec<_> = (0..10_000).map(|t| clock.read(TrueTime(t))).collect();
        assert!(readings.is_sorted());
    }

    #[test]
    fn clocks_at_the_extremes_run_as_fast_or_as_slowly_as_any_may() {
        let limits = Clocks { ppm_max: 5_000, extreme: true, ..Clocks::default() };
        let mut rng = Rng::new(3);
        let rates: Vec<i64> =
            (0..100).map(|_| PeerClocks::draw(limits, &mut rng).clock.ppm).collect();
        assert!(rates.iter().all(|ppm| ppm.abs() == 5_000));
        assert!((30..70).contains(&rates.iter().filter(|ppm| **ppm > 0).count()));
    }

    #[test]
    fn drawn_clocks_stay_within_their_limits_and_wall_clocks_jump() {
        let limits = Clocks {
            ppm_max: 5_000,
            extreme: false,
            offset_max: Span::from_secs(9),
            wall_error_max: Span::from_secs(2),
        };
        let mut rng = Rng::new(3);
        for _ in 0..1_000 {
            let mut clocks = PeerClocks::draw(limits, &mut rng);
            assert!(clocks.clock.ppm.abs() <= 5_000 && clocks.clock.offset <= 9_000_000);
            assert!(clocks.wall(TrueTime(0)).as_micros().abs_diff(WALL_EPOCH_US) <= 2_000_000);
            let before = clocks.wall(TrueTime(5)).as_micros();
            clocks.jump(-3_600_000_000);
            assert_eq!(clocks.wall(TrueTime(5)).as_micros(), before - 3_600_000_000);
        }
    }
}
