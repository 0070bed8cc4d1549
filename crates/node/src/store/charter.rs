//! What a data directory belongs to.

use serde::{Deserialize, Serialize};
use sigmalock_core::{PeerId, Span};

use crate::config::{Config, Membership};
use crate::node::tokens_per_grant;

/// The version of what is in the directory.
pub(super) const FORMAT: u16 = 9;

/// Why a directory of that version cannot be used.
pub(super) fn other_format(format: u16) -> String {
    format!("it was written with format {format}, and this peer is to run with {FORMAT}")
}

/// What a data directory belongs to. Votes given under one charter mean nothing under another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charter {
    format: u16,
    pub(crate) peer: PeerId,
    pub(crate) membership: String,
    /// How locks are guarded.
    pub(crate) protocol: String,
    pub(crate) n: u64,
    pub(crate) m: u64,
    pub(crate) lease_max: Span,
    pub(crate) tokens_per_grant: u64,
    /// Whether its swarm has a key. Those of before had none if `run` had made them.
    pub(crate) keyed: bool,
}

impl Charter {
    /// Of a peer that was told so.
    pub(crate) fn new(peer: PeerId, config: &Config) -> Self {
        let (n, m) = match config.membership {
            Membership::Open => (config.quorum.n() as u64, config.quorum.m() as u64),
            // The view says how many vote.
            Membership::Agreed | Membership::Fixed => (0, 0),
        };
        Self {
            format: FORMAT,
            peer,
            membership: config.membership.to_string(),
            protocol: config.protocol.to_string(),
            n,
            m,
            lease_max: config.lease_max,
            tokens_per_grant: tokens_per_grant(config),
            keyed: true,
        }
    }

    /// Why a directory with this charter cannot be used under that one.
    pub(super) fn objection(&self, wanted: &Self) -> Option<String> {
        let differ = |what, has: &dyn core::fmt::Display, wants: &dyn core::fmt::Display| {
            Some(format!("it was written with {what} {has}, and this peer is to run with {wants}"))
        };
        if self.membership != wanted.membership {
            let (has, wants) = (&self.membership, &wanted.membership);
            Some(format!(
                "it belongs to a swarm with {has} membership, and this peer is to run with {wants}; a \
                 swarm cannot be moved from one to the other: say --membership {has}, or give this \
                 peer another directory"
            ))
        } else if self.protocol != wanted.protocol {
            let (has, wants) = (&self.protocol, &wanted.protocol);
            Some(format!(
                "it belongs to a swarm whose lock protocol is {has}, and this peer is to run {wants}: say --protocol {has}, \
                 or give this peer another directory"
            ))
        } else if !self.keyed {
            Some(
                "it belongs to a swarm without a key, as `run` once made them for this machine alone: move it away, \
                 or give this peer another directory"
                    .into(),
            )
        } else if (self.n, self.m) != (wanted.n, wanted.m) {
            let show = |c: &Self| format!("{} of {}", c.m, c.n);
            differ("a quorum of", &show(self), &show(wanted))
        } else if self.lease_max != wanted.lease_max {
            differ("a longest lease of", &self.lease_max, &wanted.lease_max)
        } else if self.tokens_per_grant != wanted.tokens_per_grant {
            let show = |c: &Self| format!("{} in a row", c.tokens_per_grant);
            differ("local hand-overs of", &show(self), &show(wanted))
        } else if self.peer != wanted.peer {
            Some("it belongs to another identity than the one in this directory".into())
        } else {
            None
        }
    }
}
