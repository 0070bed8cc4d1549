//! Where a private peer serves, noted in its data directory: for whoever finds that in use, and looked for the peer elsewhere.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Its name in the data directory.
const FILE: &str = "socket";
/// No path of a socket is as long.
const LEN_MAX: u64 = 256;

/// From now on it is known. Only whose the directory is calls this.
pub(super) fn note(data: &Path, socket: &Path) -> io::Result<()> {
    let draft = data.join("socket.new");
    File::create(&draft)?.write_all(std::path::absolute(socket)?.as_os_str().as_bytes())?;
    fs::rename(draft, data.join(FILE))
}

/// Why a peer with these data cannot be started to serve this socket, where another one has them.
pub(super) fn says(data: &Path, socket: &Path) -> String {
    let noted = read(data).filter(|there| there != socket);
    let Some(there) = noted else {
        let data = data.display();
        return format!(
            "your private peer is just being started, or ending, by somebody else (it has {data}): try again"
        );
    };
    let (there, here) = (there.display(), socket.display());
    format!(
        "your private peer runs already, and serves unix:{there}, while this looks for it at unix:{here}, because the runtime \
         directory is another one: say --api unix:{there} (SIGMALOCK_API) in place of --private, or set XDG_RUNTIME_DIR as \
         it was"
    )
}

/// What is noted, if anything.
fn read(data: &Path) -> Option<PathBuf> {
    let mut path = Vec::new();
    File::open(data.join(FILE)).ok()?.take(LEN_MAX).read_to_end(&mut path).ok()?;
    Some(OsStr::from_bytes(&path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_serves_is_told_to_who_looked_elsewhere() {
        let data = tempfile::tempdir().expect("a directory");
        let (there, here) = (Path::new("/run/a/private.sock"), Path::new("/run/b/private.sock"));
        let begins = "your private peer is just being started, or ending";
        assert!(says(data.path(), here).starts_with(begins), "nobody noted it");
        note(data.path(), here).expect("ours");
        note(data.path(), there).expect("ours");
        assert!(says(data.path(), there).starts_with(begins));
        let words = says(data.path(), here);
        assert!(words.contains("--api unix:/run/a/private.sock"), "{words}");
    }
}
