//! Other users of the machine: who is an operator, what one user may have, and other languages.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sigmalock::AcquireError;
use tokio::time::{sleep, timeout};

use crate::peer::Peer;

const SOON: Duration = Duration::from_secs(5);
/// Nobody.
pub(crate) const OTHER: u32 = 65_534;

/// Whether this process may run others as another user.
pub(crate) fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED, NOTHING TESTED: only root can be another user");
    }
    root
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An operator's word, byte by byte: how a connection begins, the head of the request, and its body.
fn break_request(name: &str) -> [Vec<u8>; 3] {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let mut head = vec![0x83, 0x86, 0x04];
    head.extend(text("/sigmalock.v1.Locks/Break"));
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
        head.push(0);
        head.extend([text(name), text(value)].concat());
    }
    let message = [vec![0x0a], text(name)].concat();
    let body = [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat();
    let hello = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, &[])].concat();
    [hello, frame(1, 4, 1, &head), frame(0, 1, 1, &body)]
}

/// Writes to a socket that was inherited, as another user.
fn write_as_other(socket: &UnixStream, bytes: &[u8]) {
    let socket: OwnedFd = socket.try_clone().unwrap().into();
    let mut cat = Command::new("cat");
    let mut cat = cat.uid(OTHER).gid(OTHER).stdin(Stdio::piped()).stdout(socket).spawn().unwrap();
    cat.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(cat.wait().unwrap().success());
}

#[tokio::test]
async fn an_inherited_socket_makes_nobody_an_operator() {
    if !is_root() {
        return;
    }
    let peer = Peer::start().await;
    let holder = peer.client().await;
    let [hello, head, body] = break_request("/a");
    // Who writes what: all by the other, only the wish, only the last byte, and nothing.
    let all = [&hello[..], &head, &body].concat();
    for own_len in [0, hello.len(), all.len() - 1, all.len()] {
        let guard = holder.lock("/a").acquire().await.unwrap();
        let mut socket = UnixStream::connect(peer.server.unix().unwrap()).unwrap();
        socket.write_all(&all[..own_len]).unwrap();
        if own_len < all.len() {
            write_as_other(&socket, &all[own_len..]);
            sleep(Duration::from_millis(300)).await;
            assert!(!guard.is_lost(), "broken by another user, after {own_len} bytes");
        } else {
            timeout(SOON, guard.lost()).await.expect("it is broken by the peer's own user");
        }
        drop(guard);
        sleep(Duration::from_millis(50)).await;
    }
}

/// Lets everybody connect, as a group of users may be allowed to.
pub(crate) fn open_to_all(peer: &Peer) {
    let everybody = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&peer.dir.0, everybody(0o755)).unwrap();
    std::fs::set_permissions(peer.server.unix().unwrap(), everybody(0o666)).unwrap();
}

/// A program of another user, in Python, which is told where the socket is and says when it is done.
fn other_user(peer: &Peer, script: &str) -> std::process::Output {
    let mut python = Command::new("/usr/bin/python3");
    let python = python.args(["-c", script]).arg(peer.server.unix().unwrap());
    python.uid(OTHER).gid(OTHER).current_dir("/").output().unwrap()
}

/// Connects, says all this as a user of its own, and waits until nothing more is answered.
const SAY: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.settimeout(1)
s.sendall(bytes.fromhex(WISH))
answer = b''
try:
    while True:
        more = s.recv(65536)
        if not more: break
        answer += more
