//! `forget`: go on without members that are gone for good.

use clap::Args;
use sigmalock::report;
use sigmalock_core::ForgetRefusal;

use crate::addresses::host_and_port;
use crate::known::Known;
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
    /// All members that are gone: their names, as `peers` shows them, or their ids, or how these begin
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
  sigmalock forget render-7 render-8
  sigmalock forget p498 p133 p961 --unverified --yes --json";

impl Forget {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let peers = super::block_on(async {
            let client = self.peer.connect().await?;
            client.peers().await.map_err(not_answered)
        })?;
        let known = Known::of(&peers);
        let gone = find_all(&self.gone, &peers, &known)?;
        if is_majority(&gone, &peers) && !self.unverified {
            return Err(Failure::usage(ForgetRefusal::Unverified.to_string()).into());
        }
        if !self.yes && !is_meant(&gone, &peers, &known)? {
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
            let peers = known.list(forgotten.peers.iter().map(String::as_str)).join(", ");
            let view = forgotten.view;
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
    texts: &[String], peers: &'a [report::Peer], known: &Known,
) -> Result<Vec<&'a report::Peer>, Failure> {
    let mut gone: Vec<&report::Peer> = Vec::new();
    for text in texts {
        let peer = find(text, peers, known)?;
        if !gone.iter().any(|known| known.peer == peer.peer) {
            gone.push(peer);
        }
    }
    Ok(gone)
}

/// The member that is meant.
fn find<'a>(
    text: &str, peers: &'a [report::Peer], known: &Known,
) -> Result<&'a report::Peer, Failure> {
    if peers.iter().all(|peer| peer.standing.is_empty()) {
        let sentence = "this swarm has open membership: there are no members to forget";
        return Err(Failure::usage(sentence));
    }
    if let Some(peer) = members(peers).find(|peer| peer.peer == text) {
        return Ok(peer);
    }
    // As `peers` shows it.
    let id = text.strip_suffix('…').unwrap_or(text);
    // Names are never like the beginning of an id. One that is not whole is none: another may be meant.
    let meant = |peer: &&report::Peer| {
        (id.len() > 1 && peer.peer.starts_with(id)) || (!text.is_empty() && peer.name == text)
    };
    let found: Vec<_> = members(peers).filter(meant).collect();
    match found.as_slice() {
        [peer] => Ok(peer),
        [] => {
            let sentence = "no member of this swarm is called so; `sigmalock peers` lists them";
            Err(Failure::usage(format!("{text}: {sentence}")))
        }
        several => {
            let candidate = |peer: &&report::Peer| match peer.name.as_str() {
                "" => peer.peer.clone(),
                _ => format!("{} at {}", known.show_with_id(&peer.peer), place(peer)),
            };
            let candidates: Vec<String> = several.iter().map(candidate).collect();
            let candidates = candidates.join(" or ");
            Err(Failure::usage(format!("{text} could be {candidates}: say which by its id")))
        }
    }
}

fn is_meant(gone: &[&report::Peer], peers: &[report::Peer], known: &Known) -> anyhow::Result<bool> {
    let names = known.list(gone.iter().map(|peer| peer.peer.as_str()));
    let unasked = format!(
        "forget {}: if one of them is alive somewhere, two may then hold the same lock: say --yes if they are \
         gone for good",
        names.join(", ")
    );
    super::confirm(&risk(gone, peers, known), "Forget them?", &unasked)
}

