//! Bad command lines of everything but `lab`: one clear sentence on stderr, nothing on stdout, and exit
//! code 64.

mod common;

use common::sigmalock;

/// Every line, and the sentence it is answered with.
const BAD: &[(&str, &str)] = &[
    ("", "a command is missing; `sigmalock --help` lists them"),
    ("lap", "there is no command `lap`; did you mean `lab`?"),
    ("zebra", "there is no command `zebra`; `sigmalock --help` lists them"),
    ("run", "NAME[,NAME…] is missing"),
    ("run /a", "CMD is missing"),
    ("run /a --", "CMD is missing"),
    (
        "run a//b -- true",
        "NAME[,NAME…] a//b: a lock name has no empty path segment, this one has one at byte 2",
    ),
    ("run /a --try --wait 1s -- true", "--try and --wait exclude each other"),
    ("run /a --ttl 0s -- true", "--ttl 0s: this duration must be longer than nothing"),
    (
        "run /a --ttl 10 -- true",
        "--ttl 10: a duration is a number with a unit, such as 100ms, 10s or 5m",
    ),
    ("run /a --wait -- true", "--wait needs a value"),
    (
        "run /a --api nowhere -- true",
        "\"nowhere\" is no address of a peer: write HOST:PORT or unix:PATH",
    ),
    ("lock", "NAME[,NAME…] is missing"),
    (
        "lock ../a",
        "NAME[,NAME…] ../a: a lock name has no `.` or `..` segment, this one has one at byte 0",
    ),
    ("locks --limit 0", "--limit 0: this should be a whole number between 1 and 1000"),
    ("inspect", "NAME is missing"),
    ("explain /a /b", "there is no `/b` here"),
    ("break /a", "break interrupts whoever holds the lock: say --yes if that is meant"),
    ("status --api x:0", "\"x:0\" is no address of a peer: write HOST:PORT or unix:PATH"),
    ("key", "a command is missing; `sigmalock --help` lists them"),
    ("key new", "FILE is missing"),
    ("forget", "PEER is missing"),
    (
        "node --ephemeral --found",
        "the peers of a swarm share a secret: make one with `sigmalock key new swarm.key`, and say --swarm-key swarm.key; for locks of this user on this machine, say --private",
    ),
    ("node --private --found", "--private and --found exclude each other"),
    ("node --users all", "--socket is missing"),
    (
        "node --socket s --users nobody-has-this-one",
        "--users nobody-has-this-one: there is no such group",
    ),
    ("status --private --swarm x", "--private and --swarm exclude each other"),
    ("node --expect 0", "--expect 0: this should be a whole number between 1 and 1024"),
    ("node --expect 1025", "--expect 1025: this should be a whole number between 1 and 1024"),
    ("node --expect 3 --found", "--expect and --found exclude each other"),
    ("node --expect 3 --client-only", "--expect and --client-only exclude each other"),
    (
        "node --expect 3 --ephemeral",
        "--expect 3: this peer would never meet the others: give all of them the same --join, with the addresses of all, or --mdns",
    ),
    (
        "node --expect 3 --membership open --mdns",
        "--expect is for --membership agreed: with open membership nobody makes a swarm, it is whom one sees",
    ),
    ("node --found --client-only", "--found and --client-only exclude each other"),
    (
        "node --membership none",
        "--membership none: there is no such kind of membership; there are: agreed, open",
    ),
    (
        "node --protocol paxos",
        "--protocol paxos: there is no such protocol; there are: sigma, strawman",
    ),
    (
        "node --protocol strawman --membership open",
        "strawman does not run with open membership; live peers run it with: agreed",
    ),
    ("node --private --protocol strawman", "--private and --protocol exclude each other"),
    (
        "node --membership open --dead-after 9s",
        "--dead-after is for --membership agreed: with open membership nobody is voted out",
    ),
    (
        "node --found --replicas 9 --quorum 6",
        "--replicas and --quorum are for --membership open: with agreed membership the members vote, and more than half of the votes hold a lock",
    ),
    ("node --replicas 5", "--quorum is missing"),
    (
        "node --membership open --replicas 4 --quorum 2",
        "--replicas 4 --quorum 2: a quorum of 2 of 4 replicas is not more than half, so two clients could win at once",
    ),
    ("node --data d --ephemeral", "--data and --ephemeral exclude each other"),
    ("node --found --join 1.2.3.4:5", "--found and --join exclude each other"),
    (
        "node --join 1.2.3.4",
        "--join 1.2.3.4: an address is HOST:PORT, or a multiaddress such as /ip4/192.0.2.7/tcp/7421",
    ),
    (
        "node --listen /nonsense",
        "--listen /nonsense: this is no multiaddress, such as /ip4/192.0.2.7/tcp/7421",
    ),
    (
        "node --name two.words!",
        "--name two.words!: a name of a peer is made of letters from a to z, digits, and - _ . and begins with a letter or digit",
    ),
    (
        "node --name p14622706887153926033",
        "--name p14622706887153926033: a name of a peer is not a p and a number: that is how ids are written",
    ),
    (
        "node --advertise 203.0.113.9",
        "--advertise 203.0.113.9: an address is HOST:PORT, or a multiaddress such as /ip4/192.0.2.7/tcp/7421",
    ),
    ("node --api 7420", "--api 7420: this should be an IP address and a port, or none"),
    (
        "node --api 0.0.0.0:7420",
        "--api 0.0.0.0:7420: other machines reach that, and the API does not ask who they are: serve 127.0.0.1:7420, to which they may tunnel (ssh -L)",
    ),
    (
        "node --log loud",
        "--log loud: this should be off, error, warn, info, debug or trace, or json, or both with a comma",
    ),
    (
        "run /a git checkout -- file",
        "`--` should stand right before the command; if that begins with git, say: sigmalock run /a -- git checkout -- file (several locks are one word, /a,/b)",
    ),
    (
        "run /a --try /b -- true",
        "`--` should stand right before the command; if that begins with /b, say: sigmalock run /a --try -- /b -- true (several locks are one word, /a,/b)",
    ),
    (
        "run -- /a -- $X 1",
        "`--` should stand right before the command; if that begins with '$X', say: sigmalock run /a -- '$X' 1 (several locks are one word, /a,/b)",
    ),
    ("run /a --tyr true", "there is no `--tyr` here"),
    ("run /a -x true", "there is no `-x` here"),
    ("man /nowhere/at/all", "there is no directory /nowhere/at"),
    ("demo --peers 0", "--peers 0: this should be a whole number between 1 and 20"),
    ("demo --seconds 0", "--seconds 0: this should be a whole number of seconds, at most a day"),
    ("bench --clients 0", "--clients 0: this should be a whole number between 1 and 4096"),
    ("completions tcl", "SHELL tcl: there are: bash, elvish, fish, powershell, zsh"),
];

