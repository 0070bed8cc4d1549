//! What a driver needs of a protocol beyond its inputs and effects.

use sigmalock_core::{MemberRequest, Protocol};

use super::Placement;
use crate::views::Roster;

/// A protocol that a driver, simulated or live, can run.
pub trait Driven: Protocol {
    /// This peer's own view of who is there, for a driver that sees peers come and go; `None` where nobody goes by
    /// it.
    fn placement(&self) -> Option<&Placement> {
        None
    }
    /// The same, to be told.
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        None
    }
    /// The newest view that this peer knows, where peers agree on who is in.
    fn roster(&self) -> Option<&Roster> {
        None
    }
    /// Whether this peer is a member of it.
    fn is_member(&self) -> bool {
        false
    }
    /// An operator's wish about the members, as a request; `None` where there are none.
    fn of_members(_wish: MemberRequest) -> Option<Self::Request> {
        None
    }
    /// Whether this peer knows that it lacks what it promised, and has not been a member anew since.
    fn has_forgotten(&self) -> bool {
        false
    }
    /// How many replicas this peer remembers as a host.
    fn hosted(&self) -> usize {
        0
    }
    /// Whether a peer that leaves may go: nothing is left that it would have to hand over, and where peers agree
    /// on who is in, the others know that it is out.
    fn may_go(&self) -> bool {
        true
    }
}
