//! A peer that outlives whoever started it: it has nothing of theirs, neither descriptors nor terminal nor parent.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::outcome::Verdict;

/// The flag that asks for it.
const FLAG: &str = "--detach";

/// How often to see how the peer is.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Starts this command line as a peer of its own, and ends when that serves its socket, or has failed to.
pub(super) fn launch(socket: &Path) -> anyhow::Result<Verdict> {
    close_fds::set_fds_cloexec(3, &[]);
    // Fails only for who leads a group, and so has no terminal of others.
    let _ = rustix::process::setsid();
    let words = std::env::args_os().skip(1).filter(|word| word != FLAG);
    let mut peer = Command::new(std::env::current_exe()?).args(words).current_dir("/").spawn()?;
    loop {
        if let Some(status) = peer.try_wait()? {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Ok(Verdict::Like(code.filter(|code| *code != 0).unwrap_or(1)));
        }
        if UnixStream::connect(socket).is_ok() {
            return Ok(Verdict::Holds);
        }
        sleep(LOOK_EVERY);
    }
}
