//! Which sockets are believed: those that nobody else can have put where they are.
//!
//! Whoever can write to a directory on the way to a socket can put another socket there, and be the peer of all who come:
//! grant what somebody else holds, and hand out tokens that poison a fence. So the way is walked before a socket is used,
//! link by link, and afterwards the system is asked who it is that answers.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use crate::error::PlaceError;

/// As many links as the system itself follows.
const LINKS_MAX: usize = 40;

/// Who may answer at a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trusted {
    me: u32,
    /// The other user, if any, whom root let have the directory.
    tenant: Option<u32>,
}

impl Trusted {
    pub(crate) fn may_answer(self, uid: u32) -> bool {
        uid == 0 || uid == self.me || Some(uid) == self.tenant
    }
}

/// Who may answer at a socket that is there; an error if it could be anybody's.
pub(crate) fn judge(socket: &Path) -> Result<Trusted, PlaceError> {
    Walk::new(rustix::process::geteuid().as_raw()).to(socket)
}

/// The way to a socket, as far as it has been walked.
struct Walk {
    trusted: Trusted,
    at: PathBuf,
    /// How the directory that was reached is.
    dir: Option<Metadata>,
    links: usize,
}

impl Walk {
    fn new(me: u32) -> Self {
        Self { trusted: Trusted { me, tenant: None }, at: "/".into(), dir: None, links: 0 }
    }

    fn to(mut self, socket: &Path) -> Result<Trusted, PlaceError> {
        let whole = std::path::absolute(socket).map_err(|source| io_error(socket, source))?;
        let mut ahead: VecDeque<OsString> = steps(&whole);
        self.enter()?;
        while let Some(step) = ahead.pop_front() {
            if step == ".." {
                self.at.pop();
                self.enter()?;
                continue;
            }
            let entry = self.at.join(step);
            let meta = fs::symlink_metadata(&entry).map_err(|source| io_error(&entry, source))?;
            self.accept(&entry, &meta)?;
            if meta.is_symlink() {
                for step in self.follow(&entry)?.into_iter().rev() {
                    ahead.push_front(step);
                }
            } else if !ahead.is_empty() {
                self.at = entry;
                self.enter()?;
            } else if !meta.file_type().is_socket() {
                return Err(PlaceError::NoSocket { path: entry });
            }
        }
        Ok(self.trusted)
    }

    /// A directory that others can write to is taken only if they can change nothing but what is theirs.
    fn enter(&mut self) -> Result<(), PlaceError> {
        let meta = fs::symlink_metadata(&self.at).map_err(|source| io_error(&self.at, source))?;
        if meta.mode() & 0o022 != 0 && !is_sticky(&meta) {
            return Err(PlaceError::Writable { path: self.at.clone() });
        }
        self.dir = Some(meta);
        Ok(())
    }

    /// What lies in the directory that was reached belongs to somebody who is believed; or root, who alone can write
    /// there, let somebody have it.
    fn accept(&mut self, entry: &Path, meta: &Metadata) -> Result<(), PlaceError> {
        let owner = meta.uid();
        if self.trusted.may_answer(owner) {
            return Ok(());
        }
        let by_root =
            self.dir.as_ref().is_some_and(|dir| dir.uid() == 0 && dir.mode() & 0o022 == 0);
        if !by_root || self.trusted.tenant.is_some() || meta.is_symlink() {
            return Err(PlaceError::Foreign { path: entry.to_owned(), owner });
        }
        self.trusted.tenant = Some(owner);
        Ok(())
    }

    /// Where a link leads from here.
    fn follow(&mut self, link: &Path) -> Result<VecDeque<OsString>, PlaceError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(io_error(link, io::Error::other("too many links")));
        }
        let target = fs::read_link(link).map_err(|source| io_error(link, source))?;
        if target.is_absolute() {
            self.at = "/".into();
            self.enter()?;
        }
        Ok(steps(&target))
    }
}

fn is_sticky(dir: &Metadata) -> bool {
    dir.mode() & 0o1000 != 0
}

fn steps(path: &Path) -> VecDeque<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(step).collect()
}

fn io_error(path: &Path, source: io::Error) -> PlaceError {
    PlaceError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions};
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A directory of this user, with a socket in it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("sl-trust-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            DirBuilder::new().mode(0o755).create(&dir).unwrap();
            let place = Self(dir);
            drop(UnixListener::bind(place.socket()).unwrap());
            place
        }
        fn socket(&self) -> PathBuf {
            self.0.join("s")
        }
        fn set(&self, mode: u32) {
            fs::set_permissions(&self.0, Permissions::from_mode(mode)).unwrap();
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_socket_where_others_can_write_is_not_believed() {
        let place = Place::new("open");
        assert!(judge(&place.socket()).is_ok());
        for mode in [0o775, 0o757, 0o777] {
            place.set(mode);
            assert!(matches!(judge(&place.socket()), Err(PlaceError::Writable { .. })), "{mode:o}");
        }
        // Above it, too.
        let below = place.0.join("below");
        DirBuilder::new().mode(0o700).create(&below).unwrap();
        let socket = below.join("s");
        drop(UnixListener::bind(&socket).unwrap());
        assert!(matches!(judge(&socket), Err(PlaceError::Writable { .. })));
        place.set(0o1777);
        assert!(judge(&socket).is_ok() && judge(&place.socket()).is_ok(), "sticky, as /tmp");
    }

    #[test]
    fn what_lies_in_a_sticky_directory_must_be_of_somebody_who_is_believed() {
        let place = Place::new("sticky");
        let owner = fs::symlink_metadata(place.socket()).unwrap().uid();
        place.set(0o1777);
        let stranger = Walk::new(owner + 1).to(&place.socket());
        // To root nobody is a stranger; to anybody else this user is.
        if owner != 0 {
            assert!(matches!(stranger, Err(PlaceError::Foreign { .. })));
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(place.socket(), Some(65_534), None).unwrap();
            assert!(matches!(
                judge(&place.socket()),
                Err(PlaceError::Foreign { owner: 65_534, .. })
            ));
            // A closed directory of root's: it was root that let somebody have it.
            place.set(0o755);
            let trusted = judge(&place.socket()).unwrap();
            assert!(trusted.may_answer(65_534) && trusted.may_answer(0));
            assert!(!trusted.may_answer(65_533));
        }
    }

    #[test]
    fn links_are_followed_and_what_is_on_their_way_is_looked_at() {
        let (place, other) = (Place::new("links"), Place::new("target"));
        let link = place.0.join("link");
        symlink(&other.0, &link).unwrap();
        assert!(judge(&link.join("s")).is_ok());
        assert!(judge(&link.join("../").join(place.0.file_name().unwrap()).join("s")).is_ok());
        other.set(0o777);
        assert!(matches!(judge(&link.join("s")), Err(PlaceError::Writable { .. })));
        let circle = place.0.join("circle");
        symlink("circle", &circle).unwrap();
        assert!(matches!(judge(&circle.join("s")), Err(PlaceError::Io { .. })));
        fs::write(place.0.join("file"), "").unwrap();
        assert!(matches!(judge(&place.0.join("file")), Err(PlaceError::NoSocket { .. })));
        assert!(matches!(judge(&place.0.join("none")), Err(PlaceError::Io { .. })));
    }
}
