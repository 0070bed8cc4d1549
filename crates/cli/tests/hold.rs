//! `run` keeps hold of what it started: whatever is killed or stopped, and however a command hides its work, nobody else is
//! let in before it has ended.

mod common;

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::machine::{Machine, id, lives, pid_in, wait_until};
use rustix::process::{Pid, Signal, getuid, kill_process};

/// Ways to start work that a killer does not find easily. Each writes its number to `$PID`, and then does nothing for a
/// minute, whatever it is told by SIGTERM.
const WAYS: [(&str, &str); 6] = [
    ("a child", "sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & wait"),
    (
        "its own session",
        "setsid sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & wait",
    ),
    (
        "forked twice",
        "( setsid sh -c 'trap \"\" TERM; echo $$ > $PID; sleep 60 & wait; wait' & ) ; sleep 60",
    ),
    (
        "closed descriptors",
        "exec python3 -c \"
import os, subprocess
p = subprocess.Popen(['sleep', '60'], close_fds=True, start_new_session=True)
open(os.environ['PID'], 'w').write(str(p.pid))
p.wait()\"",
    ),
    ("stopped", "sh -c 'echo $$ > $PID; kill -STOP $$; sleep 60' & wait"),
    (
        "without its first thread",
        "exec python3 -c \"
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
open(os.environ['PID'], 'w').write(str(os.getpid()))
ctypes.CDLL(None).pthread_exit(None)\"",
    ),
];

/// `run /x` of a script that writes to `$PID`; and the process that did.
fn spawn(machine: &Machine, flags: &[&str], script: &str) -> (Child, Pid) {
    let file = machine.file("pid");
    let _ = fs::remove_file(&file);
    let words = [&["run", "/x"], flags, &["--", "sh", "-c", script]].concat();
    let mut run = machine.command(&words);
    let run = run.env("PID", &file).stdout(Stdio::null()).stderr(Stdio::null());
    let run = run.spawn().expect("it starts");
    (run, pid_in(&file))
}

/// The guardian of a `run`.
fn guardian(run: &Child) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let children = fs::read_to_string(children).expect("it has a child");
    Pid::from_raw(children.trim().parse().expect("one")).expect("a process")
}

/// Whoever wants in next gets in, and then nobody of that work is left.
fn next_enters_after(machine: &Machine, work: Pid, what: &str) {
    let script = format!("grep -qs '^State:.[^Z]' /proc/{}/task/*/status", work.as_raw_pid());
    let next = machine.run(&["run", "/x", "--wait", "20s", "--", "sh", "-c", &script]);
    assert!(matches!(next.code, Some(1 | 2)), "{what}: {:?}: {}", next.code, next.stderr);
    assert!(!lives(work), "{what}");
}

#[test]
fn a_killed_run_leaves_nothing_behind_however_it_hides() {
    let machine = Machine::new();
    for (what, script) in WAYS {
        let (mut run, work) = spawn(&machine, &["--kill-grace", "300ms"], script);
        kill_process(id(&run), Signal::KILL).expect("it lives");
        run.wait().expect("it ends");
        next_enters_after(&machine, work, what);
    }
}

#[test]
fn when_the_guardian_is_killed_the_front_ends_everything() {
    let machine = Machine::new();
    for (what, script) in WAYS {
        let (mut run, work) = spawn(&machine, &["--ttl", "3s"], script);
        kill_process(guardian(&run), Signal::KILL).expect("it lives");
        assert_eq!(run.wait().expect("it ends").code(), Some(76), "{what}");
        assert!(!lives(work), "{what}");
        next_enters_after(&machine, work, what);
    }
}

#[test]
fn a_broken_lock_ends_everything_however_it_hides() {
    let machine = Machine::new();
    for (what, script) in WAYS {
        let (mut run, work) = spawn(&machine, &["--kill-grace", "300ms"], script);
        assert_eq!(machine.run(&["break", "/x", "--yes"]).code, Some(0));
        next_enters_after(&machine, work, what);
        assert_eq!(run.wait().expect("it ends").code(), Some(76), "{what}");
    }
}

/// Each process of this starts the next and ends, in a session of its own: none is there for long enough to be found in
/// the process table. It says that it goes on in `$PID.beat`.
const QUICK: &str = "python3 -c \"
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
open(os.environ['PID'], 'w').write(str(os.getpid()))
beat = os.open(os.environ['PID'] + '.beat', os.O_CREAT | os.O_RDWR)
end = time.time() + 30
while time.time() < end:
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    os.pwrite(beat, b'%d' % time.monotonic_ns(), 0)\" & sleep 60";

