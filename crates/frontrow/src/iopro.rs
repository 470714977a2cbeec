//! `frontrow iopro`: who waits for what.

pub mod chosen;
mod export;
pub(crate) mod linked;
mod record;
mod report;
mod top;

use crate::exit::Failure;
use clap::Subcommand;

/// See who waits for what, from the system call to the flash chip
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Record what happens to all I/O, for a command, a process, a cgroup or the whole system
    ///
    /// Everything is recorded whatever is chosen, since a process mostly waits for others; what is
    /// chosen is whose waiting reports are about, and when the recording ends. It needs root.
    Record(record::Record),
    /// Say who waited, how long, in which layer and why
    Report(report::Report),
    /// Show live who waits, how long, in which layer and why
    ///
    /// The same as of a recording's report, for each second anew: of waits that ended in it. Of
    /// what is over nothing is kept. On a terminal each replaces the one before; elsewhere they
    /// come one after the other. It needs root. Without a choice it is about the whole system,
    /// until Ctrl-C.
    Top(top::Top),
    /// Write a recording in the format of another tool
    Export(export::Export),
}

/// Does what the command line says.
pub fn run(args: Args) -> Result<(), Failure> {
    match args.action {
        Action::Record(args) => record::run(args),
        Action::Report(args) => report::run(&args),
        Action::Top(args) => top::run(args),
        Action::Export(args) => export::run(&args),
    }
}
