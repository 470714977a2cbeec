//! `frontrow launch record`: records the pages of an app's start.

use super::bench::{measure, measured_as_json, timing_name, whether_it_gains};
use super::capture::Watcher;
use super::profile_name;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use ::launch::profile::{PAGE_BYTES, Profile, Store};
use ::launch::record::{Error, Request, record};
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Record {
    /// Name of the profile [default: what the app is, such as org.app.Id, snap.NAME or its program]
    #[arg(long)]
    name: Option<String>,
    /// Number of recorded starts; the profile has the pages that they have in common
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Duration of a start in seconds; then the app is asked to end
    #[arg(long, default_value = "10", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Number of cold starts of each kind, loaded and not, that tell whether loading gains; 0 for
    /// none
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(0..=100))]
    tries: u32,
    /// Make a profile of an app that fails, too
    #[arg(long)]
    failing: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The app and its arguments
    #[arg(last = true, required = true, value_name = "APP")]
    command: Vec<OsString>,
}

/// Runs the subcommand.
pub fn run(args: Record) -> Result<(), Failure> {
    let name = profile_name(args.name.as_deref(), &args.command)?;
    let store = Store::of_user()?;
    store.path(&name)?;
    let stop = catch_signals()?;
    let request = Request {
        command: args.command,
        runs: args.runs,
        limit: Duration::from_secs(args.seconds),
        failing: args.failing,
    };
    let mut watcher = Watcher::best();
    let recorded = record(
        &request,
        &stop,
        |request| watcher.watch(request, &stop),
        |run, runs| eprintln!("[{}/{runs}] {name} starts and is recorded", run + 1),
    )?;
    let mut profile = recorded.profile;
    // Earlier measurements of the app remain valid.
    if let Ok(before) = store.read(&name) {
        (profile.timing, profile.measured) = (before.timing, before.measured);
    }
    let mut path = store.write(&name, &profile)?;
    if recorded.ends && !request.failing && args.tries > 0 {
        eprintln!("{name} starts cold, loaded and not, to tell whether loading gains");
        measure(&mut profile, &name, &request.command, args.tries, &stop)?;
        path = store.write(&name, &profile)?;
    }
    match args.json {
        true => print_text(&json(&as_json(&profile, watcher, &path))?),
        false => {
            eprintln!("{}", in_words(&profile, &path));
            Ok(())
        }
    }
}

fn in_words(profile: &Profile, path: &Path) -> String {
    format!(
        "{} pages ({:.1} MB) of {} files, touched by each of {} starts, in {}. {}",
        profile.pages(),
        (profile.pages() * PAGE_BYTES) as f64 / 1e6,
        profile.files.len(),
        profile.runs,
        path.display(),
        whether_it_gains(profile)
    )
}

fn as_json(profile: &Profile, watcher: Watcher, path: &Path) -> serde_json::Value {
    json!({
        "profile": path,
        "command": profile.command,
        "runs": profile.runs,
        "source": watcher.name(),
        "files": profile.files.len(),
        "pages": profile.pages(),
        "bytes": profile.pages() * PAGE_BYTES,
        "metadata_pages": profile.metadata_pages(),
        "timing": timing_name(profile.timing),
        "measured": measured_as_json(profile),
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Start { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Exit::Missing,
                _ => source.into(),
            },
            Error::NoTrace(_) => Exit::Permission,
            Error::System(source) => source.into(),
            Error::Watcher(_) => Exit::Internal,
            Error::Nothing => Exit::Unsupported,
            Error::Failed(_) => Exit::Refused,
            Error::Knob(_) => Exit::Internal,
            Error::Interrupted => Exit::Interrupted,
        };
        Failure::new(exit, error)
    }
}
