//! `run` and `lock` with real processes, each on a fresh machine of its own.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, pid_in, wait_until};
use rustix::process::{Signal, kill_process};

#[test]
fn two_runs_on_a_fresh_machine_exclude_each_other() {
    let machine = Machine::new();
    let log = machine.file("log").display().to_string();
    let script = format!("echo in >> {log}; sleep 0.3; echo out >> {log}");
    let words = ["run", "/x", "--", "sh", "-c", &script];
    let runs = [machine.spawn(&words), machine.spawn(&words), machine.spawn(&words)];
    let mut started = 0;
    for run in runs {
        let ended = run.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        started +=
            usize::from(String::from_utf8_lossy(&ended.stderr).contains("your own was started"));
    }
    let log = std::fs::read_to_string(log).expect("a log");
    assert_eq!(log, "in\nout\n".repeat(3), "nobody comes in before the other is out");
    assert_eq!(started, 1, "one of them starts the peer, and says so");
}

#[test]
fn the_command_sees_its_lock_and_its_exit_code_is_returned() {
    let machine = Machine::new();
    let show = "echo $SIGMALOCK_NAME $SIGMALOCK_TOKEN; exit 7";
    let first = machine.run(&["run", "/b,/a,/b", "--", "sh", "-c", show]);
    assert_eq!(first.code, Some(7), "{}", first.stderr);
    let second = machine.run(&["run", "/a,/b", "--", "sh", "-c", show]);
    let tokens = |line: &str| {
        let tokens = line.trim().strip_prefix("/a,/b ").expect(line);
        tokens.split(',').map(|token| token.parse().expect(line)).collect::<Vec<u64>>()
    };
    let (first, second) = (tokens(&first.stdout), tokens(&second.stdout));
    assert_eq!((first.len(), second.len()), (2, 2));
    assert!(first.iter().zip(&second).all(|(a, b)| a < b), "{first:?} {second:?}");
    assert_eq!(second_stderr(&machine), "", "a peer that is there is not worth a word");
    let killed = machine.run(&["run", "/a", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code, Some(128 + 9));
    assert_eq!(machine.run(&["run", "/a", "--", "/nowhere/at-all"]).code, Some(127));
}

fn second_stderr(machine: &Machine) -> String {
    machine.run(&["run", "/a", "--", "true"]).stderr
}

/// What commands wrote to a file, each a line when it comes and one when it goes.
fn most_at_once(log: &str) -> i32 {
    let step = |inside: &mut i32, line: &str| {
        *inside += if line == "in" { 1 } else { -1 };
        Some(*inside)
    };
    log.lines().scan(0, step).max().unwrap_or(0)
}

#[test]
fn readers_run_together_and_a_writer_waits_for_all_of_them() {
    let machine = Machine::new();
    let log = machine.file("log");
    let script = format!("echo in >> {0}; sleep 1; echo out >> {0}", log.display());
    let words = ["run", "/x", "--shared", "--", "sh", "-c", &script];
    let readers = [machine.spawn(&words), machine.spawn(&words), machine.spawn(&words)];
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("the readers are inside", || lines().lines().count() == 3);
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    let seen = machine.run(&["run", "/x", "--", "cat", &log.display().to_string()]);
    assert_eq!((most_at_once(&seen.stdout), seen.stdout.lines().count()), (3, 6));
    for mut reader in readers {
        assert!(reader.wait().expect("it ends").success());
    }
}

#[test]
fn as_many_commands_run_as_there_are_permits_and_each_is_told_which_it_has() {
    let machine = Machine::new();
    let log = machine.file("log").display().to_string();
    let script = format!(
        "mkdir {log}.$SIGMALOCK_SLOT || exit 9; echo in >> {log}; sleep 0.5; echo out >> {log}; rmdir {log}.$SIGMALOCK_SLOT"
    );
    let words = ["run", "/gpu", "--permits", "2", "--", "sh", "-c", &script];
    for run in [0; 5].map(|_| machine.spawn(&words)) {
        let ended = run.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(most_at_once(&std::fs::read_to_string(log).expect("a log")), 2);
    for bad in [&["--permits", "0"][..], &["--permits", "65"], &["--permits", "2", "--shared"]] {
        let words = [&["run", "/gpu"], bad, &["--", "true"]].concat();
        assert_eq!(machine.run(&words).code, Some(64), "{bad:?}");
    }
}

#[test]
fn who_does_not_want_to_wait_is_told_75() {
    let machine = Machine::new();
    let inside = machine.file("inside");
    let script = format!("touch {}; sleep 60", inside.display());
    let mut holder = machine.spawn(&["run", "/x", "--", "sh", "-c", &script]);
    wait_until("the holder is inside", || inside.exists());
    let tried = machine.run(&["run", "/x", "--try", "--", "true"]);
    assert_eq!((tried.code, tried.stderr.lines().count()), (Some(75), 1), "{}", tried.stderr);
    let held = format!("it is held by run sh ({}) by ", holder.id());
    let busy = format!("sigmalock: /x: the lock cannot be had now; {held}");
    assert!(tried.stderr.starts_with(&busy), "{}", tried.stderr);
    assert!(tried.stderr.contains(", with token "), "{}", tried.stderr);
    let begin = Instant::now();
    let waited = machine.run(&["run", "/x", "--wait", "500ms", "--", "true"]);
    assert_eq!(waited.code, Some(75), "{}", waited.stderr);
    let in_vain = |limit| format!("sigmalock: /x: the lock was not to be had in {limit}; {held}");
    assert!(waited.stderr.starts_with(&in_vain("500ms")), "{}", waited.stderr);
    assert_eq!(waited.stderr.lines().count(), 1, "{}", waited.stderr);
    assert!(begin.elapsed() >= Duration::from_millis(500));
    // As it was given, whatever was left of it for the last of several.
    let waited = machine.run(&["run", "/w,/x", "--wait", "1s", "--", "true"]);
    assert!(waited.stderr.starts_with(&in_vain("1s")), "{}", waited.stderr);
    // None of several names is held when one cannot be had.
    assert_eq!(machine.run(&["run", "/w,/x", "--try", "--", "true"]).code, Some(75));
    assert_eq!(machine.run(&["run", "/w", "--try", "--", "true"]).code, Some(0));
    kill_process(id(&holder), Signal::TERM).expect("it lives");
    assert_eq!(holder.wait().expect("it ends").code(), Some(128 + 15), "as its command ended");
    assert_eq!(
        machine.run(&["run", "/x", "--try", "--", "true"]).code,
        Some(0),
        "the lock is free"
    );
}

#[test]
fn signals_are_passed_on() {
    let machine = Machine::new();
    for (signal, word) in [(Signal::USR1, "USR1"), (Signal::INT, "INT"), (Signal::HUP, "HUP")] {
        let ready = machine.file(word);
        let trap = format!(
            "trap 'exit 42' {word}; touch {}; while :; do sleep 0.05; done",
            ready.display()
        );
        let mut run = machine.spawn(&["run", "/x", "--", "sh", "-c", &trap]);
        wait_until("the trap is set", || ready.exists());
        kill_process(id(&run), signal).expect("it lives");
        assert_eq!(run.wait().expect("it ends").code(), Some(42), "{word}");
    }
}

#[test]
fn a_signal_while_waiting_ends_the_wait() {
    let machine = Machine::new();
    let inside = machine.file("inside");
    let script = format!("touch {}; sleep 60", inside.display());
    let mut holder = machine.spawn(&["run", "/x", "--", "sh", "-c", &script]);
    wait_until("the holder is inside", || inside.exists());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut waiter = machine.spawn(&["run", "/x", "--", "true"]);
        std::thread::sleep(Duration::from_millis(300));
        kill_process(id(&waiter), signal).expect("it waits");
        assert_eq!(waiter.wait().expect("it ends").code(), Some(code));
    }
    kill_process(id(&holder), Signal::KILL).expect("it lives");
    holder.wait().expect("it ends");
}

#[test]
fn when_the_peer_dies_the_command_is_ended_before_the_lease_is() {
    let machine = Machine::new();
    let (pid, late) = (machine.file("pid"), machine.file("late"));
    // It does not listen to SIGTERM, and has a child that does not either.
    let script = format!(
        "trap '' TERM; sh -c 'sleep 60; touch {}' & echo $! > {}; wait; wait",
        late.display(),
        pid.display()
    );
    let mut run = machine.spawn(&[
        "run",
        "/x",
        "--ttl",
        "4s",
        "--kill-grace",
        "500ms",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let child = pid_in(&pid);
    kill_process(machine.peer().expect("a peer"), Signal::KILL).expect("it lives");
    let begin = Instant::now();
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert!(!lives(child), "the whole group is gone");
}

#[test]
fn lock_holds_until_stdin_closes() {
    let machine = Machine::new();
    let mut lock = machine.command(&["lock", "/x", "--json"]);
    let mut lock = lock.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(lock.stdout.take().expect("piped")).lines();
    let held: serde_json::Value =
        serde_json::from_str(&lines.next().expect("a line").expect("readable")).expect("JSON");
    assert_eq!((&held["event"], &held["name"]), (&"held".into(), &"/x".into()));
    assert!(held["token"].as_u64() > Some(0), "{held}");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    let mut stdin = lock.stdin.take().expect("piped");
    stdin.write_all(b"nobody listens\n").expect("it reads");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    drop(stdin);
    assert_eq!(lock.wait().expect("it ends").code(), Some(0));
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(0));
}

#[test]
fn a_broken_lock_is_lost_and_passes_on_when_its_script_has_had_its_time() {
    let machine = Machine::new();
    let mut lock = machine.command(&["lock", "/x", "--ttl", "3s"]);
    let mut lock = lock.stdin(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(lock.stdout.take().expect("piped")).lines();
    lines.next().expect("a token").expect("readable");
    let explained = machine.run(&["explain", "/x"]);
    assert!(explained.stdout.starts_with("/x is held by lock ("), "{}", explained.stdout);
    let listed = machine.run(&["locks", "/x", "--json"]).stdout;
    assert!(listed.contains("\"held\":true"), "{listed}");
    let broken = machine.run(&["break", "/x", "--yes"]);
    assert_eq!(broken.code, Some(0), "{}", broken.stderr);
    assert_eq!(lines.next().expect("a line").expect("readable"), "lost");
    assert_eq!(lock.wait().expect("it ends").code(), Some(76));
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    assert_eq!(machine.run(&["run", "/x", "--wait", "10s", "--", "true"]).code, Some(0));
    let again = machine.run(&["break", "/x", "--yes"]);
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (Some(1), "sigmalock: /x: nobody holds that lock\n")
    );
}

#[test]
fn those_who_only_look_start_no_peer() {
    let machine = Machine::new();
    for words in [
        &["status"][..],
        &["locks"],
        &["peers"],
        &["inspect", "/x"],
        &["explain", "/x"],
        &["break", "/x", "--yes"],
    ] {
        let ran = machine.run(words);
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(69), 1), "{words:?}");
    }
    assert!(!machine.file("run/sigmalock/private.sock").exists());
}

