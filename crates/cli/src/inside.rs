//! Which locks this very process is inside of, because the command that it belongs to runs under them: for those it would
//! wait for ever.

use std::ffi::OsStr;
use std::time::Duration;

use sigmalock::{Client, report};

use crate::acquire::Names;
use crate::outcome::Failure;

/// The variable that tells a command: `TOKEN:NAME` for each lock, with commas, that of the innermost `run` first.
pub(crate) const VARIABLE: &str = "SIGMALOCK_INSIDE";
/// Where more than this is said, the outermost are left out: the system bounds what a command is told.
const LEN_MAX: usize = 32 << 10;
/// So long may the swarm take to say who is inside; then it is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// What to tell a command that is about to run under these, too.
pub(crate) fn told(names: &Names, tokens: &[u64], outer: Option<&OsStr>) -> String {
    let own = names.0.iter().zip(tokens).map(|(name, token)| format!("{token}:{name}"));
    let outer = outer.map(OsStr::to_string_lossy).unwrap_or_default();
    let mut told = own.collect::<Vec<_>>().join(",");
    for lock in outer.split(',').filter(|lock| !lock.is_empty()) {
        if told.len() + 1 + lock.len() > LEN_MAX {
            break;
        }
        told = format!("{told},{lock}");
    }
    told
}

/// The tokens under which this process is said to be inside of a lock. That may be long over.
fn tokens(told: &str, name: &str) -> Vec<u64> {
    let locks = told.split(',').filter_map(|lock| lock.split_once(':'));
    let tokens = locks.filter(|(_, of)| *of == name).map(|(token, _)| token.parse());
    tokens.filter_map(Result::ok).collect()
}

/// In what company a lock is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Company {
    pub(crate) shared: bool,
    pub(crate) permits: Option<u16>,
}

impl Company {
    /// Whether there is no way in beside these holders.
    fn is_shut_out_by(self, holders: &[&report::Holder]) -> bool {
        let all = |mode| holders.iter().all(|holder| holder.mode() == mode);
        match self.permits {
            // Who means another number is told so by the peer.
            Some(permits) if all(report::Mode::Permit) => holders.iter().all(|holder| {
                holder.permits == u32::from(permits) && holders.len() >= permits.into()
            }),
            _ if self.shared && all(report::Mode::Shared) => false,
            _ => true,
        }
    }
}

/// Refuses what would wait for itself: a lock that the command is inside of which this process belongs to.
pub(crate) async fn refuse(
    client: &Client, names: &Names, company: Company,
) -> Result<(), Failure> {
    let Some(told) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let told = told.to_string_lossy();
    for name in &names.0 {
        let tokens = tokens(&told, name.as_str());
        if tokens.is_empty() {
            continue;
        }
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, client.inspect(name.as_str())).await;
        let Ok(Ok(lock)) = asked else { continue };
        let ours: Vec<_> =
            lock.holders.iter().filter(|holder| tokens.contains(&holder.token)).collect();
        if !ours.is_empty() && company.is_shut_out_by(&ours) {
            let token = match ours[0].token {
                0 => String::new(),
                token => format!(", with token {token}"),
            };
            return Err(Failure::usage(format!(
                "{name}: the command that this belongs to holds that lock already{token}, and this would wait \
                 for its end, for ever; leave this `sigmalock` out, or, if it is to be the next when that has ended, unset \
                 {VARIABLE}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquire;

    #[test]
    fn a_command_is_told_of_all_that_it_is_inside_of_as_far_as_there_is_room() {
        let names = acquire::names("/b,/a:x").expect("names");
        let inner = told(&names, &[7, 8], Some(OsStr::new("5:/b,x,6:/c")));
        assert_eq!(inner, "7:/a:x,8:/b,5:/b,x,6:/c");
        assert_eq!(tokens(&inner, "/b"), [8, 5]);
        assert_eq!(tokens(&inner, "/a:x"), [7]);
        assert!(tokens(&inner, "/d").is_empty() && tokens("", "/a").is_empty());
        let deep = (0..10_000).fold(String::new(), |outer, token| {
            told(&names, &[token, token], Some(OsStr::new(&outer)))
        });
        assert!(deep.len() <= LEN_MAX && deep.starts_with("9999:/a:x,9999:/b,9998:"), "{deep}");
    }

    #[test]
    fn readers_are_let_in_beside_readers_and_who_wants_a_permit_while_one_is_left() {
        let holder = |mode: report::Mode, permits| {
            let mode = mode.into();
            report::Holder { mode, permits, ..report::Holder::default() }
        };
        let company = |shared, permits| Company { shared, permits };
        let (reader, writer) =
            (holder(report::Mode::Shared, 0), holder(report::Mode::Exclusive, 0));
        let permit = holder(report::Mode::Permit, 2);
        assert!(company(false, None).is_shut_out_by(&[&writer]));
        assert!(company(false, None).is_shut_out_by(&[&reader]));
        assert!(company(true, None).is_shut_out_by(&[&writer]));
        assert!(!company(true, None).is_shut_out_by(&[&reader]));
        assert!(company(true, None).is_shut_out_by(&[&permit]));
        assert!(!company(false, Some(2)).is_shut_out_by(&[&permit]));
        assert!(company(false, Some(2)).is_shut_out_by(&[&permit, &permit]));
        assert!(!company(false, Some(3)).is_shut_out_by(&[&permit]), "refused by the peer");
        assert!(company(false, Some(2)).is_shut_out_by(&[&writer]));
    }
}
