//! Voting by zones, with compromised peers: how much of the space must they own to let two in at once?
//!
//! Compromised peers vote for everybody who asks ([`Liar`]). If the clients are split in two camps, each reaches half of
//! the honest peers, by space, and all of the compromised ones. That is the worst case: the honest votes are
//! shared as evenly as can be. If they are not, everybody reaches everybody, and the lock goes round. All the
//! while peers join and leave, and zones change.

use std::collections::BTreeMap;

use sigmalock_core::{Name, PeerId, Span};
use sigmalock_protocols::catalogue::{Listed, Membership, ProtocolName, Variant};
use sigmalock_protocols::liar::Liar;
use sigmalock_protocols::parts::{QuorumError, Sound, zones};
use sigmalock_protocols::sigma::Sigma;

use crate::faults::{Cut, Fault, FaultPlan};
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::network::Network;
use crate::oracles::{Exclusion, Oracle};
use crate::overlay::{Open, zones_of};
use crate::rng::Rng;
use crate::run::{self, RunConfig};
use crate::subject::{Subject, Tuning};
use crate::workload::{Arrivals, Length, Workload};

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneConfig {
    /// The fraction of the whole that holds the lock, in thousandths.
    pub permille: u16,
    /// How finely space is measured.
    pub cells: u16,
    /// Peers at the beginning.
    pub peers: usize,
    /// Honest peers that join in the course of the run, and that leave.
    pub joins: usize,
    /// Honest peers that leave.
    pub leaves: usize,
    /// When they begin to come and go; a second apart, then.
    pub changes_from: Span,
    /// About how much of the space is compromised at the beginning, in thousandths.
    pub compromised: u16,
    /// Whether the clients are in two camps, each of which reaches half of the honest peers.
    pub split: bool,
    /// How long it goes on.
    pub duration: Span,
    /// Where all random numbers come from.
    pub seed: u64,
}

