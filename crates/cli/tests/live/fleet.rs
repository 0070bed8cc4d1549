//! Real peers: processes of the real binary on loopback, each with its own socket and data.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sigmalock::Client;
use sigmalock::report::PeerStatus;
use sigmalock_node::key::SwarmKey;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::router::Router;

/// A directory of its own that goes when the test does.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a Unix socket has at most 107 bytes.
        let path = std::env::temp_dir().join(format!("sl-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A swarm key in it, made if need be.
    pub(crate) fn key(&self) -> PathBuf {
        let path = self.0.join("swarm.key");
        if !path.exists() {
            SwarmKey::generate().and_then(|key| key.write_new(&path)).expect("a swarm key");
        }
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the peers of a fleet are started.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    /// Whether they keep their votes on disk.
    pub(crate) durable: bool,
    /// Whether they go by whom they see, instead of voting on who is in.
    pub(crate) open: bool,
    /// Further flags for all of them, each with its value.
    pub(crate) arguments: Vec<String>,
}

/// One peer.
pub(crate) struct Peer {
    pub(crate) child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) log: PathBuf,
    data: PathBuf,
    address: String,
}

impl Peer {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
    /// Runs `sigmalock WORDS… --api …` against it.
    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sigmalock"));
        command.args(words).arg("--api").arg(format!("unix:{}", self.socket.display()));
        command.stdin(Stdio::null()).output().expect("the binary starts")
    }
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
    /// What it has logged.
    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).expect("a log")
    }
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, signal);
        }
    }
    pub(crate) async fn client(&self) -> Client {
        Client::connect(&format!("unix:{}", self.socket.display()))
            .await
            .expect("the peer answers on its socket")
    }
    /// Its resident memory.
    pub(crate) fn rss_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(0.0) / 1_024.0
    }
    /// The processor time it has used.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()));
        let stat = stat.unwrap_or_default();
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

/// Fleets measure times, so there is one at a time.
static TURN: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// A swarm of processes. All of them end with it.
pub(crate) struct Fleet {
    scratch: Scratch,
    manner: Manner,
    /// The network, if it is not loopback.
    router: Option<Router>,
    started: usize,
    pub(crate) begin: Instant,
    /// How long it took until all had found each other.
    pub(crate) formed_in: Duration,
    pub(crate) peers: Vec<Peer>,
    /// Last: the next fleet begins when all of this one is gone.
    _turn: OwnedMutexGuard<()>,
}

impl Fleet {
    /// So many peers that all know each other.
    pub(crate) async fn start(size: usize, manner: Manner) -> Self {
        let mut fleet = Self::nobody(manner).await;
        for _ in 0..size {
            fleet.join(&[]).await;
        }
        fleet.converged(Duration::from_secs(20)).await;
        fleet.formed_in = fleet.begin.elapsed();
        fleet.ready(Duration::from_secs(10)).await;
        fleet
    }

    /// No peers yet.
    pub(crate) async fn nobody(manner: Manner) -> Self {
        let _turn = Arc::clone(&TURN).lock_owned().await;
        let (scratch, peers) = (Scratch::new(), Vec::new());
        scratch.key();
        let (begin, formed_in) = (Instant::now(), Duration::ZERO);
        Self { _turn, scratch, manner, router: None, started: 0, begin, formed_in, peers }
    }

    /// So many peers that agree on who is in, each on a machine of its own, with machines to spare for
    /// two more. `None` where that cannot be.
    pub(crate) async fn routed(size: usize, manner: Manner) -> Option<Self> {
        let mut fleet = Self::machines(size + 2, manner).await?;
        for size in 1..=size {
            fleet.join(&[]).await;
            fleet.agrees_on(size, Duration::from_secs(20)).await;
        }
        fleet.formed_in = fleet.begin.elapsed();
        Some(fleet)
    }

    /// No peers yet, but so many machines for them.
    pub(crate) async fn machines(count: usize, manner: Manner) -> Option<Self> {
        let mut fleet = Self::nobody(manner).await;
        fleet.router = Some(Router::new(count)?);
        Some(fleet)
    }

    /// The network between machines.
    pub(crate) fn router(&self) -> &Router {
        self.router.as_ref().expect("a fleet with a router")
    }

