//! Hand-made histories for the tests of oracles: requests are numbered by their clients, times are in
//! milliseconds, and there is one lock.

use sigmalock_core::{CallId, Incarnation, Mode, Name, PeerId, RequestId, Span, Token};

use super::{Oracle, Setting, Violation};
use crate::history::{Ending, Ledger, Record, TrueTime, What};

/// 100 ms one way, 10 s of patience.
pub(super) fn setting() -> Setting {
    Setting {
        answers: &[],
        replicas: 3,
        one_way_worst: Span::from_millis(100),
        faulty: false,
        queues: true,
        entries_per_grant: None,
        several: false,
        lease_max: Span::from_secs(10),
        patience_after_heal: Span::from_secs(10),
        twins: false,
    }
}

pub(super) fn ms(ms: u64) -> TrueTime {
    TrueTime(ms * 1_000)
}

pub(super) fn request(client: u64) -> RequestId {
    RequestId { client: PeerId(client), incarnation: Incarnation(1), call: CallId(1) }
}

pub(super) fn asked(client: u64) -> What {
    let (request, name) = (request(client), Name::new("/a").unwrap());
    What::Asked { request, name, mode: Mode::Exclusive, forever: true, until: None }
}

pub(super) fn asked_to_read(client: u64) -> What {
    let (request, name) = (request(client), Name::new("/a").unwrap());
    What::Asked { request, name, mode: Mode::Shared, forever: true, until: None }
}

pub(super) fn asked_for_permit(client: u64, of: u16) -> What {
    let (request, name) = (request(client), Name::new("/a").unwrap());
    What::Asked { request, name, mode: Mode::Permit { of }, forever: true, until: None }
}

pub(super) fn asked_until(client: u64, until_ms: u64) -> What {
    let (request, name) = (request(client), Name::new("/a").unwrap());
    What::Asked { request, name, mode: Mode::Exclusive, forever: false, until: Some(ms(until_ms)) }
}

pub(super) fn granted(client: u64, until_ms: u64) -> What {
    What::Granted { request: request(client), token: None, until: ms(until_ms), slot: None }
}

pub(super) fn granted_with(client: u64, token: u64) -> What {
    let (request, until) = (request(client), ms(1_000_000));
    What::Granted { request, token: Some(Token(token)), until, slot: None }
}

pub(super) fn granted_slot(client: u64, token: u64, slot: Option<u16>) -> What {
    let (request, until) = (request(client), ms(1_000_000));
    What::Granted { request, token: Some(Token(token)), until, slot }
}

pub(super) fn extended(client: u64, until_ms: u64) -> What {
    What::Extended { request: request(client), until: ms(until_ms) }
}

pub(super) fn lost(client: u64) -> What {
    What::Lost(request(client))
}

pub(super) fn released(client: u64) -> What {
    What::Released(request(client))
}

pub(super) fn left(client: u64) -> What {
    What::Left(request(client))
}

pub(super) fn ended(client: u64) -> What {
    What::Ended(request(client), Ending::TimedOut)
}

pub(super) fn crashed(client: u64) -> What {
    What::Crashed(PeerId(client))
}

pub(super) fn wrote(client: u64, accepted: bool) -> What {
    What::Wrote { request: request(client), token: Token(0), accepted }
}

/// What an oracle says of a history that goes up to `end_ms`.
pub(super) fn judge(mut oracle: impl Oracle, tale: &[(u64, What)], end_ms: u64) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at_ms, what) in tale {
        oracle.see(&Record { at: ms(*at_ms), what: what.clone() }, &mut violations);
    }
    oracle.finish(ms(end_ms), &Ledger::default(), &mut violations);
    assert!(violations.iter().all(|violation| violation.oracle == oracle.name()));
    violations
}
