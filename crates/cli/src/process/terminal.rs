//! Who has the terminal, and how wide it is. A command in a process group of its own could not read from it otherwise.

use std::io::{stdin, stdout};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcgetwinsize, tcsetpgrp};

/// Whether that group has the terminal.
pub(crate) fn belongs_to(group: Pid) -> bool {
    tcgetpgrp(stdin()).is_ok_and(|owner| owner == group)
}

/// How many columns it has, if what is written goes there.
pub(crate) fn columns() -> Option<usize> {
    let size = tcgetwinsize(stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Gives the terminal to a process group. From the background that would stop this process, unless the
/// signal that does so is blocked.
pub(crate) fn give_to(group: Pid) {
    let blocked = ttou().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    // Without a terminal to give there is nothing to be done about it.
    let _ = tcsetpgrp(stdin(), group);
    if let Ok(before) = blocked {
        let _ = before.thread_set_mask();
    }
}

/// Lets this process, and those it starts, write to a terminal that belongs to others, whatever the terminal is told.
pub(crate) fn write_from_behind() {
    let _ = ttou().thread_block();
}

/// The opposite.
pub(crate) fn behave() {
    let _ = ttou().thread_unblock();
}

fn ttou() -> SigSet {
    let mut ttou = SigSet::empty();
    ttou.add(Signal::SIGTTOU);
    ttou
}
