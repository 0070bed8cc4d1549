//! Whether anything says that this machine is one of a swarm, though no peer answers: then nobody is let in by a peer
//! that knows nothing of that swarm.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::ConnectError;
use crate::{place, settings, trace};

/// What says so, in words, and how it is undone.
pub(crate) fn sign() -> Result<Option<String>, ConnectError> {
    if let Some(words) = settings::names_a_swarm()? {
        return Ok(Some(words));
    }
    Ok(machines_data().or_else(users_data).or_else(somebodys_trace))
}

fn machines_data() -> Option<String> {
    let path = Path::new(place::MACHINE_DATA);
    is_there(path).then(|| {
        let path = path.display();
        format!("{path} is there, where its peer keeps what it must remember; root can remove it once this machine has left")
    })
}

fn users_data() -> Option<String> {
    let dir = place::data_dir()?;
    is_there(&dir.join("identity")).then(|| {
        let dir = dir.display();
        format!("{dir} is there, where its peer keeps what it must remember; remove it once this machine has left")
    })
}

fn somebodys_trace() -> Option<String> {
    match trace::find() {
        Ok(found) => found.map(|trace| {
            let (path, owner) = (trace.path.display(), trace.owner);
            format!(
                "{path} was left by a peer of user {owner}; its owner or root can remove it once this machine has left"
            )
        }),
        Err(error) => {
            let dir = trace::whereabouts();
            Some(format!("whether one left its trace in {dir} cannot be found out ({error})"))
        }
    }
}

/// What cannot be looked at is taken to be there, and so is what lies behind a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.parent().is_some_and(|dir| {
            fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_symlink())
                && fs::metadata(dir).is_err()
        }),
        Err(error) => {
            !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
    }
}
