//! Marks in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{FenceError, FenceStore, MARKS_MAX, Mark};

/// Marks that end with the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    marks: Mutex<HashMap<String, Mark>>,
}

impl FenceStore for MemoryStore {
    fn update<T>(
        &self, name: &str, judge: impl FnOnce(Option<&Mark>) -> Result<Mark, FenceError>,
        action: impl FnOnce() -> T,
    ) -> Result<T, FenceError> {
        // A panicking action leaves the marks as they are: noted before it began.
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = judge(marks.get(name))?;
        if marks.len() >= MARKS_MAX && !marks.contains_key(name) {
            return Err(FenceError::Full);
        }
        marks.insert(name.to_owned(), mark);
        Ok(action())
    }
}
