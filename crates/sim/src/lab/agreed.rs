//! Random worlds whose peers agree on who is in: they join, leave, crash, lose their memory and lose sight of
//! each other in every shape, and whoever is silent for too long is voted out.
//!
//! Exclusion is promised whatever happens, so every world is fair. That those who wait get in at last is
//! promised only while most of a view remember what they promised, so a world is of one of these kinds:
//!
//! - *growth*: everybody joins at about the same time, over a bad network;
//! - *haste*: a minority is cut off again and again, and voted out long before its votes have run out;
//! - *crowds*: more than twelve, of whom a minority is cut off for long;
//! - *removals*: the silent are voted out soon, and nobody loses its memory;
//! - *losses*: nobody is voted out for silence and, once all are in, a minority loses its memory;
//! - *ruins*: once all are in, most are gone for good, and an operator says so;
//! - *anything*: all of it, and nobody asks who gets in at last;
//! - or it is about what peers remember ([`memories`]), or about two that run at once with one name ([`twins`]);
//! - *bent* on one coincidence ([`super::bent`]).
//!
//! In some worlds of every kind delays are nothing, and clocks as wrong as they may be ([`super::lan`]).

use std::ops::Range;

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;

use super::bent::{Bent, Stage};
use super::disks;
use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::lan;
use super::memories;
use super::mishaps::{HANDFUL, Mishaps, Regime};
use super::twins;
use crate::clock::Clocks;
use crate::faults::{Cut, Fault, FaultPlan};
use crate::history::TrueTime;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// So many peers at most,
const PEERS_MAX: u64 = 12;
/// where they come in crowds.
const CROWD_MAX: u64 = 16;
/// By then all who are there from the beginning are in, if nothing goes wrong before.
const ALL_IN: Span = Span::from_secs(25);
/// Longer than any world lasts.
pub(super) const NEVER: Span = Span::from_secs(36_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Growth,
    Haste,
    Crowds,
    Removals,
    Losses,
    Ruins,
    Anything,
    Bent(Bent),
}

impl Kind {
    /// Whether everybody wants the same lock all the time.
    fn is_crowded(self) -> bool {
        matches!(self, Self::Growth | Self::Haste | Self::Crowds | Self::Ruins | Self::Bent(_))
    }

