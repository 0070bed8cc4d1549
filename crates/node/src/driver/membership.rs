//! Who is in and who hosts what, where peers agree on that and where they do not; in words, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sigmalock_core::{
    LocalTime, LockRequest, MemberReport, Name, PeerId, ReplicaId, Span, Standing, ViewReport,
};
use tokio::sync::oneshot;

use super::operator::Errand;
use super::{Driven, Driver};
use crate::handle::Hosts;
use crate::link::{PeerInfo, Role};
use crate::origin::Origin;
use crate::report::{ForgetError, PeerReport, Place, duration, seconds};

/// How often a driver looks whether the view has changed.
const LOOK_EVERY: Span = Span::from_millis(100);
/// So many peers are named in a sentence.
const NAMED_MAX: usize = 3;
const LEAVING: &str = "this peer is leaving the swarm";
const CLIENT_ONLY: &str = "this peer is a client only";
const LOST: &str = "this peer has lost its memory: it votes for nobody until the members have removed it and added it \
                    again, which they do by themselves";
const OLD_DISK: &str = "the disk of this peer is not the newest that it had, or not the only one: an old backup was put \
                        back, or another peer has run with a copy of its data directory. If one still does, stop it \
                        and delete the copy. This peer votes for nobody until the members have removed it and added \
                        it again, which they do by themselves";
const CUT_OFF: &str = "this peer sees half of the peers of the last hour, or fewer: it may be cut off from the others, \
                       and so does not vote";

/// What a driver knows of the members beside what the protocol does.
#[derive(Debug)]
pub(crate) struct Outlook {
    looked: LocalTime,
    /// The view that was last spoken of.
    view: u64,
    /// Members that this peer has met, so that people can tell who is missing.
    met: BTreeMap<PeerId, PeerInfo>,
    /// Peers with old disks that were spoken of.
    outdated: Vec<PeerId>,
    /// Whether it was said that this peer has lost its memory.
    forgot: bool,
    /// Where this peer was told to look for others, in words.
    looks_at: String,
    /// Which swarm this peer says that it belongs to.
    origin: Arc<Origin>,
}

impl Outlook {
    pub(crate) fn new(looks_at: String, origin: Arc<Origin>) -> Self {
        let (met, outdated) = (BTreeMap::new(), Vec::new());
        Self { looked: LocalTime::MIN, view: 0, met, outdated, forgot: false, looks_at, origin }
    }
}

/// What whoever runs such a swarm should know.
fn advice(view: &ViewReport) -> Vec<String> {
    let two = (view.members.len() == 2)
        .then(|| "two peers cannot survive the crash of one: start a third".to_owned());
    let strangers = (!view.strangers.is_empty()).then(|| {
        let strangers = named(&view.strangers);
        format!("of another swarm, founded elsewhere, and of no use here: {strangers}")
    });
    two.into_iter().chain(strangers).chain(outdated(view)).collect()
}

/// Members that lost their memory.
fn forgetful(view: &ViewReport) -> Option<String> {
    let forgetful = view.members.iter().filter(|member| member.forgot).map(|member| member.peer);
    let forgetful: Vec<PeerId> = forgetful.collect();
    (!forgetful.is_empty()).then(|| named(&forgetful))
}

fn outdated(view: &ViewReport) -> Option<String> {
    (!view.outdated.is_empty()).then(|| {
        let outdated = named(&view.outdated);
        format!(
            "came back with an old disk, and is taken for one that lost its memory: {outdated}; was a backup put \
             back, or does another peer run with a copy of its data directory?"
        )
    })
}

impl<P: Driven> Driver<P> {
    /// Who votes on a name.
    pub(super) fn hosts(&self, name: &Name) -> Hosts {
        if let Some(view) = self.protocol.view(self.now) {
            let seats = self.protocol.seats(name);
            let seats = seats.into_iter().map(|(index, host)| (index, Some(host))).collect();
            return Hosts { votes: self.votes_in(Some(&view)), seats };
        }
        let replica = |index| ReplicaId { name: name.clone(), index };
        let seat = |index| (index, self.around.placement.host_of(&replica(index)));
        Hosts { votes: self.votes, seats: (0..self.votes.0 as u16).map(seat).collect() }
    }

    /// How many vote on a name, and how many votes hold it. Without a view, nobody is known to.
    pub(super) fn votes_in(&self, view: Option<&ViewReport>) -> (usize, usize) {
        match view {
            None => self.votes,
            Some(view) if view.number == 0 => (0, 0),
            Some(view) => (view.votes.0.into(), view.votes.1.into()),
        }
    }

