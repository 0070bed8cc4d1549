//! Who may take how much of this peer, so that no user of the machine can take it from another.
//!
//! The peer's own user and root have room of their own, whatever others do. All others share what is left for them, none
//! of them more than a part of it. Who comes by TCP is nobody in particular, so they are all one.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{Uid, User};
use sigmalock_node::{Allowance, Purse};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use super::connection::Caller;
use super::{Busy, CONNECTIONS_MAX};

/// Connections of all others than the peer's own user and root.
pub const OTHERS_CONNECTIONS_MAX: usize = 1_024;
/// Of those, of one user; and of all who come by TCP.
pub const USER_CONNECTIONS_MAX: usize = 128;
/// See above.
pub const TCP_CONNECTIONS_MAX: usize = 512;
/// So many users there may be at once.
const USERS_MAX: usize = 64;
/// Descriptors that are kept back, so that there is one to let the peer's own user in with.
const SPARE_MAX: usize = 8;

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// A user of this machine, at the Unix socket.
    User(u32),
    /// Somebody who came by TCP.
    Tcp,
}

/// What one of them may have at once.
#[derive(Debug, Clone, Copy)]
struct Share {
    connections: usize,
    sessions: usize,
    watches: usize,
    questions: usize,
    purse: Allowance,
}

/// The peer's own user, and root: bounded by what a peer takes at all.
const OWN: Share = Share {
    connections: CONNECTIONS_MAX,
    sessions: Semaphore::MAX_PERMITS,
    watches: Semaphore::MAX_PERMITS,
    questions: Semaphore::MAX_PERMITS,
    purse: Allowance::ALL,
};
/// Another user.
const OTHER: Share = Share {
    connections: USER_CONNECTIONS_MAX,
    sessions: 256,
    watches: 32,
    questions: 32,
    purse: Allowance { calls: 8_192, unread: 65_536, asked: 1_024 },
};
/// All who come by TCP.
const TCP: Share = Share {
    connections: TCP_CONNECTIONS_MAX,
    sessions: 4_096,
    watches: 128,
    questions: 128,
    purse: Allowance { calls: 131_072, unread: 262_144, asked: 8_192 },
};

/// What one user has of this peer.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) who: Who,
    connections: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    questions: Arc<Semaphore>,
    pub(super) purse: Arc<Purse>,
    name: OnceCell<String>,
}

impl Account {
    fn new(who: Who, share: Share) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            who,
            connections: places(share.connections),
            sessions: places(share.sessions),
            watches: places(share.watches),
            questions: places(share.questions),
            purse: Arc::new(Purse::new(share.purse)),
            name: OnceCell::new(),
        }
    }

    /// Who it is, as this machine calls them.
    pub(super) async fn name(&self) -> &str {
        match self.who {
            Who::Tcp => "TCP",
            Who::User(uid) => self.name.get_or_init(|| user_name(uid)).await,
        }
    }
}

/// A user's name, or number. The system may have to ask others for it.
pub(super) async fn user_name(uid: u32) -> String {
    let found = tokio::task::spawn_blocking(move || User::from_uid(Uid::from_raw(uid))).await;
    match found {
        Ok(Ok(Some(user))) => user.name,
        _ => format!("uid {uid}"),
    }
}

/// Room for a connection, as long as this lives.
pub(super) struct Room {
    pub(super) account: Arc<Account>,
    _places: [Option<OwnedSemaphorePermit>; 2],
}

/// All the room there is.
pub(super) struct House {
    owner: u32,
    own_max: usize,
    others: Arc<Semaphore>,
    accounts: BTreeMap<Who, Arc<Account>>,
    spare: Vec<File>,
}

