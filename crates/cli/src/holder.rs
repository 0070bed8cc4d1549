//! Who has a lock, for sentences about somebody else who wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use sigmalock::{Client, report};

use crate::known::Known;
use crate::words;

/// So long may the swarm take to say it; then the sentence goes without.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of a sentence: `it is held by run make (77) at render-7 for 3.2 s, with token 9`; of one whose peer is gone, how
/// long it may still be inside. `None` if nobody is known to have it.
pub(crate) async fn of(client: &Client, name: &str) -> Option<String> {
    let asked = async { tokio::join!(client.inspect(name), client.peers()) };
    let (lock, peers) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await.ok()?;
    let (lock, known) = (lock.ok()?, Known::of(&peers.unwrap_or_default()));
    let Some(holder) = lock.holder.as_ref() else { return bequeathed(&lock) };
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

/// Nobody says that they hold it, and one request has the votes: that of a holder whose peer is gone, or was killed and does
/// not know any more.
fn bequeathed(lock: &report::Lock) -> Option<String> {
    let mut votes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for replica in lock.replicas.iter().filter(|replica| !replica.owner.is_empty()) {
        votes.entry(&replica.owner).or_default().push(replica.ends_in_ms);
    }
    let mut ends = votes.into_values().max_by_key(Vec::len)?;
    ends.sort_unstable();
    // When fewer are left than it takes.
    let last = ends.len().checked_sub(lock.quorum.max(1) as usize)?;
    let left = words::millis(ends[last]);
    Some(format!(
        "who had it may still be inside, and its peer is gone, or was killed meanwhile: the lease ends in {left}"
    ))
}

/// A holder as people know it: its label, if its peer told it; with a permit, which.
pub(crate) fn name_of(holder: &report::Holder, known: &Known) -> String {
    let company = words::company(holder.mode(), holder.permits, holder.slot);
    match holder.label.as_str() {
        "" => format!("a user of {}{company}", known.show(&holder.peer)),
        label => format!("{label} at {}{company}", known.show(&holder.peer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_whose_holder_nobody_knows_is_told_with_its_end() {
        let replica = |owner: &str, ends_in_ms| report::Replica {
            owner: owner.to_owned(),
            ends_in_ms,
            ..report::Replica::default()
        };
        let lock = |replicas: Vec<report::Replica>, quorum| report::Lock {
            replicas_total: replicas.len() as u32,
            replicas,
            quorum,
            ..report::Lock::default()
        };
        let alone = bequeathed(&lock(vec![replica("p1/57", 9_000)], 1)).expect("out");
        assert!(alone.ends_with("the lease ends in 9.0 s"), "{alone}");
        assert_eq!(bequeathed(&lock(vec![replica("", 0)], 1)), None);
        let of_three = |ends: [u64; 3]| {
            let owner = |ends| if ends == 0 { "" } else { "p1/57" };
            bequeathed(&lock(ends.map(|ends| replica(owner(ends), ends)).to_vec(), 2))
        };
        assert_eq!(of_three([0, 0, 8_000]), None, "the others suffice");
        assert!(of_three([9_000, 0, 7_000]).expect("out").contains("in 7.0 s"));
        assert!(of_three([9_000, 8_000, 7_000]).expect("out").contains("in 8.0 s"));
        let split = vec![replica("p1/57", 9_000), replica("p2/3", 9_000), replica("", 0)];
        assert_eq!(bequeathed(&lock(split, 2)), None, "nobody can be inside");
    }
}
