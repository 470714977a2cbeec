//! Progress of ageing a device.

use crate::progress;
use indicatif::ProgressBar;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time without any output.
const QUIET: Duration = Duration::from_secs(5);

/// A bar on a terminal, otherwise a line.
#[derive(Default)]
pub struct Ageing {
    begun: OnceLock<Instant>,
    bar: OnceLock<ProgressBar>,
}

impl Ageing {
    /// Called with pages written so far and in all.
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
