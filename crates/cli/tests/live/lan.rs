//! Machines of their own on a network of their own: namespaces, a switch, and cables that can be pulled.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sigmalock::Client;

use crate::fleet::Scratch;

/// A switch, and machines at it.
struct Lan {
    stem: String,
    machines: usize,
}

impl Lan {
    /// `None` where namespaces cannot be made.
    fn new(machines: usize) -> Option<Self> {
        let lan = Self { stem: format!("sl{}", std::process::id()), machines };
        let hub = lan.hub();
        let made = ip(&format!("netns add {hub}"))
            && ip(&format!("-n {hub} link add switch type bridge"))
            && ip(&format!("-n {hub} link set switch up"))
            && (0..machines).all(|index| lan.plug_in(index));
        made.then_some(lan)
    }

    fn hub(&self) -> String {
        format!("{}hub", self.stem)
    }

    fn machine(&self, index: usize) -> String {
        format!("{}m{index}", self.stem)
    }

    fn plug_in(&self, index: usize) -> bool {
        let (hub, machine) = (self.hub(), self.machine(index));
        ip(&format!("netns add {machine}"))
            && ip(&format!("-n {machine} link add cable type veth peer name c{index} netns {hub}"))
            && ip(&format!("-n {machine} addr add 10.77.0.{}/24 dev cable", index + 1))
            && ip(&format!("-n {machine} link set lo up"))
            && ip(&format!("-n {machine} link set cable up"))
            && ip(&format!("-n {machine} route add 224.0.0.0/4 dev cable"))
            && ip(&format!("-n {hub} link set c{index} master switch"))
            && ip(&format!("-n {hub} link set c{index} up"))
    }

    fn cable(&self, index: usize, state: &str) {
        assert!(ip(&format!("-n {} link set c{index} {state}", self.hub())));
    }

    /// The binary on one of the machines.
    fn command(&self, index: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.machine(index)]);
        command.arg(env!("CARGO_BIN_EXE_sigmalock")).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for index in 0..self.machines {
            ip(&format!("netns del {}", self.machine(index)));
        }
        ip(&format!("netns del {}", self.hub()));
    }
}

pub(crate) fn ip(words: &str) -> bool {
    let ran = Command::new("ip").args(words.split_whitespace()).output();
    ran.is_ok_and(|ran| ran.status.success())
}

/// A peer on one of the machines; it ends with the test.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn until(what: &str, within: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < within, "{what}: not within {within:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn can_grant(client: &Client) -> bool {
    client.status().await.is_ok_and(|status| status.can_grant && status.votes)
}

#[tokio::test]
async fn peers_of_one_lan_find_each_other_and_who_is_unplugged_grants_nothing() {
    let Some(lan) = Lan::new(3) else {
        eprintln!(
            "SKIPPED, NOTHING TESTED: no network namespaces can be made here (they take `ip` and root)"
        );
        return;
    };
    let scratch = Scratch::new();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let key = path("key");
    assert!(lan.command(0, &["key", "new", &key]).status().unwrap().success());
    let (mut peers, mut clients) = (Vec::new(), Vec::new());
    for index in 0..3 {
        let socket = path(&format!("{index}.sock"));
        // The same on all of them.
        let words = ["node", "--mdns", "--expect", "3", "--ephemeral", "--lease-max", "5s"];
        let mut command = lan.command(index, &[&words[..], &["--swarm-key", &key]].concat());
        peers.push(Peer(
            command
                .args(["--no-trace", "--config", "/dev/null", "--socket", &socket])
                .spawn()
                .unwrap(),
        ));
        let address = format!("unix:{socket}");
        let up = async || Client::connect(&address).await.is_ok();
        until("a peer starts", Duration::from_secs(10), up).await;
        clients.push(Client::connect(&address).await.unwrap());
    }
    for client in &clients {
        let all =
            async || can_grant(client).await && client.peers().await.is_ok_and(|p| p.len() == 3);
        until("all find each other", Duration::from_secs(20), all).await;
    }
    let guard = clients[0].lock("/lan").wait(Duration::from_secs(10)).acquire().await.unwrap();
    assert!(clients[2].lock("/lan").try_acquire().await.is_err(), "it is held elsewhere");
    guard.release().await.unwrap();

    lan.cable(2, "down");
    until("it notices", Duration::from_secs(6), async || !can_grant(&clients[2]).await).await;
    let alone = clients[2].lock("/alone").wait(Duration::from_secs(1)).acquire().await;
    assert!(alone.is_err(), "one of three grants nothing");
    assert!(can_grant(&clients[0]).await && can_grant(&clients[1]).await);

    lan.cable(2, "up");
    until("it is back", Duration::from_secs(30), async || can_grant(&clients[2]).await).await;
    let patience = Duration::from_secs(30);
    clients[2].lock("/lan").wait(patience).acquire().await.unwrap().release().await.unwrap();
}
