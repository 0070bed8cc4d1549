//! Torture: random worlds full of faults, each from one seed, watched by every oracle.

use std::collections::BTreeMap;
use std::ops::Range;

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::{Membership, ProtocolName, Variant};
use sigmalock_protocols::parts::Quorum;

use super::parallel::in_parallel;
use super::{agreed, draw, members, open};
use crate::history::TrueTime;
use crate::mutant::{Mutant, TAKES_LOCKS_IN_ANY_ORDER};
use crate::oracles::Violation;
use crate::run::RunConfig;
use crate::subject::Subject;

/// What is tortured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// Which protocol.
    pub protocol: ProtocolName,
    /// Which variant.
    pub variant: Variant,
    /// Which rule is broken on purpose.
    pub mutant: Option<Mutant>,
    /// Whether every peer has an agent and several users.
    pub agents: bool,
    /// Whether some users only want to read, or a permit, and may be inside together.
    pub modes: bool,
    /// m of n; if none is given, each seed draws one of the usual ones.
    pub quorum: Option<Quorum>,
    /// In which kind of world.
    pub membership: Membership,
}

impl Victim {
    /// The subject and the world that a seed means.
    #[must_use]
    pub fn case(&self, seed: u64) -> (Subject, RunConfig) {
        let quorum = self.quorum.unwrap_or_else(|| draw::quorum(self.membership, seed));
        let mut subject = Subject::new(self.protocol, self.variant, quorum);
        subject.mutant = self.mutant;
        let (subject, mut config) = match self.membership {
            _ if !self.protocol.is_lock() => members::case(subject, seed),
            Membership::Fixed => draw::case(subject, self.crowd(), seed),
            Membership::Open => open::case(subject, self.crowd(), seed),
            Membership::Agreed => agreed::case(subject, self.crowd(), seed),
        };
        config.workload.any_order = self.mutant == Some(TAKES_LOCKS_IN_ANY_ORDER);
        config.driver = self.mutant.and_then(|mutant| mutant.name.parse().ok());
        (subject, config)
    }

    fn crowd(&self) -> draw::Crowd {
        draw::Crowd { agents: self.has_agents(), modes: self.has_modes() }
    }

    /// Whether every peer has an agent: it is to have one, or what is broken is the agent.
    #[must_use]
    pub fn has_agents(&self) -> bool {
        self.agents || self.mutant.is_some_and(|mutant| mutant.agents)
    }

    /// Whether there are readers: there are to be some, or what is broken is how they are treated.
    #[must_use]
    pub fn has_modes(&self) -> bool {
        self.modes || self.mutant.is_some_and(|mutant| mutant.modes)
    }

    /// The command that runs one seed again.
    #[must_use]
    pub fn replay(&self, seed: u64) -> String {
        let end = seed.saturating_add(1);
        format!("sigmalock lab torture {} --seeds {seed}..{end}", self.flags(seed))
    }

    /// The command that shows what happened there.
    #[must_use]
    pub fn trace(&self, seed: u64) -> String {
        format!("sigmalock lab trace {} --seed {seed}", self.flags(seed))
    }

    fn flags(&self, seed: u64) -> String {
        let quorum = self.quorum.unwrap_or_else(|| draw::quorum(self.membership, seed));
        let Self { protocol, variant, .. } = self;
        let quorum = match self.membership {
            Membership::Fixed => format!(" --n {} --m {}", quorum.n(), quorum.m()),
            Membership::Open => format!(" --membership open --n {} --m {}", quorum.n(), quorum.m()),
            Membership::Agreed if !protocol.is_lock() => String::new(),
            Membership::Agreed => " --membership agreed".to_owned(),
        };
        let mutant = self.mutant.map(|mutant| format!(" --mutant {mutant}")).unwrap_or_default();
        let agents = if self.has_agents() { " --agents" } else { "" };
        let modes = if self.has_modes() { " --modes" } else { "" };
        format!("--protocol {protocol} --variant {variant}{quorum}{agents}{modes}{mutant}")
    }
}

