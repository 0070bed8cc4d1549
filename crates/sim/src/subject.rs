//! Which protocol is put to the test: from a name to a run of the right type.

use std::str::FromStr;

use sigmalock_core::{LockReply, LockRequest, PeerId, Protocol, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::agreed::{self, Agreed, Beginning};
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::parts::hosting::{self, ByView};
use sigmalock_protocols::parts::{Driven, Hosting, Quorum};
use sigmalock_protocols::sigma::{self, Literal, LiteralConfig, Sigma};
use sigmalock_protocols::strawman::{self, Strawman};

use crate::mutant::Mutant;
use crate::network::Network;
use crate::oracles::{self, Oracle, Setting};
use crate::overlay::{self, Open};
use crate::run::{Outcome, RunConfig, run_watched};
use crate::watch::{Blind, Watch};

/// A protocol, as which variant, how large, and perhaps broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Which protocol.
    pub protocol: ProtocolName,
    /// To the letter, or fit to survive.
    pub variant: Variant,
    /// Which rule is broken on purpose; only the shipped Sigma has mutants.
    pub mutant: Option<Mutant>,
    /// If every peer has an agent: how many of its users are let in under one grant.
    pub entries_per_grant: Option<u64>,
    /// m of n.
    pub quorum: Quorum,
    /// The numbers it goes by.
    pub tuning: Tuning,
}

/// The numbers that protocols share, and that a network calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// The longest lease.
    pub lease_max: Span,
    /// How long a vote from the queue waits to be claimed.
    pub claim_window: Span,
    /// The worst round trip to expect.
    pub round_trip_worst: Span,
    /// The longest a message can be under way, copies included.
    pub flight_max: Span,
    /// How long a loser of the strawman waits.
    pub back_off: (Span, Span),
    /// Whether hosts persist their votes.
    pub durable: bool,
    /// How it is decided who hosts what; only with the shipped Sigma may it change.
    pub membership: Membership,
    /// Where peers agree on who is in: who is silent for so long is voted out.
    pub dead_after: Span,
    /// Where peers agree on who is in: so many begin together; 0 if the first founds the swarm.
    pub founders: u16,
    /// The peers before this one expect that: the founders, and who takes the place of one that lost all it had.
    pub expecting: u64,
    /// Whether the literal Sigma has the lease and the informed backoff of the paper's Section IV. If not,
    /// it is the pseudo code of Figures 5 and 6 alone.
    pub whole_paper: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            lease_max: Span::from_secs(15),
            claim_window: Span::from_secs(2),
            round_trip_worst: Span::from_millis(500),
            flight_max: Span::from_secs(30),
            back_off: (Span::ZERO, Span::from_secs(4)),
            durable: false,
            membership: Membership::Fixed,
            dead_after: Span::from_secs(30),
            founders: 0,
            expecting: 0,
            whole_paper: true,
        }
    }
}

impl Tuning {
    /// The defaults, made to fit a network: a lease can be kept alive over it, and nothing that it
    /// delivers is later than protocols count on.
    #[must_use]
    pub fn for_network(network: &Network) -> Self {
        let default = Self::default();
        let one_way = network.latency.worst();
        let round_trip_worst = (one_way * 2).max(Span::from_millis(1));
        Self {
            lease_max: default.lease_max.max(round_trip_worst * 5),
            claim_window: default.claim_window.max(round_trip_worst * 2),
            round_trip_worst,
            flight_max: default.flight_max.max((one_way + network.late_max) * 2),
            ..default
        }
    }
}

/// Why a subject cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// No such mutant.
    #[error("there is no mutant `{0}`; there are: {all}", all = mutant_names())]
    UnknownMutant(String),
    /// Only one protocol has mutants.
    #[error("only the shipped sigma has mutants, not {variant} {protocol}")]
    NoMutants {
        /// The protocol.
        protocol: ProtocolName,
        /// The variant.
        variant: Variant,
    },
}

