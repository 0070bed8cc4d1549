//! Who is put into a tortured world: the flags that `torture` and `trace` share.

use clap::Args;
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_sim::lab::torture::Victim;
use sigmalock_sim::subject::Subject;

use crate::args::{self, Replicas};
use crate::outcome::BadParameters;

#[derive(Debug, Args)]
pub(crate) struct VictimFlags {
    /// As published (literal), or with what it takes to survive (shipped)
    #[arg(long, value_name = "V", default_value = "shipped", value_parser = args::variant)]
    pub(crate) variant: Variant,
    /// Who hosts: the same for ever (fixed); whoever is closest by hash, as peers come and go (open); those who are in by
    /// vote (agreed). `lab protocols` says which protocol knows which
    #[arg(long, value_name = "KIND", default_value = "fixed", value_parser = membership)]
    pub(crate) membership: Membership,
    /// Break one rule on purpose; `lab mutants --list` says which there are
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Give every peer an agent and several users, for whom it is one contender in the swarm
    #[arg(long)]
    agents: bool,
    /// Let some users only read, and some want permits, so that they may be inside together
    #[arg(long)]
    pub(crate) modes: bool,
}

impl VictimFlags {
    /// Whether a protocol can be put into such a world.
    pub(crate) fn suits(&self, protocol: ProtocolName, replicas: &Replicas) -> bool {
        self.world(protocol, replicas).is_ok()
    }

    pub(crate) fn victim(
        &self, protocol: ProtocolName, replicas: &Replicas,
    ) -> Result<Victim, BadParameters> {
        let mut victim = self.world(protocol, replicas)?;
        if let Some(name) = &self.mutant {
            let healthy = Subject::new(protocol, self.variant, replicas.quorum_or_default()?);
            let broken = healthy.with_mutant(name);
            let broken = broken.map_err(|why| BadParameters(format!("--mutant {name}: {why}")))?;
            victim.mutant = broken.mutant;
            if let Some(flag) = missing(&victim) {
                return Err(BadParameters(format!("--mutant {name}: it shows with {flag} only")));
            }
        }
        Ok(victim)
    }

    fn world(&self, protocol: ProtocolName, replicas: &Replicas) -> Result<Victim, BadParameters> {
        let quorum = replicas.quorum()?;
        let (mutant, variant, agents, modes) = (None, self.variant, self.agents, self.modes);
        let bad = |why: String| Err(BadParameters(why));
        if !protocol.card().variants.contains(&variant) {
            return bad(format!("--variant {variant}: there is no such {protocol}"));
        }
        if !protocol.is_lock() {
            let given = [(quorum.is_some(), "--n"), (agents, "--agents"), (modes, "--modes")];
            if let Some((_, flag)) = given.into_iter().find(|(given, _)| *given) {
                return bad(format!("{flag}: {protocol} guards no locks"));
            }
        }
        // Who agrees on who is in does nothing else, and need not be told to.
        let membership = match self.membership {
            Membership::Fixed if !protocol.is_lock() => Membership::Agreed,
            membership => membership,
        };
        if !can_be(protocol, variant, membership) {
            let runs_with = Membership::ALL.into_iter().filter(|m| can_be(protocol, variant, *m));
            let names: Vec<&str> = runs_with.map(Membership::as_str).collect();
            return bad(format!(
                "--membership {membership}: the {variant} {protocol} runs with {}",
                names.join(" or ")
            ));
        }
        if membership == Membership::Agreed && quorum.is_some() {
            return bad("--n: with --membership agreed the votes follow from the view".to_owned());
        }
        if modes && !has_modes(protocol, variant) {
            return bad(format!("--modes: the {variant} {protocol} has no readers"));
        }
        Ok(Victim { protocol, variant, mutant, agents, modes, quorum, membership })
    }
}

/// What a world lacks for its mutant to show.
fn missing(victim: &Victim) -> Option<String> {
    let mutant = victim.mutant?;
    let elsewhere =
        mutant.membership != Membership::Fixed && mutant.membership != victim.membership;
    if elsewhere {
        return Some(format!("--membership {}", mutant.membership));
    }
    let flags =
        [(mutant.agents && !victim.agents, "--agents"), (mutant.modes && !victim.modes, "--modes")];
    flags.into_iter().find(|(lacks, _)| *lacks).map(|(_, flag)| flag.to_owned())
}

/// Whether a protocol knows that kind of membership.
fn can_be(protocol: ProtocolName, variant: Variant, membership: Membership) -> bool {
    (membership == Membership::Fixed && protocol.is_lock())
        || variant == Variant::Shipped && protocol.card().memberships.contains(&membership)
}

/// Whether some of its users may be inside together.
fn has_modes(protocol: ProtocolName, variant: Variant) -> bool {
    variant == Variant::Shipped && protocol.card().promises.modes
}

fn membership(text: &str) -> Result<Membership, String> {
    text.parse().map_err(|_| "it is `fixed`, `open` or `agreed`".to_owned())
}
