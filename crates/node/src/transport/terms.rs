//! What the peers of a swarm must have in common, and how they say that they have not.

use serde::{Deserialize, Serialize};

use super::handshake::{Code, clean};
use crate::config::{Config, Membership};

/// What the peers of a swarm must have in common, in the order in which differences are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// Tells swarm keys apart. Peers of before may have none.
    swarm_id: Option<String>,
    /// The kind of membership.
    membership: String,
    /// Which services run beside each other, in the order of their places on the wire; first the lock protocol.
    services: Vec<String>,
    n: u16,
    m: u16,
    lease_max_us: u64,
    hand_overs_max: u32,
}

impl Terms {
    /// As this peer was told.
    pub(crate) fn new(config: &Config) -> Self {
        let (n, m) = match config.membership {
            Membership::Open => (config.quorum.n() as u16, config.quorum.m() as u16),
            // The view says how many vote.
            Membership::Agreed | Membership::Fixed => (0, 0),
        };
        Self {
            swarm_id: Some(config.swarm_key.id()),
            membership: config.membership.to_string(),
            services: vec![config.protocol.to_string()],
            n,
            m,
            lease_max_us: config.lease_max.as_micros(),
            hand_overs_max: config.hand_overs_max,
        }
    }

    /// The first thing in which two peers differ, in words.
    pub(super) fn difference(&self, theirs: &Self) -> Option<(Code, String)> {
        let seconds = |us: u64| us as f64 / 1e6;
        let (code, text) = match (&self.swarm_id, &theirs.swarm_id) {
            (Some(a), Some(b)) if a != b => {
                (Code::Key, format!("the swarm keys differ (ours {a}, theirs {})", clean(b)))
            }
            (Some(a), None) => (Code::Key, format!("we have a swarm key ({a}) and they have none")),
            _ if self.membership != theirs.membership => (
                Code::Membership,
                format!(
                    "the kinds of membership differ (ours {}, theirs {})",
                    self.membership,
                    clean(&theirs.membership)
                ),
            ),
            _ if self.services.first() != theirs.services.first() => (
                Code::Protocol,
                format!(
                    "the lock protocols differ (ours {}, theirs {})",
                    listed(self.services.get(..1)),
                    listed(theirs.services.get(..1))
                ),
            ),
            _ if self.services != theirs.services => (
                Code::Protocol,
                format!(
                    "what runs beside the locks differs (ours {}, theirs {})",
                    listed(self.services.get(1..)),
                    listed(theirs.services.get(1..))
                ),
            ),
            _ if (self.n, self.m) != (theirs.n, theirs.m) => (
                Code::Quorum,
                format!(
                    "the quorums differ (ours {} of {}, theirs {} of {})",
                    self.m, self.n, theirs.m, theirs.n
                ),
            ),
            _ if self.lease_max_us != theirs.lease_max_us => (
                Code::LeaseMax,
                format!(
                    "the longest leases differ (ours {} s, theirs {} s)",
                    seconds(self.lease_max_us),
                    seconds(theirs.lease_max_us)
                ),
            ),
            _ if self.hand_overs_max != theirs.hand_overs_max => (
                Code::HandOvers,
                format!(
                    "the numbers of local hand-overs differ (ours {}, theirs {})",
                    self.hand_overs_max, theirs.hand_overs_max
                ),
            ),
            _ => return None,
        };
        Some((code, text))
    }
}

/// Services as people want them. A peer may say anything.
fn listed(services: Option<&[String]>) -> String {
    match services {
        None | Some([]) => "none".into(),
        Some(services) => clean(&services.join(", ")),
    }
}
