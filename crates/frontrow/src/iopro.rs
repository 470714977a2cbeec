//! `frontrow iopro`: who waits for what.

mod export;
pub(crate) mod linked;
pub(crate) mod reading;
mod record;
mod report;
pub mod scope;
mod watching;

use crate::exit::Failure;
use clap::Subcommand;

/// Show which tasks wait for storage, and why, from the system call to the flash chip
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Record all I/O while a command, a process, a cgroup or the system runs
    ///
    /// All I/O of the system is recorded, since a process mostly waits for the I/O of others. The
    /// arguments choose whose waits the report is about, and when the recording ends. It needs
    /// root.
    Record(record::Record),
    /// Report who waited, how long, in which layer and why
    Report(report::Report),
    /// Write a recording in the format of another tool
    Export(export::Export),
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.action {
        Action::Record(args) => record::run(args),
        Action::Report(args) => report::run(&args),
        Action::Export(args) => export::run(&args),
    }
}
