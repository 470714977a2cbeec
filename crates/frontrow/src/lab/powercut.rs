//! `frontrow-lab powercut`.

use super::device;
use super::kernel::Choice;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::{atomic_file, progress};
use ::lab::{Cache, Sources};
use ::powercut::{Error, Outcome, Stream};
use record::number::{count, with_unit};
use std::fmt::Write;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Cut the power of a simulated phone at any operation, and check its files
///
/// A guest uses a small phone and defragments it, while the device records its commands. The same
/// flash core replays the commands on the host, once for each power cut: at each program and erase
/// of the defragmentation, and at random points of the recording. After each cut the device
/// recovers, e2fsck replays the journal and must find no other error, and all files that were not
/// being changed must be intact.
#[derive(clap::Args)]
pub struct PowerCut {
    #[command(flatten)]
    kernel: Choice,
    #[arg(long, default_value = "emmc",
          help = format!("Times and parallelism of the device: {}", device::values()))]
    device: String,
    /// Days of use; a defragmentation follows each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    days: u32,
    /// Number of cuts at random points, besides those at each operation of the defragmentation
    #[arg(long, value_name = "N", default_value_t = 1000)]
    points: u64,
    /// Seed of the use and of the random cuts
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Number of concurrent cuts [default: one for each core]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Read the recording from this file, instead of running a guest
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "device", "days"])]
    stream: Option<PathBuf>,
    /// Write the recording to this file
    #[arg(long, value_name = "FILE", conflicts_with = "stream")]
    keep: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: PowerCut) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let bytes = match &args.stream {
        Some(path) => fs::read(path).map_err(|error| {
            let path = path.display();
            Failure::new(Exit::Usage, format_args!("cannot read {path}: {error}"))
        })?,
        None => recorded(&args, &stop)?,
    };
    let stream = Stream::read(&bytes).map_err(|error| Failure::new(Exit::Usage, error))?;
    let request = ::powercut::Request {
        random_points: args.points,
        seed: args.seed,
        jobs: args.jobs.map_or_else(super::cores, Into::into),
    };
    let bar = progress::bar("{wide_bar} {pos}/{len} cuts, {eta} left");
    let shown = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let outcome = ::powercut::cut(&stream, request, &shown, &stop);
    bar.finish_and_clear();
    let outcome = outcome.map_err(failed)?;
    match args.json {
        true => print_text(&json(&outcome)?),
        false => print_text(&text(&outcome)),
    }
}

fn recorded(args: &PowerCut, stop: &AtomicBool) -> Result<Vec<u8>, Failure> {
    let keep = args
        .keep
        .as_deref()
        .map(atomic_file::AtomicFile::create)
        .transpose()?;
    let (sources, cache) = (Sources::here(), Cache::of_user()?);
    let request = ::lab::PowerCut {
        kernel: args.kernel.find(&cache)?,
        device: sources.device(&args.device)?,
        days: args.days,
        seed: args.seed,
    };
    let bytes = ::lab::record_stream(&cache, &sources, &request, stop)?;
    if let Some(keep) = keep {
        keep.write(&bytes)?;
    }
    Ok(bytes)
}

fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    let number = |it: u64| count(it as f64);
    let _ = writeln!(
        text,
        "{} commands, {} programs and erases; {} pages were moved without a program\n\
         the power was cut at each of the {} programs and erases of the defragmentation,\n\
         and at {} random points of ageing and defragmentation\n\
         after each: map and OOBs name each other, every page holds what was certain or written\n\
         since, e2fsck finds nothing, and of {} files read none is wrong\n\
         the longest recovery took {} of the device's time, for {} rows",
        number(outcome.commands),
        number(outcome.operations),
        number(outcome.elided_pages),
        number(outcome.defragmentation_operations),
        number(outcome.random_points),
        number(outcome.files_read),
        with_unit(outcome.recovery_ns_max as f64, "ns"),
        number(outcome.recovery_row_reads_max),
    );
    text
}

fn failed(error: Error) -> Failure {
    let exit = match &error {
        Error::Interrupted => Exit::Interrupted,
        Error::NoTool(_) => Exit::Missing,
        Error::Diverged(_) | Error::Mark(_) | Error::NoMarks | Error::Flash(_) => Exit::Usage,
        Error::Cut { what, .. } if matches!(**what, Error::NoTool(_)) => Exit::Missing,
        _ => Exit::Internal,
    };
    Failure::new(exit, error)
}
