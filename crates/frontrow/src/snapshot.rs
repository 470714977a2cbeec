//! `frontrow snapshot`: the layout of a file system without its data.

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::progress;
use ::layout::snapshot::Error;
use clap::Subcommand;
use record::number::count;
use std::io;
use std::path::PathBuf;
use sys::PathError;
use sys::confine::{self, Confinement};

/// Save the layout of an ext4 file system without its data, and restore it elsewhere
///
/// A snapshot has the place of every file, but no content. So the fragmentation of a user's file
/// system can be measured on another device. A snapshot does have file names, and the content of
/// files below about 150 bytes that are kept in inodes.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Save the layout of a file system that is unmounted, or mounted read-only
    Save {
        /// A block device such as /dev/sda2, or an image of one
        source: PathBuf,
        /// The snapshot file, which must not exist
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Restore a saved layout on a device, or in a file
    ///
    /// On a device all used blocks are written, those of files with zeros: reads then take the time
    /// that the layout causes. A file gets holes instead.
    Restore {
        /// Snapshot file to restore
        file: PathBuf,
        /// An unused block device, or a file, which must not exist
        target: PathBuf,
        /// Overwrite the device; all of its data are lost
        #[arg(long)]
        overwrite: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.action {
        Action::Save { source, file, json } => save(&source, &file, json),
        Action::Restore {
            file,
            target,
            overwrite,
            json,
        } => restore(&file, &target, overwrite, json),
    }
}

fn confine(needs: Confinement) -> Result<(), confine::Error> {
    needs.begin().map(drop)
}

fn save(source: &std::path::Path, file: &std::path::Path, as_json: bool) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let saved = ::layout::snapshot::save(source, file, &confine, &stop).map_err(failed)?;
    if as_json {
        return print_text(&json(&saved)?);
    }
    let of = saved.filesystem;
    print_text(&format!(
        "{} kB of layout saved: {} files, directories and links, {} of {} MB in use\n",
        count(kilobytes(saved.bytes)),
        count(of.inodes as f64),
        count(megabytes(of.used_bytes)),
        count(megabytes(of.size_bytes)),
    ))
}

fn restore(
    file: &std::path::Path,
    target: &std::path::Path,
    overwrite: bool,
    as_json: bool,
) -> Result<(), Failure> {
    if target.symlink_metadata().is_ok() && !overwrite {
        return Err(Failure::new(
            Exit::Refused,
            format_args!(
                "{} is there already: --overwrite destroys all that is on a device",
                target.display()
            ),
        ));
    }
    let stop = catch_signals()?;
    let bar = progress::bar("{wide_bar} {bytes}/{total_bytes}, {eta} left");
    let mut shown = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let restored = ::layout::snapshot::restore(file, target, &mut shown, &confine, &stop);
    bar.finish_and_clear();
    let restored = restored.map_err(failed)?;
    if as_json {
        return print_text(&json(&restored)?);
    }
    let of = restored.filesystem;
    print_text(&format!(
        "{} files, directories and links laid out in {} MB of {}, {} MB in use\n\
         Names, modes and device nodes are as the snapshot's maker wanted: mount it with -o nosuid,nodev\n",
        count(of.inodes as f64),
        count(megabytes(of.size_bytes)),
        target.display(),
        count(megabytes(of.used_bytes)),
    ))
}

fn kilobytes(bytes: u64) -> f64 {
    (bytes / 1000) as f64
}

fn megabytes(bytes: u64) -> f64 {
    (bytes / 1_000_000) as f64
}

fn failed(error: Error) -> Failure {
    let exit = match &error {
        Error::Interrupted => Exit::Interrupted,
        Error::NoFilesystem(_) => Exit::Unsupported,
        Error::Mounted(_) | Error::Unsound(_) | Error::Exists(_) | Error::TooSmall { .. } => {
            Exit::Refused
        }
        Error::Damaged { .. } => Exit::Usage,
        Error::TooMuch { .. } | Error::Exhausted => Exit::Refused,
        Error::NoTool(_) => Exit::Missing,
        Error::NoSpace(_) => Exit::DiskFull,
        Error::Tool { .. } | Error::Rights(_) => Exit::Internal,
        Error::Io(PathError { path, source, .. }) => match source.kind() {
            io::ErrorKind::ResourceBusy => {
                return Failure::new(
                    Exit::Refused,
                    format_args!("{} is in use: unmount what is on it", path.display()),
                );
            }
            _ => source.into(),
        },
    };
    Failure::new(exit, error)
}
