//! A fenced register per lock, outside the swarm: the witness that no two were inside at once.

use std::collections::BTreeMap;

use super::view::letter;

/// What the locks protect.
#[derive(Debug, Default)]
pub(crate) struct Register {
    cells: BTreeMap<String, Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    token: u64,
    /// Who is inside, and until when it may be.
    inside: Option<(usize, u64)>,
}

impl Register {
    /// A worker came in at that time, and may be inside until the other. What is wrong with that, if anything is.
    pub(crate) fn enter(
        &mut self, name: &str, worker: usize, token: u64, at_us: u64, until_us: u64,
    ) -> Result<(), String> {
        let cell = self.cells.entry(name.to_owned()).or_default();
        let before = cell.inside.replace((worker, until_us));
        let highest = cell.token;
        cell.token = highest.max(token);
        let who = letter(worker);
        match before {
            // One whose right has ended is late to leave, and no witness.
            Some((other, until_us)) if at_us < until_us => {
                let other = letter(other);
                Err(format!("worker {who} is inside {name} while worker {other} is"))
            }
            _ if token <= highest => {
                Err(format!("worker {who} is inside {name} with token {token} after {highest}"))
            }
            _ => Ok(()),
        }
    }

    /// A worker may be inside for longer.
    pub(crate) fn extend(&mut self, name: &str, worker: usize, until_us: u64) {
        if let Some((inside, until)) =
            self.cells.get_mut(name).and_then(|cell| cell.inside.as_mut())
            && *inside == worker
        {
            *until = until_us.max(*until);
        }
    }

    /// A worker writes, and leaves. Refused, with the token that has been here, if that is a newer one.
    pub(crate) fn write(&mut self, name: &str, worker: usize, token: u64) -> Result<(), u64> {
        let cell = self.cells.entry(name.to_owned()).or_default();
        if token < cell.token {
            return Err(cell.token);
        }
        if cell.inside.is_some_and(|(inside, _)| inside == worker) {
            cell.inside = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_in_before_the_other_has_to_be_out_is_a_violation() {
        let enter = |at_us| {
            let mut register = Register::default();
            register.enter("/a", 0, 41, 0, 100).unwrap();
            register.extend("/a", 0, 200);
            register.enter("/a", 1, 42, at_us, 400)
        };
        assert_eq!(enter(199), Err("worker B is inside /a while worker A is".to_owned()));
        assert_eq!(enter(200), Ok(()));
    }

    #[test]
    fn a_write_with_an_older_token_is_refused_and_a_token_is_used_once() {
        let mut register = Register::default();
        register.enter("/a", 0, 41, 0, 100).unwrap();
        register.enter("/a", 1, 42, 150, 300).unwrap();
        assert_eq!(register.write("/a", 0, 41), Err(42));
        assert_eq!(register.write("/a", 1, 42), Ok(()));
        assert!(register.enter("/a", 0, 42, 160, 300).unwrap_err().contains("token 42 after 42"));
    }
}