#[test]
fn a_peer_leaves_when_it_is_told_to_or_idle() {
    let machine = Machine::new();
    let socket = machine.file("peer.sock").display().to_string();
    let words = ["node", "--private", "--socket", &socket];
    let mut told = machine.spawn(&words);
    wait_until("it serves", || machine.file("peer.sock").exists());
    kill_process(id(&told), Signal::TERM).expect("it lives");
    assert_eq!(told.wait().expect("it ends").code(), Some(0));
    let idle = machine.spawn(&[&words[..], &["--idle-exit", "500ms"]].concat());
    let ended = idle.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.contains("private: nobody can join it"), "{said}");
    assert!(!said.contains("listening"), "{said}");
}

#[test]
fn settings_come_from_flags_else_environment_else_file() {
    let machine = Machine::new();
    let config = machine.file(".config/sigmalock/config.toml");
    std::fs::create_dir_all(config.parent().expect("a parent")).expect("a directory");
    let say = |text: &str| std::fs::write(&config, text).expect("written");
    say("[run]\nttl = \"1 parsec\"\n");
    let ran = machine.run(&["run", "/x", "--", "true"]);
    assert_eq!(ran.code, Some(64), "the file is heard: {}", ran.stderr);
    let ran = machine.run(&["run", "/x", "--ttl", "5s", "--", "true"]);
    assert_eq!(ran.code, Some(0), "a flag outdoes it: {}", ran.stderr);
    let mut ran = machine.command(&["run", "/x", "--", "true"]);
    assert_eq!(ran.env("SIGMALOCK_TTL", "5s").output().expect("it ends").status.code(), Some(0));
    for (text, sentence) in [
        ("[run]\nspeed = 1\n", "[run] has no `speed`"),
        ("[node]\nswarm_key = 'k'\n", "[node] has no `swarm_key`; did you mean `swarm-key`?"),
        (
            "[run]\napi = 'x:1'\n",
            "[run] has no `api`: it is for all commands, and belongs above all tables",
        ),
        ("swarm = 1\n", "swarm: this should be a text"),
        ("[walk]\n", "there is no command `walk`"),
        ("run = 1\n", "`run` should be a table, `[run]`"),
        (
            "[run]\nttl = 1979-05-27\n",
            "[run] ttl: this should be a text, a number, true, false, or a list of these",
        ),
    ] {
        say(text);
        let ran = machine.run(&["run", "/x", "--", "true"]);
        assert_eq!(ran.stderr, format!("sigmalock: {}: {sentence}\n", config.display()));
        assert_eq!(ran.code, Some(64));
    }
}