fn mutant_names() -> String {
    Mutant::all().map(Mutant::as_str).collect::<Vec<_>>().join(", ")
}

impl Subject {
    /// A healthy subject with the default numbers.
    #[must_use]
    pub fn new(protocol: ProtocolName, variant: Variant, quorum: Quorum) -> Self {
        let tuning = Tuning::default();
        Self { protocol, variant, mutant: None, entries_per_grant: None, quorum, tuning }
    }

    /// The same, broken on purpose.
    pub fn with_mutant(self, name: &str) -> Result<Self, SubjectError> {
        let Self { protocol, variant, .. } = self;
        if (protocol, variant) != (ProtocolName::Sigma, Variant::Shipped) {
            return Err(SubjectError::NoMutants { protocol, variant });
        }
        let mutant =
            Mutant::from_str(name).map_err(|_| SubjectError::UnknownMutant(name.to_owned()))?;
        Ok(Self { mutant: Some(mutant), ..self })
    }

    /// Everything that must be true of its runs.
    #[must_use]
    pub fn oracles(&self, config: &RunConfig) -> Vec<Box<dyn Oracle>> {
        let queues = (self.protocol, self.variant) == (ProtocolName::Sigma, Variant::Shipped);
        let entries_per_grant = self.entries_per_grant;
        oracles::all(Setting { entries_per_grant, ..config.setting(queues) })
    }

    /// Runs it.
    pub fn run(&self, config: &RunConfig, oracles: &mut [Box<dyn Oracle>]) -> Outcome {
        self.run_watched(config, oracles, &mut Blind)
    }

    /// Runs it, with somebody watching. A subject that persists nothing has no disk to come back to.
    pub fn run_watched(
        &self, config: &RunConfig, oracles: &mut [Box<dyn Oracle>], watch: &mut impl Watch,
    ) -> Outcome {
        let config = &RunConfig { disks: config.disks && self.tuning.durable, ..config.clone() };
        let fixed = || -> Box<dyn Hosting> { Box::new(config.roster().hosting()) };
        match (self.protocol, self.variant) {
            (ProtocolName::Sigma, Variant::Shipped) => {
                if self.tuning.membership == Membership::Agreed {
                    return self.run_agreed(config, oracles, watch);
                }
                let make = |me| {
                    let hosting = match (self.tuning.membership, &config.open) {
                        (Membership::Open, Some(open)) => self.open(config, open, me),
                        _ => fixed(),
                    };
                    Sigma::new(me, self.sigma(config, me), hosting)
                };
                self.run_as(config, make, oracles, watch)
            }
            (ProtocolName::Sigma, Variant::Literal) => {
                let literal = self.literal();
                let make = |me| Literal::new(me, literal.clone(), fixed());
                self.run_as(config, make, oracles, watch)
            }
            (ProtocolName::Strawman, _) => {
                let strawman = self.strawman();
                let make = |me| Strawman::new(me, strawman.clone(), fixed());
                self.run_as(config, make, oracles, watch)
            }
        }
    }

    /// With agents before it, if there are any.
    fn run_as<P>(
        &self, config: &RunConfig, make: impl Fn(PeerId) -> P, oracles: &mut [Box<dyn Oracle>],
        watch: &mut impl Watch,
    ) -> Outcome
    where
        P: Driven + Protocol<Request = LockRequest, Reply = LockReply>,
    {
        match self.agent() {
            Some(agent) => {
                let make = |me| Agent::new(make(me), agent.clone());
                run_watched(config, make, oracles, watch)
            }
            None => run_watched(config, make, oracles, watch),
        }
    }

