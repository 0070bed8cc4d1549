//! Machines of a swarm and machines of none, with users of their own: who is let in by whom, and who is not.

mod common;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Child;

use common::Ran;
use common::host::{EVERYBODY, Host, NOBODY, NOBODY_ELSEWHERE, ROOT, ROOT_ELSEWHERE, Who, end};
use common::machine::{id, wait_until};
use rustix::process::{Signal, kill_process};
use sigmalock_node::key::SwarmKey;
use tempfile::TempDir;

const TRY: [&str; 5] = ["run", "/deploy", "--try", "--", "true"];

/// A peer; killed with the test.
struct Peer(Child);

impl Peer {
    fn kill(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).map(drop).expect("it can be killed");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A swarm key that everybody's peers may read in turn.
struct Key {
    dir: TempDir,
    id: String,
}

impl Key {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("ours");
        let key = SwarmKey::generate().expect("random");
        key.write_new(&dir.path().join("key")).expect("new");
        Self { dir, id: key.id() }
    }

    fn of(&self, who: Who) -> String {
        let path = self.dir.path().join(who.uid.to_string());
        fs::copy(self.dir.path().join("key"), &path).expect("a key");
        chown(&path, Some(who.uid), None).expect("we are root");
        path.display().to_string()
    }
}

/// Ports that nobody has, nor is given by the system to who asks for any.
fn free_ports() -> [String; 3] {
    let first = 20_000 + std::process::id() % 10_000;
    let free = |port: &u32| TcpListener::bind(format!("127.0.0.1:{port}")).is_ok();
    let mut ports = (first..first + 2_000).filter(free).map(|port| format!("127.0.0.1:{port}"));
    [0; 3].map(|_| ports.next().expect("a port"))
}

/// Starts somebody's peer, and waits until it serves.
fn peer(host: &Host, who: Who, key: &Key, words: &[&str]) -> Peer {
    let key = key.of(who);
    let words = [&["node", "--swarm-key", &key, "--listen", "127.0.0.1:0"], words].concat();
    let socket = match words.iter().position(|word| *word == "--socket") {
        Some(at) => words[at + 1].replacen("/run", "run", 1),
        None => format!("{}/run/sigmalock/peer.sock", who.home),
    };
    let peer = Peer(host.spawn(who, &words));
    wait_until("a peer serves", || host.file(&socket).exists());
    peer
}

/// The machine's peer, which founds a swarm.
fn machines_peer(host: &Host, key: &Key, words: &[&str]) -> Peer {
    let _ = fs::create_dir(host.file("run/sigmalock"));
    let socket = ["--found", "--yes", "--ephemeral", "--socket", "/run/sigmalock/peer.sock"];
    peer(host, ROOT, key, &[&socket, words].concat())
}

