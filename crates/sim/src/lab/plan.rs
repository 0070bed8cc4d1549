//! How many replicas a lock needs: the odds that resets let a second client in, by the paper's formula,
//! by a tighter one, and by both again where several replicas live on one peer.
//!
//! A holder has m votes. A second client needs m as well: the n − m that the holder never had, and
//! k = 2m − n of the holder's own, whose hosts have forgotten them. The paper counts *replicas*, as if each
//! had a peer of its own. Where a replica lives at the peer closest to its hash, some peers have several,
//! and one crash takes them all: that is one event, not several, and it makes all the difference.
//!
//! All of this is for hosts that vote at once after a reset, as the paper's do. Ours abstain, and lose
//! exclusion only if they also cannot tell that they took over from somebody; so these are bounds.

use serde::Serialize;
use sigmalock_core::Span;
use sigmalock_protocols::parts::Quorum;
use sigmalock_protocols::parts::quorum::REPLICAS_MAX;

use super::odds::{LogSum, Logs};
use crate::theory::exclusivity_break_log10;

/// The most peers that are reckoned with.
pub const PEERS_MAX: usize = 100_000;

/// The world in which a lock is to be safe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Swarm {
    life: Span,
    hold: Span,
    peers: usize,
}

/// Why there is nothing to plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Nobody could ever finish.
    #[error(
        "who holds a lock for {hold} among peers that live {life} outlives them: choose shorter"
    )]
    HoldsTooLong {
        /// The holding time.
        hold: Span,
        /// The mean lifetime.
        life: Span,
    },
    /// No time at all.
    #[error("a lock that is held for no time needs no plan")]
    NoHold,
    /// No swarm, or too large a one.
    #[error("there should be between 1 and {PEERS_MAX} peers, not {0}")]
    Peers(usize),
    /// Nothing to aim at.
    #[error("a target should be a probability above 0 and below 1, not {0}")]
    Target(f64),
    /// Too few peers for so rare an event.
    #[error(
        "{peers} peers cannot get below {:.1e} however many replicas they host; the best is {} of {}",
        10f64.powf(.best.hashed_log10), .best.quorum.m(), .best.quorum.n()
    )]
    OutOfReach {
        /// How many there are.
        peers: usize,
        /// What comes closest.
        best: Box<Odds>,
    },
}

/// The odds that exclusion breaks while one client holds the lock, as decimal logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// m of n.
    pub quorum: Quorum,
    /// Figure 2 of the paper: C(n, k) · (t / T)ᵏ. Any k of the n replicas, each on a peer of its own.
    pub figure_2_log10: f64,
    /// Tighter: k or more of the holder's own m, P(Bin(m, 1 − e^(−t/T)) ≥ k).
    pub tighter_log10: f64,
    /// Figure 2 by peers: C(n, k) times the odds that k given replicas sit on peers that reset.
    pub hashed_figure_2_log10: f64,
    /// The tighter one by peers. This is what to go by.
    pub hashed_log10: f64,
}

/// A row of `lab plan --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRow {
    /// Mean lifetime of a peer.
    pub life_s: f64,
    /// How long the lock is held.
    pub hold_s: f64,
    /// Peers in the swarm.
    pub peers: usize,
    /// Replicas.
    pub n: usize,
    /// Votes that win.
    pub m: usize,
    /// Resets that break it.
    pub k: usize,
    /// See [`Odds::figure_2_log10`].
    pub figure_2_log10: f64,
    /// See [`Odds::tighter_log10`].
    pub tighter_log10: f64,
    /// See [`Odds::hashed_figure_2_log10`].
    pub hashed_figure_2_log10: f64,
    /// See [`Odds::hashed_log10`].
    pub hashed_log10: f64,
    /// What was aimed at, if anything was.
    pub target_log10: Option<f64>,
    /// Whether it was met, going by [`Odds::hashed_log10`].
    pub met: Option<bool>,
}

impl Swarm {
    /// Peers that live for `life` on average and lose their memory at random moments; a lock that is held
    /// for `hold`.
    pub fn new(life: Span, hold: Span, peers: usize) -> Result<Self, PlanError> {
        if hold == Span::ZERO {
            return Err(PlanError::NoHold);
        }
        if hold >= life {
            return Err(PlanError::HoldsTooLong { hold, life });
        }
        if !(1..=PEERS_MAX).contains(&peers) {
            return Err(PlanError::Peers(peers));
        }
        Ok(Self { life, hold, peers })
    }

    /// The odds of one choice.
    #[must_use]
    pub fn odds(&self, quorum: Quorum) -> Odds {
        let logs = Logs::new(self.peers + quorum.n() + 1);
        let share = self.hold.as_secs_f64() / self.life.as_secs_f64();
        let reset = -(-share).exp_m1();
        Odds {
            quorum,
            figure_2_log10: exclusivity_break_log10(quorum, self.hold, self.life),
            tighter_log10: log10(logs.binomial_tail(quorum.m(), quorum.overlap(), reset)),
            hashed_figure_2_log10: log10(self.over_resets(&logs, share, |r| {
                logs.choose(quorum.n(), quorum.overlap())
                    + logs.all_in(quorum.overlap(), r, self.peers)
            })),
            hashed_log10: log10(self.over_resets(&logs, reset, |r| {
                logs.beta_binomial_tail(quorum.m(), quorum.overlap(), r, self.peers)
            })),
        }
    }

