//! Whether the disk that a peer comes back with is the newest that it ever had.
//!
//! An old backup put back, or a copy of the data directory, is a memory that lacks what was promised since. Such a
//! disk cannot know that by itself, but others can. Every start is given a number, and a disk keeps those of all
//! starts that led to it; every member remembers the last start of every other, and how many records it has heard the
//! other had written.
//!
//! ```text
//!  who comes back                              every other member
//!    │ BEGAN    this is my start ─────────────► │
//!    │ ◄───── REMEMBERED  that was your last    │  and so many records were on your disk
//!    │ BEGAN    yes, and this came after it ──► │  on disk first
//!    │ ◄──────────────────────────── VOUCHED    │
//! ```
//!
//! A start that is not on this disk, or more records than it had when the next one began, mean that this disk is not
//! the newest: the peer takes itself for one that lost its memory, and says so to all (FORGOT). Until somebody has
//! vouched for it, and nobody that it reaches has yet to say anything, a member that came back promises nothing; nor
//! does one that lost sight of all who had vouched, because a copy of its disk may have run under its name meanwhile.
//!
//! What nobody can notice: a whole swarm that is put back; a peer that is put back and meets none of those who have
//! heard it since, or a founder's disk of when it was alone, until it meets one; two copies of a running peer that
//! are never seen by the same member; and a disk that was copied while its peer ran, if what was written since was not
//! told to anybody, or all who were told stopped within two round trips, before they wrote it down.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sigmalock_core::{Context, LocalTime, PeerId, Span};

use super::message::Message;
use super::mutant::Mutant;
use super::roster::Badge;
use super::{Cx, Loss, Note, Standing, Views};
use crate::parts::Rules;

/// A disk remembers so many of its starts, first of all those that somebody vouched for. A member that knows another one
/// only takes the disk for an old one, which costs a removal.
pub const STARTS_MAX: usize = 64;
/// So many round trips from the first word on do members have to show up, before one is believed of whom not all have
/// vouched.
const PRESENCE: u64 = 2;
/// So many do those have that showed up to say what they remember, if one of them has: longer than it takes them to
/// tell two peers with one identity from one that was restarted.
const PATIENCE: u64 = 16;
/// So often in one life does a peer that was never in ask that whoever is in under its name be removed: once for its
/// former self, once for a wish of its former self that came late. Beyond that there is another one alive.
const QUARRELS_MAX: u8 = 2;

/// So many peers that lost their memory are remembered; of more nothing is said.
const FORGETFUL_MAX: usize = 64;
/// So many peers that were there are remembered; where there were more, any may have been.
const SEEN_MAX: usize = 4_096;

/// The number of a start, drawn at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Start(pub u64);

/// A start that led to this disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Life {
    start: Start,
    /// How many records the disk had when it began.
    records: u64,
    /// Whether another member is known to know of it.
    vouched: bool,
}

/// What a member remembers of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acquaintance {
    badge: Badge,
    /// Its last start.
    start: Start,
    /// How many records it had written, as far as heard. On disk it may be less.
    writes: u64,
}

/// What this peer knows of itself, and who believes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Vouching {
    /// Members that know of this start,
    by: BTreeSet<PeerId>,
    /// those of them that said so since this peer last met them,
    met: BTreeSet<PeerId>,
    /// and all that were there in this life.
    seen: BTreeSet<PeerId>,
    /// Why it may not be the newest of its name, and since when somebody says that it is, if somebody does.
    doubt: Option<(Doubt, LocalTime)>,
    /// Whom it has asked to be removed in its name, in this life.
    quarrels: BTreeSet<Badge>,
    /// Others have written more than this disk says.
    heard_more: bool,
    /// Those who said that they lost their memory, and have not been members anew since; whether by an old disk.
    forgetful: BTreeMap<PeerId, bool>,
}

/// Why a member may not be the newest of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doubt {
    /// It came back with its disk, which may be an old one.
    CameBack,
    /// All who knew of it were out of sight: another one may have run under its name.
    OutOfSight,
}

