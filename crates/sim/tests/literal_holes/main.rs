//! The paper's pseudo code has holes, and each has a test here that shows it: the literal variant falls
//! into it, the shipped one does not, in the very same world. The numbers are those of the project's
//! notes on the protocol, where 1 to 16 are listed; a hole that needs the inside of a replica to be
//! seen is in `sigmalock_protocols::sigma::literal` instead.
//!
//! Two of the numbers have no test, for there is nothing to fall into:
//!
//! - 6, a YIELD that its RELEASE overtakes re-queues the dead: not in Figure 6, where OnYield ignores
//!   everybody but the owner. It is the hole of whoever mends hole 7 by taking such a YIELD for a REQUEST,
//!   as the shipped one does; there tombstones close it, and the mutant `forgets-tombstones` opens it.
//! - 13, when there are "enough responses": the literal variant takes the text at its best, that nobody
//!   can win if j_same + n − j < m, replicas not heard from excluded. To decide as soon as m have answered
//!   would livelock, to wait for all n would hang.

#[path = "../stage/mod.rs"]
mod stage;

mod faults;
mod messages;
