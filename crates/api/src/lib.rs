//! The sigmalock.v1 API: its shapes, and its server over a node.
//!
//! `proto/sigmalock/v1/sigmalock.proto` is the definition and the documentation. [`v1`] is what it
//! becomes in Rust; [`server`] (feature `server`) serves it for a [`sigmalock_node::Handle`].

#[cfg(feature = "server")]
pub mod server;

/// The version of the API. Clients and peers of different versions refuse each other.
pub const API_VERSION: u32 = 1;

/// The longest message, either way.
pub const MESSAGE_LEN_MAX: usize = 64 << 10;

/// The longest label of a session, in bytes; the rest is cut off.
pub const LABEL_LEN_MAX: usize = 128;

/// The shapes of the API, as generated.
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod v1 {
    tonic::include_proto!("sigmalock.v1");
}
