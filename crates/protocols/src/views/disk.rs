//! What a peer keeps on its disk, and what it goes by when it comes back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sigmalock_core::{Birth, LocalTime, PeerId};

use super::acceptor::Acceptor;
use super::founding::Pledge;
use super::mutant::Mutant;
use super::roster::{Badge, Roster};
use super::vouching::{Acquaintance, Life};
use super::{Cx, Timer, Views};
use crate::parts::Rules;

/// There is one durable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record;

/// What it says. The badge is in one record with the promises that were made under it: it vouches for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Saved {
    /// The newest view it knew.
    pub roster: Option<Roster>,
    /// What it promised about the next.
    pub acceptor: Acceptor,
    /// The number under which it is, or asks to be, a member.
    pub badge: Option<Badge>,
    /// It has lost its memory, and has not been a member since.
    pub forgot: Option<Loss>,
    /// The swarm that it is to be a founder of.
    pub pledge: Option<Pledge>,
    /// The starts that led to this disk.
    pub starts: Vec<Life>,
    /// What it remembers of other members.
    pub acquaintances: BTreeMap<PeerId, Acquaintance>,
    /// How many records of this disk were written to count those of others.
    pub counted: u64,
}

/// How a peer lost its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Loss {
    /// It is gone.
    Gone,
    /// Its disk is not the newest that it had: others remember more.
    OldDisk,
}

impl<R: Rules> Views<R> {
    pub(super) fn on_start(&mut self, cx: Cx<'_, '_, R>, birth: Birth<Self>) {
        if matches!(birth, Birth::Amnesiac) {
            self.forgot = Some(Loss::Gone);
            self.save(cx);
        } else if let Birth::Recovered(records) = birth
            && let Some((Record, saved)) = records.into_iter().next()
        {
            (self.roster, self.acceptor) = (saved.roster, saved.acceptor);
            (self.badge, self.forgot, self.pledge) = (saved.badge, saved.forgot, saved.pledge);
            (self.starts, self.acquaintances) = (saved.starts, saved.acquaintances);
            self.counted = saved.counted;
            // Nobody knows how long ago it was learned.
            self.learned_at = cx.now();
            // What others promised to a former self must not count for something else.
            if !self.config.breaks(Mutant::CountsBallotsAnew) {
                self.round = self.acceptor.promised().map_or(0, |promised| promised.round);
            }
            if self.config.breaks(Mutant::ForgetsAcceptances) {
                self.acceptor.forget_accepted();
            }
            if self.config.breaks(Mutant::AcceptsOnceRestarted) {
                self.learned_at = LocalTime::MIN;
            }
        }
        self.take_back_pledge(cx);
        self.begin_life(cx);
        cx.set_timer(Timer::Look, cx.now());
    }

    pub(super) fn save(&self, cx: Cx<'_, '_, R>) {
        let (roster, mut acceptor) = (self.roster.clone(), self.acceptor);
        if self.config.breaks(Mutant::ForgetsPromises) {
            acceptor = Acceptor::default();
        }
        let saved = Saved {
            roster,
            acceptor,
            badge: self.badge,
            forgot: self.forgot,
            pledge: self.pledge,
            starts: self.starts.clone(),
            acquaintances: self.acquaintances.clone(),
            counted: self.counted,
        };
        cx.persist(Record, Some(saved));
    }
}
