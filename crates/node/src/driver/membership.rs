//! Who is in and who hosts what, where peers agree on that and where they do not; in words, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use libp2p::Multiaddr;
use sigmalock_core::{
    CallId, LocalTime, MemberReply, MemberRequest, Name, PeerId, ReplicaId, Span, Standing,
    ViewReport,
};
use sigmalock_protocols::parts::Ask;
use sigmalock_protocols::views::{MEMBERS_MAX, Roster};
use tokio::sync::oneshot;

use super::operator::Errand;
use super::output::Seen;
use super::standing::{LOST, OLD_DISK, named};
use super::{Driver, Live};
use crate::address_book::{Contact, bare};
use crate::handle::Hosts;
use crate::identity::peer_of;
use crate::link::{Command, Obstacle, Role};
use crate::names::Names;
use crate::origin::Origin;
use crate::report::{ForgetError, PeerReport, Place, duration};

/// How often a driver looks whether the view has changed.
const LOOK_EVERY: Span = Span::from_millis(100);
/// Whoever proved for the last time so long ago that it lives may be gone: twice the longest pause between two tries
/// to reach a peer that refuses.
const GONE_AFTER: Span = Span::from_secs(120);
/// So long after its start a peer has met, or been refused by, whoever is there.
const LOOK_AROUND: Span = Span::from_secs(6);

/// What a driver knows of the members beside what the protocol does.
#[derive(Debug)]
pub(crate) struct Outlook {
    looked: LocalTime,
    /// The view that was last spoken of.
    view: u64,
    /// Members that this peer has met, also in former lives, so that people can tell who is missing.
    pub(super) met: BTreeMap<PeerId, Contact>,
    /// Whom the transport was told to look for.
    sought: BTreeSet<PeerId>,
    /// Peers with old disks that were spoken of.
    outdated: Vec<PeerId>,
    /// Whether it was said that this peer has lost its memory.
    forgot: bool,
    /// When members without a session proved for the last time that they live, and why there is none.
    pub(super) kept: BTreeMap<PeerId, (LocalTime, Obstacle)>,
    /// The latest of these reasons in words, and when that was.
    pub(super) refusal: Option<(LocalTime, String)>,
    /// Where this peer was told to look for others, in words.
    looks_at: String,
    /// Which swarm this peer says that it belongs to.
    origin: Arc<Origin>,
}

impl Outlook {
    pub(crate) fn new(looks_at: String, origin: Arc<Origin>, known: Vec<Contact>) -> Self {
        let met = known.into_iter().map(|known| (peer_of(&known.network), known));
        Self {
            looked: LocalTime::MIN,
            view: 0,
            met: met.collect(),
            sought: BTreeSet::new(),
            outdated: Vec::new(),
            forgot: false,
            kept: BTreeMap::new(),
            refusal: None,
            looks_at,
            origin,
        }
    }

    /// A peer without a session has proven that it lives.
    pub(super) fn lives(&mut self, peer: PeerId, obstacle: Obstacle, now: LocalTime) {
        if self.kept.len() < MEMBERS_MAX || self.kept.contains_key(&peer) {
            self.kept.insert(peer, (now, obstacle));
        }
    }

    /// How long ago a peer without a session proved that it lives, if that is not too long.
    pub(super) fn answered(&self, peer: PeerId, now: LocalTime) -> Option<Span> {
        let ago = now.since(self.kept.get(&peer)?.0);
        (ago < GONE_AFTER).then_some(ago)
    }

    /// What keeps a peer that lives from having a session with this one.
    pub(super) fn obstacle(&self, peer: PeerId, now: LocalTime) -> Option<Obstacle> {
        self.answered(peer, now)?;
        self.kept.get(&peer).map(|(_, obstacle)| *obstacle)
    }

    /// Why this peer has a session with nobody, in words.
    pub(super) fn why_nobody(&self, now: LocalTime) -> String {
        match self.last_refusal(now) {
            Some(why) => format!("nobody whom it reached lets it in: {why}"),
            None => format!("nobody has answered{}", self.looks_at),
        }
    }

    /// The latest refusal, if that is not long ago.
    pub(super) fn last_refusal(&self, now: LocalTime) -> Option<&str> {
        let (at, why) = self.refusal.as_ref()?;
        (now.since(*at) < GONE_AFTER).then_some(why.as_str())
    }
}

