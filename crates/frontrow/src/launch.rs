//! `frontrow launch`: an app's working set in a few large reads.

mod bench;
mod calibrate;
mod capture;
mod exec;
mod install;
mod name;
mod plan;
mod record;
pub mod resume;
mod start;

use crate::exit::{Exit, Failure};
use ::launch::Latency;
use ::launch::profile::{PAGE_BYTES, Store, StoreError, Timing};
use clap::{Subcommand, ValueEnum};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use sys::PathError;

/// Start an app faster: load the pages that its start needs in a few large reads, then start it
///
/// `frontrow launch record -- APP` makes the profile. An app with the name of a subcommand is
/// started by `frontrow launch -- APP`. A missing or invalid profile never prevents the start.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Name of the profile [default: what the app is, such as org.app.Id, snap.NAME or its program]
    #[arg(long)]
    name: Option<String>,

    /// When to load; overrides the profile
    #[arg(long, value_enum, hide = true)]
    timing: Option<When>,

    /// The app and its arguments
    #[arg(
        value_name = "APP",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

#[derive(Subcommand)]
enum Action {
    /// Start an app and record the pages that its start touches
    Record(record::Record),
    /// Show the planned reads, and draw them as a map of the device's blocks
    Plan(plan::Plan),
    /// Load the pages of an app that runs, and whose pages were evicted
    Resume(resume::Resume),
    /// Start an app through Frontrow whenever its menu entry or systemd unit starts it
    Install(install::Install),
    /// Measure the device's read time by size, which decides which gaps are read
    Calibrate(calibrate::Calibrate),
    /// Compare an app's cold start with and without loading on this machine
    Bench(bench::Bench),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    Before,
    Beside,
    Never,
}

impl From<When> for Timing {
    fn from(when: When) -> Timing {
        match when {
            When::Before => Timing::Before,
            When::Beside => Timing::Beside,
            When::Never => Timing::Never,
        }
    }
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    // Without a profile an app starts as it would by itself.
    if args.action.is_some() {
        check_pages(rustix::param::page_size() as u64)?;
    }
    match args.action {
        Some(Action::Record(args)) => record::run(args),
        Some(Action::Plan(args)) => plan::run(&args),
        Some(Action::Resume(args)) => resume::run(&args),
        Some(Action::Install(args)) => install::run(&args),
        Some(Action::Calibrate(args)) => calibrate::run(&args),
        Some(Action::Bench(args)) => bench::run(&args),
        None => start::run(args.name, args.timing.map(Timing::from), &args.command),
    }
}

/// Profiles are of pages of 4 KB. Some arm64 kernels have larger ones.
fn check_pages(page_bytes: u64) -> Result<(), Failure> {
    if page_bytes == PAGE_BYTES {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Unsupported,
        format_args!(
            "this kernel has pages of {} KB, and frontrow launch works with those of 4 KB only: boot a kernel that has them",
            page_bytes >> 10
        ),
    ))
}

/// Name of the profile: as given, or by what the app is.
fn profile_name(name: Option<&str>, command: &[OsString]) -> Result<String, Failure> {
    let name = name.map(str::to_owned).or_else(|| {
        let words: Vec<_> = command.iter().map(|it| it.to_string_lossy()).collect();
        let words: Vec<&str> = words.iter().map(|it| it.as_ref()).collect();
        name::of(&words)
    });
    name.ok_or_else(|| Failure::new(Exit::Usage, "the app has no name: give one with --name"))
}

/// Path of a device's table of read times.
fn latency_path(store: &Store, device: &str) -> PathBuf {
    let name = device.replace('/', "!");
    store.directory().join(format!("latency-{name}.json"))
}

/// A device's table of read times; None if it was not calibrated.
fn latency(store: &Store, device: &str) -> Option<Latency> {
    let text = fs::read_to_string(latency_path(store, device)).ok()?;
    serde_json::from_str(&text).ok()
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::Name(_) | StoreError::NoPlace => Exit::Usage,
            StoreError::Missing { .. } => Exit::Missing,
            StoreError::NotOwn { .. } | StoreError::Bad { .. } => Exit::Refused,
            StoreError::File(PathError { source, .. }) => source.into(),
        };
        Failure::new(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_pages_are_refused_with_a_sentence() {
        assert!(check_pages(4096).is_ok());
        let refused = check_pages(16 << 10).unwrap_err();
        assert_eq!(refused.exit, Exit::Unsupported);
        assert!(
            refused.sentence.contains("pages of 16 KB"),
            "{}",
            refused.sentence
        );
    }
}