/// Nobody on this machine is let in; and each is told why, in a sentence with these words.
fn nobody_enters(host: &Host, everybody: &[Who], words: &[&str]) {
    for who in everybody {
        for command in [&TRY[..], &["lock", "/deploy", "--try"], &["status"], &["locks"]] {
            let ran = host.run(*who, command);
            assert_eq!(ran.code, Some(69), "{who:?} {command:?}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
            for word in words {
                assert!(ran.stderr.contains(word), "{who:?} {command:?}: {}", ran.stderr);
            }
        }
    }
}

fn enters(ran: &Ran) -> bool {
    assert!([Some(0), Some(75)].contains(&ran.code), "{:?} {}", ran.code, ran.stderr);
    ran.code == Some(0)
}

#[test]
fn on_a_machine_of_a_swarm_whose_peer_is_dead_nobody_enters_whoever_asks() {
    let (Some(here), Some(there)) = (Host::new(), Host::new()) else { return };
    let key = Key::new();
    let ports = free_ports();
    let join = ports.join(",");
    let start = |host: &Host, port: &str, socket: &str| {
        let _ = fs::create_dir(host.file("run/sigmalock"));
        let flags = [
            "--expect",
            "3",
            "--join",
            &join,
            "--listen",
            port,
            "--ephemeral",
            "--lease-max",
            "5s",
        ];
        let serving = ["--users", "all", "--socket", socket];
        let own_key = key.of(ROOT);
        let words = [&["node", "--swarm-key", &own_key][..], &flags, &serving].concat();
        Peer(host.spawn(ROOT, &words))
    };
    let _here = start(&here, &ports[0], "/run/sigmalock/peer.sock");
    let _second = start(&here, &ports[1], "/run/second.sock");
    let mut dead = start(&there, &ports[2], "/run/sigmalock/peer.sock");
    wait_until("the swarm is made", || here.run(NOBODY, &["status"]).code == Some(0));
    wait_until("the other one votes", || there.run(NOBODY, &["status"]).code == Some(0));
    let inside = here.file("nobody/inside");
    let hold = format!("touch {}; sleep 60", inside.display());
    let _holder = Peer(here.spawn(NOBODY, &["run", "/deploy", "--", "sh", "-c", &hold]));
    wait_until("the holder is inside", || inside.exists());
    for who in EVERYBODY {
        assert!(!enters(&there.run(who, &TRY)), "{who:?} uses the machine's peer");
    }
    dead.kill();
    nobody_enters(&there, &EVERYBODY, &["/run/sigmalock/peer.sock", "cannot be used"]);
    there.reboot();
    nobody_enters(&there, &EVERYBODY, &["belongs to a swarm", "/var/lib/sigmalock", "--private"]);
    assert!(!there.has_private_peers(), "nothing was started");
    // Whoever means it gets a lock, and is told what that excludes.
    let private = there.run(NOBODY, &[&["run", "/deploy", "--private"], &TRY[2..]].concat());
    assert!(enters(&private));
    let words = "excludes other commands of user nobody on this machine, nobody else";
    assert!(private.stderr.replace("exclude ", "excludes ").contains(words), "{}", private.stderr);
    let by_variable = &mut there.command(NOBODY, &TRY);
    assert!(enters(&end(by_variable.env("SIGMALOCK_PRIVATE", "1"))));
    // That it runs now makes no difference to who does not mean it.
    nobody_enters(&there, &[NOBODY], &["belongs to a swarm"]);
}

#[test]
fn the_peer_of_any_user_leaves_a_trace_that_all_see() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    let mut users = peer(&host, NOBODY, &key, &["--found", "--yes"]);
    let trace = host.file("tmp/sigmalock-swarm.65534");
    assert_eq!(fs::metadata(&trace).expect("a trace").mode() & 0o7777, 0o1644);
    assert!(fs::read_to_string(&trace).expect("for all").contains(&key.id));
    users.kill();
    host.reboot();
    let _ = fs::remove_dir_all(host.file("nobody/run/sigmalock"));
    let elsewhere = [ROOT, ROOT_ELSEWHERE, NOBODY_ELSEWHERE];
    let words = ["/var/tmp/sigmalock-swarm.65534", "user 65534", "remove it once"];
    nobody_enters(&host, &elsewhere, &words);
    fs::remove_file(&trace).expect("we are root");
    // Whose it was has its data still.
    nobody_enters(&host, &[NOBODY], &["/.local/state/sigmalock is there", "remove it once"]);
    assert!(!host.has_private_peers());
    assert!(enters(&host.run(NOBODY_ELSEWHERE, &TRY)), "the machine has left its swarm");
}