    /// The smallest choice that meets a target: m leaves a quarter of the replicas to be down, as the
    /// paper's 24 of 32 does.
    pub fn choose(&self, target: f64) -> Result<Odds, PlanError> {
        if !(target > 0.0 && target < 1.0) {
            return Err(PlanError::Target(target));
        }
        let mut best: Option<Odds> = None;
        for quorum in (3..=REPLICAS_MAX).filter_map(three_quarters) {
            let odds = self.odds(quorum);
            if odds.hashed_log10 <= target.log10() {
                return Ok(odds);
            }
            if best.is_none_or(|best| odds.hashed_log10 < best.hashed_log10) {
                best = Some(odds);
            }
            // A swarm has what its peers have: from here on more replicas bring hardly anything.
            if quorum.n() > 3 * self.peers.max(32) {
                break;
            }
        }
        match best {
            Some(best) => Err(PlanError::OutOfReach { peers: self.peers, best: Box::new(best) }),
            None => Err(PlanError::Target(target)),
        }
    }

    /// The longest that a lock may be held for a choice to meet a target, to a part in a thousand; none if
    /// it never does.
    #[must_use]
    pub fn longest_hold(&self, quorum: Quorum, target: f64) -> Option<Span> {
        let meets = |us: u64| {
            let swarm = Self { hold: Span::from_micros(us), ..*self };
            swarm.odds(quorum).hashed_log10 <= target.log10()
        };
        let (mut low, mut high) = (1_u64, self.life.as_micros() - 1);
        if !meets(low) {
            return None;
        }
        while high - low > low / 1_000 + 1 {
            let middle = ((low as f64) * (high as f64)).sqrt() as u64;
            let middle = middle.clamp(low + 1, high - 1);
            if meets(middle) { low = middle } else { high = middle }
        }
        Some(Span::from_micros(low))
    }

    /// A row of a table.
    #[must_use]
    pub fn row(&self, odds: &Odds, target: Option<f64>) -> PlanRow {
        let Odds { quorum, figure_2_log10, tighter_log10, hashed_figure_2_log10, hashed_log10 } =
            *odds;
        PlanRow {
            life_s: self.life.as_secs_f64(),
            hold_s: self.hold.as_secs_f64(),
            peers: self.peers,
            n: quorum.n(),
            m: quorum.m(),
            k: quorum.overlap(),
            figure_2_log10,
            tighter_log10,
            hashed_figure_2_log10,
            hashed_log10,
            target_log10: target.map(f64::log10),
            met: target.map(|target| hashed_log10 <= target.log10()),
        }
    }

    /// ln Σ P(r peers reset) · e^given(r), where each of them does so with probability `reset`.
    fn over_resets(&self, logs: &Logs, reset: f64, given: impl Fn(usize) -> f64) -> f64 {
        let mean = self.peers as f64 * reset;
        let mut sum = LogSum::default();
        for r in 1..=self.peers {
            let term = logs.binomial(self.peers, r, reset) + given(r);
            sum.add(term);
            // The terms have one hump; well beyond it nothing more comes.
            if r as f64 > mean && term < sum.ln() - 45.0 {
                break;
            }
        }
        sum.ln().min(0.0)
    }
}

/// n and m with a quarter of the replicas, rounded up, to spare: 2 of 3, 3 of 5, 6 of 9, 24 of 32.
fn three_quarters(n: u16) -> Option<Quorum> {
    Quorum::new(n, n - n.div_ceil(4)).ok()
}

