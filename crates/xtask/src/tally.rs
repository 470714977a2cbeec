//! Runs several test runners, shows what they print, and closes with one line
//! over all of them: `N passed, N failed`.
//!
//! ```text
//! cargo run -p xtask -- tally -- cargo test --workspace -- make -C kernel/simflash/test check
//! ```
//!
//! A runner that ends with an error without naming a failed test, or that names
//! no test at all, counts as one failure: a runner that did not run is no
//! success. Exit code 1 if anything failed, 2 if no runner was given.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

/// Runs the test runners in `arguments`, each after a `--`.
pub fn run_all(arguments: &[String]) -> ExitCode {
    let runners: Vec<&[String]> = arguments
        .split(|argument| argument == "--")
        .filter(|runner| !runner.is_empty())
        .collect();
    if runners.is_empty() {
        eprintln!("tally: name the test runners, each after a `--`");
        return ExitCode::from(2);
    }
    let mut all = Counts::default();
    for runner in runners {
        all.add(run(runner));
    }
    println!("{} passed, {} failed", all.passed, all.failed);
    ExitCode::from(u8::from(all.failed > 0))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

fn run(runner: &[String]) -> Counts {
    println!("== {}", runner.join(" "));
    match run_and_count(runner) {
        Ok((counts, succeeded)) => judge(counts, succeeded, runner),
        Err(error) => {
            println!("tally: {} did not run: {error}", runner[0]);
            Counts {
                passed: 0,
                failed: 1,
            }
        }
    }
}

fn run_and_count(runner: &[String]) -> std::io::Result<(Counts, bool)> {
    let mut child = Command::new(&runner[0])
        .args(&runner[1..])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut counts = Counts::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            counts.add(closing_line(&line).unwrap_or_default());
        }
        std::io::stdout().flush()?;
    }
    Ok((counts, child.wait()?.success()))
}

fn judge(mut counts: Counts, succeeded: bool, runner: &[String]) -> Counts {
    if !succeeded && counts.failed == 0 {
        println!("tally: {} ended with an error", runner.join(" "));
        counts.failed = 1;
    } else if counts == Counts::default() {
        println!("tally: {} named no test", runner.join(" "));
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

    fn counts(passed: u64, failed: u64) -> Counts {
        Counts { passed, failed }
    }

    fn shell(script: &str) -> Counts {
        run(&["sh".to_owned(), "-c".to_owned(), script.to_owned()])
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
        assert_eq!(run(&["/nonexistent".to_owned()]), counts(0, 1));
    }
}
