//! The command line: one definition, which feeds the parser, the help, the man pages and the completions.

use clap::{Parser, Subcommand};

use crate::commands::{
    bench, break_lock, child, completions, demo, explain, forget, inspect, key, lock, locks, man,
    node, peers, run, status,
};
use crate::lab::{self, Lab};
use crate::outcome::{ALL_EXIT_CODES, Verdict};

/// Distributed locks without coordination servers, and a laboratory for the protocols behind them.
#[derive(Debug, Parser)]
#[command(name = "sigmalock", version, after_help = ALL_EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Run(run::Run),
    Lock(lock::Lock),
    Node(node::Node),
    Status(status::Status),
    Peers(peers::Peers),
    Locks(locks::Locks),
    Inspect(inspect::Inspect),
    Explain(explain::Explain),
    Break(break_lock::Break),
    Forget(forget::Forget),
    #[command(subcommand)]
    Key(key::Key),
    Bench(bench::Bench),
    /// Simulation: torture protocols, measure, compare, draw and trace them, and check the checkers. No network.
    #[command(subcommand, after_help = lab::after_help())]
    Lab(Lab),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(name = "__child", hide = true)]
    Child(child::Child),
    #[command(name = "__worker", hide = true)]
    Worker(demo::worker::WorkerProcess),
}

impl Cli {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        match self.command {
            Command::Demo(demo) => demo.run(),
            Command::Run(run) => run.run(),
            Command::Lock(lock) => lock.run(),
            Command::Node(node) => node.run(),
            Command::Status(status) => status.run(),
            Command::Peers(peers) => peers.run(),
            Command::Locks(locks) => locks.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Explain(explain) => explain.run(),
            Command::Break(break_lock) => break_lock.run(),
            Command::Forget(forget) => forget.run(),
            Command::Key(key) => key.run(),
            Command::Bench(bench) => bench.run(),
            Command::Lab(lab) => lab.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
            Command::Child(child) => child.run(),
            Command::Worker(worker) => worker.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_line_of_help_without_a_full_stop_too_many() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "{} has no help", command.get_name());
            assert!(!about.contains('\n'), "{}: {about}", command.get_name());
        }
    }
}
