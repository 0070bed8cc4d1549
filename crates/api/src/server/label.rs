//! What people see of a session: what the client calls itself, which may be anything, and behind it what this peer knows.

use std::os::unix::fs::MetadataExt as _;

use super::connection::Caller;
use super::room::Who;
use crate::LABEL_LEN_MAX;

/// The label of a session, short and on one line.
pub(super) async fn label(text: &str, caller: &Caller) -> String {
    let user = caller.account.name().await;
    match (caller.who(), caller.pid) {
        (Who::User(uid), pid) => match (named_process_of(text, uid), pid) {
            (Some((words, number)), _) => compose(words, &format!(" ({number}) by {user}")),
            (None, Some(pid)) => compose(text, &format!(" by {user} ({pid})")),
            (None, None) => compose(text, &format!(" by {user}")),
        },
        (Who::Tcp, _) => compose(text, &format!(" by {user}")),
    }
}

fn compose(text: &str, known: &str) -> String {
    let mut label: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    label.truncate(label.floor_char_boundary(LABEL_LEN_MAX.saturating_sub(known.len())));
    label + known
}

/// What is before the number of a process, in brackets, with which the text ends, and the number; if that is one of this user.
fn named_process_of(text: &str, uid: u32) -> Option<(&str, u32)> {
    let (words, number) = text.strip_suffix(')')?.rsplit_once(" (")?;
    let number = number.parse::<u32>().ok()?;
    let process = std::fs::metadata(format!("/proc/{number}")).ok()?;
    (process.uid() == uid).then_some((words, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_neither_hides_nor_imitates_who_it_is() {
        assert_eq!(compose("run make (7)", " by ada"), "run make (7) by ada");
        assert_eq!(compose("x by root\n", " by eve (9)"), "x by root  by eve (9)");
        let long = compose(&"é".repeat(200), " by eve (9)");
        assert!(long.len() <= LABEL_LEN_MAX && long.ends_with("é by eve (9)"), "{long}");
    }

    #[test]
    fn a_number_counts_only_if_it_is_that_of_a_process_of_the_user() {
        let (me, uid) = (std::process::id(), nix::unistd::geteuid().as_raw());
        let run = format!("run make ({me})");
        assert_eq!(named_process_of(&run, uid), Some(("run make", me)));
        assert_eq!(named_process_of(&run, uid + 1), None);
        for text in ["run make", "run make (x)", "run (1) make", "()", "", &format!("{me}")] {
            assert_eq!(named_process_of(text, uid), None, "{text}");
        }
    }
}
