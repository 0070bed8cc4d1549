//! Real processes: starting the user's own peer, and what happens to guards when processes are stopped and
//! killed.
//!
//! This program is all of them. Started as `node --private --detach` it starts a peer, as the client wants it; with
//! `role …` it is a program that uses one; without arguments it is the tests.

#[path = "live/peer.rs"]
#[allow(dead_code)]
mod peer;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use peer::Dir;
use rustix::process::{Pid, Signal, kill_process};
use sigmalock::{Client, ConnectError, blocking, place, settings};
use sigmalock_api::server::{Server, ServerConfig};
use sigmalock_node::{Config, Node};

const TTL: Duration = Duration::from_secs(2);
const FAIL_OVER: Duration = Duration::from_millis(200);

type Test = fn(&Path);
const TESTS: [(&str, Test); 7] = [
    ("programs_that_start_at_once_start_one_peer", programs_that_start_at_once_start_one_peer),
    ("a_command_that_fails_is_quoted", a_command_that_fails_is_quoted),
    ("a_missing_command_is_a_sentence_where_main_returns_it", a_missing_command_is_a_sentence),
    ("a_named_peer_is_never_started", a_named_peer_is_never_started),
    ("a_killed_holder_is_followed_at_once", a_killed_holder_is_followed_at_once),
    ("a_holder_that_was_stopped_past_its_deadline_is_out", a_stopped_holder_is_out),
    ("a_guard_is_lost_in_time_though_its_peer_is_stopped", a_stopped_peer_loses_its_guards),
];

fn main() -> Result<(), ConnectError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["node", "--private", "--detach"] => launch(),
        ["node", "--private"] => run(serve()),
        ["role", "start"] => run(start()),
        ["role", "hold", name] => run(hold(name.to_owned())),
        ["role", "blocking"] => drop(blocking::Client::connect_or_start()?),
        // What test runners ask to know which tests there are.
        _ if words.contains(&"--list") => {
            for (name, _) in TESTS {
                println!("{name}: test");
            }
        }
        _ => {
            let wanted = words.iter().find(|word| !word.starts_with('-')).copied().unwrap_or("");
            for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(wanted)) {
                let dir = Dir::new();
                test(&dir.0);
                println!("test {name} ... ok");
            }
        }
    }
    Ok(())
}

fn run(role: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(role);
}

// ── roles ─────────────────────────────────────────────────────────────────────────────────────────

