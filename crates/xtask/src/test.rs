//! Runs all tests, each in a process of its own, and tells what each took.
//!
//! ```text
//! cargo run -p xtask -- test [--ignored | --runners-only] [PART_OF_A_NAME…] [-- build STEP…]… [-- RUNNER…]…
//! ```
//!
//! With parts of names, only tests whose name has one of them run. Steps are commands that have to succeed
//! before the first test runs. Runners are other programs with tests, which say `N passed, N failed`.
//! Exit code 1 if anything failed, 2 if something could not be built.

use crate::child::{self, Ended, Took};
use crate::suite::{self, Test};
use crate::tally::{self, Counts};
use crate::times::Times;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What each test of the last run took.
const TIMES: &str = "target/test-times.tsv";

/// The same on the project's reference machine: the order of a first run, and what to compare by.
const KNOWN_TIMES: &str = "tests/times.tsv";

/// The lab says so on a line of its own when it gives a guest's earlier verdict.
const KEPT: &str = "the verdict of the same guest was kept";

/// CPU seconds of what was never measured. It begins early, as it may be long.
const UNKNOWN_CPU_S: f64 = 30.0;

/// How arguments were understood.
#[derive(Debug, Default, PartialEq)]
struct Wanted {
    ignored: bool,
    runners_only: bool,
    parts: Vec<String>,
    steps: Vec<Vec<String>>,
    runners: Vec<Vec<String>>,
}

impl Wanted {
    fn of(arguments: &[String]) -> Result<Wanted, String> {
        let mut groups = arguments.split(|it| it == "--");
        let mut wanted = Wanted::default();
        for word in groups.next().unwrap_or_default() {
            match word.as_str() {
                "--ignored" => wanted.ignored = true,
                "--runners-only" => wanted.runners_only = true,
                option if option.starts_with('-') => {
                    return Err(format!(
                        "there is no option {option}: use --ignored or --runners-only"
                    ));
                }
                part => wanted.parts.push(part.to_owned()),
            }
        }
        for group in groups {
            match group {
                [] => {}
                [first, step @ ..] if first == "build" => wanted.steps.push(step.to_vec()),
                runner => wanted.runners.push(runner.to_vec()),
            }
        }
        Ok(wanted)
    }

