//! Getting locks: what `run` and `lock` have in common.

use std::time::{Duration, Instant};

use clap::Args;
use sigmalock::{Client, Guard};
use sigmalock_core::Name;

use crate::args;
use crate::outcome::complain;
use crate::process::supervise::Right;
use crate::reach::{is_a_person_there, not_acquired};

/// How long to hold and to wait.
#[derive(Debug, Args)]
pub(crate) struct Wish {
    /// How long a holder that vanishes with its machine keeps others out [default: 10s, or the swarm's
    /// longest lease if that is less]
    #[arg(long, value_name = "D", env = "SIGMALOCK_TTL")]
    #[arg(hide_env_values = true, value_parser = args::duration)]
    pub(crate) ttl: Option<Duration>,
    /// How long to wait for the lock [default: for ever]
    #[arg(long, value_name = "D", conflicts_with = "try_once", value_parser = args::duration_or_zero)]
    wait: Option<Duration>,
    /// Do not wait: now or never
    #[arg(long = "try")]
    try_once: bool,
}

/// Locks that are held together.
#[derive(Debug)]
pub(crate) struct Held(Vec<Guard>);

impl Wish {
    /// Takes all of the names, or none. In the order of names: so no two takers wait for each other.
    pub(crate) async fn acquire(&self, client: &Client, names: &[Name]) -> anyhow::Result<Held> {
        let begin = Instant::now();
        'anew: loop {
            let mut held = Held(Vec::with_capacity(names.len()));
            for name in names {
                let mut lock = client.lock(name.as_str());
                if let Some(ttl) = self.ttl {
                    lock = lock.ttl(ttl);
                }
                if self.try_once {
                    lock = lock.try_once();
                } else if let Some(wait) = self.wait {
                    lock = lock.wait(wait.saturating_sub(begin.elapsed()));
                }
                if is_a_person_there() {
                    lock = lock.on_queue(teller(name.clone()));
                }
                let guard = lock.acquire().await;
                held.0.push(guard.map_err(|error| not_acquired(name.as_str(), &error))?);
                if held.remaining().is_zero() {
                    // One was lost while waiting for another.
                    continue 'anew;
                }
            }
            return Ok(held);
        }
    }
}

/// Tells a person about the place in the queue, whenever it changes.
fn teller(name: Name) -> impl FnMut(sigmalock::Position) + Send {
    let mut told = None;
    move |position| {
        if told != Some(position.ahead) {
            told = Some(position.ahead);
            let ahead = position.ahead;
            complain(format_args!("sigmalock: waiting for {}, {ahead} ahead", name.as_str()));
        }
    }
}

impl Held {
    /// The tokens, in the order of names, for people and for the environment.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        self.0.iter().map(Guard::token).collect()
    }

    /// Gives all of them back. False if one of them was lost before.
    pub(crate) async fn release(self) -> bool {
        let mut kept = true;
        for guard in self.0 {
            kept &= guard.release().await.is_ok();
        }
        kept
    }
}

impl Right for Held {
    fn remaining(&self) -> Duration {
        self.0.iter().map(Guard::remaining).min().unwrap_or_default()
    }

    async fn lost(&self) {
        let mut losses: Vec<_> = self.0.iter().map(|guard| Box::pin(guard.lost())).collect();
        std::future::poll_fn(|cx| {
            let mut ready = losses.iter_mut().map(|loss| loss.as_mut().poll(cx).is_ready());
            if ready.any(|ready| ready) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
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
        assert_eq!(names("b,a,b"), names("a,b"));
        assert_eq!(names("a,b").unwrap().joined(), "a,b");
        for bad in ["", "a,", ",a", "a b", "a,,b", "a/"] {
            assert!(names(bad).is_err(), "{bad}");
        }
        let many = (0..=NAMES_MAX).map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        assert!(names(&many).is_err());
    }
}
