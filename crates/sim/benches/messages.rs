//! How many messages a second the engine delivers on one core, and whether its memory stays flat:
//! the saturated 32/24 Sigma over uniform (50, 150) ms.

use std::time::{Duration, Instant};

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
        let (wall, cpu) = (Instant::now(), cpu_time());
        let outcome = subject.run(&saturated(seed, Span::from_secs(2_000)), &mut []);
        let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
        let millions_per_s = |time: Duration| outcome.delivered as f64 / time.as_secs_f64() / 1e6;
        println!(
            "seed {seed}: {:.2} million messages per second of CPU time, {:.2} by the clock on the wall \
             ({} delivered, {} entries, {:.2} entries per simulated second)",
            millions_per_s(cpu),
            millions_per_s(wall),
            outcome.delivered,
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

/// How long this thread has been on a core: what a busy machine cannot blur.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * BYTES_PER_PAGE
}
