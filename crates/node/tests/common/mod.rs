//! What the tests of live peers share.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use sigmalock_core::{Acquire, LockReply, Name, Patience, Span, Token};
use sigmalock_node::key::SwarmKey;
use sigmalock_node::{Config, Membership, Node, Session};
use tokio::time::timeout;

/// A peer that knows nobody.
pub(crate) fn alone() -> Config {
    Config::new(key(), Membership::Open)
}

/// One for all peers of a test.
fn key() -> SwarmKey {
    static KEY: OnceLock<SwarmKey> = OnceLock::new();
    KEY.get_or_init(|| SwarmKey::generate().unwrap()).clone()
}

/// Runs a test on one thread, as peers do.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        timeout(Duration::from_secs(120), test).await.expect("the test takes too long");
    });
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn wish(text: &str, patience: Patience) -> Acquire {
    Acquire::exclusive(name(text), Span::from_secs(10), patience)
}

/// The next reply, if it comes soon.
pub(crate) async fn next(session: &mut Session) -> (u64, LockReply) {
    timeout(Duration::from_secs(20), session.next()).await.expect("no reply").expect("ended")
}

/// The next reply that is no news of the queue.
pub(crate) async fn answer(session: &mut Session) -> (u64, LockReply) {
    loop {
        match next(session).await {
            (_, LockReply::Queued { .. } | LockReply::Extended { .. }) => {}
            other => return other,
        }
    }
}

/// Waits for a grant, and gives its token.
pub(crate) async fn granted(session: &mut Session, call: u64) -> Token {
    match answer(session).await {
        (number, LockReply::Granted { token: Some(token), .. }) if number == call => token,
        other => panic!("expected call {call} to be granted: {other:?}"),
    }
}

/// Nothing but news of the queue comes for a while.
pub(crate) async fn silent(session: &mut Session) {
    let nothing = timeout(Duration::from_millis(100), answer(session)).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

pub(crate) async fn start(config: Config) -> Node {
    Node::start(config).await.unwrap()
}

/// A directory that goes away with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let unique = getrandom::u64().unwrap();
        let path = std::env::temp_dir().join(format!("sigmalock-test-{unique:x}"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}
