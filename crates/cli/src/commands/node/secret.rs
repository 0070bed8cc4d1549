//! The secret of a peer's swarm; and what tells the other users of its machine that there is such a swarm.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use sigmalock::trace;
use sigmalock_node::key::SwarmKey;
use sigmalock_node::{Config, StartError};

use super::Node;
use crate::commands::key;
use crate::outcome::Failure;

impl Node {
    /// The key of the swarm: there is none without.
    pub(super) fn swarm_key(&self) -> anyhow::Result<SwarmKey> {
        if self.private {
            return own_key(&self.data_dir()?)?.ok_or_else(|| self.is_elsewhere());
        }
        let file = self.swarm_key.as_ref().ok_or_else(|| {
            Failure::usage(
                "the peers of a swarm share a secret: make one with `sigmalock key new swarm.key`, and say --swarm-key \
                 swarm.key; for locks of this user on this machine, say --private",
            )
        })?;
        key::read(file.path())
    }

    /// Nobody is to start a private peer on this machine while this one is dead, whoever they are.
    pub(super) fn leave_a_trace(&self, config: &Config) -> anyhow::Result<()> {
        if self.private || self.no_trace {
            return Ok(());
        }
        let data = config.data.as_ref().map_or("none".into(), |dir| dir.display().to_string());
        let words = format!(
            "A peer of a swarm of sigmalock ran on this machine: `run` starts no private peer here.\n\
             Delete this file once this machine has left the swarm.\n\
             swarm: {}\ndata: {data}\n",
            config.swarm_key.id()
        );
        trace::leave(&words).map_err(|(path, cause)| {
            anyhow::anyhow!(
                "{} cannot be written ({cause}), by which other users of this machine would know that it is one of a \
                 swarm, also while this peer is dead; if nobody else uses this machine, say --no-trace",
                path.display()
            )
        })
    }
}

/// Before anything of a peer is in it: then nobody can tell any more that it was empty.
fn close_to_others(dir: &Path) -> anyhow::Result<()> {
    let meta = fs::metadata(dir)?;
    let mode = meta.mode() & 0o777;
    // Whose it must be is seen to where it is used.
    if mode & 0o077 == 0 || meta.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    if fs::read_dir(dir)?.next().is_some() {
        let exposed = StartError::Exposed { path: dir.into(), mode };
        return Err(Failure::usage(exposed.to_string()).into());
    }
    Ok(fs::set_permissions(dir, Permissions::from_mode(0o700))?)
}

/// The secret that a private swarm drew for itself, in its data directory. Nobody else ever needs it. `None`: another process
/// has that directory, and is about to draw it.
fn own_key(dir: &Path) -> anyhow::Result<Option<SwarmKey>> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join("swarm.key");
    if path.exists() {
        return key::read(&path).map(Some);
    }
    let claim = File::open(dir)?;
    if matches!(claim.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    if path.exists() {
        return key::read(&path).map(Some);
    }
    let draft = dir.join("swarm.key.new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let key = SwarmKey::generate()?;
    close_to_others(dir)?;
    key.write_new(&draft)?;
    fs::rename(&draft, &path)?;
    Ok(Some(key))
}
