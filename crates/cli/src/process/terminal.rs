//! Who has the terminal. A command in a process group of its own could not read from it otherwise.

use std::io::{IsTerminal, stdin, stdout};

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// Whether this process may give the terminal away: it is ours now, and nobody whom we write to, such as a
/// pager, needs it as well.
pub(crate) fn is_ours() -> bool {
    stdin().is_terminal()
        && stdout().is_terminal()
        && tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

/// Whether that group has the terminal.
pub(crate) fn belongs_to(group: Pid) -> bool {
    tcgetpgrp(stdin()).is_ok_and(|owner| owner == group)
}

/// Gives the terminal to a process group. From the background that would stop this process, unless the
/// signal that does so is blocked.
pub(crate) fn give_to(group: Pid) {
    let mut ttou = SigSet::empty();
    ttou.add(Signal::SIGTTOU);
    let blocked = ttou.thread_block();
    // Without a terminal to give there is nothing to be done about it.
    let _ = tcsetpgrp(stdin(), group);
    if blocked.is_ok() {
        let _ = ttou.thread_unblock();
    }
}
