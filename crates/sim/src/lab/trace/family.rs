//! What a message is about: families of messages are drawn alike, and told apart without colours too.

use sigmalock_core::PeerId;

/// A family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Asks,
    Gives,
    Queues,
    Yields,
    Releases,
    Renews,
    Other,
}

/// What an answer says, beside its kind.
const ANSWERS: [(&str, Family); 6] = [
    ("yours", Family::Gives),
    ("votes", Family::Gives),
    ("queued", Family::Queues),
    ("full", Family::Queues),
    ("abstains", Family::Queues),
    ("rejects", Family::Queues),
];

impl Family {
    pub(super) const ALL: [Self; 7] = [
        Self::Asks,
        Self::Gives,
        Self::Queues,
        Self::Yields,
        Self::Releases,
        Self::Renews,
        Self::Other,
    ];

    /// The class of its arrows, and how the legend calls it.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Gives => "gives",
            Self::Queues => "queues",
            Self::Yields => "yields",
            Self::Releases => "releases",
            Self::Renews => "renews",
            Self::Other => "other",
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Asks => "asks for a vote",
            Self::Gives => "gives a vote",
            Self::Queues => "gives none yet",
            Self::Yields => "yields, or wants back",
            Self::Releases => "gives back",
            Self::Renews => "renews",
            Self::Other => "other",
        }
    }
}

/// The family of a message, and a label for its arrow: its kind, and of an answer what it says.
pub(super) fn of_message(text: &str, to: Option<PeerId>) -> (Family, String) {
    let mut words = text.split([' ', ',']);
    let kind = words.next().unwrap_or_default();
    let family = match kind {
        "REQUEST" => Family::Asks,
        "GRANT" => Family::Gives,
        "YIELD" | "RECALL" => Family::Yields,
        "RELEASE" | "WITHDRAW" => Family::Releases,
        "RENEW" | "RENEWED" => Family::Renews,
        "RESPONSE" => {
            let said = words.find_map(|word| ANSWERS.iter().find(|(answer, _)| *answer == word));
            // The literal Sigma says who the owner is.
            let own = to.is_some_and(|to| text.contains(&format!(" owner {to} ")));
            let literal = if own { ("yours", Family::Gives) } else { ("queued", Family::Queues) };
            let (answer, family) = said.copied().unwrap_or(literal);
            return (family, format!("{kind} {answer}"));
        }
        _ => Family::Other,
    };
    (family, kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_it_gives_a_vote() {
        let of = |text| of_message(text, Some(PeerId(7)));
        let gives = |label: &str| (Family::Gives, label.to_owned());
        let queues = |label: &str| (Family::Queues, label.to_owned());
        assert_eq!(of("RESPONSE anna/1 yours, grant 1 for 10s"), gives("RESPONSE yours"));
        assert_eq!(of("RESPONSE anna/1 queued behind bert/1"), queues("RESPONSE queued"));
        assert_eq!(of("RESPONSE anna/1 queue full"), queues("RESPONSE full"));
        assert_eq!(of("RESPONSE /a#1 votes p7/1.1, 10s"), gives("RESPONSE votes"));
        assert_eq!(of("RESPONSE /a#1 rejects p7/1.1, owner p8/1.1"), queues("RESPONSE rejects"));
        assert_eq!(of("RESPONSE /a#1 owner p7 at 5"), gives("RESPONSE yours"));
        assert_eq!(of("RESPONSE /a#1 owner p8 at 5"), queues("RESPONSE queued"));
        assert_eq!(of("GRANT anna/1 yours, grant 2 for 2s"), gives("GRANT"));
        assert_eq!(of("YIELD anna/1 grant 3"), (Family::Yields, "YIELD".to_owned()));
        assert_eq!(of("HELLO"), (Family::Other, "HELLO".to_owned()));
    }
}
