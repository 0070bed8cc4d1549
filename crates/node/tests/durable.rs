//! Peers with a data directory: what survives them.

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, alone, answer, granted, run, start, wish};
use sigmalock_core::{Acquire, LockReply, Patience, Span, Token};
use sigmalock_node::{Beginning, Config, Membership, Node, ProtocolName, StartError};
use sigmalock_protocols::parts::Quorum;

const DIRECTORY: &str = "SIGMALOCK_TEST_DIRECTORY";
const AGREED: &str = "SIGMALOCK_TEST_AGREED";
const KINDS: [Membership; 2] = [Membership::Open, Membership::Agreed];
const TTL: Span = Span::from_secs(3);

fn durable(dir: &Path, membership: Membership) -> Config {
    Config { data: Some(dir.into()), membership, beginning: Beginning::Found, ..alone() }
}

fn short(text: &str, patience: Patience) -> Acquire {
    Acquire { ttl: TTL, ..wish(text, patience) }
}

/// Not a test: the process that the tests below kill. It holds /held and goes through /busy.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    run(async {
        let agreed = std::env::var_os(AGREED).is_some();
        let node = start(durable(Path::new(&dir), KINDS[usize::from(agreed)])).await;
        let mut session = node.handle().open_session("child".into()).unwrap();
        session.acquire(0, short("/held", Patience::Forever)).unwrap();
        println!("held {}", granted(&mut session, 0).await);
        for call in 1.. {
            session.acquire(call, short("/busy", Patience::Forever)).unwrap();
            println!("busy {}", granted(&mut session, call).await);
            session.release(call).unwrap();
            assert_eq!(answer(&mut session).await, (call, LockReply::Released));
        }
    });
}

/// Starts that process, lets it go on for a while, kills it, and says which tokens it has shown for
/// /held and /busy.
fn life(dir: &Path, kind: Membership, entries: usize) -> (Token, Token) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    if kind == Membership::Agreed {
        child.env(AGREED, "");
    }
    let mut child: Child = child
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = |what: &str| {
        loop {
            let line = lines.next().expect("it goes on").unwrap();
            if let Some((_, token)) = line.split_once(what) {
                return Token(token.trim().parse().unwrap());
            }
        }
    };
    let held = shown("held ");
    let mut busy = Token::default();
    for _ in 0..entries {
        busy = shown("busy ");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it printed after that counts too.
    for line in lines.map_while(Result::ok) {
        if let Some((_, token)) = line.split_once("busy ")
            && let Ok(token) = token.trim().parse()
        {
            busy = Token(token);
        }
    }
    (held, busy)
}

#[test]
fn a_killed_peer_comes_back_with_its_votes_and_its_tokens_grow_on() {
    KINDS.into_iter().for_each(comes_back);
}

fn comes_back(kind: Membership) {
    let folder = Folder::new();
    let (held, busy) = life(&folder.0, kind, 100);
    run(async {
        let began = Instant::now();
        let node = start(durable(&folder.0, kind)).await;
        assert_eq!(node.handle().status().await.unwrap().advice, [""; 0], "nothing was lost");
        let mut session = node.handle().open_session("next".into()).unwrap();
        session.acquire(1, short("/held", Patience::Try)).unwrap();
        assert_eq!(answer(&mut session).await, (1, LockReply::Busy), "its vote is out");
        session.acquire(2, short("/held", Patience::Forever)).unwrap();
        assert!(granted(&mut session, 2).await > held);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_secs(3) && waited < Duration::from_secs(6), "{waited:?}");
        session.acquire(3, short("/busy", Patience::Forever)).unwrap();
        assert!(granted(&mut session, 3).await > busy);
        node.leave().await.unwrap();
    });
}

#[test]
fn a_peer_that_left_in_order_is_at_once_ready_again() {
    KINDS.into_iter().for_each(leaves_and_comes_back);
}

fn leaves_and_comes_back(kind: Membership) {
    let folder = Folder::new();
    run(async {
        let node = start(durable(&folder.0, kind)).await;
        let mut session = node.handle().open_session("a".into()).unwrap();
        session.acquire(1, short("/a", Patience::Forever)).unwrap();
        let first = granted(&mut session, 1).await;
        // Who does not say that it is out may be in.
        session.end();
        node.leave().await.unwrap();
        let node = start(durable(&folder.0, kind)).await;
        let mut session = node.handle().open_session("b".into()).unwrap();
        session.acquire(1, short("/a", Patience::Try)).unwrap();
        assert!(granted(&mut session, 1).await > first);
    });
}

#[test]
fn a_peer_whose_store_is_gone_votes_only_when_its_forgotten_votes_have_run_out() {
    let folder = Folder::new();
    run(async {
        let config = || Config { lease_max: TTL, ..durable(&folder.0, Membership::Open) };
        let node = start(config()).await;
        assert!(
            node.handle().status().await.unwrap().can_grant,
            "a new peer has nothing to forget"
        );
        node.leave().await.unwrap();
        std::fs::remove_file(folder.0.join("votes.redb")).unwrap();
        let began = Instant::now();
        let node = start(config()).await;
        let status = node.handle().status().await.unwrap();
        assert!(!status.can_grant && status.why_not.unwrap().contains("lost its memory"));
        let mut session = node.handle().open_session("a".into()).unwrap();
        session.acquire(1, short("/a", Patience::Forever)).unwrap();
        granted(&mut session, 1).await;
        assert!(began.elapsed() >= Duration::from_secs(3));
        assert!(node.handle().status().await.unwrap().can_grant);
    });
}

