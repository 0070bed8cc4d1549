//! A swarm of real peers on this machine, for demonstrations and measurements: processes of this very
//! program, in a temporary directory, that die with it.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sigmalock::Client;
use sigmalock_node::key::SwarmKey;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::process::group::{self, Group};

/// How long a peer may take to answer after its start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Where their secret is, in their directory.
const KEY: &str = "swarm.key";

/// What the peers of a swarm have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// Votes on disk?
    pub(crate) durable: bool,
    /// The longest lease, if not the usual.
    pub(crate) lease_max: Option<&'static str>,
}

/// A peer, dead or alive.
#[derive(Debug)]
struct Member {
    group: Option<Group>,
    /// Whether it has told where it listens.
    known: bool,
    /// Where it listens for other peers; one that keeps its identity will do so again.
    address: Option<String>,
}

/// Peers that are gone when this is dropped, and everything they wrote with them.
#[derive(Debug)]
pub(crate) struct Swarm {
    kind: Kind,
    members: Vec<Member>,
    // Dropped after the members: they write there.
    dir: TempDir,
}

impl Swarm {
    /// Starts so many peers, the first of which founds the swarm.
    pub(crate) async fn start(count: usize, kind: Kind) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sigmalock-").tempdir()?;
        let members =
            (0..count).map(|_| Member { group: None, known: false, address: None }).collect();
        SwarmKey::generate()?.write_new(&dir.path().join(KEY))?;
        let mut swarm = Self { kind, members, dir };
        for index in 0..count {
            swarm.launch(index)?;
            if index == 0 {
                swarm.learn_address(0).await?;
            }
        }
        for index in 1..count {
            swarm.learn_address(index).await?;
        }
        Ok(swarm)
    }

    /// Waits until every peer is ready and connected to every other.
    pub(crate) async fn converge(&self, patience: Duration) -> anyhow::Result<()> {
        let begin = Instant::now();
        for index in 0..self.members.len() {
            let client = Client::connect(&self.api(index)).await?;
            loop {
                let status = client.status().await?;
                if status.can_grant
                    && status.votes
                    && status.peers_up as usize >= self.members.len()
                {
                    break;
                }
                if begin.elapsed() > patience {
                    bail!(
                        "the peers did not find each other in {patience:?}: {} of {} are there; {}",
                        status.peers_up,
                        self.members.len(),
                        status.why_no_vote
                    );
                }
                sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Where clients find a peer.
    pub(crate) fn api(&self, index: usize) -> String {
        format!("unix:{}", self.socket(index).display())
    }

    /// How many peers there are, dead or alive.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether a peer has told where it listens.
    pub(crate) fn is_known(&self, index: usize) -> bool {
        self.members[index].known
    }

    pub(crate) fn is_up(&self, index: usize) -> bool {
        self.members[index].group.is_some()
    }

    /// SIGKILL: no goodbye, no hand-over. Returns when it is dead.
    pub(crate) fn kill(&mut self, index: usize) -> anyhow::Result<()> {
        self.members[index].known = false;
        if !self.kind.durable {
            self.members[index].address = None;
        }
        if let Some(mut group) = self.members[index].group.take() {
            group.kill()?;
        }
        Ok(())
    }

    /// Notices peers that ended by themselves; that is worth telling.
    pub(crate) fn fallen(&mut self) -> anyhow::Result<Option<usize>> {
        for index in 0..self.members.len() {
            if let Some(group) = &mut self.members[index].group
                && group.is_gone()?
            {
                self.kill(index)?;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Starts a peer, again or for the first time, without waiting for it. It joins those that are there.
    pub(crate) fn launch(&mut self, index: usize) -> anyhow::Result<()> {
        let mut words: Vec<OsString> = vec![std::env::current_exe()?.into(), "node".into()];
        let address = self.members[index].address.as_deref().unwrap_or("/ip4/127.0.0.1/tcp/0");
        let place = address.split("/p2p/").next().unwrap_or(address);
        words.extend(["--listen", place, "--no-trace", "--config", "/dev/null"].map(Into::into));
        words.extend(["--swarm-key".into(), self.dir.path().join(KEY).into()]);
        words.extend(["--name".into(), format!("peer-{}", index + 1).into()]);
        words.extend(["--socket".into(), self.socket(index).into()]);
        if self.kind.durable {
            words.extend(["--data".into(), self.dir.path().join(index.to_string()).into()]);
        } else {
            words.push("--ephemeral".into());
        }
        if let Some(lease_max) = self.kind.lease_max {
            words.extend(["--lease-max", lease_max].map(Into::into));
        }
        let others = self.members.iter().enumerate().filter(|(other, _)| *other != index);
        let others: Vec<_> = others.filter_map(|(_, member)| member.address.as_ref()).collect();
        if others.is_empty() {
            words.extend(["--found", "--yes"].map(Into::into));
        }
        for address in others {
            words.extend(["--join".into(), address.into()]);
        }
        let log = File::create(self.log(index))?;
        let mut command = group::command(&words, false)?;
        // What the user set for their own peer is not meant for these.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("SIGMALOCK_") {
                command.env_remove(name);
            }
        }
        self.members[index].group = Some(Group::spawn_quietly(&mut command, Stdio::from(log))?);
        Ok(())
    }

    /// Waits until a peer answers, and notes where others can reach it.
    pub(crate) async fn learn_address(&mut self, index: usize) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            if let Ok(client) = Client::connect(&self.api(index)).await
                && let Ok(status) = client.status().await
                && let Some(address) = status.listening.first()
            {
                self.members[index].address = Some(address.clone());
                self.members[index].known = true;
                return Ok(());
            }
            let ended =
                self.members[index].group.as_mut().is_none_or(|g| g.is_gone().unwrap_or(true));
            if ended || begin.elapsed() > START_TIMEOUT {
                let words = std::fs::read_to_string(self.log(index)).unwrap_or_default();
                let last = words.lines().last().unwrap_or("it said nothing").to_owned();
                return Err(anyhow::anyhow!(last)).context("a peer did not start");
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn socket(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("{index}.sock"))
    }

    fn log(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("{index}.log"))
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        for index in 0..self.members.len() {
            // Whoever cannot be killed is gone.
            let _ = self.kill(index);
        }
    }
}
