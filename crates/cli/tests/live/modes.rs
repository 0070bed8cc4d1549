//! Readers, permits, and several locks at once, among the clients of three peers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use sigmalock::{AcquireError, Client};

use crate::fleet::{Fleet, Manner, Peer};

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
    let fourth = client.lock("/modes/gpu").permits(3).try_acquire().await;
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
    let error = tried.try_acquire().await.expect_err("one of them is taken");
    assert!(matches!(error.error, AcquireError::Busy) && error.name == "/modes/fork/2", "{error}");
    for free in ["/modes/fork/1", "/modes/fork/3"] {
        let guard = one.lock(free).wait(Duration::from_secs(5)).acquire().await;
        guard.expect("none of the others is kept").release().await.expect("and out");
    }
    held.release().await.expect("and out");
}

/// `sigmalock WORDS…` at a peer.
fn command(peer: &Peer, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
    command.args(words).env("SIGMALOCK_API", format!("unix:{}", peer.socket.display()));
    command.stdin(Stdio::null());
    command
}

/// `sigmalock run NAME FLAGS… -- true` at a peer.
fn run(peer: &Peer, name: &str, flags: &[&str]) -> Output {
    let words = [&["run", name], flags, &["--", "true"]].concat();
    command(peer, &words).output().expect("the binary starts")
}

/// Its exit code.
fn code(peer: &Peer, name: &str, flags: &[&str]) -> Option<i32> {
    run(peer, name, flags).status.code()
}

/// A `run` whose command stays inside until it is let go.
struct Inside {
    run: Child,
    token: u64,
    slot: Option<u64>,
}

impl Inside {
    /// Enters, and reads what the command has in its environment.
    fn enter(peer: &Peer, name: &str, flags: &[&str]) -> Self {
        let script = "echo $SIGMALOCK_TOKEN $SIGMALOCK_SLOT; exec cat";
        let words = [&["run", name], flags, &["--", "sh", "-c", script]].concat();
        let mut run = command(peer, &words);
        let run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut run = run.expect("the binary starts");
        let mut line = String::new();
        let read = run.stdout.as_mut().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        read.expect("it has an output").expect("it can be read");
        let mut numbers = line.split_whitespace().map(|n| n.parse().expect("a number"));
        let (token, slot) = (numbers.next().expect("a token"), numbers.next());
        Self { run, token, slot }
    }

    /// What people see of it.
    fn seen(&self) -> (Option<u64>, Option<u64>) {
        (Some(self.token), self.slot)
    }

    fn leave(mut self) {
        drop(self.run.stdin.take());
        assert!(self.run.wait().expect("it can be waited for").success());
    }
}

/// What `sigmalock WORDS… --json` says at a peer.
fn json(peer: &Peer, words: &[&str]) -> Value {
    let said = command(peer, words).arg("--json").output().expect("the binary starts");
    serde_json::from_slice(&said.stdout).expect("one object")
}

/// The token and the slot of a holder.
fn seen(holder: &Value) -> (Option<u64>, Option<u64>) {
    (holder["token"].as_u64(), holder["slot"].as_u64())
}