#[test]
fn work_that_is_never_the_same_process_for_long_is_ended_as_well() {
    let machine = Machine::new();
    let file = machine.file("pid.beat");
    for what in ["front", "guardian", "break"] {
        let (mut run, _) = spawn(&machine, &["--ttl", "3s", "--kill-grace", "300ms"], QUICK);
        wait_until("it beats", || fs::metadata(&file).is_ok_and(|file| file.len() > 0));
        match what {
            "front" => kill_process(id(&run), Signal::KILL).expect("it lives"),
            "guardian" => kill_process(guardian(&run), Signal::KILL).expect("it lives"),
            _ => assert_eq!(machine.run(&["break", "/x", "--yes"]).code, Some(0)),
        }
        let script = format!("cp {0} {0}.then; sleep 0.5; cmp {0} {0}.then", file.display());
        let next = machine.run(&["run", "/x", "--wait", "20s", "--", "sh", "-c", &script]);
        assert_eq!(next.code, Some(0), "{what}: it goes on: {}{}", next.stdout, next.stderr);
        run.wait().expect("it ends");
        fs::remove_file(&file).expect("it was there");
    }
}

#[test]
fn a_stopped_run_changes_nothing() {
    let machine = Machine::new();
    let flags = ["--ttl", "3s", "--kill-grace", "300ms"];
    let (mut run, work) = spawn(&machine, &flags, WAYS[1].1);
    kill_process(id(&run), Signal::STOP).expect("it lives");
    std::thread::sleep(Duration::from_secs(4));
    assert!(lives(work), "it holds the lock, and goes on");
    assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    // Its guardian is not stopped for long.
    kill_process(id(&run), Signal::CONT).expect("it lives");
    kill_process(guardian(&run), Signal::STOP).expect("it lives");
    std::thread::sleep(Duration::from_secs(4));
    assert!(lives(work), "it holds the lock, and goes on");
    kill_process(id(&run), Signal::STOP).expect("it lives");
    // The deadline counts all the same.
    kill_process(machine.peer().expect("a peer"), Signal::KILL).expect("it lives");
    let begin = Instant::now();
    wait_until("the work is gone", || !lives(work));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    kill_process(id(&run), Signal::CONT).expect("it lives");
    assert_eq!(run.wait().expect("it ends").code(), Some(76));
}

#[test]
fn a_program_that_does_not_run_for_its_ttl_loses_its_lock_and_not_before() {
    let machine = Machine::new();
    let mut lock = machine.command(&["lock", "/x", "--ttl", "3s"]);
    let mut lock = lock.stdin(Stdio::piped()).spawn().expect("it starts");
    wait_until("it is held", || machine.run(&["locks", "/x"]).stdout.contains("/x"));
    for _ in 0..2 {
        kill_process(id(&lock), Signal::STOP).expect("it lives");
        std::thread::sleep(Duration::from_millis(1_500));
        kill_process(id(&lock), Signal::CONT).expect("it lives");
        std::thread::sleep(Duration::from_millis(3_500));
        assert_eq!(machine.run(&["run", "/x", "--try", "--", "true"]).code, Some(75));
    }
    kill_process(id(&lock), Signal::STOP).expect("it lives");
    let begin = Instant::now();
    assert_eq!(machine.run(&["run", "/x", "--wait", "20s", "--", "true"]).code, Some(0));
    let waited = begin.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
    kill_process(id(&lock), Signal::CONT).expect("it lives");
    assert_eq!(lock.wait().expect("it ends").code(), Some(76), "it hears that it lost it");
}

#[test]
fn a_peer_that_was_started_on_the_way_has_nothing_of_whoever_started_it() {
    let machine = Machine::new();
    let file = machine.file("flock");
    let flock = machine.command(&["run", "/x", "--", "true"]);
    let words: Vec<_> = std::iter::once(flock.get_program().to_owned())
        .chain(flock.get_args().map(ToOwned::to_owned))
        .collect();
    let mut outer = std::process::Command::new("flock");
    outer.arg(&file).args(words).stdin(Stdio::null());
    for (name, value) in flock.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    assert!(outer.status().expect("it ends").success());
    let peer = machine.peer().expect("the peer is there").as_raw_pid();
    let free = std::process::Command::new("flock").arg("-n").arg(&file).arg("true").status();
    assert!(free.expect("it ends").success(), "the peer has no descriptor of it");
    let stat = fs::read_to_string(format!("/proc/{peer}/stat")).expect("it lives");
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(fields[4], "0", "it has no terminal: {stat}");
    let cwd = fs::read_link(format!("/proc/{peer}/cwd")).expect("it lives");
    assert_eq!(cwd.to_str(), Some("/"));
}