    /// Notes, and tells the log, how the membership changes.
    pub(super) fn look_at_view(&mut self) {
        if self.now.since(self.outlook.looked) < LOOK_EVERY {
            return;
        }
        self.outlook.looked = self.now;
        let Some(view) = self.protocol.view(self.now) else { return };
        self.say_where_it_belongs();
        let is_in = |peer: PeerId| view.members.iter().any(|member| member.peer == peer);
        self.outlook.met.retain(|peer, _| is_in(*peer));
        for (peer, connected) in self.peers.iter().filter(|(peer, _)| is_in(**peer)) {
            self.outlook.met.entry(*peer).or_insert_with(|| connected.info.clone());
        }
        if view.number != self.outlook.view {
            self.outlook.view = view.number;
            let members: Vec<String> = view.members.iter().map(|m| m.peer.to_string()).collect();
            tracing::info!("view {}: {}", view.number, members.join(", "));
            for advice in advice(&view).iter().filter(|_| is_in(self.me.peer)) {
                tracing::warn!("{advice}");
            }
        } else if view.outdated.iter().any(|peer| !self.outlook.outdated.contains(peer)) {
            outdated(&view).iter().for_each(|words| tracing::warn!("{words}"));
        }
        self.outlook.outdated = view.outdated;
    }

    /// Tells the log at once when this peer learns that it has lost its memory: it may be a member anew, and so have
    /// nothing to tell of, before anybody looks.
    pub(super) fn look_at_memory(&mut self) {
        let forgot = self.protocol.has_forgotten();
        if std::mem::replace(&mut self.outlook.forgot, forgot) || !forgot {
            return;
        }
        let standing = self.protocol.view(self.now).map(|view| view.standing);
        match standing {
            Some(Standing::OldDisk) => tracing::warn!("{OLD_DISK}"),
            // Why that is so was said when the data directory was read.
            _ if self.loss.is_some() && self.now == self.born => {}
            _ => tracing::warn!("{LOST}"),
        }
    }

    /// What whoever runs this peer should know, also of its disk.
    pub(super) fn advice(&self, view: Option<&ViewReport>) -> Vec<String> {
        let loss = self
            .loss
            .as_ref()
            .map(|why| format!("this peer had lost its memory when it started: {why}"));
        loss.into_iter().chain(view.into_iter().flat_map(advice)).collect()
    }

    /// Has the handshakes to come say what the views do.
    pub(super) fn say_where_it_belongs(&self) {
        let Some(origin) = self.protocol.origin() else { return };
        if let Err(error) = self.outlook.origin.belong(origin) {
            tracing::warn!("which swarm this peer belongs to cannot be written: {error}");
        }
    }

    /// Goes on without some members, if the others agree, and cannot do without being told.
    pub(super) fn forget(
        &mut self, gone: BTreeSet<PeerId>, unverified: bool,
        done: oneshot::Sender<Result<(), ForgetError>>,
    ) {
        match self.needless(&gone) {
            Some(needless) => {
                let _ = done.send(Err(needless));
            }
            None => self.wish(Errand::Forget(done), LockRequest::Forget { gone, unverified }),
        }
    }

    /// More than half of the members may be there, who vote silent ones out by themselves.
    fn needless(&self, gone: &BTreeSet<PeerId>) -> Option<ForgetError> {
        let view = self.protocol.view(self.now)?;
        let members = view.members.len();
        let silent = view.members.iter().filter(|member| member.silent_for.is_some());
        let silent: BTreeSet<PeerId> = silent.map(|member| member.peer).collect();
        let up = members - silent.len();
        let out = [Standing::Outside, Standing::Lost, Standing::OldDisk];
        let in_it = !out.contains(&view.standing);
        let needless = in_it && 2 * up > members && gone.is_subset(&silent);
        needless.then_some(ForgetError::NotNeeded { up, members })
    }

