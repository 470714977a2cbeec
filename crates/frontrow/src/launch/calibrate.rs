//! `frontrow launch calibrate`: measures a device's read time by size.

use super::latency_path;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::progress;
use ::launch::Latency;
use ::launch::calibrate::{SPAN_BYTES, calibrate};
use ::launch::load::Error;
use ::launch::prepare::device_name;
use ::launch::profile::Store;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Number of batches for the median of each size.
const ROUNDS: usize = 9;

#[derive(clap::Args)]
pub struct Calibrate {
    /// A directory on the device; 17 MB are written there during the measurement
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: &Calibrate) -> Result<(), Failure> {
    let store = Store::of_user()?;
    let stop = catch_signals()?;
    let failed = |error: io::Error| {
        let place = args.directory.display();
        Failure::new((&error).into(), format_args!("cannot use {place}: {error}"))
    };
    let number = fs::metadata(&args.directory).map_err(failed)?.dev();
    let device = device_name(number).map_err(|_| {
        let place = args.directory.display();
        let sentence =
            format_args!("{place} is on no block device of this machine: give a directory on one");
        Failure::new(Exit::Unsupported, sentence)
    })?;
    let file = filled(&args.directory).map_err(failed)?;
    let bar = progress::bar("{wide_bar} {pos}/{len} batches, {eta} left");
    let mut chance = File::open("/dev/urandom").map_err(failed)?;
    let random = || {
        let mut bytes = [0; 8];
        // After a failed read it stays 0, which is as good a place.
        let _ = chance.read_exact(&mut bytes);
        u64::from_le_bytes(bytes)
    };
    let measured = calibrate(&file, SPAN_BYTES, ROUNDS, random, |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        !stop.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    let table = measured.map_err(|error| match error {
        Error::System(error) if error.kind() == io::ErrorKind::Interrupted => {
            Failure::new(Exit::Interrupted, "interrupted")
        }
        error => Failure::new(Exit::Unsupported, error),
    })?;
    let path = latency_path(&store, &device);
    keep(&path, &table).map_err(failed)?;
    match args.json {
        true => print_text(&json(&table)?),
        false => print_text(&in_words(&device, &table, &path)),
    }
}

/// A file with data, without a name or cached pages.
fn filled(directory: &Path) -> io::Result<File> {
    let named = tempfile::NamedTempFile::new_in(directory)?;
    let mut file = named.as_file();
    let mut data = vec![0; 1 << 20];
    for (index, byte) in data.iter_mut().enumerate() {
        *byte = (index / 4096 * 7 + index) as u8;
    }
    for _ in 0..SPAN_BYTES.div_ceil(data.len() as u64) {
        file.write_all(&data)?;
    }
    file.sync_all()?;
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(named.path())
}

fn keep(path: &Path, table: &Latency) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer(&mut file, table)?;
    file.persist(path)?;
    Ok(())
}

fn in_words(device: &str, table: &Latency, path: &Path) -> String {
    let mut text = format!("{device}: time a read takes in a full queue\n");
    for kib in [4, 8, 16, 32, 64, 128, 256, 512] {
        let microseconds = table.read_ns(kib << 10) as f64 / 1e3;
        text += &format!("{kib:>4} KB {microseconds:>8.0} µs\n");
    }
    text + &format!("kept in {}\n", path.display())
}