/// What came of one seed.
#[derive(Debug, Clone)]
pub struct SeedReport {
    /// Which seed.
    pub seed: u64,
    /// What oracles objected to.
    pub violations: Vec<Violation>,
    /// How long the world existed.
    pub simulated: Span,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What the protocol noted.
    pub notes: BTreeMap<String, u64>,
    /// Entries into critical sections.
    pub entries: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// A fingerprint of everything that happened.
    pub digest: u64,
}

/// Tortures with one seed.
#[must_use]
pub fn torture_seed(victim: &Victim, seed: u64) -> SeedReport {
    let (subject, config) = victim.case(seed);
    let outcome = subject.run(&config, &mut subject.oracles(&config));
    SeedReport {
        seed,
        violations: outcome.violations,
        simulated: outcome.end.since(TrueTime(0)),
        faults: outcome.faults,
        notes: outcome.notes,
        entries: outcome.entries,
        delivered: outcome.delivered,
        digest: outcome.digest,
    }
}

/// What came of many seeds.
#[derive(Debug, Clone, Default)]
pub struct TortureReport {
    /// How many seeds.
    pub seeds: u64,
    /// How long their worlds existed, together.
    pub simulated: Span,
    /// Faults that happened, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What the protocol noted.
    pub notes: BTreeMap<String, u64>,
    /// Entries into critical sections.
    pub entries: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// How many seeds had violations.
    pub failed: u64,
    /// The first of them.
    pub failures: Vec<Failure>,
    /// A fingerprint of everything that happened in all of them.
    pub digest: u64,
}

/// A seed with violations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which seed.
    pub seed: u64,
    /// The command that runs it again.
    pub replay: String,
    /// The command that shows what happened.
    pub trace: String,
    /// What oracles objected to.
    pub violations: Vec<Violation>,
}

/// More failures than this are counted but not kept.
const FAILURES_MAX: usize = 100;
/// Seeds are added up in order, so that a report says the same whatever the number of threads, also when it ends early;
/// and shared out in batches, so that no more reports than these wait for one that takes long.
const BATCH: u64 = 256;

impl TortureReport {
    fn add(&mut self, victim: &Victim, report: SeedReport) {
        self.seeds += 1;
        self.simulated = self.simulated + report.simulated;
        for (kind, count) in report.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (note, count) in report.notes {
            *self.notes.entry(note).or_default() += count;
        }
        self.entries += report.entries;
        self.delivered += report.delivered;
        self.digest = self.digest.rotate_left(7) ^ report.digest;
        if report.violations.is_empty() {
            return;
        }
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            let (seed, violations) = (report.seed, report.violations);
            let (replay, trace) = (victim.replay(seed), victim.trace(seed));
            self.failures.push(Failure { seed, replay, trace, violations });
        }
    }
}

/// Tortures with many seeds on `jobs` threads. `progress` is told of each seed that is done.
#[must_use]
pub fn torture(
    victim: &Victim, seeds: Range<u64>, jobs: usize, progress: &(dyn Fn(u64) + Sync),
    stop_at_first: bool,
) -> TortureReport {
    let mut total = TortureReport::default();
    let mut from = seeds.start;
    while from < seeds.end {
        let to = from.saturating_add(BATCH).min(seeds.end);
        let batch: Vec<u64> = (from..to).collect();
        let work = |seed: &u64| {
            let report = torture_seed(victim, *seed);
            progress(*seed);
            report
        };
        let done = in_parallel(&batch, jobs, work, |report| {
            let failed = !report.violations.is_empty();
            total.add(victim, report);
            if failed && stop_at_first { Err(()) } else { Ok(()) }
        });
        if done.is_err() {
            break;
        }
        from = to;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_seeds_there_are_come_to_an_end_and_more_jobs_than_seeds_change_nothing() {
        let (protocol, variant) = (ProtocolName::Sigma, Variant::Shipped);
        let quorum = Quorum::new(3, 2).ok();
        let membership = Membership::Fixed;
        let (mutant, agents, modes) = (None, false, false);
        let victim = Victim { protocol, variant, mutant, agents, modes, quorum, membership };
        let seeds = u64::MAX - 5..u64::MAX;
        let report = |jobs| torture(&victim, seeds.clone(), jobs, &|_| (), false);
        let (one, many) = (report(1), report(usize::MAX));
        assert_eq!((one.seeds, one.digest), (5, many.digest));
    }
}
