//! Time, in microseconds. Readings of different clocks are different types, so that they cannot be
//! compared by accident.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// A length of time. All arithmetic saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything.
    pub const MAX: Self = Self(u64::MAX);

    /// So many microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }
    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }
    /// So many seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }
    /// In microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// In seconds, for people and plots.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// So many millionths of this span, rounded up.
    #[must_use]
    pub const fn millionths(self, parts: u32) -> Self {
        let product = self.0 as u128 * parts as u128;
        let rounded = product.div_ceil(1_000_000);
        if rounded > u64::MAX as u128 { Self::MAX } else { Self(rounded as u64) }
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor.max(1))
    }
}
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us >= 1_000_000 => write!(f, "{}s", (us / 1_000) as f64 / 1e3),
            us if us >= 1_000 => write!(f, "{}ms", us as f64 / 1e3),
            us => write!(f, "{us}us"),
        }
    }
}

/// A reading of a peer's own monotonic clock, which goes on through suspension and starts anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LocalTime(u64);

impl LocalTime {
    /// Before everything.
    pub const MIN: Self = Self(0);
    /// After everything: a timer set for it never fires.
    pub const NEVER: Self = Self(u64::MAX);

    /// From the driver's clock.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }
    /// For the driver's clock.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// The time since `earlier`; zero if that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// This reading as another peer gets to see it.
    #[must_use]
    pub const fn stamp(self) -> Stamp {
        Stamp(self.0)
    }
}

impl Add<Span> for LocalTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for LocalTime {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for LocalTime {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// A reading of *another* peer's monotonic clock. It says nothing about here and now; two stamps of
/// one incarnation can be subtracted, and [`crate::lease`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stamp(u64);

impl Stamp {
    /// From the wire.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }
    /// For the wire.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

/// A reading of the wall clock, in microseconds since 1970. A hint: it may be wrong, differ between
/// peers and jump. Good for ordering and for token floors, never for exclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WallTime(u64);

impl WallTime {
    /// From the driver.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }
    /// In microseconds since 1970.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_read_like_people_write_them() {
        assert_eq!(Span::from_micros(7).to_string(), "7us");
        assert_eq!(Span::from_micros(1_500).to_string(), "1.5ms");
        assert_eq!(Span::from_millis(2_250).to_string(), "2.25s");
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(LocalTime::NEVER + Span::from_secs(1), LocalTime::NEVER);
        assert_eq!(LocalTime::MIN - Span::from_secs(1), LocalTime::MIN);
        assert_eq!(Span::ZERO - Span::from_secs(1), Span::ZERO);
        assert_eq!(Span::MAX.millionths(2_000_000), Span::MAX);
    }

    #[test]
    fn millionths_round_up_so_that_a_margin_is_never_too_small() {
        assert_eq!(Span::from_micros(1).millionths(10_000), Span::from_micros(1));
        assert_eq!(Span::from_secs(10).millionths(10_000), Span::from_millis(100));
    }
}
