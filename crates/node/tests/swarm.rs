//! Several peers in one process, over loopback.

mod common;

use std::time::{Duration, Instant};

use common::{alone, answer, granted, name, run, silent, start, wish};
use sigmalock_core::{LockReply, Patience};
use sigmalock_node::report::EvictOutcome;
use sigmalock_node::{Config, Node, Session};

/// So many peers that all see each other and vote.
async fn swarm(count: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for _ in 0..count {
        let node = join(&nodes).await;
        nodes.push(node);
    }
    settled(&nodes).await;
    nodes
}

/// A name that can do without one of the peers: it hosts no more than n − m of its replicas. With few peers
/// and hashing some names cannot.
async fn name_without(doomed: &Node, stem: &str) -> String {
    let me = doomed.handle().status().await.unwrap().peer;
    for number in 0..1_000 {
        let text = format!("{stem}-{number}");
        let lock = doomed.handle().inspect(name(&text)).await;
        let hosted = lock.replicas.iter().filter(|replica| replica.host == Some(me)).count();
        if hosted <= lock.n - lock.m {
            return text;
        }
    }
    panic!("one peer hosts everything");
}

/// Until all replicas of a name vote: in a swarm that is minutes old nobody waits for anybody's word.
async fn everybody_votes(nodes: &[Node], text: &str) {
    let session = &mut sessions(nodes)[0];
    session.acquire(1, wish(text, Patience::Forever)).unwrap();
    granted(session, 1).await;
    let abstains = async || {
        let lock = nodes[0].handle().inspect(name(text)).await;
        lock.replicas.iter().any(|r| !r.answered || r.abstains_for > Duration::ZERO)
    };
    while abstains().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// One more peer.
async fn join(nodes: &[Node]) -> Node {
    let join = match nodes.first() {
        Some(first) => {
            let listening = first.handle().status().await.unwrap().listening;
            listening.iter().map(|address| address.parse().unwrap()).collect()
        }
        None => Vec::new(),
    };
    start(Config { listen: vec!["/ip4/127.0.0.1/tcp/0".parse().unwrap()], join, ..alone() }).await
}

/// Waits until all see all.
async fn settled(nodes: &[Node]) {
    let begin = Instant::now();
    for node in nodes {
        while node.handle().status().await.unwrap().peers_up != nodes.len() {
            assert!(begin.elapsed() < Duration::from_secs(15), "they do not find each other");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn sessions(nodes: &[Node]) -> Vec<Session> {
    nodes.iter().map(|node| node.handle().open_session("test".into()).unwrap()).collect()
}

#[test]
fn peers_exclude_each_other_and_hand_on_and_tokens_grow() {
    run(async {
        for count in [3, 5] {
            let nodes = swarm(count).await;
            let mut sessions = sessions(&nodes);
            for session in &sessions {
                session.acquire(1, wish("/a", Patience::Forever)).unwrap();
            }
            let mut last = None;
            for _ in 0..count {
                let polls = sessions.iter_mut().map(|session| Box::pin(answer(session)));
                let ((call, reply), winner, others) = futures::future::select_all(polls).await;
                drop(others);
                let LockReply::Granted { token, .. } = reply else { panic!("{reply:?}") };
                assert_eq!(call, 1);
                assert!(token > last, "{token:?} after {last:?}");
                last = token;
                for (index, other) in sessions.iter_mut().enumerate() {
                    assert!(
                        index == winner
                            || !matches!(other.try_next(), Some((_, LockReply::Granted { .. })))
                    );
                }
                sessions[winner].release(1).unwrap();
                assert_eq!(answer(&mut sessions[winner]).await, (1, LockReply::Released));
                // It is out of the race.
                let spare = nodes[winner].handle().open_session("done".into()).unwrap();
                sessions[winner] = spare;
            }
        }
    });
}

#[test]
fn a_report_from_any_peer_names_the_holder_and_any_peer_can_evict_it() {
    run(async {
        let nodes = swarm(3).await;
        let mut holder = nodes[0].handle().open_session("the holder".into()).unwrap();
        let mut waiter = nodes[1].handle().open_session("the waiter".into()).unwrap();
        holder.acquire(1, wish("/a", Patience::Forever)).unwrap();
        let token = granted(&mut holder, 1).await;
        waiter.acquire(1, wish("/a", Patience::Forever)).unwrap();
        silent(&mut waiter).await;
        let report = nodes[2].handle().inspect(name("/a")).await;
        let found = &report.holders[0];
        assert_eq!(found.label.as_deref(), Some("the holder"));
        assert_eq!(found.token, Some(token));
        assert!(report.asked > 0 && report.asked == report.answered);
        assert_eq!(report.queue.len(), 1);
        assert_eq!(report.queue[0].labels, ["the waiter"]);
        let list = nodes[1].handle().list(String::new(), 10).await;
        assert_eq!(list.len(), 1);
        assert!(list[0].held && list[0].label.as_deref() == Some("the holder"));
        let outcome = nodes[2].handle().evict(name("/a")).await.unwrap();
        assert!(matches!(outcome, EvictOutcome::Evicted { .. }), "{outcome:?}");
        assert_eq!(answer(&mut holder).await, (1, LockReply::Lost));
        holder.release(1).unwrap();
        assert!(granted(&mut waiter, 1).await > token);
    });
}

#[test]
fn a_dead_peer_is_missed_and_its_lock_goes_to_the_next() {
    run(async {
        let mut nodes = swarm(5).await;
        let dead = nodes.pop().unwrap();
        let (a, b) = (name_without(&dead, "/a").await, name_without(&dead, "/b").await);
        everybody_votes(&nodes, &b).await;
        let mut holder = dead.handle().open_session("the dead".into()).unwrap();
        holder.acquire(1, wish(&a, Patience::Forever)).unwrap();
        let token = granted(&mut holder, 1).await;
        let mut sessions = sessions(&nodes);
        sessions[0].acquire(1, wish(&a, Patience::Forever)).unwrap();
        silent(&mut sessions[0]).await;
        let begin = Instant::now();
        drop(dead);
        settled(&nodes).await;
        // Other locks go on while its votes run out.
        sessions[1].acquire(1, wish(&b, Patience::Forever)).unwrap();
        granted(&mut sessions[1], 1).await;
        assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
        assert!(granted(&mut sessions[0], 1).await > token);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    });
}

#[test]
fn who_leaves_hands_over_and_the_holder_elsewhere_keeps_its_lock() {
    run(async {
        let mut nodes = swarm(4).await;
        let mut holder = nodes[0].handle().open_session("the holder".into()).unwrap();
        for call in 0..50 {
            holder.acquire(call, wish(&format!("/many/{call}"), Patience::Forever)).unwrap();
        }
        for _ in 0..50 {
            assert!(matches!(answer(&mut holder).await, (_, LockReply::Granted { .. })));
        }
        let begin = Instant::now();
        nodes.pop().unwrap().leave().await.unwrap();
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
        let newcomer = join(&nodes).await;
        nodes.push(newcomer);
        settled(&nodes).await;
        let mut others = sessions(&nodes);
        for (call, session) in others.iter_mut().enumerate().skip(1) {
            session.acquire(1, wish(&format!("/many/{call}"), Patience::Try)).unwrap();
            assert_eq!(answer(session).await, (1, LockReply::Busy));
        }
        // All are renewed with the hosts that they have now.
        let until = Instant::now() + Duration::from_secs(12);
        while let Ok(Some((call, reply))) =
            tokio::time::timeout(until.saturating_duration_since(Instant::now()), holder.next())
                .await
        {
            assert!(matches!(reply, LockReply::Extended { .. }), "{call}: {reply:?}");
        }
    });
}