#[test]
fn several_locks_are_broken_each_whatever_becomes_of_the_others() {
    let machine = Machine::new();
    let holder = |name: &str| {
        let inside = machine.file(&format!("inside{}", name.replace('/', "-")));
        let script = format!("touch {}; sleep 60", inside.display());
        let holder = machine.spawn(&["run", name, "--", "sh", "-c", &script]);
        wait_until("the holder is inside", || inside.exists());
        holder
    };
    let holders = [holder("/a"), holder("/z")];
    let mut readers = Vec::new();
    for reader in ["1", "2"] {
        let inside = machine.file(reader);
        let script = format!("touch {}; sleep 60", inside.display());
        readers.push(machine.spawn(&["run", "/r", "--shared", "--", "sh", "-c", &script]));
        wait_until("the reader is inside", || inside.exists());
    }
    let broken = machine.run(&["break", "/z,/nobody,/a,/r,/none", "--yes"]);
    assert_eq!(broken.code, Some(1), "{}", broken.stderr);
    let lines: Vec<&str> = broken.stdout.lines().collect();
    let [a, r, z] = lines.as_slice() else { panic!("{}", broken.stdout) };
    assert!(a.starts_with("/a: ") && a.ends_with(" was told to leave"), "{a}");
    assert!(r.starts_with("/r: ") && r.ends_with(" and 1 more were told to leave"), "{r}");
    assert!(z.starts_with("/z: ") && z.ends_with(" was told to leave"), "{z}");
    for name in ["/nobody", "/none"] {
        let sentence = format!("sigmalock: {name}: nobody holds that lock\n");
        assert!(broken.stderr.contains(&sentence), "{}", broken.stderr);
    }
    for mut run in holders.into_iter().chain(readers) {
        assert_eq!(run.wait().expect("it ends").code(), Some(76));
    }
    assert_eq!(machine.run(&["break", "/a", "--yes"]).code, Some(1));
}