#[tokio::test]
async fn a_name_is_one_thing_at_a_time_and_people_see_which() {
    let fleet = Fleet::of(3).await;
    let (here, there, name) = (&fleet.peers[0], &fleet.peers[1], "/modes/one");
    let first = Inside::enter(here, name, &["--permits", "2"]);
    assert_eq!(code(there, name, &["--try"]), Some(75), "a writer beside a permit");
    assert_eq!(code(there, name, &["--shared", "--try"]), Some(75), "a reader beside a permit");
    let second = Inside::enter(there, name, &["--permits", "2"]);
    assert_eq!(code(here, name, &["--permits", "2", "--try"]), Some(75), "there are two");
    for patience in [&["--try"][..], &[]] {
        let refused = run(there, name, &[&["--permits", "3"], patience].concat());
        let sentence = "sigmalock: /modes/one is in use with --permits 2, not 3\n";
        assert_eq!(String::from_utf8_lossy(&refused.stderr), sentence);
        assert_eq!(refused.status.code(), Some(64));
    }
    let mut slots = [first.slot, second.slot];
    slots.sort_unstable();
    assert_eq!(slots, [Some(0), Some(1)]);

    let both = BTreeSet::from([first.seen(), second.seen()]);
    let listed = json(here, &["locks", name]);
    assert!(both.contains(&seen(&listed)), "{listed}: {both:?}");
    assert_eq!((listed["holders"].as_u64(), listed["permits"].as_u64()), (Some(2), Some(2)));
    let inspected = json(there, &["inspect", name]);
    let holders = inspected["holders"].as_array().expect("a list").iter();
    assert_eq!(holders.map(seen).collect::<BTreeSet<_>>(), both);
    for word in ["explain", "inspect"] {
        let words = command(here, &[word, name]).output().expect("the binary starts").stdout;
        let words = String::from_utf8_lossy(&words).into_owned();
        for inside in [&first, &second] {
            assert!(words.contains(&format!("token {}", inside.token)), "{words}");
            let slot = inside.slot.expect("it has one");
            assert!(words.contains(&format!("slot {slot} of 0–1")), "{words}");
        }
        assert!(!words.contains("is free"), "{words}");
    }
    first.leave();
    second.leave();

    let wide = Inside::enter(here, name, &["--permits", "3"]);
    assert_eq!(code(there, name, &["--permits", "2", "--try"]), Some(64), "the other way round");
    wide.leave();
    let writer = Inside::enter(here, name, &[]);
    assert_eq!(
        code(there, name, &["--permits", "2", "--try"]),
        Some(75),
        "a permit beside a writer"
    );
    assert_eq!(seen(&json(there, &["locks", name])), writer.seen());
    writer.leave();
    let reader = Inside::enter(here, name, &["--shared"]);
    assert_eq!(
        code(there, name, &["--permits", "2", "--try"]),
        Some(75),
        "a permit beside a reader"
    );
    assert_eq!(code(there, name, &["--shared", "--try"]), Some(0));
    assert_eq!(seen(&json(there, &["locks", name])), reader.seen());
    assert_eq!(seen(&json(there, &["inspect", name])["holder"]), reader.seen());
    reader.leave();
}

#[tokio::test]
async fn a_writer_that_waits_is_passed_neither_by_permits_nor_by_readers() {
    let fleet = Fleet::of(3).await;
    let (here, there, name) = (&fleet.peers[0], &fleet.peers[1], "/modes/turns");
    let permit = Inside::enter(here, name, &["--permits", "2"]);
    let mut writer = command(there, &["run", name, "--", "true"]).spawn().expect("it starts");
    let begin = Instant::now();
    while json(here, &["inspect", name])["waiting"] != 1 {
        assert!(begin.elapsed() < Duration::from_secs(5), "the writer does not wait");
    }
    for flags in [&["--permits", "2", "--try"][..], &["--shared", "--try"]] {
        assert_eq!(code(here, name, flags), Some(75), "{flags:?}");
    }
    assert!(writer.try_wait().expect("it can be asked").is_none(), "the permit is out");
    permit.leave();
    assert!(writer.wait().expect("it can be waited for").success());
    assert_eq!(code(here, name, &["--permits", "2", "--wait", "5s"]), Some(0));
}

/// Whether one of two permits is out, as those see it who want something else.
fn is_out(peer: &Peer, name: &str) {
    for (flags, expected) in [
        (&["--try"][..], 75),
        (&["--shared", "--try"], 75),
        (&["--permits", "3", "--try"], 64),
        (&["--permits", "2", "--wait", "10s"], 0),
    ] {
        assert_eq!(code(peer, name, flags), Some(expected), "{flags:?}");
    }
}

#[tokio::test]
async fn permits_keep_others_out_after_their_hosts_were_killed_and_restarted() {
    let mut fleet = Fleet::start(3, Manner { durable: true, ..Manner::default() }).await;
    let permit = Inside::enter(&fleet.peers[0], "/modes/kept", &["--permits", "2"]);
    for _ in 0..2 {
        let peer = fleet.kill(1);
        fleet.restart(peer).await;
        fleet.converged(Duration::from_secs(20)).await;
    }
    is_out(&fleet.peers[1], "/modes/kept");
    permit.leave();
}

#[tokio::test]
async fn permits_keep_others_out_when_new_hosts_come_and_old_ones_leave() {
    for open in [false, true] {
        let mut fleet = Fleet::start(3, Manner { open, ..Manner::default() }).await;
        let permit = Inside::enter(&fleet.peers[0], "/modes/moved", &["--permits", "2"]);
        for _ in 0..2 {
            fleet.join(&[]).await;
            fleet.converged(Duration::from_secs(20)).await;
        }
        fleet.leave(1).await;
        fleet.converged(Duration::from_secs(20)).await;
        is_out(&fleet.peers[3], "/modes/moved");
        permit.leave();
    }
}
