//! `frontrow launch bench`: an app's cold start with and without loading.

use super::profile_name;
use crate::bench::{catch_signals, json, print_text};
use crate::exit::{Exit, Failure};
use ::launch::WorkingSet;
use ::launch::profile::{Store, Timing};
use ::launch::residency::forget;
use serde_json::json;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Bench {
    /// The profile's name [default: the program's]
    #[arg(long)]
    name: Option<String>,
    /// Starts of each kind
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Keep in the profile which kind was fastest, so that the app starts that way
    #[arg(long)]
    keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The app and arguments with which it ends by itself
    #[arg(
        value_name = "APP",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

const KINDS: [(&str, Timing, &str); 3] = [
    ("never", Timing::Never, "by demand, as without Frontrow"),
    ("before", Timing::Before, "loaded, then started"),
    ("beside", Timing::Beside, "loaded while it starts"),
];

/// Does what the command line says.
pub fn run(args: &Bench) -> Result<(), Failure> {
    let name = profile_name(args.name.as_deref(), &args.command[0])?;
    let store = Store::of_user()?;
    let mut profile = store.read(&name)?;
    let stop = catch_signals()?;
    let mut times: [Vec<Duration>; 3] = Default::default();
    for run in 0..args.runs {
        eprintln!("[{}/{}] {name}", run + 1, args.runs);
        // In turns, so that what changes meanwhile changes for all.
        for ((kind, ..), times) in KINDS.iter().zip(&mut times) {
            make_cold(&WorkingSet::open(&profile))?;
            times.push(start(kind, &name, &args.command)?);
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::new(Exit::Interrupted, "interrupted"));
            }
        }
    }
    let medians = times.map(median);
    if args.keep {
        let fastest = (0..KINDS.len()).min_by_key(|&kind| medians[kind]);
        profile.timing = KINDS[fastest.unwrap_or_default()].1;
        store.write(&name, &profile)?;
    }
    match args.json {
        true => print_text(&json(&as_json(&medians))?),
        false => print_text(&in_words(&medians)),
    }
}

/// Root empties the page cache; others take out what the profile has.
fn make_cold(set: &WorkingSet) -> Result<(), Failure> {
    // SAFETY: has no arguments, and waits until what is dirty is written.
    unsafe { libc::sync() };
    if fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok(());
    }
    let failed = |error: io::Error| {
        let sentence = format_args!("cannot take the app out of memory: {error}");
        Failure::new(Exit::Internal, sentence)
    };
    set.files
        .iter()
        .try_for_each(|opened| forget(&opened.file))
        .map_err(failed)
}

fn start(kind: &str, name: &str, command: &[OsString]) -> Result<Duration, Failure> {
    let failed = |error: io::Error| {
        let sentence = format_args!("cannot start this program again: {error}");
        Failure::new(Exit::Internal, sentence)
    };
    let mut launch = Command::new("/proc/self/exe");
    launch
        .args(["launch", "--timing", kind, "--name", name, "--"])
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let begun = Instant::now();
    let status = launch.status().map_err(failed)?;
    let elapsed = begun.elapsed();
    match status.success() {
        true => Ok(elapsed),
        false => Err(Failure::new(
            Exit::Usage,
            format_args!("the app failed ({status}): give arguments with which it does not"),
        )),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn in_words(medians: &[Duration; 3]) -> String {
    let mut text = String::from("cold start, median\n");
    for ((.., words), time) in KINDS.iter().zip(medians) {
        let change = time.as_secs_f64() / medians[0].as_secs_f64() - 1.0;
        text += &format!(
            "{:>9.1} ms {:>+6.1} %  {words}\n",
            time.as_secs_f64() * 1e3,
            change * 100.0
        );
    }
    text
}

fn as_json(medians: &[Duration; 3]) -> serde_json::Value {
    let ms = |kind: usize| medians[kind].as_secs_f64() * 1e3;
    json!({ "demand_ms": ms(0), "before_ms": ms(1), "beside_ms": ms(2) })
}