    fn has(&self, name: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Something that is run beside others.
enum Job {
    Test(Test),
    Runner(Vec<String>),
}

impl Job {
    fn name(&self) -> String {
        match self {
            Job::Test(test) => test.name.clone(),
            Job::Runner(words) => words.join(" "),
        }
    }

    fn run(&self) -> io::Result<Ended> {
        match self {
            Job::Test(test) => child::run(&mut test.command()),
            // A part of `make stress` takes hours.
            Job::Runner(words) => child::run_without_limit(&mut command(words)),
        }
    }

    fn counts(&self, ended: &Ended) -> Counts {
        match self {
            Job::Test(_) if ended.status.success() => Counts::PASSED,
            Job::Test(_) => Counts::FAILED,
            Job::Runner(_) => tally::of_runner(ended),
        }
    }
}

/// What is known at the end.
#[derive(Default)]
struct All {
    counts: Counts,
    kept: usize,
    times: Times,
    failures: Vec<String>,
}

/// Builds and runs what `arguments` name.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let wanted = Wanted::of(arguments)?;
    let mut all = All::default();
    let tests = match wanted.runners_only {
        true => Vec::new(),
        false => built(&wanted, &mut all.times)?,
    };
    for step in &wanted.steps {
        build(step, &mut all.times)?;
    }
    let tests = tests.into_iter().map(Job::Test);
    let runners = wanted.runners.into_iter().map(Job::Runner);
    let queue = in_order(tests.chain(runners).collect(), &known_times());
    let all = run_all(queue, threads(), all);
    Ok(all.close())
}

/// The tests that are wanted, built.
fn built(wanted: &Wanted, times: &mut Times) -> Result<Vec<Test>, String> {
    println!("Building the tests");
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = suite::build(&cargo)?;
    note(times, "(build) tests", built.took);
    let mut tests = suite::list(&built.output, wanted.ignored)?;
    tests.retain(|it| wanted.has(&it.name));
    match tests.is_empty() {
        false => Ok(tests),
        true => Err(format!("no test is named {}", wanted.parts.join(" or "))),
    }
}

fn build(step: &[String], times: &mut Times) -> Result<(), String> {
    let name = format!("(build) {}", step.join(" "));
    let ended = child::run_with_errors_shown(&mut command(step));
    let ended = ended.map_err(|error| format!("{name} did not run: {error}"))?;
    if !ended.status.success() {
        return Err(format!("{name} failed: {}", ended.output));
    }
    note(times, &name, ended.took);
    Ok(())
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// One more than there are cores: some tests wait for the host's clock.
fn threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let set = std::env::var("TEST_THREADS").ok();
    set.and_then(|it| it.parse().ok()).unwrap_or(cores + 1)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs all jobs, so many at a time, and adds how they ended.
fn run_all(queue: VecDeque<Job>, at_once: usize, all: All) -> All {
    let (queue, all) = (Mutex::new(queue), Mutex::new(all));
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(job) = next(&queue) {
                    let ended = job.run();
                    locked(&all).note(&job, ended);
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A function of its own, so that the lock is not held while the job runs.
fn next(queue: &Mutex<VecDeque<Job>>) -> Option<Job> {
    locked(queue).pop_front()
}

fn known_times() -> Times {
    let mut known = Times::read(Path::new(KNOWN_TIMES)).unwrap_or_default();
    known.update(Times::read(Path::new(TIMES)).unwrap_or_default());
    known
}

/// The longest first, so that none runs alone at the end.
fn in_order(jobs: Vec<Job>, known: &Times) -> VecDeque<Job> {
    let mut jobs: Vec<(f64, Job)> = jobs
        .into_iter()
        .map(|job| (known.cpu_s(&job.name()).unwrap_or(UNKNOWN_CPU_S), job))
        .collect();
    jobs.sort_by(|one, other| other.0.total_cmp(&one.0));
    jobs.into_iter().map(|(_, job)| job).collect()
}

fn note(times: &mut Times, name: &str, took: Took) {
    println!("{:7.1} CPU s {:7.1} s  {name}", took.cpu_s, took.wall_s);
    times.add(name, took);
}

impl All {
    fn note(&mut self, job: &Job, ended: io::Result<Ended>) {
        let name = job.name();
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => return self.fail(&name, &format!("it did not run: {error}")),
        };
        self.kept += ended.output.matches(KEPT).count();
        note(&mut self.times, &name, ended.took);
        let counts = job.counts(&ended);
        self.counts.passed += counts.passed;
        if counts.failed > 0 {
            let late = if ended.is_late {
                "it hung and was ended\n"
            } else {
                ""
            };
            self.fail(&name, &format!("{late}{}", ended.output));
            self.counts.failed += counts.failed - 1;
        }
    }

    fn fail(&mut self, name: &str, output: &str) {
        println!("FAILED: {name}\n{output}");
        self.counts.failed += 1;
        self.failures.push(name.to_owned());
    }

    /// Prints the closing lines.
    fn close(self) -> ExitCode {
        println!("\nWhat took longest:\n{}", self.times.slowest());
        let total_min = self.times.total_cpu_s() / 60.0;
        println!("{total_min:.1} CPU minutes in all; each test's are in {TIMES}");
        if let Err(error) = self.times.write(Path::new(TIMES)) {
            println!("They could not be written: {error}");
        }
        if self.kept > 0 {
            println!(
                "{} guests were not run, as the same had run before; FRESH=1 runs all",
                self.kept
            );
        }
        for name in &self.failures {
            println!("FAILED: {name}");
        }
        let Counts { passed, failed } = self.counts;
        println!("{passed} passed, {failed} failed");
        ExitCode::from(u8::from(failed > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(ToOwned::to_owned).collect()
    }

    fn runner(text: &str) -> Job {
        Job::Runner(words(text))
    }

    #[test]
    fn parts_of_names_and_runners_are_told_apart() {
        let line = "--ignored lab:: -- build make arm64 -- make check -- make fuzz";
        let wanted = Wanted::of(&words(line)).unwrap();
        assert!(wanted.ignored && wanted.has("guests lab::a_panic") && !wanted.has("sys a"));
        assert_eq!(wanted.steps, [words("make arm64")]);
        assert_eq!(wanted.runners, [words("make check"), words("make fuzz")]);
        assert!(Wanted::of(&words("--fast")).is_err());
    }

    #[test]
    fn the_longest_and_what_is_unknown_begin_first() {
        let mut known = Times::default();
        for (name, cpu_s) in [("short", 1.0), ("long", 90.0)] {
            known.add(name, Took { wall_s: 1.0, cpu_s });
        }
        let jobs = ["short", "new", "long"].map(runner).into_iter().collect();
        let order: Vec<String> = in_order(jobs, &known).iter().map(Job::name).collect();
        assert_eq!(order, ["long", "new", "short"]);
    }

    /// Each of two waits until the other runs, too.
    #[test]
    fn jobs_run_side_by_side() {
        let directory = tempfile::tempdir().unwrap();
        let meet = "touch $0; for i in $(seq 1000); do
            [ -e $1 ] && echo 1 passed, 0 failed && exit; sleep 0.01; done";
        let job = |own: &str, other: &str| {
            let [own, other] = [own, other].map(|it| directory.path().join(it));
            let words = [
                "sh",
                "-c",
                meet,
                own.to_str().unwrap(),
                other.to_str().unwrap(),
            ];
            Job::Runner(words.map(ToOwned::to_owned).to_vec())
        };
        let queue = VecDeque::from([job("one", "two"), job("two", "one")]);
        let all = run_all(queue, 2, All::default());
        assert_eq!(
            all.counts,
            Counts {
                passed: 2,
                failed: 0
            }
        );
    }

    #[test]
    fn failures_are_counted_and_what_does_not_start_is_one() {
        let mut all = All::default();
        for text in [
            "echo 2 passed, 0 failed",
            "echo 1 passed, 2 failed",
            "/nonexistent",
            "echo",
        ] {
            let job = runner(text);
            all.note(&job, job.run());
        }
        assert_eq!(
            all.counts,
            Counts {
                passed: 3,
                failed: 4
            }
        );
        assert_eq!(all.failures.len(), 3);
    }
}
