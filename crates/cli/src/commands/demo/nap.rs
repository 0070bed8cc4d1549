//! A holder that is stopped, so that its lease runs out while it is inside.

use std::time::Duration;

use super::board::{Board, State};
use super::view::letter;

/// So long after the next one has entered the sleeper wakes by itself: long enough to be seen.
const SEEN: Duration = Duration::from_millis(1_500);
/// If nobody enters, it wakes so long after it was stopped.
const NAP_MAX: Duration = Duration::from_secs(12);

/// Where such a nap has got to.
#[derive(Debug, Default)]
pub(crate) enum Nap {
    #[default]
    Nobody,
    /// The next who enters is stopped.
    Wanted,
    Asleep(Sleeper),
}

#[derive(Debug)]
pub(crate) struct Sleeper {
    pub(crate) worker: usize,
    since: Duration,
    /// When somebody else entered.
    pub(crate) followed_at: Option<Duration>,
    /// It has been told to go on, and has not written yet.
    woken: bool,
}

impl Board {
    pub(crate) fn sleeper(&self) -> Option<&Sleeper> {
        match &self.nap {
            Nap::Asleep(sleeper) => Some(sleeper),
            _ => None,
        }
    }

    /// Somebody wants a holder to be stopped.
    pub(crate) fn want_nap(&mut self) {
        match self.nap {
            Nap::Nobody if self.is_blocked() => {
                self.tell("nobody gets in now, so nobody can be stopped inside");
            }
            Nap::Nobody => self.nap = Nap::Wanted,
            _ => {}
        }
    }

    pub(crate) fn nap_is_on(&self) -> bool {
        !matches!(self.nap, Nap::Nobody)
    }

    /// A worker has entered: whether it is to be stopped.
    pub(crate) fn stops(&mut self, worker: usize) -> bool {
        let (now, lock) = (self.now(), self.workers[worker].lock);
        let State::Inside(token) = self.workers[worker].state else { return false };
        match &mut self.nap {
            Nap::Wanted => {
                let sleeper = Sleeper { worker, since: now, followed_at: None, woken: false };
                self.nap = Nap::Asleep(sleeper);
                self.naps += 1;
                self.set(worker, State::Asleep(token));
                let (who, name) = (letter(worker), &self.locks[lock].name);
                let words = format!("worker {who} is stopped inside {name}, with token {token}");
                self.tell(words);
                true
            }
            Nap::Asleep(sleeper) if self.workers[sleeper.worker].lock == lock => {
                sleeper.followed_at.get_or_insert(now);
                false
            }
            _ => false,
        }
    }

    /// Whether the sleeper has slept for as long as it should.
    pub(crate) fn nap_is_over(&self) -> bool {
        self.sleeper().is_some_and(|sleeper| {
            let followed = sleeper.followed_at.is_some_and(|at| self.now() >= at + SEEN);
            !sleeper.woken && (followed || self.now() >= sleeper.since + NAP_MAX)
        })
    }

    /// The sleeper is to go on: who that is.
    pub(crate) fn wakes(&mut self) -> Option<usize> {
        match &mut self.nap {
            Nap::Asleep(sleeper) if !sleeper.woken => {
                sleeper.woken = true;
                Some(sleeper.worker)
            }
            _ => None,
        }
    }

    /// A worker writes: whether that is the sleeper, who is awake by that.
    pub(crate) fn has_woken(&mut self, worker: usize) -> bool {
        let woken = self.sleeper().is_some_and(|sleeper| sleeper.worker == worker);
        if woken {
            self.nap = Nap::Nobody;
            self.slept = Some(worker);
        }
        woken
    }

    /// A worker has lost its lock: whether that was by sleeping.
    pub(crate) fn has_slept(&mut self, worker: usize) -> bool {
        self.slept.take_if(|slept| *slept == worker).is_some()
    }

    /// A worker's process has ended.
    pub(crate) fn is_gone(&mut self, worker: usize) {
        self.has_woken(worker);
        self.set(worker, State::Cut);
        self.tell(format!("worker {} has ended", letter(worker)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_who_enters_is_stopped_and_wakes_after_somebody_else_came() {
        let mut board = Board::new(5, 10, &["/a"]);
        board.entered(0, 41, Duration::ZERO);
        assert!(!board.stops(0), "nobody wants it");
        board.want_nap();
        board.entered(1, 42, Duration::ZERO);
        assert!(board.stops(1) && !board.nap_is_over());
        assert_eq!(board.holder(0), Some(0), "who sleeps is not shown as the holder");
        board.entered(2, 43, Duration::ZERO);
        assert!(!board.stops(2), "one is enough");
        assert!(board.sleeper().is_some_and(|sleeper| sleeper.followed_at.is_some()));
        assert_eq!((board.wakes(), board.wakes()), (Some(1), None));
        assert!(!board.has_woken(2) && board.has_woken(1) && !board.nap_is_on());
        assert!(board.has_slept(1) && !board.has_slept(1));
    }
}
