//! What is shipped for systemd is what this command understands.

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use common::host::{Host, NOBODY, ROOT, Who};
use common::machine::wait_until;
use sigmalock_node::key::SwarmKey;

const UNIT: &str = include_str!("../../../packaging/systemd/sigmalock.service");
const PROGRAM: &str = "/usr/bin/sigmalock";

fn command_line() -> Vec<&'static str> {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart="));
    line.expect("a command").split_whitespace().collect()
}

#[test]
fn the_units_command_line_serves_the_members_of_its_group_and_nobody_else() {
    let line = command_line();
    assert_eq!(line[0], PROGRAM);
    assert!(!line.contains(&"--found") && !line.contains(&"--yes"), "{line:?}");
    let Some(host) = Host::new() else { return };
    // As systemd-sysusers and systemd prepare it.
    let service = Who { uid: 977, home: "lib/sigmalock" };
    let append = |name: &str, line: &str| {
        let text = fs::read_to_string(host.file(name)).unwrap_or_default();
        fs::write(host.file(name), text + line).expect("ours");
    };
    append("etc/passwd", "sigmalock:x:977:977::/var/lib/sigmalock:/usr/sbin/nologin\n");
    append("etc/group", "sigmalock:x:977:\n");
    for (dir, mode) in [("run/sigmalock", 0o755), ("lib/sigmalock", 0o700)] {
        fs::create_dir(host.file(dir)).expect("new");
        fs::set_permissions(host.file(dir), Permissions::from_mode(mode)).expect("ours");
        chown(host.file(dir), Some(service.uid), Some(service.uid)).expect("we are root");
    }
    let settings = "[node]\nswarm-key = '/etc/sigmalock/swarm.key'\nlisten = '127.0.0.1:0'\njoin = '127.0.0.1:1'\n";
    host.write("etc/sigmalock/config.toml", settings);
    let key = host.file("etc/sigmalock/swarm.key");
    SwarmKey::generate().and_then(|new| new.write_new(&key)).expect("a key");
    chown(&key, Some(service.uid), None).expect("we are root");
    let mut peer = host.spawn(service, &line[1..]);
    wait_until("it serves", || host.file("run/sigmalock/peer.sock").exists());
    // It has nobody to be in a swarm with; but it answers.
    let by_root = host.run(ROOT, &["status"]);
    let as_member = host.run_as_member(NOBODY, service.uid, &["status"]);
    let stranger = host.run(NOBODY, &["status"]);
    peer.kill().and_then(|()| peer.wait()).expect("it can be killed");
    assert_eq!(by_root.code, Some(1), "{}", by_root.stderr);
    assert_eq!(as_member.code, Some(1), "{}", as_member.stderr);
    assert_eq!(stranger.code, Some(69), "{}", stranger.stderr);
    assert!(!host.has_private_peers());
}

/// Nothing here runs it in its sandbox. See `label` of the API: a process that is hidden is nobody's.
#[test]
fn the_unit_lets_the_peer_see_whose_process_a_label_names() {
    let hides = |line: &&str| line.starts_with("ProtectProc=") && *line != "ProtectProc=default";
    assert_eq!(UNIT.lines().find(hides), None);
}

#[test]
fn systemd_accepts_the_unit() {
    let there = Command::new("systemd-analyze").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED, NOTHING TESTED: there is no systemd-analyze");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let unit = dir.path().join("sigmalock.service");
    // It looks whether the program is there.
    fs::write(&unit, UNIT.replace(PROGRAM, env!("CARGO_BIN_EXE_sigmalock"))).expect("ours");
    let ran = Command::new("systemd-analyze").arg("verify").arg(&unit).output().expect("it ends");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let about_us: Vec<&str> = said.lines().filter(|line| line.contains("sigmalock")).collect();
    assert!(about_us.is_empty(), "{said}");
    assert!(ran.status.success(), "{said}");
}
