//! `forget`: go on without members that are gone for good.

use clap::Args;
use sigmalock::report;
use sigmalock_core::ForgetRefusal;

use crate::outcome::{Failure, Verdict, after_help};
use crate::reach::{Peer, not_answered, not_done};
use crate::words;

/// Goes on without members that are gone for good: the last resort when half of them or more are
///
/// Members that are silent are voted out by themselves, as long as more than half of them are there. When
/// half or more are gone for good, nobody can vote, and somebody who knows must say so: name all of them at
/// once, at one of those who are left. They are asked first, and all of them must answer. Say it only of peers that will
/// never be back with what they promised: if one of them is alive somewhere, two may hold the same lock until
/// they meet.
///
/// Members that lost their memory count as gone: stop them, name them, and start them again; they are added as
/// newcomers.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Forget {
    /// All members that are gone, as `peers` shows them, or how their names begin
    #[arg(value_name = "PEER", required = true)]
    gone: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// The gone are as many as a majority, and nobody can verify that they did not go on without this peer:
    /// you know that they did not
    #[arg(long)]
    unverified: bool,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock peers
  sigmalock forget p4980054197802181705 p133
  sigmalock forget p498 p133 p961 --unverified --yes --json";

impl Forget {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let peers = super::block_on(async {
            let client = self.peer.connect().await?;
            client.peers().await.map_err(not_answered)
        })?;
        let gone = find_all(&self.gone, &peers)?;
        if is_majority(&gone, &peers) && !self.unverified {
            return Err(Failure::usage(ForgetRefusal::Unverified.to_string()).into());
        }
        if !self.yes && !is_meant(&gone, &peers)? {
            return Err(anyhow::anyhow!("nobody is forgotten"));
        }
        let (forgotten, status) = super::block_on(async {
            let client = self.peer.connect().await?;
            let names = gone.iter().map(|peer| peer.peer.as_str());
            let forgotten = client.forget(names, self.unverified).await.map_err(not_done)?;
            Ok((forgotten, client.status().await.map_err(not_answered)?))
        })?;
        if self.json {
            super::print_json(&forgotten)?;
        } else {
            let members = words::count(u64::from(forgotten.members), "member");
            let are = if gone.len() == 1 { "is" } else { "are" };
            let (peers, view) = (forgotten.peers.join(", "), forgotten.view);
            super::print(&format!("{peers} {are} forgotten; view {view} has {members}\n"))?;
            if !status.votes {
                super::print(&format!("{}\n", status.why_no_vote))?;
            }
        }
        Ok(Verdict::Holds)
    }
}

fn members(peers: &[report::Peer]) -> impl Iterator<Item = &report::Peer> {
    peers.iter().filter(|peer| peer.standing == "member")
}

/// Whether the gone are enough to have decided something by themselves.
fn is_majority(gone: &[&report::Peer], peers: &[report::Peer]) -> bool {
    2 * gone.len() > members(peers).count()
}

/// The members that are meant, each once.
fn find_all<'a>(
    texts: &[String], peers: &'a [report::Peer],
) -> Result<Vec<&'a report::Peer>, Failure> {
    let mut gone: Vec<&report::Peer> = Vec::new();
    for text in texts {
        let peer = find(text, peers)?;
        if !gone.iter().any(|known| known.peer == peer.peer) {
            gone.push(peer);
        }
    }
    Ok(gone)
}

/// The member that is meant.
fn find<'a>(text: &str, peers: &'a [report::Peer]) -> Result<&'a report::Peer, Failure> {
    if peers.iter().all(|peer| peer.standing.is_empty()) {
        let sentence = "this swarm has open membership: there are no members to forget";
        return Err(Failure::usage(sentence));
    }
    if let Some(peer) = members(peers).find(|peer| peer.peer == text) {
        return Ok(peer);
    }
    let begins = |peer: &&report::Peer| text.len() > 1 && peer.peer.starts_with(text);
    let found: Vec<_> = members(peers).filter(begins).collect();
    match found.as_slice() {
        [peer] => Ok(peer),
        [] => {
            let sentence = "no member of this swarm is called so; `sigmalock peers` lists them";
            Err(Failure::usage(format!("{text}: {sentence}")))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|peer| peer.peer.as_str()).collect();
            Err(Failure::usage(format!("{text} could be {}: say more of it", names.join(" or "))))
        }
    }
}