#[test]
fn a_first_start_that_is_refused_leaves_no_sign_that_the_machine_belongs_to_a_swarm() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("bound").to_string();
    for who in EVERYBODY {
        let key = key.of(who);
        let node = ["node", "--swarm-key", &key, "--listen"];
        let joins = [&node[..], &["127.0.0.1:0", "--join", "127.0.0.1:1"]].concat();
        let socket = format!("{}/run/no.sock", host.home(who).display());
        fs::write(&socket, "no socket").expect("ours");
        let machines =
            [&joins[..], &["--data", "/var/lib/sigmalock", "--socket", &socket]].concat();
        let refusals = [
            (&node[..], &["127.0.0.1:0"][..], 64, "knows of no swarm"),
            (&node, &[&taken, "--join", "127.0.0.1:1"], 1, "cannot listen"),
            (&node, &["192.0.2.7:7421", "--found", "--yes"], 1, "cannot listen"),
            (&joins, &["--socket", &socket], 1, "is no socket"),
            (&joins, &["--socket", "/run/nowhere/s"], 1, "does not exist"),
            (&joins, &["--operators", "nobody-here"], 1, "no group"),
            (&joins, &["--api", &taken], 1, "is in use"),
            (&joins, &["--data", "/etc/passwd/d"], 1, "cannot be made"),
            (&machines, &[], 1, "is no socket"),
        ];
        for (words, more, code, why) in refusals {
            let ran = host.run(who, &[words, more].concat());
            assert_eq!(ran.code, Some(code), "{who:?} {more:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(why), "{who:?} {more:?}: {}", ran.stderr);
        }
        for dir in ["lib", "tmp"] {
            let left = fs::read_dir(host.file(dir)).expect("there").flatten();
            assert_eq!(left.map(|entry| entry.file_name()).collect::<Vec<_>>(), [""; 0], "{who:?}");
        }
        assert!(!host.home(who).join(".local").exists(), "{who:?}");
        assert!(enters(&host.run(who, &TRY)), "{who:?} may have a private peer");
    }
}

/// Whatever the moment at which it is killed.
#[test]
fn whoever_may_have_been_in_a_swarm_is_known_to_have_been() {
    let Some(host) = Host::new() else { return };
    let keys = Key::new();
    let key = keys.of(NOBODY);
    let node = ["node", "--swarm-key", &key, "--listen", "127.0.0.1:0", "--found", "--yes"];
    let data = host.home(NOBODY).join(".local/state/sigmalock");
    let trace = host.file("tmp/sigmalock-swarm.65534");
    let mut lived = 0;
    for round in 0..24 {
        let mut peer = Peer(host.spawn(NOBODY, &node));
        let begun = ["identity.new", "votes.redb", "identity", "swarm"][round % 4];
        wait_until("it has come so far", || {
            data.join(begun).exists() || data.join("swarm").exists()
        });
        peer.kill();
        let identity = data.join("identity").exists();
        assert!(trace.exists() || !identity, "it has a name, and no sign says so");
        if identity {
            lived += 1;
            nobody_enters(&host, &[NOBODY], &["belongs to a swarm"]);
            let _again = Peer(host.spawn(NOBODY, &node));
            wait_until("it votes", || host.run(NOBODY, &["status"]).code == Some(0));
        }
        let _ = (fs::remove_dir_all(&data), fs::remove_file(&trace));
    }
    assert!(lived >= 6, "{lived}");
}

#[test]
fn a_socket_that_this_user_may_not_use_or_see_is_not_said_to_be_missing() {
    let Some(host) = Host::new() else { return };
    let closed = host.file("run/closed");
    fs::create_dir(&closed).expect("new");
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).expect("ours");
    let ask = |api: &str| host.run(NOBODY, &["status", "--api", api]);
    let ran = ask("unix:/run/closed/peer.sock");
    assert_eq!(ran.code, Some(69), "{}", ran.stderr);
    assert!(ran.stderr.contains("may not look into \"/run/closed\""), "{}", ran.stderr);
    let _peer = machines_peer(&host, &Key::new(), &[]);
    for ran in [ask("unix:/run/sigmalock/peer.sock"), host.run(NOBODY, &TRY)] {
        assert_eq!(ran.code, Some(69), "{}", ran.stderr);
        assert!(ran.stderr.contains("this user may not use that socket"), "{}", ran.stderr);
    }
    let ran = ask("unix:/run/sigmalock/none.sock");
    assert!(ran.stderr.contains("there is no such socket"), "{}", ran.stderr);
}

#[test]
fn a_trace_that_was_planted_only_keeps_people_out() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    let planted = host.file("tmp/sigmalock-swarm.65534");
    let precious = host.file("precious");
    fs::write(&precious, "dear").expect("ours");
    std::os::unix::fs::symlink(&precious, &planted).expect("new");
    nobody_enters(&host, &EVERYBODY, &["/var/tmp/sigmalock-swarm.65534"]);
    // A peer does not rely on what somebody else can take away.
    drop(peer(&host, NOBODY, &key, &["--found", "--yes", "--ephemeral"]));
    assert_eq!(fs::read_to_string(&precious).expect("there"), "dear");
    fs::remove_file(&planted).expect("we are root");
    host.reboot();
    nobody_enters(&host, &EVERYBODY, &["/var/tmp/sigmalock-swarm.65534."]);
    assert!(!host.has_private_peers());
}

