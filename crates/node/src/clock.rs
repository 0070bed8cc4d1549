//! The clocks of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use sigmalock_core::{LocalTime, WallTime};

/// The monotonic clock that goes on while the machine sleeps: a suspended laptop must find its lease
/// gone. All processes of one machine read the same.
#[must_use]
pub fn now() -> LocalTime {
    let time = clock_gettime(ClockId::Boottime);
    LocalTime::from_micros(time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000)
}

/// The wall clock: a hint.
#[must_use]
pub fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_micros(since.as_micros().min(u128::from(u64::MAX)) as u64)
}