fn is_meant(gone: &[&report::Peer], peers: &[report::Peer]) -> anyhow::Result<bool> {
    let names: Vec<&str> = gone.iter().map(|peer| peer.peer.as_str()).collect();
    let unasked = format!(
        "forget {}: if one of them is alive somewhere, two may then hold the same lock: say --yes if they are \
         gone for good",
        names.join(", ")
    );
    super::confirm(&risk(gone, peers), "Forget them?", &unasked)
}

/// What is at stake, in words.
fn risk(gone: &[&report::Peer], peers: &[report::Peer]) -> String {
    let (count, up) =
        (members(peers).count(), members(peers).filter(|peer| peer.connected).count());
    let mut text: String = gone.iter().map(|peer| described(peer)).collect();
    text += &format!(
        "{} of {count} members; {up} can be reached.\n\n\
         Verified: all members who are left and not named are asked first, all of them\n\
         must answer, and nobody who can be reached may know a newer membership.\n",
        gone.len()
    );
    text += if is_majority(gone, peers) {
        "NOT verified: that they did not go on without this peer. They are as many as a\n\
         majority, so they may have added others, who hold locks now, and of whom nobody\n\
         here knows.\n"
    } else {
        "They are fewer than a majority, so they have not gone on without the others.\n"
    };
    text + "NOT verified: that they are gone. If one of them, or anybody that it reaches, is\n\
            alive somewhere, two may hold the same lock until they meet. Do this only if\n\
            they will never run again with the data they have.\n"
}

/// One of the gone: who, where it was, and since when it is silent.
fn described(peer: &report::Peer) -> String {
    let place = peer.addresses.first().map(|at| format!(" ({at})")).unwrap_or_default();
    let silent = match (peer.connected, peer.silent_for_ms) {
        (true, _) => "can be reached".to_owned(),
        (false, 0) => "silent since a moment ago".to_owned(),
        (false, ms) => format!("silent for {}", words::millis(ms)),
    };
    format!("{}{place}\n  {silent}\n", peer.peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> report::Peer {
        let (peer, standing) = (name.to_owned(), "member".to_owned());
        report::Peer { peer, standing, ..report::Peer::default() }
    }

    #[test]
    fn a_member_is_found_by_how_its_name_begins_unless_several_do() {
        let peers = [member("p41"), member("p42"), member("p5")];
        let sentence = |text| find(text, &peers).unwrap_err().to_string();
        assert_eq!(find("p5", &peers).unwrap().peer, "p5");
        assert_eq!(find("p41", &peers).unwrap().peer, "p41");
        assert_eq!(sentence("p4"), "p4 could be p41 or p42: say more of it");
        assert!(sentence("p6").contains("no member"), "{}", sentence("p6"));
        assert!(sentence("p").contains("no member"), "{}", sentence("p"));
        assert!(sentence("").contains("no member"), "{}", sentence(""));
        assert!(find("p4", &[member("p4"), member("p41")]).is_ok(), "a whole name is one");
        let open = [report::Peer { peer: "p1".into(), ..report::Peer::default() }];
        assert!(find("p1", &open).unwrap_err().to_string().contains("open membership"));
    }

    #[test]
    fn who_is_named_twice_is_gone_once() {
        let peers = [member("p41"), member("p42"), member("p5")];
        let named = ["p5", "p41", "p5"].map(str::to_owned);
        let gone = find_all(&named, &peers).unwrap();
        assert_eq!(gone.iter().map(|peer| peer.peer.as_str()).collect::<Vec<_>>(), ["p5", "p41"]);
    }

    #[test]
    fn the_risk_is_spelled_out_and_grows_with_a_majority() {
        let mut peers = ["p1", "p2", "p3", "p4"].map(member);
        (peers[0].silent_for_ms, peers[1].silent_for_ms) = (62_000, 9_000);
        (peers[2].connected, peers[3].connected) = (true, true);
        let words = risk(&[&peers[0], &peers[1]], &peers);
        let head = "p1\n  silent for 1 min 2 s\np2\n  silent for 9.0 s\n2 of 4 members; 2 can be";
        assert!(words.starts_with(head), "{words}");
        assert!(words.contains("fewer than a majority"), "{words}");
        let more = risk(&[&peers[0], &peers[1], &peers[2]], &peers);
        assert!(more.contains("NOT verified: that they did not go on"), "{more}");
        for line in words.lines().chain(more.lines()) {
            assert!(line.len() <= 80, "it fits a terminal: {line}");
        }
        assert!(words.contains("two may hold the same lock until they meet"), "{words}");
    }
}