except TimeoutError: pass
sys.stdout.buffer.write(answer)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_are_the_peers_user_root_and_the_members_of_a_group() {
    if !is_root() {
        return;
    }
    let group = nix::unistd::User::from_uid(OTHER.into()).unwrap().unwrap().gid;
    let group = nix::unistd::Group::from_gid(group).unwrap().unwrap().name;
    for operators in [None, Some("root".to_owned()), Some(group)] {
        let peer = Peer::start_with(|config| config.operators.clone_from(&operators)).await;
        open_to_all(&peer);
        let guard = peer.client().await.lock("/a").acquire().await.unwrap();
        let wish: String =
            break_request("/a").concat().iter().map(|b| format!("{b:02x}")).collect();
        let script = format!("WISH = '{wish}'\n{SAY}");
        let said = other_user(&peer, &script);
        assert!(said.status.success() && !said.stdout.is_empty(), "{said:?}");
        if operators.as_deref().is_some_and(|group| group != "root") {
            timeout(SOON, guard.lost()).await.expect("a member may");
        } else {
            assert!(!guard.is_lost(), "{operators:?}");
        }
    }
    let nobody =
        Peer::try_start_with(|config| config.operators = Some("no such group".into())).await;
    assert!(nobody.is_err_and(|error| error.to_string().contains("no such group")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_says_whose_it_is_whatever_it_says() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let options = sigmalock::ConnectOptions::new().label("run make by root");
    let _guard = options.connect(&peer.tcp()).await.unwrap().lock("/a").acquire().await.unwrap();
    let holder = client.inspect("/a").await.unwrap().holder.unwrap();
    assert_eq!(holder.label, "run make by root by TCP");
}

/// Opens as many connections as it can, says the first word on each, and keeps them.
const FILL: &str = "
import socket, sys
kept = []
for n in range(400):
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    try:
        s.connect(sys.argv[1])
        s.send(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes(3) + b'\\x04' + bytes(5))
    except OSError: pass
    kept.append(s)
import time; time.sleep(2)
open_ones = 0
for s in kept:
    try:
        while True:
            if not s.recv(65536): break
    except BlockingIOError: open_ones += 1
    except OSError: pass
print(open_ones)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_user_has_so_many_connections_and_no_more() {
    if !is_root() {
        return;
    }
    let peer = Peer::start().await;
    open_to_all(&peer);
    let filled = other_user(&peer, FILL);
    let open: usize = String::from_utf8_lossy(&filled.stdout).trim().parse().unwrap();
    assert!(open > 0 && open <= sigmalock_api::server::USER_CONNECTIONS_MAX, "{open} of 400");
    drop(peer.client().await.lock("/a").acquire().await.unwrap());
}

#[tokio::test]
async fn a_connection_on_which_nobody_wants_anything_is_closed() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").acquire().await.unwrap();
    let mut idle = tokio::net::UnixStream::connect(peer.server.unix().unwrap()).await.unwrap();
    let [hello, ..] = break_request("/a");
    tokio::io::AsyncWriteExt::write_all(&mut idle, &hello).await.unwrap();
    let begun = Instant::now();
    let end = async {
        let mut rest = [0; 4_096];
        let (mut read, mut write) = idle.split();
        while let Ok(len @ 1..) = tokio::io::AsyncReadExt::read(&mut read, &mut rest).await {
            // It answers pings, so it runs.
            for ping in rest[..len].windows(17).filter(|bytes| bytes[..5] == [0, 0, 8, 6, 0]) {
                let pong = frame(6, 1, 0, &ping[9..]);
                let _ = tokio::io::AsyncWriteExt::write_all(&mut write, &pong).await;
            }
        }
    };
    timeout(sigmalock_api::server::IDLE_MAX + SOON, end).await.expect("closed");
    assert!(begun.elapsed() > sigmalock_api::server::IDLE_MAX - SOON, "{:?}", begun.elapsed());
    assert!(!guard.is_lost(), "who holds a lock is not idle");
    assert!(matches!(client.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
}

/// What the newest gRPC of Python does, as it comes: the status, a lock, and who holds it.
const PYTHON: &str = "
import sys, queue, grpc
channel = grpc.insecure_channel(sys.argv[1])
same = lambda message: message
status = channel.unary_unary('/sigmalock.v1.Locks/Status', request_serializer=same, response_deserializer=same)
assert status(b'', timeout=5)
asks = queue.Queue()
asks.put(b'\\x0a\\x0a\\x0a\\x06python\\x10\\x01')
asks.put(b'\\x12\\x06\\x08\\x01\\x12\\x02/a')
session = channel.stream_stream('/sigmalock.v1.Locks/Session', request_serializer=same, response_deserializer=same)
answers = session(iter(asks.get, None), timeout=10)
kinds = [next(answers)[0] >> 3]
while kinds[-1] != 3: kinds.append(next(answers)[0] >> 3)
inspect = channel.unary_unary('/sigmalock.v1.Locks/Inspect', request_serializer=same, response_deserializer=same)
assert b'python by' in inspect(b'\\x0a\\x02/a', timeout=5)
asks.put(None)
print('granted by', grpc.__version__)
";

/// A Python that has gRPC, if there is one.
fn python_with_grpc() -> Option<String> {
    python_with("import grpc", "grpcio (Debian: python3-grpcio)")
}

fn python_with(modules: &str, what: &str) -> Option<String> {
    let named = std::env::var("SIGMALOCK_TEST_PYTHON").ok();
    // The last is what `cargo xtask test` makes.
    let made = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python");
    let made = made.join("bin/python3").display().to_string();
    let candidates =
        named.map_or(vec!["/usr/bin/python3".into(), "python3".into(), made], |it| vec![it]);
    let has_grpc = |python: &String| {
        let ran = Command::new(python).args(["-c", modules]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    let python = candidates.into_iter().find(has_grpc);
    if python.is_none() {
        eprintln!("SKIPPED, NOTHING TESTED: there is no Python with {what}");
    }
    python
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_of_python_uses_the_socket_as_it_comes() {
    let Some(python) = python_with_grpc() else { return };
    let peer = Peer::start().await;
    let path = peer.server.unix().unwrap().display().to_string();
    for address in [format!("unix:{path}"), format!("unix://{path}"), peer.tcp()] {
        let mut command = tokio::process::Command::new(&python);
        let ran = command.args(["-c", PYTHON, &address]).output().await.unwrap();
        let (said, wrong) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(said.contains("granted by"), "{address}: {wrong}");
        eprintln!("{address}: {}", said.trim());
    }
}

/// The program of docs/api.md, as it is there.
fn python_of_the_docs() -> &'static str {
    let docs = include_str!("../../../../docs/api.md");
    let (_, program) = docs.split_once("```python\n").unwrap();
    program.split_once("```").unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_of_the_docs_waits_is_inside_with_a_token_and_gives_the_lock_back() {
    let modules = "import grpc, grpc_tools.protoc, google.protobuf";
    let Some(python) = python_with(modules, "grpcio-tools (cargo xtask test makes one, by pip)")
    else {
        return;
    };
    let peer = Peer::start().await;
    let client = peer.client().await;
    let made = Command::new(&python)
        .args(["-m", "grpc_tools.protoc", "-I", "../api/proto", "sigmalock/v1/sigmalock.proto"])
        .args(
            ["--python_out", "--grpc_python_out"]
                .map(|out| format!("{out}={}", peer.dir.0.display())),
        )
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let guard = client.lock("/render/frame-17").acquire().await.unwrap();
    let mut program = tokio::process::Command::new(&python);
    program.args(["-c", python_of_the_docs()]).env("PYTHONPATH", &peer.dir.0);
    program.env("SIGMALOCK_API", peer.unix()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = program.kill_on_drop(true).spawn().unwrap();
    let waits = async {
        while client.status().await.unwrap().waiting == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON * 2, waits).await.expect("it waits");
    assert!(program.try_wait().unwrap().is_none());
    let before = guard.token();
    guard.release().await.unwrap();
    let mut said = String::new();
    let mut out = tokio::io::BufReader::new(program.stdout.take().unwrap());
    let line = tokio::io::AsyncBufReadExt::read_line(&mut out, &mut said);
    timeout(SOON, line).await.expect("it is inside").unwrap();
    let token: u64 =
        said.trim().strip_prefix("inside with token ").expect("it is").parse().unwrap();
    assert!(token > before, "{token} after {before}");
    let ended = timeout(SOON, program.wait_with_output()).await.expect("it ends").unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    client
        .lock("/render/frame-17")
        .try_acquire()
        .await
        .expect("given back")
        .release()
        .await
        .unwrap();
}

/// Holds a lock for two seconds at a time, and says so; then it does what any program does, until nobody listens.
const PYTHON_HOLDS: &str = "
import sys, queue, grpc
channel = grpc.insecure_channel(sys.argv[1])
same = lambda message: message
asks = queue.Queue()
asks.put(b'\\x0a\\x0a\\x0a\\x06python\\x10\\x01')
asks.put(b'\\x12\\x09\\x08\\x01\\x12\\x02/a\\x20\\xd0\\x0f')
session = channel.stream_stream('/sigmalock.v1.Locks/Session', request_serializer=same, response_deserializer=same)
for answer in session(iter(asks.get, None)):
    if answer[0] >> 3 == 3: print('held', flush=True)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_python_program_that_is_stopped_for_its_ttl_loses_its_lock_and_not_before() {
    let Some(python) = python_with_grpc() else { return };
    let ttl = Duration::from_secs(2);
    let peer = Peer::start().await;
    let client = peer.client().await;
    let socket = format!("unix:{}", peer.server.unix().unwrap().display());
    let mut holder = tokio::process::Command::new(python);
    let holder = holder.args(["-c", PYTHON_HOLDS, &socket]).stdout(Stdio::piped());
    let mut holder = holder.kill_on_drop(true).spawn().unwrap();
    let mut line = [0; 5];
    let said = tokio::io::AsyncReadExt::read_exact(holder.stdout.as_mut().unwrap(), &mut line);
    timeout(SOON, said).await.expect("it holds the lock").unwrap();
    assert_eq!(&line, b"held\n");
    sleep(ttl * 2).await;
    assert!(matches!(client.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
    let pid = i32::try_from(holder.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
    let stopped = Instant::now();
    let next = client.lock("/a").wait(ttl * 5).acquire().await.unwrap();
    let waited = stopped.elapsed();
    // It was renewed a third of its ttl ago, or less.
    assert!(waited > ttl / 2 && waited < ttl + Duration::from_secs(1), "{waited:?}");
    drop(next);
}
