//! Random worlds whose peers agree on who is in: they join, leave, crash, lose their memory and lose sight of
//! each other in every shape, and whoever is silent for too long is voted out.
//!
//! Exclusion is promised whatever happens, so every world is fair. That those who wait get in at last is
//! promised only while most of a view remember what they promised, so a world is of one of these kinds:
//!
//! - *removals*: the silent are voted out soon, and nobody loses its memory;
//! - *losses*: nobody is voted out for silence and, once all are in, a minority loses its memory;
//! - *ruins*: once all are in, most are gone for good, and an operator says so;
//! - *anything*: all of it, and nobody asks who gets in at last.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::sigma::Hosting;

use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::mishaps::{HANDFUL, Mishaps, Regime};
use crate::clock::Clocks;
use crate::faults::{Fault, FaultPlan};
use crate::history::TrueTime;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// So many peers at most.
const PEERS_MAX: u64 = 12;
/// By then all who are there from the beginning are in, if nothing goes wrong before.
const ALL_IN: Span = Span::from_secs(20);
/// Longer than any world lasts.
const NEVER: Span = Span::from_secs(36_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Removals,
    Losses,
    Ruins,
    Anything,
}

impl Kind {
    /// When things begin to go wrong.
    fn begins(self) -> Span {
        match self {
            Self::Removals | Self::Anything => ms(500),
            Self::Losses | Self::Ruins => ALL_IN,
        }
    }
}

/// Who is there, who comes and who goes.
#[derive(Debug, Clone, Copy)]
struct Moves {
    first: usize,
    joins: usize,
    leaves: usize,
    /// There is little else in this world.
    restless: bool,
}

/// The world that a seed means for a subject, which gets numbers that fit it.
pub(super) fn case(mut subject: Subject, crowd: Crowd, seed: u64) -> (Subject, RunConfig) {
    let mut rng = Rng::split(seed, 0x6167_7265);
    let kind = match rng.below(10) {
        0..4 => Kind::Removals,
        4..6 => Kind::Losses,
        6 => Kind::Ruins,
        _ => Kind::Anything,
    };
    let network = draw::network(&mut rng);
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    subject.tuning.hosting = Hosting::Agreed;
    subject.tuning.durable |= kind != Kind::Anything;
    let lease_max = subject.tuning.lease_max;
    let soon = ms(rng.between(500, 2_000)).max(subject.tuning.round_trip_worst * 2);
    subject.tuning.dead_after = match kind {
        Kind::Removals | Kind::Anything if rng.below(2) == 0 => soon,
        Kind::Removals | Kind::Anything => rng.span(soon, lease_max * 2),
        Kind::Losses | Kind::Ruins => NEVER,
    };
    let moves = moves(&mut rng, kind);
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    workload.clients_on_hosts &= moves.joins + moves.leaves == 0 && kind == Kind::Removals;
    if moves.restless {
        workload.names.truncate(1);
        workload.inside = Length::Uniform(Span::ZERO, lease_max);
        workload.arrivals = Arrivals::Loops { clients: 4, think: Length::Constant(ms(50)) };
    }
    if crowd.modes {
        draw::add_modes(&mut workload, crowd.agents, seed);
    }
    if crowd.agents {
        draw::add_agents(&mut subject, &mut workload, false, false, seed);
    }
    let mut config = RunConfig::new(seed, 1, network, workload);
    config.hosts = moves.first + moves.joins;
    config.mail_max = mail_max;
    config.clocks = if rng.below(4) == 0 {
        Clocks::default()
    } else {
        draw::clocks(&mut rng, Regime::MemoryLoss, lease_max)
    };
    let silence = ms(rng.between(500, 3_000));
    let delay = ms(rng.between(20, 800));
    // Who leaves stays until the others have let it go, and as long as anybody cares to look.
    let linger = if kind == Kind::Anything { ms(rng.between(500, 5_000)) } else { NEVER };
    let first = moves.first;
    config.open = Some(Open { first, silence, delay, linger, lease_max, cells: None });
    let safety = kind.begins() + ms(rng.between(30_000, 60_000));
    let heal_at = (kind != Kind::Anything).then_some(TrueTime(0) + safety);
    config.faults = FaultPlan { heal_at, ..FaultPlan::default() };
    config.faults.faults = plan(&mut rng, &subject, &config, kind, moves, safety);
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    // Views are a lease apart, and everybody may have to be taken in again, one after the other.
    let views = (lease_max + subject.tuning.round_trip_worst * 8) * 2 * (config.hosts as u64 + 1);
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + (silence + delay) * 4 + views;
    config.duration =
        if heal_at.is_some() { safety + config.patience_after_heal * 4 } else { safety };
    (subject, config)
}