impl Vouching {
    /// A peer is there.
    fn meet(&mut self, peer: PeerId) {
        if self.doubt.is_some() && self.seen.len() < SEEN_MAX {
            self.seen.insert(peer);
        }
    }

    /// Whether a peer may have been there in this life.
    fn may_have_seen(&self, peer: PeerId) -> bool {
        self.seen.len() >= SEEN_MAX || self.seen.contains(&peer)
    }
}

impl<R: Rules> Views<R> {
    /// A life begins with this disk.
    pub(super) fn begin_life(&mut self, cx: Cx<'_, '_, R>) {
        if self.badge.is_none() {
            return;
        }
        self.draw_start(cx);
        self.save(cx);
        let trusted =
            self.standing() != Standing::Member && self.config.breaks(Mutant::TrustsDisksOfBefore);
        if !trusted && !self.config.breaks(Mutant::VotesUnvouched) {
            self.vouching.doubt = Some((Doubt::CameBack, cx.now()));
        }
    }

    /// Numbers this start, before anybody hears of it.
    pub(super) fn draw_start(&mut self, cx: Cx<'_, '_, R>) {
        let mut records = self.written(cx);
        if self.starts.len() >= STARTS_MAX {
            let least = self.starts.iter().position(|life| !life.vouched).unwrap_or(0);
            let dropped = self.starts.remove(least);
            // What came before it had no more records than it.
            let next = self.starts.get_mut(least).map_or(&mut records, |next| &mut next.records);
            *next = dropped.records;
        }
        let start = Start(cx.random());
        self.starts.push(Life { start, records, vouched: false });
    }

    /// The number of this life.
    pub(super) fn start(&self) -> Option<Start> {
        self.starts.last().map(|life| life.start)
    }

    /// Whether somebody has vouched for the disk of this peer, or need not: there is nobody else.
    #[must_use]
    pub fn is_vouched_for(&self) -> bool {
        !self.doubts(Doubt::CameBack)
    }

    /// Whether it doubts itself for that reason.
    fn doubts(&self, reason: Doubt) -> bool {
        self.vouching.doubt.is_some_and(|(doubt, _)| doubt == reason) && !self.is_alone()
    }

    /// Whether others may have run under this peer's name while nobody saw it, for all that it has heard since.
    #[must_use]
    pub fn is_astray(&self) -> bool {
        self.doubts(Doubt::OutOfSight)
    }

    /// A peer is there.
    pub(super) fn meet(&mut self, peer: PeerId) {
        self.vouching.meet(peer);
    }

    /// A peer is out of sight. When it is back, somebody else may have been there under this one's name.
    pub(super) fn part(&mut self, peer: PeerId, now: LocalTime) {
        self.vouching.met.remove(&peer);
        if self.vouching.doubt.is_some() && !self.config.breaks(Mutant::BelievesTheAbsent) {
            // Another one may have run under this name by the time that this peer goes on.
            self.vouching.by.remove(&peer);
        }
        if self.is_in(peer) {
            self.look_for_witnesses(now);
        }
    }

    /// If nobody is in sight who knows of this start, it is as if it had come back.
    fn look_for_witnesses(&mut self, now: LocalTime) {
        let unseen = self.vouching.met.is_empty() && self.vouching.doubt.is_none();
        let member = self.standing() == Standing::Member && !self.is_alone();
        if unseen && member && !self.config.breaks(Mutant::GoesOnThoughAstray) {
            self.vouching.doubt = Some((Doubt::OutOfSight, now));
            self.vouching.by.clear();
            self.vouching.seen.clear();
            if !self.config.breaks(Mutant::OverlooksWhoIsThere) {
                self.up.iter().for_each(|peer| self.vouching.meet(*peer));
            }
        }
    }

    /// Who knew this peer knew another one: it is none any more, or will be one anew.
    fn forget_witnesses(&mut self) {
        if !self.config.breaks(Mutant::KeepsItsWitnesses) {
            self.vouching.by.clear();
            self.vouching.met.clear();
        }
    }

    /// This peer is in a new view, and may not have been in the last.
    pub(super) fn join_in(&mut self, cx: Cx<'_, '_, R>, was_member: bool) {
        if self.vouching.doubt.is_some() || !was_member {
            self.introduce(cx);
        }
    }

