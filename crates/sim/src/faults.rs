//! What goes wrong in a run, and when.

use std::fmt;

use sigmalock_core::{PeerId, Span};

use crate::history::TrueTime;

/// What a restarted peer has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Its disk.
    Disk,
    /// Its disk, without the last records that it had said were written: so many, at most 64.
    Lost(usize),
    /// The copy of its disk that was put on the shelf; its disk takes the place of the copy.
    Shelf,
    /// Nothing.
    None,
}

/// Messages from one group of peers to another stop: one way only, so that cuts need not be
/// symmetric, nor transitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// What [`Fault::Mend`] calls it; several cuts may share an id.
    pub id: u32,
    /// Whose messages.
    pub from: Vec<PeerId>,
    /// To whom.
    pub to: Vec<PeerId>,
}

impl Cut {
    /// Whether a message from `from` to `to` is stopped.
    #[must_use]
    pub fn stops(&self, from: PeerId, to: PeerId) -> bool {
        self.from.contains(&from) && self.to.contains(&to)
    }
}

/// One thing that goes wrong, or right again. What does not apply (a crash of a peer that is down)
/// is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A peer stops.
    Crash(PeerId),
    /// A peer stops in the middle of what its protocol wants done, the next time that is several
    /// things: what comes first is done, the rest is not.
    Tear(PeerId),
    /// The same, the next time that there are several records among those things: a newcomer settles, a member moves on.
    TearRecords(PeerId),
    /// The next write of a peer's disk fails, and the peer stops.
    FailWrite {
        /// Whose.
        peer: PeerId,
        /// The next life finds its records all the same.
        found: bool,
    },
    /// From now on a write of a peer's disk takes so long: what rests on it waits.
    SlowDisk {
        /// Whose.
        peer: PeerId,
        /// How long; nothing: it is as quick as disks are.
        write: Span,
    },
    /// A stopped peer begins a new life.
    Restart {
        /// Which.
        peer: PeerId,
        /// With what.
        memory: Memory,
    },
    /// The disk of a peer is copied, and the copy put on a shelf: a backup, or another machine's directory.
    Shelve(PeerId),
    /// A host that has never been here joins an open world.
    Join(PeerId),
    /// A host leaves an open world for good, after it has handed over what it hosts.
    Leave(PeerId),
    /// A host is gone for good, without a word.
    Destroy(PeerId),
    /// An operator tells a peer to go on without others.
    Forget {
        /// Who is told.
        by: PeerId,
        /// Who is gone.
        gone: Vec<PeerId>,
    },
    /// A copy of a peer's disk, the one on the shelf if there is one, is started on another machine. The peer may run, too.
    Twin(PeerId),
    /// A peer loses its memory and goes on: the paper's replica reset.
    Reset(PeerId),
    /// A peer stands still and then goes on; its clocks do not stand still.
    Pause {
        /// Which.
        peer: PeerId,
        /// For how long.
        span: Span,
    },
    /// Messages from one group to another stop.
    Cut(Cut),
    /// The cuts of this id end.
    Mend(u32),
    /// A wall clock jumps.
    WallJump {
        /// Whose.
        peer: PeerId,
        /// By how many microseconds.
        by_us: i64,
    },
}

impl Fault {
    /// Its kind, for counting.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Crash(_) => "crash",
            Self::Tear(_) => "torn crash",
            Self::TearRecords(_) => "crash between records",
            Self::FailWrite { .. } => "failing write",
            Self::SlowDisk { .. } => "slow disk",
            Self::Restart { memory: Memory::Disk, .. } => "restart with disk",
            Self::Restart { memory: Memory::Lost(_), .. } => "restart with lost writes",
            Self::Restart { memory: Memory::None, .. } => "restart without disk",
            Self::Restart { memory: Memory::Shelf, .. } => "restart with an old disk",
            Self::Shelve(_) => "copy of a disk",
            Self::Twin(_) => "start of a twin",
            Self::Join(_) => "join",
            Self::Leave(_) => "leave",
            Self::Destroy(_) => "destruction",
            Self::Forget { .. } => "forget",
            Self::Reset(_) => "reset",
            Self::Pause { .. } => "pause",
            Self::Cut(_) => "cut",
            Self::Mend(_) => "mend",
            Self::WallJump { .. } => "wall jump",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Crash(peer)
            | Self::Tear(peer)
            | Self::TearRecords(peer)
            | Self::Shelve(peer)
            | Self::Twin(peer)
            | Self::Join(peer)
            | Self::Leave(peer)
            | Self::Destroy(peer)
            | Self::Reset(peer)
            | Self::FailWrite { peer, .. }
            | Self::Restart { peer, .. } => {
                write!(f, "{kind} of {peer}")
            }
            Self::Forget { by, gone } => {
                write!(f, "{by} is told to forget")?;
                gone.iter().try_for_each(|peer| write!(f, " {peer}"))
            }
            Self::SlowDisk { peer, write } => write!(f, "writes of {peer} take {write}"),
            Self::Pause { peer, span } => write!(f, "{peer} pauses for {span}"),
            Self::Cut(cut) => {
                write!(f, "cut {}:", cut.id)?;
                cut.from.iter().try_for_each(|peer| write!(f, " {peer}"))?;
                write!(f, " to")?;
                cut.to.iter().try_for_each(|peer| write!(f, " {peer}"))
            }
            Self::Mend(id) => write!(f, "cut {id} mended"),
            Self::WallJump { peer, by_us } => {
                let sign = if *by_us < 0 { '-' } else { '+' };
                write!(
                    f,
                    "wall clock of {peer} jumps {sign}{}",
                    Span::from_micros(by_us.unsigned_abs())
                )
            }
        }
    }
}

/// All that goes wrong in a run. The default is nothing.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    /// Faults and their times, in any order.
    pub faults: Vec<(TrueTime, Fault)>,
    /// Every host is reset again and again, after exponential lifetimes of this mean.
    pub replica_life: Option<Span>,
    /// From this moment on the world is kind: cuts, losses and copies end, all peers are up and
    /// awake, later faults do not happen, nobody new arrives, and every idle client asks once more,
    /// so that a lock that nobody can get any longer is seen.
    pub heal_at: Option<TrueTime>,
    /// If set, peers get `PeerDown` and `PeerUp` hints so long after crashes and restarts.
    pub hints_after: Option<Span>,
}

impl FaultPlan {
    /// Whether nothing goes wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty() && self.replica_life.is_none()
    }
}
