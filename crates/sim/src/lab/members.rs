//! Random worlds of peers that agree on who is in, and do nothing else.
//!
//! Half of them are those of [`super::agreed`], without anybody who wants locks. The others are small and restless: every
//! half a second or so a host crashes, perhaps in the middle of what it does, or comes back, perhaps without its memory,
//! or one or two are cut off, or it is told to leave; over a bad network, with short leases.
//!
//! Where hosts of these lose their memory, nobody asks who gets in at last: half of a view may have lost it.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;

use super::agreed::{self, NEVER, part};
use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::mishaps::Regime;
use crate::faults::{Fault, FaultPlan, Memory};
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::network::Network;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;

/// So many hosts at most.
const HOSTS_MAX: u64 = 7;

/// The world that a seed means for a subject, which gets numbers that fit it.
pub(super) fn case(subject: Subject, seed: u64) -> (Subject, RunConfig) {
    let mut rng = Rng::split(seed, 0x7669_6577);
    if rng.below(2) == 0 {
        return agreed::case(subject, Crowd { agents: false, modes: false }, seed);
    }
    restless(subject, &mut rng, seed)
}

fn restless(mut subject: Subject, rng: &mut Rng, seed: u64) -> (Subject, RunConfig) {
    let mut network =
        Network::perfect(Latency::Uniform { low: Span::ZERO, high: ms(rng.between(20, 200)) });
    network.loss = 0.1 * rng.unit();
    network.duplication = 0.1 * rng.unit();
    (network.late, network.late_max) = (0.2 * rng.unit(), ms(rng.between(500, 5_000)));
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(rng, &network, mail_max);
    subject.tuning.membership = Membership::Agreed;
    subject.tuning.durable = true;
    let lease_max = subject.tuning.lease_max;
    let soon = ms(rng.between(500, 2_000)).max(subject.tuning.round_trip_worst * 2);
    subject.tuning.dead_after = rng.span(soon, lease_max * 2);
    let workload = draw::workload(rng, &subject.tuning, false);
    let mut config = RunConfig::new(seed, 1, network, workload);
    config.hosts = rng.between(1, HOSTS_MAX) as usize;
    config.mail_max = mail_max;
    config.clocks = draw::clocks(rng, Regime::MemoryLoss, lease_max);
    let (silence, delay) = (ms(rng.between(300, 2_000)), ms(rng.between(20, 300)));
    let (first, linger, cells, clients_seen) = (config.hosts, NEVER, None, true);
    config.open = Some(Open { first, silence, delay, linger, lease_max, cells, clients_seen });
    let safety = ms(rng.between(40_000, 120_000));
    let forgetful = rng.below(2) == 0;
    let heal_at = (!forgetful).then_some(TrueTime(0) + safety);
    let faults = mischief(rng, &config, forgetful, safety);
    config.faults = FaultPlan { heal_at, faults, ..FaultPlan::default() };
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    let views = (lease_max + subject.tuning.round_trip_worst * 8) * 2 * (config.hosts as u64 + 1);
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + (silence + delay) * 4 + views;
    config.duration =
        if heal_at.is_some() { safety + config.patience_after_heal * 4 } else { safety };
    (subject, config)
}

fn mischief(
    rng: &mut Rng, config: &RunConfig, forgetful: bool, until: Span,
) -> Vec<(TrueTime, Fault)> {
    let hosts: Vec<PeerId> = config.population().host_ids().collect();
    let mut faults = Vec::new();
    let mut at = TrueTime(0) + ms(500);
    for id in 1.. {
        at = at + rng.exponential(ms(600));
        if at.since(TrueTime(0)) > until {
            break;
        }
        let (peer, other) = (*rng.pick(&hosts), *rng.pick(&hosts));
        let later = at + rng.span(ms(20), ms(6_000));
        match rng.below(10) {
            0..4 => {
                let torn = rng.below(2) == 0;
                faults.push((at, if torn { Fault::Tear(peer) } else { Fault::Crash(peer) }));
                // At first there is nobody who could remember.
                let forgets = forgetful && at > TrueTime(0) + ms(20_000) && rng.below(3) == 0;
                let memory = if forgets { Memory::None } else { Memory::Disk };
                faults.push((later, Fault::Restart { peer, memory }));
            }
            4..7 if peer != other => {
                faults.extend(part(id, &[peer], &[other], at));
                faults.push((later, Fault::Mend(id)));
            }
            7 | 8 => {
                let others: Vec<PeerId> = hosts.iter().copied().filter(|h| *h != peer).collect();
                faults.extend(part(id, &[peer], &others, at));
                faults.push((later, Fault::Mend(id)));
            }
            9 if peer != hosts[0] => faults.push((at, Fault::Leave(peer))),
            _ => {}
        }
    }
    faults
}
