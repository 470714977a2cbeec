//! Time that this thread spends in `balance_dirty_pages`, where the kernel makes tasks that dirty
//! pages wait for writeback.
//!
//! A private tracing instance sums the `pause` of the event `writeback:balance_dirty_pages` for one
//! thread in a kernel histogram (Documentation/trace/histogram.rst). No events are copied, and none
//! are lost. The pause is the time that the kernel sleeps, rounded to its tick.

use crate::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EVENT: &str = "events/writeback/balance_dirty_pages";

/// A measurement in progress, whose drop removes its tracing instance.
pub(crate) struct Throttle {
    instance: PathBuf,
}

impl Throttle {
    /// Begins a measurement of the calling thread. `tracefs` is the mount point of tracefs.
    pub(crate) fn start(tracefs: &Path) -> Result<Self, Error> {
        // SAFETY: has no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        let instance = tracefs.join(format!("instances/frontrow-{thread}"));
        fs::create_dir(&instance).map_err(|source| unusable(&instance, &source))?;
        let throttle = Throttle { instance };
        let trigger = throttle.instance.join(EVENT).join("trigger");
        let sum = format!("hist:keys=common_pid:vals=pause if common_pid == {thread} && pause > 0");
        fs::write(&trigger, sum).map_err(|source| unusable(&trigger, &source))?;
        Ok(throttle)
    }

    /// Ends the measurement and returns the time waited.
    pub(crate) fn finish(self) -> Result<Duration, Error> {
        let path = self.instance.join(EVENT).join("hist");
        let text = fs::read_to_string(&path).map_err(|source| unusable(&path, &source))?;
        let pause_ms = total_pause_ms(&text).ok_or_else(|| Error::Interface {
            path,
            reason: "its text has no 'pause:' where the kernel's histograms have it".to_owned(),
        })?;
        Ok(Duration::from_millis(pause_ms))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let trigger = self.instance.join(EVENT).join("trigger");
        // Both change only our own instance; one that is left over traces nothing else.
        let _ = fs::write(trigger, "!hist:keys=common_pid:vals=pause");
        let _ = fs::remove_dir(&self.instance);
    }
}

fn unusable(path: &Path, source: &io::Error) -> Error {
    Error::Interface {
        path: path.to_owned(),
        reason: format!(
            "time in dirty throttling needs root and tracefs with hist triggers ({source})"
        ),
    }
}

/// Sum over the histogram's entries, such as `{ common_pid: 71 } hitcount: 12  pause: 480`. Without
/// entries there was no wait.
fn total_pause_ms(text: &str) -> Option<u64> {
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            let (_, after) = line.split_once("pause:")?;
            after.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_summed_and_none_is_zero() {
        let text = "# event histogram\n#\n\n\
                    { common_pid:         71 } hitcount:         12  pause:        480\n\n\
                    Totals:\n    Hits: 12\n    Entries: 1\n    Dropped: 0\n";
        assert_eq!(total_pause_ms(text), Some(480));
        assert_eq!(
            total_pause_ms("# event histogram\n\nTotals:\n    Hits: 0\n"),
            Some(0)
        );
        assert_eq!(total_pause_ms("{ common_pid: 71 } hitcount: 12\n"), None);
    }

    #[test]
    fn a_missing_tracefs_says_what_is_needed() {
        let error = Throttle::start(Path::new("/nonexistent")).err().unwrap();
        assert!(
            error.to_string().contains("needs root and tracefs"),
            "{error}"
        );
    }
}
