//! What the tests about the paper share: small worlds, who plays in them, and what was seen.
#![allow(dead_code, reason = "every test program uses its own share of it")]

use sigmalock_core::{Name, PeerId, RequestId, Span};
use sigmalock_protocols::parts::{Hosting, Quorum};
use sigmalock_protocols::sigma::{self, Literal, LiteralConfig, Sigma};
use sigmalock_sim::history::{TrueTime, What};
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::oracles::{self, Oracle};
use sigmalock_sim::run::{Outcome, RunConfig, run, run_watched};
use sigmalock_sim::script::{Link, Rule, RuleEffect, Script};
use sigmalock_sim::watch::{Spoken, Watch};
use sigmalock_sim::workload::{Arrivals, Length, Workload};

pub(crate) const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

pub(crate) const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Who hosts what in it, which never changes.
fn hosting(world: &RunConfig) -> Box<dyn Hosting> {
    Box::new(world.population().hosting())
}

pub(crate) fn name() -> Name {
    Name::new("/a").unwrap()
}

pub(crate) fn quorum(n: u16, m: u16) -> Quorum {
    Quorum::new(n, m).unwrap()
}

/// The k-th host, which has replica k of every lock here.
pub(crate) const fn host(k: u64) -> PeerId {
    PeerId(k)
}

/// The k-th client of a story; in a drawn world, the k-th that exists.
pub(crate) const fn client(k: u64) -> PeerId {
    PeerId(1_000 + k)
}

/// A network without faults, one-way delays evenly between two numbers of milliseconds.
pub(crate) fn delays(low: u64, high: u64) -> Network {
    Network::perfect(Latency::Uniform { low: ms(low), high: ms(high) })
}

/// Requests at a rate, each from a client that never asked before, or hardly any did.
pub(crate) fn fresh(rate: f64) -> Arrivals {
    Arrivals::Poisson { per_s: rate, clients_min: 3_000, clients_max: 100_000 }
}

/// Requests at a rate, from clients that have asked before if there are any.
pub(crate) fn pooled(rate: f64) -> Arrivals {
    Arrivals::Poisson { per_s: rate, clients_min: 0, clients_max: 100_000 }
}

/// So many clients that ask again as soon as they have left.
pub(crate) fn loops(clients: usize) -> Arrivals {
    Arrivals::Loops { clients, think: Length::ZERO }
}

/// A world in which clients come at random.
pub(crate) fn world(seed: u64, quorum: Quorum, network: Network, arrivals: Arrivals) -> RunConfig {
    RunConfig::new(seed, quorum.n(), network, Workload::new(name(), arrivals))
}

/// A world in which things go as told. Messages take 10 ms where the script says nothing else, and the
/// history is kept.
pub(crate) fn story(quorum: Quorum, script: Script) -> RunConfig {
    let mut world = world(1, quorum, delays(10, 10), Arrivals::Scripted);
    world.script = Some(script);
    world.keep_history = true;
    world
}

/// Two clients that leave and soon ask again, without faults, for five minutes.
pub(crate) fn two_clients(seed: u64, quorum: Quorum) -> RunConfig {
    let think = Length::Exponential(ms(200));
    let arrivals = Arrivals::Loops { clients: 2, think };
    let mut world = world(seed, quorum, delays(0, 200), arrivals);
    world.workload.inside = Length::Constant(ms(300));
    world.duration = secs(300);
    world
}

/// The messages of one kind from one peer to another: what becomes of the first of them.
pub(crate) fn first(kind: &str, from: PeerId, to: PeerId, effect: RuleEffect) -> Rule {
    Rule { kind: Some(kind.into()), from: Some(from), to: Some(to), nth: Some(1), effect }
}

/// A link that always takes so long.
pub(crate) const fn link(from: PeerId, to: PeerId, delay: Span) -> Link {
    Link { from, to, delay }
}

/// Runs the pseudo code under one oracle.
pub(crate) fn literal(world: &RunConfig, config: &LiteralConfig, oracle: &str) -> Outcome {
    run(world, |me| Literal::new(me, config.clone(), hosting(world)), &mut only(oracle, world))
}

/// Runs what we ship under the same one.
pub(crate) fn shipped(world: &RunConfig, config: &sigma::Config, oracle: &str) -> Outcome {
    run(world, |me| Sigma::new(me, config.clone(), hosting(world)), &mut only(oracle, world))
}

/// Runs what we ship under all oracles, none of which may object.
pub(crate) fn clean(world: &RunConfig, config: &sigma::Config) -> Outcome {
    let mut oracles = oracles::all(world.setting(true));
    let outcome = run(world, |me| Sigma::new(me, config.clone(), hosting(world)), &mut oracles);
    assert_eq!(outcome.violations, []);
    outcome
}

/// The same, with everything that was sent; for stories, since it takes time and space.
pub(crate) fn watched(world: &RunConfig, config: &sigma::Config) -> (Outcome, Mail) {
    let mut mail = Mail::default();
    let mut oracles = oracles::all(world.setting(true));
    let make = |me| Sigma::new(me, config.clone(), hosting(world));
    let outcome = run_watched(world, make, &mut oracles, &mut mail);
    assert_eq!(outcome.violations, []);
    (outcome, mail)
}

fn only(oracle: &str, world: &RunConfig) -> Vec<Box<dyn Oracle>> {
    let all = oracles::all(world.setting(true));
    let chosen: Vec<_> = all.into_iter().filter(|each| each.name() == oracle).collect();
    assert_eq!(chosen.len(), 1, "{oracle} is no oracle for this run");
    chosen
}

/// Who got in, and when, in that order; needs the history.
pub(crate) fn entries(outcome: &Outcome) -> Vec<(PeerId, Span)> {
    let history = outcome.history.iter().flatten();
    let granted = history.filter_map(|record| match &record.what {
        What::Granted { request, .. } => Some((request.client, since_start(record.at))),
        _ => None,
    });
    granted.collect()
}

/// How long they had waited, in the same order.
pub(crate) fn waits(outcome: &Outcome) -> Vec<Span> {
    let history = || outcome.history.iter().flatten();
    let asked = |wanted: RequestId| {
        let asking = history().find(|record| match &record.what {
            What::Asked { request, .. } => *request == wanted,
            _ => false,
        });
        asking.map_or(TrueTime(0), |record| record.at)
    };
    let granted = history().filter_map(|record| match &record.what {
        What::Granted { request, .. } => Some(record.at.since(asked(*request))),
        _ => None,
    });
    granted.collect()
}

/// When a client first got in.
pub(crate) fn entry_of(outcome: &Outcome, client: PeerId) -> Option<Span> {
    entries(outcome).into_iter().find(|(who, _)| *who == client).map(|(_, at)| at)
}

pub(crate) const fn since_start(at: TrueTime) -> Span {
    Span::from_micros(at.0)
}

/// Everything that was sent.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) sent: Vec<Sent>,
}

/// One message.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) at: Span,
    pub(crate) from: PeerId,
    pub(crate) to: PeerId,
    pub(crate) kind: String,
}

impl Mail {
    /// When messages of a kind were sent from a peer, to anybody.
    pub(crate) fn times(&self, kind: &str, from: PeerId) -> Vec<Span> {
        let fitting = self.sent.iter().filter(|sent| sent.kind == kind && sent.from == from);
        fitting.map(|sent| sent.at).collect()
    }
}

impl Watch for Mail {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        _: Option<TrueTime>,
    ) {
        let kind = message.to_string().split(' ').next().unwrap_or_default().to_owned();
        self.sent.push(Sent { at: since_start(at), from, to, kind });
    }
}
