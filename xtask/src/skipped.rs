//! Tests that passed because they tested nothing: they say so, and that is told at the end, where it is read.

use std::collections::BTreeMap;

/// The flag with which a test program says what the tests said that passed.
pub(crate) const SHOW: &str = "--show-output";

/// What test programs say, line by line, and which tests were skipped, by what they lacked.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    tests: BTreeMap<String, Vec<String>>,
    /// Whether what comes is of tests that passed.
    passed: bool,
    test: String,
}

impl Skipped {
    /// Whether people should see this line: not what tests have to say that passed.
    pub(crate) fn hear(&mut self, line: &str) -> bool {
        match line {
            "successes:" => self.passed = true,
            "failures:" => self.passed = false,
            _ if line.starts_with("test result: ") => self.passed = false,
            _ => {}
        }
        let head = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----"));
        if let Some(test) = head {
            test.clone_into(&mut self.test);
        }
        if self.passed
            && line.to_lowercase().starts_with("skipped")
            && let Some((_, why)) = line.split_once(": ")
        {
            self.tests.entry(why.to_owned()).or_default().push(self.test.clone());
        }
        !self.passed
    }

    /// A step that is not taken, and what it lacks.
    pub(crate) fn add(&mut self, step: &str, why: &str) {
        self.tests.entry(why.to_owned()).or_default().push(step.to_owned());
    }

    pub(crate) fn count(&self) -> usize {
        self.tests.values().map(Vec::len).sum()
    }

    /// Why, and behind that which.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.tests.iter().flat_map(|(why, tests)| {
            let tests = tests.iter().map(|test| format!("    {test}"));
            [format!("  {why}")].into_iter().chain(tests)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_tested_nothing_is_named_and_what_fails_is_shown() {
        let said = "\
running 3 tests
...
successes:

---- a::one stdout ----
seen 17 peers
---- a::two stdout ----
SKIPPED, NOTHING TESTED: only root can be another user

successes:
    a::one
    a::two

failures:

---- a::three stdout ----
SKIPPED, NOTHING TESTED: it says, and fails
test result: FAILED. 2 passed; 1 failed
running 1 test";
        let mut skipped = Skipped::default();
        let shown: Vec<&str> = said.lines().filter(|line| skipped.hear(line)).collect();
        let lines: Vec<String> = skipped.lines().collect();
        assert_eq!(lines, ["  only root can be another user", "    a::two"]);
        assert_eq!(skipped.count(), 1);
        assert_eq!(shown[..2], ["running 3 tests", "..."]);
        assert_eq!((shown[2], shown.len()), ("failures:", 8), "{shown:?}");
    }
}
