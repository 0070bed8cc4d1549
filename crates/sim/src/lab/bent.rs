//! Worlds whose peers agree on who is in, each bent on one coincidence that others hardly ever come to.
//!
//! - *doors*: newcomers come one right after the other, and do not hear of some who have voted;
//! - *strait*: a minority is cut off and voted out, whose clients still hear of one of the others;
//! - *threshold*: newcomers crash in the middle of settling, and come back at once, while votes are split;
//! - *rubble*: most are gone for good, an operator says so, and the others are restarted on that.

use sigmalock_core::{PeerId, Span};

use super::agreed::part;
use super::draw::ms;
use crate::faults::{Fault, Memory};
use crate::history::TrueTime;
use crate::latency::Latency;
use crate::network::Network;
use crate::rng::Rng;
use crate::workload::{Habit, Length, PatienceMix, Workload};

/// On which coincidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bent {
    Doors,
    Strait,
    Rubble,
    Threshold,
}

/// Who is there, and for how long.
pub(super) struct Stage<'a> {
    /// In any order.
    pub(super) members: &'a [PeerId],
    pub(super) newcomers: &'a [PeerId],
    pub(super) clients: &'a [PeerId],
    pub(super) lease: Span,
    /// When things begin to go wrong, and when that ends.
    pub(super) begins: Span,
    pub(super) ends: Span,
}

type Schedule = Vec<(TrueTime, Fault)>;

impl Bent {
    /// What a seed means, from a stream of its own: all other seeds mean what they did without.
    pub(super) fn of(seed: u64) -> Option<Self> {
        match Rng::split(seed, 0x6265_6e74).below(16) {
            0 => Some(Self::Doors),
            1 | 2 => Some(Self::Strait),
            3 => Some(Self::Rubble),
            _ if Rng::split(seed, 0x7468_7265).below(16) == 0 => Some(Self::Threshold),
            _ => None,
        }
    }

    /// How many there are from the beginning, and how many come.
    pub(super) fn peers(self, rng: &mut Rng) -> (u64, u64) {
        match self {
            Self::Doors => (*rng.pick(&[3, 3, 3, 4, 5]), 4),
            Self::Strait => (*rng.pick(&[5, 5, 5, 5, 5, 7]), 0),
            Self::Rubble => (*rng.pick(&[5, 5, 5, 6, 7, 9]), 0),
            Self::Threshold => (*rng.pick(&[2, 4, 4, 6]), 3),
        }
    }

    /// News of a view is lost, or comes after what is said in it.
    pub(super) fn bend_network(self, rng: &mut Rng, network: &mut Network) {
        if self == Self::Strait {
            (network.pairwise, network.fifo) = (false, false);
            let high = network.latency.worst();
            network.latency = Latency::Uniform { low: Span::ZERO, high };
            network.loss = *rng.pick(&[0.02, 0.2]) * rng.unit();
        }
    }

    /// Whoever is inside has its lease for as long as any, and mostly lives to see the end of it.
    pub(super) fn bend_workload(self, rng: &mut Rng, workload: &mut Workload, lease: Span) {
        workload.ttl = Length::Constant(lease);
        if !matches!(self, Self::Doors | Self::Threshold) {
            workload.inside = Length::Uniform(lease, lease * 3);
        }
        if rng.below(4) != 0 {
            workload.patience = PatienceMix::FOREVER;
            (workload.cancel, workload.overstay) = (Habit::NEVER, Habit::NEVER);
            (workload.sleep, workload.crash) = (Habit::NEVER, Habit::NEVER);
        }
    }

    /// Whether the silent are voted out soon; if not, never.
    pub(super) fn removes(self) -> bool {
        self == Self::Strait
    }

    /// By when those who are there from the beginning are in, more or less.
    pub(super) fn begins(self) -> Span {
        match self {
            Self::Doors | Self::Strait | Self::Threshold => ms(8_000),
            Self::Rubble => ms(25_000),
        }
    }

    /// How many times as long it lasts as others, from then on.
    pub(super) fn lasts(self) -> u64 {
        if matches!(self, Self::Doors | Self::Threshold) { 1 } else { 2 }
    }

    pub(super) fn plan(self, rng: &mut Rng, stage: &Stage<'_>) -> Schedule {
        match self {
            Self::Doors => doors(rng, stage),
            Self::Strait => straits(rng, stage),
            Self::Rubble => rubble(rng, stage),
            Self::Threshold => threshold(rng, stage),
        }
    }
}

/// Newcomers come in pairs. They do not hear of a minority of the members; some clients hear of these and of as
/// many others as it takes to win, but of no newcomer.
fn doors(rng: &mut Rng, stage: &Stage<'_>) -> Schedule {
    let Stage { members, newcomers, clients, lease, .. } = *stage;
    let (unheard, _) = members.split_at((members.len() - 1) / 2);
    let (_, spared) = members.split_at(members.len() / 2 + 1);
    let (here, there) = clients.split_at(clients.len() / 2);
    let mut at = TrueTime(0) + rng.span(stage.begins, stage.begins + ms(3_000));
    let mut faults = Vec::new();
    faults.extend(part(1, unheard, newcomers, at));
    faults.extend(part(1, here, &[newcomers, spared].concat(), at));
    if rng.below(2) == 0 {
        faults.extend(part(1, there, unheard, at));
    }
    for pair in newcomers.chunks(2) {
        at = at + rng.span(lease / 2, lease * 3 / 2);
        for newcomer in pair {
            faults.push((at, Fault::Join(*newcomer)));
            at = at + rng.span(Span::ZERO, ms(1_000));
        }
    }
    faults.push((at + rng.span(lease, lease * 2), Fault::Mend(1)));
    faults
}

