//! A fenced register per lock, outside the swarm: the witness that no two were inside at once.

use std::collections::BTreeMap;

use sigmalock::LostSignal;

/// What the locks protect.
#[derive(Debug, Default)]
pub(crate) struct Register {
    cells: BTreeMap<String, Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    token: u64,
    inside: Option<(usize, LostSignal)>,
}

impl Register {
    /// A worker comes in. What is wrong with that, if anything is.
    pub(crate) fn enter(
        &mut self, name: &str, worker: usize, token: u64, right: LostSignal,
    ) -> Result<(), String> {
        let cell = self.cells.entry(name.to_owned()).or_default();
        let before = cell.inside.replace((worker, right));
        let highest = cell.token;
        cell.token = highest.max(token);
        match before {
            // One whose right has ended is late to leave, and no witness.
            Some((other, right)) if !right.is_lost() => {
                Err(format!("worker {worker} is inside {name} while worker {other} is"))
            }
            _ if token <= highest => {
                Err(format!("worker {worker} is inside {name} with token {token} after {highest}"))
            }
            _ => Ok(()),
        }
    }

    /// A worker writes. False if somebody with a higher token has written, or is inside.
    pub(crate) fn write(&mut self, name: &str, worker: usize, token: u64) -> bool {
        let Some(cell) = self.cells.get_mut(name) else { return false };
        cell.token == token && cell.inside.as_ref().is_some_and(|(inside, _)| *inside == worker)
    }

    /// A worker leaves.
    pub(crate) fn leave(&mut self, name: &str, worker: usize) {
        if let Some(cell) = self.cells.get_mut(name)
            && cell.inside.as_ref().is_some_and(|(inside, _)| *inside == worker)
        {
            cell.inside = None;
        }
    }
}
