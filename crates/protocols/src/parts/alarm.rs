//! One timer that serves many deadlines.

use sigmalock_core::LocalTime;

/// Remembers for when a timer is set, so that it is set anew only to make it earlier. Deadlines move
/// later all the time (a lease is renewed, a vote passes on); the timer then fires once in vain and is
/// set for what is next, which is far cheaper than moving it with every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alarm {
    set_for: LocalTime,
}

impl Alarm {
    /// Not set.
    #[must_use]
    pub const fn new() -> Self {
        Self { set_for: LocalTime::NEVER }
    }
    /// Whether the timer must be set to be woken by `at`; if so it counts as set.
    #[must_use]
    pub fn must_set(&mut self, at: LocalTime) -> bool {
        let earlier = at < self.set_for;
        if earlier {
            self.set_for = at;
        }
        earlier
    }
    /// The timer fired.
    pub fn fired(&mut self) {
        self.set_for = LocalTime::NEVER;
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_deadline_sets_the_timer() {
        let at = LocalTime::from_micros;
        let mut alarm = Alarm::new();
        assert!(!alarm.must_set(LocalTime::NEVER));
        assert!(alarm.must_set(at(9)));
        assert!(!alarm.must_set(at(9)));
        assert!(!alarm.must_set(at(12)));
        assert!(alarm.must_set(at(4)));
        alarm.fired();
        assert!(alarm.must_set(at(12)));
    }
}
