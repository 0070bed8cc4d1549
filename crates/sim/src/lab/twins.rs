//! Random worlds in which a copy of a peer's disk is started while the peer itself runs on: two with one name at once.
//!
//! Every other peer, host or client, reaches one of the two, now this, now that, sometimes both or neither. They are of two
//! kinds:
//!
//! - *stale*: the peer has been restarted since the copy was made, and all others know of it: whoever meets the copy
//!   remembers a start that it does not have. Both may have users of their own;
//! - *successor*: the peer gives no votes for a moment, so that the others have heard how much it had written, then sees
//!   nobody, and the copy takes its place until all others know that. Then whoever meets the peer again remembers the copy's
//!   start. If the copy was made before, it is behind what they have heard.
//!
//! That is what is promised: before one of the two meets anybody, all others have met the other one since they parted. Where
//! some have met one and some the other, both may be believed, and nobody can notice anything.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;

use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::mishaps::Regime;
use crate::faults::{Cut, Fault, FaultPlan, Memory};
use crate::history::TrueTime;
use crate::overlay::Open;
use crate::population::CLIENTS_FROM;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// One seed in so many means such a world.
const ONE_IN: u64 = 16;
/// By then all are in.
const ALL_IN: Span = Span::from_secs(25);
/// Longer than any world lasts.
const NEVER: Span = Span::from_secs(36_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stale,
    Successor,
}

/// Such a world, if that is what the seed means, from a stream of its own: all other seeds mean what they did without.
pub(super) fn case(subject: &Subject, crowd: Crowd, seed: u64) -> Option<(Subject, RunConfig)> {
    let mut rng = Rng::split(seed, 0x7477_696e);
    if rng.below(ONE_IN) != 0 || !subject.protocol.is_lock() {
        return None;
    }
    let kind = *rng.pick(&[Kind::Stale, Kind::Successor, Kind::Successor]);
    let mut subject = *subject;
    let mut network = draw::network(&mut rng);
    if kind == Kind::Successor {
        (network.loss, network.late) = (0.0, 0.0);
    }
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    subject.tuning.membership = Membership::Agreed;
    subject.tuning.durable = true;
    let lease = subject.tuning.lease_max;
    let soon = ms(rng.between(500, 4_000)).max(subject.tuning.round_trip_worst * 2);
    subject.tuning.dead_after = if rng.below(3) == 0 { soon } else { NEVER };
    let hosts = *rng.pick(&[3, 3, 3, 5]);
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    workload.clients_on_hosts = kind == Kind::Stale && rng.below(2) == 0;
    workload.names.truncate(1);
    workload.inside = Length::Uniform(Span::ZERO, lease);
    workload.ttl = Length::Constant(lease);
    let clients = rng.between(4, 6).max(hosts + 1) as usize;
    let busy = rng.below(2) == 0;
    let think =
        if busy { Length::Constant(ms(50)) } else { Length::Uniform(Span::ZERO, lease * 4) };
    workload.arrivals = Arrivals::Loops { clients, think };
    if crowd.modes {
        draw::add_modes(&mut workload, crowd.agents, seed);
    }
    if crowd.agents {
        draw::add_agents(&mut subject, &mut workload, false, false, seed);
    }
    let mut config = RunConfig::new(seed, 1, network, workload);
    config.hosts = hosts as usize;
    config.twin_of = Some(PeerId(rng.below(hosts)));
    config.mail_max = mail_max;
    config.clocks = draw::clocks(&mut rng, Regime::MemoryLoss, lease);
    let (silence, delay) = (ms(rng.between(500, 2_000)), ms(rng.between(20, 400)));
    let (first, linger, lease_max) = (hosts as usize, NEVER, lease);
    let (cells, clients_seen) = (None, true);
    let open = Open { first, silence, delay, linger, lease_max, cells, clients_seen };
    config.open = Some(open);
    let mut stage = Stage { rng: &mut rng, open, subject: &subject, cuts: 0, faults: Vec::new() };
    let safety = stage.plan(kind, &config)?;
    // Where the silent are voted out, half of a view may be one of the two, which is gone then.
    let heal_at = (subject.tuning.dead_after == NEVER).then_some(TrueTime(0) + safety);
    config.faults = FaultPlan { heal_at, faults: stage.faults, ..FaultPlan::default() };
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    let views = (lease + subject.tuning.round_trip_worst * 8) * 2 * (hosts + 2);
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + (silence + delay) * 4 + views;
    config.duration =
        if heal_at.is_some() { safety + config.patience_after_heal * 4 } else { safety };
    Some((subject, config))
}

