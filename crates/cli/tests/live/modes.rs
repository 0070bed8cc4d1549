//! Readers, permits, and several locks at once, among the clients of three peers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sigmalock::{AcquireError, Client};

use crate::fleet::Fleet;

const TTL: Duration = Duration::from_secs(10);
const WORKING: Duration = Duration::from_secs(6);

async fn clients(fleet: &Fleet) -> Vec<Client> {
    let mut clients = Vec::new();
    for peer in &fleet.peers {
        clients.push(peer.client().await);
    }
    clients
}

/// Who is inside, and what the tokens were, as seen from outside.
#[derive(Debug, Default)]
struct Library {
    readers: usize,
    writers: usize,
    most_readers: usize,
    reads: u64,
    writes: u64,
    highest: u64,
    highest_written: u64,
    objections: Vec<String>,
}

impl Library {
    fn enter(&mut self, writes: bool, token: u64) {
        let Self { readers, writers, .. } = *self;
        if writers > 0 || (writes && readers > 0) {
            self.objections.push(format!("in with {writers} writers and {readers} readers"));
        }
        let before = if writes { self.highest } else { self.highest_written };
        if token <= before {
            self.objections.push(format!("token {token} after {before}, writes: {writes}"));
        }
        self.highest = self.highest.max(token);
        if writes {
            self.writers += 1;
            self.writes += 1;
            self.highest_written = self.highest_written.max(token);
        } else {
            self.readers += 1;
            self.reads += 1;
            self.most_readers = self.most_readers.max(self.readers);
        }
    }
}

impl Library {
    fn leave(&mut self, writes: bool) {
        *(if writes { &mut self.writers } else { &mut self.readers }) -= 1;
    }
}

#[tokio::test]
async fn readers_are_inside_together_and_writers_get_their_turn_alone() {
    let fleet = Fleet::of(3).await;
    let clients = clients(&fleet).await;
    let library = Arc::new(Mutex::new(Library::default()));
    let end = Instant::now() + WORKING;
    let mut workers = Vec::new();
    for worker in 0..12 {
        let (client, library) = (clients[worker % 3].clone(), Arc::clone(&library));
        let writes = worker < 3;
        workers.push(tokio::spawn(async move {
            let mut entries = 0;
            while Instant::now() < end {
                let lock = client.lock("/modes/library").ttl(TTL);
                let lock = if writes { lock } else { lock.shared() };
                let guard = lock.acquire().await?;
                library.lock().expect("sane").enter(writes, guard.token());
                tokio::time::sleep(Duration::from_millis(if writes { 5 } else { 30 })).await;
                library.lock().expect("sane").leave(writes);
                guard.release().await.ok();
                entries += 1;
            }
            Ok::<u64, AcquireError>(entries)
        }));
    }
    for worker in workers {
        assert!(worker.await.expect("none panics").expect("all get in") > 5, "nobody starves");
    }
    let seen = library.lock().expect("sane");
    eprintln!(
        "{} reads, {} writes, {} readers at most",
        seen.reads, seen.writes, seen.most_readers
    );
    assert!(seen.objections.is_empty(), "{:?}", seen.objections);
    assert!(seen.most_readers >= 4, "readers share: {}", seen.most_readers);
}

