//! Which locks this very process is inside of, because the command that it belongs to runs under them: for those it would
//! wait for ever.

use std::ffi::OsStr;
use std::time::Duration;

use sigmalock::{Client, report};

use crate::acquire::Names;
use crate::outcome::Failure;

/// The variable that tells a command: `TOKEN/RUN:NAME` for each lock, with commas, that of the innermost `run` first. RUN is
/// the number of that, because readers, and those who have permits, may have the same token.
pub(crate) const VARIABLE: &str = "SIGMALOCK_INSIDE";
/// Where more than this is said, the outermost are left out: the system bounds what a command is told.
const LEN_MAX: usize = 32 << 10;
/// So long may the swarm take to say who is inside; then it is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// What to tell a command that is about to run under these, too, by that `run`.
pub(crate) fn told(names: &Names, tokens: &[u64], run: i32, outer: Option<&OsStr>) -> String {
    let own = names.0.iter().zip(tokens).map(|(name, token)| format!("{token}/{run}:{name}"));
    let outer = outer.map(OsStr::to_string_lossy).unwrap_or_default();
    let mut told = own.collect::<Vec<_>>().join(",");
    for lock in outer.split(',').filter(|lock| !lock.is_empty()) {
        if told.len() + 1 + lock.len() > LEN_MAX {
            break;
        }
        told.extend([",", lock]);
    }
    told
}

/// A holder that this process is said to belong to. It may be long over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outer {
    token: u64,
    run: i32,
}

impl Outer {
    fn of(text: &str) -> Option<Self> {
        let (token, run) = text.split_once('/')?;
        Some(Self { token: token.parse().ok()?, run: run.parse().ok()? })
    }

    /// Whether that is this one, by what people see of it.
    fn is(self, holder: &report::Holder) -> bool {
        holder.token == self.token && holder.label.contains(&format!("({}) by ", self.run))
    }
}

/// Those under which this process is said to be inside of a lock.
fn outers(told: &str, name: &str) -> Vec<Outer> {
    let locks = told.split(',').filter_map(|lock| lock.split_once(':'));
    locks.filter(|(_, of)| *of == name).filter_map(|(outer, _)| Outer::of(outer)).collect()
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
        let outers = outers(&told, name.as_str());
        if outers.is_empty() {
            continue;
        }
        let asked = tokio::time::timeout(ANSWER_TIMEOUT, client.inspect(name.as_str())).await;
        let Ok(Ok(lock)) = asked else { continue };
        let is_ours = |holder: &&report::Holder| outers.iter().any(|outer| outer.is(holder));
        let ours: Vec<_> = lock.holders.iter().filter(is_ours).collect();
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
        let inner = told(&names, &[7, 8], 77, Some(OsStr::new("5/55:/b,x,6:/c,6/x:/c")));
        assert_eq!(inner, "7/77:/a:x,8/77:/b,5/55:/b,x,6:/c,6/x:/c");
        let outer = |token, run| Outer { token, run };
        assert_eq!(outers(&inner, "/b"), [outer(8, 77), outer(5, 55)]);
        assert_eq!(outers(&inner, "/a:x"), [outer(7, 77)]);
        assert!(["/c", "/d"].iter().all(|name| outers(&inner, name).is_empty()));
        assert!(outers("", "/a").is_empty());
        let deep = (0..10_000).fold(String::new(), |outer, token| {
            told(&names, &[token, token], 77, Some(OsStr::new(&outer)))
        });
        let begin = "9999/77:/a:x,9999/77:/b,9998/77:";
        assert!(deep.len() <= LEN_MAX && deep.starts_with(begin), "{deep}");
    }

    #[test]
    fn of_those_who_have_one_token_only_the_same_run_is_the_same() {
        let holder = |token, label: &str| report::Holder {
            token,
            label: label.into(),
            ..report::Holder::default()
        };
        let outer = Outer { token: 7, run: 77 };
        assert!(outer.is(&holder(7, "run make (77) by ada")));
        // Seen from another PID namespace.
        assert!(outer.is(&holder(7, "run make (77) by ada (4711)")));
        for (token, label) in [(8, "run make (77) by ada"), (7, "run make (177) by ada"), (7, "")] {
            assert!(!outer.is(&holder(token, label)), "{token} {label}");
        }
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
