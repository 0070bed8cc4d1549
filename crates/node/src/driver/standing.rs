//! How a peer stands to the swarm, in words.

use sigmalock_core::{MemberReport, PeerId, Span, Standing, ViewReport};

use super::{Driver, Live};
use crate::link::{Obstacle, Role};
use crate::names::Names;
use crate::report::{duration, seconds};

/// So many peers are named in a sentence.
const NAMED_MAX: usize = 3;
const LEAVING: &str = "this peer is leaving the swarm";
const CLIENT_ONLY: &str = "this peer is a client only";
pub(super) const LOST: &str = "this peer has lost its memory: it votes for nobody until the members have removed it \
                               and added it again, which they do by themselves";
pub(super) const OLD_DISK: &str = "the disk of this peer is not the newest that it had, or not the only one: an old \
                                   backup was put back, or another peer has run with a copy of its data directory. If \
                                   one still does, stop it and delete the copy. This peer votes for nobody until the \
                                   members have removed it and added it again, which they do by themselves";
const CUT_OFF: &str = "this peer sees half of the peers of the last hour, or fewer: it may be cut off from the others, \
                       and so does not vote";

/// Members that lost their memory.
fn forgetful(view: &ViewReport, names: &Names) -> Option<String> {
    let forgetful = view.members.iter().filter(|member| member.forgot).map(|member| member.peer);
    let forgetful: Vec<PeerId> = forgetful.collect();
    (!forgetful.is_empty()).then(|| named(&forgetful, names))
}

impl<P: Live> Driver<P> {
    /// Whether this peer sees so few of the others that it does not vote; where nobody agrees on who is in.
    fn is_cut_off(&self) -> bool {
        self.protocol.placement().is_some_and(|placement| !placement.may_vote())
    }

    /// Why this peer cannot get anybody a lock, if so; where nobody agrees on who is in.
    pub(super) fn why_not_open(&self, hosts_up: usize) -> Option<String> {
        let abstains = self.abstains_until.since(self.now);
        if self.leaving_since.is_some() {
            Some(LEAVING.into())
        } else if hosts_up == 0 {
            Some("this peer is a client only, and no host can be reached".into())
        } else if self.me.role == Role::Host && self.is_cut_off() {
            Some(CUT_OFF.into())
        } else if hosts_up == 1 && self.me.role == Role::Host && abstains > Span::ZERO {
            Some(format!(
                "this peer has lost its memory and is alone: it votes in {}, when all votes that it may have \
                 forgotten have run out",
                seconds(duration(abstains))
            ))
        } else {
            None
        }
    }

    /// The same where they do.
    pub(super) fn why_not_agreed(&self, view: &ViewReport) -> Option<String> {
        if self.leaving_since.is_some() {
            return Some(LEAVING.into());
        }
        (!view.gets_locks).then(|| self.standing_in_words(view)).flatten()
    }

    /// Why this peer votes for nobody, if so, where peers agree on who is in. Its users may get locks all the same, by
    /// the votes of others.
    pub(super) fn why_no_vote_agreed(&self, view: &ViewReport) -> Option<String> {
        match view.standing {
            _ if self.me.role == Role::ClientOnly => Some(CLIENT_ONLY.into()),
            _ if self.leaving_since.is_some() => Some(LEAVING.into()),
            // Its vote is there for whoever reaches more than it does.
            Standing::Minority { .. } => None,
            _ => self.standing_in_words(view),
        }
    }

    /// The same where nobody agrees.
    pub(super) fn why_no_vote_open(&self) -> Option<String> {
        let abstains = self.abstains_until.since(self.now);
        if self.me.role == Role::ClientOnly {
            Some(CLIENT_ONLY.into())
        } else if self.leaving_since.is_some() {
            Some(LEAVING.into())
        } else if self.is_cut_off() {
            Some(CUT_OFF.into())
        } else if abstains > Span::ZERO {
            Some(format!(
                "this peer has lost its memory: it votes in {}, when all votes that it may have forgotten \
                 have run out",
                seconds(duration(abstains))
            ))
        } else {
            None
        }
    }