#[test]
fn a_configuration_that_names_a_swarm_keeps_private_peers_from_being_started() {
    let Some(host) = Host::new() else { return };
    for (text, word) in [
        ("[node]\njoin = ['192.0.2.7:7421']\n", "[node] join"),
        ("[node]\nexpect = 3\n", "[node] expect"),
        ("[node]\nswarm-key = '/etc/sigmalock/swarm.key'\n", "[node] swarm-key"),
    ] {
        host.write("etc/sigmalock/config.toml", text);
        nobody_enters(&host, &EVERYBODY, &["/etc/sigmalock/config.toml", word]);
    }
    host.write("etc/sigmalock/config.toml", "swarm = 'dba1b484'\n");
    nobody_enters(&host, &EVERYBODY, &["swarm dba1b484 was demanded"]);
    host.write("etc/sigmalock/config.toml", "api = 'unix:/run/nowhere/s'\n");
    nobody_enters(&host, &EVERYBODY, &["unix:/run/nowhere/s"]);
    fs::remove_file(host.file("etc/sigmalock/config.toml")).expect("ours");
    // What cannot be looked at, as on a disk that is not there now, may name one.
    std::os::unix::fs::symlink("/mnt/config.toml", host.file("etc/sigmalock/config.toml"))
        .expect("new");
    let ran = host.run(ROOT, &TRY);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("/etc/sigmalock/config.toml"), "{}", ran.stderr);
    fs::remove_file(host.file("etc/sigmalock/config.toml")).expect("ours");
    host.write("nobody/.config/sigmalock/config.toml", "[node]\nmdns = true\n");
    nobody_enters(&host, &[NOBODY], &["nobody/.config/sigmalock/config.toml", "[node] mdns"]);
    for name in ["SIGMALOCK_JOIN", "SIGMALOCK_SWARM_KEY", "SIGMALOCK_EXPECT"] {
        let ran = end(host.command(ROOT, &TRY).env(name, "3"));
        assert_eq!(ran.code, Some(69), "{}", ran.stderr);
        assert!(ran.stderr.contains(name), "{}", ran.stderr);
    }
    let wrong = "[node]\nswarm_key = '/etc/sigmalock/swarm.key'\n";
    host.write("etc/sigmalock/config.toml", wrong);
    let ran = host.run(ROOT, &TRY);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `swarm-key`?"), "{}", ran.stderr);
    assert!(!host.has_private_peers());
}

#[test]
fn a_flag_outdoes_the_environment_the_user_and_the_machine_in_this_order() {
    let Some(host) = Host::new() else { return };
    let ttl = |value: &str| format!("[run]\nttl = '{value}'\n");
    let wrong = |ran: Ran, value: &str| {
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("--ttl {value}:")), "{}", ran.stderr);
    };
    host.write("etc/sigmalock/config.toml", &ttl("machine"));
    wrong(host.run(ROOT, &TRY), "machine");
    host.write("root/.config/sigmalock/config.toml", &ttl("user"));
    wrong(host.run(ROOT, &TRY), "user");
    wrong(end(host.command(ROOT, &TRY).env("SIGMALOCK_TTL", "variable")), "variable");
    let flag = [&TRY[..2], &["--ttl", "flag"], &TRY[2..]].concat();
    wrong(end(host.command(ROOT, &flag).env("SIGMALOCK_TTL", "variable")), "flag");
    // What contradicts something nearer is not heard.
    host.write("etc/sigmalock/config.toml", "[run]\ntry = true\n");
    host.write("root/.config/sigmalock/config.toml", "[run]\nwait = 'a while'\n");
    let ran = host.run(ROOT, &["run", "/deploy", "--", "true"]);
    assert!(ran.stderr.contains("--wait a while:"), "{}", ran.stderr);
    // The same for which peer is meant, by the client library.
    let address = |name: &str| format!("unix:/run/{name}/s");
    host.write("etc/sigmalock/config.toml", &format!("api = '{}'\n", address("machine")));
    let names = |ran: Ran, name: &str| {
        assert_eq!(ran.code, Some(69), "{}", ran.stderr);
        assert!(ran.stderr.contains(&address(name)), "{}", ran.stderr);
    };
    names(host.run(ROOT_ELSEWHERE, &TRY), "machine");
    let users = format!("api = '{}'\n", address("user"));
    host.write("elsewhere/.config/sigmalock/config.toml", &users);
    names(host.run(ROOT_ELSEWHERE, &TRY), "user");
    let variable = |words: &[&str]| {
        end(host.command(ROOT_ELSEWHERE, words).env("SIGMALOCK_API", address("variable")))
    };
    names(variable(&TRY), "variable");
    let flag = address("flag");
    names(variable(&[&TRY[..2], &["--api", &flag], &TRY[2..]].concat()), "flag");
    assert!(enters(&variable(&[&TRY[..2], &["--private"], &TRY[2..]].concat())));
    let both = end(host
        .command(ROOT_ELSEWHERE, &TRY)
        .env("SIGMALOCK_API", address("variable"))
        .env("SIGMALOCK_PRIVATE", "1"));
    assert_eq!(both.code, Some(64), "{}", both.stderr);
}

