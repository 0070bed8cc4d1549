//! Distributed locks without coordination servers: the client library.
//!
//! ```no_run
//! # use std::time::Duration;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = sigmalock::Client::connect_default().await?;
//! let guard = client.lock("/render/frame-17").wait(Duration::from_secs(30)).acquire().await?;
//! println!("inside, with token {}", guard.token());
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! A lock that somebody has is [`AcquireError::Busy`] to who does not want to wait:
//!
//! ```no_run
//! # use sigmalock::AcquireError;
//! # async fn example(client: sigmalock::Client) -> Result<(), Box<dyn std::error::Error>> {
//! match client.lock("/cron/cleanup").try_acquire().await {
//!     Ok(guard) => guard.release().await?,
//!     Err(AcquireError::Busy) => println!("somebody else is at it"),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(()) }
//! ```
//!
//! [`blocking`] is the same for programs without `async`.
//!
//! A [`Client`] talks to the peer on this machine, which talks to the swarm; on one machine alone,
//! [`Client::connect_or_start`] needs nothing set up. A [`Guard`] is the right to be
//! inside. It is a lease that the peer renews: it ends when the guard is dropped or released, when the
//! process dies, and also when the peer can no longer renew it. So whoever works for longer than a moment
//! watches [`Guard::lost`], or asks [`Guard::check`] before each step that matters; and what the lock
//! protects is safe against a holder that overslept if it looks at [`Guard::token`] ([`fence`]).

mod belonging;
pub mod blocking;
mod client;
mod clock;
mod connect;
mod demand;
mod error;
pub mod fence;
mod find;
mod guard;
mod lock;
pub mod place;
mod session;
pub mod settings;
mod several;
mod start;
pub mod trace;
mod trust;

pub use client::{Client, ConnectOptions, Watch};
pub use error::{
    AcquireError, ConnectError, OperatorError, PlaceError, QueryError, ReleaseError, SettingsError,
};
pub use guard::{Guard, LostSignal};
pub use lock::{Lock, Position};
pub use several::{Guards, Locks, LocksError};
pub use start::Started;

/// What operators get to see: the shapes of the API, as they come from the peer.
pub mod report {
    pub use sigmalock_api::v1::{
        BreakResponse, Counter, ForgetResponse, Holder, Lock, LockSummary, Mode, Peer, PeerStatus,
        Replica, Waiter,
    };
}
