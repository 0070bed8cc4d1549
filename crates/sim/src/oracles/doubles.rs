//! Of two peers that run with copies of one disk, one finds out that it is not the member that it was by its disk.
//!
//! That is promised where a member is met that remembers, and the worlds that this is for are such.

use sigmalock_core::PeerId;

use super::{Oracle, Violation};
use crate::history::{Ledger, Record, TrueTime, What};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Doubles {
    /// Who was doubled, and when, if nobody has noticed.
    unnoticed: Option<(PeerId, TrueTime)>,
}

impl Oracle for Doubles {
    fn name(&self) -> &'static str {
        "doubles"
    }

    fn see(&mut self, record: &Record, _: &mut Vec<Violation>) {
        match &record.what {
            What::Doubled(peer) => self.unnoticed = Some((*peer, record.at)),
            What::Noticed(_) => self.unnoticed = None,
            _ => {}
        }
    }

    fn finish(&mut self, _: TrueTime, _: &Ledger, violations: &mut Vec<Violation>) {
        if let Some((peer, at)) = self.unnoticed {
            let sentence = format!("nobody noticed that there were two of {peer}");
            violations.push(Violation { oracle: "doubles", at, sentence });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tale::*;
    use super::*;

    #[test]
    fn one_of_two_has_to_notice() {
        let (doubled, noticed) = (What::Doubled(PeerId(2)), What::Noticed(PeerId(1_000_002)));
        let tale = [(10, doubled), (20, noticed)];
        assert_eq!(judge(Doubles::default(), &tale, 99), []);
        assert_eq!(judge(Doubles::default(), &tale[..1], 99).len(), 1);
        let early = [(10, tale[1].1.clone()), (20, tale[0].1.clone())];
        assert_eq!(judge(Doubles::default(), &early, 99).len(), 1, "it was another disk");
    }
}