fn log10(ln: f64) -> f64 {
    ln / std::f64::consts::LN_10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn quorum(n: u16, m: u16) -> Quorum {
        Quorum::new(n, m).unwrap()
    }

    fn swarm(life_s: u64, hold_s: u64, peers: usize) -> Swarm {
        Swarm::new(Span::from_secs(life_s), Span::from_secs(hold_s), peers).unwrap()
    }

    /// Plays it: peers and replicas at random keys, a replica at its closest peer by XOR, peers that reset
    /// at random. How often have k or more of m forgotten their vote?
    fn played(swarm: Swarm, quorum: Quorum, hashed: bool, rounds: u32) -> f64 {
        let mut rng = Rng::new(7);
        let reset = 1.0 - (-swarm.hold.as_secs_f64() / swarm.life.as_secs_f64()).exp();
        let mut broken = 0;
        for _ in 0..rounds {
            let peers: Vec<(u64, bool)> =
                (0..swarm.peers).map(|_| (rng.bits(), rng.chance(reset))).collect();
            let forgotten = (0..quorum.m()).filter(|replica| {
                let key = rng.bits();
                let closest = peers.iter().min_by_key(|(peer, _)| peer ^ key);
                let own = peers[replica % peers.len()].1;
                if hashed { closest.is_some_and(|(_, reset)| *reset) } else { own }
            });
            broken += u32::from(forgotten.count() >= quorum.overlap());
        }
        f64::from(broken) / f64::from(rounds)
    }

    #[test]
    fn the_numbers_of_the_paper_and_of_the_notes_come_out() {
        let odds = swarm(10_000, 10, 1_000).odds(quorum(32, 24));
        assert!((odds.figure_2_log10 - 6.0e-40_f64.log10()).abs() < 0.01, "{odds:?}");
        assert!((odds.tighter_log10 - 7.2e-43_f64.log10()).abs() < 0.01, "{odds:?}");
    }

    #[test]
    fn with_a_peer_for_each_replica_the_tighter_formula_is_what_a_game_of_chance_shows() {
        for (life_s, hold_s, n, m) in [(100, 20, 5, 3), (100, 40, 9, 6), (100, 50, 12, 8)] {
            let (swarm, quorum) = (swarm(life_s, hold_s, usize::from(m)), quorum(n, m));
            let (seen, said) = (
                played(swarm, quorum, false, 200_000),
                10f64.powf(swarm.odds(quorum).tighter_log10),
            );
            assert!((seen / said - 1.0).abs() < 0.05, "{n}/{m}: {seen}, not {said}");
            let paper = 10f64.powf(swarm.odds(quorum).figure_2_log10);
            assert!(seen < paper, "{n}/{m}: the paper's {paper} is a bound");
        }
    }

    /// Hashing puts several replicas on one peer. What is said is a bound, and not a loose one; who counts
    /// replicas instead of peers is wrong by an order of magnitude.
    #[test]
    fn hashed_onto_peers_the_odds_bound_those_of_a_game_of_chance_and_counting_replicas_does_not() {
        for (peers, n, m) in [(9, 9, 6), (20, 9, 6), (5, 9, 6), (40, 12, 9)] {
            let (swarm, quorum) = (swarm(1_000, 20, peers), quorum(n, m));
            let (seen, odds) = (played(swarm, quorum, true, 400_000), swarm.odds(quorum));
            let said = 10f64.powf(odds.hashed_log10);
            assert!(seen < said && said < 4.0 * seen, "{peers} peers, {n}/{m}: {seen}, not {said}");
            assert!(
                10f64.powf(odds.tighter_log10) < seen / 8.0,
                "{peers} peers, {n}/{m}: {odds:?}"
            );
            assert!(odds.hashed_log10 <= odds.hashed_figure_2_log10, "{odds:?}");
        }
    }

    #[test]
    fn in_a_very_large_swarm_hashing_costs_little() {
        let odds = swarm(10_000, 10, PEERS_MAX).odds(quorum(9, 6));
        assert!((odds.hashed_log10 - odds.tighter_log10).abs() < 0.1, "{odds:?}");
        assert!((odds.hashed_figure_2_log10 - odds.figure_2_log10).abs() < 0.1, "{odds:?}");
    }

    #[test]
    fn what_is_chosen_meets_the_target_and_one_replica_less_does_not() {
        for (peers, target) in [(1_000, 1e-9), (100, 1e-6), (10_000, 1e-15)] {
            let swarm = swarm(10_000, 10, peers);
            let odds = swarm.choose(target).unwrap();
            assert!(odds.hashed_log10 <= target.log10());
            let fewer = three_quarters(odds.quorum.n() as u16 - 1).unwrap();
            assert!(swarm.odds(fewer).hashed_log10 > target.log10(), "{odds:?}");
            let hold = swarm.longest_hold(odds.quorum, target).unwrap();
            assert!(hold >= Span::from_secs(10), "{hold}");
        }
    }

    #[test]
    fn the_longest_hold_just_meets_the_target() {
        let (swarm, quorum) = (swarm(10_000, 10, 1_000), quorum(32, 24));
        let hold = swarm.longest_hold(quorum, 1e-12).unwrap();
        let at = |hold| Swarm { hold, ..swarm }.odds(quorum).hashed_log10;
        assert!(at(hold) <= -12.0 && at(hold * 101 / 100) > -12.0, "{hold}");
        assert_eq!(Swarm { peers: 1, ..swarm }.longest_hold(quorum, 1e-12), None);
    }

    #[test]
    fn nonsense_gets_a_sentence() {
        let error = |life, hold, peers| {
            Swarm::new(Span::from_secs(life), Span::from_secs(hold), peers).unwrap_err().to_string()
        };
        assert!(error(10, 10, 5).contains("outlives"));
        assert!(error(10, 0, 5).contains("no time"));
        assert!(error(10, 1, 0).contains("between 1 and"));
        assert!(error(10, 1, PEERS_MAX + 1).contains("between 1 and"));
        let error =
            |peers, target| swarm(10_000, 10, peers).choose(target).unwrap_err().to_string();
        assert!(error(100, 0.0).contains("above 0") && error(100, f64::NAN).contains("above 0"));
        assert!(error(3, 1e-12).starts_with("3 peers cannot get below"), "{}", error(3, 1e-12));
    }
}