#[tokio::test]
async fn three_permits_let_three_in_and_never_four() {
    let fleet = Fleet::of(3).await;
    let clients = clients(&fleet).await;
    let slots: Arc<Mutex<(BTreeMap<u32, u64>, usize)>> = Arc::default();
    let end = Instant::now() + WORKING;
    let mut workers = Vec::new();
    for worker in 0..9 {
        let (client, slots) = (clients[worker % 3].clone(), Arc::clone(&slots));
        workers.push(tokio::spawn(async move {
            let mut entries = 0;
            while Instant::now() < end {
                let guard = client.lock("/modes/gpu").permits(3).ttl(TTL).acquire().await?;
                let slot = guard.slot().expect("it says which");
                {
                    let (inside, most) = &mut *slots.lock().expect("sane");
                    assert!(slot < 3, "there is no slot {slot}");
                    assert_eq!(inside.insert(slot, guard.token()), None, "slot {slot} is taken");
                    *most = (*most).max(inside.len());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
                slots.lock().expect("sane").0.remove(&slot);
                guard.release().await.ok();
                entries += 1;
            }
            Ok::<u64, AcquireError>(entries)
        }));
    }
    let mut entries = 0;
    for worker in workers {
        let own = worker.await.expect("none finds its slot taken").expect("all get in");
        assert!(own > 5, "nobody starves: {own}");
        entries += own;
    }
    let most = slots.lock().expect("sane").1;
    eprintln!("{entries} entries, {most} at most");
    assert_eq!(most, 3, "all three are used at once");
    let client = &clients[0];
    let held = [0, 1, 2].map(|_| client.lock("/modes/gpu").permits(3).ttl(TTL).acquire());
    let held = futures_all(held).await;
    let fourth = client.lock("/modes/gpu").permits(3).try_once().acquire().await;
    assert!(matches!(fourth, Err(AcquireError::Busy)), "{fourth:?}");
    let slots: BTreeSet<_> = held.iter().map(|guard| guard.slot()).collect();
    assert_eq!(slots.len(), 3);
}

async fn futures_all<F: Future<Output = Result<sigmalock::Guard, AcquireError>>>(
    all: [F; 3],
) -> Vec<sigmalock::Guard> {
    let mut guards = Vec::new();
    for one in all {
        guards.push(one.await.expect("there is a permit"));
    }
    guards
}

#[tokio::test]
async fn several_names_at_once_are_all_or_none_and_nobody_waits_in_circles() {
    let fleet = Fleet::of(3).await;
    let clients = clients(&fleet).await;
    let inside: Arc<Mutex<BTreeMap<String, u64>>> = Arc::default();
    let end = Instant::now() + WORKING;
    let mut workers = Vec::new();
    for worker in 0..9usize {
        let (client, inside) = (clients[worker % 3].clone(), Arc::clone(&inside));
        workers.push(tokio::spawn(async move {
            let mut entries = 0usize;
            while Instant::now() < end {
                // In an order of its own each time.
                let name = |k: usize| format!("/modes/fork/{}", (worker + entries * k) % 5);
                let guards = client.locks([name(3), name(1), name(2)]).ttl(TTL).acquire().await;
                let guards = guards.map_err(|error| error.error)?;
                for guard in guards.iter() {
                    let mut inside = inside.lock().expect("sane");
                    let before = inside.insert(guard.name().to_owned(), guard.token());
                    assert_eq!(before, None, "{} is taken", guard.name());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                for guard in guards.iter() {
                    inside.lock().expect("sane").remove(guard.name());
                }
                guards.release().await.ok();
                entries += 1;
            }
            Ok::<usize, AcquireError>(entries)
        }));
    }
    for worker in workers {
        let own = tokio::time::timeout(WORKING * 4, worker).await.expect("nobody is stuck");
        assert!(own.expect("nobody finds a lock taken").expect("all get in") > 3, "all get on");
    }
    let (one, other) = (&clients[0], &clients[1]);
    let held = one.lock("/modes/fork/2").ttl(TTL).acquire().await.expect("it is free");
    let tried = other.locks(["/modes/fork/3", "/modes/fork/1", "/modes/fork/2"]);
    let error = tried.try_once().acquire().await.expect_err("one of them is taken");
    assert!(matches!(error.error, AcquireError::Busy) && error.name == "/modes/fork/2", "{error}");
    for free in ["/modes/fork/1", "/modes/fork/3"] {
        let guard = one.lock(free).wait(Duration::from_secs(5)).acquire().await;
        guard.expect("none of the others is kept").release().await.expect("and out");
    }
    held.release().await.expect("and out");
}
