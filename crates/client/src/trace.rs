//! What a peer of a swarm leaves on its machine, so that others see that the machine is one of a swarm, even while that
//! peer is dead.
//!
//! ```text
//!   root      /var/lib/sigmalock                 the machine's data directory, used or not
//!   others    /var/tmp/sigmalock-swarm.UID       a file each, which outlives the boot
//! ```
//!
//! Everybody can see them, and nobody but their owner and root can remove them. Who plants one keeps himself and others
//! from starting private peers, and can do nothing else with it: what is in it is for people, and nothing reads it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::place;

/// Where everybody may leave something that outlives the boot.
const DIR: &str = "/var/tmp";
/// What a trace begins with.
const STEM: &str = "sigmalock-swarm.";
/// Who has more files there than this does not have them looked through.
const FILES_MAX: usize = 100_000;
/// So often is another name tried, if somebody else has the usual one.
const ATTEMPTS_MAX: u32 = 8;
/// For all to see; the sticky bit keeps those away who clear up what is old.
const MODE: u32 = 0o1644;

/// A trace, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    pub(crate) owner: u32,
}

/// Leaves one, on disk when this returns. `words` is for people who come across it.
///
/// # Errors
/// What the system says, and where.
pub fn leave(words: &str) -> Result<(), (PathBuf, io::Error)> {
    let me = rustix::process::geteuid();
    let machines = Path::new(place::MACHINE_DATA);
    if fs::symlink_metadata(machines).is_ok_and(|meta| meta.uid() == me.as_raw()) {
        return Ok(());
    }
    // Where root cannot, as on a read-only file system, it does as all do.
    if me.is_root() && DirBuilder::new().mode(0o700).create(machines).is_ok() {
        let above = machines.parent().unwrap_or(machines);
        return sync(above).map_err(|cause| (above.to_owned(), cause));
    }
    leave_in(Path::new(DIR), me.as_raw(), words)
}

fn leave_in(dir: &Path, me: u32, words: &str) -> Result<(), (PathBuf, io::Error)> {
    let mut path = dir.join(format!("{STEM}{me}"));
    for _ in 0..ATTEMPTS_MAX {
        match write(&path, words) {
            Ok(()) => return sync(dir).map_err(|cause| (dir.to_owned(), cause)),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => return Err((path, cause)),
        }
        // What is ours already is left as it is. What is not could be gone tomorrow.
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file() && meta.uid() == me) {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        path = dir.join(format!("{STEM}{me}.{now:x}"));
    }
    Err((path, io::ErrorKind::AlreadyExists.into()))
}

/// Never through a link, and never into what was there.
fn write(path: &Path, words: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(words.as_bytes())?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.sync_all()
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// One that somebody left; an error if that cannot be found out.
pub(crate) fn find() -> io::Result<Option<Trace>> {
    find_in(Path::new(DIR), FILES_MAX)
}

fn find_in(dir: &Path, files_max: usize) -> io::Result<Option<Trace>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    for (count, entry) in entries.enumerate() {
        if count >= files_max {
            return Err(io::Error::other(format!("there are more than {files_max} files")));
        }
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(STEM.as_bytes()) {
            // Whatever it is, and though it is just being removed: it may only keep people out.
            let owner = entry.metadata().map_or(u32::MAX, |meta| meta.uid());
            return Ok(Some(Trace { path: entry.path(), owner }));
        }
    }
    Ok(None)
}

/// Where traces are looked for, for people.
pub(crate) fn whereabouts() -> &'static str {
    DIR
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("sl-trace-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_trace_is_left_once_for_all_to_see() {
        let folder = Folder::new("once");
        assert_eq!(find_in(&folder.0, 10).unwrap(), None);
        leave_in(&folder.0, me(), "one\n").unwrap();
        leave_in(&folder.0, me(), "another\n").unwrap();
        let path = folder.0.join(format!("{STEM}{}", me()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, MODE);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert_eq!(find_in(&folder.0, 10).unwrap(), Some(Trace { path, owner: me() }));
    }

    #[test]
    fn what_somebody_planted_is_neither_followed_nor_relied_on() {
        let folder = Folder::new("planted");
        let (usual, target) = (folder.0.join(format!("{STEM}{}", me())), folder.0.join("target"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &usual).unwrap();
        leave_in(&folder.0, me(), "words\n").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        fs::remove_file(&usual).unwrap();
        assert!(find_in(&folder.0, 10).unwrap().is_some(), "there is another one");
    }

    #[test]
    fn whatever_is_called_so_is_one_and_too_much_to_look_through_is_an_error() {
        let folder = Folder::new("called");
        fs::create_dir(folder.0.join(format!("{STEM}x"))).unwrap();
        assert!(find_in(&folder.0, 1).unwrap().is_some());
        fs::remove_dir(folder.0.join(format!("{STEM}x"))).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.0.join(name), "").unwrap();
        }
        assert!(find_in(&folder.0, 3).unwrap().is_none());
        assert!(find_in(&folder.0, 2).is_err());
        assert!(leave_in(&folder.0.join("nowhere"), me(), "").is_err());
    }
}
