//! What goes wrong in a tortured world, drawn one mishap at a time.

use std::ops::Range;

use sigmalock_core::{PeerId, Span};

use crate::faults::{Cut, Fault, Memory};
use crate::history::TrueTime;
use crate::rng::Rng;

/// What a world may do to hosts. Tokens after a loss of memory rest on wall clocks, as the design
/// says, so a world has one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Regime {
    /// Hosts forget, and wall clocks are about right.
    MemoryLoss,
    /// Wall clocks jump by hours, and hosts come back with their disks.
    WallJumps,
}

pub(super) struct Mishaps<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) hosts: Vec<PeerId>,
    pub(super) clients: Vec<PeerId>,
    pub(super) regime: Regime,
    pub(super) durable: bool,
    pub(super) lease_max: Span,
    /// So many hosts in every two quorums.
    pub(super) overlap: usize,
    pub(super) cuts: u32,
    /// If given, cuts that make hearing each other intransitive last no longer than this.
    pub(super) briefly: Option<Span>,
    /// If given, so many losses of memory are left.
    pub(super) losses: Option<usize>,
}

/// A handful of them.
pub(super) const HANDFUL: Range<u64> = 2..15;

type Schedule = Vec<(TrueTime, Fault)>;

impl Mishaps<'_> {
    /// Some mishaps, between these times.
    pub(super) fn schedule(&mut self, some: Range<u64>, when: Range<Span>) -> Schedule {
        let mut schedule = Vec::new();
        for _ in 0..self.rng.between(some.start, some.end - 1) {
            let at = TrueTime(0) + self.rng.span(when.start, when.end);
            self.mishap(at, &mut schedule);
        }
        schedule
    }

    /// Whether one more host may lose its memory.
    fn may_forget(&mut self) -> bool {
        if let Some(losses) = &mut self.losses {
            let left = *losses > 0;
            *losses = losses.saturating_sub(1);
            return left;
        }
        true
    }

    fn mishap(&mut self, at: TrueTime, schedule: &mut Schedule) {
        match self.rng.below(10) {
            0 | 1 => self.crashes(at, schedule),
            2 | 3 => self.forget_or_jump(at, schedule),
            4 | 5 => self.pauses(at, schedule),
            6 => self.split(at, schedule),
            7 => self.one_way(at, schedule),
            8 => self.lonely_client(at, schedule),
            _ => self.restless(at, schedule),
        }
    }

    fn later(&mut self, at: TrueTime, low_ms: u64, high_ms: u64) -> TrueTime {
        at + self.rng.span(Span::from_millis(low_ms), Span::from_millis(high_ms))
    }

    /// Mostly one host, sometimes as many as it takes to hurt, sometimes all.
    fn some_hosts(&mut self) -> Vec<PeerId> {
        let mut hosts = self.hosts.clone();
        self.rng.shuffle(&mut hosts);
        let count = match self.rng.below(8) {
            0..4 => 1,
            4 | 5 => self.overlap,
            6 => self.rng.between(1, hosts.len() as u64) as usize,
            _ => hosts.len(),
        };
        hosts.truncate(count);
        hosts
    }

    /// Whether hosts may crash at all: without a disk that is a loss of memory.
    fn may_crash(&self) -> bool {
        self.regime == Regime::MemoryLoss || self.durable
    }

    fn memory(&mut self) -> Memory {
        let forgets =
            self.regime == Regime::MemoryLoss && self.rng.below(2) == 0 && self.may_forget();
        if forgets { Memory::None } else { Memory::Disk }
    }

    fn crashes(&mut self, at: TrueTime, schedule: &mut Schedule) {
        if !self.may_crash() {
            return self.pauses(at, schedule);
        }
        // A crash between two effects is for those who have a disk to come back to.
        let torn = self.durable && self.rng.below(2) == 0;
        for peer in self.some_hosts() {
            let crash = self.later(at, 0, 300);
            schedule.push((crash, if torn { Fault::Tear(peer) } else { Fault::Crash(peer) }));
            let memory = self.memory();
            schedule.push((self.later(crash, 10, 8_000), Fault::Restart { peer, memory }));
        }
    }

    fn forget_or_jump(&mut self, at: TrueTime, schedule: &mut Schedule) {
        for peer in self.some_hosts() {
            let when = self.later(at, 0, 300);
            if self.regime == Regime::MemoryLoss && !self.may_forget() {
                return self.pauses(at, schedule);
            }
            let fault = match self.regime {
                Regime::MemoryLoss => Fault::Reset(peer),
                Regime::WallJumps => self.jump(peer),
            };
            schedule.push((when, fault));
        }
        if self.regime == Regime::WallJumps {
            let client = *self.rng.pick(&self.clients);
            let fault = self.jump(client);
            schedule.push((at, fault));
        }
    }

    fn jump(&mut self, peer: PeerId) -> Fault {
        let seconds = *self.rng.pick(&[1, 60, 5 * 3_600]);
        let by_us = self.rng.between(1, seconds * 1_000_000) as i64;
        Fault::WallJump { peer, by_us: if self.rng.below(2) == 0 { by_us } else { -by_us } }
    }

    /// Hosts or clients stand still, for a moment or for longer than a lease.
    fn pauses(&mut self, at: TrueTime, schedule: &mut Schedule) {
        let peers = if self.rng.below(3) == 0 {
            self.some_hosts()
        } else {
            vec![*self.rng.pick(&self.clients)]
        };
        for peer in peers {
            let longest =
                if self.rng.below(2) == 0 { self.lease_max * 2 } else { Span::from_secs(1) };
            let span = self.rng.span(Span::from_millis(20), longest);
            schedule.push((self.later(at, 0, 200), Fault::Pause { peer, span }));
        }
    }

    fn everybody(&self) -> Vec<PeerId> {
        let mut all = self.hosts.clone();
        all.extend(self.clients.iter().filter(|client| !self.hosts.contains(client)));
        all
    }

    fn halves(&mut self) -> (Vec<PeerId>, Vec<PeerId>) {
        self.everybody().into_iter().partition(|_| self.rng.below(2) == 0)
    }

    fn cut(
        &mut self, at: TrueTime, groups: Vec<(Vec<PeerId>, Vec<PeerId>)>, schedule: &mut Schedule,
        briefly: Option<Span>,
    ) {
        self.cuts += 1;
        let id = self.cuts;
        schedule
            .extend(groups.into_iter().map(|(from, to)| (at, Fault::Cut(Cut { id, from, to }))));
        let mended = self.later(at, 300, 15_000);
        let mended = briefly.map_or(mended, |span| mended.min(at + span));
        schedule.push((mended, Fault::Mend(id)));
    }

    /// Two halves that do not hear each other; sometimes a third group hears both, so that who hears
    /// whom is not transitive.
    fn split(&mut self, at: TrueTime, schedule: &mut Schedule) {
        let (mut left, right) = self.halves();
        let mut briefly = None;
        if self.rng.below(2) == 0 {
            left.truncate(left.len().div_ceil(2));
            briefly = self.briefly;
        }
        self.cut(at, vec![(left.clone(), right.clone()), (right, left)], schedule, briefly);
    }

    /// One half is heard by the other but does not hear it.
    fn one_way(&mut self, at: TrueTime, schedule: &mut Schedule) {
        let groups = self.halves();
        self.cut(at, vec![groups], schedule, None);
    }

    /// A client loses some or all hosts, in one direction or both.
    fn lonely_client(&mut self, at: TrueTime, schedule: &mut Schedule) {
        let lonely = *self.rng.pick(&self.clients);
        let client = vec![lonely];
        let hosts = if self.rng.below(2) == 0 { self.hosts.clone() } else { self.halves().0 };
        let out = (client.clone(), hosts.clone());
        let back = (hosts, client);
        let groups = match self.rng.below(3) {
            0 => vec![out],
            1 => vec![back],
            _ => vec![out, back],
        };
        let briefly = self.briefly.filter(|_| self.hosts.contains(&lonely));
        self.cut(at, groups, schedule, briefly);
    }

    /// One host that comes and goes again and again.
    fn restless(&mut self, at: TrueTime, schedule: &mut Schedule) {
        if !self.may_crash() {
            return self.one_way(at, schedule);
        }
        let peer = *self.rng.pick(&self.hosts);
        let mut when = at;
        for _ in 0..self.rng.between(2, 5) {
            schedule.push((when, Fault::Crash(peer)));
            when = self.later(when, 10, 2_000);
            let memory = self.memory();
            schedule.push((when, Fault::Restart { peer, memory }));
            when = self.later(when, 10, 4_000);
        }
    }
}