/// What whoever runs such a swarm should know.
fn advice(view: &ViewReport, names: &Names) -> Vec<String> {
    let two = (view.members.len() == 2)
        .then(|| "two peers cannot survive the crash of one: start a third".to_owned());
    let strangers = (!view.strangers.is_empty()).then(|| {
        let strangers = named(&view.strangers, names);
        format!("of another swarm, founded elsewhere, and of no use here: {strangers}")
    });
    two.into_iter().chain(strangers).chain(outdated(view, names)).collect()
}

fn outdated(view: &ViewReport, names: &Names) -> Option<String> {
    (!view.outdated.is_empty()).then(|| {
        let outdated = named(&view.outdated, names);
        format!(
            "came back with an old disk, and is taken for one that lost its memory: {outdated}; was a backup put \
             back, or does another peer run with a copy of its data directory?"
        )
    })
}

impl<P: Live> Driver<P> {
    /// Who votes on a name.
    pub(super) fn hosts(&self, name: &Name) -> Hosts {
        if let Some(view) = self.protocol.view(self.now) {
            let seats = self.protocol.seats(name);
            let seats = seats.into_iter().map(|(index, host)| (index, Some(host))).collect();
            return Hosts { votes: self.votes_in(Some(&view)), seats };
        }
        let replica = |index| ReplicaId { name: name.clone(), index };
        let placement = self.protocol.placement();
        let host = |index| placement.and_then(|placement| placement.host_of(&replica(index)));
        Hosts {
            votes: self.votes,
            seats: (0..self.votes.0 as u16).map(|index| (index, host(index))).collect(),
        }
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
        self.seek(&view);
        let is_in = |peer: PeerId| view.members.iter().any(|member| member.peer == peer);
        if view.number > 0 {
            self.outlook.met.retain(|peer, _| is_in(*peer));
        }
        self.outlook.kept.retain(|peer, _| is_in(*peer));
        for (peer, connected) in self.peers.iter().filter(|(peer, _)| is_in(**peer)) {
            self.outlook.met.entry(*peer).or_insert_with(|| (&connected.info).into());
        }
        if view.number != self.outlook.view {
            self.outlook.view = view.number;
            self.learn_names();
            let names = self.names.read();
            let members = || names.show_all(view.members.iter().map(|member| &member.peer));
            if view.forced {
                tracing::warn!(
                    "an operator had members forgotten: view {} has {}; whoever else was a member, and lives, \
                     has lost its locks",
                    view.number,
                    members()
                );
            } else {
                tracing::info!("view {}: {}", view.number, members());
            }
            for advice in advice(&view, &names).iter().filter(|_| is_in(self.me.peer)) {
                tracing::warn!("{advice}");
            }
        } else if view.outdated.iter().any(|peer| !self.outlook.outdated.contains(peer)) {
            outdated(&view, &self.names.read()).iter().for_each(|words| tracing::warn!("{words}"));
        }
        self.outlook.outdated = view.outdated;
    }

    /// Has the members looked for.
    fn seek(&mut self, view: &ViewReport) {
        let members: BTreeSet<PeerId> = view.members.iter().map(|member| member.peer).collect();
        // If there is no room, it is said the next time.
        if members != self.outlook.sought
            && self.transport.try_send(Command::Seek(members.clone())).is_ok()
        {
            self.outlook.sought = members;
        }
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
        let names = self.names.read();
        loss.into_iter().chain(view.into_iter().flat_map(|view| advice(view, &names))).collect()
    }

    /// Has the handshakes to come say what the views do.
    pub(super) fn say_where_it_belongs(&self) {
        let roster = self.protocol.roster();
        let Some(origin) = roster.map(Roster::origin) else { return };
        if let Err(error) = self.outlook.origin.belong(origin) {
            tracing::warn!("which swarm this peer belongs to cannot be written: {error}");
        }
    }

    /// Goes on without some members, if the others agree, and cannot do without being told.
    pub(super) fn forget(
        &mut self, gone: BTreeSet<PeerId>, unverified: bool,
        done: oneshot::Sender<Result<(), ForgetError>>,
    ) {
        match self.needless(&gone).or_else(|| self.alive(&gone)) {
            Some(refusal) => {
                let _ = done.send(Err(refusal));
            }
            None => {
                let id = self.calls.next_call();
                self.errands.insert(id, Errand::Forget(done));
                let request = MemberRequest::Forget { gone, unverified };
                if !self.ask(id, Ask::Members(request))
                    && let Some(Errand::Forget(done)) = self.errands.remove(&id)
                {
                    let _ = done.send(Err(ForgetError::Open));
                }
            }
        }
    }

