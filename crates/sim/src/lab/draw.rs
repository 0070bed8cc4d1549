//! Random worlds for torture: from a seed to everything that will go wrong.

use sigmalock_core::{Name, PeerId, Span};
use sigmalock_protocols::catalogue::Membership;
use sigmalock_protocols::parts::Quorum;

use super::mishaps::{HANDFUL, Mishaps, Regime};
use super::open;
use super::{disks, lan};
use crate::clock::Clocks;
use crate::faults::{Fault, FaultPlan};
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::network::Network;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::{Subject, Tuning};
use crate::workload::{Arrivals, Habit, Length, PatienceMix, Workload};

/// The quorums that are drawn, and how often.
const QUORUMS: [(u16, u16, u64); 4] = [(3, 2, 35), (5, 3, 30), (9, 6, 25), (32, 24, 10)];
/// From so many replicas on worlds are smaller otherwise, so that a seed takes no longer.
const MANY: usize = 20;
/// What the shipped protocols' margin covers.
pub(super) const PPM_MAX: u64 = 5_000;

/// No world of this size needs more.
pub(super) const EVENTS_MAX: u64 = 3_000_000;

/// What a world is mostly like. Rare sequences of rare events need a world that is bent on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weather {
    /// No faults at all: the oracles of order and idleness want that.
    Calm,
    /// A bit of everything.
    Mixed,
    /// Everybody wants the same lock, and the network repeats itself, at once and much later.
    Echoes,
    /// Clients fall asleep again and again, for about a lease.
    Sleepy,
    /// Hosts lose their memory again and again, and old messages meet new hosts.
    Forgetful,
    /// Delays are nothing, and clocks as wrong as they may be.
    Lan,
}

impl Weather {
    fn draw(rng: &mut Rng, seed: u64) -> Self {
        match rng.below(20) {
            0 | 1 => Self::Calm,
            2 | 3 => Self::Echoes,
            4 | 5 => Self::Sleepy,
            6 | 7 => Self::Forgetful,
            _ if lan::is_meant(seed, 4) => Self::Lan,
            _ => Self::Mixed,
        }
    }

    fn bend_network(self, rng: &mut Rng, network: &mut Network) {
        match self {
            Self::Calm => {
                (network.loss, network.duplication, network.late) = (0.0, 0.0, 0.0);
                network.late_max = Span::ZERO;
            }
            Self::Echoes => {
                network.latency = Latency::Uniform { low: ms(0), high: ms(rng.between(100, 300)) };
                (network.pairwise, network.fifo, network.loss) = (false, false, 0.0);
                (network.duplication, network.late) = (0.3 * rng.unit(), 0.3 + 0.3 * rng.unit());
                network.late_max = ms(rng.between(300, 3_000));
            }
            Self::Forgetful => {
                network.loss = 0.15 * rng.unit();
                network.late = 0.5 * rng.unit();
                network.late_max = ms(rng.between(5_000, 10_000));
            }
            Self::Mixed | Self::Sleepy | Self::Lan => {}
        }
    }

    fn bend_workload(self, rng: &mut Rng, workload: &mut Workload, lease: Span) {
        match self {
            Self::Calm => {
                workload.crash = Habit::NEVER;
                workload.overstay = Habit::NEVER;
                workload.sleep = Habit::NEVER;
            }
            Self::Echoes | Self::Sleepy => {
                let clients = rng.between(3, 6) as usize;
                let think = Length::Exponential(ms(rng.between(20, 300)));
                workload.names.truncate(1);
                workload.arrivals = Arrivals::Loops { clients, think };
                let inside = if self == Self::Echoes { 3_000 } else { 600 };
                workload.inside = Length::Uniform(Span::ZERO, ms(rng.between(20, inside)));
                workload.patience.only_try = 0.3;
                let hasty = Length::Uniform(Span::ZERO, ms(400));
                workload.cancel = Habit { probability: 0.2, length: hasty };
                workload.clients_on_hosts = false;
                workload.crash = Habit::NEVER;
                workload.overstay = Habit::NEVER;
                workload.sleep = Habit::NEVER;
            }
            Self::Forgetful => workload.names.truncate(1),
            Self::Lan => lan::bend_workload(rng, workload, lease),
            Self::Mixed => {}
        }
    }
}

pub(super) const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// The quorum that a seed draws, from a stream of its own: a seed means the same world whether its
/// quorum was drawn or given.
pub(super) fn quorum(membership: Membership, seed: u64) -> Quorum {
    let mut at = Rng::split(seed, 0x7175_6f72).below(100);
    let shares: &[(u16, u16, u64)] = match membership {
        Membership::Fixed => &QUORUMS,
        Membership::Open => &open::QUORUMS,
        // It follows from the view.
        Membership::Agreed => return Quorum::ONE,
    };
    for &(n, m, share) in shares {
        if at < share
            && let Ok(quorum) = Quorum::new(n, m)
        {
            return quorum;
        }
        at = at.saturating_sub(share);
    }
    unreachable!("the shares add up to 100, and each is a quorum")
}