    /// Tells those who do not know of this start that it is there, and sees whether enough do.
    pub(super) fn introduce(&mut self, cx: Cx<'_, '_, R>) {
        self.up.iter().for_each(|peer| self.introduce_to(cx, *peer));
        self.believe(cx.now());
    }

    /// Tells another member of this start, unless it knows.
    pub(super) fn introduce_to(&self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let (Some(start), Some(badge)) = (self.start(), self.badge) else { return };
        let member = self.standing() == Standing::Member && self.is_in(peer);
        let (by, met) = (&self.vouching.by, &self.vouching.met);
        let known = if self.config.breaks(Mutant::IntroducesItselfOnce) { by } else { met };
        if member && !known.contains(&peer) {
            cx.send(peer, Message::Began { badge, start, after: None });
        }
    }

    /// An operator says that all who could vouch for this peer are gone.
    pub(super) fn vouch_by_operator(&mut self) {
        self.vouching.doubt = None;
    }

    /// If all have vouched, or all who were there since, or one and the others had time enough, that will do.
    fn believe(&mut self, now: LocalTime) {
        let Some((_, since)) = self.vouching.doubt else { return };
        let Some(roster) = self.roster.as_ref().filter(|_| self.standing() == Standing::Member)
        else {
            return;
        };
        let Vouching { by, .. } = &self.vouching;
        // Who has forgotten has nothing to say.
        let speaks = |peer: &PeerId| !by.contains(peer) && !self.has_forgotten(*peer);
        let silent = || roster.members().filter(|peer| *peer != self.me && speaks(peer));
        let all = silent().next().is_none();
        let all_seen = !silent().any(|peer| self.vouching.may_have_seen(peer));
        let waited = |trips: u64| now.since(since) >= self.config.round_trip_worst * trips;
        let patient = waited(PATIENCE) && !self.config.breaks(Mutant::WaitsForAllItSaw);
        let hasty = self.config.breaks(Mutant::BelievesTheFirst);
        let enough = all || (all_seen && waited(PRESENCE)) || patient || hasty;
        if !by.is_empty() && enough {
            self.vouching.doubt = None;
            self.vouching.seen.clear();
        }
    }

    /// For how long at most those that were there since may yet keep this peer waiting, if one has vouched for it.
    #[must_use]
    pub fn vouched_in(&self, now: LocalTime) -> Option<Span> {
        let (_, since) = self.vouching.doubt.filter(|_| !self.vouching.by.is_empty())?;
        Some((since + self.config.round_trip_worst * PATIENCE).since(now))
    }

    /// A member says that it has begun a life.
    pub(super) fn on_began(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, badge: Badge, start: Start,
        after: Option<Start>,
    ) {
        // Who lost what it knew of others remembers no newer disk, whatever there was.
        let remembers = self.standing() == Standing::Member
            || self.config.breaks(Mutant::VouchesThoughForgetful);
        if self.roster.as_ref().and_then(|roster| roster.badge(from)) != Some(badge) || !remembers {
            return;
        }
        self.vouching.forgetful.remove(&from);
        let known = self.acquaintances.get(&from).copied();
        let news = known.is_none_or(|known| known.start != start);
        match known {
            Some(known) if known.start != start && after != Some(known.start) => {
                let Acquaintance { start, writes, .. } = known;
                return cx.send(from, Message::Remembered { badge, start, writes });
            }
            Some(known) if known.start == start => {}
            _ => {
                // It began with no fewer than were heard of the life before, or it would not say so.
                self.acquaintances.insert(from, Acquaintance { badge, start, writes: 0 });
                if !self.config.breaks(Mutant::VouchesBeforeItWrites) {
                    self.save(cx);
                }
            }
        }
        cx.send(from, Message::Vouched { start });
        if news {
            // Whoever is new here is told of this one at once, not at the next look around.
            self.introduce_to(cx, from);
        }
    }

