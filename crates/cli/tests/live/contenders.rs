//! Contenders at every peer that want the same locks all the time, whatever becomes of the network, and
//! a record of who got in when.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sigmalock::Client;
use tokio::task::JoinSet;

use crate::fleet::Peer;
use crate::witness::Witness;

/// What they fight for.
pub(crate) const NAMES: [&str; 3] = ["/cut/one", "/cut/two", "/cut/three"];
/// The lease they ask for. What somebody holds that is cut off comes free when this is over.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// Some of them do not wait longer, and ask again.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// How long they are inside.
const INSIDE: Duration = Duration::from_millis(8);
/// One more, inside of which they stay for long, over cuts and leases. Nobody counts on getting it soon.
const LONG: (&str, Duration) = ("/cut/long", Duration::from_millis(1_500));

/// Somebody got in.
#[derive(Debug, Clone, Copy)]
struct Entry {
    machine: usize,
    name: &'static str,
    at: Instant,
}

/// All of them. They end with it.
#[derive(Default)]
pub(crate) struct Contenders {
    witness: Witness,
    entries: Arc<Mutex<Vec<Entry>>>,
    tasks: JoinSet<()>,
}

impl Contenders {
    /// One more for each name, at a peer.
    pub(crate) fn add(&mut self, peer: &Peer, machine: usize) {
        for (name, inside) in NAMES.map(|name| (name, INSIDE)).into_iter().chain([LONG]) {
            let work = Work {
                socket: peer.socket.clone(),
                machine,
                name,
                inside,
                witness: self.witness.clone(),
                entries: Arc::clone(&self.entries),
            };
            self.tasks.spawn(work.go_on());
        }
    }

    fn entries(&self) -> Vec<Entry> {
        self.entries.lock().expect("nobody panics here").clone()
    }

    /// Whether each of these machines has got each of the names since then.
    pub(crate) fn all_got_in(&self, machines: &[usize], since: Instant) -> bool {
        let entries = self.entries();
        let got = |machine, name| {
            entries.iter().any(|e| e.machine == machine && e.name == name && e.at > since)
        };
        machines.iter().all(|machine| NAMES.iter().all(|name| got(*machine, *name)))
    }

    /// How often these machines got in within this time.
    pub(crate) fn count(&self, machines: &[usize], from: Instant, to: Instant) -> usize {
        let counts = |e: &&Entry| machines.contains(&e.machine) && e.at > from && e.at <= to;
        self.entries().iter().filter(counts).count()
    }

    /// The longest time between then and now in which none of these machines got some name.
    pub(crate) fn longest_gap(&self, machines: &[usize], since: Instant) -> Duration {
        let entries = self.entries();
        let gap = |name| {
            let of_name =
                |e: &&Entry| machines.contains(&e.machine) && e.name == name && e.at > since;
            let (mut last, mut longest) = (since, Duration::ZERO);
            for at in entries.iter().filter(of_name).map(|e| e.at).chain([Instant::now()]) {
                longest = longest.max(at.duration_since(last));
                last = at;
            }
            longest
        };
        NAMES.into_iter().map(gap).max().unwrap_or_default()
    }

    /// What the witness objected to.
    pub(crate) fn objections(&self) -> Vec<String> {
        self.witness.objections()
    }
}

struct Work {
    socket: PathBuf,
    machine: usize,
    name: &'static str,
    inside: Duration,
    witness: Witness,
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Work {
    async fn go_on(self) {
        let address = format!("unix:{}", self.socket.display());
        let who = format!("machine {}", self.machine);
        let Ok(client) = Client::connect(&address).await else { return };
        loop {
            let lock = client.lock(self.name).ttl(TTL);
            // Some wait for as long as it takes, some lose patience.
            let lock = if self.name == NAMES[0] { lock } else { lock.wait(PATIENCE) };
            let Ok(guard) = lock.acquire().await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            if guard.is_lost() {
                continue;
            }
            self.witness.enter_by(self.name, guard.token(), &who, guard.lost_signal());
            let entry = Entry { machine: self.machine, name: self.name, at: Instant::now() };
            self.entries.lock().expect("nobody panics here").push(entry);
            tokio::select! {
                () = tokio::time::sleep(self.inside) => {}
                () = guard.lost() => {}
            }
            if !guard.is_lost() {
                self.witness.write(self.name, guard.token(), &who);
            }
            self.witness.leave(self.name, guard.token());
            let _ = guard.release().await;
        }
    }
}
