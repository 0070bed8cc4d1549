//! Worlds like a local network: delays far below the margin for the rates of clocks, and clocks as wrong as
//! they may be.
//!
//! Elsewhere a message takes longer than two clocks drift apart within a lease, so that delay hides what the
//! margin is for. Here nothing does; and votes run out more often than they are given back, because whoever is
//! inside crashes, or is cut off.

use sigmalock_core::{PeerId, Span};

use super::draw::{self, PPM_MAX, ms};
use super::mishaps::Regime;
use crate::clock::Clocks;
use crate::faults::{Cut, Fault};
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::rng::Rng;
use crate::workload::{Arrivals, Habit, Length, Workload};

/// Nothing takes longer.
const DELAY_MAX: Span = ms(2);

/// Whether a seed means such a world, from a stream of its own: all other seeds mean what they did without.
pub(super) fn is_meant(seed: u64, one_in: u64) -> bool {
    Rng::split(seed, 0x4c41_4e20).below(one_in) == 0
}

/// As quick as it gets, whatever peers are prepared for.
pub(super) fn latency(rng: &mut Rng) -> Latency {
    let worst = rng.span(Span::from_micros(100), DELAY_MAX);
    match rng.below(2) {
        0 => Latency::Constant(worst),
        _ => Latency::Uniform { low: Span::ZERO, high: worst },
    }
}

/// Some as fast as they may be, the others as slow.
pub(super) fn clocks(rng: &mut Rng, regime: Regime, lease_max: Span) -> Clocks {
    let clocks = draw::clocks(rng, regime, lease_max);
    Clocks { ppm_max: PPM_MAX as u32, extreme: true, ..clocks }
}

/// Everybody wants the same, for long, and often does not live to give it back.
pub(super) fn bend_workload(rng: &mut Rng, workload: &mut Workload, lease: Span) {
    workload.names.truncate(1);
    let clients = rng.between(3, 6) as usize;
    workload.arrivals = Arrivals::Loops { clients, think: Length::Exponential(ms(100)) };
    workload.inside = Length::Uniform(Span::ZERO, lease * 2);
    workload.ttl = Length::Uniform(lease / 2, lease);
    workload.clients_on_hosts = false;
    let length = Length::Uniform(Span::ZERO, lease);
    workload.crash = Habit { probability: 0.3 * rng.unit(), length };
}

/// Some clients are cut off from all hosts, again and again, for about a lease: they do not hear them, or are
/// not heard, or both.
pub(super) fn partings(
    rng: &mut Rng, clients: &[PeerId], hosts: &[PeerId], lease: Span, until: Span,
) -> Vec<(TrueTime, Fault)> {
    // Other mishaps count theirs from below.
    const FIRST_ID: u32 = 1_000;
    let (mut clients, mut faults) = (clients.to_vec(), Vec::new());
    let mut at = TrueTime(0) + rng.span(ms(500), lease);
    for id in FIRST_ID.. {
        let end = at + rng.span(lease / 2, lease * 3 / 2);
        if end > TrueTime(0) + until {
            break;
        }
        rng.shuffle(&mut clients);
        let (lonely, _) = clients.split_at(clients.len().div_ceil(2));
        let cut = |from: &[PeerId], to: &[PeerId]| {
            Fault::Cut(Cut { id, from: from.to_vec(), to: to.to_vec() })
        };
        let way = rng.below(3);
        if way != 0 {
            faults.push((at, cut(lonely, hosts)));
        }
        if way != 1 {
            faults.push((at, cut(hosts, lonely)));
        }
        faults.push((end, Fault::Mend(id)));
        at = end + rng.span(Span::ZERO, lease);
    }
    faults
}