    /// A member remembers another start of this peer: it must be one of this disk's, and so must all that the member
    /// has heard of.
    pub(super) fn on_remembered(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, badge: Badge, start: Start, writes: u64,
    ) {
        if self.standing() != Standing::Member || self.badge != Some(badge) || !self.is_in(from) {
            return;
        }
        let counts = !self.config.breaks(Mutant::IgnoresWrites);
        let mut later = self.starts.iter().skip_while(|life| life.start != start);
        let known = later.next().is_some() && {
            // As many as there were when that life had ended.
            let next = later.next().filter(|_| !self.config.breaks(Mutant::CountsRecordsOfNow));
            let records = next.map_or_else(|| self.written(cx), |next| next.records);
            !counts || writes <= records
        };
        if !known && !self.config.breaks(Mutant::TrustsAnyDisk) {
            return self.disown(cx);
        }
        if let Some(mine) = self.start() {
            cx.send(from, Message::Began { badge, start: mine, after: Some(start) });
        }
    }

    pub(super) fn on_vouched(&mut self, cx: Cx<'_, '_, R>, from: PeerId, start: Start) {
        let this_one = self.start() == Some(start) || self.config.breaks(Mutant::HearsAnyVoucher);
        if this_one && self.is_in(from) {
            if self.vouching.by.is_empty()
                && !self.config.breaks(Mutant::WaitsFromItsStart)
                && let Some((_, since)) = &mut self.vouching.doubt
            {
                // From now on those who know better have time to show up: before, there may have been nobody but one
                // that has forgotten.
                *since = cx.now();
            }
            self.vouching.by.insert(from);
            self.vouching.met.insert(from);
            if let Some(life) = self.starts.last_mut().filter(|life| !life.vouched) {
                life.vouched = true;
                self.save(cx);
            }
            self.believe(cx.now());
        }
    }

    /// A member says how many records it has written.
    pub(super) fn note_writes(&mut self, from: PeerId, start: Start, writes: u64) {
        let known = self.acquaintances.get_mut(&from);
        // What is written in a life that this peer does not know of yet says nothing of the one that it knows.
        if let Some(known) = known.filter(|known| known.start == start) {
            self.vouching.heard_more |= writes > known.writes;
            known.writes = known.writes.max(writes);
        }
    }

    /// How many records this peer has written, but for those that only count what others have: or two that have nothing
    /// to say would count each other for ever.
    pub(super) fn written(&self, cx: &Context<'_, Self>) -> u64 {
        cx.written().saturating_sub(self.counted)
    }

    /// How many of them it tells the others of.
    pub(super) fn told(&self, cx: &Context<'_, Self>) -> u64 {
        let life = self.starts.last().filter(|_| self.config.breaks(Mutant::CountsThisLifeOnly));
        self.written(cx).saturating_sub(life.map_or(0, |life| life.records))
    }

    /// Writes down how much others have written, as far as heard.
    pub(super) fn save_counts(&mut self, cx: Cx<'_, '_, R>) {
        let more = core::mem::take(&mut self.vouching.heard_more);
        if more && !self.config.breaks(Mutant::ForgetsCounts) {
            self.counted += 1;
            self.save(cx);
        }
    }

    /// This disk is not the newest, or not the only one: what was promised elsewhere is lost.
    pub(super) fn disown(&mut self, cx: Cx<'_, '_, R>) {
        cx.note(Note::OldDisk);
        (self.badge, self.forgot) = (None, Some(Loss::OldDisk));
        self.campaign = None;
        self.vouching.doubt = None;
        self.forget_witnesses();
        if !self.config.breaks(Mutant::DisownsForNow) {
            self.save(cx);
        }
        // Who goes by its word must hear that at once.
        self.up.iter().for_each(|peer| self.warn(cx, *peer));
        self.look(cx);
    }

    /// Peers that came back with an old disk, as they said themselves, and have not been members anew since.
    pub fn outdated(&self) -> impl Iterator<Item = PeerId> {
        let forgetful = self.vouching.forgetful.iter();
        forgetful.filter(|(_, old_disk)| **old_disk).map(|(peer, _)| *peer)
    }

    /// Whether a peer has said that it lost its memory, and has not been a member anew since.
    #[must_use]
    pub fn has_forgotten(&self, peer: PeerId) -> bool {
        self.vouching.forgetful.contains_key(&peer)
    }