#[test]
fn every_bad_command_line_gets_its_sentence_and_exit_code_64() {
    for (line, sentence) in BAD {
        let ran = sigmalock(line);
        assert_eq!(ran.stderr, format!("sigmalock: {sentence}\n"), "sigmalock {line}");
        assert_eq!(ran.code, Some(64), "sigmalock {line}");
        assert_eq!(ran.stdout, "", "sigmalock {line}");
    }
}

#[test]
fn a_peer_that_nobody_could_use_does_not_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = dir.path().join("swarm.key").display().to_string();
    assert_eq!(sigmalock(&format!("key new {key}")).code, Some(0));
    let node = format!("node --ephemeral --no-trace --listen 127.0.0.1:0 --swarm-key {key}");
    for (flags, sentence) in [
        (
            "",
            "this peer knows of no swarm: join one with --join ADDRESS (or --mdns), make one together with others (the same with --expect N), or found one alone with --found",
        ),
        (
            "--found --yes --advertise 0.0.0.0:7421",
            "/ip4/0.0.0.0/tcp/7421 leads others nowhere: advertise an address and a port at which they reach this peer",
        ),
        (
            "--found --yes --lease-max 1s",
            "a longest lease of 1s is too short to hold any lock: it takes 1.25s at least",
        ),
    ] {
        let ran = sigmalock(&format!("{node} {flags}"));
        assert_eq!((ran.code, ran.stderr), (Some(64), format!("sigmalock: {sentence}\n")));
    }
}

