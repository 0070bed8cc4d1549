//! Runs the real binary.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod host;
pub(crate) mod machine;
pub(crate) mod work;

use std::process::{Command, Output};

/// What a run of the command left behind.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `sigmalock LINE`, split at white space.
pub(crate) fn sigmalock(line: &str) -> Ran {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sigmalock")).args(line.split_whitespace()).output();
    let Output { status, stdout, stderr } = output.expect("the binary starts");
    Ran {
        code: status.code(),
        stdout: String::from_utf8(stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(stderr).expect("stderr is UTF-8"),
    }
}