fn moves(rng: &mut Rng, kind: Kind) -> Moves {
    let restless = kind != Kind::Ruins && rng.below(3) == 0;
    let fewest = if kind == Kind::Ruins { 2 } else { 1 };
    let first = rng.between(fewest, if restless { 5 } else { PEERS_MAX });
    let joins = if restless { 4 } else { rng.below(4) };
    let joins = if kind == Kind::Ruins { 0 } else { joins.min(PEERS_MAX - first) };
    let leaves = match kind {
        Kind::Removals | Kind::Anything => rng.below(first),
        Kind::Losses => rng.below(first / 2 + 1),
        Kind::Ruins => 0,
    };
    let [first, joins, leaves] = [first, joins, leaves].map(|count| count as usize);
    Moves { first, joins, leaves, restless }
}

fn plan(
    rng: &mut Rng, subject: &Subject, config: &RunConfig, kind: Kind, moves: Moves, safety: Span,
) -> Vec<(TrueTime, Fault)> {
    let hosts: Vec<PeerId> = config.roster().host_ids().collect();
    let mut others: Vec<PeerId> = hosts[..moves.first].to_vec();
    rng.shuffle(&mut others);
    if kind == Kind::Ruins {
        return ruin(rng, &others, kind.begins(), safety);
    }
    let stay = moves.first - moves.leaves;
    let losses = match kind {
        Kind::Losses => Some((stay - 1) / 2),
        Kind::Anything => None,
        Kind::Removals | Kind::Ruins => Some(0),
    };
    let mut mishaps = Mishaps {
        hosts: hosts.clone(),
        clients: draw::clients(config),
        regime: Regime::MemoryLoss,
        durable: subject.tuning.durable,
        lease_max: subject.tuning.lease_max,
        overlap: moves.first / 2 + 1,
        cuts: 0,
        briefly: None,
        losses,
        rng: &mut *rng,
    };
    let some = if moves.restless { 0..3 } else { HANDFUL };
    let mut faults = mishaps.schedule(some, kind.begins()..safety);
    let mut sometime = || TrueTime(0) + rng.span(kind.begins(), safety);
    for peer in others.into_iter().take(moves.leaves) {
        faults.push((sometime(), Fault::Leave(peer)));
    }
    for peer in hosts.iter().skip(moves.first) {
        faults.push((sometime(), Fault::Join(*peer)));
    }
    faults
}

/// Half of the members or more are gone for good, and one of the others says so of each of them.
fn ruin(rng: &mut Rng, members: &[PeerId], from: Span, safety: Span) -> Vec<(TrueTime, Fault)> {
    let gone = rng.between(members.len().div_ceil(2) as u64, members.len() as u64 - 1) as usize;
    let (gone, left) = members.split_at(gone);
    let mut faults = Vec::new();
    // There is time to forget them all before the heal.
    let mut at = TrueTime(0) + rng.span(from, safety - ms(15_000));
    for peer in gone {
        faults.push((at, Fault::Destroy(*peer)));
        at = at + rng.span(Span::ZERO, ms(200));
    }
    let by = *rng.pick(left);
    at = at + rng.span(ms(10), ms(3_000));
    for peer in gone {
        faults.push((at, Fault::Forget { by, peer: *peer }));
        at = at + rng.span(Span::ZERO, ms(500));
    }
    faults
}
