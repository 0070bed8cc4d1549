//! `forget`: go on without a member that is gone for good.

use clap::Args;
use sigmalock::report;

use crate::outcome::{Failure, Verdict, after_help};
use crate::reach::{Peer, not_answered, not_done};
use crate::words;

/// Goes on without a member that is gone for good: the last resort when most of them are
///
/// Members that are silent are voted out by themselves, as long as more than half of them are there. When
/// half or more are gone for good, nobody can vote, and somebody who knows must say so: forget them one by
/// one until the rest is more than half. Say it only of peers that will never be back: if one of them, or
/// whoever it reaches, is alive somewhere, two may hold the same lock until they meet.
#[derive(Debug, Args)]
#[command(after_help = after_help(EXAMPLES))]
pub(crate) struct Forget {
    /// The member, as `peers` shows it, or how its name begins
    #[arg(value_name = "PEER")]
    gone: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    peer: Peer,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "  \
  sigmalock peers
  sigmalock forget p4980054197802181705
  sigmalock forget p498 --yes --json";

impl Forget {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        let peers = super::block_on(async {
            let client = self.peer.connect().await?;
            client.peers().await.map_err(not_answered)
        })?;
        let gone = find(&self.gone, &peers)?;
        if !self.yes && !is_meant(gone, &peers)? {
            return Err(anyhow::anyhow!("{} stays a member", gone.peer));
        }
        let (forgotten, status) = super::block_on(async {
            let client = self.peer.connect().await?;
            let forgotten = client.forget(&gone.peer).await.map_err(not_done)?;
            Ok((forgotten, client.status().await.map_err(not_answered)?))
        })?;
        if self.json {
            super::print_json(&forgotten)?;
        } else {
            let members = words::count(u64::from(forgotten.members), "member");
            let (peer, view) = (&forgotten.peer, forgotten.view);
            super::print(&format!("{peer} is forgotten; view {view} has {members}\n"))?;
            if !status.can_grant {
                super::print(&format!("{}\n", status.why_not))?;
            }
        }
        Ok(Verdict::Holds)
    }
}

/// The member that is meant.
fn find<'a>(text: &str, peers: &'a [report::Peer]) -> Result<&'a report::Peer, Failure> {
    if peers.iter().all(|peer| peer.standing.is_empty()) {
        let sentence = "this swarm has open membership: there are no members to forget";
        return Err(Failure::usage(sentence));
    }
    let members = || peers.iter().filter(|peer| peer.standing == "member");
    if let Some(peer) = members().find(|peer| peer.peer == text) {
        return Ok(peer);
    }
    let begins = |peer: &&report::Peer| text.len() > 1 && peer.peer.starts_with(text);
    let found: Vec<_> = members().filter(begins).collect();
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

fn is_meant(gone: &report::Peer, peers: &[report::Peer]) -> anyhow::Result<bool> {
    let unasked = format!(
        "forget {}: if that peer is alive somewhere, two may then hold the same lock: say --yes if it is \
         gone for good",
        gone.peer
    );
    super::confirm(&risk(gone, peers), "Forget it?", &unasked)
}

/// What is at stake, in words.
fn risk(gone: &report::Peer, peers: &[report::Peer]) -> String {
    let members = || peers.iter().filter(|peer| peer.standing == "member");
    let (count, up) = (members().count(), members().filter(|peer| peer.connected).count());
    let place = gone.addresses.first().map(|at| format!(" ({at})")).unwrap_or_default();
    let silent = match gone.silent_for_ms {
        0 => String::new(),
        ms => format!("It has been silent for {}.\n", words::millis(ms)),
    };
    format!(
        "{}{place}\n\
         is one of {count} members, {up} of which can be reached.\n{silent}\n\
         If you forget it, those that can be reached go on without it, whatever it and\n\
         the others say. If it, or any member that it reaches, is alive somewhere, two\n\
         may hold the same lock until they meet. Do this only if it is gone for good:\n\
         it will never run again with the data it has.\n",
        gone.peer
    )
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
    fn the_risk_is_spelled_out() {
        let mut gone = member("p1");
        gone.silent_for_ms = 62_000;
        let here = report::Peer { connected: true, ..member("p2") };
        let words = risk(&gone, &[gone.clone(), here]);
        assert!(words.starts_with("p1\nis one of 2 members, 1 of which can be reached.\n"));
        assert!(words.contains("\nIt has been silent for 1 min 2 s.\n"), "{words}");
        assert!(words.lines().all(|line| line.len() < 80), "it fits a terminal: {words}");
        assert!(words.contains("may hold the same lock until they meet"), "{words}");
    }
}
