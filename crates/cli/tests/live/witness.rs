//! An outside witness: a register behind a socket that knows nothing of the swarm. Whoever is inside
//! says so when it enters and when it leaves, with its token, and the witness objects to two at once
//! and to tokens that do not grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sigmalock::LostSignal;

/// What it has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Witness(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// The lock protocol gives no tokens, and so many were made up in their place.
    made_up: Option<u64>,
    names: HashMap<String, Register>,
    entries: u64,
    objections: Vec<String>,
}

#[derive(Debug, Default)]
struct Register {
    highest: u64,
    inside: Option<(u64, String)>,
    /// Until when the one inside may be there, if it showed that.
    right: Option<LostSignal>,
}

impl Witness {
    /// One for a lock protocol that gives no tokens.
    pub(crate) fn without_tokens() -> Self {
        Self(Arc::new(Mutex::new(Seen { made_up: Some(0), ..Seen::default() })))
    }

    /// What somebody with this token is to show, who is about to enter: where there are no tokens, the next number.
    pub(crate) fn shown(&self, token: u64) -> u64 {
        let mut seen = self.0.lock().expect("no witness panics");
        match (token, &mut seen.made_up) {
            (0, Some(last)) => {
                *last += 1;
                *last
            }
            (token, None) => token,
            (token, Some(_)) => panic!("there are tokens: {token}"),
        }
    }

    /// Somebody says that it is inside. The one before may have died inside; if it has not said
    /// goodbye it is *gone* only if the caller knows so (`forget`).
    pub(crate) fn enter(&self, name: &str, token: u64, who: &str) {
        let mut seen = self.0.lock().expect("no witness panics");
        seen.entries += 1;
        let register = seen.names.entry(name.to_owned()).or_default();
        let mut objections = Vec::new();
        if token <= register.highest {
            objections.push(format!("{who} enters {name} with {token} after {}", register.highest));
        }
        if let Some((other, whose)) = &register.inside {
            objections.push(format!("{who} enters {name} with {token} while {whose} has {other}"));
        }
        register.highest = register.highest.max(token);
        (register.inside, register.right) = (Some((token, who.to_owned())), None);
        seen.objections.extend(objections);
    }

    /// The same for somebody who shows its right: once that has ended, it is outside, whether it found the
    /// time to say so or not.
    pub(crate) fn enter_by(&self, name: &str, token: u64, who: &str, right: LostSignal) {
        if let Some(register) = self.0.lock().expect("no witness panics").names.get_mut(name)
            && register.right.as_ref().is_some_and(LostSignal::is_lost)
        {
            register.inside = None;
        }
        self.enter(name, token, who);
        if let Some(register) = self.0.lock().expect("no witness panics").names.get_mut(name) {
            register.right = Some(right);
        }
    }

    /// Somebody who believes to be inside writes. The register refuses lower tokens than it has seen; a
    /// refusal means that somebody else was let in.
    pub(crate) fn write(&self, name: &str, token: u64, who: &str) {
        let mut seen = self.0.lock().expect("no witness panics");
        let highest = seen.names.get(name).map_or(0, |register| register.highest);
        if token < highest {
            seen.objections.push(format!("{who} writes to {name} with {token} after {highest}"));
        }
    }

    /// Somebody is about to leave, or knows that it has lost its right, or is known to be dead.
    pub(crate) fn leave(&self, name: &str, token: u64) {
        let mut seen = self.0.lock().expect("no witness panics");
        if let Some(register) = seen.names.get_mut(name)
            && register.inside.as_ref().is_some_and(|(inside, _)| *inside == token)
        {
            register.inside = None;
        }
    }

    pub(crate) fn entries(&self) -> u64 {
        self.0.lock().expect("no witness panics").entries
    }

    /// What it objected to.
    pub(crate) fn objections(&self) -> Vec<String> {
        self.0.lock().expect("no witness panics").objections.clone()
    }
}