    /// Tells a peer that this one has lost its memory, if so.
    pub(super) fn warn(&self, cx: Cx<'_, '_, R>, peer: PeerId) {
        if let Some(loss) = self.forgot {
            cx.send(peer, Message::Forgot { old_disk: loss == Loss::OldDisk });
        }
    }

    pub(super) fn on_forgot(&mut self, from: PeerId, old_disk: bool, now: LocalTime) {
        if self.is_in(from) && self.vouching.forgetful.len() < FORGETFUL_MAX {
            self.vouching.forgetful.insert(from, old_disk);
        }
        // What it said of this start, it said by what was on that disk.
        if old_disk && !self.config.breaks(Mutant::BelievesOldDisks) {
            self.vouching.by.remove(&from);
            if self.vouching.met.remove(&from) && !self.config.breaks(Mutant::OutlivesItsWitness) {
                self.look_for_witnesses(now);
            }
        }
    }

    /// Whether this peer, which is not who is in under its name, may ask that one to be removed.
    pub(super) fn may_quarrel(&mut self, badge: Badge) -> bool {
        let quarrels = &mut self.vouching.quarrels;
        quarrels.contains(&badge)
            || (quarrels.len() < usize::from(QUARRELS_MAX) && quarrels.insert(badge))
    }

    /// A view was learned: whom this peer remembers, and who knows it.
    pub(super) fn keep_acquaintances(&mut self, now: LocalTime) {
        let Some(roster) = &self.roster else { return };
        let witnessed = !self.vouching.met.is_empty();
        self.acquaintances.retain(|peer, known| roster.badge(*peer) == Some(known.badge));
        self.vouching.by.retain(|peer| roster.contains(*peer));
        self.vouching.met.retain(|peer| roster.contains(*peer));
        self.vouching.forgetful.retain(|peer, _| !roster.is_newcomer(*peer));
        if self.standing() == Standing::Member {
            self.vouching.quarrels.clear();
        }
        // What was promised as that member does not matter any more.
        if self.badge.is_none() {
            self.vouching.doubt = None;
            self.forget_witnesses();
        } else if witnessed {
            self.look_for_witnesses(now);
        }
    }
}

/// What it remembers of the others.
pub(super) type Acquaintances = BTreeMap<PeerId, Acquaintance>;
/// The starts that led to this disk, the last one this life's.
pub(super) type Starts = Vec<Life>;

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::roster::{Change, Roster};
    use super::*;

    fn a_view_of_two() -> Views {
        let mut views = Views::new(PeerId(1), Config::new(Span::from_secs(15)));
        let founded = Roster::founded_by(PeerId(1), Badge(1), 9);
        views.roster = founded.after(Change::Add(PeerId(2), Badge(2)));
        views.badge = Some(Badge(1));
        views
    }

    #[test]
    fn nothing_is_kept_of_those_who_are_not_in_any_more() {
        let mut views = a_view_of_two();
        for peer in (2..100).map(PeerId) {
            let (badge, start) = (Badge(peer.0), Start(peer.0));
            views.acquaintances.insert(peer, Acquaintance { badge, start, writes: 0 });
            views.vouching.by.insert(peer);
            views.vouching.met.insert(peer);
        }
        views.keep_acquaintances(LocalTime::MIN);
        let Vouching { by, met, .. } = &views.vouching;
        assert_eq!((by.len(), met.len(), views.acquaintances.len()), (1, 1, 1));
    }

    #[test]
    fn a_crowd_of_strangers_is_not_remembered_and_any_member_may_have_been_in_it() {
        let mut views = a_view_of_two();
        views.vouching.doubt = Some((Doubt::CameBack, LocalTime::MIN));
        views.vouching.meet(PeerId(7));
        assert!(!views.vouching.may_have_seen(PeerId(2)));
        (100..9_000).for_each(|peer| views.vouching.meet(PeerId(peer)));
        assert_eq!(views.vouching.seen.len(), SEEN_MAX);
        assert!(views.vouching.may_have_seen(PeerId(2)));
    }
}