    /// The binary, on the machine of a peer.
    fn binary(&self, number: usize) -> Command {
        let here = || Command::new(env!("CARGO_BIN_EXE_sigmalock"));
        self.router.as_ref().map_or_else(here, |router| router.command(number))
    }

    /// Waits until those who have just joined vote: locks spread over all of them can be had.
    pub(crate) async fn ready(&self, within: Duration) {
        let client = self.peers[0].client().await;
        let mut probes = tokio::task::JoinSet::new();
        for probe in 0..50 {
            let client = client.clone();
            probes.spawn(async move {
                let lock = client.lock(format!("/ready/{probe}")).wait(within);
                lock.acquire().await.is_ok()
            });
        }
        assert!(probes.join_all().await.into_iter().all(|ready| ready), "the fleet does not vote");
    }

    /// Ephemeral peers that agree on who is in.
    pub(crate) async fn of(size: usize) -> Self {
        Self::start(size, Manner::default()).await
    }

    /// Ephemeral peers with open membership.
    pub(crate) async fn open(size: usize) -> Self {
        Self::start(size, Manner { open: true, ..Manner::default() }).await
    }

    /// Starts one more, which joins by way of the first that lives. Returns its index.
    pub(crate) async fn join(&mut self, extra: &[&str]) -> usize {
        let number = self.started;
        self.started += 1;
        let data = self.scratch.path().join(format!("data-{number}"));
        let socket = self.scratch.path().join(format!("{number}.sock"));
        let peer = self.spawn(number, data, socket, extra).await;
        self.peers.push(peer);
        self.peers.len() - 1
    }

    /// Ends a peer as a power cut would.
    pub(crate) fn kill(&mut self, index: usize) -> Peer {
        let mut peer = self.peers.remove(index);
        peer.child.kill().expect("a peer can be killed");
        let _ = peer.child.wait();
        peer
    }

