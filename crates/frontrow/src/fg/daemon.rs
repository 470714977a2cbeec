//! `frontrow fg daemon`, which is `frontrowd`.

use super::{failure, stop_signal};
use crate::exit::Failure;
use clap::Args;
use foreground::Daemon;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

#[derive(Args)]
pub struct Options {
    /// Undo all changes when apps of the same user have been the foreground for this time, until
    /// the focus changes; 0 for never
    #[arg(long, value_name = "MINUTES", default_value = "240")]
    limit: u64,
}

/// Serves until a signal ends it.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let limit = Duration::from_secs(60 * options.limit);
    let limit = Some(limit).filter(|limit| !limit.is_zero());
    let stop = stop_signal()?;
    let mut log = |line: &str| eprintln!("{line}");
    let daemon = Daemon::start(root, limit, &mut log).map_err(failure)?;
    daemon.run(stop.as_fd()).map_err(failure)
}