/// What a world has beside what every world has. Each draws from a stream of its own: otherwise the seed
/// means the same world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    /// Every peer has an agent and several users.
    pub(super) agents: bool,
    /// Some users only want to read, or a permit.
    pub(super) modes: bool,
}

/// The world that a seed means for a subject, which gets numbers that fit it.
pub(super) fn case(mut subject: Subject, crowd: Crowd, seed: u64) -> (Subject, RunConfig) {
    let mut rng = Rng::split(seed, 0x746f_7274);
    let weather = Weather::draw(&mut rng, seed);
    let jumps = weather != Weather::Forgetful && rng.below(2) == 0;
    let regime = if jumps { Regime::WallJumps } else { Regime::MemoryLoss };
    let mut network = network(&mut rng);
    weather.bend_network(&mut rng, &mut network);
    let mail_max = ms(rng.between(100, 15_000));
    subject.tuning = tuning(&mut rng, &network, mail_max);
    if weather == Weather::Lan {
        network.latency = lan::latency(&mut rng);
    }
    let n = subject.quorum.n();
    let many = n >= MANY;
    let mut workload = workload(&mut rng, &subject.tuning, many);
    weather.bend_workload(&mut rng, &mut workload, subject.tuning.lease_max);
    if crowd.modes {
        add_modes(&mut workload, crowd.agents, seed);
    }
    if crowd.agents {
        let calm = matches!(weather, Weather::Calm | Weather::Echoes);
        add_agents(&mut subject, &mut workload, calm, many, seed);
    }
    // A host that crashes under its clients comes back with what it has; the other regime forbids
    // that this be nothing.
    if workload.clients_on_hosts && regime == Regime::WallJumps && !subject.tuning.durable {
        workload.crash = Habit::NEVER;
    }
    let mut config = RunConfig::new(seed, n, network, workload);
    config.hosts += if rng.below(4) == 0 { rng.between(1, 3) as usize } else { 0 };
    config.mail_max = mail_max;
    let lease_max = subject.tuning.lease_max;
    config.clocks = match weather {
        Weather::Calm | Weather::Echoes => Clocks::default(),
        Weather::Lan => lan::clocks(&mut rng, regime, lease_max),
        _ => clocks(&mut rng, regime, lease_max),
    };
    let safety =
        if many { ms(rng.between(15_000, 25_000)) } else { ms(rng.between(30_000, 60_000)) };
    config.faults = FaultPlan { heal_at: Some(TrueTime(0) + safety), ..FaultPlan::default() };
    match weather {
        Weather::Calm | Weather::Echoes => {}
        Weather::Mixed => mishaps(&mut rng, &subject, &mut config, regime, safety),
        Weather::Lan => {
            mishaps(&mut rng, &subject, &mut config, regime, safety);
            let hosts: Vec<PeerId> = config.population().host_ids().collect();
            let partings = lan::partings(&mut rng, &clients(&config), &hosts, lease_max, safety);
            config.faults.faults.extend(partings);
        }
        Weather::Sleepy => naps(&mut rng, &subject, &mut config, safety),
        Weather::Forgetful => {
            mishaps(&mut rng, &subject, &mut config, regime, safety);
            let life = subject.tuning.lease_max * rng.between(2, 6);
            config.faults.replica_life = Some(life);
        }
    }
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    config.patience_after_heal = patience_after_heal(&subject.tuning);
    // Long enough for everybody to be let in, one after the other; it ends when all are content.
    config.duration = safety + config.patience_after_heal * 4;
    disks::fail(&mut subject, &mut config, seed);
    (subject, config)
}

/// A dead holder's lease and a forgetful host's abstention at their worst, some unclaimed votes, and
/// the longest time between two questions of somebody who waits.
pub(super) fn patience_after_heal(tuning: &Tuning) -> Span {
    tuning.lease_max * 2 + tuning.claim_window * 4 + tuning.round_trip_worst * 20 + ms(30_000)
}

pub(super) fn network(rng: &mut Rng) -> Network {
    let latency = match rng.below(4) {
        0 => Latency::Constant(ms(rng.between(10, 150))),
        1 => {
            let low = rng.between(0, 60);
            Latency::Uniform { low: ms(low), high: ms(low + rng.between(10, 200)) }
        }
        2 => {
            let sigma = 0.1 + 0.4 * rng.unit();
            Latency::LogNormal { median: ms(rng.between(20, 80)), sigma }
        }
        _ => Latency::Map {
            base: ms(rng.between(2, 20)),
            per_unit: ms(rng.between(30, 120)),
            jitter: ms(rng.between(0, 40)),
        },
    };
    let mut network = Network::perfect(latency);
    network.pairwise = rng.below(4) == 0;
    network.fifo = rng.below(3) == 0;
    // None, some, or so many that whatever can come twice does.
    let mut often = |some, many| *rng.pick(&[0.0, some, many]) * rng.unit();
    network.loss = often(0.05, 0.10);
    network.duplication = often(0.05, 0.20);
    network.late = often(0.05, 0.40);
    network.late_max = ms(rng.between(200, 5_000));
    network
}

