//! Which protocol is put to the test: from a name to a run of the right type.

use std::rc::Rc;

use sigmalock_core::{Inspect, PeerId, Span};
use sigmalock_protocols::agent::{self, Agent};
use sigmalock_protocols::agreed::{self, Agreed, Beginning};
use sigmalock_protocols::catalogue::{
    Family, Listed, ListedMembers, Membership, Plan, ProtocolName, Shipped, ShippedVisitor,
    Variant, Visitor,
};
use sigmalock_protocols::parts::hosting::{self, ByView};
use sigmalock_protocols::parts::{Broken, Driven, Hosting, Quorum, Rules, Sound};

use crate::crowd::Crowd;
use crate::members::Members;
use crate::mutant::{self, Mutant};
use crate::network::Network;
use crate::oracles::{self, Oracle, Setting};
use crate::overlay;
use crate::recorder::{Oracles, Recorder};
use crate::run::{Outcome, RunConfig, run_crowd};
use crate::stepper::{Stepper, Tape};
use crate::users::Users;
use crate::watch::{Blind, Watch};
use crate::world::World;

/// A protocol, as which variant, how large, and perhaps broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Which protocol.
    pub protocol: ProtocolName,
    /// To the letter, or fit to survive.
    pub variant: Variant,
    /// Which rule is broken on purpose.
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
    #[error("there is no mutant `{name}` of {protocol}; there are: {all}", all = mutant_names(*.protocol))]
    UnknownMutant {
        /// What was asked for.
        name: String,
        /// The protocol.
        protocol: ProtocolName,
    },
    /// What is as published is as broken as it is.
    #[error("only what is shipped has rules to break, not the literal {0}")]
    NoMutants(ProtocolName),
}

