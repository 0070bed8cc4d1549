//! How names may be written, what errors say, and the client without `async`.

use std::time::{Duration, Instant};

use sigmalock::fence::{Fence, FenceError};
use sigmalock::{AcquireError, ConnectOptions, LocksError, blocking};

use crate::peer::{Dir, Peer};

#[tokio::test]
async fn a_lock_is_one_with_and_without_its_leading_slash() {
    let peer = Peer::start().await;
    let (client, other) = (peer.client().await, peer.client().await);
    let guard = client.lock("backup").acquire().await.unwrap();
    assert_eq!(guard.name(), "/backup");
    assert!(matches!(other.lock("/backup").try_acquire().await, Err(AcquireError::Busy)));
    for name in ["backup", "/backup"] {
        let lock = client.inspect(name).await.unwrap();
        assert_eq!((lock.name.as_str(), lock.holder.unwrap().token), ("/backup", guard.token()));
    }
    for prefix in ["", "/", "back", "/back"] {
        let names: Vec<_> = client.list(prefix, 0).await.unwrap();
        assert_eq!(names.iter().map(|lock| lock.name.as_str()).collect::<Vec<_>>(), ["/backup"]);
    }
    client.break_lock("backup").await.unwrap();
    guard.lost().await;
}

#[tokio::test]
async fn several_locks_are_taken_in_the_order_of_names_however_they_are_written() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    // As texts they would be taken in the other order, and one of them twice: by the same client, for ever.
    let guards = client.locks(["b", "/c", "/b", "a"]).acquire().await.unwrap();
    let names: Vec<&str> = guards.iter().map(sigmalock::Guard::name).collect();
    assert_eq!(names, ["/a", "/b", "/c"]);
    let error = peer.client().await.locks(["/d", "c"]).try_acquire().await.unwrap_err();
    assert!(matches!(error, LocksError { ref name, error: AcquireError::Busy } if name == "/c"));
}

#[tokio::test]
async fn who_tries_does_not_wait_whatever_was_said_before() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let guard = client.lock("/a").try_acquire().await.unwrap();
    let begin = Instant::now();
    let patient = peer.client().await;
    let minute = Duration::from_secs(60);
    let tried = patient.lock("/a").wait(minute).try_acquire().await;
    assert!(matches!(tried, Err(AcquireError::Busy)), "{tried:?}");
    let tried = patient.locks(["/a"]).wait(minute).try_acquire().await;
    assert!(matches!(tried, Err(LocksError { error: AcquireError::Busy, .. })), "{tried:?}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    guard.release().await.unwrap();
    patient.locks(["/a"]).try_acquire().await.unwrap().release().await.unwrap();
}

#[test]
fn a_fence_knows_a_lock_by_both_ways_to_write_it() {
    let dir = Dir::new();
    let path = dir.0.join("marks");
    let stale = |fence: &Fence<_>, name: &str| {
        matches!(fence.check(name, 7, "anna"), Err(FenceError::Stale { seen: 8, .. }))
    };
    // As it was written when these were two names.
    std::fs::write(&path, "5\tdb\tanna\n8\t/db\tbert\n3\tno lock's name\tanna\n").unwrap();
    let fence = Fence::in_file(&path);
    assert!(stale(&fence, "db") && stale(&fence, "/db"));
    std::fs::write(&path, "8\tdb\tbert\n5\t/db\tanna\t2\n").unwrap();
    assert!(stale(&fence, "db") && stale(&fence, "/db"));
    assert!(fence.check("db", 9, "cleo").is_ok());
    assert!(fence.check("no lock's name", 3, "anna").is_ok());
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        kept.lines().filter(|line| line.contains("db")).collect::<Vec<_>>(),
        ["9\t/db\tcleo\t2"]
    );
}

