//! Who may say an operator's words: break locks, and forget members.
//!
//! That goes by who the caller is when it asks, as the system says: on the Unix socket, everybody who has written on the
//! connection, not only whoever opened it. By TCP nobody knows.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use tonic::Status;

use super::connection::Caller;
use super::room::{Who, user_name};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Operators {
    owner: u32,
    group: Option<String>,
}

impl Operators {
    pub(super) fn new(group: Option<String>) -> Self {
        Self { owner: nix::unistd::geteuid().as_raw(), group }
    }

    /// Refuses everybody else, and says who may.
    pub(super) async fn check(&self, caller: &Caller, what: &str) -> Result<(), Status> {
        let why = match caller.who() {
            Who::Tcp => "who comes by TCP, at which nobody is known".to_owned(),
            Who::User(_) if caller.is_mixed() => {
                "a connection on which others than the user who opened it have written: open \
                 another"
                    .to_owned()
            }
            Who::User(uid) if uid == self.owner || uid == 0 || self.is_member(uid).await => {
                return Ok(());
            }
            Who::User(_) => caller.account.name().await.to_owned(),
        };
        Err(Status::permission_denied(format!(
            "this peer does not {what} for {why}; at its Unix socket, {} may",
            self.names().await
        )))
    }

    /// Whether a user is in the group, as the system knows its users at this moment.
    async fn is_member(&self, uid: u32) -> bool {
        let Some(group) = self.group.clone() else { return false };
        // The system may have to ask others.
        let asked = tokio::task::spawn_blocking(move || is_member(Uid::from_raw(uid), &group));
        asked.await.unwrap_or(false)
    }

    async fn names(&self) -> String {
        let owner = match self.owner {
            0 => String::new(),
            uid => format!("{} and ", user_name(uid).await),
        };
        match &self.group {
            None => format!("{owner}root"),
            Some(group) => format!("{owner}root and the members of the group {group}"),
        }
    }
}

fn is_member(uid: Uid, group: &str) -> bool {
    let Some(group) = find(group) else { return false };
    let Ok(Some(user)) = User::from_uid(uid) else { return false };
    let Ok(name) = CString::new(user.name) else { return false };
    user.gid == group || getgrouplist(&name, user.gid).is_ok_and(|groups| groups.contains(&group))
}

/// The group of that name, if there is one.
pub(super) fn find(name: &str) -> Option<Gid> {
    Group::from_name(name).ok().flatten().map(|group| group.gid)
}
