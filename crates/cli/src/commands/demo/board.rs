//! What a demonstration knows of itself: plain facts, for the view, the lines and the summary.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::nap::Nap;
use super::view::letter;

/// How many events the log keeps.
const LOG_LEN_MAX: usize = 200;
/// After so long without anybody inside, the next to enter is worth a line.
const LONG_PAUSE: Duration = Duration::from_secs(1);
/// For how long good news stay on top.
pub(crate) const NEWS_FOR: Duration = Duration::from_secs(5);
/// How many seconds the curves show.
pub(crate) const HISTORY_LEN: usize = 120;

/// Everything at a glance.
#[derive(Debug)]
pub(crate) struct Board {
    began: Instant,
    pub(crate) peers: Vec<Peer>,
    pub(crate) workers: Vec<Worker>,
    /// How many votes hold a lock, and of how many, when a peer has said so.
    pub(crate) votes: Option<(u32, u32)>,
    pub(crate) locks: Vec<Lock>,
    /// Entries in each of the last seconds, oldest first; the last one is not over.
    pub(crate) entries_per_s: VecDeque<u64>,
    /// Messages between peers, likewise.
    pub(crate) messages_per_s: VecDeque<u64>,
    pub(crate) log: VecDeque<Event>,
    pub(crate) entries: u64,
    pub(crate) kills: u64,
    pub(crate) losses: u64,
    pub(crate) longest_wait: Duration,
    pub(crate) naps: u64,
    pub(crate) refusals: u64,
    pub(crate) violations: Vec<String>,
    pub(super) nap: Nap,
    /// Who slept, until it says that it has lost its lock.
    pub(super) slept: Option<usize>,
    /// Since when nobody can get in.
    blocked_since: Option<Duration>,
    /// Good news, and when they came.
    good_news: Option<(Duration, String)>,
    told: usize,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Peer {
    pub(crate) up: bool,
    /// As far as it has said.
    pub(crate) can_grant: bool,
    pub(crate) since: Duration,
    pub(crate) connected: u32,
    pub(crate) messages_per_s: u64,
    pub(crate) notes: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Worker {
    /// The peer it talks to.
    pub(crate) peer: usize,
    pub(crate) lock: usize,
    pub(crate) state: State,
    pub(crate) since: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Its peer is down.
    Cut,
    Away,
    /// So many are before it, if it was told.
    Waiting(Option<u32>),
    Inside(u64),
    /// Stopped while inside.
    Asleep(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) token: u64,
    pub(crate) entries: u64,
    /// When somebody was last inside.
    used_at: Duration,
    /// Whether whoever was last inside is gone with its peer.
    bereft: bool,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) words: String,
    pub(crate) weight: Weight,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Traffic: for lines, not for the log of the view.
    Ordinary,
    Told,
    /// What the demonstration is for.
    Loud,
}

impl Board {
    pub(crate) fn new(peers: usize, workers: usize, names: &[&str]) -> Self {
        let lock = |name: &&str| Lock {
            name: (*name).to_owned(),
            token: 0,
            entries: 0,
            used_at: Duration::ZERO,
            bereft: false,
        };
        let worker = |index: usize| Worker {
            peer: index % peers,
            lock: index % names.len(),
            state: State::Cut,
            since: Duration::ZERO,
        };
        Self {
            began: Instant::now(),
            peers: vec![Peer { up: true, ..Peer::default() }; peers],
            workers: (0..workers).map(worker).collect(),
            votes: None,
            locks: names.iter().map(lock).collect(),
            entries_per_s: VecDeque::from([0]),
            messages_per_s: VecDeque::from([0]),
            log: VecDeque::new(),
            entries: 0,
            kills: 0,
            losses: 0,
            longest_wait: Duration::ZERO,
            naps: 0,
            refusals: 0,
            violations: Vec::new(),
            nap: Nap::Nobody,
            slept: None,
            blocked_since: None,
            good_news: None,
            told: 0,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn tell(&mut self, words: impl Into<String>) {
        self.push(words.into(), Weight::Told);
    }

    pub(crate) fn shout(&mut self, words: impl Into<String>) {
        self.push(words.into(), Weight::Loud);
    }

    pub(crate) fn tell_ordinary(&mut self, words: impl Into<String>) {
        self.push(words.into(), Weight::Ordinary);
    }

    fn push(&mut self, words: String, weight: Weight) {
        if self.log.len() == LOG_LEN_MAX {
            // What matters is not to be pushed out by what does not.
            let oldest =
                self.log.iter().position(|event| event.weight == Weight::Ordinary).unwrap_or(0);
            self.log.remove(oldest);
            self.told -= usize::from(oldest < self.told);
        }
        self.log.push_back(Event { at: self.now(), words, weight });
    }

    /// Events that were not asked for before.
    pub(crate) fn news(&mut self) -> Vec<Event> {
        let news = self.log.iter().skip(self.told).cloned().collect();
        self.told = self.log.len();
        news
    }

    /// What keeps a peer from granting locks; empty if nothing does. The first time, that is news.
    pub(crate) fn note(&mut self, peer: usize, why_not: &str) {
        let why = why_not.strip_prefix("this peer ").unwrap_or(why_not);
        let begins = self.peers[peer].notes.is_empty() && !why.is_empty();
        // Before anybody could, that is no wonder.
        if begins && self.votes.is_some() {
            let shortly = why.split(';').next().unwrap_or(why);
            self.tell(format!("peer {} {shortly}", peer + 1));
        }
        why.clone_into(&mut self.peers[peer].notes);
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Good news, for a moment.
    pub(crate) fn good_news(&self) -> Option<&str> {
        let news = self.good_news.as_ref().filter(|(at, _)| self.now() < *at + NEWS_FOR);
        news.map(|(_, words)| words.as_str())
    }

    /// A worker wrote with an old token, and was refused.
    pub(crate) fn refused(&mut self, worker: usize, slept: bool, token: u64, newer: u64) {
        self.refusals += 1;
        let who = letter(worker);
        let woke = if slept { "woke up and wrote" } else { "wrote" };
        self.shout(format!(
            "worker {who} {woke} with token {token}: REFUSED, {newer} has been here"
        ));
        let words = format!("REFUSED: {who} {woke}, with an old token");
        self.good_news = Some((self.now(), words));
    }

    /// Looks whether anybody can still get in, anywhere. Before somebody could, that is no wonder.
    pub(crate) fn judge_majority(&mut self) {
        let nobody = self.votes.is_some() && !self.peers.iter().any(|peer| peer.can_grant);
        let now = self.now();
        match self.blocked_since {
            None if nobody => {
                self.blocked_since = Some(now);
                self.shout("THE MAJORITY IS GONE: nobody can get in until it is back");
            }
            Some(since) if !nobody => {
                let words = "THE MAJORITY IS BACK: who waits gets in again".to_owned();
                (self.blocked_since, self.good_news) = (None, Some((now, words)));
                let after = crate::words::time(now.saturating_sub(since));
                self.shout(format!("THE MAJORITY IS BACK after {after}: who waits gets in again"));
            }
            _ => {}
        }
    }

    /// What a worker is doing now.
    pub(crate) fn set(&mut self, worker: usize, state: State) {
        let now = self.now();
        let worker = &mut self.workers[worker];
        if matches!(worker.state, State::Inside(_)) {
            self.locks[worker.lock].used_at = now;
        }
        if core::mem::discriminant(&worker.state) != core::mem::discriminant(&state) {
            worker.since = now;
        }
        worker.state = state;
    }

    /// Returns for how long nobody was inside before, if that is worth telling.
    pub(crate) fn entered(
        &mut self, worker: usize, token: u64, waited: Duration,
    ) -> Option<Duration> {
        self.set(worker, State::Inside(token));
        let lock = self.workers[worker].lock;
        let pause = self.now().saturating_sub(self.locks[lock].used_at);
        self.locks[lock].token = token;
        self.locks[lock].entries += 1;
        self.entries += 1;
        if let Some(this_second) = self.entries_per_s.back_mut() {
            *this_second += 1;
        }
        self.longest_wait = self.longest_wait.max(waited);
        let bereft = std::mem::take(&mut self.locks[lock].bereft);
        (bereft || pause >= LONG_PAUSE).then_some(pause)
    }

    /// A worker was put out of its lock by the death of its peer.
    pub(crate) fn lost(&mut self, worker: usize) {
        self.losses += 1;
        self.locks[self.workers[worker].lock].bereft = true;
    }

    pub(crate) fn peer_is(&mut self, peer: usize, up: bool) {
        let since = self.now();
        self.peers[peer] = Peer { up, since, ..Peer::default() };
        self.judge_majority();
    }

    /// A second is over.
    pub(crate) fn tick(&mut self, messages: u64) {
        if let Some(this_second) = self.messages_per_s.back_mut() {
            *this_second = messages;
        }
        for history in [&mut self.entries_per_s, &mut self.messages_per_s] {
            history.push_back(0);
            if history.len() > HISTORY_LEN {
                history.pop_front();
            }
        }
    }

    /// Entries in the last whole second, and messages.
    pub(crate) fn rates(&self) -> (u64, u64) {
        let last = |history: &VecDeque<u64>| history.iter().rev().nth(1).copied().unwrap_or(0);
        (last(&self.entries_per_s), last(&self.messages_per_s))
    }

    pub(crate) fn holder(&self, lock: usize) -> Option<usize> {
        let inside =
            |worker: &Worker| worker.lock == lock && matches!(worker.state, State::Inside(_));
        self.workers.iter().position(inside)
    }

    /// Who waits for a lock, next first, as far as they were told.
    pub(crate) fn queue(&self, lock: usize) -> Vec<usize> {
        let mut queue: Vec<_> = (0..self.workers.len())
            .filter_map(|index| match self.workers[index] {
                Worker { state: State::Waiting(ahead), since, lock: at, .. } if at == lock => {
                    Some((ahead.unwrap_or(u32::MAX), since, index))
                }
                _ => None,
            })
            .collect();
        queue.sort_unstable();
        queue.into_iter().map(|(_, _, index)| index).collect()
    }

    /// The peer of a worker that is inside, if anybody is.
    pub(crate) fn holders_peer(&self) -> Option<usize> {
        let inside = (0..self.locks.len()).find_map(|lock| self.holder(lock));
        inside.map(|worker| self.workers[worker].peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_not_pushed_out_by_ordinary_traffic_and_news_come_once() {
        let mut board = Board::new(5, 10, &["/a"]);
        board.tell("killed peer 2");
        assert_eq!(board.news().len(), 1);
        for _ in 0..2 * LOG_LEN_MAX {
            board.tell_ordinary("somebody enters");
            assert_eq!(board.news().len(), 1);
        }
        assert_eq!(board.log.len(), LOG_LEN_MAX);
        assert_eq!(board.log[0].words, "killed peer 2");
    }

    #[test]
    fn that_nobody_can_get_in_is_told_once_and_that_it_is_over_once() {
        let mut board = Board::new(3, 6, &["/a"]);
        board.judge_majority();
        assert!(!board.is_blocked(), "nobody could before");
        board.votes = Some((2, 3));
        for able in [true, true, false, false, true, true] {
            board.peers[0].can_grant = able;
            board.judge_majority();
            assert_eq!(board.is_blocked(), !able);
        }
        let words: Vec<String> = board.news().into_iter().map(|event| event.words).collect();
        assert!(words.len() == 2 && words[0].contains("IS GONE") && words[1].contains("IS BACK"));
        assert!(board.good_news().is_some_and(|words| words.starts_with("THE MAJORITY IS BACK")));
    }

    #[test]
    fn who_enters_after_a_death_is_worth_telling() {
        let mut board = Board::new(5, 10, &["/a"]);
        assert_eq!(board.entered(0, 1, Duration::ZERO), None);
        board.set(0, State::Away);
        board.lost(0);
        assert!(board.entered(1, 2, Duration::ZERO).is_some());
        board.set(1, State::Away);
        assert_eq!(board.entered(2, 3, Duration::ZERO), None);
    }

    #[test]
    fn a_peer_that_can_grant_nothing_any_more_is_told_of_once() {
        let mut board = Board::new(5, 10, &["/a"]);
        board.note(1, "this peer is in no swarm yet");
        assert!(board.news().is_empty(), "nobody could before");
        board.votes = Some((3, 5));
        board.note(1, "");
        for up in [2, 1] {
            board.note(1, &format!("this peer reaches {up} of 5 members; see the manual"));
        }
        let news = board.news();
        assert_eq!(news.len(), 1);
        assert_eq!(news[0].words, "peer 2 reaches 2 of 5 members");
    }
}
