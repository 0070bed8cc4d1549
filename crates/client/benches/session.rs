//! What a session costs: one peer alone, ephemeral, one client, over the Unix socket.
//!
//! `cargo bench -p sigmalock` prints the time of an uncontended acquire and release, one after the other, and
//! how many of both per second 64 tasks of one client get done. Everything is in one process: client, API
//! and peer share its threads.

#[path = "../tests/live/peer.rs"]
#[allow(dead_code)]
mod peer;

use std::time::{Duration, Instant};

use peer::Peer;
use sigmalock::Client;

const ROUNDS: usize = 5_000;
const TASKS: usize = 64;
const SPAN: Duration = Duration::from_secs(3);

fn main() {
    for threads in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            tokio::spawn(measure(threads)).await.expect("measured");
        });
    }
}

async fn measure(threads: usize) {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let (mut acquire, mut release) = one_after_the_other(&client, ROUNDS).await;
    let rate = all_at_once(&client).await;
    println!(
        "{threads} thread(s): acquire {} us, p99 {} us; release {} us; {rate} cycles/s with {TASKS} tasks",
        percentile(&mut acquire, 50),
        percentile(&mut acquire, 99),
        percentile(&mut release, 50),
    );
}

async fn one_after_the_other(client: &Client, rounds: usize) -> (Vec<u64>, Vec<u64>) {
    let (mut acquire, mut release) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        let guard = client.lock("/bench").acquire().await.expect("acquired");
        acquire.push(begun.elapsed().as_micros() as u64);
        let begun = Instant::now();
        guard.release().await.expect("released");
        release.push(begun.elapsed().as_micros() as u64);
    }
    (acquire, release)
}

async fn all_at_once(client: &Client) -> u64 {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let client = client.clone();
            tokio::spawn(async move {
                let name = format!("/bench/{task}");
                let mut cycles = 0;
                while begun.elapsed() < SPAN {
                    let guard = client.lock(&name).acquire().await.expect("acquired");
                    guard.release().await.expect("released");
                    cycles += 1;
                }
                cycles
            })
        })
        .collect();
    let mut cycles = 0;
    for task in tasks {
        cycles += task.await.expect("finished");
    }
    cycles * 1_000 / begun.elapsed().as_millis().max(1) as u64
}

fn percentile(times: &mut [u64], percent: usize) -> u64 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}