impl House {
    /// As much as this process may have files open: half of that is not for clients.
    pub(super) fn new() -> Self {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(now, _)| now);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let mut house = Self {
            owner: nix::unistd::geteuid().as_raw(),
            own_max: CONNECTIONS_MAX.min(files / 4),
            others: Arc::new(Semaphore::new(OTHERS_CONNECTIONS_MAX.min(files / 8))),
            accounts: BTreeMap::new(),
            spare: Vec::new(),
        };
        house.save();
        house
    }

    /// Keeps some descriptors back.
    fn save(&mut self) {
        while self.spare.len() < SPARE_MAX
            && let Ok(file) = File::open("/dev/null")
        {
            self.spare.push(file);
        }
    }

    /// There were no more descriptors, and now there may be one. False if none was left.
    pub(super) fn spend(&mut self) -> bool {
        self.spare.pop().is_some()
    }

    fn is_own(&self, who: Who) -> bool {
        matches!(who, Who::User(uid) if uid == self.owner || uid == 0)
    }

    /// Room for another connection of theirs, if there is any.
    pub(super) fn admit(&mut self, who: Who) -> Option<Room> {
        let own = self.is_own(who);
        self.save();
        if !own && self.spare.len() < SPARE_MAX {
            return None;
        }
        let account = self.account(who)?;
        let other =
            if own { None } else { Some(Arc::clone(&self.others).try_acquire_owned().ok()?) };
        let place = Arc::clone(&account.connections).try_acquire_owned().ok()?;
        Some(Room { account, _places: [Some(place), other] })
    }

    fn account(&mut self, who: Who) -> Option<Arc<Account>> {
        if let Some(account) = self.accounts.get(&who) {
            return Some(Arc::clone(account));
        }
        if self.accounts.len() >= USERS_MAX {
            self.accounts.retain(|_, account| Arc::strong_count(account) > 1);
        }
        let share = match who {
            _ if self.is_own(who) => Share { connections: self.own_max, ..OWN },
            _ if self.accounts.len() >= USERS_MAX => return None,
            Who::Tcp => TCP,
            Who::User(_) => OTHER,
        };
        let account = Arc::new(Account::new(who, share));
        self.accounts.insert(who, Arc::clone(&account));
        Some(account)
    }
}

/// What a client wants of a peer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    Session,
    Watch,
    Question,
}

/// Room for that, as long as it lasts.
#[derive(Debug)]
pub(super) struct Stay {
    _busy: Busy,
    _place: OwnedSemaphorePermit,
}

impl Caller {
    /// Room for what it wants; past its share it is told so.
    pub(super) fn stay(&self, wish: Wish) -> Result<Stay, Status> {
        let (places, what) = match wish {
            Wish::Session => (&self.account.sessions, "sessions"),
            Wish::Watch => (&self.account.watches, "watches"),
            Wish::Question => (&self.account.questions, "questions"),
        };
        let place = Arc::clone(places).try_acquire_owned();
        let place = place.map_err(|_| {
            Status::resource_exhausted(format!(
                "this peer takes no more {what} of one user at once"
            ))
        })?;
        Ok(Stay { _busy: self.activity.session(), _place: place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_fill_their_own_share_and_nobody_elses() {
        let mut house = House::new();
        let mut fill = |who| {
            let mut rooms = Vec::new();
            while let Some(room) = house.admit(who) {
                rooms.push(room);
            }
            rooms
        };
        let first = fill(Who::User(u32::MAX - 1));
        assert_eq!(first.len(), USER_CONNECTIONS_MAX);
        let others: Vec<_> = (1..100).map(|n| fill(Who::User(u32::MAX - 1 - n))).collect();
        assert!(others.iter().any(|rooms| !rooms.is_empty()));
        assert!(fill(Who::Tcp).is_empty(), "all that others share is taken");
        let own = fill(Who::User(nix::unistd::geteuid().as_raw()));
        assert!(own.len() > 64, "{}", own.len());
        drop((first, others));
        assert!(!fill(Who::Tcp).is_empty());
    }

    #[test]
    fn users_who_have_left_make_room_for_others() {
        let mut house = House::new();
        for uid in 1_000_000..1_000_000 + 10 * USERS_MAX as u32 {
            assert!(house.admit(Who::User(uid)).is_some(), "{uid}");
        }
        let _all: Vec<_> = (0..USERS_MAX as u32)
            .filter_map(|uid| house.admit(Who::User(2_000_000 + uid)))
            .collect();
        assert!(house.admit(Who::User(3_000_000)).is_none(), "as many users as there may be");
        assert!(house.admit(Who::User(0)).is_some(), "root always");
    }
}
