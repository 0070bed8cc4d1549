//! The clock that leases are measured by.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// This machine's CLOCK_BOOTTIME, in microseconds. It goes on while the machine sleeps, and all
/// processes read the same, so a deadline can be handed from one to another.
pub(crate) fn boottime_us() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// How long until this reading; zero if it has passed.
pub(crate) fn until(boottime_us_then: u64) -> Duration {
    Duration::from_micros(boottime_us_then.saturating_sub(boottime_us()))
}
