//! Getting locks: what `run` and `lock` have in common.

use std::convert::Infallible;
use std::mem::ManuallyDrop;
use std::time::Duration;

use clap::Args;
use sigmalock::{Client, Guard, Guards, LocksError, Position};
use sigmalock_core::Name;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::args;
use crate::holder;
use crate::inside::{self, Company};
use crate::outcome::complain;
use crate::process::supervise::Right;
use crate::reach::{NotHad, is_a_person_there, not_acquired};

/// Where nobody looks, who waits for so long says so, once.
const SAY_AFTER: Duration = Duration::from_secs(2);
/// Who waits for so long wants to know why.
const WONDER_AFTER: Duration = Duration::from_secs(3);
/// So long may a peer take to say how it is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to hold and to wait.
#[derive(Debug, Args)]
pub(crate) struct Wish {
    /// How long a holder that vanishes with its machine, or does not run, keeps others out [default: 10s, or the
    /// swarm's longest lease if that is less]
    #[arg(long, value_name = "D", env = "SIGMALOCK_TTL")]
    #[arg(hide_env_values = true, value_parser = args::duration)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for the lock [default: for ever]
    #[arg(long, value_name = "D", conflicts_with = "try_once", value_parser = args::duration_or_zero)]
    wait: Option<Duration>,
    /// Do not wait: now or never
    #[arg(long = "try")]
    try_once: bool,
    /// Only read: any number of readers hold the lock together, and no writer with them
    #[arg(long, conflicts_with = "permits")]
    shared: bool,
    /// Take one of K permits, at most 64; whoever uses the name at the same time must say the same K
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=64))]
    permits: Option<u16>,
}

/// Locks that are held together. They are given back by [`Held::release`], and not by being dropped: whatever goes wrong,
/// somebody may be inside.
#[derive(Debug)]
pub(crate) struct Held(ManuallyDrop<Guards>);

impl Wish {
    /// Takes all of the names, or none.
    pub(crate) async fn acquire(&self, client: &Client, names: &Names) -> anyhow::Result<Held> {
        if !self.try_once {
            let company = Company { shared: self.shared, permits: self.permits };
            inside::refuse(client, names, company).await?;
        }
        let mut locks = client.locks(names.0.iter().map(Name::as_str));
        if let Some(ttl) = self.ttl {
            locks = locks.ttl(ttl);
        }
        if self.shared {
            locks = locks.shared();
        }
        if let Some(permits) = self.permits {
            locks = locks.permits(permits.into());
        }
        let guards = if self.try_once {
            locks.try_acquire().await
        } else {
            if let Some(wait) = self.wait {
                locks = locks.wait(wait);
            }
            let (tell, told) = watch::channel(None);
            locks = locks.on_queue(move |name, position: Position| {
                tell.send_replace(Some((name.to_owned(), position.ahead)));
            });
            tokio::select! {
                guards = locks.acquire() => guards,
                never = tell_whom(client, told) => match never {},
                never = tell_why(client, names) => match never {},
            }
        };
        match guards {
            Ok(guards) => Ok(Held(ManuallyDrop::new(guards))),
            Err(LocksError { name, error }) => {
                let permits = self.permits.unwrap_or(0);
                let (why_not, holder) = tokio::join!(why_not(client), holder::of(client, &name));
                let why = NotHad { permits, why_not, holder };
                Err(not_acquired(&name, &error, &why))
            }
        }
    }
}

/// The lock that this waits for, and how many are before.
type Place = Option<(String, u32)>;

/// Tells for whom this waits: a person whenever the place in the queue changes, a log once.
async fn tell_whom(client: &Client, mut told: watch::Receiver<Place>) -> Infallible {
    let person = is_a_person_there();
    if !person {
        sleep(SAY_AFTER).await;
    }
    let mut said = None;
    while told.wait_for(|place| *place != said).await.is_ok() {
        let place = told.borrow_and_update().clone();
        if let Some((name, ahead)) = &place {
            let holder = holder::of(client, name).await;
            let holder = holder.map_or_else(String::new, |holder| format!("; {holder}"));
            let ahead = if person { format!(", {ahead} ahead") } else { String::new() };
            complain(format_args!("sigmalock: waiting for {name}{ahead}{holder}"));
            if !person {
                break;
            }
        }
        said = place;
    }
    std::future::pending().await
}

/// Why the peer can grant no locks, in words; empty if it can, or does not say.
async fn why_not(client: &Client) -> String {
    let status = tokio::time::timeout(ANSWER_TIMEOUT, client.status()).await;
    status.ok().and_then(Result::ok).map_or_else(String::new, |status| status.why_not)
}

/// Says, once, that it is not others that this waits for but a peer that can grant no locks.
async fn tell_why(client: &Client, names: &Names) -> Infallible {
    loop {
        sleep(WONDER_AFTER).await;
        let why_not = why_not(client).await;
        if !why_not.is_empty() {
            complain(format_args!("sigmalock: waiting for {}: {why_not}", names.joined()));
            return std::future::pending().await;
        }
    }
}

impl Held {
    /// The tokens, in the order of names, for people and for the environment.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        self.0.iter().map(Guard::token).collect()
    }

    /// Whether there are any: one swarm has one lock protocol, which gives them or does not.
    pub(crate) fn has_tokens(&self) -> bool {
        self.0.iter().all(|guard| guard.token() != 0)
    }

    /// Who holds them, in the order of names: nobody else is ever called that.
    pub(crate) fn holders(&self) -> Vec<String> {
        self.0.iter().map(Guard::holder_id).collect()
    }

    /// The slots, in the order of names, if they are permits of semaphores.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.0.iter().filter_map(Guard::slot).collect()
    }

    /// Why one of them was lost, as a part of a sentence: empty if the peer did not say.
    pub(crate) fn why_lost(&self) -> String {
        self.0.why_lost().map_or_else(String::new, |why| format!("because {why}, "))
    }

    /// Gives all of them back. False if one of them was lost before.
    pub(crate) async fn release(self) -> bool {
        ManuallyDrop::into_inner(self.0).release().await.is_ok()
    }
}

impl Right for Held {
    fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    async fn lost(&self) {
        self.0.lost().await;
    }
}

/// Numbers as the environment and people have them: with commas.
pub(crate) fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// The names of `NAME[,NAME…]`, each once, in the order in which everybody takes them.
pub(crate) fn names(text: &str) -> Result<Names, String> {
    let mut names = text.split(',').map(args::name).collect::<Result<Vec<_>, _>>()?;
    names.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    if names.len() > NAMES_MAX {
        return Err(format!("at most {NAMES_MAX} locks are taken at once"));
    }
    Ok(Names(names))
}

/// How many locks one command takes.
const NAMES_MAX: usize = 64;

/// Names of locks to be held together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<Name>);

impl Names {
    pub(crate) fn joined(&self) -> String {
        self.0.iter().map(Name::as_str).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_in_one_order_whatever_the_order_they_are_given_in() {
        assert_eq!(names("/b,a,b"), names("a,b"));
        assert_eq!(names("a,b").unwrap().joined(), "/a,/b");
        for bad in ["", "a,", ",a", "a b", "a,,b", "a/"] {
            assert!(names(bad).is_err(), "{bad}");
        }
        let many = (0..=NAMES_MAX).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        assert!(names(&many).is_err());
    }
}
