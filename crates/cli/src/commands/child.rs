//! `__child`: the step between `run` and the command it runs.
//!
//! A command has to end when `run` is killed, or it would go on inside after the lock has passed on. So
//! this process, which is to become the command, first asks the kernel to be killed when its parent
//! dies. That could be said between fork and exec, but only in unsafe code; a process of its own, which
//! then becomes the command, comes to the same.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use rustix::process::{Signal, getpgrp, getppid, set_parent_process_death_signal};

use crate::outcome::{Verdict, complain};
use crate::process::terminal;

/// Becomes a command that dies with its parent
#[derive(Debug, Args)]
pub(crate) struct Child {
    /// The parent
    #[arg(long)]
    parent: i32,
    /// Take the terminal
    #[arg(long)]
    foreground: bool,
    /// The command
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

/// As shells have it: the command is there and cannot be run, or is not there.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

impl Child {
    pub(crate) fn run(&self) -> anyhow::Result<Verdict> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // A parent that died before that is somebody else by now.
        if getppid().is_none_or(|parent| parent.as_raw_pid() != self.parent) {
            return Ok(Verdict::Like(128 + 9));
        }
        terminal::behave();
        if self.foreground {
            terminal::give_to(getpgrp());
        }
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(Verdict::Like(NOT_FOUND));
        };
        let error = Command::new(program).args(arguments).exec();
        complain(format_args!("sigmalock: {}: {error}", program.display()));
        let missing = error.kind() == io::ErrorKind::NotFound;
        Ok(Verdict::Like(if missing { NOT_FOUND } else { CANNOT_RUN }))
    }
}