    /// What the members have come to.
    pub(super) fn on_members_reply(&mut self, id: CallId, reply: MemberReply) {
        if let Some(Errand::Forget(done)) = self.errands.remove(&id) {
            let forgotten = match reply {
                MemberReply::Done => Ok(()),
                MemberReply::Refused(refusal) => Err(refusal.into()),
            };
            self.output.see(Seen::Forgotten(done, forgotten));
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

    /// One of those who are said to be gone may be there, though it has no session with this peer.
    fn alive(&self, gone: &BTreeSet<PeerId>) -> Option<ForgetError> {
        let ago = |peer: PeerId| self.outlook.answered(peer, self.now);
        if let Some((peer, ago)) = gone.iter().find_map(|peer| Some((*peer, ago(*peer)?))) {
            return Some(ForgetError::Answers { peer, ago: duration(ago) });
        }
        let view = self.protocol.view(self.now)?;
        let others =
            view.members.iter().map(|member| member.peer).filter(|peer| *peer != self.me.peer);
        let age = self.now.since(self.born);
        // Whoever cannot be meant at all is refused for that.
        let meant = gone.is_subset(&others.collect());
        (meant && age < LOOK_AROUND)
            .then(|| ForgetError::TooSoon { wait: duration(LOOK_AROUND - age) })
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
        let text = |address: &Multiaddr| bare(address).to_string();
        let report = |peer, known: Option<&Contact>, since: Option<LocalTime>| PeerReport {
            peer,
            name: known.and_then(|known| known.name.clone()),
            network: known.map(|known| known.network.to_string()).unwrap_or_default(),
            incarnation: known.and_then(|known| known.incarnation),
            addresses: known.iter().flat_map(|known| &known.addresses).map(text).collect(),
            role: known.map_or(Role::Host, |known| known.role),
            up_for: since.map(|since| duration(self.now.since(since))),
            is_self: peer == self.me.peer,
            place: place(peer),
        };
        let mut reports = vec![report(self.me.peer, Some(&(&self.me).into()), Some(self.born))];
        let others = self.peers.iter();
        let others =
            others.map(|(id, peer)| report(*id, Some(&(&peer.info).into()), Some(peer.since)));
        reports.extend(others);
        let members = view.iter().flat_map(|view| &view.members).map(|member| member.peer);
        let away = |peer: &PeerId| *peer != self.me.peer && self.peers.session(*peer).is_none();
        let met = &self.outlook.met;
        reports.extend(members.filter(away).map(|peer| report(peer, met.get(&peer), None)));
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_that_were_refused_are_remembered_and_each_for_so_long() {
        let mut outlook = Outlook::new(String::new(), Arc::default(), Vec::new());
        let begin = LocalTime::MIN + Span::from_secs(1);
        for peer in 0..=MEMBERS_MAX as u64 {
            outlook.lives(PeerId(peer), Obstacle::Refusal, begin);
        }
        assert_eq!(outlook.kept.len(), MEMBERS_MAX);
        let later = begin + GONE_AFTER / 2;
        outlook.lives(PeerId(1), Obstacle::Size, later);
        let end = begin + GONE_AFTER;
        assert_eq!(outlook.answered(PeerId(0), end), None);
        assert_eq!(outlook.answered(PeerId(1), end), Some(GONE_AFTER / 2));
        assert_eq!(outlook.obstacle(PeerId(1), end), Some(Obstacle::Size));
    }

    #[test]
    fn a_refusal_is_the_reason_for_so_long_and_then_nobody_has_answered() {
        let mut outlook = Outlook::new(" at 192.0.2.7:7421".to_owned(), Arc::default(), Vec::new());
        let begin = LocalTime::MIN + Span::from_secs(1);
        assert_eq!(outlook.why_nobody(begin), "nobody has answered at 192.0.2.7:7421");
        outlook.refusal = Some((begin, "12D3 refused us, and says: another swarm".to_owned()));
        let why = "nobody whom it reached lets it in: 12D3 refused us, and says: another swarm";
        assert_eq!(outlook.why_nobody(begin + GONE_AFTER / 2), why);
        assert!(outlook.why_nobody(begin + GONE_AFTER).starts_with("nobody has answered"));
    }
}
