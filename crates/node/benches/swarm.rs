//! How fast five peers are that share one thread, over loopback.
//!
//! `cargo bench -p sigmalock-node --bench swarm [-- SECONDS]`

use std::time::{Duration, Instant};

use sigmalock_core::{Acquire, LockReply, Name, Patience, Span};
use sigmalock_node::key::SwarmKey;
use sigmalock_node::{Config, Membership, Node, Session};

const PEERS: usize = 5;

async fn join(nodes: &[Node], key: &SwarmKey) -> Node {
    let join = match nodes.first() {
        Some(first) => {
            let status = first.handle().status().await.expect("a running peer");
            status.listening.iter().map(|address| address.parse().expect("an address")).collect()
        }
        None => Vec::new(),
    };
    let listen = vec!["/ip4/127.0.0.1/tcp/0".parse().expect("an address")];
    let config = Config { listen, join, ..Config::new(key.clone(), Membership::Open) };
    Node::start(config).await.expect("a peer")
}

fn wish(peer: usize, client: u64) -> Acquire {
    let name = Name::new(&format!("/bench/{peer}/{client}")).expect("a name");
    Acquire::exclusive(name, Span::from_secs(10), Patience::Forever)
}

/// Each client on a name of its own, in a closed loop. Cycles, and how long each acquire took.
async fn cycles(
    mut session: Session, peer: usize, clients: u64, until: Instant,
) -> (u64, Vec<Duration>) {
    let mut asked = vec![Instant::now(); clients as usize];
    for client in 0..clients {
        session.acquire(client, wish(peer, client)).expect("a running peer");
    }
    let (mut cycles, mut times) = (0, Vec::new());
    while Instant::now() < until {
        let Some((call, reply)) = session.next().await else { break };
        match reply {
            LockReply::Granted { .. } => {
                times.push(asked[call as usize].elapsed());
                session.release(call)
            }
            LockReply::Released => {
                cycles += 1;
                asked[call as usize] = Instant::now();
                session.acquire(call, wish(peer, call))
            }
            _ => Ok(()),
        }
        .expect("a running peer");
    }
    session.end();
    (cycles, times)
}

/// Seconds of CPU time that this process has used.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

async fn measure(nodes: &[Node], users: usize, clients: u64, span: Duration) {
    let (begin, cpu) = (Instant::now(), cpu_s());
    let until = begin + span;
    let runs = nodes.iter().take(users).enumerate().map(|(peer, node)| {
        let session = node.handle().open_session("bench".into()).expect("a session");
        tokio::spawn(cycles(session, peer, clients, until))
    });
    let (mut total, mut times) = (0, Vec::new());
    for run in futures::future::join_all(runs).await {
        let (cycles, mut took) = run.expect("no panic");
        total += cycles;
        times.append(&mut took);
    }
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!(
        "{:4} clients at {users} peers  {:8.0} cycles/s  {:6.1} µs of CPU each  acquire p50 {:?} p99 {:?}",
        users as u64 * clients,
        total as f64 / begin.elapsed().as_secs_f64(),
        (cpu_s() - cpu) * 1e6 / total as f64,
        at(50),
        at(99)
    );
}

fn main() {
    let seconds = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(3);
    let span = Duration::from_secs(seconds);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let key = SwarmKey::generate().expect("a key");
        let mut nodes = Vec::new();
        for _ in 0..PEERS {
            let node = join(&nodes, &key).await;
            nodes.push(node);
        }
        // All vote once every one of them has got somebody a lock.
        for (peer, node) in nodes.iter().enumerate() {
            let mut session = node.handle().open_session("warm".into()).expect("a session");
            session.acquire(0, wish(peer, 0)).expect("a running peer");
            while !matches!(session.next().await, Some((_, LockReply::Granted { .. }))) {}
            session.end();
        }
        let handle = nodes[0].handle();
        let others = handle.peers().await;
        let other = others.iter().find(|peer| !peer.is_self).expect("another peer").peer;
        let mut trips = handle.measure(other, 2_000).await.expect("an answer");
        trips.sort_unstable();
        println!("bare round trip p50 {:?}", Duration::from_nanos(trips[trips.len() / 2]));
        measure(&nodes, 1, 1, span).await;
        measure(&nodes, 5, 13, span).await;
        measure(&nodes, 5, 200, span).await;
        let counters = handle.status().await.expect("a running peer").counters;
        println!(
            "peer 0: {:.1} inputs a turn, {} turns, {} writes of {:.0} bytes, {} frames in",
            counters.inputs as f64 / counters.batches as f64,
            counters.batches,
            counters.writes_out,
            counters.bytes_out as f64 / counters.writes_out as f64,
            counters.frames_in
        );
    });
}
