//! How the swarm of a peer begins: which flags about that make sense together, and what is asked before there could be
//! a second one.

use sigmalock_node::origin::Origin;
use sigmalock_node::{Beginning, Config, Membership, Role};

use super::Node;
use crate::commands::confirm;
use crate::outcome::Failure;

impl Node {
    /// How it comes into a swarm.
    pub(super) fn beginning(&self) -> Result<Beginning, Failure> {
        let alone = self.join.is_empty() && !self.mdns;
        match self.expect {
            Some(hosts) if hosts > 1 && alone => Err(Failure::usage(format!(
                "--expect {hosts}: this peer would never meet the others: give all of them the same --join, with the \
                 addresses of all, or --mdns"
            ))),
            Some(hosts) => Ok(Beginning::Expect(hosts)),
            None if self.found || self.private => Ok(Beginning::Found),
            None => Ok(Beginning::Join),
        }
    }

    /// Who founds a swarm alone founds a second one if the data of the first are lost, or elsewhere. Where others could
    /// be in that, a person must know better.
    pub(super) fn ask_before_founding(&self, config: &Config) -> anyhow::Result<()> {
        if self.private {
            return Ok(());
        }
        let alone = matches!(config.beginning, Beginning::Found | Beginning::Expect(1))
            && config.membership == Membership::Agreed
            && config.role == Role::Host;
        let belongs = Origin::recall(config.data.as_deref()).get() != 0;
        if !alone || belongs || self.yes {
            return Ok(());
        }
        let key = config.swarm_key.id();
        let unasked = format!(
            "this would found a swarm under the key {key}, and a second one would grant what the first one holds: say \
             --yes if there is none, or start all its hosts alike, with --expect N --join A,B,C"
        );
        if confirm(&risk(&key), "Found a new swarm?", &unasked)? {
            return Ok(());
        }
        Err(anyhow::anyhow!("no swarm is founded"))
    }
}

/// What is at stake, in words.
fn risk(key: &str) -> String {
    format!(
        "This peer has no data of a swarm, and would found one under the key {key}.\n\
         If there is one under this key already, perhaps because this host has lost its\n\
         data, two would then hold the same lock. In that case join it: --join ADDRESS.\n"
    )
}
