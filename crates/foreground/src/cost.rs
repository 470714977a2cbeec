//! Waits and I/O of background cgroups.

use crate::Cgroup;
use crate::cgroup::field;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::ops::{Add, Sub};
use std::path::Path;

/// Waits and I/O of cgroups, as the kernel counts them for each cgroup. Waits for other reasons are
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Time in microseconds in which at least one task waited for I/O (`io.pressure`, some); None
    /// if the kernel does not count it.
    pub io_wait_us: Option<u64>,
    /// The same for memory (`memory.pressure`).
    pub memory_wait_us: Option<u64>,
    /// Number of times that `memory.high` triggered reclaim.
    pub limit_hits: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes written to disks.
    pub written_bytes: u64,
}

impl Cost {
    /// Counters since the cgroup was made.
    fn of(root: &Path, cgroup: &Cgroup) -> Self {
        let read = |name: &str| fs::read_to_string(cgroup.file(root, name)).unwrap_or_default();
        let io_stat = read("io.stat");
        Cost {
            io_wait_us: stalled_us(&read("io.pressure")),
            memory_wait_us: stalled_us(&read("memory.pressure")),
            limit_hits: field(&read("memory.events"), "high").unwrap_or(0),
            read_bytes: sum(&io_stat, "rbytes="),
            written_bytes: sum(&io_stat, "wbytes="),
        }
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        self.each(other, u64::saturating_add)
    }
}

impl Sub for Cost {
    type Output = Cost;

    /// The counters of a cgroup that was made again are lower than before.
    fn sub(self, other: Cost) -> Cost {
        self.each(other, u64::saturating_sub)
    }
}

impl Cost {
    fn each(self, other: Cost, of: fn(u64, u64) -> u64) -> Cost {
        let either = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(of(one, two)),
            (one, two) => one.or(two),
        };
        Cost {
            io_wait_us: either(self.io_wait_us, other.io_wait_us),
            memory_wait_us: either(self.memory_wait_us, other.memory_wait_us),
            limit_hits: of(self.limit_hits, other.limit_hits),
            read_bytes: of(self.read_bytes, other.read_bytes),
            written_bytes: of(self.written_bytes, other.written_bytes),
        }
    }
}

/// Counters of each cgroup, from the time that it became background.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    began: BTreeMap<Cgroup, Cost>,
}

impl Meter {
    /// Follows a change of the background: continues for cgroups that stay, starts for new ones and
    /// drops the others.
    pub fn follow(&mut self, root: &Path, background: &[Cgroup]) {
        self.began.retain(|cgroup, _| background.contains(cgroup));
        for cgroup in background {
            let began = self.began.entry(cgroup.clone());
            began.or_insert_with(|| Cost::of(root, cgroup));
        }
    }

    /// Sum over all cgroups.
    pub fn cost(&self, root: &Path) -> Cost {
        let costs = self.began.iter();
        costs
            .map(|(cgroup, began)| Cost::of(root, cgroup) - *began)
            .fold(Cost::default(), Cost::add)
    }
}

/// Microseconds in the line `some avg10=0.00 … total=MICROSECONDS`
/// (Documentation/accounting/psi.rst).
fn stalled_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.parse().ok()
}

/// Sums over all disks of a file with lines `8:0 rbytes=… wbytes=… …`.
fn sum(io_stat: &str, key: &str) -> u64 {
    let words = io_stat.split_whitespace();
    words
        .filter_map(|word| word.strip_prefix(key)?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup(root: &Path, hits: u64) -> Cgroup {
        let directory = root.join("sys/fs/cgroup/app");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in [
            (
                "io.pressure",
                format!("some avg10=0.00 total={}\nfull total=1\n", hits * 7),
            ),
            ("memory.events", format!("low 3\nhigh {hits}\nmax 9\n")),
            (
                "io.stat",
                format!("8:0 rbytes={hits} wbytes=0\n8:16 rbytes=1 wbytes=5\n"),
            ),
        ] {
            fs::write(directory.join(name), text).unwrap();
        }
        Cgroup::named("/app".to_owned()).unwrap()
    }

    #[test]
    fn only_the_time_in_the_background_is_counted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let app = cgroup(root, 10);
        let mut meter = Meter::default();
        meter.follow(root, std::slice::from_ref(&app));
        cgroup(root, 12);
        meter.follow(root, std::slice::from_ref(&app));
        let cost = Cost {
            io_wait_us: Some(14),
            memory_wait_us: None,
            limit_hits: 2,
            read_bytes: 2,
            written_bytes: 0,
        };
        assert_eq!(meter.cost(root), cost);
        meter.follow(root, &[]);
        assert_eq!(meter.cost(root), Cost::default());
    }
}
