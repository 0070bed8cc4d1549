//! Random worlds about what peers that agree on who is in remember:
//!
//! - *backups*: a peer is stopped, its disk copied, and later put back, and the one that it had meanwhile, in turns: an
//!   old backup, or one directory on two machines;
//! - *copies*: the same, but the disk is copied while the peer runs, and the peer gives no votes for a moment before it
//!   stops, so that the others have heard how much it had written;
//! - both also with a disk of before the peer was a member, and with one that is started again and again before anybody
//!   hears of it, so that it comes to have more starts and records than the newer one had;
//! - *lies*: a disk loses the last records that it said were written, when its peer crashes, which has given no votes for
//!   a moment before;
//! - *yesterday*: a peer loses its memory and meets one that was cut off since before it was a member, then one that was
//!   cut off later;
//! - *foundings*: hosts that begin together, are cut off from each other, crash, and lose all they had and come back as
//!   somebody else; or all of them lose all they had at once.
//!
//! In the first three nobody else is cut off or down: whoever remembers is met, which is all that is promised.

use sigmalock_core::{PeerId, Span};
use sigmalock_protocols::catalogue::Membership;

use super::draw::{self, Crowd, EVENTS_MAX, ms};
use super::mishaps::{Mishaps, Regime};
use crate::faults::{Cut, Fault, FaultPlan, Memory};
use crate::history::TrueTime;
use crate::output::LOST_MAX;
use crate::overlay::Open;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// One seed in so many means such a world.
const ONE_IN: u64 = 6;
/// By then all who are there from the beginning are in.
const ALL_IN: Span = Span::from_secs(25);
/// Longer than any world lasts.
const NEVER: Span = Span::from_secs(36_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Backups,
    Copies,
    Lies,
    Yesterday,
    Foundings,
}

type Schedule = Vec<(TrueTime, Fault)>;

/// How a disk is put back.
#[derive(Debug, Clone, Copy)]
struct PutBack {
    /// It is a copy of before the peer was a member.
    early: bool,
    /// It is started so many times before anybody hears of it.
    starts: u64,
}

impl PutBack {
    /// What a seed means, from a stream of its own: all other seeds mean what they did without.
    fn of(seed: u64) -> Self {
        let mut rng = Rng::split(seed, 0x7075_7469);
        let early = rng.below(4) == 0;
        let starts = if rng.below(4) == 0 { rng.between(2, 100) } else { 1 };
        Self { early, starts }
    }
}

/// Whether a disk of a seed's world forgets by itself, and is not a copy, from a stream of its own, too.
fn lies(seed: u64) -> bool {
    Rng::split(seed, 0x6c69_6573).below(2) == 0
}

/// Whether all hosts that begin together lose all they had, from a stream of its own, too.
fn all_lose_all(seed: u64) -> bool {
    Rng::split(seed, 0x616c_6c6c).below(3) == 0
}

