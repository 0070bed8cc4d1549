//! Workers that want the same locks, over all peers of a fleet.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sigmalock::Client;
use tokio::task::JoinHandle;

use crate::fleet::Peer;
use crate::witness::Witness;

/// How often those who wait are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Workers under way.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

struct Shared {
    witness: Witness,
    entries: AtomicU64,
    lost: AtomicU64,
    longest_wait_ms: AtomicU64,
}

impl Load {
    pub(crate) fn new(witness: &Witness) -> Self {
        let shared = Shared {
            witness: witness.clone(),
            entries: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            longest_wait_ms: AtomicU64::new(0),
        };
        Self { stop: Arc::default(), workers: Vec::new(), shared: Arc::new(shared) }
    }

    /// So many more workers at a peer, each of which wants one of these names again and again. They end
    /// with their peer.
    pub(crate) fn add(&mut self, peer: &Peer, workers: usize, names: &[&str]) {
        for worker in 0..workers {
            let socket = peer.socket.clone();
            let name = names[self.workers.len() % names.len()].to_owned();
            let (stop, shared) = (Arc::clone(&self.stop), Arc::clone(&self.shared));
            let who = format!("{}/{worker}", peer.pid());
            self.workers.push(tokio::spawn(work(socket, name, who, stop, shared)));
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.shared.entries.load(Ordering::Relaxed)
    }
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
    pub(crate) fn longest_wait(&self) -> Duration {
        Duration::from_millis(self.shared.longest_wait_ms.load(Ordering::Relaxed))
    }

    /// Lets everybody finish, and waits for them.
    pub(crate) async fn stop(&mut self, within: Duration) {
        self.stop.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        for worker in self.workers.drain(..) {
            let left = within.saturating_sub(begin.elapsed());
            let ended = tokio::time::timeout(left, worker).await;
            ended.expect("no worker is stuck").expect("no worker panics");
        }
    }
}

async fn work(
    socket: PathBuf, name: String, who: String, stop: Arc<AtomicBool>, shared: Arc<Shared>,
) {
    let Ok(client) = Client::connect(&format!("unix:{}", socket.display())).await else { return };
    let mut turn = who.len();
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let begin = Instant::now();
        let mut acquire = pin!(client.lock(&name).ttl(Duration::from_secs(3)).acquire());
        let acquired = loop {
            // Who is stuck has waited, too.
            let acquired = tokio::time::timeout(GLANCE, &mut acquire).await;
            let waited = begin.elapsed().as_millis() as u64;
            shared.longest_wait_ms.fetch_max(waited, Ordering::Relaxed);
            if let Ok(acquired) = acquired {
                break acquired;
            }
        };
        let Ok(guard) = acquired else {
            // Its peer is gone.
            return;
        };
        if guard.is_lost() {
            continue;
        }
        let token = shared.witness.shown(guard.token());
        shared.witness.enter(&name, token, &who);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(1 + turn as u64 % 5)) => {}
            () = guard.lost() => { shared.lost.fetch_add(1, Ordering::Relaxed); }
        }
        if !guard.is_lost() {
            shared.witness.write(&name, token, &who);
        }
        shared.witness.leave(&name, token);
        shared.entries.fetch_add(1, Ordering::Relaxed);
        let _ = guard.release().await;
    }
}