/// Newcomers come, one after the other. A moment before one settles, one half of the members and of the clients stop hearing
/// the other halves, so that votes are split; it does not hear of one of the members. It crashes in the middle of settling,
/// and is back at once, hears of that member, and of one half of the clients no more.
fn threshold(rng: &mut Rng, stage: &Stage<'_>) -> Schedule {
    let (mut members, mut clients) = (stage.members.to_vec(), stage.clients.to_vec());
    let mut faults = Vec::new();
    let mut at = TrueTime(0) + rng.span(stage.begins, stage.begins + ms(3_000));
    for (newcomer, id) in stage.newcomers.iter().zip((1..).step_by(3)) {
        rng.shuffle(&mut members);
        rng.shuffle(&mut clients);
        let (ours, theirs) = members.split_at(members.len() / 2);
        let (here, there) = clients.split_at(clients.len() / 2);
        faults.extend(part(id, &theirs[..1], &[*newcomer], at));
        faults.push((at, Fault::Join(*newcomer)));
        faults.push((at, Fault::TearRecords(*newcomer)));
        let split = at + rng.span(ms(50), ms(2_000));
        faults.extend(part(id + 1, here, theirs, split));
        faults.extend(part(id + 1, there, ours, split));
        let unseen = split + rng.span(ms(100), ms(2_000));
        faults.push((unseen, Fault::Mend(id)));
        faults.extend(part(id + 2, here, &[*newcomer], unseen));
        for _ in 0..24 {
            at = at + rng.span(ms(50), ms(300));
            faults.push((at, Fault::Restart { peer: *newcomer, memory: Memory::Disk }));
        }
        at = at + rng.span(ms(1_000), stage.lease);
        faults.extend([id + 1, id + 2].map(|id| (at, Fault::Mend(id))));
        at = at + rng.span(stage.lease, stage.lease * 2);
        members.push(*newcomer);
    }
    faults
}

/// Again and again, each time with others: some clients hear of a minority and of one of the others, the
/// strait. Then the minority is cut off from all others, mostly also from the strait, for long enough to be
/// voted out.
fn straits(rng: &mut Rng, stage: &Stage<'_>) -> Schedule {
    let (mut members, mut clients) = (stage.members.to_vec(), stage.clients.to_vec());
    let mut faults = Vec::new();
    let mut at = TrueTime(0) + rng.span(stage.begins, stage.begins + ms(3_000));
    for id in 1.. {
        let cut = at + rng.span(ms(500), ms(3_000));
        let end = cut + ms(4_000) + rng.span(stage.lease * 3 / 2, stage.lease * 5 / 2);
        if end > TrueTime(0) + stage.ends {
            break;
        }
        rng.shuffle(&mut members);
        rng.shuffle(&mut clients);
        let few = (members.len() - 1) / 2;
        // Those before it propose.
        members[few..].sort_unstable_by(|a, b| b.cmp(a));
        let (few, most) = members.split_at(few);
        let (here, there) = clients.split_at(clients.len() / 2);
        let beyond = if rng.below(4) == 0 { &most[1..] } else { most };
        faults.extend(part(id, here, &most[1..], at));
        faults.extend(part(id, few, &[beyond, there].concat(), cut));
        faults.push((end, Fault::Mend(id)));
        at = end + rng.span(stage.lease / 2, stage.lease);
    }
    faults
}

/// Most members are gone for good, after the others were cut off from them, and one of those says so until it is
/// heard. Meanwhile they are restarted, some of them torn. Nobody is left alone: who is restarted needs somebody who
/// remembers it.
fn rubble(rng: &mut Rng, stage: &Stage<'_>) -> Schedule {
    let Stage { members, clients, lease, .. } = *stage;
    let (fewest, most) = (members.len() / 2 + 1, members.len() - 2);
    let (gone, left) = members.split_at(rng.between(fewest as u64, most as u64) as usize);
    let (here, there) = clients.split_at(clients.len() / 2);
    let by = *rng.pick(left);
    let forget = || Fault::Forget { by, gone: gone.to_vec() };
    let restart = |peer: &PeerId| Fault::Restart { peer: *peer, memory: Memory::Disk };
    let mut at = TrueTime(0) + rng.span(stage.begins, stage.begins + ms(3_000));
    let mut faults = part(1, &[left, here].concat(), &[gone, there].concat(), at).to_vec();
    // By then those who are left may have their votes back.
    at = at + rng.span(ms(500), lease * 2);
    faults.extend(gone.iter().map(|peer| (at, Fault::Destroy(*peer))));
    for peer in left {
        let mut at = at + rng.span(ms(500), ms(2_500));
        for _ in 0..rng.between(1, 3) {
            at = at + rng.span(ms(50), lease / 3);
            let torn = rng.below(2) == 0;
            faults.push((at, if torn { Fault::Tear(*peer) } else { Fault::Crash(*peer) }));
            at = at + rng.span(ms(10), ms(300));
            faults.push((at, restart(peer)));
        }
    }
    // What was torn late comes back, too, and then the others are forgotten, if not before.
    for _ in 0..16 {
        at = at + rng.span(ms(10), ms(2_000));
        faults.push((at, forget()));
        faults.extend(left.iter().map(|peer| (at, restart(peer))));
    }
    faults.push((at, Fault::Mend(1)));
    faults.extend((1..4).map(|again| (TrueTime(0) + stage.ends + lease * again, forget())));
    faults
}