/// Such a world, if that is what the seed means.
pub(super) fn case(subject: &Subject, crowd: Crowd, seed: u64) -> Option<(Subject, RunConfig)> {
    let mut rng = Rng::split(seed, 0x7265_6d62);
    if rng.below(ONE_IN) != 0 {
        return None;
    }
    let kind = *rng.pick(&[Kind::Backups, Kind::Copies, Kind::Yesterday, Kind::Foundings]);
    let kind = if kind == Kind::Copies && lies(seed) { Kind::Lies } else { kind };
    let mut subject = *subject;
    let mut network = draw::network(&mut rng);
    if matches!(kind, Kind::Backups | Kind::Copies | Kind::Lies) {
        (network.loss, network.late) = (0.0, 0.0);
    }
    let mail_max = ms(rng.between(100, 5_000));
    subject.tuning = draw::tuning(&mut rng, &network, mail_max);
    subject.tuning.membership = Membership::Agreed;
    subject.tuning.durable = true;
    let lease = subject.tuning.lease_max;
    let soon = ms(rng.between(500, 2_000)).max(subject.tuning.round_trip_worst * 2);
    subject.tuning.dead_after = if kind == Kind::Yesterday { soon } else { NEVER };
    let hosts = match kind {
        // Of three or more, one may lose its memory, and an odd number is the easiest to split.
        Kind::Backups | Kind::Copies | Kind::Lies => 3 + 2 * rng.below(2),
        Kind::Yesterday => 3,
        Kind::Foundings => rng.between(1, 5),
    };
    // Of every swarm, somebody remembers.
    let reborn = match kind {
        // Two swarms, one after the other, are two successions; what matters is who is inside.
        Kind::Foundings if hosts > 1 && subject.protocol.is_lock() && all_lose_all(seed) => hosts,
        Kind::Foundings => rng.below(hosts),
        _ => 0,
    };
    let joins = match kind {
        Kind::Backups | Kind::Copies | Kind::Lies => 0,
        Kind::Yesterday => 2,
        Kind::Foundings => rng.below(3),
    };
    if kind == Kind::Foundings {
        (subject.tuning.founders, subject.tuning.expecting) = (hosts as u16, hosts + reborn);
    }
    let mut workload = draw::workload(&mut rng, &subject.tuning, false);
    // Who waits at the very peer whose disk is put back has the first chance to be let in by it.
    workload.clients_on_hosts = kind == Kind::Backups && rng.below(2) == 0;
    workload.names.truncate(1);
    workload.inside = Length::Uniform(Span::ZERO, lease);
    workload.ttl = Length::Constant(lease);
    let clients = rng.between(4, 6) as usize;
    let busy = rng.below(2) == 0;
    let think =
        if busy { Length::Constant(ms(50)) } else { Length::Uniform(Span::ZERO, lease * 8) };
    workload.arrivals = Arrivals::Loops { clients, think };
    if crowd.modes {
        draw::add_modes(&mut workload, crowd.agents, seed);
    }
    if crowd.agents {
        draw::add_agents(&mut subject, &mut workload, false, false, seed);
    }
    let mut config = RunConfig::new(seed, 1, network, workload);
    config.hosts = (hosts + reborn + joins) as usize;
    config.mail_max = mail_max;
    config.clocks = draw::clocks(&mut rng, Regime::MemoryLoss, lease);
    let (silence, delay) = (ms(rng.between(500, 2_000)), ms(rng.between(20, 400)));
    let (first, linger, lease_max) = (hosts as usize, NEVER, lease);
    let (cells, clients_seen) = (None, true);
    config.open = Some(Open { first, silence, delay, linger, lease_max, cells, clients_seen });
    let mut stage = Stage { rng: &mut rng, config: &config, subject: &subject, faults: Vec::new() };
    let put_back = PutBack::of(seed);
    let safety = match kind {
        Kind::Backups | Kind::Copies | Kind::Lies => stage.backups(kind, put_back),
        Kind::Yesterday => stage.yesterday(silence),
        Kind::Foundings if reborn == hosts => stage.founding_anew(hosts as usize),
        Kind::Foundings => stage.foundings(hosts as usize, reborn as usize),
    };
    // Where a founder is gone for good, nobody may ever get together; and where the silent are voted out, those who are
    // left may be one that remembers and one that does not.
    let may_end_well = reborn == 0 && kind != Kind::Yesterday;
    let heal_at = may_end_well.then_some(TrueTime(0) + safety);
    let faults = stage.faults;
    config.faults = FaultPlan { heal_at, faults, ..FaultPlan::default() };
    config.events_max = EVENTS_MAX;
    config.stop_at_violation = true;
    let views = (lease + subject.tuning.round_trip_worst * 8) * 2 * (config.hosts as u64 + 1);
    config.patience_after_heal =
        draw::patience_after_heal(&subject.tuning) + (silence + delay) * 4 + views;
    config.duration =
        if heal_at.is_some() { safety + config.patience_after_heal * 4 } else { safety };
    Some((subject, config))
}

struct Stage<'a> {
    rng: &'a mut Rng,
    config: &'a RunConfig,
    subject: &'a Subject,
    faults: Schedule,
}

