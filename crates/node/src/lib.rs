//! Live peers: the protocols of sigmalock on libp2p and tokio.
//!
//! ```text
//!   api ──► Handle/Session ──► driver ──► protocol (the very type that the simulator runs)
//!                                │ ▲
//!                     store ◄────┤ └──── link ──── transport (libp2p: swarm, sessions, heartbeats)
//! ```
//!
//! - [`node`], [`handle`], [`report`]: what the rest of the program sees of a peer.
//! - `driver`: one task that owns the protocol, its timers and its effects, and does nothing else.
//! - `store`: durable records, written in groups; what rests on them waits until they are on disk. `past`: what
//!   is left of former lives.
//! - `transport`: who is there. Finds peers, keeps one session to each, notices when one is gone.
//! - `wire`: frames; `link`: what passes between transport and driver; `control`: what operators ask.
//! - [`key`], [`identity`], [`origin`], [`names`], `address_book`, `clock`: small things that a peer has.

mod address_book;
pub mod clock;
pub mod config;
mod control;
mod driver;
pub mod handle;
pub mod identity;
pub mod key;
mod link;
pub mod names;
pub mod node;
mod operator;
pub mod origin;
mod past;
mod purse;
mod replies;
pub mod report;
mod store;
mod transport;
mod wire;

pub use config::{Beginning, Config, Membership, ProtocolName, Role};
pub use handle::{Closed, Handle, Session, SessionError};
pub use names::{Names, PeerName};
pub use node::{Failure, LeaveError, Node, Prepared, StartError};
pub use operator::{LIST_MAX, WATCH_PERIOD, Watch};
pub use purse::{Allowance, Purse};