pub(super) fn tuning(rng: &mut Rng, network: &Network, mail_max: Span) -> Tuning {
    let one_way = network.latency.worst();
    let round_trip_worst = one_way * 2;
    let oldest = one_way + network.late_max + mail_max;
    Tuning {
        lease_max: round_trip_worst * 5 / 2 + ms(rng.between(1_000, 5_000)),
        claim_window: round_trip_worst * 3 / 2 + ms(rng.between(200, 1_500)),
        round_trip_worst,
        // Receivers measure it by clocks that may be fast.
        flight_max: oldest + oldest.millionths(2 * PPM_MAX as u32),
        back_off: (Span::ZERO, ms(rng.between(500, 4_000))),
        durable: rng.below(2) == 0,
        membership: Membership::Fixed,
        dead_after: Span::from_secs(30),
        founders: 0,
        expecting: 0,
        whole_paper: true,
    }
}

pub(super) fn clocks(rng: &mut Rng, regime: Regime, lease_max: Span) -> Clocks {
    let wall_error_max = match regime {
        // Two clocks may be wrong in opposite directions, and proposals are rounded to a quarter of
        // the longest lease: together that must stay below the lease that a forgetful host abstains.
        Regime::MemoryLoss => ms(rng.between(0, 2_000)).min(lease_max / 4),
        Regime::WallJumps => ms(rng.between(0, 4 * 3_600_000)),
    };
    let ppm_max = if rng.below(4) == 0 { 0 } else { rng.between(100, PPM_MAX) as u32 };
    Clocks { ppm_max, extreme: false, offset_max: ms(1 + rng.below(1 << 36)), wall_error_max }
}

pub(super) fn workload(rng: &mut Rng, tuning: &Tuning, many: bool) -> Workload {
    // Half of all worlds are crowded: everybody wants the same, all the time.
    let crowded = rng.below(2) == 0;
    let (fewest, most) = (if crowded { 3 } else { 2 }, if many { 5 } else { 8 });
    let clients = rng.between(fewest, most) as usize;
    let arrivals = if crowded || rng.below(2) == 0 {
        let think = Length::Exponential(ms(rng.between(10, if crowded { 300 } else { 3_000 })));
        Arrivals::Loops { clients, think }
    } else {
        let per_s = 0.3 + if many { 1.5 } else { 4.0 } * rng.unit();
        Arrivals::Poisson { per_s, clients_min: clients, clients_max: clients }
    };
    let ttl_min = tuning.round_trip_worst * 5 / 2;
    let names = if crowded { 1 } else { rng.between(1, if many { 2 } else { 3 }) };
    let mut often = |most: f64| if rng.below(2) == 0 { 0.0 } else { most * rng.unit() };
    let (cancel, overstay, crash, sleep) = (often(0.2), often(0.5), often(0.15), often(0.15));
    let only_try = often(0.3);
    let bounded = often(0.5);
    let lease = tuning.lease_max;
    let inside = match rng.below(5) {
        0 => Length::ZERO,
        1 => Length::Constant(rng.span(Span::ZERO, ttl_min)),
        // Longer than a lease: it has to be renewed.
        2 => Length::Uniform(Span::ZERO, lease * 2),
        _ => Length::Uniform(Span::ZERO, ms(rng.between(100, 1_000))),
    };
    Workload {
        names: (1..=names).filter_map(|k| Name::new(&format!("/torture/{k}")).ok()).collect(),
        arrivals,
        clients_on_hosts: rng.below(5) == 0,
        clients_per_peer: 1,
        ttl: Length::Uniform(ttl_min, lease),
        readers: 0.0,
        permits: 0.0,
        numbers: Vec::new(),
        certain_slots: false,
        together: 1,
        any_order: false,
        inside,
        patience: PatienceMix {
            forever: 1.0 - only_try,
            bounded,
            only_try,
            limit: Length::Uniform(Span::ZERO, ms(8_000)),
        },
        cancel: Habit { probability: cancel, length: Length::Uniform(Span::ZERO, ms(3_000)) },
        overstay: Habit { probability: overstay, length: Length::Uniform(Span::ZERO, lease) },
        evict: Habit::NEVER,
        // Mostly about when the votes come in.
        sleep: Habit { probability: sleep, length: Length::Uniform(Span::ZERO, ms(1_500)) },
        asleep: Length::Uniform(ms(50), lease * 2),
        crash: Habit { probability: crash, length: Length::Uniform(Span::ZERO, ms(500)) },
        down: Length::Uniform(ms(50), ms(6_000)),
    }
}