/// Starts a peer, and ends when that serves, or has ended.
#[expect(clippy::zombie_processes, reason = "the peer outlives who starts it, as it should")]
fn launch() {
    let exe = std::env::current_exe().expect("this program");
    let mut peer = Command::new(exe).args(["node", "--private"]).spawn().expect("it runs");
    let socket = place::private_socket().expect("a place");
    while UnixStream::connect(&socket).is_err() {
        if let Some(status) = peer.try_wait().expect("a child") {
            std::process::exit(status.code().unwrap_or(1));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A peer, until it is killed or has nobody left for a second.
async fn serve() {
    if std::env::var_os("FAIL").is_some() {
        eprintln!("no, because of this");
        std::process::exit(3);
    }
    let config = Config { listen: Vec::new(), ..peer::config() };
    let node = Node::start(config).await.expect("a node");
    let socket = place::private_socket().expect("a place");
    let config = ServerConfig { unix: Some(socket), ..Default::default() };
    let server = Server::start(node.handle(), config).await.expect("a server");
    while server.idle_for().is_none_or(|idle| idle < Duration::from_secs(2)) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.stop().await;
}

/// Says how it came to its peer, and which one that is.
async fn start() {
    match Client::connect_or_start().await {
        Ok(client) => {
            let status = client.status().await.expect("a status");
            println!("{:?} {} {}", client.started(), client.peer(), status.pid);
        }
        Err(error) => println!("error {error}"),
    }
    // Kept for those who are later, so that all find the same.
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// Holds a lock; for every line it is given, says whether it still does.
async fn hold(name: String) {
    let client = Client::connect_or_start().await.expect("a peer");
    let guard = client.lock(name).ttl(TTL).acquire().await.expect("the lock");
    println!("holding {}", guard.token());
    let (asked, mut questions) = tokio::sync::mpsc::channel(1);
    let signal = guard.lost_signal();
    std::thread::spawn(move || {
        // On a thread of its own, as a program that is busy: nothing but the clock tells it.
        for _ in std::io::stdin().lines().map_while(Result::ok) {
            println!("{}", if signal.is_lost() { "lost" } else { "held" });
            let _ = asked.blocking_send(());
        }
    });
    while questions.recv().await.is_some() {}
}

// ── tests ─────────────────────────────────────────────────────────────────────────────────────────

/// A program of this kind, with its own idea of where peers are.
fn command(dir: &Path, words: &[&str]) -> Command {
    let exe = std::env::current_exe().expect("this program");
    let mut command = Command::new(&exe);
    command
        .args(words)
        .env("XDG_RUNTIME_DIR", dir)
        .env(place::BIN_VARIABLE, &exe)
        .env_remove(place::API_VARIABLE)
        .env(settings::PRIVATE_VARIABLE, "1")
        .env(settings::CONFIG_VARIABLE, "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

struct Holder {
    process: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Holder {
    fn new(dir: &Path, name: &str) -> Self {
        let mut process = command(dir, &["role", "hold", name]).spawn().expect("it runs");
        let asks = process.stdin.take().expect("a pipe");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, asks, answers }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn is_held(&mut self) -> bool {
        writeln!(self.asks).expect("asked");
        match self.line().as_str() {
            "held" => true,
            "lost" => false,
            other => panic!("{other:?}"),
        }
    }

    fn signal(&self, signal: Signal) {
        send(self.process.id(), signal);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("signalled");
}

/// The process of the peer that these programs use.
fn peer_pid(dir: &Path) -> u32 {
    let said = output(&mut command(dir, &["role", "start"]));
    said.rsplit(' ').next().and_then(|pid| pid.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

fn programs_that_start_at_once_start_one_peer(dir: &Path) {
    let programs: Vec<Child> =
        (0..5).map(|_| command(dir, &["role", "start"]).spawn().expect("it runs")).collect();
    let said: Vec<String> = programs
        .into_iter()
        .map(|program| program.wait_with_output().expect("it ran").stdout)
        .map(|said| String::from_utf8(said).expect("text"))
        .collect();
    let starters = said.iter().filter(|said| said.starts_with("Started ")).count();
    assert_eq!(starters, 1, "{said:?}");
    let found = said.iter().filter(|said| said.starts_with("Found ")).count();
    assert_eq!(found, 4, "{said:?}");
    let peer = |said: &String| said.split_once(' ').map(|(_, peer)| peer.to_owned());
    assert!(said.iter().all(|one| peer(one) == peer(&said[0])), "{said:?}");
}

fn a_command_that_fails_is_quoted(dir: &Path) {
    let said = output(command(dir, &["role", "start"]).env("FAIL", "yes"));
    assert!(said.contains("no, because of this") && said.contains("exit status: 3"), "{said}");
    let said = output(command(dir, &["role", "start"]).env(place::BIN_VARIABLE, "/nowhere/at/all"));
    assert!(said.starts_with("error") && said.contains("/nowhere/at/all"), "{said}");
}

fn a_missing_command_is_a_sentence(dir: &Path) {
    let missing = dir.join("bin/sigmalock");
    let ran = command(dir, &["role", "blocking"]).env(place::BIN_VARIABLE, &missing).output();
    let ran = ran.expect("it ends");
    let said = String::from_utf8(ran.stderr).expect("UTF-8");
    let sentence = format!(
        "Error: no peer is running, and none can be started: there is no {missing:?}; install sigmalock, say where it is \
         with SIGMALOCK_BIN, or name a peer with SIGMALOCK_API\n"
    );
    assert_eq!((ran.status.code(), said), (Some(1), sentence));
}

fn a_named_peer_is_never_started(dir: &Path) {
    let nowhere = format!("unix:{}/nobody.sock", dir.display());
    let mut said = command(dir, &["role", "start"]);
    let said = said.env_remove(settings::PRIVATE_VARIABLE).env(place::API_VARIABLE, &nowhere);
    let said = output(said);
    let address = nowhere.parse::<place::Address>().expect("an address").to_string();
    let reason = "there is no such socket; start a peer, or name the socket of one".to_owned();
    assert_eq!(said, format!("error {}", ConnectError::Unreachable { address, reason }));
    assert!(!dir.join("sigmalock").exists());
}

fn a_killed_holder_is_followed_at_once(dir: &Path) {
    let mut first = Holder::new(dir, "/a");
    assert!(first.line().starts_with("holding "));
    let mut second = Holder::new(dir, "/a");
    std::thread::sleep(Duration::from_millis(300));
    let killed = Instant::now();
    first.signal(Signal::KILL);
    assert!(second.line().starts_with("holding "));
    assert!(killed.elapsed() < FAIL_OVER, "{:?}", killed.elapsed());
}

fn a_stopped_holder_is_out(dir: &Path) {
    let mut holder = Holder::new(dir, "/a");
    assert!(holder.line().starts_with("holding "));
    assert!(holder.is_held());
    // For less than its lease: it is none the worse.
    holder.signal(Signal::STOP);
    std::thread::sleep(TTL / 4);
    holder.signal(Signal::CONT);
    assert!(holder.is_held());
    std::thread::sleep(TTL / 2);
    holder.signal(Signal::STOP);
    std::thread::sleep(TTL + TTL / 4);
    holder.signal(Signal::CONT);
    assert!(!holder.is_held(), "it overslept and does not know");
    // Its peer did not renew for it, so nobody has to wait for it any more.
    let woken = Instant::now();
    let mut next = Holder::new(dir, "/a");
    assert!(next.line().starts_with("holding "));
    assert!(woken.elapsed() < Duration::from_secs(1), "{:?}", woken.elapsed());
}

fn a_stopped_peer_loses_its_guards(dir: &Path) {
    let mut holder = Holder::new(dir, "/a");
    assert!(holder.line().starts_with("holding "));
    let peer = peer_pid(dir);
    send(peer, Signal::STOP);
    let stopped = Instant::now();
    while holder.is_held() {
        assert!(stopped.elapsed() < TTL, "held past its deadline");
        std::thread::sleep(Duration::from_millis(20));
    }
    send(peer, Signal::CONT);
}