/// What is at stake, in words.
fn risk(gone: &[&report::Peer], peers: &[report::Peer], known: &Known) -> String {
    let (count, up) =
        (members(peers).count(), members(peers).filter(|peer| peer.connected).count());
    let mut text: String = gone.iter().map(|peer| described(peer, known)).collect();
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

/// Where a peer is, or was.
fn place(peer: &report::Peer) -> String {
    peer.addresses.first().map_or_else(|| "an unknown address".to_owned(), |at| host_and_port(at))
}

/// One of the gone: who, where it was, and since when it is silent.
fn described(peer: &report::Peer, known: &Known) -> String {
    let silent = match (peer.connected, peer.silent_for_ms) {
        (true, _) => "can be reached".to_owned(),
        (false, 0) => "silent since a moment ago".to_owned(),
        (false, ms) => format!("silent for {}", words::millis(ms)),
    };
    format!("{}\n  {silent}, last at {}\n", known.show_with_id(&peer.peer), place(peer))
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
        let sentence = |text| find(text, &peers, &Known::of(&peers)).unwrap_err().to_string();
        let found = |text| find(text, &peers, &Known::of(&peers));
        assert_eq!(found("p5").unwrap().peer, "p5");
        assert_eq!(found("p41").unwrap().peer, "p41");
        assert_eq!(sentence("p4"), "p4 could be p41 or p42: say which by its id");
        assert!(sentence("p6").contains("no member"), "{}", sentence("p6"));
        assert!(sentence("p").contains("no member"), "{}", sentence("p"));
        assert!(sentence("").contains("no member"), "{}", sentence(""));
        assert!(
            find("p4", &[member("p4"), member("p41")], &Known::default()).is_ok(),
            "a whole name is one"
        );
        let open = [report::Peer { peer: "p1".into(), ..report::Peer::default() }];
        assert!(
            find("p1", &open, &Known::default())
                .unwrap_err()
                .to_string()
                .contains("open membership")
        );
    }

    #[test]
    fn a_name_will_do_where_one_member_has_it_and_else_the_candidates_are_told() {
        let named = |id: &str, name: &str| report::Peer { name: name.into(), ..member(id) };
        let mut peers = [named("p41", "web"), named("p42", "web"), named("p51", "web-7")];
        peers[0].addresses = vec!["/ip4/192.0.2.7/tcp/7421".into()];
        let known = Known::of(&peers);
        assert_eq!(find("web-7", &peers, &known).unwrap().peer, "p51");
        assert_eq!(find("p42", &peers, &known).unwrap().peer, "p42");
        assert_eq!(find("p5…", &peers, &known).unwrap().peer, "p51", "as `peers` shows it");
        assert_eq!(
            find("web", &peers, &known).unwrap_err().to_string(),
            "web could be web (p41) at 192.0.2.7:7421 or web (p42) at an unknown address: say which by its id"
        );
        let part = find("web-", &peers, &known).unwrap_err().to_string();
        assert!(part.contains("no member"), "a part of a name is none: {part}");
        let outsider =
            [report::Peer { standing: "outside".into(), ..named("p6", "x") }, peers[0].clone()];
        assert!(find("x", &outsider, &known).is_err(), "who is no member is not meant");
    }

    #[test]
    fn who_is_named_twice_is_gone_once() {
        let peers = [member("p41"), member("p42"), member("p5")];
        let named = ["p5", "p41", "p5"].map(str::to_owned);
        let gone = find_all(&named, &peers, &Known::of(&peers)).unwrap();
        assert_eq!(gone.iter().map(|peer| peer.peer.as_str()).collect::<Vec<_>>(), ["p5", "p41"]);
    }

    #[test]
    fn the_risk_is_spelled_out_and_grows_with_a_majority() {
        let mut peers = ["p1", "p2", "p3", "p4"].map(member);
        peers[0].name = "render-7".into();
        peers[0].addresses = vec!["/ip4/192.0.2.7/tcp/7421".into()];
        (peers[0].silent_for_ms, peers[1].silent_for_ms) = (62_000, 9_000);
        (peers[2].connected, peers[3].connected) = (true, true);
        let words = risk(&[&peers[0], &peers[1]], &peers, &Known::of(&peers));
        let head = "render-7 (p1)\n  silent for 1 min 2 s, last at 192.0.2.7:7421\np2\n  \
                    silent for 9.0 s, last at an unknown address\n2 of 4 members; 2 can be";
        assert!(words.starts_with(head), "{words}");
        assert!(words.contains("fewer than a majority"), "{words}");
        let more = risk(&[&peers[0], &peers[1], &peers[2]], &peers, &Known::of(&peers));
        assert!(more.contains("NOT verified: that they did not go on"), "{more}");
        for line in words.lines().chain(more.lines()) {
            assert!(line.len() <= 80, "it fits a terminal: {line}");
        }
        assert!(words.contains("two may hold the same lock until they meet"), "{words}");
    }
}
