//! The resource that locks protect: a register that knows fencing tokens.

use sigmalock_core::{RequestId, Token};

/// Remembers the highest token it was shown and who wrote with which, and refuses the past.
#[derive(Debug, Clone)]
pub struct FencedRegister {
    checks: bool,
    /// The last to write.
    written: Option<(Token, RequestId)>,
    /// The highest token of those who read.
    read: Option<Token>,
}

impl FencedRegister {
    /// A register nobody has been to. Without `checks` it takes whatever comes, as most resources
    /// in the world do.
    #[must_use]
    pub const fn new(checks: bool) -> Self {
        Self { checks, written: None, read: None }
    }

    /// A write under a token. Refused if the token is lower than one seen, or equal to one that
    /// another holder showed; a refused write changes nothing.
    pub fn write(&mut self, token: Token, holder: RequestId) -> bool {
        let after_writers = self
            .written
            .is_none_or(|(highest, by)| token > highest || (token == highest && holder == by));
        let after_readers = self.read.is_none_or(|highest| token > highest);
        let accepted = !self.checks || (after_writers && after_readers);
        if accepted {
            self.written = Some((token, holder));
        }
        accepted
    }

    /// A read under a reader's token. Refused unless the token is higher than that of the last write;
    /// readers among each other may come in any order. From here on, no writer of before is taken.
    pub fn read(&mut self, token: Token) -> bool {
        let accepted = !self.checks || self.written.is_none_or(|(written, _)| token > written);
        if accepted {
            self.read = self.read.max(Some(token));
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

    #[test]
    fn the_past_is_refused_and_the_present_may_write_twice() {
        let mut register = FencedRegister::new(true);
        assert!(register.write(Token(5), request(1)));
        assert!(register.write(Token(5), request(1)));
        assert!(!register.write(Token(5), request(2)), "an equal token of another holder");
        assert!(!register.write(Token(4), request(1)));
        assert!(register.write(Token(9), request(2)));
        assert!(!register.write(Token(5), request(1)));
    }

    #[test]
    fn readers_come_in_any_order_between_two_writers() {
        let mut register = FencedRegister::new(true);
        assert!(register.write(Token(5), request(1)));
        assert!(!register.read(Token(5)), "no reader has a writer's token");
        assert!(register.read(Token(7)) && register.read(Token(6)) && register.read(Token(7)));
        assert!(!register.write(Token(5), request(1)), "it was read since");
        assert!(!register.write(Token(7), request(2)), "no writer has a reader's token");
        assert!(register.write(Token(8), request(2)) && !register.read(Token(7)));
    }

    #[test]
    fn without_checks_it_takes_the_past_too() {
        let mut register = FencedRegister::new(false);
        assert!(register.write(Token(5), request(1)));
        assert!(register.write(Token(4), request(2)));
        assert!(register.write(Token(5), request(2)));
    }
}
