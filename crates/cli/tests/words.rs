//! The first words between a user and the command: how a line may be written, and what is said meanwhile.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::machine::{Machine, id, wait_until};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Somebody who holds a lock until the test ends.
fn holder(machine: &Machine, words: &[&str]) -> Child {
    let inside = machine.file("inside");
    let script = format!("touch {}; sleep 60", inside.display());
    let holder = machine.spawn(&[words, &["sh", "-c", &script]].concat());
    wait_until("the holder is inside", || inside.exists());
    holder
}

fn end(mut holder: Child) {
    kill_process(id(&holder), Signal::TERM).expect("it lives");
    holder.wait().expect("it ends");
}

/// Both ends of a terminal.
fn terminal() -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("granted");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
    (ours.into(), theirs)
}

#[test]
fn a_command_needs_no_dashes_and_flags_behind_its_first_word_are_its_own() {
    let machine = Machine::new();
    let show = "echo $SIGMALOCK_NAME \"$0\" \"$@\"";
    let words = ["run", "--ttl", "5s", "/x", "--try", "sh", "-c", show, "-e", "--wait", "--help"];
    let ran = machine.run(&words);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "/x -e --wait --help\n"),
        "{}",
        ran.stderr
    );
    let ran = machine.run(&["run", "/x", "--", "sh", "-c", show, "a", "--", "b"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "/x a -- b\n"), "{}", ran.stderr);
    let unclear = machine.run(&["run", "/x", "sh", "-c", show, "a", "--", "b"]);
    assert_eq!((unclear.code, unclear.stdout.as_str()), (Some(64), ""));
    let line = format!("sigmalock run /x -- sh -c '{show}' a -- b");
    assert!(unclear.stderr.contains(&line), "{}", unclear.stderr);
}

#[test]
fn a_lock_is_one_with_and_without_its_leading_slash() {
    let machine = Machine::new();
    let shown = machine.run(&["run", "b,/a,/b,a", "sh", "-c", "echo $SIGMALOCK_NAME"]);
    assert_eq!(shown.stdout, "/a,/b\n", "{}", shown.stderr);
    let held = holder(&machine, &["run", "backup"]);
    for name in ["backup", "/backup"] {
        let tried = machine.run(&["run", name, "--try", "--", "true"]);
        assert_eq!(tried.code, Some(75), "{name}");
        assert!(tried.stderr.starts_with("sigmalock: /backup: the lock"), "{}", tried.stderr);
        let explained = machine.run(&["explain", name]).stdout;
        assert!(explained.starts_with("/backup is held by run sh ("), "{explained}");
        assert!(machine.run(&["inspect", name]).stdout.starts_with("/backup\nholder   run sh ("));
        let listed = machine.run(&["locks", &name[..4], "--json"]).stdout;
        assert!(listed.starts_with("{\"name\":\"/backup\""), "{listed}");
    }
    let broken = machine.run(&["break", "backup,/backup", "--yes"]);
    assert!(broken.stdout.starts_with("/backup: run sh ("), "{}{}", broken.stdout, broken.stderr);
    assert_eq!(broken.stdout.lines().count(), 1, "once");
    assert_eq!(held.wait_with_output().expect("it ends").status.code(), Some(76));
}

#[test]
fn where_nobody_looks_waiting_is_one_line_that_names_the_holder() {
    let machine = Machine::new();
    let held = holder(&machine, &["run", "/x", "--"]);
    let waiters = [(); 3].map(|()| machine.spawn(&["run", "/x", "--", "true"]));
    std::thread::sleep(Duration::from_millis(4_500));
    let words = format!("sigmalock: waiting for /x; it is held by run sh ({}) by ", held.id());
    end(held);
    for waiter in waiters {
        let said = waiter.wait_with_output().expect("it ends").stderr;
        let said = String::from_utf8(said).expect("UTF-8");
        assert!(said.starts_with(&words) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(
        machine.run(&["run", "/x", "--", "true"]).stderr,
        "",
        "who need not wait says nothing"
    );
}

#[test]
fn at_a_terminal_waiting_tells_the_place_and_the_holder() {
    let machine = Machine::new();
    let held = holder(&machine, &["run", "/x", "--"]);
    let (mut ours, theirs) = terminal();
    let mut waiter = machine.command(&["run", "/x", "--", "true"]);
    let mut waiter = waiter.stderr(Stdio::from(theirs)).spawn().expect("it starts");
    let mut said = String::new();
    let words = format!("waiting for /x, 1 ahead; it is held by run sh ({}) by ", held.id());
    wait_until("it tells", || {
        let mut bytes = [0; 1_024];
        let count = ours.read(&mut bytes).expect("a terminal");
        said.push_str(&String::from_utf8_lossy(&bytes[..count]));
        said.contains(&words)
    });
    end(held);
    assert!(waiter.wait().expect("it ends").success());
}

#[test]
fn whoever_breaks_a_lock_sees_first_whom_that_puts_out() {
    let machine = Machine::new();
    let held = holder(&machine, &["run", "/x", "--"]);
    let ask = |answer: &[u8]| {
        let (mut ours, theirs) = terminal();
        let mut asked = machine.command(&["break", "x,/nobody"]);
        let asked = asked.stdin(Stdio::from(theirs)).spawn().expect("it starts");
        ours.write_all(answer).expect("a terminal");
        let output = asked.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, said) = ask(b"n\n");
    let holder = format!("/x: it is held by run sh ({}) by ", held.id());
    assert!(said.contains(&holder) && said.contains(", with token "), "{said}");
    assert!(said.starts_with("/nobody: nobody is known to hold it.\n"), "{said}");
    assert!(said.contains("Break them? [y/N] "), "{said}");
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75), "as it was");
    assert_eq!(ask(b"y\n").0, Some(1), "nobody holds one of them");
    assert_eq!(held.wait_with_output().expect("it ends").status.code(), Some(76));
}

