//! How peers are shown to people: by the names that the peer which was asked knows. The rule is that of
//! [`sigmalock_node::Names`]; here it is applied to reports.

use sigmalock::report;
use sigmalock_node::{Names, PeerName};

/// The peers that a peer knows.
#[derive(Debug, Default)]
pub(crate) struct Known(Names);

impl Known {
    pub(crate) fn of(peers: &[report::Peer]) -> Self {
        let mut names = Names::default();
        for peer in peers {
            if let Ok(id) = peer.peer.parse() {
                names.insert(id, PeerName::tamed(&peer.name));
            }
        }
        Self(names)
    }

    /// A peer in a sentence.
    pub(crate) fn show(&self, id: &str) -> String {
        id.parse().map_or_else(|_| id.to_owned(), |peer| self.0.show(peer))
    }

    /// A peer where its id is of use, too.
    pub(crate) fn show_with_id(&self, id: &str) -> String {
        id.parse().map_or_else(|_| id.to_owned(), |peer| self.0.show_with_id(peer))
    }

    /// A request: that of a peer, with a number.
    pub(crate) fn request(&self, request: &str) -> String {
        let shown = request.split_once('/').map(|(id, call)| format!("{}/{call}", self.show(id)));
        shown.unwrap_or_else(|| request.to_owned())
    }

    /// Several peers in a sentence.
    pub(crate) fn list<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        ids.into_iter().map(|id| self.show(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_one_name_are_told_apart_and_nothing_raw_is_shown() {
        let peer = |peer: &str, name: &str| report::Peer {
            peer: peer.to_owned(),
            name: name.to_owned(),
            ..report::Peer::default()
        };
        let known = Known::of(&[
            peer("p14622706887153926033", "render-7"),
            peer("p4980054197802181705", "web"),
            peer("p9615273013308085759", "web"),
            peer("p5", "\u{1b}[2Jx\u{202e}y"),
        ]);
        assert_eq!(known.show("p14622706887153926033"), "render-7");
        assert_eq!(known.show_with_id("p14622706887153926033"), "render-7 (p14622…)");
        assert_eq!(known.show("p4980054197802181705"), "web (p49800…)");
        assert_eq!(known.show("p9615273013308085759"), "web (p96152…)");
        assert_eq!(known.show("p5"), "2Jx_y");
        assert_eq!(known.show("p6"), "p6");
        assert_eq!(known.show(""), "");
        assert_eq!(known.request("p14622706887153926033/12"), "render-7/12");
        assert_eq!(known.request(""), "");
    }
}