impl Stage<'_> {
    fn hosts(&self) -> Vec<PeerId> {
        self.config.population().host_ids().collect()
    }

    fn at(&mut self, at: TrueTime, fault: Fault) {
        self.faults.push((at, fault));
    }

    /// Some hear nothing of the others, nor they of them.
    fn part(&mut self, at: TrueTime, id: u32, some: &[PeerId], others: &[PeerId]) {
        let cut = |from: &[PeerId], to: &[PeerId]| Cut { id, from: from.to_vec(), to: to.to_vec() };
        self.at(at, Fault::Cut(cut(some, others)));
        self.at(at, Fault::Cut(cut(others, some)));
    }

    /// A disk is put on the shelf, and shelf and disk change places again and again; or it loses what was written last.
    fn backups(&mut self, kind: Kind, PutBack { early, starts }: PutBack) -> Span {
        let (running, lies) = (kind != Kind::Backups, kind == Kind::Lies);
        let hosts = self.hosts();
        let any = *self.rng.pick(&hosts);
        // Who came last is the newcomer of the view that lasts, and votes as soon as it is told which votes are out. (A
        // founder's disk of when it was alone needs nobody to vouch for it, and lets in until it has met somebody.)
        let peer = hosts.last().copied().filter(|_| early).unwrap_or(any);
        let clients = draw::clients(self.config);
        // By then the others have heard what was written before the peer fell silent towards its clients.
        let quiet = self.subject.tuning.round_trip_worst * 3 + ms(50);
        let mut at = TrueTime(0) + ALL_IN + self.rng.span(Span::ZERO, ms(5_000));
        // Nobody gets in without the vote of that peer, or with a vote to spare.
        let others: Vec<PeerId> = hosts.into_iter().filter(|other| *other != peer).collect();
        let (ours, theirs) = others.split_at(others.len() / 2);
        // Where the others do not hear each other, they cannot remove it, either.
        if self.config.workload.clients_on_hosts || self.rng.below(2) == 0 {
            self.part(at, 99, ours, theirs);
        }
        if !self.config.workload.clients_on_hosts {
            let (here, there) = clients.split_at(clients.len() / 2);
            self.part(at, 99, here, theirs);
            self.part(at, 99, there, ours);
        }
        // A disk on which nobody has a vote, or waits for one, is the most dangerous one to put back.
        if !self.config.workload.clients_on_hosts && self.rng.below(4) != 0 {
            self.part(at, 98, &[peer], &clients);
            at = at + self.subject.tuning.lease_max * 2;
            self.at(at + ms(1), Fault::Mend(98));
        }
        if early {
            let before = self.rng.span(ms(1), ms(3_000));
            self.at(TrueTime(0) + before, Fault::Shelve(peer));
        } else if running {
            self.at(at, Fault::Shelve(peer));
        } else {
            self.at(at, Fault::Crash(peer));
            self.at(at + ms(1), Fault::Shelve(peer));
            at = at + self.rng.span(ms(10), ms(1_000));
            self.at(at, Fault::Restart { peer, memory: Memory::Disk });
        }
        for id in 1..=self.rng.between(1, 3) as u32 {
            at = at + ms(3_000) + self.rng.span(quiet, self.subject.tuning.lease_max * 2);
            if running {
                self.part(at, id, &[peer], &clients);
                at = at + quiet;
            }
            self.at(at, Fault::Crash(peer));
            at = at + self.rng.span(ms(10), ms(500));
            let mut lost = || Memory::Lost(self.rng.between(1, LOST_MAX as u64) as usize);
            let memory = if lies { lost() } else { Memory::Shelf };
            self.at(at, Fault::Restart { peer, memory });
            for _ in 1..starts {
                self.at(at, Fault::Crash(peer));
                self.at(at, Fault::Restart { peer, memory: Memory::Disk });
            }
            self.at(at, Fault::Mend(id));
            // Those who want its vote may find it before those who remember it do, and some of these before others.
            self.part(at, 10 + id, &[peer], ours);
            self.part(at, 20 + id, &[peer], theirs);
            for id in [10 + id, 20 + id] {
                let met = at + self.rng.span(Span::ZERO, ms(2_000));
                self.at(met, Fault::Mend(id));
            }
        }
        at.since(TrueTime(0)) + self.rng.span(ms(5_000), ms(30_000))
    }

    /// A, Q and B are in; Q is cut off, P comes; B is cut off, too, with some clients, C comes; P forgets, comes back on
    /// B's side, and meets Q first.
    fn yesterday(&mut self, silence: Span) -> Span {
        let [a, q, b, p, c] = self.hosts()[..] else { return ALL_IN };
        let clients = draw::clients(self.config);
        let (here, there) = clients.split_at(clients.len() / 2);
        let lease = self.subject.tuning.lease_max;
        let change = silence + self.subject.tuning.dead_after + lease * 2 + ms(2_000);
        let mut at = TrueTime(0) + ALL_IN;
        self.part(at, 1, &[q], &[&[a, b, p, c], &clients[..]].concat());
        at = at + self.rng.span(ms(100), ms(2_000));
        self.at(at, Fault::Join(p));
        at = at + change + self.rng.span(Span::ZERO, lease);
        self.part(at, 2, &[&[b], there].concat(), &[&[a, p, c], here].concat());
        at = at + change + self.rng.span(Span::ZERO, lease);
        self.at(at, Fault::Join(c));
        at = at + self.rng.span(ms(2_000), ms(4_000)) + lease;
        self.at(at, Fault::Crash(p));
        self.part(at, 3, &[p], &[&[a, b, c], &clients[..]].concat());
        self.at(at, Fault::Mend(1));
        self.part(at, 4, &[q], &[&[a, b, c], &clients[..]].concat());
        at = at + self.rng.span(ms(10), ms(500));
        self.at(at, Fault::Restart { peer: p, memory: Memory::None });
        at = at + self.rng.span(ms(500), ms(3_000));
        self.part(at, 5, &[&[p, q, b], there].concat(), &[&[a, c], here].concat());
        (2..5).for_each(|id| self.at(at, Fault::Mend(id)));
        at.since(TrueTime(0)) + lease + self.rng.span(ms(5_000), ms(20_000))
    }

    /// All hosts of a swarm lose all they had (none comes back), and begin another one. Of those who use it some know only that; the
    /// others meet nobody of it, whom they would tell of the former one.
    fn founding_anew(&mut self, hosts: usize) -> Span {
        let all = self.hosts();
        let lost = TrueTime(0) + ALL_IN + self.rng.span(Span::ZERO, self.subject.tuning.lease_max);
        let back = lost + self.rng.span(ms(1), ms(1_000));
        for (founder, heir) in all[..hosts].iter().zip(&all[hosts..2 * hosts]) {
            self.at(lost, Fault::Crash(*founder));
            self.at(back, Fault::Join(*heir));
        }
        let clients = draw::clients(self.config);
        let (forget, remember) = clients.split_at(clients.len() / 2);
        self.part(lost, 1, remember, &[&all, forget].concat());
        for client in forget {
            let client = *client;
            self.at(lost, Fault::Crash(client));
            self.at(back, Fault::Restart { peer: client, memory: Memory::None });
        }
        for newcomer in &all[2 * hosts..] {
            self.at(back + ms(2_000), Fault::Join(*newcomer));
        }
        back.since(TrueTime(0)) + ms(self.rng.between(15_000, 40_000))
    }

    /// Anything may go wrong while the hosts get together; some lose all they had.
    fn foundings(&mut self, hosts: usize, reborn: usize) -> Span {
        let all = self.hosts();
        let safety = ms(self.rng.between(15_000, 40_000));
        let mut mishaps = Mishaps {
            hosts: all[..hosts].to_vec(),
            clients: draw::clients(self.config),
            regime: Regime::MemoryLoss,
            durable: true,
            lease_max: self.subject.tuning.lease_max,
            overlap: hosts / 2 + 1,
            cuts: 0,
            briefly: None,
            losses: Some(0),
            rng: &mut *self.rng,
        };
        self.faults = mishaps.schedule(1..8, ms(1)..safety / 2);
        let mut living = all[..hosts].to_vec();
        for heir in &all[hosts..hosts + reborn] {
            let at = TrueTime(0) + self.rng.span(ms(100), safety * 3 / 4);
            let lost = self.rng.below(living.len() as u64) as usize;
            let lost = std::mem::replace(&mut living[lost], *heir);
            self.at(at, Fault::Destroy(lost));
            let back = at + self.rng.span(ms(10), ms(3_000));
            self.at(back, Fault::Join(*heir));
        }
        for newcomer in &all[hosts + reborn..] {
            let at = TrueTime(0) + self.rng.span(ms(100), safety);
            self.at(at, Fault::Join(*newcomer));
        }
        safety
    }
}