/// Everything that was dialled there.
fn visitors(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).expect("a socket");
    std::iter::from_fn(|| listener.accept().ok()).count()
}

#[test]
fn a_socket_that_somebody_else_can_have_put_there_is_never_used() {
    let Some(host) = Host::new() else { return };
    let plant = |name: &str, mode: u32, owners: [u32; 2]| {
        let dir = host.file(name);
        fs::create_dir_all(&dir).expect("ours");
        let listener = UnixListener::bind(dir.join("peer.sock")).expect("a socket");
        fs::set_permissions(dir.join("peer.sock"), Permissions::from_mode(0o666)).expect("ours");
        for (path, owner) in [&dir, &dir.join("peer.sock")].into_iter().zip(owners) {
            chown(path, Some(owner), None).expect("we are root");
        }
        fs::set_permissions(&dir, Permissions::from_mode(mode)).expect("ours");
        listener
    };
    let stranger = 65_533;
    for (name, mode, owners, at, word) in [
        ("run/sigmalock", 0o777, [0, 0], "", "can be written to by others"),
        ("run/sigmalock", 0o775, [0, 0], "", "can be written to by others"),
        (
            "tmp/theirs",
            0o755,
            [stranger; 2],
            "/var/tmp/theirs/peer.sock",
            "belongs to another user",
        ),
        ("run/open", 0o1777, [0, stranger], "/run/open/peer.sock", "belongs to another user"),
    ] {
        let listener = plant(name, mode, owners);
        for who in EVERYBODY {
            let api = format!("unix:{at}");
            let named = [&TRY[..2], &["--api", &api], &TRY[2..]].concat();
            let ran = host.run(who, if at.is_empty() { &TRY } else { &named });
            assert_eq!(ran.code, Some(69), "{name} {who:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(word), "{name} {who:?}: {}", ran.stderr);
        }
        assert_eq!(visitors(&listener), 0, "{name}");
        fs::remove_dir_all(host.file(name)).expect("ours");
    }
    assert!(!host.has_private_peers());
}

#[test]
fn who_answers_must_be_whose_socket_it_is() {
    let Some(host) = Host::new() else { return };
    // Root let 65534 have the directory, and 65533 came in before it was closed.
    fs::create_dir(host.file("run/sigmalock")).expect("new");
    fs::set_permissions(host.file("run/sigmalock"), Permissions::from_mode(0o777)).expect("ours");
    let intruder = Who { uid: 65_533, home: "nobody" };
    let words = ["--socket", "/run/sigmalock/peer.sock", "--data", "/var/tmp/theirs"];
    let _theirs = Peer(host.spawn(intruder, &[&["node", "--private"], &words[..]].concat()));
    let socket = host.file("run/sigmalock/peer.sock");
    wait_until("somebody serves", || socket.exists());
    fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("we are root");
    for path in [&host.file("run/sigmalock"), &socket] {
        chown(path, Some(65_534), None).expect("we are root");
    }
    fs::set_permissions(host.file("run/sigmalock"), Permissions::from_mode(0o755)).expect("ours");
    let ran = host.run(ROOT, &TRY);
    assert_eq!(ran.code, Some(69), "{}", ran.stderr);
    assert!(ran.stderr.contains("whoever answers there is user 65533"), "{}", ran.stderr);
}

#[test]
fn no_port_is_tried_by_itself_and_none_is_served() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    // Somebody may have it already.
    let usual = TcpListener::bind("127.0.0.1:7420").ok();
    assert!(enters(&host.run(NOBODY, &TRY)), "by a private peer");
    assert_eq!(host.run(ROOT, &["status"]).code, Some(69));
    let _peer = machines_peer(&host, &key, &[]);
    let status = host.run(ROOT, &["status", "--json"]);
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    if let Some(usual) = usual {
        usual.set_nonblocking(true).expect("a socket");
        assert!(usual.accept().is_err(), "nobody came there");
    }
}