#[test]
fn a_file_that_is_no_key_is_a_mistake_of_the_command_line_whatever_is_wrong_with_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("junk"), "junk").expect("ours");
    assert_eq!(sigmalock(&format!("key new {}", path("key"))).code, Some(0));
    let open = std::os::unix::fs::PermissionsExt::from_mode;
    std::fs::copy(path("key"), path("open")).expect("ours");
    std::fs::set_permissions(path("open"), open(0o644)).expect("ours");
    std::fs::set_permissions(path("junk"), open(0o600)).expect("ours");
    for (name, why) in [
        ("junk", "is not a swarm key"),
        ("open", "can be read by others"),
        ("none", "there is no swarm key at"),
    ] {
        let key = path(name);
        for line in [format!("key show {key}"), format!("node --ephemeral --swarm-key {key}")] {
            let ran = sigmalock(&line);
            assert_eq!(ran.code, Some(64), "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains(why), "{line}: {}", ran.stderr);
        }
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = sigmalock(&format!("completions {shell}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        for word in ["kill-grace", "explain", "torture"] {
            assert!(ran.stdout.contains(word), "{shell}: no {word}");
        }
    }
    let page = sigmalock("man").stdout;
    assert!(page.contains(".TH sigmalock 1") && page.contains("explain"), "{page}");
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man1");
    let ran = sigmalock(&format!("man {}", pages.display()));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let again = sigmalock(&format!("man {}", pages.display()));
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""), "into what is there");
    let below = sigmalock(&format!("man {}/above/man1", dir.path().display()));
    assert_eq!(below.code, Some(64), "{}", below.stderr);
    assert!(!dir.path().join("above").exists(), "only the last directory is made");
    for page in ["sigmalock.1", "sigmalock-run.1", "sigmalock-key-new.1"] {
        assert!(pages.join(page).exists(), "no {page}");
    }
}

#[test]
fn a_key_is_made_once_and_shown_by_its_id_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("swarm.key").display().to_string();
    let made = sigmalock(&format!("key new {file}"));
    assert_eq!((made.code, made.stderr.as_str()), (Some(0), ""));
    let shown = sigmalock(&format!("key show {file}"));
    assert_eq!(shown.stdout, made.stdout);
    let secret = std::fs::read_to_string(&file).expect("a key");
    assert!(!secret.contains(shown.stdout.trim()), "the id is no part of the secret");
    let json = sigmalock(&format!("key show {file} --json")).stdout;
    assert_eq!(json, format!("{{\"id\":\"{}\"}}\n", shown.stdout.trim()));
    let again = sigmalock(&format!("key new {file}"));
    assert_eq!(again.code, Some(1));
    assert_eq!(std::fs::read_to_string(&file).expect("a key"), secret, "it is left as it is");
    let missing = sigmalock("key show /nowhere/swarm.key");
    assert_eq!((missing.code, missing.stderr.lines().count()), (Some(64), 1), "{}", missing.stderr);
}

#[test]
fn a_key_that_others_can_read_is_refused_with_the_cure() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("swarm.key").display().to_string();
    assert_eq!(sigmalock(&format!("key new {file}")).code, Some(0));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    for line in
        [format!("node --ephemeral --found --yes --swarm-key {file}"), format!("key show {file}")]
    {
        let ran = sigmalock(&line);
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("chmod 600 {file}")), "{}", ran.stderr);
    }
}

#[test]
fn a_key_in_place_of_a_file_is_never_said_again() {
    let digits = "1234567890abcdef".repeat(4);
    let key = format!("sigmalock-swarm-key-v1:{digits}");
    for line in [
        format!("node --ephemeral --found --swarm-key {key}"),
        format!("node --ephemeral --found --swarm-key {digits}"),
        format!("node --join {key}"),
        format!("node {key}"),
        format!("key show {key}"),
        format!("key new {key}"),
        format!("key show {digits}"),
        key.clone(),
    ] {
        let ran = sigmalock(&line);
        assert_eq!(ran.code, Some(64), "{}", ran.stderr);
        assert!(!(ran.stdout + &ran.stderr).contains("12345678"), "{}", line.replace(&digits, "…"));
    }
}