#[test]
fn what_a_command_leaves_behind_is_told_or_waited_for() {
    let machine = Machine::new();
    // The command ends when what it leaves behind has got its name.
    let script = "setsid sleep 3 > /dev/null 2>&1 & \
                  until grep -q sleep /proc/$!/comm; do :; done;";
    let told = machine.run(&["run", "/x", "--", "sh", "-c", script]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(
        told.stderr.contains("/x was given back, and what the command left behind still runs: "),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains(" (sleep); --linger waits for it"), "{}", told.stderr);
    let begin = Instant::now();
    let waited =
        machine.run(&["run", "/x", "--linger", "--", "sh", "-c", &format!("{script} exit 5")]);
    assert_eq!((waited.code, waited.stderr.as_str()), (Some(5), ""));
    assert!(begin.elapsed() >= Duration::from_secs(3), "{:?}", begin.elapsed());
}

/// What belongs to another user cannot be killed by a user, and is waited for. Only root can arrange that.
#[test]
fn work_of_another_user_keeps_the_lock_until_it_has_ended() {
    if !getuid().is_root() {
        eprintln!("skipped: only root can be two users");
        return;
    }
    // Everything that the ordinary user needs is in a place that it can reach; a helper with the s bit is the other user.
    let machine = Machine::new();
    let nobody =
        Some((rustix::process::Uid::from_raw(65534), rustix::process::Gid::from_raw(65534)));
    let helper = machine.file("helper");
    fs::copy("/usr/bin/python3", &helper).expect("a copy");
    for (path, mode) in [(machine.path().to_owned(), 0o755), (helper.clone(), 0o4755)] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    for path in [machine.path().to_owned(), machine.file("run")] {
        let (user, group) = nobody.unzip();
        rustix::fs::chown(&path, user, group).expect("it is ours");
    }
    let file = machine.file("pid");
    // It tells its number when it has become the other user; until then it may be killed.
    let sleep = format!(
        "import os; os.setuid(0); print(os.getpid(), file=open(\"{}\", \"w\"), flush=True); \
         os.execv(\"/bin/sleep\", [\"sleep\", \"4\"])",
        file.display()
    );
    let script = format!("{} -ISc '{sleep}' & wait", helper.display());
    let as_nobody = |words: &[&str]| {
        use std::os::unix::process::CommandExt as _;
        let mut command = machine.command(words);
        command.uid(65534).gid(65534).env("SIGMALOCK_BIN", env!("CARGO_BIN_EXE_sigmalock"));
        command
    };
    let flags = ["run", "/x", "--ttl", "2s", "--", "sh", "-c", &script];
    let mut run = as_nobody(&flags).spawn().expect("it starts");
    let work = pid_in(&file);
    assert!(lives(work));
    kill_process(id(&run), Signal::KILL).expect("it lives");
    run.wait().expect("it ends");
    let tried =
        as_nobody(&["run", "/x", "--wait", "500ms", "--", "true"]).output().expect("it ends");
    assert_eq!(tried.status.code(), Some(75), "{tried:?}");
    assert!(lives(work));
    let next = as_nobody(&["run", "/x", "--wait", "20s", "--", "true"]).output().expect("it ends");
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    assert!(!lives(work), "it was waited for");
}

#[test]
fn the_command_inherits_nothing_of_ours_and_what_it_was_given() {
    let machine = Machine::new();
    let show = "ls -l /proc/self/fd; echo $SIGMALOCK_HOLDER; cat <&7";
    let given = machine.file("given");
    fs::write(&given, "given\n").expect("it can be written");
    let command = format!(
        "exec 7< {}; exec {} run /x -- sh -c '{show}'",
        given.display(),
        env!("CARGO_BIN_EXE_sigmalock")
    );
    let mut shell = machine.command::<&str>(&[]);
    let environment: Vec<_> =
        shell.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
    shell = std::process::Command::new("sh");
    for (name, value) in environment {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.args(["-c", &command]).output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("given\n"), "{text}");
    assert!(!text.contains("socket:"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with('p') && line.matches('/').count() == 3),
        "{text}"
    );
}