/// Alone, and with agreed membership, it cannot get over that; with open membership it can.
#[test]
fn a_peer_whose_disk_was_damaged_says_so_and_votes_for_nobody() {
    for kind in KINDS {
        let folder = Folder::new();
        let (held, _) = life(&folder.0, kind, 10);
        // The first entry, so that all that follows is lost with it.
        let journal = folder.0.join("votes.journal");
        let mut bytes = std::fs::read(&journal).unwrap();
        bytes[50] ^= 1;
        std::fs::write(&journal, bytes).unwrap();
        run(async {
            let config = || Config { lease_max: TTL * 2, ..durable(&folder.0, kind) };
            // The settings are looked at first, and those of its life were others.
            let refused = Node::start(config()).await.err().unwrap();
            assert!(refused.to_string().contains("longest lease"), "{refused}");
            let node = start(durable(&folder.0, kind)).await;
            let status = node.handle().status().await.unwrap();
            assert!(!status.can_grant && status.why_not.unwrap().contains("lost its memory"));
            let [advice] = status.advice.as_slice() else { panic!("{:?}", status.advice) };
            assert!(advice.contains("lost its memory when it started: votes.journal has 0 of"));
            assert!(folder.0.join("votes.journal.damaged").exists());
            let mut session = node.handle().open_session("next".into()).unwrap();
            let patience = Patience::For(Span::from_secs(4));
            session.acquire(1, short("/held", patience)).unwrap();
            assert_eq!(answer(&mut session).await, (1, LockReply::TimedOut));
            if kind == Membership::Open {
                session.acquire(2, short("/held", Patience::Forever)).unwrap();
                assert!(granted(&mut session, 2).await > held);
            }
        });
    }
}

#[test]
fn without_its_identity_or_with_a_damaged_one_a_directory_is_refused_and_left_alone() {
    let folder = Folder::new();
    run(async {
        let config = || durable(&folder.0, Membership::Agreed);
        start(config()).await.leave().await.unwrap();
        let identity = folder.0.join("identity");
        let bytes = std::fs::read(&identity).unwrap();
        std::fs::remove_file(&identity).unwrap();
        for file in ["", "votes.redb", "votes.journal", "votes.header"] {
            let _ = std::fs::remove_file(folder.0.join(file));
            let refused = Node::start(config()).await.err().unwrap();
            assert!(refused.to_string().contains("identity is missing"), "{refused}");
            assert!(!identity.exists());
        }
        std::fs::write(&identity, &bytes[1..]).unwrap();
        let refused = Node::start(config()).await.err().unwrap();
        assert!(refused.to_string().contains("identity is damaged"), "{refused}");
        std::fs::write(&identity, bytes).unwrap();
        let node = start(config()).await;
        assert!(!node.handle().status().await.unwrap().can_grant, "its votes are gone");
    });
}

#[test]
fn a_founder_whose_store_is_gone_founds_no_second_swarm_and_says_what_to_do() {
    let folder = Folder::new();
    run(async {
        let config = || durable(&folder.0, Membership::Agreed);
        start(config()).await.leave().await.unwrap();
        std::fs::remove_file(folder.0.join("votes.redb")).unwrap();
        let node = start(config()).await;
        let status = node.handle().status().await.unwrap();
        let words = status.why_not.unwrap_or_default();
        assert!(
            words.contains("lost its memory") && words.contains("found a swarm anew"),
            "{words}"
        );
        node.leave().await.unwrap();
        std::fs::remove_dir_all(&folder.0).unwrap();
        let node = start(config()).await;
        assert!(node.handle().status().await.unwrap().can_grant, "it is another peer");
    });
}

#[test]
fn a_peer_that_is_told_nothing_founds_nothing() {
    let folder = Folder::new();
    run(async {
        let dir = folder.0.join("new");
        let config = Config { beginning: Beginning::Join, ..durable(&dir, Membership::Agreed) };
        let refused = Node::start(config).await.err().unwrap();
        assert!(matches!(refused, StartError::Nobody), "{refused}");
        assert!(!dir.exists(), "nothing was written");
    });
}

#[test]
fn a_directory_in_use_or_of_another_swarm_is_refused() {
    let folder = Folder::new();
    run(async {
        let durable = || durable(&folder.0, Membership::Open);
        let node = start(durable()).await;
        let second = Node::start(durable()).await;
        let words = second.err().unwrap().to_string();
        assert!(words.contains("in use by another process"), "{words}");
        node.leave().await.unwrap();
        let other = Config { quorum: Quorum::new(5, 3).unwrap(), ..durable() };
        let refused = Node::start(other).await.err().unwrap();
        assert!(matches!(refused, StartError::Store(_)));
        assert!(refused.to_string().contains("6 of 9"), "{refused}");
    });
}

#[test]
fn a_protocol_that_does_not_run_with_this_membership_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    run(async {
        let dir = folder.0.join("new");
        let kinds = [
            (ProtocolName::Strawman, Membership::Open, "live peers run it with: agreed"),
            (ProtocolName::Sigma, Membership::Fixed, "live peers run it with: open, agreed"),
            (
                ProtocolName::Views,
                Membership::Agreed,
                "no lock protocol; there are: sigma, strawman",
            ),
        ];
        for (protocol, membership, words) in kinds {
            let config = Config { protocol, ..durable(&dir, membership) };
            let refused = Node::start(config).await.err().unwrap();
            assert!(
                refused.is_about_settings() && refused.to_string().contains(words),
                "{refused}"
            );
            assert!(!dir.exists(), "nothing was written");
        }
    });
}
