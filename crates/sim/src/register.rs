//! The resource that locks protect: a register that knows fencing tokens.

use std::collections::BTreeMap;

use sigmalock_core::{Mode, RequestId, Token};

/// Remembers the highest token it was shown in each mode and by whom, and refuses the past. It has a part for
/// each slot of a semaphore: whoever has a permit writes to one of them, a writer to all, and a reader reads all.
#[derive(Debug, Clone)]
pub struct FencedRegister {
    checks: bool,
    shown: BTreeMap<Mode, (Token, RequestId)>,
}

impl FencedRegister {
    /// A register nobody has been to. Without `checks` it takes whatever comes, as most resources
    /// in the world do.
    #[must_use]
    pub const fn new(checks: bool) -> Self {
        Self { checks, shown: BTreeMap::new() }
    }

    /// A write under a token; or a read, by somebody who shares the lock. Refused unless the token is higher
    /// than all that were shown by others who cannot be inside together with this one; what is refused
    /// changes nothing.
    pub fn touch(&mut self, mode: Mode, token: Token, holder: RequestId) -> bool {
        let again =
            |known: &Mode, by: &(Token, RequestId)| *known == mode && *by == (token, holder);
        let after = |(known, by): (&Mode, &(Token, RequestId))| {
            known.shares_with(mode) || token > by.0 || again(known, by)
        };
        let accepted = !self.checks || self.shown.iter().all(after);
        // Readers among each other may come in any order.
        let lower = |highest: &(Token, RequestId)| mode == Mode::Shared && highest.0 > token;
        if accepted && !self.shown.get(&mode).is_some_and(lower) {
            self.shown.insert(mode, (token, holder));
        }
        accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sigmalock_core::{CallId, Incarnation, PeerId};

    fn request(client: u64) -> RequestId {
        RequestId { client: PeerId(client), incarnation: Incarnation(1), call: CallId(1) }
    }

    impl FencedRegister {
        fn write(&mut self, token: u64, client: u64) -> bool {
            self.touch(Mode::Exclusive, Token(token), request(client))
        }
        fn read(&mut self, token: u64) -> bool {
            self.touch(Mode::Shared, Token(token), request(9))
        }
        fn write_to(&mut self, index: u16, token: u64, client: u64) -> bool {
            self.touch(Mode::Slot { of: 2, index }, Token(token), request(client))
        }
    }

    #[test]
    fn the_past_is_refused_and_the_present_may_write_twice() {
        let mut register = FencedRegister::new(true);
        assert!(register.write(5, 1));
        assert!(register.write(5, 1));
        assert!(!register.write(5, 2), "an equal token of another holder");
        assert!(!register.write(4, 1));
        assert!(register.write(9, 2));
        assert!(!register.write(5, 1));
    }

    #[test]
    fn readers_come_in_any_order_between_two_writers() {
        let mut register = FencedRegister::new(true);
        assert!(register.write(5, 1));
        assert!(!register.read(5), "no reader has a writer's token");
        assert!(register.read(7) && register.read(6) && register.read(7));
        assert!(!register.write(5, 1), "it was read since");
        assert!(!register.write(7, 2), "no writer has a reader's token");
        assert!(register.write(8, 2) && !register.read(7));
    }

    #[test]
    fn each_slot_has_a_past_of_its_own_and_writers_come_after_all_of_them() {
        let mut register = FencedRegister::new(true);
        assert!(register.write(5, 1));
        assert!(!register.write_to(0, 5, 2), "the writer was before it");
        assert!(register.write_to(0, 8, 2) && register.write_to(1, 6, 3), "in any order");
        assert!(!register.write_to(1, 6, 4) && register.write_to(1, 7, 4));
        assert!(!register.write(7, 5) && !register.read(8), "a permit was out with 8");
        assert!(register.write(9, 5) && !register.write_to(0, 8, 2));
    }

    #[test]
    fn without_checks_it_takes_the_past_too() {
        let mut register = FencedRegister::new(false);
        assert!(register.write(5, 1));
        assert!(register.write(4, 2));
        assert!(register.write(5, 2));
    }
}
