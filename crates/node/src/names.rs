//! How peers are called, for people. Each says it of itself; nothing is decided by it, ids do that.
//!
//! A name that comes from outside is taken for text by a stranger: it is cut to its bound, and only letters, digits and
//! `-`, `_`, `.` are left of it, so that it can be shown on any terminal, cannot pose as an id, and is one word.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::Serialize;
use sigmalock_core::PeerId;

/// The longest name of a peer, in bytes.
pub const PEER_NAME_LEN_MAX: usize = 63;
/// So many digits of an id are shown beside a name, and more if others begin alike.
const DIGITS_MIN: usize = 5;

/// The name of a peer: one word, fit for any terminal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PeerName(String);

/// Why something is no name of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerNameError {
    /// Too long, or nothing.
    #[error("a name of a peer has between 1 and {PEER_NAME_LEN_MAX} bytes")]
    Length,
    /// What not every terminal shows alike, or no shell takes as one word.
    #[error(
        "a name of a peer is made of letters from a to z, digits, and - _ . and begins with a letter or digit"
    )]
    Characters,
    /// What would be taken for an id.
    #[error("a name of a peer is not a p and a number: that is how ids are written")]
    LikeAnId,
}

impl PeerName {
    /// What can be kept of a text from outside; `None` if that is nothing.
    #[must_use]
    pub fn tamed(text: &str) -> Option<Self> {
        let tame = text.chars().take(PEER_NAME_LEN_MAX).map(|c| if is_plain(c) { c } else { '_' });
        let tame: String = tame.collect();
        tame.trim_start_matches(is_mark).parse().ok()
    }

    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_mark(c: char) -> bool {
    matches!(c, '-' | '_' | '.')
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || is_mark(c)
}

impl FromStr for PeerName {
    type Err = PeerNameError;
    fn from_str(text: &str) -> Result<Self, PeerNameError> {
        if !(1..=PEER_NAME_LEN_MAX).contains(&text.len()) {
            return Err(PeerNameError::Length);
        }
        if !text.chars().all(is_plain) || text.starts_with(is_mark) {
            return Err(PeerNameError::Characters);
        }
        let digits = text.strip_prefix(['p', 'P']).unwrap_or(text);
        if digits.chars().all(|c| c.is_ascii_digit()) {
            return Err(PeerNameError::LikeAnId);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who is called how, and how each is shown to people.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: BTreeMap<PeerId, Option<PeerName>>,
}

impl Names {
    /// Takes note of a peer, and of its name if it has one.
    pub fn insert(&mut self, peer: PeerId, name: Option<PeerName>) {
        self.names.insert(peer, name);
    }

    pub(crate) fn remove(&mut self, peer: PeerId) {
        self.names.remove(&peer);
    }

    /// What a peer says that it is called.
    #[must_use]
    pub fn get(&self, peer: PeerId) -> Option<&PeerName> {
        self.names.get(&peer)?.as_ref()
    }

    /// A peer in a sentence: `render-7`; if several are called so, `render-7 (p14622…)`; if it has no name, its id.
    #[must_use]
    pub fn show(&self, peer: PeerId) -> String {
        let Some(name) = self.get(peer) else { return peer.to_string() };
        let alike = self.names.values().filter(|other| other.as_ref() == Some(name)).count();
        if alike == 1 { name.to_string() } else { self.show_with_id(peer) }
    }

    /// A peer where its id is of use, too: `render-7 (p14622…)`.
    #[must_use]
    pub fn show_with_id(&self, peer: PeerId) -> String {
        match self.get(peer) {
            Some(name) => format!("{name} ({})", self.short(peer)),
            None => peer.to_string(),
        }
    }

    /// Several in a sentence.
    #[must_use]
    pub fn show_all<'a>(&self, peers: impl IntoIterator<Item = &'a PeerId>) -> String {
        let shown: Vec<String> = peers.into_iter().map(|peer| self.show(*peer)).collect();
        shown.join(", ")
    }

    /// As much of an id as tells it from all others.
    fn short(&self, peer: PeerId) -> String {
        let id = peer.to_string();
        let alike = |other: &PeerId| {
            let other = other.to_string();
            id.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
        };
        let others = self.names.keys().filter(|other| **other != peer);
        let shared = others.map(alike).max().unwrap_or(0);
        let len = (shared + 1).max(DIGITS_MIN + 1);
        if len < id.len() { format!("{}…", &id[..len]) } else { id }
    }
}

/// The names that a peer knows: its driver writes them, and whoever makes a report reads them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Book(Arc<RwLock<Names>>);

impl Book {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Names> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Names> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(all: &[(u64, &str)]) -> Names {
        let mut names = Names::default();
        for (peer, name) in all {
            names.insert(PeerId(*peer), PeerName::tamed(name));
        }
        names
    }

    #[test]
    fn a_name_is_one_plain_word_that_is_no_id() {
        for good in ["render-7", "a", "7b", "web.prod.example", "pp", "p7a", &"x".repeat(63)] {
            assert_eq!(good.parse::<PeerName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", PeerNameError::Length),
            (&*"x".repeat(64), PeerNameError::Length),
            ("a b", PeerNameError::Characters),
            ("a\n", PeerNameError::Characters),
            ("-x", PeerNameError::Characters),
            ("büro", PeerNameError::Characters),
            ("p14622706887153926033", PeerNameError::LikeAnId),
            ("P7", PeerNameError::LikeAnId),
            ("p", PeerNameError::LikeAnId),
            ("7", PeerNameError::LikeAnId),
        ] {
            assert_eq!(bad.parse::<PeerName>(), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn what_a_stranger_calls_itself_is_made_harmless() {
        let tamed = |text: &str| PeerName::tamed(text).map(|name| name.to_string());
        assert_eq!(tamed("\x1b[2J\x1b]0;root\x07").as_deref(), Some("2J__0_root_"));
        assert_eq!(tamed("a\u{202e}b\u{200b}c\u{2066}").as_deref(), Some("a_b_c_"));
        assert_eq!(tamed("a b\tc\r\nd").as_deref(), Some("a_b_c__d"));
        assert_eq!(tamed(&"ü".repeat(1_000)), None);
        assert_eq!(tamed(&"x".repeat(1_000)), Some("x".repeat(63)));
        for nothing in ["", "---", "\u{200b}", "p123", "123", "\u{200b}p123"] {
            assert_eq!(tamed(nothing), None, "{nothing:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_a_name_is_short_and_plain(text in any::<String>()) {
            if let Some(name) = PeerName::tamed(&text) {
                prop_assert!(name.as_str().len() <= PEER_NAME_LEN_MAX);
                prop_assert!(name.as_str().chars().all(is_plain));
                prop_assert_eq!(name.as_str().parse::<PeerName>(), Ok(name.clone()));
            }
        }
    }

    #[test]
    fn a_peer_is_shown_by_its_name_alone_where_that_says_who() {
        let names = names(&[(14_622_706, "a"), (14_622_906, "b"), (5, "b"), (6, "")]);
        assert_eq!(names.show(PeerId(14_622_706)), "a");
        assert_eq!(names.show_with_id(PeerId(14_622_706)), "a (p146227…)");
        assert_eq!(names.show(PeerId(14_622_906)), "b (p146229…)");
        assert_eq!(names.show(PeerId(6)), "p6");
        assert_eq!(names.show(PeerId(7)), "p7", "of whom nothing is known");
    }
}