    /// When things begin to go wrong.
    fn begins(self) -> Span {
        match self {
            Self::Growth | Self::Haste | Self::Removals | Self::Anything => ms(500),
            Self::Crowds | Self::Losses | Self::Ruins => ALL_IN,
            Self::Bent(bent) => bent.begins(),
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
    let about = twins::case(&subject, crowd, seed);
    if let Some(case) = about.or_else(|| memories::case(&subject, crowd, seed)) {
        return case;
    }
    let mut rng = Rng::split(seed, 0x6167_7265);
    let kind = match rng.below(20) {
        0..4 => Kind::Removals,
        4..6 => Kind::Haste,
        6..10 => Kind::Losses,
        10..12 => Kind::Ruins,
        12 => Kind::Crowds,
        13..16 => Kind::Growth,
        _ => Kind::Anything,
    };
    let bent = Bent::of(seed);
    let kind = bent.map_or(kind, Kind::Bent);
    let lan = lan::is_meant(seed, if bent.is_some() { 2 } else { 4 });
    let mut network = draw::network(&mut rng);
    if kind == Kind::Growth {
        (network.loss, network.late) = (0.3 * rng.unit(), 0.6 * rng.unit());
    }
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    if lan {
        network.latency = lan::latency(&mut rng);
    }
    if let Some(bent) = bent {
        bent.bend_network(&mut rng, &mut network);
    }
    subject.tuning.membership = Membership::Agreed;
    subject.tuning.durable |= kind != Kind::Anything;
    if matches!(kind, Kind::Haste | Kind::Bent(Bent::Doors | Bent::Rubble)) {
        subject.tuning.lease_max = subject.tuning.lease_max + ms(4_000);
    }
    let lease_max = subject.tuning.lease_max;
    let soon = ms(rng.between(500, 2_000)).max(subject.tuning.round_trip_worst * 2);
    subject.tuning.dead_after = match kind {
        Kind::Removals | Kind::Anything if rng.below(2) == 0 => soon,
        Kind::Removals | Kind::Anything => rng.span(soon, lease_max * 2),
        Kind::Crowds | Kind::Haste => soon,
        Kind::Bent(bent) if bent.removes() => soon,
        Kind::Growth | Kind::Losses | Kind::Ruins | Kind::Bent(_) => NEVER,
    };
    let moves = moves(&mut rng, kind);
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    workload.clients_on_hosts &= moves.joins + moves.leaves == 0 && kind == Kind::Removals;
    if moves.restless || kind.is_crowded() {
        workload.names.truncate(1);
        workload.inside = Length::Uniform(Span::ZERO, lease_max);
        let clients = rng.between(4, 6) as usize;
        workload.arrivals = Arrivals::Loops { clients, think: Length::Constant(ms(50)) };
    }
    if let Some(bent) = bent {
        bent.bend_workload(&mut rng, &mut workload, lease_max);
    } else if lan && rng.below(2) == 0 {
        workload.ttl = Length::Constant(lease_max);
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
    config.clocks = if lan {
        lan::clocks(&mut rng, Regime::MemoryLoss, lease_max)
    } else if rng.below(4) == 0 {
        Clocks::default()
    } else {
        draw::clocks(&mut rng, Regime::MemoryLoss, lease_max)
    };
    let slow = if matches!(kind, Kind::Haste | Kind::Bent(_)) { 1 } else { 4 };
    let silence = ms(rng.between(500, 750 * slow));
    let delay = ms(rng.between(20, 200 * slow));
    // Who leaves stays until the others have let it go, and as long as anybody cares to look.
    let linger = if kind == Kind::Anything { ms(rng.between(500, 5_000)) } else { NEVER };
    let first = moves.first;
    let (cells, clients_seen) = (None, true);
    config.open = Some(Open { first, silence, delay, linger, lease_max, cells, clients_seen });
    let lasts = ms(rng.between(30_000, 60_000)) * bent.map_or(1, Bent::lasts);
    let safety = kind.begins() + lasts;
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
    if bent.is_none() {
        disks::fail(&mut subject, &mut config, seed);
    }
    if !subject.protocol.card().promises.joins_fast {
        begin_later(&mut config, views);
    }
    (subject, config)
}

/// Where every newcomer waits for a lease, it takes as long until all are in whom the plan counts on.
fn begin_later(config: &mut RunConfig, by: Span) {
    let FaultPlan { faults, heal_at, .. } = &mut config.faults;
    faults.iter_mut().for_each(|(at, _)| *at = *at + by);
    *heal_at = heal_at.map(|at| at + by);
    config.duration = config.duration + by;
    config.events_max = EVENTS_MAX * 2;
}

fn moves(rng: &mut Rng, kind: Kind) -> Moves {
    if let Kind::Bent(bent) = kind {
        let (first, joins) = bent.peers(rng);
        let [first, joins] = [first, joins].map(|count| count as usize);
        return Moves { first, joins, leaves: 0, restless: false };
    }
    let restless = !kind.is_crowded() && rng.below(3) == 0;
    let first = match kind {
        Kind::Growth => rng.between(1, 3),
        Kind::Haste => rng.between(3, 6),
        Kind::Crowds => rng.between(PEERS_MAX + 1, CROWD_MAX),
        Kind::Ruins => rng.between(2, PEERS_MAX),
        _ if restless => rng.between(1, 5),
        _ => rng.between(1, PEERS_MAX),
    };
    let joins = match kind {
        Kind::Growth => rng.between(2, CROWD_MAX - first),
        Kind::Haste | Kind::Crowds | Kind::Ruins => 0,
        _ if restless => 4,
        _ => rng.below(4).min(PEERS_MAX - first),
    };
    let leaves = match kind {
        Kind::Removals | Kind::Anything => rng.below(first),
        Kind::Losses => rng.below(first / 2 + 1),
        Kind::Growth | Kind::Haste | Kind::Crowds | Kind::Ruins | Kind::Bent(_) => 0,
    };
    let [first, joins, leaves] = [first, joins, leaves].map(|count| count as usize);
    Moves { first, joins, leaves, restless }
}

fn plan(
    rng: &mut Rng, subject: &Subject, config: &RunConfig, kind: Kind, moves: Moves, safety: Span,
) -> Vec<(TrueTime, Fault)> {
    let hosts: Vec<PeerId> = config.population().host_ids().collect();
    let mut others: Vec<PeerId> = hosts[..moves.first].to_vec();
    rng.shuffle(&mut others);
    let clients = draw::clients(config);
    match kind {
        Kind::Bent(bent) => {
            let (members, newcomers, clients) = (&others, &hosts[moves.first..], &clients);
            let (lease, begins, ends) = (subject.tuning.lease_max, kind.begins(), safety);
            return bent.plan(rng, &Stage { members, newcomers, clients, lease, begins, ends });
        }
        Kind::Ruins => {
            let lease = subject.tuning.lease_max;
            return ruin(rng, &others, &clients, lease, kind.begins()..safety);
        }
        Kind::Crowds => {
            let from = TrueTime(0) + rng.span(kind.begins(), kind.begins() + ms(3_000));
            return cut_off(1, &others, &clients, from..TrueTime(0) + (safety - ms(100)));
        }
        Kind::Haste => {
            return cut_off_often(rng, &others, &clients, subject.tuning.lease_max, safety);
        }
        _ => {}
    }
    let stay = moves.first - moves.leaves;
    let losses = match kind {
        Kind::Losses => Some((stay - 1) / 2),
        Kind::Anything => None,
        _ => Some(0),
    };
    let mut mishaps = Mishaps {
        hosts: hosts.clone(),
        clients,
        regime: Regime::MemoryLoss,
        durable: subject.tuning.durable,
        lease_max: subject.tuning.lease_max,
        overlap: moves.first / 2 + 1,
        cuts: 0,
        briefly: None,
        losses,
        rng: &mut *rng,
    };
    let some = if moves.restless || kind == Kind::Growth { 0..3 } else { HANDFUL };
    let mut faults = mishaps.schedule(some, kind.begins()..safety);
    let mut sometime = || TrueTime(0) + rng.span(kind.begins(), safety);
    for peer in others.into_iter().take(moves.leaves) {
        faults.push((sometime(), Fault::Leave(peer)));
    }
    let by = if kind == Kind::Growth { ms(6_000) } else { safety };
    for peer in hosts.iter().skip(moves.first) {
        faults.push((TrueTime(0) + rng.span(kind.begins(), by), Fault::Join(*peer)));
    }
    faults
}

/// Some hear nothing of the others, nor they of them.
pub(super) fn part(
    id: u32, some: &[PeerId], others: &[PeerId], from: TrueTime,
) -> [(TrueTime, Fault); 2] {
    let cut = |from: &[PeerId], to: &[PeerId]| Cut { id, from: from.to_vec(), to: to.to_vec() };
    [(from, Fault::Cut(cut(some, others))), (from, Fault::Cut(cut(others, some)))]
}

/// Less than half of the members, and some clients, are cut off from the rest.
fn cut_off(
    id: u32, members: &[PeerId], clients: &[PeerId], when: Range<TrueTime>,
) -> Vec<(TrueTime, Fault)> {
    let (few, most) = members.split_at((members.len() - 1) / 2);
    let (here, there) = clients.split_at(clients.len() / 2);
    let some = [few, here].concat();
    let mut faults = part(id, &some, &[most, there].concat(), when.start).to_vec();
    faults.push((when.end, Fault::Mend(id)));
    faults
}

/// That, again and again, each time with others. Shortly before, those clients already hear of one only of the
/// members that they will not hear of at all: so whoever gets in has no votes to spare.
fn cut_off_often(
    rng: &mut Rng, members: &[PeerId], clients: &[PeerId], lease: Span, safety: Span,
) -> Vec<(TrueTime, Fault)> {
    let (mut members, mut clients) = (members.to_vec(), clients.to_vec());
    let mut faults = Vec::new();
    let mut at = TrueTime(0) + rng.span(ms(2_000), ms(6_000));
    for id in 1.. {
        let end = at + ms(3_000) + rng.span(lease / 2, lease * 3 / 2);
        if end > TrueTime(0) + safety {
            break;
        }
        rng.shuffle(&mut members);
        rng.shuffle(&mut clients);
        let (_, most) = members.split_at((members.len() - 1) / 2);
        faults.extend(part(id, &clients[..clients.len() / 2], &most[1..], at));
        at = at + rng.span(ms(500), ms(3_000));
        faults.extend(cut_off(id, &members, &clients, at..end));
        at = end + rng.span(lease / 2, lease * 2);
    }
    faults
}

/// Half of the members or more are gone for good, and one of the others says so of each of them. Sometimes
/// those others were cut off just before, so that they know nothing of the last votes.
fn ruin(
    rng: &mut Rng, members: &[PeerId], clients: &[PeerId], lease: Span, during: Range<Span>,
) -> Vec<(TrueTime, Fault)> {
    let gone = rng.between(members.len().div_ceil(2) as u64, members.len() as u64 - 1) as usize;
    let (gone, left) = members.split_at(gone);
    let mut faults = Vec::new();
    // There is time to forget them all before the heal.
    let mut at = TrueTime(0) + rng.span(during.start, during.end - ms(20_000));
    if rng.below(2) == 0 {
        let (here, there) = clients.split_at(clients.len() / 2);
        faults.extend(part(1, &[left, here].concat(), &[gone, there].concat(), at));
        at = at + rng.span(ms(500), ms(4_000));
    }
    for peer in gone {
        faults.push((at, Fault::Destroy(*peer)));
        at = at + rng.span(Span::ZERO, ms(50));
    }
    let by = *rng.pick(left);
    let forget = || Fault::Forget { by, gone: gone.to_vec() };
    // Those who are left may not have noticed yet that the gone are, or not have heard each other: it is said again,
    for _ in 0..8 {
        at = at + rng.span(ms(10), ms(2_000));
        faults.push((at, forget()));
    }
    faults.push((at, Fault::Mend(1)));
    // and at last where nothing is lost on the way.
    faults.extend((1..4).map(|again| (TrueTime(0) + during.end + lease * again, forget())));
    faults
}