#[test]
fn only_those_whom_the_peer_names_use_the_machines_socket_and_the_others_start_no_other() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    for (users, mode, may) in
        [(None, 0o600, false), (Some("root"), 0o660, false), (Some("all"), 0o666, true)]
    {
        let words: Vec<&str> = users.into_iter().flat_map(|users| ["--users", users]).collect();
        let _peer = machines_peer(&host, &key, &words);
        let meta = fs::metadata(host.file("run/sigmalock/peer.sock")).expect("a socket");
        assert_eq!(meta.mode() & 0o777, mode);
        assert!(enters(&host.run(ROOT, &TRY)));
        if may {
            assert!(enters(&host.run(NOBODY, &TRY)));
        } else {
            nobody_enters(
                &host,
                &[NOBODY, NOBODY_ELSEWHERE],
                &["cannot be used", "ermission denied"],
            );
        }
        fs::remove_dir_all(host.file("run/sigmalock")).expect("ours");
    }
    assert!(!host.has_private_peers());
}

#[test]
fn a_swarm_that_is_demanded_is_that_or_none() {
    let Some(host) = Host::new() else { return };
    let (key, other) = (Key::new(), Key::new());
    let demand = |id: &str, more: &[&str]| {
        host.run(ROOT, &[&TRY[..2], &["--swarm", id], more, &TRY[2..]].concat())
    };
    let none = demand(&key.id, &[]);
    assert_eq!(none.code, Some(69), "{}", none.stderr);
    assert!(none.stderr.contains(&format!("swarm {} was demanded", key.id)), "{}", none.stderr);
    // A private one is none of it, though it runs, and though its own id is named.
    assert!(enters(&host.run(ROOT, &TRY)));
    let private = host.private(ROOT)["swarm"].as_str().expect("an id").to_owned();
    for id in [&key.id, &private] {
        let api = format!("unix:{}", host.file("root/run/sigmalock/private.sock").display());
        for more in [&[][..], &["--api", &api]] {
            let ran = demand(id, more);
            assert_eq!(ran.code, Some(69), "{}", ran.stderr);
            assert!(ran.stderr.contains(&format!("swarm {id}")), "{}", ran.stderr);
        }
    }
    let _peer = machines_peer(&host, &key, &[]);
    assert!(enters(&demand(&key.id, &[])));
    let wrong = demand(&other.id, &[]);
    assert_eq!(wrong.code, Some(69), "{}", wrong.stderr);
    let both = format!("a peer of swarm {}, and swarm {} was demanded", key.id, other.id);
    assert!(wrong.stderr.contains(&both), "{}", wrong.stderr);
    let by_variable = end(host.command(ROOT, &TRY).env("SIGMALOCK_SWARM", &other.id));
    assert_eq!(by_variable.code, Some(69), "{}", by_variable.stderr);
    // A script whose variable is unset does not enter anywhere.
    for ran in [demand("", &[]), end(host.command(ROOT, &TRY).env("SIGMALOCK_SWARM", ""))] {
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(ran.stderr.contains("key show` and `status` tell"), "{}", ran.stderr);
    }
    host.write("etc/sigmalock/config.toml", &format!("swarm = '{}'\n", other.id));
    assert_eq!(host.run(ROOT, &TRY).code, Some(69), "by the machine's configuration");
    assert!(enters(&demand(&key.id, &[])), "a flag outdoes it");
}

