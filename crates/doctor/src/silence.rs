//! Times in which a disk had requests and finished none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use sys::device::Statistics;

/// Interval at which the disks' statistics are looked at.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// Number of requests that were finished at the last look.
    finished: u64,
    /// For how long it has been silent.
    since: Option<Duration>,
    longest: Duration,
}

/// Silences of all disks.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    looked: Option<Duration>,
    disks: BTreeMap<String, Silence>,
}

impl Silences {
    /// Looks if it is due, `elapsed` after the begin.
    pub fn turn(&mut self, root: &Path, elapsed: Duration) {
        if self.looked.is_some_and(|it| elapsed < it + LOOK) {
            return;
        }
        self.looked = Some(elapsed);
        let entries = fs::read_dir(root.join("sys/block")).into_iter().flatten();
        for entry in entries.flatten() {
            let text = fs::read_to_string(entry.path().join("stat"));
            let Some(now) = Statistics::parse(&text.unwrap_or_default()) else {
                continue;
            };
            let name = entry.file_name().to_string_lossy().into_owned();
            let disk = self.disks.entry(name).or_default();
            let finished = now.reads + now.writes + now.others;
            if now.in_flight == 0 || finished != disk.finished {
                disk.since = (now.in_flight > 0).then_some(elapsed);
            }
            disk.finished = finished;
            let silent = elapsed.saturating_sub(disk.since.unwrap_or(elapsed));
            disk.longest = disk.longest.max(silent);
        }
    }

    /// Forgets the silences that are over.
    pub fn begin_anew(&mut self) {
        for disk in self.disks.values_mut() {
            disk.longest = Duration::ZERO;
        }
    }

    /// Longest silence of a disk.
    pub fn longest_ns(&self, disk: &str) -> u64 {
        let disk = self.disks.get(disk);
        disk.map_or(0, |it| it.longest.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_silent_while_it_has_requests_and_finishes_none() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("sys/block/sda");
        fs::create_dir_all(&at).unwrap();
        let mut silences = Silences::default();
        // Milliseconds, finished writes, requests in flight.
        for (ms, writes, in_flight) in [
            (0, 5, 2),
            (300, 6, 2),
            (600, 6, 2),
            (1800, 6, 2),
            (2100, 7, 1),
            (2400, 7, 0),
            (9000, 7, 0),
        ] {
            let stat = format!("1 0 8 5 {writes} 0 16 20 {in_flight} 9 25 0 0 0 0 0 0\n");
            fs::write(at.join("stat"), stat).unwrap();
            silences.turn(root.path(), Duration::from_millis(ms));
        }
        assert_eq!(silences.longest_ns("sda"), 1_500_000_000);
        assert_eq!(silences.longest_ns("sdb"), 0);
    }
}
