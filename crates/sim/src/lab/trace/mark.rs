//! The signs for moments, in text and in the drawing. Each has a shape of its own, so that they can be told
//! apart without colours, and what does no harm never looks like harm.

use super::Kind;

/// A sign at a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Asks,
    Enters,
    Leaves,
    Ends,
    Loses,
    Fenced,
    Harmed,
    Changes,
    Notes,
}

impl Mark {
    pub(super) const ALL: [Self; 9] = [
        Self::Asks,
        Self::Enters,
        Self::Leaves,
        Self::Ends,
        Self::Loses,
        Self::Fenced,
        Self::Harmed,
        Self::Changes,
        Self::Notes,
    ];

    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Asked => Self::Asks,
            Kind::Granted => Self::Enters,
            Kind::Released => Self::Leaves,
            Kind::Ended => Self::Ends,
            Kind::Lost => Self::Loses,
            Kind::Fenced => Self::Fenced,
            Kind::Refused => Self::Harmed,
            Kind::Down | Kind::Asleep | Kind::Up => Self::Changes,
            _ => Self::Notes,
        }
    }

    pub(super) const fn sign(self) -> char {
        match self {
            Self::Asks => '◇',
            Self::Enters => '●',
            Self::Leaves => '○',
            Self::Ends => '⊖',
            Self::Loses => '✗',
            Self::Fenced => '⊘',
            Self::Harmed => '‼',
            Self::Changes => '▪',
            Self::Notes => '·',
        }
    }

    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Enters => "let in",
            Self::Leaves => "leaves",
            Self::Ends => "gives up",
            Self::Loses => "loses it",
            Self::Fenced => "too late, refused by the fence: no harm",
            Self::Harmed => "refused though inside: harm",
            Self::Changes => "stops, sleeps or is back",
            Self::Notes => "something changes",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Enters => "good",
            Self::Loses => "loses",
            Self::Fenced => "fenced",
            Self::Harmed => "harm",
            Self::Notes => "note",
            Self::Asks | Self::Leaves | Self::Ends | Self::Changes => "plain",
        }
    }

    /// Its shape around a point.
    pub(super) fn shape(self, x: f64, y: f64) -> String {
        let path = |class: &str, steps: &str| {
            format!(r#"<path class="{class}" transform="translate({x:.1} {y:.1})" d="{steps}"/>"#)
        };
        let circle = |class: &str, radius: f64| {
            format!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#)
        };
        match self {
            Self::Asks => path("hollow", "M0-5L5 0L0 5L-5 0Z"),
            Self::Enters => circle("full", 4.5),
            Self::Leaves => circle("hollow", 4.0),
            Self::Ends => path("hollow", "M-4-4H4V4H-4ZM-4 0H4"),
            Self::Loses => path("hollow", "M-4-4L4 4M4-4L-4 4"),
            Self::Fenced => path("hollow", "M-5-5H5V0Q5 4 0 6.5Q-5 4-5 0ZM-2.5-.5L-.5 2L3-2.5"),
            Self::Harmed => path("full", "M0-7L7 5.5H-7Z"),
            Self::Changes => path("full", "M-3.5-3.5H3.5V3.5H-3.5Z"),
            Self::Notes => circle("full", 2.5),
        }
    }
}
