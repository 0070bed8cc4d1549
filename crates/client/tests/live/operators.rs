//! What operators see and do.

use std::time::Duration;

use sigmalock::{AcquireError, Client, OperatorError, QueryError, ReleaseError};
use tokio::time::timeout;

use crate::peer::Peer;

/// What a peer says of this process, behind whatever it calls itself.
fn signature() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name;
    format!(" by {user} ({})", std::process::id())
}

const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn inspect_and_list_show_holder_and_waiters() {
    let peer = Peer::start().await;
    let (alice, bob) = (peer.labelled("alice").await, peer.labelled("bob").await);
    let guard = alice.lock("/a/1").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { bob.lock("/a/1").acquire().await });
    let _other = alice.lock("/b").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;

    let lock = alice.inspect("/a/1").await.unwrap();
    let holder = lock.holder.expect("it is held");
    let me = signature();
    assert_eq!(holder.label, format!("alice{me}"));
    assert_eq!(holder.token, guard.token());
    assert_eq!(holder.peer, alice.peer());
    assert_eq!((lock.replicas_total, lock.quorum, lock.replicas.len()), (1, 1, 1));
    // Its peer is inside already, so it is in no queue of the swarm.
    let [next] = lock.waiters.as_slice() else { panic!("one waits: {:?}", lock.waiters) };
    assert_eq!((lock.waiting, next.users, next.request.as_str()), (1, 1, ""));
    assert_eq!(next.labels, [format!("bob{me}")]);

    let listed = alice.list("/a/", 0).await.unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((listed[0].name.as_str(), listed[0].held), ("/a/1", true));
    assert_eq!(alice.list("", 1).await.unwrap().len(), 1);
    assert_eq!(alice.list("/none", 0).await.unwrap().len(), 0);

    let status = alice.status().await.unwrap();
    assert!(status.can_grant, "{}", status.why_not);
    assert_eq!((status.sessions, status.held, status.waiting), (2, 2, 1));
    let peers = alice.peers().await.unwrap();
    assert!(peers.len() == 1 && peers[0].is_self, "{peers:?}");
    assert_eq!((peers[0].standing.as_str(), peers[0].view), ("member", 1));
    assert_eq!((status.membership.as_str(), status.standing.as_str()), ("agreed", "voting"));

    drop(guard);
    drop(timeout(SOON, waiting).await.unwrap().unwrap().unwrap());
    assert!(alice.inspect("/free").await.unwrap().holder.is_none());
}

#[tokio::test]
async fn breaking_a_lock_puts_its_holder_out_and_lets_the_next_in() {
    let peer = Peer::start().await;
    let (alice, bob) = (peer.labelled("alice").await, peer.labelled("bob").await);
    let guard = alice.lock("/a").acquire().await.unwrap();
    let broken = bob.break_lock("/a").await.unwrap();
    assert_eq!(broken.label, format!("alice{}", signature()));
    timeout(SOON, guard.lost()).await.expect("the holder is told");
    // It is in no hurry; when it is out, the next need not wait for its lease to end.
    assert!(matches!(bob.lock("/a").try_acquire().await, Err(AcquireError::Busy)));
    assert!(matches!(guard.release().await, Err(ReleaseError::Lost)));
    drop(timeout(SOON, bob.lock("/a").acquire()).await.unwrap().unwrap());
    let answer = bob.break_lock("/nobody").await;
    assert!(matches!(answer, Err(OperatorError::NotFound { .. })), "{answer:?}");
}

#[tokio::test]
async fn over_tcp_locks_are_broken_for_nobody() {
    let peer = Peer::start_with(|config| config.operators = Some("root".to_owned())).await;
    let client = Client::connect(&peer.tcp()).await.unwrap();
    let guard = client.lock("/a").acquire().await.unwrap();
    let answer = client.break_lock("/a").await;
    let Err(OperatorError::NotAllowed { text }) = answer else { panic!("{answer:?}") };
    assert!(text.contains("at its Unix socket, root"), "{text}");
    assert!(!guard.is_lost());
}

#[tokio::test]
async fn forgetting_is_refused_where_it_makes_no_sense_and_over_tcp() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let itself = client.forget([client.peer()], true).await;
    assert!(matches!(&itself, Err(OperatorError::Refused { text }) if text.contains("itself")));
    let stranger = client.forget(["p1", "p2"], true).await;
    assert!(matches!(stranger, Err(OperatorError::NotFound { .. })), "{stranger:?}");
    for nobody in [&["nobody"][..], &[]] {
        let nobody = client.forget(nobody.iter().copied(), true).await;
        assert!(matches!(nobody, Err(OperatorError::Refused { .. })), "{nobody:?}");
    }
    let afar = Client::connect(&peer.tcp()).await.unwrap().forget(["p1"], true).await;
    assert!(
        matches!(&afar, Err(OperatorError::NotAllowed { text }) if text.contains("Unix socket"))
    );
    assert_eq!(client.status().await.unwrap().members, 1, "nothing has changed");
}

#[tokio::test]
async fn a_watch_begins_with_how_it_is_and_tells_what_changes() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    let mut watch = client.watch("/a").await.unwrap();
    assert!(watch.next().await.unwrap().unwrap().holder.is_none());
    let guard = client.lock("/a").acquire().await.unwrap();
    let held = async {
        loop {
            let lock = watch.next().await.unwrap().unwrap();
            if lock.holder.is_some_and(|holder| holder.token == guard.token()) {
                return;
            }
        }
    };
    timeout(SOON, held).await.expect("the change is seen");
    peer.server.stop().await;
    let end = async { while watch.next().await.is_ok_and(|lock| lock.is_some()) {} };
    timeout(SOON, end).await.expect("a watch ends with its peer");
}

#[tokio::test]
async fn questions_past_their_bounds_are_refused() {
    let peer = Peer::start().await;
    let client = peer.client().await;
    for (whom, rounds) in [("p1", 0), ("p1", 1_000_000), ("nobody", 1)] {
        let answer = client.measure(whom, rounds).await;
        assert!(matches!(answer, Err(QueryError::Refused { .. })), "{answer:?}");
    }
    assert!(matches!(client.watch("a b").await, Err(QueryError::Refused { .. })));
    let answer = client.lock("/a").ttl(Duration::from_nanos(1)).acquire().await;
    assert!(matches!(answer, Err(AcquireError::Refused { .. })), "{answer:?}");
}