#[tokio::test]
async fn errors_are_sentences_also_where_main_returns_them() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let held = client.lock("/a").acquire().await.unwrap();
    let busy = client.lock("/a").try_acquire().await.unwrap_err();
    assert_eq!(format!("{busy:?}"), "the lock cannot be had now");
    let bad = client.lock("a//b").acquire().await.unwrap_err();
    assert_eq!(
        format!("{bad:?}"),
        "a lock name has no empty path segment, this one has one at byte 2"
    );
    let long = client.lock("/b").ttl(Duration::from_secs(60)).acquire().await.unwrap_err();
    assert_eq!(
        format!("{long:?}"),
        "a ttl of more than 15s is longer than this swarm's longest lease: ask for 15s or less, or start all its peers \
         with a longer --lease-max"
    );
    let nobody = ConnectOptions::new().connect("unix:/nowhere/peer.sock").await.unwrap_err();
    assert_eq!(format!("{nobody:?}"), nobody.to_string());
    assert!(format!("{nobody:?}").starts_with("no peer answers at unix:/nowhere/peer.sock: "));
    drop(held);
}

#[test]
fn a_program_without_a_runtime_locks_waits_loses_and_gives_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let peer = runtime.block_on(Peer::start());
    let client = blocking::Client::connect(&peer.unix()).unwrap();
    let ttl = Duration::from_secs(2);
    let guard = client.lock("x").ttl(ttl).acquire().unwrap();
    assert_eq!(guard.name(), "/x");
    let other = blocking::Client::open(ConnectOptions::new().label("other").connect(&peer.unix()));
    let other = other.unwrap();
    assert!(matches!(other.lock("/x").try_acquire(), Err(AcquireError::Busy)));
    let patience = Duration::from_millis(100);
    let waited = other.lock("/x").wait(patience).acquire();
    assert!(matches!(waited, Err(AcquireError::TimedOut { .. })), "{waited:?}");
    // Nothing of this thread runs meanwhile, and the lease goes on.
    std::thread::sleep(ttl * 2);
    guard.check().unwrap();
    let token = guard.token();
    let waiter = std::thread::spawn(move || other.lock("/x").acquire().unwrap());
    assert!(!guard.is_lost_within(patience));
    guard.release().unwrap();
    let next = waiter.join().unwrap();
    assert!(next.token() > token);
    client.call(|client| client.break_lock("/x")).unwrap();
    assert!(next.is_lost_within(Duration::from_secs(5)));
    assert!(next.check().is_err() && next.release().is_err());
}

#[test]
fn a_blocking_guard_that_was_dropped_has_been_given_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let peer = runtime.block_on(Peer::start());
    let options = ConnectOptions::new().hold_if_cut(true);
    for _ in 0..20 {
        let client = blocking::Client::open(options.connect(&peer.unix())).unwrap();
        let guards = client.locks(["/x", "/y"]).try_acquire().unwrap();
        assert_eq!(guards.len(), 2);
        drop((guards, client));
    }
    // Where nobody may wait it comes back all the same, a little later.
    let client = blocking::Client::connect(&peer.unix()).unwrap();
    let guard = client.lock("/x").acquire().unwrap();
    runtime.block_on(async move { drop(guard) });
    client.lock("/x").wait(Duration::from_secs(5)).acquire().unwrap().release().unwrap();
    runtime.block_on(async move { drop(client) });
}

/// What tells one `run` from another is the number behind the name of its program.
#[tokio::test]
async fn a_label_that_is_too_long_loses_of_its_words_and_not_the_number_of_its_process() {
    let peer = Peer::start().await;
    let me = std::process::id();
    let long = "x".repeat(200);
    for words in [long.clone(), format!("run {long} ({me})")] {
        let client = peer.labelled(&words).await;
        let guard = client.lock("/a").acquire().await.unwrap();
        let label = client.inspect("/a").await.unwrap().holder.unwrap().label;
        assert!(label.len() <= 128 && label.contains(&format!("({me})")), "{label}");
        assert!(label.contains("xxx") && label.contains(" by "), "{label}");
        guard.release().await.unwrap();
    }
}
