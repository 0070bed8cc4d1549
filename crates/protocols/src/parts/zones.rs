//! Voting by zones: a peer's vote weighs its share of the key space, and a fraction f of the whole wins.
//!
//! The closing idea of the Sigma paper (section VII): all members of a DHT vote, each with its zone, so that
//! nobody has to know how many there are. Here the key space is cut into n cells of the same size, the
//! same for every name, and each is a logical replica, hosted by whoever owns the zone that it lies in:
//!
//! ```text
//!   key space  │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │ 8 │     n = 8 cells, f = 3/4: six of them win
//!   zones      └── anna ───┴bert┴──── cleo ────┘     anna votes with 3, bert with 1, cleo with 4
//! ```
//!
//! So it is m of n after all, with m = ⌈f·n⌉, and all that holds of replicas holds of cells. Only their places
//! differ: they are spread evenly over the space, not by the hash of a name. When peers join and leave, zones
//! change, and cells move with the votes that they have given.
//!
//! Peers that are compromised, and vote for everybody who asks, break exclusion once they own 2m − n cells or
//! more: with c of the n cells, two clients can share the n − c honest votes, and both win if
//! c + (n − c)/2 ≥ m. That is a share of 2f − 1. And if they refuse to vote, nobody wins once they own more
//! than 1 − f.

use sigmalock_core::Key;

use super::quorum::{Quorum, QuorumError};

/// The quorum of a lock that is held at so many thousandths of the whole, measured in cells.
pub const fn quorum(cells: u16, permille: u16) -> Result<Quorum, QuorumError> {
    let m = (cells as u32 * permille as u32).div_ceil(1_000);
    // More than a whole is too large, whatever it is.
    Quorum::new(cells, if m > u16::MAX as u32 { u16::MAX } else { m as u16 })
}

/// The middle of a cell: whoever is closest to it hosts the cell.
#[must_use]
pub fn place_of_cell(index: u16, cells: u16) -> Key {
    let cells = u128::from(cells.max(1));
    let middle = (2 * u128::from(index) + 1) * ((1 << 64) / (2 * cells));
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(middle as u64).to_be_bytes());
    Key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_the_whole_is_rounded_up_to_cells() {
        let m = |cells, permille| quorum(cells, permille).map(Quorum::m);
        assert_eq!(m(64, 750), Ok(48));
        assert_eq!(m(10, 667), Ok(7));
        assert!(m(10, 500).is_err() && m(10, 1_001).is_err());
        assert!(m(1_024, u16::MAX).is_err());
    }

    #[test]
    fn cells_lie_evenly_in_the_whole_space() {
        let at = |index| {
            let Key(key) = place_of_cell(index, 4);
            (key[0], key[1..].iter().all(|byte| *byte == 0))
        };
        assert_eq!([0, 1, 2, 3].map(at), [0x20, 0x60, 0xa0, 0xe0].map(|first| (first, true)));
        let Key(last) = place_of_cell(1_023, 1_024);
        assert_eq!(last[0], 0xff);
    }
}