    /// This peer, those it has sessions with, and members that it does not reach.
    pub(super) fn peer_reports(&self) -> Vec<PeerReport> {
        let view = self.protocol.view(self.now);
        let place = |peer: PeerId| {
            let view = view.as_ref()?;
            let member = view.members.iter().find(|member| member.peer == peer);
            let silent_for = member.and_then(|member| member.silent_for).map(duration);
            let since = member.map(|member| member.since);
            let forgot = if peer == self.me.peer {
                matches!(view.standing, Standing::Lost | Standing::OldDisk)
            } else {
                member.is_some_and(|member| member.forgot)
            };
            Some(Place { view: view.number, since, silent_for, forgot })
        };
        let report = |peer, info: Option<&PeerInfo>, since: Option<LocalTime>| PeerReport {
            peer,
            network: info.map(|info| info.network.to_string()).unwrap_or_default(),
            incarnation: info.map(|info| info.incarnation),
            addresses: info.iter().flat_map(|i| &i.addresses).map(ToString::to_string).collect(),
            role: info.map_or(Role::Host, |info| info.role),
            up_for: since.map(|since| duration(self.now.since(since))),
            is_self: peer == self.me.peer,
            place: place(peer),
        };
        let mut reports = vec![report(self.me.peer, Some(&self.me), Some(self.born))];
        let others = self.peers.iter();
        reports.extend(others.map(|(id, peer)| report(*id, Some(&peer.info), Some(peer.since))));
        let members = view.iter().flat_map(|view| &view.members).map(|member| member.peer);
        let away = |peer: &PeerId| *peer != self.me.peer && self.peers.session(*peer).is_none();
        let met = &self.outlook.met;
        reports.extend(members.filter(away).map(|peer| report(peer, met.get(&peer), None)));
        reports
    }

    /// Why this peer cannot get anybody a lock, if so; where nobody agrees on who is in.
    pub(super) fn why_not_open(&self, hosts_up: usize) -> Option<String> {
        let abstains = self.abstains_until.since(self.now);
        if self.leaving_since.is_some() {
            Some(LEAVING.into())
        } else if hosts_up == 0 {
            Some("this peer is a client only, and no host can be reached".into())
        } else if self.me.role == Role::Host && !self.around.placement.may_vote() {
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
        } else if !self.around.placement.may_vote() {
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
                    forgetful(view).map_or_else(String::new, |forgetful| format!(
                        " that remember what they promised; of these do not: {forgetful}"
                    ))
                ))
            }
            Standing::Outside => Some(self.why_outside(view)),
            Standing::Founding { here, expected, pledged_to } => {
                Some(self.why_founding(here, expected, pledged_to))
            }
            Standing::Lost => Some(self.why_lost(view)),
            Standing::OldDisk => Some(format!("{OLD_DISK}{}", self.too_few(view))),
            Standing::Unvouched => Some(why_unvouched(view)),
            Standing::Learning { for_at_most } => Some(format!(
                "this peer is finding out which locks are held: it votes when it knows, at the latest in {}",
                seconds(duration(for_at_most))
            )),
            Standing::Minority { up, needed } => Some(match forgetful(view) {
                Some(forgetful) => format!(
                    "this peer reaches {up} of {members} members of the swarm that remember what they promised, \
                     itself included, and it takes {needed}; of those who do not ({forgetful}) see \
                     `sigmalock forget --help`: stop them first"
                ),
                None => format!(
                    "this peer reaches {up} of {members} members of the swarm, itself included, and it takes \
                     {needed}; if the others are gone for good, see `sigmalock forget --help`"
                ),
            }),
        }
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
                "this peer has pledged itself to a swarm of {expected} hosts that {peer} alone can begin, and cannot \
                 reach it; if it is gone for good, and none of the others is in a swarm, delete their data directories"
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
            (0, _) => format!("; nobody has answered{}", self.outlook.looks_at),
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
            format!("this peer is not in the swarm: it waits to be added by {}", named(&members))
        } else if view.number > 0 {
            let count = view.members.len();
            format!(
                "this peer is not in the swarm: {whose}, and reaches none of the {count} members that \
                 it knows of"
            )
        } else if !reached.is_empty() {
            format!(
                "this peer is in no swarm yet: {whose}, and has heard of none from {}",
                named(&reached)
            )
        } else {
            format!(
                "this peer is in no swarm yet: {whose}, and nobody has answered{}",
                self.outlook.looks_at
            )
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

/// Why a member that came back does not vote yet, and for how long.
fn why_unvouched(view: &ViewReport) -> String {
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
            "{comes_back} another member has confirmed that its disk is the newest, and reaches none; if they are gone \
             for good, see `sigmalock forget --help`"
        ),
    }
}

/// Some peers in a sentence.
fn named(peers: &[PeerId]) -> String {
    let named: Vec<String> = peers.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = peers.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