    /// How this peer stands to the swarm, unless all is well.
    fn standing_in_words(&self, view: &ViewReport) -> Option<String> {
        let members = view.members.len();
        let up = view.members.iter().filter(|member| member.silent_for.is_none()).count();
        match view.standing {
            Standing::Voting => None,
            Standing::Outside if self.me.role == Role::ClientOnly && view.number > 0 => {
                let needed = members / 2 + 1;
                Some(format!(
                    "this peer, a client only, reaches {up} of {members} members of the swarm, and it takes \
                     {needed}{}",
                    forgetful(view, &self.names.read()).map_or_else(
                        String::new,
                        |forgetful| format!(
                            " that remember what they promised; of these do not: {forgetful}"
                        )
                    )
                ))
            }
            Standing::Outside => Some(self.why_outside(view)),
            Standing::Founding { expected, told_otherwise: Some((peer, told)), .. } => {
                Some(format!(
                    "this peer was told to --expect {expected}, and {} to --expect {told}: no swarm begins before all \
                     hosts here are told the same number",
                    self.names.read().show(peer)
                ))
            }
            Standing::Founding { here, expected, pledged_to, .. } => {
                Some(self.why_founding(here, expected, pledged_to))
            }
            Standing::Lost => Some(self.why_lost(view)),
            Standing::OldDisk => Some(format!("{OLD_DISK}{}", self.too_few(view))),
            Standing::Unvouched => Some(self.why_unvouched(view)),
            Standing::Learning { for_at_most } if view.number == 1 => Some(format!(
                "this swarm is new: had its hosts been another one a moment ago, and lost all data, somebody might still \
                 be inside, so this peer votes in {}",
                seconds(duration(for_at_most))
            )),
            Standing::Learning { for_at_most } => Some(format!(
                "this peer is finding out which locks are held: it votes when it knows, at the latest in {}",
                seconds(duration(for_at_most))
            )),
            Standing::Minority { up, needed } => {
                let forgetful = forgetful(view, &self.names.read());
                Some(match forgetful {
                    Some(forgetful) => format!(
                        "this peer reaches {up} of {members} members of the swarm that remember what they promised, \
                     itself included, and it takes {needed}; of those who do not ({forgetful}) see \
                     `sigmalock forget --help`: stop them first"
                    ),
                    None => format!(
                        "this peer reaches {up} of {members} members of the swarm, itself included, and it takes \
                     {needed}{}",
                        self.what_of_the_others(view)
                    ),
                })
            }
        }
    }

    /// What to do about members that are not reached, as the end of a sentence.
    fn what_of_the_others(&self, view: &ViewReport) -> String {
        let kept_by = |obstacle: Obstacle| -> Vec<PeerId> {
            let members = view.members.iter().map(|member| member.peer);
            let kept = |peer: &PeerId| self.outlook.obstacle(*peer, self.now) == Some(obstacle);
            members.filter(kept).collect()
        };
        match (kept_by(Obstacle::Size).as_slice(), kept_by(Obstacle::Refusal).as_slice()) {
            ([], []) => "; if the others are gone for good, see `sigmalock forget --help`".into(),
            ([], refused) => format!(
                "; there, but refused or refusing this peer: {}; see the lines `refused` of `sigmalock status`",
                self.named(refused)
            ),
            (clogged, _) => format!(
                "; there, but packets of full size do not arrive, while small ones do: {}; look at the MTU of all links \
                 on the way",
                self.named(clogged)
            ),
        }
    }

    /// Why a member that came back does not vote yet, and for how long.
    fn why_unvouched(&self, view: &ViewReport) -> String {
        if !view.rivals.is_empty() {
            return format!(
                "this swarm is two, because old data directories were put back, and nobody knows which one is right: \
                 stop all of one, and delete their data directories; in the other one are {}",
                self.named(&view.rivals)
            );
        }
        let up = view.members.iter().filter(|member| member.silent_for.is_none()).count();
        let comes_back = "this peer has just come back: it votes when";
        match view.vouched_in {
            Some(span) => format!(
                "{comes_back} all members that it reaches have confirmed that its disk is the newest, at the latest in {}",
                seconds(duration(span))
            ),
            None if up > 1 => {
                format!("{comes_back} another member has confirmed that its disk is the newest")
            }
            None => format!(
                "{comes_back} another member has confirmed that its disk is the newest, and reaches none{}",
                self.what_of_the_others(view)
            ),
        }
    }