impl ZoneConfig {
    /// Sixteen peers, of which some leave while as many join.
    #[must_use]
    pub const fn new(permille: u16, compromised: u16, split: bool, seed: u64) -> Self {
        Self {
            permille,
            cells: 64,
            peers: 16,
            joins: 4,
            leaves: 4,
            changes_from: Span::from_secs(8),
            compromised,
            split,
            duration: Span::from_secs(30),
            seed,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ZoneRow {
    /// What was asked for.
    pub config: ZoneConfig,
    /// The smallest share of the space that was compromised at any time.
    pub share_least: f64,
    /// The largest.
    pub share_most: f64,
    /// From this share on theory lets two in: 2f − 1, in whole cells.
    pub threshold: f64,
    /// Entries into the critical section.
    pub entries: u64,
    /// How often somebody was let in while another was inside; no more than 100 are counted.
    pub overlaps: u64,
    /// When that was seen last.
    pub last_overlap: Option<TrueTime>,
}

impl ZoneRow {
    /// Whether theory allows for two at once in the whole run, in none of it, or in part of it.
    #[must_use]
    pub fn predicted(&self) -> Option<bool> {
        match (self.share_least >= self.threshold, self.share_most >= self.threshold) {
            (true, _) => Some(true),
            (_, false) => Some(false),
            _ => None,
        }
    }
}

/// Who is there, and who is on which side.
struct Cast {
    compromised: Vec<PeerId>,
    /// The honest ones, by camp.
    camps: [Vec<PeerId>; 2],
    /// Who comes and goes, in order.
    changes: Vec<Fault>,
}

/// Runs it.
///
/// # Errors
/// That fraction of so many cells is no quorum.
pub fn run(config: ZoneConfig) -> Result<ZoneRow, QuorumError> {
    let quorum = zones::quorum(config.cells, config.permille)?;
    let cast = cast(config);
    let shares = shares(config, &cast);
    let threshold = quorum.overlap() as f64 / f64::from(config.cells);
    let mut subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum);
    let world = world(config, &cast, &mut subject);
    let mut oracles: Vec<Box<dyn Oracle>> = vec![Box::new(Exclusion::default())];
    let liar = |me| {
        let sigma = Sigma::plan(me, &subject.plan(&world, me, Sound));
        Liar::new(sigma, cast.compromised.contains(&me))
    };
    let outcome = run::run(&world, liar, &mut oracles);
    Ok(ZoneRow {
        config,
        share_least: shares.iter().copied().fold(1.0, f64::min),
        share_most: shares.iter().copied().fold(0.0, f64::max),
        threshold,
        entries: outcome.entries,
        overlaps: outcome.violations.len() as u64,
        last_overlap: outcome.violations.last().map(|violation| violation.at),
    })
}

/// How much of the space is compromised from the beginning, and after each change.
fn shares(config: ZoneConfig, cast: &Cast) -> Vec<f64> {
    let mut present: Vec<PeerId> = (0..config.peers as u64).map(PeerId).collect();
    let mut shares = vec![share(config, cast, &present)];
    for change in &cast.changes {
        match change {
            Fault::Join(peer) => present.push(*peer),
            Fault::Leave(peer) => present.retain(|known| known != peer),
            _ => {}
        }
        shares.push(share(config, cast, &present));
    }
    shares
}

fn share(config: ZoneConfig, cast: &Cast, present: &[PeerId]) -> f64 {
    let zones = zones_of(config.seed, present, config.cells);
    let theirs: u16 = cast.compromised.iter().filter_map(|peer| zones.get(peer)).sum();
    f64::from(theirs) / f64::from(config.cells)
}

/// Chooses who is compromised, so that their zones come closest to what was asked for without going beyond,
/// and puts the others into camps of about the same size.
fn cast(config: ZoneConfig) -> Cast {
    let mut rng = Rng::split(config.seed, 0x7a6f_6e65);
    let all = (config.peers + config.joins) as u64;
    let mut first: Vec<PeerId> = (0..config.peers as u64).map(PeerId).collect();
    let zones: BTreeMap<PeerId, u16> = zones_of(config.seed, &first, config.cells);
    let size = |peer: &PeerId| zones.get(peer).copied().unwrap_or(0);
    rng.shuffle(&mut first);
    first.sort_by_key(|peer| std::cmp::Reverse(size(peer)));
    let wanted = u32::from(config.compromised) * u32::from(config.cells) / 1_000;
    let mut cells = 0;
    let (mut compromised, mut honest) = (Vec::new(), Vec::new());
    for peer in first {
        if cells + u32::from(size(&peer)) <= wanted {
            cells += u32::from(size(&peer));
            compromised.push(peer);
        } else {
            honest.push(peer);
        }
    }
    let mut camps = [Vec::new(), Vec::new()];
    let mut sizes = [0, 0];
    for peer in &honest {
        let camp = usize::from(sizes[1] < sizes[0]);
        sizes[camp] += size(peer);
        camps[camp].push(*peer);
    }
    let joins: Vec<PeerId> = (config.peers as u64..all).map(PeerId).collect();
    for (k, peer) in joins.iter().enumerate() {
        camps[k % 2].push(*peer);
    }
    // The smallest leave, so that what is compromised does not change by much.
    let leaves: Vec<PeerId> = honest.iter().rev().take(config.leaves).copied().collect();
    let longest = joins.len().max(leaves.len());
    let join = |k: usize| joins.get(k).map(|peer| Fault::Join(*peer));
    let leave = |k: usize| leaves.get(k).map(|peer| Fault::Leave(*peer));
    let changes = (0..longest).flat_map(|k| [join(k), leave(k)]).flatten().collect();
    Cast { compromised, camps, changes }
}

fn world(config: ZoneConfig, cast: &Cast, subject: &mut Subject) -> RunConfig {
    let ms = Span::from_millis;
    let network = Network::perfect(Latency::Uniform { low: ms(5), high: ms(25) });
    let lease_max = ms(2_000);
    subject.tuning = Tuning {
        lease_max,
        claim_window: ms(300),
        flight_max: Span::from_secs(5),
        membership: Membership::Open,
        ..Tuning::for_network(&network)
    };
    let clients = 4;
    let name = Name::new("/zones").unwrap_or_else(|_| unreachable!("it is a name"));
    let arrivals = Arrivals::Loops { clients, think: Length::Uniform(ms(10), ms(100)) };
    let mut workload = Workload::new(name, arrivals);
    workload.ttl = Length::Constant(lease_max);
    workload.inside = Length::Constant(ms(300));
    let mut world = RunConfig::new(config.seed, config.cells.into(), network, workload);
    world.hosts = config.peers + config.joins;
    let (silence, delay, linger) = (ms(1_000), ms(100), ms(1_500));
    let cells = Some(config.cells);
    let (first, clients_seen) = (config.peers, false);
    world.open = Some(Open { first, silence, delay, linger, lease_max, cells, clients_seen });
    world.duration = config.duration;
    let population = world.population();
    let mut faults = FaultPlan::default();
    let camps: &[(usize, usize)] = if config.split { &[(0, 1), (1, 0)] } else { &[] };
    for &(camp, others) in camps {
        let clients: Vec<PeerId> =
            (0..clients).filter(|k| k % 2 == camp).map(|k| population.client(k)).collect();
        let away = cast.camps[others].clone();
        for (from, to) in [(clients.clone(), away.clone()), (away, clients)] {
            faults.faults.push((TrueTime(0), Fault::Cut(Cut { id: camp as u32, from, to })));
        }
    }
    let begin = TrueTime(0) + config.changes_from;
    for (k, change) in cast.changes.iter().enumerate() {
        faults.faults.push((begin + Span::from_secs(k as u64), change.clone()));
    }
    world.faults = faults;
    world
}
