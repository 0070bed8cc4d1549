//! How many messages a second the engine delivers on one core, and whether its memory stays flat:
//! the saturated 32/24 Sigma over uniform (50, 150) ms.

use std::time::Instant;

use sigmalock_core::{Name, Span};
use sigmalock_protocols::catalogue::{ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;
use sigmalock_sim::latency::Latency;
use sigmalock_sim::network::Network;
use sigmalock_sim::run::RunConfig;
use sigmalock_sim::subject::Subject;
use sigmalock_sim::workload::{Arrivals, Length, Workload};

const REPETITIONS: u64 = 5;
const BYTES_PER_PAGE: u64 = 4_096;

fn main() {
    let quorum = Quorum::new(32, 24).expect("24 of 32 is a quorum");
    let subject = Subject::new(ProtocolName::Sigma, Variant::Shipped, quorum);
    println!("saturated sigma 32/24, uniform:50ms..150ms, one core");
    for seed in 0..REPETITIONS {
        let started = Instant::now();
        let outcome = subject.run(&saturated(seed, Span::from_secs(2_000)), &mut []);
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "seed {seed}: {:.2} million messages/s ({} delivered, {} events, {} entries, {:.2} entries/s simulated)",
            outcome.delivered as f64 / seconds / 1e6,
            outcome.delivered,
            outcome.events,
            outcome.entries,
            outcome.throughput_per_s,
        );
    }
    for simulated_s in [1_000, 2_000, 4_000, 8_000] {
        subject.run(&saturated(7, Span::from_secs(simulated_s)), &mut []);
        println!(
            "resident after {simulated_s:>5} simulated seconds: {} KiB",
            resident_bytes() >> 10
        );
    }
}

/// Forty clients that want the lock all the time: always about forty in the queue.
fn saturated(seed: u64, duration: Span) -> RunConfig {
    let (low, high) = (Span::from_millis(50), Span::from_millis(150));
    let network = Network::perfect(Latency::Uniform { low, high });
    let name = Name::new("/bench").expect("a good name");
    let arrivals = Arrivals::Loops { clients: 40, think: Length::ZERO };
    let workload = Workload::new(name, arrivals);
    RunConfig { duration, ..RunConfig::new(seed, 32, network, workload) }
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * BYTES_PER_PAGE
}
