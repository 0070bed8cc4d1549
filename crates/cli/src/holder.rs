//! Who has a lock, for sentences about somebody else who wants it.

use std::time::Duration;

use sigmalock::{Client, report};

use crate::known::Known;
use crate::words;

/// So long may the swarm take to say it; then the sentence goes without.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of a sentence: `it is held by run make (77) at render-7 for 3.2 s, with token 9`. `None` if nobody is known to
/// have it.
pub(crate) async fn of(client: &Client, name: &str) -> Option<String> {
    let asked = async { tokio::join!(client.inspect(name), client.peers()) };
    let (lock, peers) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await.ok()?;
    let (lock, known) = (lock.ok()?, Known::of(&peers.unwrap_or_default()));
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
    Some(format!("it is held by {} for {for_}{token}{more}", name_of(holder, &known)))
}

/// A holder as people know it: its label, if its peer told it; with a permit, which.
pub(crate) fn name_of(holder: &report::Holder, known: &Known) -> String {
    let company = words::company(holder.mode(), holder.permits, holder.slot);
    match holder.label.as_str() {
        "" => format!("a user of {}{company}", known.show(&holder.peer)),
        label => format!("{label} at {}{company}", known.show(&holder.peer)),
    }
}