/// Which of the two somebody reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    First,
    Second,
    Both,
    Neither,
}

/// Whether it is no host.
fn is_client(peer: PeerId) -> bool {
    peer.0 >= CLIENTS_FROM
}

struct Stage<'a> {
    rng: &'a mut Rng,
    open: Open,
    subject: &'a Subject,
    cuts: u32,
    faults: Vec<(TrueTime, Fault)>,
}

/// The two, and one of the others: what cuts the two off from it.
struct Door {
    other: PeerId,
    twins: [PeerId; 2],
    cuts: [Option<u32>; 2],
}

impl Stage<'_> {
    fn at(&mut self, at: TrueTime, fault: Fault) {
        self.faults.push((at, fault));
    }

    /// From then on somebody reaches whom it is to reach.
    fn reach(&mut self, at: TrueTime, door: &mut Door, reach: Reach) {
        let reached = match reach {
            Reach::First => [true, false],
            Reach::Second => [false, true],
            Reach::Both => [true, true],
            Reach::Neither => [false, false],
        };
        for ((twin, cut), reached) in door.twins.into_iter().zip(&mut door.cuts).zip(reached) {
            match *cut {
                Some(id) if reached => {
                    *cut = None;
                    self.at(at, Fault::Mend(id));
                }
                None if !reached => {
                    self.cuts += 1;
                    let id = self.cuts;
                    *cut = Some(id);
                    for (from, to) in [(twin, door.other), (door.other, twin)] {
                        self.at(at, Fault::Cut(Cut { id, from: vec![from], to: vec![to] }));
                    }
                }
                _ => {}
            }
        }
    }

    fn plan(&mut self, kind: Kind, config: &RunConfig) -> Option<Span> {
        let (peer, twin) = (config.population().twin_of?, config.population().twin()?);
        let trip = self.subject.tuning.round_trip_worst;
        let mut hosts: Vec<PeerId> =
            config.population().host_ids().filter(|host| *host != peer).collect();
        self.rng.shuffle(&mut hosts);
        let clients: Vec<PeerId> =
            draw::clients(config).into_iter().filter(|peer| is_client(*peer)).collect();
        let door = |other| Door { other, twins: [peer, twin], cuts: [None, None] };
        let mut doors: Vec<Door> = hosts.iter().chain(&clients).copied().map(door).collect();
        for door in &mut doors {
            self.reach(TrueTime(0), door, Reach::First);
        }
        // Some of the others do not hear each other: nobody outvotes the two.
        let (ours, theirs) = hosts.split_at(hosts.len() / 2);
        let mut at = TrueTime(0) + ALL_IN + self.rng.span(Span::ZERO, ms(5_000));
        if self.rng.below(4) != 0 {
            self.part(at, ours, theirs);
        }
        if self.rng.below(4) != 0 {
            let (here, there) = clients.split_at(clients.len() / 2);
            self.part(at, here, theirs);
            self.part(at, there, ours);
        }
        // Then everybody who meets somebody has told what it knows.
        let known = self.open.silence + self.open.delay * 2 + trip * 8 + ms(2_000);
        let first = match kind {
            Kind::Stale => {
                at = self.stale(at, peer) + known;
                let start = at + self.rng.span(Span::ZERO, ms(3_000));
                self.at(start, Fault::Twin(peer));
                Reach::First
            }
            Kind::Successor => {
                at = self.succeed(at, peer, &mut doors, trip) + known;
                Reach::Second
            }
        };
        let safety = at.since(TrueTime(0)) + self.rng.span(ms(20_000), ms(50_000));
        self.switch(at, TrueTime(0) + safety, doors, first);
        self.stumble(at, TrueTime(0) + safety, [peer, twin], &hosts);
        // One of the two is gone for good, or they would quarrel for ever.
        let gone = *self.rng.pick(&[peer, twin]);
        let end = TrueTime(0) + (safety - ms(2));
        self.at(end, Fault::Restart { peer: gone, memory: Memory::Disk });
        self.at(TrueTime(0) + (safety - ms(1)), Fault::Destroy(gone));
        Some(safety)
    }

    fn part(&mut self, at: TrueTime, some: &[PeerId], others: &[PeerId]) {
        self.cuts += 1;
        let id = self.cuts;
        for (from, to) in [(some, others), (others, some)] {
            self.at(at, Fault::Cut(Cut { id, from: from.to_vec(), to: to.to_vec() }));
        }
    }

    /// A copy of the disk is made, of a peer that stands or that runs; then the peer begins another life.
    fn stale(&mut self, at: TrueTime, peer: PeerId) -> TrueTime {
        let runs = self.rng.below(2) == 0;
        let mut at = at;
        if runs {
            self.at(at, Fault::Shelve(peer));
            at = at + self.rng.span(ms(1), ms(5_000));
        }
        self.at(at, Fault::Crash(peer));
        if !runs {
            self.at(at + ms(1), Fault::Shelve(peer));
        }
        at = at + self.rng.span(ms(10), ms(1_000));
        self.at(at, Fault::Restart { peer, memory: Memory::Disk });
        at
    }

    /// The peer falls silent towards clients, then towards all, and the copy takes its place.
    fn succeed(&mut self, at: TrueTime, peer: PeerId, doors: &mut [Door], trip: Span) -> TrueTime {
        let quiet = trip * 3 + ms(50);
        let alone = at + self.rng.span(quiet, quiet * 2);
        let old = self.rng.below(2) == 0;
        let copied = if old { self.rng.span(ms(1), ms(5_000)) } else { Span::ZERO };
        for door in &mut *doors {
            let at = if is_client(door.other) { at } else { alone };
            self.reach(at, door, Reach::Neither);
        }
        let copied = TrueTime(alone.since(TrueTime(0) + copied).as_micros());
        self.at(copied, Fault::Shelve(peer));
        let start = alone + self.rng.span(ms(1), ms(2_000));
        self.at(start, Fault::Twin(peer));
        for door in doors {
            self.reach(start, door, Reach::Second);
        }
        start
    }

    /// Everybody reaches now one, now the other: clients first, then members, one of which stays for so long that the other
    /// is met.
    fn switch(&mut self, from: TrueTime, to: TrueTime, doors: Vec<Door>, first: Reach) {
        let met = self.open.silence * 2 + self.subject.tuning.round_trip_worst * 4 + ms(8_000);
        let second = if first == Reach::First { Reach::Second } else { Reach::First };
        for (k, mut door) in doors.into_iter().enumerate() {
            let early = if is_client(door.other) { ms(1) } else { ms(6_000) };
            let mut at = from + early + self.rng.span(Span::ZERO, ms(6_000));
            if k == 0 {
                self.reach(at, &mut door, second);
                at = at + met;
            }
            while at < to {
                let reach = match self.rng.below(12) {
                    0 => Reach::Both,
                    1 => Reach::Neither,
                    2..7 => first,
                    _ => second,
                };
                self.reach(at, &mut door, reach);
                at = at + self.rng.span(self.open.silence, self.open.silence * 3 + ms(5_000));
            }
        }
    }

    /// Some crash, and come back with their disks.
    fn stumble(&mut self, from: TrueTime, to: TrueTime, twins: [PeerId; 2], others: &[PeerId]) {
        let (from, to) = (from.since(TrueTime(0)) + ms(15_000), to.since(TrueTime(0)));
        for _ in 0..self.rng.below(4) {
            let all = [&twins[..], &twins[..], others].concat();
            let peer = *self.rng.pick(&all);
            let at = TrueTime(0) + self.rng.span(from.min(to), to);
            let torn = self.rng.below(2) == 0;
            self.at(at, if torn { Fault::Tear(peer) } else { Fault::Crash(peer) });
            let back = at + self.rng.span(ms(10), ms(3_000));
            self.at(back, Fault::Restart { peer, memory: Memory::Disk });
        }
    }
}
