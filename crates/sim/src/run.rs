//! One run, from a configuration to its outcome.

use std::collections::BTreeMap;
use std::rc::Rc;

use sigmalock_core::{LockReply, LockRequest, PeerId, Protocol, Span};
use sigmalock_protocols::parts::Driven;

use crate::clock::Clocks;
use crate::crowd::Crowd;
use crate::faults::{Fault, FaultPlan, Memory};
use crate::history::{Ledger, Record, Traffic, TrueTime};
use crate::measure::Histogram;
use crate::network::Network;
use crate::oracles::{Oracle, Setting, Violation};
use crate::output;
use crate::overlay::Open;
use crate::population::Population;
use crate::recorder::{Oracles, Recorder};
use crate::script::{Action, Script};
use crate::users::Users;
use crate::watch::{Blind, Watch};
use crate::workload::Workload;
use crate::world::{Event, World};

/// All there is to know of a run before it begins. The same configuration always gives the same run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Where all random numbers come from.
    pub seed: u64,
    /// Replicas per lock.
    pub replicas: usize,
    /// Peers that host them; at least as many as there are replicas.
    pub hosts: usize,
    /// The host of whose disk a copy may run beside it: its twin.
    pub twin_of: Option<PeerId>,
    /// What lies between peers.
    pub network: Network,
    /// How wrong clocks are.
    pub clocks: Clocks,
    /// What clients want.
    pub workload: Workload,
    /// Whether hosting moves as peers come and go; if not, it is fixed.
    pub open: Option<Open>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// What is told instead of drawn.
    pub script: Option<Script>,
    /// Whether peers have disks; if not, every restart is one without memory.
    pub disks: bool,
    /// Which rule of the drivers is broken on purpose.
    pub driver: Option<output::Mutant>,
    /// Whether the registers that the locks protect look at fencing tokens. One that does not shows what
    /// the tokens are for.
    pub register_checks: bool,
    /// So long do messages wait for a peer that stands still; then the driver drops them, as it
    /// must for a protocol that counts on old messages not to turn up.
    pub mail_max: Span,
    /// What happens before this is not measured.
    pub warmup: Span,
    /// How long the run goes on after that. It ends earlier if, after the heal, nobody wants
    /// anything any more.
    pub duration: Span,
    /// How long after the heal a request may still wait.
    pub patience_after_heal: Span,
    /// A run that takes more events than this is out of control, which is a violation.
    pub events_max: u64,
    /// Whether to end at the first violation.
    pub stop_at_violation: bool,
    /// Whether to keep the history; it grows with the run.
    pub keep_history: bool,
}

impl RunConfig {
    /// A run without faults, of n replicas on n hosts, for a minute.
    #[must_use]
    pub fn new(seed: u64, replicas: usize, network: Network, workload: Workload) -> Self {
        Self {
            seed,
            replicas,
            hosts: replicas,
            twin_of: None,
            network,
            clocks: Clocks::default(),
            workload,
            open: None,
            faults: FaultPlan::default(),
            script: None,
            disks: true,
            driver: None,
            register_checks: true,
            mail_max: Span::from_secs(20),
            warmup: Span::ZERO,
            duration: Span::from_secs(60),
            patience_after_heal: Span::from_secs(60),
            events_max: u64::MAX,
            stop_at_violation: false,
            keep_history: false,
        }
    }

    /// Whether a disk loses what it said was written.
    pub(crate) fn loses_writes(&self) -> bool {
        let told = self.script.iter().flat_map(|script| &script.steps);
        let told = told.filter_map(|step| match &step.action {
            Action::Fault(fault) => Some(fault),
            _ => None,
        });
        self.faults
            .faults
            .iter()
            .map(|(_, fault)| fault)
            .chain(told)
            .any(|fault| matches!(fault, Fault::Restart { memory: Memory::Lost(_), .. }))
    }

    /// Who is who in this run.
    #[must_use]
    pub const fn population(&self) -> Population {
        Population { hosts: self.hosts, replicas: self.replicas, twin_of: self.twin_of }
    }

