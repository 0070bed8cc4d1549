//! Random open worlds: peers join, leave, crash and lose sight of each other, and replicas move.
//!
//! Open membership promises exclusion with high probability only. These worlds keep to what it counts on,
//! so that no violation is excusable:
//!
//! - views of two peers differ for no longer than peers allow for ([`Open::delay`]);
//! - a lasting cut divides the hosts in two: who hears whom is transitive but for short moments;
//! - nobody joins while there is such a cut (both sides could take newcomers for a majority);
//! - wall clocks are about right, because hosts forget.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;

use super::disks;
use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::mishaps::{HANDFUL, Mishaps, Regime};
use crate::clock::Clocks;
use crate::faults::{Cut, Fault, FaultPlan};
use crate::history::TrueTime;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// The quorums that are drawn, and how often.
pub(super) const QUORUMS: [(u16, u16, u64); 3] = [(9, 6, 60), (5, 3, 25), (3, 2, 15)];

/// The world that a seed means for a subject, which gets numbers that fit it.
pub(super) fn case(mut subject: Subject, crowd: Crowd, seed: u64) -> (Subject, RunConfig) {
    let mut rng = Rng::split(seed, 0x6f70_656e);
    let network = draw::network(&mut rng);
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    subject.tuning.membership = Membership::Open;
    let restless = rng.below(3) == 0;
    let first = rng.between(3, if restless { 5 } else { 12 }) as usize;
    let joins = if restless { 4 } else { rng.below(4) as usize };
    // Who leaves unseen counts as lost for an hour, and without a majority nobody votes.
    let leaves = if restless { (first - 1) / 2 } else { rng.below(first as u64 / 2) as usize };
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    workload.clients_on_hosts &= joins + leaves == 0;
    if restless {
        let lease = subject.tuning.lease_max;
        workload.names.truncate(1);
        workload.inside = Length::Uniform(Span::ZERO, lease);
        workload.arrivals = Arrivals::Loops { clients: 4, think: Length::Constant(ms(50)) };
    }
    if crowd.modes {
        draw::add_modes(&mut workload, crowd.agents, seed);
    }
    if crowd.agents {
        draw::add_agents(&mut subject, &mut workload, false, false, seed);
    }
    let mut config = RunConfig::new(seed, subject.quorum.n(), network, workload);
    config.hosts = first + joins;
    config.mail_max = mail_max;
    let lease_max = subject.tuning.lease_max;
    config.clocks = if rng.below(4) == 0 {
        Clocks::default()
    } else {
        draw::clocks(&mut rng, Regime::MemoryLoss, lease_max)
    };
    let silence = ms(rng.between(1_000, 3_000));
    let delay = ms(rng.between(50, 800));
    let linger = ms(rng.between(500, 5_000));
    let (cells, clients_seen) = (None, false);
    config.open = Some(Open { first, silence, delay, linger, lease_max, cells, clients_seen });
    let safety = ms(rng.between(30_000, 60_000));
    config.faults = FaultPlan { heal_at: Some(TrueTime(0) + safety), ..FaultPlan::default() };
    let moves = Moves { joins, leaves, restless };
    config.faults.faults = plan(&mut rng, &subject, &config, safety, moves);
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + lease_max * 2 + (silence + delay) * 4;
    config.duration = safety + config.patience_after_heal * 4;
    disks::fail(&mut subject, &mut config, seed);
    (subject, config)
}

/// Who comes and goes.
#[derive(Debug, Clone, Copy)]
struct Moves {
    joins: usize,
    leaves: usize,
    /// There is little else in this world, and newcomers are often not heard at first.
    restless: bool,
}

fn plan(
    rng: &mut Rng, subject: &Subject, config: &RunConfig, safety: Span, moves: Moves,
) -> Vec<(TrueTime, Fault)> {
    let Some(open) = config.open else { return Vec::new() };
    let hosts: Vec<PeerId> = config.population().host_ids().collect();
    let mut faults = Vec::new();
    if !moves.restless {
        let mut mishaps = Mishaps {
            rng: &mut *rng,
            hosts: hosts.clone(),
            clients: draw::clients(config),
            regime: Regime::MemoryLoss,
            durable: subject.tuning.durable,
            lease_max: subject.tuning.lease_max,
            overlap: subject.quorum.overlap(),
            cuts: 0,
            briefly: Some(open.silence / 2),
            losses: None,
        };
        faults = mishaps.schedule(HANDFUL, ms(500)..safety);
    }
    let cuts = lasting_cuts(&faults, open.silence + open.delay * 2);
    let mut others: Vec<PeerId> = hosts[..open.first].to_vec();
    rng.shuffle(&mut others);
    for peer in others.into_iter().take(moves.leaves) {
        faults.push((TrueTime(0) + rng.span(ms(1_000), safety), Fault::Leave(peer)));
    }
    for (k, peer) in hosts.iter().skip(open.first).take(moves.joins).enumerate() {
        let mut at = || TrueTime(0) + rng.span(ms(1_000), safety);
        let calm = |at: &TrueTime| !cuts.iter().any(|(from, to)| (from..=to).contains(&at));
        let Some(at) = (0..20).map(|_| at()).find(calm) else { continue };
        faults.push((at, Fault::Join(*peer)));
        if moves.restless && rng.below(2) == 0 {
            let id = u32::MAX - k as u32;
            let cut = Cut { id, from: vec![*peer], to: hosts.clone() };
            let from = at + rng.span(open.delay / 2, open.delay * 2);
            faults.push((from, Fault::Cut(cut)));
            faults.push((from + open.silence * 9 / 10, Fault::Mend(id)));
        }
    }
    faults
}

/// From when to when there are cuts, and so long before and after.
fn lasting_cuts(faults: &[(TrueTime, Fault)], margin: Span) -> Vec<(TrueTime, TrueTime)> {
    let mended = |id: u32| faults.iter().find(|(_, fault)| *fault == Fault::Mend(id));
    let cuts = faults.iter().filter_map(|(at, fault)| match fault {
        Fault::Cut(cut) => Some((*at, mended(cut.id).map_or(*at, |(at, _)| *at))),
        _ => None,
    });
    cuts.map(|(from, to)| (TrueTime(from.0.saturating_sub(margin.as_micros())), to + margin))
        .collect()
}
