//! Disks that are slow, and disks that fail, in some of the worlds whose hosts crash and have disks to come back to.
//!
//! All of it is drawn from a stream of its own: a world that is not meant is the same as ever. After each episode the
//! peer is stopped, in case that it was not by a failing write, and comes back with what its disk has: so whatever was
//! said too early is found out.
//!
//! A disk that lies about what it has is another matter, which only members notice of each other: see
//! [`super::memories`].

use sigmalock_core::{PeerId, Span};

use super::draw::ms;
use crate::faults::{Fault, Memory};
use crate::history::TrueTime;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::subject::Subject;
use crate::workload::{Arrivals, Length};

/// One in so many of the worlds that it fits.
const ONE_IN: u64 = 4;
/// No write takes longer.
const SLOWEST: Span = Span::from_secs(1);

/// Makes disks fail, if that is what the seed means.
pub(super) fn fail(subject: &mut Subject, config: &mut RunConfig, seed: u64) {
    let mut rng = Rng::split(seed, 0x6469_736b);
    let is_meant = rng.below(ONE_IN) == 0;
    let faults = &config.faults.faults;
    let crash = faults.iter().any(|(_, fault)| matches!(fault, Fault::Crash(_) | Fault::Tear(_)));
    // Users are to be answered there and then, and on time, which a peer cannot whose answers wait for its disk.
    let fits = crash && subject.tuning.durable && !config.workload.clients_on_hosts;
    let begin = faults.iter().map(|(at, _)| *at).min();
    let (true, true, Some(begin)) = (is_meant, fits, begin) else { return };
    let end = config.faults.heal_at.unwrap_or_else(|| config.end());
    // A message may wait for the write under way, and for the next.
    subject.tuning.flight_max = subject.tuning.flight_max + SLOWEST * 2 + ms(100);
    let hosts: Vec<PeerId> = config.population().host_ids().collect();
    if rng.below(2) == 0 {
        // A vote that is forgotten matters while somebody counts it, and somebody else waits for it.
        config.workload.names.truncate(1);
        config.workload.inside = Length::Uniform(Span::ZERO, subject.tuning.lease_max);
        let clients = rng.between(4, 6) as usize * config.workload.clients_per_peer;
        config.workload.arrivals = Arrivals::Loops { clients, think: Length::Constant(ms(50)) };
    }
    for _ in 0..rng.between(6, 24) {
        let at = TrueTime(0) + rng.span(begin.since(TrueTime(0)), end.since(TrueTime(0)));
        let mut some = hosts.clone();
        rng.shuffle(&mut some);
        some.truncate(match rng.below(4) {
            0 => 1,
            1 => rng.between(1, hosts.len() as u64) as usize,
            _ => hosts.len(),
        });
        let episode = Episode::draw(&mut rng);
        for peer in some {
            episode.happens(&mut rng, peer, at, &mut config.faults.faults);
        }
    }
}

/// What happens to a few at about the same time: one that forgets is outvoted.
struct Episode {
    /// If their disks are slow, how slow.
    write: Option<Span>,
    /// If writes fail, whether the records are found all the same.
    fails: Option<bool>,
    stopped: Span,
    back: Span,
    quick_again: Span,
}

impl Episode {
    fn draw(rng: &mut Rng) -> Self {
        let is_slow = rng.below(2) == 0;
        let write = rng.span(ms(5), SLOWEST);
        let (fails, found) = (!is_slow || rng.below(3) == 0, rng.below(3) == 0);
        let is_short = rng.below(4) != 0;
        let (soon, long) = if is_short { (ms(1_000), ms(300)) } else { (ms(3_000), ms(4_000)) };
        let stopped = rng.span(ms(100), soon);
        let back = stopped + rng.span(ms(10), long);
        let quick_again = back + rng.span(Span::ZERO, ms(4_000));
        let (write, fails) = (is_slow.then_some(write), fails.then_some(found));
        Self { write, fails, stopped, back, quick_again }
    }

    fn happens(
        &self, rng: &mut Rng, peer: PeerId, at: TrueTime, faults: &mut Vec<(TrueTime, Fault)>,
    ) {
        let at = at + rng.span(Span::ZERO, ms(20));
        if let Some(found) = self.fails {
            faults.push((at, Fault::FailWrite { peer, found }));
        }
        if let Some(write) = self.write {
            faults.push((at, Fault::SlowDisk { peer, write }));
            faults.push((at + self.quick_again, Fault::SlowDisk { peer, write: Span::ZERO }));
        }
        faults.push((at + self.stopped, Fault::Crash(peer)));
        faults.push((at + self.back, Fault::Restart { peer, memory: Memory::Disk }));
    }
}
