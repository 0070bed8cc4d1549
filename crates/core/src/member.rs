//! What an operator may ask of an agreed membership, whatever it is that the members do together.

use alloc::collections::BTreeSet;

use crate::id::PeerId;

/// What a member may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemberRequest {
    /// Go on without these members: an operator's last resort when half of them or more are gone for good. If
    /// they are not, two may hold the same lock. Answered when those who are left have been asked.
    Forget {
        /// All who are gone.
        gone: BTreeSet<PeerId>,
        /// Whether the operator vouches for what cannot be verified: see [`ForgetRefusal::Unverified`].
        unverified: bool,
    },
    /// This peer's memory is not the only one of its kind: others have met a peer with its identity that is not
    /// this one. It takes itself for one that lost its memory.
    Disown,
}

/// What it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemberReply {
    /// It is done, or under way.
    Done,
    /// Nobody is forgotten, for this reason.
    Refused(ForgetRefusal),
}

/// Why nobody is forgotten. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForgetRefusal {
    /// Only members have a say.
    #[error("this peer is no member of the swarm itself: ask one that is")]
    Outside,
    /// Nobody can be forgotten who is not in.
    #[error("{0} is no member of this swarm, as far as this peer knows")]
    NotAMember(PeerId),
    /// Somebody must be named, and a peer cannot go on without itself.
    #[error("a peer forgets others, not itself: ask one that is left, and name those who are gone")]
    Itself,
    /// One of them can be reached.
    #[error(
        "{0} can be reached, so it is not gone: stop it (SIGTERM), and it leaves by itself if enough are left"
    )]
    Here(PeerId),
    /// Somebody who is left did not answer.
    #[error(
        "{0} is a member, was not named, and did not answer: start it, or name it, too, if it is gone for \
         good, or has lost its memory and was stopped"
    )]
    Silent(PeerId),
    /// There is a newer view than the one that this peer knew.
    #[error("another peer knows a newer membership than this one did: look at it, and ask again")]
    NewerView,
    /// A change of the membership has been accepted here, and may have been chosen.
    #[error(
        "a change of the membership is under way and may have been decided already: wait for it"
    )]
    UnderWay,
    /// Those who are left need no operator, and may have decided on something else meanwhile.
    #[error(
        "those who are not named are more than half of the members: they vote the others out by themselves"
    )]
    EnoughAreLeft,
    /// The same peer was told to forget others meanwhile.
    #[error("another wish to forget has taken the place of this one")]
    Superseded,
    /// They are enough to have gone on without this peer.
    #[error(
        "the named are as many as a majority, and whether they went on without this peer, and were more than \
         these, cannot be verified here: it takes your word (`--unverified`) that they did not"
    )]
    Unverified,
    /// Nobody is left who could say that this disk is the newest that the peer had.
    #[error(
        "this peer was restarted, and none of those who are left can say that its data directory is the newest that it \
         had: it takes your word (`--unverified`) that no backup was put back"
    )]
    Unvouched,
}

/// Where there are no members, they answer nothing.
impl From<core::convert::Infallible> for MemberReply {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}
