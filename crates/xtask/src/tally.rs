//! What a test runner says at its end: how many tests passed, how many failed.

use crate::child::Ended;

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Counts {
    pub const PASSED: Counts = Counts {
        passed: 1,
        failed: 0,
    };
    pub const FAILED: Counts = Counts {
        passed: 0,
        failed: 1,
    };

    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// All closing lines of a runner together. One that ends with an error without naming a failed
/// test, or that names no test at all, counts as one failure: a runner that did not run is no
/// success.
pub fn of_runner(ended: &Ended) -> Counts {
    let mut counts = Counts::default();
    for line in ended.output.lines() {
        counts.add(closing_line(line).unwrap_or_default());
    }
    let is_silent = counts == Counts::default();
    if counts.failed == 0 && (is_silent || !ended.status.success()) {
        counts.failed = 1;
    }
    counts
}

/// `test result: ok. 3 passed; 0 failed; …` of cargo, or `3 passed, 0 failed`.
fn closing_line(line: &str) -> Option<Counts> {
    let line = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1.replace("; ", ", "),
        None => line.to_owned(),
    };
    let mut parts = line.split(", ");
    let passed = number_before(parts.next()?, " passed")?;
    let failed = number_before(parts.next()?, " failed")?;
    Some(Counts { passed, failed })
}

fn number_before(part: &str, word: &str) -> Option<u64> {
    part.strip_suffix(word)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child;
    use std::process::Command;

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    fn shell(script: &str) -> Counts {
        of_runner(&child::run(Command::new("sh").args(["-c", script])).unwrap())
    }

    #[test]
    fn both_kinds_of_closing_line_are_read() {
        let cargo = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured";
        assert_eq!(closing_line(cargo), Some(counts(3, 1)));
        assert_eq!(closing_line("12 passed, 0 failed"), Some(counts(12, 0)));
        assert_eq!(
            closing_line("12 passed, 0 failed, 1 skipped"),
            Some(counts(12, 0))
        );
        assert_eq!(closing_line("passed: 12"), None);
    }

    #[test]
    fn all_closing_lines_of_a_runner_count() {
        assert_eq!(
            shell("echo 2 passed, 0 failed; echo 3 passed, 0 failed"),
            counts(5, 0)
        );
    }

    #[test]
    fn a_runner_that_breaks_or_runs_nothing_is_a_failure() {
        assert_eq!(shell("echo 2 passed, 0 failed; exit 3"), counts(2, 1));
        assert_eq!(shell("true"), counts(0, 1));
    }
}
