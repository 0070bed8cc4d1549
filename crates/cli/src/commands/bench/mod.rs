//! Under construction.
use clap::Args;
use crate::outcome::Verdict;
/// Placeholder
#[derive(Debug, Args)]
pub(crate) struct Bench {}
impl Bench { pub(crate) fn run(&self) -> anyhow::Result<Verdict> { anyhow::bail!("not yet") } }
