//! Who is let in, and what the others are told.

use super::*;
use crate::config::ProtocolName;
use crate::key::SwarmKey;

/// Starts two peers of which neither lets the other in; both say so in these words.
async fn refuse_each_other(a: &Config, b: &Config, words: &[&str]) {
    let mut a = Peer::start(a).await;
    let mut settings = b.clone();
    settings.join = vec![a.address()];
    let mut b = Peer::start(&settings).await;
    for words in words {
        println!("{}", a.refusal(ms(2_000), words).await);
        println!("{}", b.refusal(ms(2_000), words).await);
    }
    a.idle(ms(50)).await;
    b.idle(ms(50)).await;
    assert!(a.up.is_empty() && b.up.is_empty());
    assert!(a.down.is_empty() && b.down.is_empty());
}

#[tokio::test]
async fn another_swarm_key_is_refused_and_both_say_why() {
    let (ours, theirs) = (SwarmKey::generate().unwrap(), SwarmKey::generate().unwrap());
    let (mut a, mut b) = (config(vec![]), config(vec![]));
    a.swarm_key = ours.clone();
    b.swarm_key = theirs.clone();
    refuse_each_other(&a, &b, &["the swarm keys differ", &ours.id(), &theirs.id()]).await;
}

#[tokio::test]
async fn the_same_swarm_key_lets_in() {
    let key = SwarmKey::generate().unwrap();
    let mut settings = config(vec![]);
    settings.swarm_key = key;
    let mut a = Peer::start(&settings).await;
    settings.join = vec![a.address()];
    let mut b = Peer::start(&settings).await;
    assert!(a.until_up(1, ms(1_000)).await && b.until_up(1, ms(1_000)).await);
}

#[tokio::test]
async fn other_terms_are_refused_and_both_say_which() {
    let a = config(vec![]);
    let mut b = a.clone();
    b.quorum = Quorum::new(5, 3).unwrap();
    refuse_each_other(&a, &b, &["the quorums differ", "6 of 9", "3 of 5"]).await;
    let mut b = a.clone();
    b.lease_max = Span::from_secs(20);
    refuse_each_other(&a, &b, &["the longest leases differ", "15 s", "20 s"]).await;
    let mut b = a.clone();
    b.protocol = ProtocolName::Strawman;
    refuse_each_other(&a, &b, &["the lock protocols differ", "sigma", "strawman"]).await;
    let mut b = a.clone();
    b.hand_overs_max = 1;
    refuse_each_other(&a, &b, &["hand-overs differ", "16"]).await;
}

#[tokio::test]
async fn a_refused_peer_is_not_dialed_at_once_again() {
    let a = Peer::start(&config(vec![])).await;
    let mut settings = config(vec![a.address()]);
    settings.quorum = Quorum::new(3, 2).unwrap();
    let b = Peer::start(&settings).await;
    b.refusal(ms(1_000), "quorums").await;
    let dials = |peer: &Peer| {
        let commands = peer.commands.clone();
        async move {
            let (reply, answer) = oneshot::channel();
            commands.send(Command::Describe(reply)).await.unwrap();
            answer.await.unwrap().refusals.len()
        }
    };
    // Without a pause there would be many in this time.
    tokio::time::sleep(ms(600)).await;
    assert_eq!(dials(&b).await, 1);
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_clear_error() {
    let a = Peer::start(&config(vec![])).await;
    let mut settings = config(vec![]);
    settings.listen.clone_from(&a.me.addresses);
    let started = listen(&settings, &Identity::ephemeral()).await;
    let error = started.err().unwrap().to_string();
    assert!(error.contains("cannot listen on /ip4/127.0.0.1/tcp/"), "{error}");
    assert!(error.contains("in use"), "{error}");
}