    /// Among peers that agree on who is in.
    fn run_agreed(
        &self, config: &RunConfig, oracles: &mut [Box<dyn Oracle>], watch: &mut impl Watch,
    ) -> Outcome {
        let hosts = config.roster().hosts as u64;
        let agreed = |me| self.agreed(me, hosts);
        let sigma = |me| Sigma::new(me, self.sigma(config, me), Box::new(ByView::default()));
        match self.agent() {
            Some(agent) => {
                let make = |me| Agreed::new(me, agreed(me), Agent::new(sigma(me), agent.clone()));
                run_watched(config, make, oracles, watch)
            }
            None => {
                run_watched(config, |me| Agreed::new(me, agreed(me), sigma(me)), oracles, watch)
            }
        }
    }

    fn agent(&self) -> Option<agent::Config> {
        let mutant = self.mutant.and_then(Mutant::of_agent);
        let config = |entries| agent::Config { mutant, ..agent::Config::new(entries) };
        self.entries_per_grant.map(config)
    }

    fn open(&self, config: &RunConfig, open: &Open, me: PeerId) -> Box<dyn Hosting> {
        let placement = overlay::placement(open, config.seed, config.roster(), me);
        Box::new(hosting::Open::new(placement, self.quorum.n() as u16))
    }

    fn sigma(&self, config: &RunConfig, me: PeerId) -> sigma::Config {
        let Tuning { lease_max, claim_window, round_trip_worst, flight_max, durable, .. } =
            self.tuning;
        sigma::Config {
            client_only: me.0 >= config.roster().hosts as u64,
            compromised: config.compromised.contains(&me),
            lease_max,
            claim_window,
            round_trip_worst,
            flight_max,
            durable,
            tokens_per_grant: self.entries_per_grant.unwrap_or(1),
            mutant: self.mutant.and_then(Mutant::of_sigma),
            ..sigma::Config::new(self.quorum)
        }
    }

    /// The first host founds the swarm, or several do together; the others join it; who is no host uses it.
    fn agreed(&self, me: PeerId, hosts: u64) -> agreed::Config {
        let beginning = match me.0 {
            early if early < self.tuning.expecting => Beginning::Expect(self.tuning.founders),
            0 => Beginning::Found,
            other if other < hosts => Beginning::Join,
            _ => Beginning::Watch,
        };
        let mut config = agreed::Config::new(self.tuning.lease_max, beginning);
        config.durable = self.tuning.durable;
        config.views.dead_after = self.tuning.dead_after;
        config.views.round_trip_worst = self.tuning.round_trip_worst;
        config.views.mutant = self.mutant.and_then(Mutant::of_views);
        config.mutant = self.mutant.and_then(Mutant::of_agreed);
        config
    }

    fn literal(&self) -> LiteralConfig {
        if self.tuning.whole_paper {
            LiteralConfig::whole(self.quorum)
        } else {
            LiteralConfig::new(self.quorum)
        }
    }

    fn strawman(&self) -> strawman::Config {
        let Tuning { lease_max, round_trip_worst, flight_max, back_off, durable, .. } = self.tuning;
        strawman::Config {
            lease_max,
            round_trip_worst,
            flight_max,
            back_off,
            durable,
            ..strawman::Config::new(self.quorum, self.variant)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shipped_sigma_has_mutants_and_unknown_ones_are_listed() {
        let quorum = Quorum::new(3, 2).unwrap();
        let subject = |protocol, variant| Subject::new(protocol, variant, quorum);
        let shipped = subject(ProtocolName::Sigma, Variant::Shipped);
        for mutant in Mutant::all() {
            let broken = shipped.with_mutant(mutant.as_str()).unwrap();
            assert_eq!(broken.mutant, Some(mutant));
        }
        let sentence = shipped.with_mutant("nonsense").unwrap_err().to_string();
        assert!(Mutant::all().all(|mutant| sentence.contains(mutant.as_str())));
        assert!(subject(ProtocolName::Sigma, Variant::Literal).with_mutant("x").is_err());
        assert!(subject(ProtocolName::Strawman, Variant::Shipped).with_mutant("x").is_err());
    }
}