/// The sockets of a process that others could reach it at.
fn open_ports(pid: i64) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
    let links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    let inodes: Vec<String> = links
        .filter_map(|link| {
            let link = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
            Some(link)
        })
        .collect();
    let tables = ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"];
    let lines = |table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
    let ours = |line: &&str| {
        line.split_whitespace().nth(9).is_some_and(|inode| inodes.iter().any(|i| i == inode))
    };
    let table = |table| lines(table).lines().filter(ours).map(str::to_owned).collect::<Vec<_>>();
    assert!(!inodes.is_empty(), "it serves its socket");
    tables.into_iter().flat_map(table).collect()
}

#[test]
fn a_private_peer_has_a_secret_of_its_own_and_listens_nowhere_but_at_its_socket() {
    let Some(host) = Host::new() else { return };
    let first = host.run(NOBODY, &TRY);
    assert!(enters(&first));
    let words = "exclude other commands of user nobody on this machine, nobody else";
    assert!(first.stderr.contains(words), "{}", first.stderr);
    let status = host.private(NOBODY);
    assert_eq!(
        (&status["private"], &status["listening"]),
        (&true.into(), &Vec::<()>::new().into())
    );
    assert_eq!(open_ports(status["pid"].as_i64().expect("a process")), Vec::<String>::new());
    let data = host.file("nobody/.local/state/sigmalock-private");
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join("swarm.key"))), (0o700, 0o600));
    assert_eq!(mode(&host.file("nobody/run/sigmalock/private.sock")), 0o600);
    let id = host.run(ROOT, &["key", "show", &data.join("swarm.key").display().to_string()]);
    assert_eq!(status["swarm"].as_str(), Some(id.stdout.trim()));
    let told = host.run(NOBODY, &["status"]).stdout;
    assert!(told.contains("private    nobody can join it"), "{told}");
    // Others have their own, with another secret.
    assert!(enters(&host.run(ROOT, &TRY)));
    assert_ne!(host.private(ROOT)["swarm"], status["swarm"]);
    assert_eq!(fs::read_dir(host.file("tmp")).expect("there").count(), 0, "it leaves no trace");
}

#[test]
fn a_private_peer_closes_an_empty_data_directory_and_writes_to_no_other_that_is_open() {
    let Some(host) = Host::new() else { return };
    let data = host.file("root/.local/state/sigmalock-private");
    fs::create_dir_all(&data).expect("new");
    fs::set_permissions(&data, Permissions::from_mode(0o755)).expect("ours");
    fs::write(data.join("letter"), "dear").expect("ours");
    assert_eq!(host.run(ROOT, &TRY).code, Some(69));
    assert!(!data.join("swarm.key").exists());
    fs::remove_file(data.join("letter")).expect("ours");
    assert!(enters(&host.run(ROOT, &TRY)));
    assert_eq!(fs::metadata(&data).expect("there").mode() & 0o777, 0o700);
}

#[test]
fn a_private_peer_and_one_of_a_swarm_do_not_take_each_others_place() {
    let Some(host) = Host::new() else { return };
    let key = Key::new();
    assert!(enters(&host.run(NOBODY, &TRY)));
    let private = host.private(NOBODY)["pid"].as_i64().expect("a process");
    let users = peer(&host, NOBODY, &key, &["--found", "--yes"]);
    let status: serde_json::Value =
        serde_json::from_str(&host.run(NOBODY, &["status", "--json"]).stdout).expect("JSON");
    assert_eq!(status["swarm"].as_str(), Some(key.id.as_str()), "that of the swarm comes first");
    assert_eq!(host.private(NOBODY)["pid"].as_i64(), Some(private));
    kill_process(id(&users.0), Signal::KILL).expect("it lives");
    drop(users);
    nobody_enters(&host, &[NOBODY], &["belongs to a swarm"]);
}