/// Makes some clients readers, and has some, or all, want permits: mostly of one number, sometimes of two.
/// Rather more than less, and more clients: a lock that nobody shares shows nothing.
pub(super) fn add_modes(workload: &mut Workload, agents: bool, seed: u64) {
    let mut rng = Rng::split(seed, 0x6d6f_6465);
    workload.readers = *rng.pick(&[0.3, 0.5, 0.7, 0.9]);
    if rng.below(2) == 0 {
        workload.permits = *rng.pick(&[0.3, 0.6, 0.9, 1.0, 1.0]);
        workload.numbers = vec![*rng.pick(&[1, 2, 2, 3, 5])];
        if rng.below(3) == 0 {
            workload.numbers.push(*rng.pick(&[2, 3, 4]));
        }
        workload.certain_slots = !agents;
    }
    // In some worlds they take several at once.
    if rng.below(4) == 0 {
        let name = |k| Name::new(&format!("/torture/{k}")).ok();
        workload.names = (1..=rng.between(2, 4)).filter_map(name).collect();
        workload.together = rng.between(2, 3) as usize;
    }
    if let Arrivals::Loops { clients, .. } = &mut workload.arrivals {
        *clients += rng.below(4) as usize;
    }
    if workload.inside == Length::ZERO {
        workload.inside = Length::Uniform(Span::ZERO, ms(rng.between(100, 1_000)));
    }
}

/// Gives every peer an agent and several clients.
pub(super) fn add_agents(
    subject: &mut Subject, workload: &mut Workload, calm: bool, many: bool, seed: u64,
) {
    let mut rng = Rng::split(seed, 0x6167_656e);
    subject.entries_per_grant = Some(*rng.pick(&[1, 2, 3, 3, 8]));
    let each = rng.between(2, if many { 3 } else { 5 }) as usize;
    workload.clients_per_peer = each;
    match &mut workload.arrivals {
        Arrivals::Loops { clients, .. } => *clients = clients.div_ceil(2).max(2) * each,
        Arrivals::Poisson { clients_min, clients_max, .. } => {
            *clients_max = clients_max.div_ceil(2).max(2) * each;
            *clients_min = *clients_max;
        }
        Arrivals::Scripted => {}
    }
    // Only who asks for the same lease gets the lock from hand to hand.
    if let (Length::Uniform(low, high), 1..) = (workload.ttl, rng.below(4)) {
        workload.ttl = Length::Constant(rng.span(low, high));
    }
    if !calm && rng.below(2) == 0 {
        let length = Length::Uniform(Span::ZERO, ms(500));
        workload.evict = Habit { probability: 0.1 * rng.unit(), length };
    }
}

pub(super) fn clients(config: &RunConfig) -> Vec<PeerId> {
    let population = config.population();
    let count = match config.workload.arrivals {
        Arrivals::Loops { clients, .. } => clients,
        Arrivals::Poisson { clients_max, .. } => clients_max,
        Arrivals::Scripted => 0,
    };
    if config.workload.clients_on_hosts {
        population.host_ids().collect()
    } else {
        let peers = count.div_ceil(config.workload.clients_per_peer);
        (0..peers).map(|k| population.client(k)).collect()
    }
}

/// Every client sleeps for about a lease, wakes for a moment, and sleeps again.
fn naps(rng: &mut Rng, subject: &Subject, config: &mut RunConfig, safety: Span) {
    let lease = subject.tuning.lease_max;
    for peer in clients(config) {
        let mut at = TrueTime(0) + rng.span(Span::ZERO, lease);
        while at < TrueTime(0) + safety {
            let span = rng.span(lease / 4, lease * 3 / 2);
            config.faults.faults.push((at, Fault::Pause { peer, span }));
            at = at + span + rng.span(ms(20), subject.tuning.round_trip_worst * 4);
        }
    }
}

fn mishaps(rng: &mut Rng, subject: &Subject, config: &mut RunConfig, regime: Regime, safety: Span) {
    let hosts: Vec<PeerId> = config.population().host_ids().collect();
    let clients = clients(config);
    if rng.below(3) == 0 {
        config.faults.hints_after = Some(ms(rng.between(20, 2_000)));
    }
    let durable = subject.tuning.durable;
    let lease_max = subject.tuning.lease_max;
    let overlap = subject.quorum.overlap();
    let (cuts, briefly, losses) = (0, None, None);
    let mut mishaps =
        Mishaps { rng, hosts, clients, regime, durable, lease_max, overlap, cuts, briefly, losses };
    config.faults.faults = mishaps.schedule(HANDFUL, ms(500)..safety);
}