    /// Asks a peer to leave, and waits until it has.
    pub(crate) async fn leave(&mut self, index: usize) -> Peer {
        let mut peer = self.peers.remove(index);
        peer.signal(Signal::TERM);
        let begin = Instant::now();
        while peer.child.try_wait().expect("a child can be waited for").is_none() {
            assert!(begin.elapsed() < Duration::from_secs(15), "a peer does not leave");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        peer
    }

    /// Starts a peer that has ended again, with its data if it kept any.
    pub(crate) async fn restart(&mut self, peer: Peer) -> usize {
        self.restart_with(peer, &[]).await
    }

    /// The same, with these flags.
    pub(crate) async fn restart_with(&mut self, peer: Peer, extra: &[&str]) -> usize {
        let number = self.started;
        self.started += 1;
        let peer = self.spawn(number, peer.data.clone(), peer.socket.clone(), extra).await;
        self.peers.push(peer);
        self.peers.len() - 1
    }

    /// Starts a peer with data that was found elsewhere.
    pub(crate) async fn start_with_data(&mut self, data: &Path) -> usize {
        let number = self.started;
        self.started += 1;
        let socket = self.scratch.path().join(format!("{number}.sock"));
        let peer = self.spawn(number, data.to_owned(), socket, &[]).await;
        self.peers.push(peer);
        self.peers.len() - 1
    }

    async fn spawn(&self, number: usize, data: PathBuf, socket: PathBuf, extra: &[&str]) -> Peer {
        let log = self.scratch.path().join(format!("{number}.log"));
        let mut command = self.binary(number);
        command.args(["node", "--no-trace", "--config", "/dev/null", "--socket"]).arg(&socket);
        let given = self.manner.arguments.iter().map(String::as_str).chain(extra.iter().copied());
        if !given.clone().any(|word| word == "--swarm-key") {
            command.arg("--swarm-key").arg(self.scratch.key());
        }
        if extra.contains(&"--found") {
            command.arg("--yes");
        }
        if !extra.contains(&"--listen") {
            let address = |_: &Router| Router::address(number);
            let address = self.router.as_ref().map_or("127.0.0.1".into(), address);
            command.args(["--listen", &format!("{address}:0")]);
        }
        if !extra.contains(&"--name") {
            command.args(["--name", &format!("m{number}")]);
        }
        if self.manner.durable {
            command.arg("--data").arg(&data);
        } else {
            command.arg("--ephemeral");
        }
        if self.manner.open && !extra.contains(&"--membership") {
            command.args(["--membership", "open"]);
        }
        match self.peers.first() {
            _ if extra.iter().any(|word| ["--found", "--join"].contains(word)) => {}
            Some(contact) => drop(command.args(["--join", contact.address()])),
            None => drop(command.args(["--found", "--yes"])),
        }
        // What is said of one peer replaces what is said of all.
        for flag in
            self.manner.arguments.chunks(2).filter(|flag| !extra.contains(&flag[0].as_str()))
        {
            command.args(flag);
        }
        command.args(extra);
        let file = std::fs::File::create(&log).expect("a log can be written");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(file))
            .spawn()
            .expect("the binary starts");
        let mut peer = Peer { child, socket, log, data, address: String::new() };
        let begin = Instant::now();
        loop {
            if let Ok(client) = Client::connect(&format!("unix:{}", peer.socket.display())).await
                && let Ok(status) = client.status().await
                && let Some(address) = status.listening.first()
            {
                peer.address = address.clone();
                return peer;
            }
            let ended = peer.child.try_wait().expect("a child can be waited for");
            let said = || std::fs::read_to_string(&peer.log).unwrap_or_default();
            assert!(ended.is_none(), "a peer ended at once: {}", said());
            assert!(begin.elapsed() < Duration::from_secs(10), "a peer does not start: {}", said());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A name that can do without one of the peers: it hosts no more than n − m of its replicas. With few
    /// peers and hashing, some names cannot, and wait for the longest lease when that peer dies.
    pub(crate) async fn name_without(&self, index: usize, stem: &str) -> String {
        let client = self.peers[0].client().await;
        let doomed = self.peers[index].client().await.peer().to_owned();
        for number in 0..1_000 {
            let name = format!("{stem}-{number}");
            let lock = client.inspect(&name).await.expect("a name can be inspected");
            let hosted = lock.replicas.iter().filter(|replica| replica.host == doomed).count();
            if hosted <= (lock.replicas_total - lock.quorum) as usize {
                self.everybody_votes(&name).await;
                return name;
            }
        }
        panic!("one peer hosts everything");
    }

    /// Until all replicas of a name vote: in a swarm that is minutes old nobody waits for anybody's word.
    async fn everybody_votes(&self, name: &str) {
        let client = self.peers[0].client().await;
        client.lock(name).acquire().await.expect("it is free").release().await.expect("held");
        let abstains = async || {
            let lock = client.inspect(name).await.expect("a name can be inspected");
            lock.replicas.iter().any(|r| !r.answered || r.abstains_for_ms > 0)
        };
        let begin = Instant::now();
        while abstains().await {
            assert!(begin.elapsed() < Duration::from_secs(30), "some do not vote");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until every peer knows a view of so many members and can grant locks in it. Returns the view.
    pub(crate) async fn agrees_on(&self, members: usize, within: Duration) -> u64 {
        let begin = Instant::now();
        loop {
            let mut statuses = Vec::new();
            for peer in &self.peers {
                statuses.push(peer.client().await.status().await.expect("it has a status"));
            }
            let view = statuses[0].view;
            let agree = |s: &PeerStatus| {
                s.can_grant && s.votes && s.view == view && s.members as usize == members
            };
            if statuses.iter().all(agree) {
                return view;
            }
            let words = |s: &PeerStatus| {
                let why = if s.can_grant { &s.why_no_vote } else { &s.why_not };
                format!("{}: view {} of {}, {why}", s.peer, s.view, s.members)
            };
            let said: Vec<String> = statuses.iter().map(words).collect();
            assert!(begin.elapsed() < within, "no view of {members}:\n{}", said.join("\n"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until every peer sees all the others.
    pub(crate) async fn converged(&self, within: Duration) {
        let begin = Instant::now();
        for peer in &self.peers {
            let client = peer.client().await;
            loop {
                let peers = client.peers().await.unwrap_or_default();
                let up = peers.iter().filter(|peer| peer.connected).count();
                if up >= self.peers.len() {
                    break;
                }
                assert!(begin.elapsed() < within, "only {up} of {} peers seen", self.peers.len());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for peer in &mut self.peers {
            let _ = peer.child.kill();
            let _ = peer.child.wait();
        }
    }
}

impl Peer {
    /// Where it keeps its votes.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }
}