#[test]
fn a_private_peer_that_serves_another_socket_is_told_with_its_address() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["run", "/x", "true"]).code, Some(0));
    let elsewhere = machine.file("elsewhere");
    std::fs::create_dir(&elsewhere).expect("new");
    let run = |words: &[&str]| {
        let mut command = machine.command(words);
        command.env("XDG_RUNTIME_DIR", &elsewhere).env_remove("SIGMALOCK_PRIVATE");
        let output = command.output().expect("it ends");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let (code, said) = run(&["run", "/x", "--private", "true"]);
    assert_eq!(code, Some(69), "{said}");
    let address = format!("unix:{}", machine.file("run/sigmalock/private.sock").display());
    assert!(said.contains(&format!("say --api {address} (SIGMALOCK_API)")), "{said}");
    assert!(!said.contains("one of its own"), "two peers are not what is wanted: {said}");
    assert_eq!(run(&["run", "/x", "--api", &address, "true"]).0, Some(0), "as it was told");
}

#[test]
fn who_waits_for_the_lease_of_a_holder_whose_peer_was_killed_is_told_so() {
    let machine = Machine::new();
    let held = holder(&machine, &["run", "/x", "--ttl", "6s"]);
    kill_process(machine.peer().expect("it runs"), Signal::KILL).expect("it lives");
    assert_eq!(held.wait_with_output().expect("it ends").status.code(), Some(76));
    let ran = machine.run(&["run", "/x", "true"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = ran.stderr.lines().find(|line| line.contains("waiting for /x"));
    let line = line.expect("it says that it waits");
    assert!(
        line.contains("who had it may still be inside") && line.contains("the lease ends in "),
        "{line}"
    );
    let tried = machine.run(&["run", "/x", "--try", "true"]);
    assert_eq!(tried.code, Some(0), "it is over: {}", tried.stderr);
}

#[test]
fn a_command_that_would_wait_for_itself_is_told_so_at_once() {
    let machine = Machine::new();
    let sigmalock = env!("CARGO_BIN_EXE_sigmalock");
    let inside = |outer: &[&str], inner: &[&str]| {
        machine.run(&[&["run"], outer, &["--", sigmalock], inner].concat())
    };
    let run = |flags: &[&'static str]| [&["run", "x"], flags, &["--", "echo", "in"]].concat();
    let refused = |ran: common::Ran| {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(64), ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("/x: the command that this belongs to holds"),
            "{}",
            ran.stderr
        );
    };
    let enters = |ran: common::Ran| {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "in\n"), "{}", ran.stderr);
    };
    refused(inside(&["x"], &run(&[])));
    refused(inside(&["a,x"], &run(&["--wait", "1h"])));
    refused(inside(&["x"], &["lock", "/x"]));
    refused(inside(&["x"], &[&["run", "y", "--", sigmalock], &run(&[])[..]].concat()));
    refused(inside(&["x", "--shared"], &run(&[])));
    refused(inside(&["x", "--permits", "1"], &run(&["--permits", "1"])));
    enters(inside(&["x", "--shared"], &run(&["--shared"])));
    enters(inside(&["x", "--permits", "2"], &run(&["--permits", "2"])));
    enters(inside(&["y"], &run(&[])));
    assert_eq!(inside(&["x"], &run(&["--try"])).code, Some(75), "it does not wait");
    // It goes by who is inside, not by what was so once.
    let told = machine.run(&["run", "x", "sh", "-c", "echo $SIGMALOCK_INSIDE"]).stdout;
    assert!(told.trim().ends_with(":/x"), "{told}");
    let mut later = machine.command(&run(&[]));
    assert!(later.env("SIGMALOCK_INSIDE", told.trim()).status().expect("it ends").success());
    // Of two permits, which may have one token, only one is around it.
    let mut other = machine.spawn(&["run", "p", "--permits", "2", "--", "sleep", "2"]);
    let both = format!("{sigmalock} run p --permits 2 echo in");
    enters(machine.run(&["run", "p", "--permits", "2", "--", "sh", "-c", &both]));
    other.wait().expect("it ends");
    // Who means to be next says so.
    let next = format!(
        "env -u SIGMALOCK_INSIDE {sigmalock} run x touch {} &",
        machine.file("next").display()
    );
    assert_eq!(machine.run(&["run", "x", "--", "sh", "-c", &next]).code, Some(0));
    wait_until("the next is in", || machine.file("next").exists());
}

