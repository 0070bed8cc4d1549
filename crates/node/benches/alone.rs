//! How fast one peer is by itself, without a network: the driver, the protocol and the disk.
//!
//! `cargo bench -p sigmalock-node --bench alone [-- SECONDS]`

use std::time::{Duration, Instant};

use sigmalock_core::{Acquire, LockReply, Name, Patience, Span};
use sigmalock_node::key::SwarmKey;
use sigmalock_node::{Config, Membership, Node, Session};

fn config(data: Option<std::path::PathBuf>) -> Config {
    let key = SwarmKey::generate().expect("a key");
    Config { data, ..Config::new(key, Membership::Open) }
}

fn wish(client: u64) -> Acquire {
    let name = Name::new(&format!("/bench/{client}")).expect("a name");
    Acquire::exclusive(name, Span::from_secs(10), Patience::Forever)
}

/// Each client on a name of its own, in a closed loop; all in one session. Cycles a second.
async fn cycles(session: &mut Session, clients: u64, span: Duration) -> f64 {
    for client in 0..clients {
        session.acquire(client, wish(client)).expect("a running peer");
    }
    let (begin, mut cycles) = (Instant::now(), 0u64);
    while begin.elapsed() < span {
        match session.next().await {
            Some((call, LockReply::Granted { .. })) => session.release(call),
            Some((call, LockReply::Released)) => {
                cycles += 1;
                session.acquire(call, wish(call))
            }
            Some(_) => Ok(()),
            None => return f64::NAN,
        }
        .expect("a running peer");
    }
    cycles as f64 / begin.elapsed().as_secs_f64()
}

/// Seconds of CPU time that this process has used.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

async fn measure(what: &str, data: Option<std::path::PathBuf>, span: Duration) {
    for clients in [1, 64, 1_024] {
        let data = data.as_ref().map(|dir| dir.join(clients.to_string()));
        let node = Node::start(config(data)).await.expect("a peer");
        let mut session = node.handle().open_session("bench".into()).expect("a session");
        let cpu_before = cpu_s();
        let rate = cycles(&mut session, clients, span).await;
        let cpu = (cpu_s() - cpu_before) / (rate * span.as_secs_f64());
        let counters = node.handle().status().await.expect("a running peer").counters;
        println!(
            "{what:9} {clients:5} clients  {rate:9.0} cycles/s  {:6.1} µs of CPU each  {:6.1} inputs a turn  {} commits",
            1e6 * cpu,
            counters.inputs as f64 / counters.batches.max(1) as f64,
            counters.commits
        );
        session.end();
        node.leave().await.expect("an orderly end");
    }
}

fn main() {
    let seconds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(3);
    let span = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        measure("ephemeral", None, span).await;
        let dir = std::env::temp_dir().join(format!("sigmalock-bench-{}", std::process::id()));
        measure("durable", Some(dir.clone()), span).await;
        let _ = std::fs::remove_dir_all(dir);
    });
}
