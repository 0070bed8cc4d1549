//! What is demanded of the swarm of a peer, whenever a session with it is opened.

use sigmalock_api::v1;

use crate::error::ConnectError;
use crate::place::Address;

/// What a peer says that is longer than this is no id of a swarm.
const SWARM_ID_LEN_MAX: usize = 64;

/// Which swarm the peer must be of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Demand {
    Nothing,
    /// One that others are in, or could be.
    NoPrivate,
    /// That with this id.
    Swarm(String),
    /// That of this peer alone.
    Private,
}

impl Demand {
    /// Whether the peer that opened a session will do; an error says why not.
    pub(crate) fn judge(&self, opened: &v1::Opened, address: &Address) -> Result<(), ConnectError> {
        let (met, demanded) = match self {
            Self::Nothing => (true, String::new()),
            Self::NoPrivate => (!opened.private, "one of a swarm".to_owned()),
            Self::Swarm(id) => (!opened.private && opened.swarm == *id, format!("swarm {id}")),
            Self::Private => (opened.private, "a private one".to_owned()),
        };
        if met {
            return Ok(());
        }
        let plain =
            |id: &&str| id.len() <= SWARM_ID_LEN_MAX && id.bytes().all(|b| b.is_ascii_hexdigit());
        let id =
            Some(opened.swarm.as_str()).filter(|id| !id.is_empty()).filter(plain).unwrap_or("?");
        let found = match (opened.private, id) {
            (true, id) => format!("the private swarm {id}"),
            (false, id) => format!("swarm {id}"),
        };
        Err(ConnectError::OtherSwarm { address: address.to_string(), found, demanded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(demand: &Demand, swarm: &str, private: bool) -> Result<(), String> {
        let opened = v1::Opened { swarm: swarm.into(), private, ..v1::Opened::default() };
        let address = Address::Unix("/s".into());
        demand.judge(&opened, &address).map_err(|error| error.to_string())
    }

    #[test]
    fn a_peer_is_of_the_swarm_that_was_demanded_or_refused_in_a_sentence_that_names_both() {
        let swarm = Demand::Swarm("aa".into());
        assert_eq!(judged(&swarm, "aa", false), Ok(()));
        let other = judged(&swarm, "bb", false).unwrap_err();
        assert_eq!(other, "unix:/s has a peer of swarm bb, and swarm aa was demanded");
        let private = judged(&swarm, "aa", true).unwrap_err();
        assert!(private.contains("the private swarm aa, and swarm aa was demanded"), "{private}");
        assert!(judged(&Demand::NoPrivate, "aa", true).is_err());
        assert!(judged(&Demand::Private, "aa", false).is_err());
        assert_eq!(judged(&Demand::Nothing, "", false), Ok(()));
    }

    #[test]
    fn what_is_no_id_is_not_repeated() {
        for text in ["\x1b[2J", &"a".repeat(65), ""] {
            let refused = judged(&Demand::Swarm("aa".into()), text, false).unwrap_err();
            assert!(refused.contains("swarm ?,"), "{refused}");
        }
    }
}
