//! How far ageing a device is, if it takes long.

use crate::progress;
use indicatif::ProgressBar;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Until then nobody wonders.
const QUIET: Duration = Duration::from_secs(5);

/// On a terminal a bar, elsewhere a line.
#[derive(Default)]
pub struct Ageing {
    begun: OnceLock<Instant>,
    bar: OnceLock<ProgressBar>,
}

impl Ageing {
    /// So many pages of all were written.
    pub fn hear(&self, written: u64, all: u64) {
        if self.begun.get_or_init(Instant::now).elapsed() < QUIET {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let bar = progress::bar("ageing the device {wide_bar} {percent} %, {eta} left");
            if bar.is_hidden() {
                eprintln!("ageing the device, once for all runs with it");
            }
            bar
        });
        bar.set_length(all);
        bar.set_position(written);
        if written >= all {
            bar.finish_and_clear();
        }
    }
}