fn mutant_names(protocol: ProtocolName) -> String {
    mutant::of(protocol).map(|mutant| mutant.name).collect::<Vec<_>>().join(", ")
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
        if variant != Variant::Shipped {
            return Err(SubjectError::NoMutants(protocol));
        }
        let mutant = mutant::of(protocol).find(|mutant| mutant.name == name);
        let unknown = || SubjectError::UnknownMutant { name: name.to_owned(), protocol };
        Ok(Self { mutant: Some(mutant.ok_or_else(unknown)?), ..self })
    }

    /// Everything that must be true of its runs.
    #[must_use]
    pub fn oracles(&self, config: &RunConfig) -> Vec<Box<dyn Oracle>> {
        let card = self.protocol.card();
        let queues = self.variant == Variant::Shipped && card.promises.queue;
        let (entries_per_grant, answers) = (self.entries_per_grant, card.answers);
        let lease_max = self.tuning.lease_max;
        let setting = Setting { entries_per_grant, answers, lease_max, ..config.setting(queues) };
        match card.family {
            Family::Members => oracles::of_members(setting),
            Family::Lock | Family::Layer => oracles::all(setting),
        }
    }

    /// Runs it.
    pub fn run(&self, config: &RunConfig, oracles: &mut [Box<dyn Oracle>]) -> Outcome {
        match self.mutant {
            Some(_) => self.run_watched(config, oracles, &mut Blind),
            None => self.sound(config, Run { oracles, watch: Blind }),
        }
    }

    /// Runs it, with somebody watching, who is not known by its type: each protocol is built once more, and not once for
    /// each watcher.
    pub fn run_watched(
        &self, config: &RunConfig, oracles: &mut [Box<dyn Oracle>], watch: &mut dyn Watch,
    ) -> Outcome {
        let run = Run { oracles, watch };
        match self.mutant {
            Some(mutant) => self.broken(mutant, config, run),
            None => self.sound(config, run),
        }
    }

    /// It is about to run, step by step.
    pub(crate) fn stepper(&self, config: &RunConfig) -> Stepper {
        let step = Step { oracles: self.oracles(config) };
        match self.mutant {
            Some(mutant) => self.broken(mutant, config, step),
            None => self.sound(config, step),
        }
    }

    fn sound<U: Use>(&self, config: &RunConfig, then: U) -> U::Out {
        let made = self.made(config, then, Sound);
        if self.protocol.is_lock() && self.tuning.membership == Membership::Agreed {
            let done = self.protocol.visit_shipped(made);
            done.unwrap_or_else(|| unreachable!("a lock protocol is seen"))
        } else {
            self.protocol.visit(self.variant, made)
        }
    }

    fn broken<U: Use>(&self, mutant: Mutant, config: &RunConfig, then: U) -> U::Out {
        self.protocol.visit_broken(self.made(config, then, Broken::from(mutant)))
    }

    /// In a world. A subject that persists nothing has no disk to come back to.
    fn made<U: Use, R: Rules>(&self, config: &RunConfig, then: U, rules: R) -> Made<U, R> {
        let disks = config.disks && self.tuning.durable;
        let config = Rc::new(RunConfig { disks, ..config.clone() });
        Made { subject: *self, config, then, rules }
    }

    /// What one peer's share is made from.
    pub(crate) fn plan<R>(&self, config: &RunConfig, me: PeerId, rules: R) -> Plan<R> {
        let Tuning { lease_max, claim_window, round_trip_worst, flight_max, .. } = self.tuning;
        let Tuning { back_off, dead_after, .. } = self.tuning;
        Plan {
            variant: self.variant,
            quorum: self.quorum,
            hosting: self.hosting(config, me),
            lease_max,
            claim_window,
            dead_after,
            round_trip_worst,
            flight_max,
            back_off,
            durable: self.tuning.durable,
            tokens_per_grant: self.entries_per_grant.unwrap_or(1),
            client_only: me.0 >= config.population().hosts as u64,
            bare: !self.tuning.whole_paper,
            rules,
        }
    }

    fn hosting(&self, config: &RunConfig, me: PeerId) -> Box<dyn Hosting> {
        match (self.tuning.membership, &config.open) {
            (Membership::Agreed, _) => Box::new(ByView::default()),
            (Membership::Open, Some(open)) => {
                let placement = overlay::placement(open, config.seed, config.population(), me);
                Box::new(hosting::Open::new(placement, self.quorum.n() as u16))
            }
            _ => Box::new(config.population().hosting()),
        }
    }

    fn agent<R: Rules>(&self, rules: R) -> Option<agent::Config<R>> {
        self.entries_per_grant.map(|entries| agent::Config::with_rules(entries, rules))
    }

    /// The first host founds the swarm, or several do together; the others join it; who is no host uses it.
    fn beginning(&self, me: PeerId, hosts: u64) -> Beginning {
        match me.0 {
            early if early < self.tuning.expecting => Beginning::Expect(self.tuning.founders),
            0 => Beginning::Found,
            other if other < hosts => Beginning::Join,
            _ => Beginning::Watch,
        }
    }

    fn agreed<R: Rules>(&self, me: PeerId, hosts: u64, rules: R) -> agreed::Config<R> {
        let beginning = self.beginning(me, hosts);
        let mut config = agreed::Config::with_rules(self.tuning.lease_max, beginning, rules);
        config.views.dead_after = self.tuning.dead_after;
        config.views.round_trip_worst = self.tuning.round_trip_worst;
        config
    }
}

/// What becomes of a subject, once it is known which types it is made of.
trait Use {
    type Out;
    fn with<P, C>(
        self, config: Rc<RunConfig>, make: impl Fn(PeerId) -> P + 'static, users: C,
    ) -> Self::Out
    where
        P: Driven + Inspect + Clone + 'static,
        C: Crowd<P> + 'static;
}

/// It is run.
struct Run<'a, W> {
    oracles: &'a mut [Box<dyn Oracle>],
    watch: W,
}

impl<W: Watch> Use for Run<'_, W> {
    type Out = Outcome;

    fn with<P, C>(self, config: Rc<RunConfig>, make: impl Fn(PeerId) -> P, users: C) -> Outcome
    where
        P: Driven,
        C: Crowd<P>,
    {
        run_crowd(config, make, users, self.oracles, self.watch)
    }
}

