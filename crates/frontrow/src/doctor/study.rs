//! `frontrow doctor --study`.

use super::{How, WATCHES, observe};
use crate::atomic_file::{unwritable, write_private_in};
use crate::exit::{Exit, Failure};
use crate::fleet::Partitions;
use crate::iopro::scope::duration;
use crate::print::{json, plain, print_text};
use crate::progress;
use doctor::study::{page, study};
use doctor::{Machine, fleet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::output::Directory;

/// Arguments of a study.
#[derive(clap::Args)]
pub struct Study {
    /// Measure for this time, such as 24h, and report by app and wait class the share of response
    /// time that apps wait for storage; Ctrl-C ends it early and keeps the data
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["seconds", "wanted", "recording"])]
    pub study: Option<Duration>,
    /// With --study: private directory for study.html, study.json and study.parquet
    #[arg(
        long,
        value_name = "DIR",
        requires = "study",
        default_value = "frontrow-study"
    )]
    out: PathBuf,
}

/// Measures for `length` and writes the study's files.
pub fn run(
    root: &Path,
    options: &Study,
    length: Duration,
    btf: Option<&[u8]>,
    as_json: bool,
    partition: Option<Partitions<1>>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let out = &options.out;
    // Better now than after a day.
    let directory = Directory::make(out).map_err(unwritable(out))?;
    let machine = Machine::look(root).map_err(super::failure)?;
    let how = How {
        length,
        until_stall: None,
        is_coarse: true,
        btf,
        kept: Some(WATCHES),
        recording: None,
        frames: None,
    };
    let watching = progress::watching(length);
    let seen = observe(root, machine, how, stop)?;
    watching.finish_and_clear();
    let mut found = study(&seen.seen, length.as_nanos() as u64);
    let why_not = seen.why_not.map(|why| format!("what level 1 does: {why}"));
    found.cannot_see.extend(why_not);
    let text = json(&found)?;
    let mut parquet = Vec::new();
    found
        .write_parquet(&mut parquet)
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let write = |name, content: &[u8]| write_private_in(&directory, out, name, content);
    write("study.json", text.as_bytes())?;
    write("study.html", page(&found).as_bytes())?;
    write("study.parquet", &parquet)?;
    if let Some(partition) = partition {
        let apps = fleet::apps(&found, &partition.origin);
        partition.write([apps])?;
    }
    match as_json {
        true => print_text(&text),
        false => print_text(&plain(&format!(
            "{}\nAll of it: {}\n",
            found.summary(),
            out.join("study.html").display()
        ))),
    }
}
