//! m of n.

/// How many replicas there are, and how many votes win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quorum {
    n: u16,
    m: u16,
}

/// The most replicas a lock may have.
pub const REPLICAS_MAX: u16 = 1_024;

/// So many members of a view vote on a name at most.
pub const VOTERS_MAX: usize = 9;
/// So many votes hold a name where not all members vote on it.
const VOTES_OF_SOME: u16 = 6;

/// Why two numbers are no quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuorumError {
    /// There must be at least one replica, and a bounded number of them.
    #[error("a lock has between 1 and {REPLICAS_MAX} replicas, not {0}")]
    Replicas(u16),
    /// More votes than there are replicas.
    #[error("a quorum of {m} cannot be had from {n} replicas")]
    TooLarge {
        /// Replicas.
        n: u16,
        /// Votes wanted.
        m: u16,
    },
    /// Two disjoint quorums would exist.
    #[error(
        "a quorum of {m} of {n} replicas is not more than half, so two clients could win at once"
    )]
    NotMajority {
        /// Replicas.
        n: u16,
        /// Votes wanted.
        m: u16,
    },
}

impl Quorum {
    /// One vote, and it wins.
    pub const ONE: Self = Self { n: 1, m: 1 };
    /// The usual one where hosting is open.
    pub const NINE_SIX: Self = Self { n: 9, m: 6 };

    /// m votes out of n replicas; more than half, so that any two quorums meet.
    pub const fn new(n: u16, m: u16) -> Result<Self, QuorumError> {
        if n == 0 || n > REPLICAS_MAX {
            Err(QuorumError::Replicas(n))
        } else if m > n {
            Err(QuorumError::TooLarge { n, m })
        } else if m <= n / 2 {
            Err(QuorumError::NotMajority { n, m })
        } else {
            Ok(Self { n, m })
        }
    }

    /// In a view of so many members: how many vote on a name, and how many votes hold it.
    #[must_use]
    pub const fn of_view(members: usize) -> Self {
        match members {
            0 => Self::ONE,
            1..=VOTERS_MAX => Self { n: members as u16, m: members as u16 / 2 + 1 },
            _ => Self { n: VOTERS_MAX as u16, m: VOTES_OF_SOME },
        }
    }

    /// Replicas.
    #[must_use]
    pub const fn n(self) -> usize {
        self.n as usize
    }
    /// Votes that win.
    #[must_use]
    pub const fn m(self) -> usize {
        self.m as usize
    }
    /// In how many replicas any two quorums meet, at least: so many resets may break exclusion.
    #[must_use]
    pub const fn overlap(self) -> usize {
        2 * self.m() - self.n()
    }
    /// Whether, of `known` replicas whose owner is known, `best` with the most popular one, nobody
    /// can have or get m votes as things stand (the paper's j_same + n − j < m).
    #[must_use]
    pub const fn nobody_can_win(self, known: usize, best: usize) -> bool {
        best + self.n() - known < self.m()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn impossible_quorums_are_refused_with_a_sentence() {
        assert_eq!(Quorum::new(0, 0), Err(QuorumError::Replicas(0)));
        assert_eq!(Quorum::new(REPLICAS_MAX + 1, 600), Err(QuorumError::Replicas(1_025)));
        assert_eq!(Quorum::new(3, 4), Err(QuorumError::TooLarge { n: 3, m: 4 }));
        assert_eq!(Quorum::new(4, 2), Err(QuorumError::NotMajority { n: 4, m: 2 }));
        assert!(Quorum::new(5, 2).is_err() && Quorum::new(5, 3).is_ok());
    }

    #[test]
    fn three_k_plus_one_replicas_tolerate_k_resets_and_break_at_one_more() {
        for k in 1..=300 {
            assert_eq!(Quorum::new(3 * k + 1, 2 * k + 1).unwrap().overlap(), usize::from(k) + 1);
        }
    }

    proptest! {
        #[test]
        fn nobody_can_win_exactly_if_no_completion_reaches_m(n in 1u16..40, extra in 0u16..20, known in 0usize..40, best in 0usize..40) {
            let m = (n / 2 + 1 + extra).min(n);
            let q = Quorum::new(n, m).unwrap();
            let known = known.min(q.n());
            let best = best.min(known);
            let best_completion = best + (q.n() - known);
            prop_assert_eq!(q.nobody_can_win(known, best), best_completion < q.m());
        }
    }
}
