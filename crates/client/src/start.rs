//! Starting the user's private peer, once, whoever asks first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{Client, ConnectOptions};
use crate::demand::Demand;
use crate::error::ConnectError;
use crate::place::{self, Address};

/// How long a peer may take to answer once it was started, or another starter to be done.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How much of what a failed peer wrote is shown.
const LAST_WORDS_LEN: u64 = 2_048;

/// Whose peer a client came to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// One that was there.
    Found,
    /// One that was started for it, in the background, and stays for others.
    Started,
}

/// The user's private peer, started if need be. Two that come here at once start one.
pub(crate) async fn private_peer(options: &ConnectOptions) -> Result<Client, ConnectError> {
    let lock_path = place::start_lock()?;
    let io = |source| place::PlaceError::Io { path: lock_path.clone(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock_path);
    let file = file.map_err(io)?;
    let socket = Address::Unix(place::private_socket()?);
    let patience_ends = Instant::now() + START_TIMEOUT;
    while let Err(error) = file.try_lock() {
        if Instant::now() > patience_ends {
            return Err(io(error.into()).into());
        }
        sleep(LOOK_EVERY).await;
    }
    // Whoever had the lock before may have started it.
    if let Ok(client) = options.connect_for(&socket, Demand::Private).await {
        return Ok(client);
    }
    start_and_wait(options, &socket).await
}

async fn start_and_wait(
    options: &ConnectOptions, socket: &Address,
) -> Result<Client, ConnectError> {
    let program = program();
    let failed = |reason| ConnectError::Start { program: program.clone(), reason };
    let log_path = place::log_file()?;
    let mut child = spawn(&program, &log_path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ConnectError::NotInstalled { program: program.clone() },
        _ => failed(error.to_string()),
    })?;
    let patience_ends = Instant::now() + START_TIMEOUT;
    loop {
        match options.connect_for(socket, Demand::Private).await {
            Ok(client) => {
                see_off(&mut child, patience_ends).await;
                return Ok(client.with_started(Started::Started));
            }
            Err(error @ ConnectError::Incompatible { .. }) => return Err(error),
            Err(_) => {}
        }
        if let Ok(Some(status)) = child.try_wait()
            && !status.success()
        {
            let words = last_words(&log_path);
            return Err(failed(format!("it ended at once ({status}){words}")));
        }
        if Instant::now() > patience_ends {
            return Err(failed(format!("it did not answer within {START_TIMEOUT:?}")));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Whoever starts a peer has no child of it when this ends: what is below it is what it works on, and may have to be ended.
async fn see_off(launcher: &mut Child, patience_ends: Instant) {
    if timeout_at(patience_ends, launcher.wait()).await.is_err() {
        let _ = launcher.kill().await;
    }
}

/// What ends when the peer serves, or cannot. Until then an interrupt at the terminal is not meant for it.
fn spawn(program: &Path, log_path: &Path) -> std::io::Result<Child> {
    let log = OpenOptions::new().create(true).write(true).truncate(true).open(log_path)?;
    let mut command = Command::new(program);
    // What the user set is for peers of a swarm.
    let meant_for_others = std::env::vars_os().map(|(name, _)| name);
    for name in meant_for_others.filter(|name| name.as_encoded_bytes().starts_with(b"SIGMALOCK_")) {
        command.env_remove(name);
    }
    command
        .args(["node", "--private", "--detach"])
        .stdin(Stdio::null())
        .stdout(Stdio::from(log.try_clone()?))
        .stderr(Stdio::from(log))
        .current_dir("/")
        .process_group(0)
        .spawn()
}

/// The command that can be a peer.
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os(place::BIN_VARIABLE) {
        return path.into();
    }
    match std::env::current_exe() {
        Ok(path) if path.file_name().is_some_and(|name| name == "sigmalock") => path,
        _ => "sigmalock".into(),
    }
}

/// The end of the log, for the error message.
fn last_words(log_path: &Path) -> String {
    let mut text = Vec::new();
    let read = || -> std::io::Result<()> {
        let mut file = File::open(log_path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_LEN)))?;
        file.take(LAST_WORDS_LEN).read_to_end(&mut text)?;
        Ok(())
    };
    let mut read = read;
    match read() {
        Ok(()) if !text.is_empty() => format!(": {}", String::from_utf8_lossy(&text).trim()),
        _ => String::new(),
    }
}
