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

use super::draw::{self, EVENTS_MAX, ms};
use super::mishaps::{Mishaps, Regime};
use crate::clock::Clocks;
use crate::faults::{Fault, FaultPlan};
use crate::history::TrueTime;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;

/// The quorums that are drawn, and how often.
pub(super) const QUORUMS: [(u16, u16, u64); 3] = [(9, 6, 60), (5, 3, 25), (3, 2, 15)];

/// The world that a seed means for a subject, which gets numbers that fit it.
pub(super) fn case(mut subject: Subject, seed: u64) -> (Subject, RunConfig) {
    let mut rng = Rng::split(seed, 0x6f70_656e);
    let network = draw::network(&mut rng);
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    subject.tuning.open = true;
    let first = rng.between(3, 12) as usize;
    let joins = if rng.below(3) == 0 { 0 } else { rng.between(1, 4) as usize };
    let leaves = if rng.below(3) == 0 { 0 } else { rng.below(first as u64 - 1) as usize };
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    workload.clients_on_hosts &= joins + leaves == 0;
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
    config.open = Some(Open { first, silence, delay, linger, lease_max });
    let safety = ms(rng.between(30_000, 60_000));
    config.faults = FaultPlan { heal_at: Some(TrueTime(0) + safety), ..FaultPlan::default() };
    config.faults.faults = plan(&mut rng, &subject, &config, safety, joins, leaves);
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + lease_max * 2 + (silence + delay) * 4;
    config.duration = safety + config.patience_after_heal * 4;
    (subject, config)
}

fn plan(
    rng: &mut Rng, subject: &Subject, config: &RunConfig, safety: Span, joins: usize, leaves: usize,
) -> Vec<(TrueTime, Fault)> {
    let Some(open) = config.open else { return Vec::new() };
    let hosts: Vec<PeerId> = config.roster().host_ids().collect();
    let mut faults = Vec::new();
    // A third of these worlds has nothing but comings and goings.
    if rng.below(3) > 0 {
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
        };
        faults = mishaps.schedule(safety);
    }
    let cuts = lasting_cuts(&faults, open.silence + open.delay * 2);
    let mut others: Vec<PeerId> = hosts[..open.first].to_vec();
    rng.shuffle(&mut others);
    for peer in others.into_iter().take(leaves) {
        faults.push((TrueTime(0) + rng.span(ms(1_000), safety), Fault::Leave(peer)));
    }
    for peer in hosts.into_iter().skip(open.first).take(joins) {
        let mut at = || TrueTime(0) + rng.span(ms(1_000), safety);
        let calm = |at: &TrueTime| !cuts.iter().any(|(from, to)| (from..=to).contains(&at));
        if let Some(at) = (0..20).map(|_| at()).find(calm) {
            faults.push((at, Fault::Join(peer)));
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