#[test]
fn a_peer_that_does_not_come_to_be_of_use_says_why_within_two_seconds() {
    let machine = Machine::new();
    let key = key(&machine);
    let node =
        ["node", "--no-trace", "--swarm-key", &key, "--listen", "127.0.0.1:0", "--ephemeral"];
    let mut peer = machine.spawn(&[&node[..], &["--join", "127.0.0.1:1"]].concat());
    std::thread::sleep(Duration::from_millis(2_500));
    kill_process(id(&peer), Signal::KILL).expect("it lives");
    let mut said = String::new();
    peer.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    peer.wait().expect("it ends");
    assert!(said.contains("cannot grant locks: this peer is in no swarm yet"), "{said}");
}

/// A swarm key on that machine.
fn key(machine: &Machine) -> String {
    let path = machine.file("swarm.key").display().to_string();
    machine.run(&["key", "new", &path]);
    path
}

/// What a peer that is told to end after a moment has said.
fn log(machine: &Machine, words: &[&str]) -> Vec<String> {
    let socket = machine.file("peer.sock").display().to_string();
    let key = key(machine);
    let node = ["node", "--ephemeral", "--no-trace", "--swarm-key", &key, "--socket", &socket];
    let found = ["--found", "--yes", "--listen", "127.0.0.1:0"];
    let peer = machine.spawn(&[&node, &found[..], words].concat());
    wait_until("it serves", || machine.file("peer.sock").exists());
    std::thread::sleep(Duration::from_millis(500));
    kill_process(id(&peer), Signal::TERM).expect("it lives");
    let output = peer.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn every_line_of_a_log_has_a_time_and_programs_get_json() {
    let machine = Machine::new();
    let lines = log(&machine, &["--log", "debug"]);
    for line in &lines {
        let (time, rest) = line.split_once(' ').expect(line);
        assert!(humantime::parse_rfc3339(time).is_ok() && time.ends_with('Z'), "{line}");
        let (level, said) = rest.trim_start().split_once(' ').expect(line);
        assert!(["error", "warn", "info", "debug"].contains(&level), "{line}");
        assert!(said.trim_start().contains(": "), "{line}");
    }
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(has("Z info  sigmalock: listening at /ip4/127.0.0.1/"), "{lines:#?}");
    assert!(has("Z debug "), "what was logged elsewhere looks the same: {lines:#?}");
    for flag in ["json", "off,json"] {
        let lines = log(&machine, &["--log", flag]);
        let mut messages = Vec::new();
        for line in &lines {
            let event: serde_json::Value = serde_json::from_str(line).expect(line);
            let time = event["time"].as_str().expect(line);
            assert!(humantime::parse_rfc3339(time).is_ok(), "{line}");
            assert_eq!(event["level"], "info", "{line}");
            messages.push(event["message"].as_str().expect(line).to_owned());
        }
        assert!(messages.iter().any(|words| words.starts_with("serving programs at unix:")));
    }
    let failed = machine.run(&[
        "node",
        "--found",
        "--yes",
        "--ephemeral",
        "--no-trace",
        "--swarm-key",
        &key(&machine),
        "--log",
        "json",
        "--advertise",
        "0.0.0.0:7421",
    ]);
    let event: serde_json::Value = serde_json::from_str(&failed.stderr).expect(&failed.stderr);
    assert_eq!((failed.code, &event["level"]), (Some(64), &"error".into()), "{event}");
}
