//! What peers are called, and where others are told to find them.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agreed::{SOON, brisk, name_of, peers, said};
use crate::fleet::{Fleet, Peer};

/// Waits until the output of a command says something, and returns it.
async fn says(peer: &Peer, command: &[&str], words: &str) -> String {
    let begin = Instant::now();
    loop {
        let text = said(&peer.ask(command));
        if text.contains(words) {
            return text;
        }
        assert!(begin.elapsed() < SOON, "{command:?} does not say {words:?}: {text}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The row of `peers --json` with this id.
fn row(peer: &Peer, id: &str) -> Value {
    let found = peers(peer).into_iter().find(|row| row["peer"] == id);
    found.unwrap_or_else(|| panic!("{id} is not shown"))
}

async fn three(names: [&str; 3]) -> Fleet {
    let mut fleet = Fleet::nobody(brisk(true, "60s")).await;
    for name in names {
        fleet.join(&["--name", name]).await;
    }
    fleet.agrees_on(3, SOON).await;
    fleet
}

#[tokio::test]
async fn peers_are_called_by_their_names_wherever_people_look() {
    let fleet = three(["web", "db", "render-7"]).await;
    let id = name_of(&fleet.peers[2]).await;
    let client = fleet.peers[2].client().await;
    assert_eq!(client.peer_name(), "render-7");
    let _guard = client.lock("/names/x").acquire().await.expect("it is free");
    let web = &fleet.peers[0];
    says(&fleet.peers[2], &["status"], &format!("render-7 ({id}, process ")).await;
    let shown = format!("render-7 ({}", &id[..6]);
    says(web, &["peers"], &shown).await;
    for command in [&["locks", "/names"][..], &["explain", "/names/x"], &["inspect", "/names/x"]] {
        let text = says(web, command, " at render-7").await;
        assert!(!text.contains(&id), "{text}");
    }
    let json =
        |words: &[&str]| -> Value { serde_json::from_slice(&web.ask(words).stdout).expect("JSON") };
    let lock = json(&["inspect", "/names/x", "--json"]);
    let holder = &lock["holder"];
    assert_eq!((&holder["peer"], &holder["peer_name"]), (&id.as_str().into(), &"render-7".into()));
    let hosts = lock["replicas"].as_array().expect("replicas").iter();
    let hosts: Vec<&Value> = hosts.map(|replica| &replica["host_name"]).collect();
    assert!(
        ["web", "db", "render-7"].iter().all(|name| hosts.contains(&&Value::from(*name))),
        "{lock}"
    );
    assert_eq!(json(&["locks", "/names/x", "--json"])["peer_name"], "render-7");
    assert!(fleet.peers[2].logged().contains(&format!("peer render-7 ({id})")));
    let broken = said(&web.ask(&["break", "/names/x", "--yes"]));
    assert!(broken.contains(" at render-7 was told to leave"), "{broken}");
}

#[tokio::test]
async fn a_silent_member_keeps_its_name_and_address_and_may_come_back_by_another() {
    let mut fleet = three(["web", "db", "render-7"]).await;
    let id = name_of(&fleet.peers[2]).await;
    let address = row(&fleet.peers[0], &id)["addresses"][0].clone();
    let file = fleet.peers[0].data().join("peers");
    let kept = || std::fs::read_to_string(&file).is_ok_and(|text| text.contains(" render-7\n"));
    let dead = fleet.kill(2);
    let begin = Instant::now();
    while !kept() {
        assert!(begin.elapsed() < SOON, "the names of others are not kept");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    says(&fleet.peers[0], &["peers"], "silent for").await;
    let web = fleet.kill(0);
    let web = fleet.restart_with(web, &["--name", "web"]).await;
    let silent = says(&fleet.peers[web], &["peers"], "up for").await;
    let line = silent.lines().find(|line| line.starts_with("render-7 (")).expect("it is named");
    assert!(line.contains("silent for"), "{silent}");
    let seen = row(&fleet.peers[web], &id);
    assert_eq!((&seen["name"], &seen["addresses"][0]), (&"render-7".into(), &address));

    fleet.restart_with(dead, &["--name", "render-8"]).await;
    for peer in &fleet.peers {
        let text = says(peer, &["peers"], &format!("render-8 ({}", &id[..6])).await;
        assert!(!text.contains("render-7"), "{text}");
    }
}

#[tokio::test]
async fn two_peers_of_one_name_are_told_apart_by_their_ids() {
    let mut fleet = three(["web", "web", "db"]).await;
    let ids = [name_of(&fleet.peers[0]).await, name_of(&fleet.peers[1]).await];
    let client = fleet.peers[1].client().await;
    let _guard = client.lock("/names/twice").acquire().await.expect("it is free");
    let db = &fleet.peers[2];
    says(db, &["explain", "/names/twice"], &format!(" at web ({}", &ids[1][..6])).await;
    fleet.kill(1);
    let db = &fleet.peers[1];
    says(db, &["peers"], "silent for").await;
    let which = db.ask(&["forget", "web", "--yes"]);
    assert_eq!(which.status.code(), Some(64), "{}", said(&which));
    for id in &ids {
        assert!(said(&which).contains(&format!("web ({}", &id[..6])), "{}", said(&which));
    }
    assert!(said(&which).contains("say which by its id"), "{}", said(&which));
    let dead = fleet.kill(0);
    drop(dead);
    let db = &fleet.peers[0];
    let begin = Instant::now();
    let forgotten = loop {
        let forgotten = db.ask(&["forget", &ids[0], &ids[1], "--yes", "--unverified"]);
        if forgotten.status.success() {
            break said(&forgotten);
        }
        assert!(begin.elapsed() < SOON, "{}", said(&forgotten));
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(forgotten.contains("are forgotten; view"), "{forgotten}");
}

#[tokio::test]
async fn a_peer_is_known_to_others_where_it_says_that_it_is() {
    let free = TcpListener::bind("127.0.0.2:0").and_then(|socket| socket.local_addr());
    let told = free.expect("a port is free").to_string();
    let mut fleet = Fleet::nobody(brisk(false, "60s")).await;
    let listen = format!("127.0.0.1:0,{told}");
    fleet.join(&["--name", "web", "--listen", &listen, "--advertise", &told]).await;
    fleet.join(&[]).await;
    let by_the_second = fleet.peers[1].address().to_owned();
    fleet.join(&["--join", &by_the_second]).await;
    fleet.agrees_on(3, SOON).await;
    let id = name_of(&fleet.peers[0]).await;
    for peer in [&fleet.peers[0], &fleet.peers[2]] {
        let table = says(peer, &["peers"], "web (").await;
        let line = table.lines().find(|line| line.starts_with("web (")).unwrap_or_default();
        assert!(line.ends_with(&told), "{table}");
        let multiaddress =
            format!("/ip4/127.0.0.2/tcp/{}", told.rsplit(':').next().unwrap_or_default());
        assert_eq!(row(peer, &id)["addresses"], Value::from(vec![multiaddress]));
    }
    let told = format!("telling others that it is at {told}");
    assert!(fleet.peers[0].logged().contains(&told), "{}", fleet.peers[0].logged());
}