    fn named(&self, peers: &[PeerId]) -> String {
        named(peers, &self.names.read())
    }

    /// The hosts that it has sessions with.
    fn reached(&self) -> Vec<PeerId> {
        let hosts = self.peers.iter().filter(|(_, peer)| peer.info.role == Role::Host);
        hosts.map(|(peer, _)| *peer).collect()
    }

    fn why_founding(&self, here: u16, expected: u16, pledged_to: Option<PeerId>) -> String {
        let away = |peer: &PeerId| self.peers.session(*peer).is_none();
        if let Some(peer) = pledged_to.filter(away) {
            return format!(
                "this peer has pledged itself to a swarm of {expected} hosts that {} alone can begin, and cannot \
                 reach it; if it is gone for good, and none of the others is in a swarm, delete their data directories",
                self.names.read().show(peer)
            );
        }
        if here >= expected {
            return format!(
                "the {expected} hosts that this swarm expects are here, and about to begin it, unless one of them \
                 has pledged itself to another that is not"
            );
        }
        let reached = self.reached().len();
        let others = reached.saturating_sub(usize::from(here) - 1);
        let hint = match (reached, others) {
            (0, _) => format!("; {}", self.outlook.why_nobody(self.now)),
            (_, 0) => String::new(),
            (_, others) => {
                format!("; {others} more can be reached, not told to --expect {expected}")
            }
        };
        format!(
            "this swarm has {here} of the {expected} hosts it expects; nothing is granted before all have been \
             in{hint}"
        )
    }

    fn why_outside(&self, view: &ViewReport) -> String {
        let is_in = |peer: &PeerId| view.members.iter().any(|member| member.peer == *peer);
        let reached = self.reached();
        let members: Vec<PeerId> = reached.iter().copied().filter(is_in).collect();
        let whose = if self.me.role == Role::Host { "it waits to be added" } else { "it waits" };
        if !members.is_empty() {
            format!(
                "this peer is not in the swarm: it waits to be added by {}",
                self.named(&members)
            )
        } else if view.number > 0 {
            let count = view.members.len();
            let refused = self.outlook.last_refusal(self.now);
            let refused = refused.map_or_else(String::new, |why| format!(": {why}"));
            format!(
                "this peer is not in the swarm: {whose}, and reaches none of the {count} members that \
                 it knows of{refused}"
            )
        } else if !reached.is_empty() {
            format!(
                "this peer is in no swarm yet: {whose}, and has heard of none from {}",
                self.named(&reached)
            )
        } else {
            let why = self.outlook.why_nobody(self.now);
            format!("this peer is in no swarm yet: {whose}, and {why}")
        }
    }

    fn why_lost(&self, view: &ViewReport) -> String {
        let others = view.members.iter().any(|member| member.peer != self.me.peer);
        if others || self.peers.len() > 0 {
            return format!("{LOST}{}", self.too_few(view));
        }
        format!("{LOST}; if it was the only one, delete its data directory and found a swarm anew")
    }

    /// Why nobody removes this peer, which lost its memory, if so.
    fn too_few(&self, view: &ViewReport) -> String {
        let counts = |member: &&MemberReport| {
            member.peer != self.me.peer && member.silent_for.is_none() && !member.forgot
        };
        let (up, members) = (view.members.iter().filter(counts).count(), view.members.len());
        let needed = members / 2 + 1;
        if members == 0 || up >= needed {
            return String::new();
        }
        format!(
            "; they cannot: of {members} members it reaches {up} that remember what they promised, and it takes {needed}"
        )
    }
}

/// Some peers in a sentence.
pub(super) fn named(peers: &[PeerId], names: &Names) -> String {
    let named = names.show_all(peers.iter().take(NAMED_MAX));
    let more = peers.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{named}{more}")
}
