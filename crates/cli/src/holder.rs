//! Who has a lock, for sentences about somebody else who wants it.

use std::time::Duration;

use sigmalock::{Client, report};

use crate::words;

/// So long may the swarm take to say it; then the sentence goes without.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of a sentence: `it is held by run make (77) at p7 for 3.2 s, with token 9`. `None` if nobody is known to
/// have it.
pub(crate) async fn of(client: &Client, name: &str) -> Option<String> {
    let lock = tokio::time::timeout(ANSWER_TIMEOUT, client.inspect(name)).await.ok()?.ok()?;
    let holder = lock.holder.as_ref()?;
    let token = match holder.token {
        0 => String::new(),
        token => format!(", with token {token}"),
    };
    let more = match lock.holders.len() {
        0 | 1 => String::new(),
        holders => format!(", and by {} more", holders - 1),
    };
    let for_ = words::millis(holder.held_for_ms);
    Some(format!("it is held by {} for {for_}{token}{more}", name_of(holder)))
}

/// A holder as people know it: its label, if its peer told it; with a permit, which.
pub(crate) fn name_of(holder: &report::Holder) -> String {
    let company = words::company(holder.mode(), holder.permits, holder.slot);
    match holder.label.as_str() {
        "" => format!("a user of {}{company}", holder.peer),
        label => format!("{label} at {}{company}", holder.peer),
    }
}