/// It runs step by step.
struct Step {
    oracles: Vec<Box<dyn Oracle>>,
}

impl Use for Step {
    type Out = Stepper;

    fn with<P, C>(
        self, config: Rc<RunConfig>, make: impl Fn(PeerId) -> P + 'static, users: C,
    ) -> Stepper
    where
        P: Driven + Inspect + Clone + 'static,
        C: Crowd<P> + 'static,
    {
        let recorder = Recorder::new(Oracles::Own(self.oracles), config.keep_history);
        Stepper::of(World::new(config, make, users, recorder, Tape::default()))
    }
}

/// A subject, in a world, before it is known which types it is made of.
struct Made<U, R> {
    subject: Subject,
    config: Rc<RunConfig>,
    then: U,
    rules: R,
}

/// On its own, or with agents before it.
impl<U: Use, R: Rules> Visitor<R> for Made<U, R> {
    type Out = U::Out;

    fn lock<P: Listed<R>>(self) -> U::Out {
        let Self { subject, config, then, rules } = self;
        let (world, users) = (Rc::clone(&config), Users::new(&config));
        let make = move |me| P::plan(me, &subject.plan(&world, me, rules));
        match subject.agent(rules) {
            Some(agent) => then.with(config, move |me| Agent::new(make(me), agent.clone()), users),
            None => then.with(config, make, users),
        }
    }

    fn members<P: ListedMembers<R>>(self) -> U::Out {
        let Self { subject, config, then, rules } = self;
        let hosts = config.hosts as u64;
        let beginnings = (0..hosts).map(|me| subject.beginning(PeerId(me), hosts)).collect();
        let (world, users) = (Rc::clone(&config), Members::new(config.seed, beginnings));
        then.with(config, move |me| P::plan(me, &subject.plan(&world, me, rules)), users)
    }
}

/// The same, perhaps among peers that agree on who is in.
impl<U: Use, R: Rules> ShippedVisitor<R> for Made<U, R> {
    type Out = U::Out;

    fn visit<P: Shipped<R>>(self) -> U::Out {
        if self.subject.tuning.membership != Membership::Agreed {
            return Visitor::lock::<P>(self);
        }
        let Self { subject, config, then, rules } = self;
        let (world, users) = (Rc::clone(&config), Users::new(&config));
        let agreed = move |me| subject.agreed(me, world.population().hosts as u64, rules);
        let world = Rc::clone(&config);
        let make = move |me| P::plan(me, &subject.plan(&world, me, rules));
        match subject.agent(rules) {
            Some(agent) => {
                let inside = move |me| Agent::new(make(me), agent.clone());
                then.with(config, move |me| Agreed::new(me, agreed(me), inside(me)), users)
            }
            None => then.with(config, move |me| Agreed::new(me, agreed(me), make(me)), users),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_has_its_own_mutants_and_those_of_the_layers_and_unknown_ones_are_listed() {
        let quorum = Quorum::new(3, 2).unwrap();
        let subject = |protocol, variant| Subject::new(protocol, variant, quorum);
        let shipped = subject(ProtocolName::Sigma, Variant::Shipped);
        for mutant in mutant::all() {
            assert_eq!(shipped.with_mutant(mutant.name).unwrap().mutant, Some(mutant));
        }
        let sentence = shipped.with_mutant("nonsense").unwrap_err().to_string();
        assert!(mutant::all().all(|mutant| sentence.contains(mutant.name)));
        assert!(
            subject(ProtocolName::Sigma, Variant::Literal).with_mutant("grants-twice").is_err()
        );
        let strawman = subject(ProtocolName::Strawman, Variant::Shipped);
        assert!(strawman.with_mutant("grants-twice").is_err());
        assert!(strawman.with_mutant("reuses-tokens").is_ok(), "a layer's");
    }
}
