//! What another user of the machine can do to a peer that lets others in: nothing to its own user.

mod common;

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::machine::{Machine, wait_until};

/// Nobody.
const OTHER: u32 = 65_534;

/// Opens as many connections as it can, at the socket and by TCP, says the first word on each, and keeps them; then says so.
const FILL: &str = "
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (8000, 8000))
kept = []
for n in range(1500):
    for family, address in [(socket.AF_UNIX, sys.argv[1]), (socket.AF_INET, ('127.0.0.1', int(sys.argv[2])))]:
        s = socket.socket(family)
        s.settimeout(1)
        try:
            s.connect(address)
            s.send(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes(3) + b'\\x04' + bytes(5))
        except OSError: pass
        kept.append(s)
print('filled', flush=True)
time.sleep(60)
";

#[test]
fn another_user_breaks_nothing_and_fills_nothing_though_descriptors_are_few() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED, NOTHING TESTED: only root can be another user");
        return;
    }
    let machine = Machine::new();
    let everybody = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    };
    everybody(machine.path(), 0o755);
    let socket = machine.file("shared.sock");
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let (at, api) = (socket.display().to_string(), format!("127.0.0.1:{port}"));
    // Where everybody can run it.
    let program = machine.file("sigmalock").display().to_string();
    std::fs::copy(env!("CARGO_BIN_EXE_sigmalock"), &program).expect("a copy");
    let key = machine.file("swarm.key").display().to_string();
    assert_eq!(machine.run(&["key", "new", &key]).code, Some(0));
    let line = format!(
        "ulimit -n 1024; exec {program} node --found --yes --ephemeral --no-trace --swarm-key {key} \
         --listen 127.0.0.1:0 --socket {at} --api {api}"
    );
    let mut peer = Command::new("sh");
    let peer = peer.args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::null());
    let peer = peer.env("SIGMALOCK_CONFIG", "/dev/null").spawn().expect("a peer");
    wait_until("the peer serves", || socket.exists());
    everybody(&socket, 0o666);

    let owner = format!("unix:{at}");
    let held = machine.spawn(&["run", "--api", &owner, "/held", "--", "sleep", "30"]);
    wait_until("it is held", || {
        machine.run(&["locks", "--api", &owner]).stdout.contains("run sleep")
    });
    let mut broken = Command::new(&program);
    let broken = broken.args(["break", "/held", "--yes", "--api", &owner]).uid(OTHER).gid(OTHER);
    let broken = broken.env("SIGMALOCK_CONFIG", "/dev/null").current_dir("/");
    let broken = broken.output().expect("it runs");
    let why = String::from_utf8_lossy(&broken.stderr);
    assert!(why.contains("does not break locks for nobody; at its Unix socket, root may"), "{why}");
    let mut other = Command::new("/usr/bin/python3");
    let other = other.args(["-c", FILL, &at, &port.to_string()]).uid(OTHER).gid(OTHER);
    let mut other = other.current_dir("/").stdout(Stdio::piped()).spawn().expect("python3");
    let mut said = String::new();
    let stdout = other.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut said).expect("a line");
    assert_eq!(said, "filled\n");

    for turn in 0..20 {
        let begun = Instant::now();
        let ran = machine.run(&["run", "--api", &owner, "/x", "--", "true"]);
        assert_eq!(ran.code, Some(0), "turn {turn}: {}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(5), "turn {turn}: {:?}", begun.elapsed());
    }
    for mut process in [held, other, peer] {
        process.kill().expect("it runs");
        process.wait().expect("it ends");
    }
}
