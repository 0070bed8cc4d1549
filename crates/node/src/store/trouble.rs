//! Why the files of a directory cannot be taken as they are.

use std::io;

/// See the module.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another process has them.
    InUse,
    /// They are sound, but of another version or of other settings: in words.
    Foreign(String),
    /// They cannot be read, or written: the system says why.
    Io(io::Error),
    /// They do not say what was written: in words.
    Damaged(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
