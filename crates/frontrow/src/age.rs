//! `frontrow-lab age`: months of a phone's use in a directory.

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::progress;
use ::workload::age::{Aged, Error, Use};
use record::number::count;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use sys::PathError;

/// Use DIR like a phone for months, which fragments its files
///
/// Six apps write databases, caches and logs in turn, and are updated every ten days. Photos are
/// added and deleted so that the file system is equally full on the last day and the first. The
/// same seed makes the same calls; the file system decides on placement. Use a file system without
/// other files. The files stay: measure them with `frontrow defrag --check`, save their layout with
/// `frontrow snapshot`.
#[derive(clap::Args)]
pub struct Args {
    /// An empty directory; it is made if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Number of days
    #[arg(long, value_name = "N", default_value_t = Use::DAYS,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    days: u32,

    /// Number of ten-minute uses of an app on each day
    #[arg(long, value_name = "N", default_value_t = Use::SESSIONS,
          value_parser = clap::value_parser!(u32).range(1..=144))]
    sessions: u32,

    /// Part of the file system, or of --size, that is in use
    #[arg(long, value_name = "PERCENT", default_value_t = Use::FILL,
          value_parser = clap::value_parser!(u32).range(10..=95))]
    fill: u32,

    /// Size of the phone in megabytes [default: the file system's]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(8..=100_000_000))]
    size: Option<u64>,

    /// Seed of the writes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    let directory = &args.directory;
    empty(directory)?;
    let (capacity_bytes, others_bytes) = match args.size {
        Some(megabytes) => (megabytes * 1_000_000, 0),
        None => room(directory)?,
    };
    let used_bytes = capacity_bytes / 100 * u64::from(args.fill);
    let of = Use {
        days: args.days,
        sessions: args.sessions,
        capacity_bytes,
        target_bytes: used_bytes.saturating_sub(others_bytes),
        seed: args.seed,
    };
    let stop = catch_signals()?;
    let bar = progress::bar("{wide_bar} day {pos} of {len}, {eta} left");
    let mut shown = |day: u32, days: u32| {
        bar.set_length(days.into());
        bar.set_position(day.into());
    };
    let aged = ::workload::age::age(of, directory, &mut shown, &stop);
    bar.finish_and_clear();
    let aged = aged.map_err(|error| failed(error, directory))?;
    match args.json {
        true => print_text(&json(&aged)?),
        false => print_text(&text(&aged)),
    }
}

/// Checks that the directory is empty.
fn empty(directory: &Path) -> Result<(), Failure> {
    let wrong = |error: io::Error| {
        let exit = match error.kind() {
            io::ErrorKind::PermissionDenied => Exit::Permission,
            _ => Exit::Usage,
        };
        let path = directory.display();
        Failure::new(exit, format_args!("cannot use {path}: {error}"))
    };
    fs::create_dir_all(directory).map_err(wrong)?;
    for entry in fs::read_dir(directory).map_err(wrong)? {
        // mke2fs makes lost+found, which is no user file.
        if entry.map_err(wrong)?.file_name() != "lost+found" {
            return Err(Failure::new(
                Exit::Refused,
                format_args!(
                    "{} is not empty: name a directory that is, or is not there yet",
                    directory.display()
                ),
            ));
        }
    }
    Ok(())
}

/// Size of the file system and its used part, in bytes.
fn room(directory: &Path) -> Result<(u64, u64), Failure> {
    let room = ::workload::age::room(directory).map_err(|error| failed(error, directory))?;
    Ok((room.capacity_bytes, room.used_bytes()))
}

fn text(aged: &Aged) -> String {
    let mut text = format!(
        "{} days passed in {} sessions: {} MB written, {} MB in files\n",
        count(aged.days.into()),
        count(aged.sessions as f64),
        count((aged.written_bytes / 1_000_000) as f64),
        count((aged.files_bytes / 1_000_000) as f64),
    );
    for app in &aged.apps {
        let dof_l = match app.dof_l {
            Some(dof_l) => format!("{dof_l:.2}"),
            None => "not told by this file system".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {:<10} {:>6} files {:>7} MB   DoF_L {dof_l}",
            app.name,
            count(app.files as f64),
            count((app.bytes / 1_000_000) as f64),
        );
    }
    text
}

fn failed(error: Error, directory: &Path) -> Failure {
    let exit = match &error {
        Error::Interrupted => {
            return Failure::new(
                Exit::Interrupted,
                format_args!(
                    "interrupted: what was written is in {}, remove it to begin again",
                    directory.display()
                ),
            );
        }
        Error::NoSpace(_) => Exit::DiskFull,
        Error::TooSmall { .. } => Exit::Refused,
        Error::Io(PathError { source, .. }) => source.into(),
    };
    Failure::new(exit, error)
}
