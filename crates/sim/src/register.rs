//! The resource that locks protect: a register that knows fencing tokens.

use sigmalock_core::{RequestId, Token};

/// Remembers the highest token it was shown and who showed it, and refuses the past.
#[derive(Debug, Clone)]
pub struct FencedRegister {
    checks: bool,
    latest: Option<(Token, RequestId)>,
}

impl FencedRegister {
    /// A register nobody has written to. Without `checks` it takes whatever comes, as most resources
    /// in the world do.
    #[must_use]
    pub const fn new(checks: bool) -> Self {
        Self { checks, latest: None }
    }

    /// A write under a token. Refused if the token is lower than one seen, or equal to one that
    /// another holder showed; a refused write changes nothing.
    pub fn write(&mut self, token: Token, holder: RequestId) -> bool {
        let accepted = match self.latest {
            _ if !self.checks => true,
            None => true,
            Some((highest, _)) if token > highest => true,
            Some((highest, by)) => token == highest && holder == by,
        };
        if accepted {
            self.latest = Some((token, holder));
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
    fn without_checks_it_takes_the_past_too() {
        let mut register = FencedRegister::new(false);
        assert!(register.write(Token(5), request(1)));
        assert!(register.write(Token(4), request(2)));
        assert!(register.write(Token(5), request(2)));
    }
}
