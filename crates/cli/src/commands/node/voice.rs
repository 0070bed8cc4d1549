//! What a peer says in its log: who and where it is, and from then on whenever it begins or ceases to be of
//! use, so that whoever reads its log need not ask.

use std::convert::Infallible;
use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use sigmalock_api::server::Server;
use sigmalock_core::Standing;
use sigmalock_node::report::StatusReport;
use sigmalock_node::{Handle, Node as Peer, Role};
use tokio::time::sleep;

use super::Node;
use super::log::VOICE;
use crate::addresses::host_and_port;
use crate::words;

/// How long to wait for the first address to listen at, before saying where.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(2);
/// How often to look whether locks can be granted.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What is over sooner than this is not worth a line, once all was well,
const PATIENCE: Duration = Duration::from_secs(3);
/// nor before that, or later, is what changes sooner than this.
const STEADY: Duration = Duration::from_secs(1);
/// A peer that has left sooner than this need not say that it is about to.
const LEAVE_QUIETLY_FOR: Duration = Duration::from_millis(500);

pub(super) fn line(words: impl std::fmt::Display) {
    tracing::info!(target: VOICE, "{words}");
}

impl Node {
    /// Says who and where this peer is; returns the status that it has told of.
    pub(super) async fn announce(
        &self, peer: &Peer, server: &Server, data: Option<PathBuf>,
    ) -> anyhow::Result<StatusReport> {
        let handle = peer.handle();
        let status = async {
            loop {
                let status = handle.status().await.context("the peer has stopped")?;
                if self.private || !status.listening.is_empty() {
                    return Ok::<_, anyhow::Error>(status);
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let status = match tokio::time::timeout(LISTEN_TIMEOUT, status).await {
            Ok(status) => status?,
            Err(_) => handle.status().await.context("the peer has stopped")?,
        };
        match &status.name {
            Some(name) => line(format_args!("peer {name} ({})", status.peer)),
            None => line(format_args!("peer {}", status.peer)),
        }
        for address in &status.listening {
            line(format_args!("listening at {address}"));
        }
        for address in status.advertised.iter().filter(|_| !self.advertise.is_empty()) {
            line(format_args!("telling others that it is at {}", host_and_port(address)));
        }
        let mut places = Vec::new();
        places.extend(server.unix().map(|path| format!("unix:{}", path.display())));
        places.extend(server.tcp().map(|address| address.to_string()));
        line(format_args!("serving programs at {}", places.join(" and ")));
        match data {
            Some(dir) => line(format_args!("keeping votes in {}", dir.display())),
            None => line("keeping nothing (ephemeral)"),
        }
        line(self.how_it_begins(peer.resumes(), &status));
        if status.n > 0 {
            line(format_args!("a lock is held by {} of {} votes", status.m, status.n));
        }
        if self.private {
            line(
                "private: nobody can join it, and its locks exclude nobody but its own user's commands",
            );
        }
        Ok(status)
    }

    /// How it comes to be in a swarm, in words.
    fn how_it_begins(&self, resumes: bool, status: &StatusReport) -> String {
        let Some(view) = &status.view else { return "membership is open".to_owned() };
        let members = words::count(view.members.len() as u64, "member");
        match (resumes, view.number) {
            (true, 1..) => {
                let twice = if self.found { "; no second one is founded" } else { "" };
                format!("going on in the swarm it knows (view {}, {members}){twice}", view.number)
            }
            (true, 0) if self.found && !status.can_grant => {
                "this peer has lived before, so no swarm is founded".to_owned()
            }
            (_, 0) if self.client_only => "using the swarm of those it reaches".to_owned(),
            (_, 0) if matches!(view.standing, Standing::Founding { .. }) => {
                status.why_not.clone().unwrap_or_default()
            }
            (_, 0) => "waiting to be added to the swarm of those it reaches".to_owned(),
            (false, 1..) if self.found || self.private => "founded a swarm".to_owned(),
            (false, 1..) => format!("in a swarm (view {}, {members})", view.number),
        }
    }
}

/// How it is with the hosts that begin the swarm together, if it has not begun.
fn founding(status: &StatusReport) -> Option<Standing> {
    let standing = status.view.as_ref()?.standing;
    matches!(standing, Standing::Founding { .. }).then_some(standing)
}

/// How a peer is, as far as that is worth a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Its users get locks, and it votes unless it never does.
    Well,
    /// It does not vote; whether its users get locks all the same, how it stands to the swarm, and whether that is two.
    Ill { can_grant: bool, standing: Option<Discriminant<Standing>>, two: bool },
}

impl Shape {
    fn of(status: &StatusReport) -> Self {
        let StatusReport { can_grant, votes, role, .. } = *status;
        if can_grant && (votes || role == Role::ClientOnly) {
            return Self::Well;
        }
        let standing = status.view.as_ref().map(|view| discriminant(&view.standing));
        let two = status.view.as_ref().is_some_and(|view| !view.rivals.is_empty());
        Self::Ill { can_grant, standing, two }
    }
}

/// Of how many members and votes it speaks when all is well.
fn numbers(status: &StatusReport) -> (usize, usize, usize) {
    (status.view.as_ref().map_or(0, |view| view.members.len()), status.m, status.n)
}

/// Says whenever this peer begins or ceases to be able to grant locks, or to vote, and before that, when those come with
/// whom it is to begin a swarm; and again when it is for another reason, or with other numbers. Ends with the peer.
pub(super) async fn tell(handle: &Handle, told: &StatusReport) {
    let first = Shape::of(told);
    let mut said = (first == Shape::Well).then_some(first);
    let mut said_numbers = numbers(told);
    let mut founders = founding(told);
    let (mut last, mut since, mut well) = (first, Instant::now(), Instant::now());
    let (mut last_numbers, mut steady) = (said_numbers, Instant::now());
    while let Some(status) = handle.status().await {
        let shape = Shape::of(&status);
        if shape != last {
            (last, since) = (shape, Instant::now());
        }
        if numbers(&status) != last_numbers {
            (last_numbers, steady) = (numbers(&status), Instant::now());
        }
        if let Some(now) = founding(&status) {
            if founders.replace(now) != Some(now) {
                line(status.why_not.as_deref().unwrap_or_default());
            }
            said = Some(shape);
        }
        if shape == Shape::Well {
            well = Instant::now();
        }
        // Who has just been started is waited for.
        let patience = if said.is_none() { STEADY } else { PATIENCE };
        let lasts = since.elapsed() > STEADY && well.elapsed() > patience;
        // A swarm that grows or shrinks is told of once, when it has.
        let resized =
            shape == Shape::Well && said_numbers != last_numbers && steady.elapsed() > PATIENCE;
        if (said != Some(shape) && (shape == Shape::Well || lasts)) || resized {
            (said, said_numbers) = (Some(shape), last_numbers);
            line(news(&status));
        }
        sleep(LOOK_EVERY).await;
    }
    std::future::pending::<()>().await;
}

/// Good or bad.
fn news(status: &StatusReport) -> String {
    match (&status.why_not, &status.why_no_vote) {
        (Some(why), _) => format!("cannot grant locks: {why}"),
        (None, Some(why)) if status.role == Role::Host => {
            format!("does not vote, and can grant locks by the votes of others: {why}")
        }
        _ => good_news(status),
    }
}

/// Says why a peer that was told to end is still there, if it is.
pub(super) async fn tell_leaving() -> Infallible {
    sleep(LEAVE_QUIETLY_FOR).await;
    line(
        "leaving, as soon as programs have given back their locks and the others have agreed to it; a second signal ends it \
         at once",
    );
    std::future::pending().await
}

fn good_news(status: &StatusReport) -> String {
    let votes = format!("a lock is held by {} of {} votes", status.m, status.n);
    match &status.view {
        None => format!("can grant locks: {votes}"),
        Some(view) => {
            let members = words::count(view.members.len() as u64, "member");
            format!("can grant locks: view {} has {members}, and {votes}", view.number)
        }
    }
}