    /// What oracles may know of this run, if the protocol keeps a queue or if it does not.
    #[must_use]
    pub fn setting(&self, queues: bool) -> Setting {
        let work = &self.workload;
        let strange = [work.crash, work.sleep, work.overstay, work.evict]
            .iter()
            .any(|habit| habit.probability > 0.0);
        let faulty = strange
            || self.network.loss > 0.0
            || !self.faults.is_empty()
            || self.script.is_some()
            || self.open.is_some()
            || self.clocks != Clocks::default();
        Setting {
            replicas: self.replicas,
            one_way_worst: self.network.latency.worst(),
            faulty,
            queues,
            answers: &[],
            entries_per_grant: None,
            several: work.together > 1,
            lease_max: self.open.map_or(Span::ZERO, |open| open.lease_max),
            patience_after_heal: self.patience_after_heal,
            twins: self.twin_of.is_some(),
        }
    }

    /// When measuring begins.
    #[must_use]
    pub fn measured_from(&self) -> TrueTime {
        TrueTime(0) + self.warmup
    }

    /// When the run ends at the latest.
    #[must_use]
    pub fn end(&self) -> TrueTime {
        self.measured_from() + self.duration
    }
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What oracles objected to.
    pub violations: Vec<Violation>,
    /// Where the messages went.
    pub ledger: Ledger,
    /// What the protocol noted, by its words.
    pub notes: BTreeMap<String, u64>,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Entries into critical sections, in all.
    pub entries: u64,
    /// Entries while measuring.
    pub entries_measured: u64,
    /// Messages sent while measuring.
    pub traffic_measured: Traffic,
    /// Entries per second while measuring.
    pub throughput_per_s: f64,
    /// How long those who entered while measuring had waited.
    pub waits: Histogram,
    /// Events of the simulation.
    pub events: u64,
    /// Messages handed to protocols.
    pub delivered: u64,
    /// When the run ended.
    pub end: TrueTime,
    /// A fingerprint of everything that happened.
    pub digest: u64,
    /// The history, if it was to be kept.
    pub history: Option<Vec<Record>>,
}

/// A protocol whose users ask for locks, and are answered as those are.
pub trait LockProtocol:
    Driven + Protocol<Request: From<LockRequest>, Reply: TryInto<LockReply>>
{
}
impl<P> LockProtocol for P
where
    P: Driven,
    P::Request: From<LockRequest>,
    P::Reply: TryInto<LockReply>,
{
}

/// Runs a lock protocol. `make` gives a peer its protocol, anew for each life.
pub fn run<P: LockProtocol>(
    config: &RunConfig, make: impl Fn(PeerId) -> P, oracles: &mut [Box<dyn Oracle>],
) -> Outcome {
    run_crowd(Rc::new(config.clone()), make, Users::new(config), oracles, Blind)
}

/// Like [`run`], with somebody watching.
pub fn run_watched<P: LockProtocol, W: Watch>(
    config: &RunConfig, make: impl Fn(PeerId) -> P, oracles: &mut [Box<dyn Oracle>], watch: &mut W,
) -> Outcome {
    run_crowd(Rc::new(config.clone()), make, Users::new(config), oracles, watch)
}

/// Runs a protocol of any family.
pub(crate) fn run_crowd<P: Driven, C: Crowd<P>, W: Watch>(
    config: Rc<RunConfig>, make: impl Fn(PeerId) -> P, users: C, oracles: &mut [Box<dyn Oracle>],
    watch: W,
) -> Outcome {
    let recorder = Recorder::new(Oracles::Lent(oracles), config.keep_history);
    outcome(World::new(config, make, users, recorder, watch))
}

/// Runs a world to its end.
pub(crate) fn outcome<P: Driven, C: Crowd<P>, W: Watch>(mut world: World<'_, P, C, W>) -> Outcome {
    world.run(world.config.end());
    let end = world.over().unwrap_or_else(|| world.config.end());
    for event in world.queue.rest() {
        if let Event::Deliver(packet) = event {
            world.tally.row(packet.kind).in_flight += 1;
        }
    }
    for mail in world.peers.iter().flat_map(|peer| &peer.mailbox) {
        world.tally.row(mail.packet.kind).in_flight += 1;
    }
    let notes = world.notes.by_name();
    let ledger = world.tally.ledger();
    let traffic_measured = ledger.sent_since(&world.ledger_before);
    let verdict = world.recorder.finish(end, &ledger);
    let measured = end.since(world.config.measured_from()).as_secs_f64();
    Outcome {
        violations: verdict.violations,
        ledger,
        notes,
        faults: world.faults,
        entries: world.entries,
        entries_measured: world.entries_measured,
        traffic_measured,
        throughput_per_s: world.entries_measured as f64 / measured.max(1e-6),
        waits: world.waits,
        events: world.events,
        delivered: world.delivered,
        end,
        digest: verdict.digest,
        history: verdict.history,
    }
}
