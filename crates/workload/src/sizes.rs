//! All sizes of the workloads in one table: those of the demo and those of the paper.

use crate::code::Code;
use record::Scale;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A size of one workload or load, which its own file states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) demo: u64,
    /// Size in the paper.
    pub(crate) full: u64,
    /// Smallest size at any scale.
    pub(crate) least: u64,
    /// Size for tests.
    pub(crate) tiny: u64,
}

/// Sizes of one run that several share, or that are a paper's table. Counts are iterations; bytes
/// are file sizes.
#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Scale of the run; None for tests.
    scale: Option<Scale>,
    /// M1: number of creations of the 4 KB file.
    pub(crate) m1_iterations: u64,
    /// M2: number of creations of the 1 MB file.
    pub(crate) m2_iterations: u64,
    /// M3: size of the file that 1 KB writes fill.
    pub(crate) m3_bytes: u64,
    /// M4: number of truncations of the 2 MB file.
    pub(crate) m4_iterations: u64,
    /// M5: number of new files, each in another round of the rewritten file.
    pub(crate) m5_iterations: u64,
    /// Size of the background's sequential file under a microbenchmark.
    pub(crate) writer_bytes: u64,
    /// Size of the background's sequential file under a scenario.
    pub(crate) scenario_writer_bytes: u64,
    /// Size of the background's sequential file when its completion is measured.
    pub(crate) completion_bytes: u64,
    /// Time for which the background's rate alone is measured.
    pub(crate) alone: Duration,
    /// Time for which the foreground is busy while the background's share is measured.
    pub(crate) busy: Duration,
    /// Scenario A: number of starts of the app.
    pub(crate) launches: u64,
    /// Scenario B: time for which the camera shoots.
    pub(crate) camera: Duration,
    /// Scenario B: size of one shot.
    pub(crate) shot_bytes: u64,
    /// Scenario C: number of installations.
    pub(crate) installs: u64,
    /// Scenario C: size of the package.
    pub(crate) package_bytes: u64,
    /// FastTrack's apps: number of times that the user opens them.
    pub(crate) responses: u64,
    /// The background's cost: number of times a cold album is opened. At the demo's size one
    /// opening takes 145 ms alone on the emulated eMMC, and the background's work takes five to six
    /// seconds.
    pub(crate) openings: u64,
    /// Launch: pages of an app's working set.
    pub(crate) app_pages: u64,
    /// Real programs: number of starts of each kind.
    pub(crate) program_starts: u64,
    /// Phone: days of use, and sessions of ten minutes a day.
    pub(crate) phone_days: u64,
    pub(crate) phone_sessions: u64,
    /// SQLite: number of statements that are a transaction each.
    pub(crate) sqlite_single: u64,
    /// SQLite: number of statements of one big transaction.
    pub(crate) sqlite_bulk: u64,
    /// SQLite: number of selects without an index.
    pub(crate) sqlite_scans: u64,
    /// SQLite: number of selects by an index.
    pub(crate) sqlite_lookups: u64,
    /// Size of the file that is truncated and rewritten.
    pub(crate) rewrite_bytes: u64,
    /// Size of the file that is written at random.
    pub(crate) random_bytes: u64,
    /// Size of the file that a paced load reads and writes repeatedly.
    pub(crate) paced_bytes: u64,
    /// Size of the file that a backup reads repeatedly.
    pub(crate) backup_bytes: u64,
    /// Number of direct 128 KB requests for a throughput.
    pub(crate) sequential_requests: u64,
    /// Number of direct 4 KB requests for a throughput.
    pub(crate) random_requests: u64,
    /// Number of direct 4 KB requests for the CPU's cost of one.
    pub(crate) overhead_requests: u64,
    /// Size of the device's part that direct requests go to, from its begin.
    pub(crate) direct_span_bytes: u64,
    /// Calibration: bytes of each request size, and the largest number of requests.
    pub(crate) calibration_bytes: u64,
    pub(crate) calibration_requests: u64,
    /// Whether a load's file must be larger than the kernel's dirty limit.
    pub(crate) beyond_dirty_limit: bool,
    /// Memory limit of a load in a cgroup of its own.
    pub(crate) memcg_bytes: u64,
    /// Bytes that must be written back before the measured part begins.
    pub(crate) warm_up_bytes: u64,
    /// Time after which writeback that has not begun is an error.
    pub(crate) warm_up_limit: Duration,
    /// Longest wait for a steady background once writeback runs.
    pub(crate) steady_limit: Duration,
}

impl Sizes {
    /// The table: the demo's size, then the paper's (§6.1).
    pub(crate) fn of(scale: Scale) -> Self {
        let at = |demo, full| scale.pick(demo, full);
        Sizes {
            scale: Some(scale),
            m1_iterations: at(10, 500),
            m2_iterations: at(10, 200),
            m3_bytes: at(24 * MIB, 300 * MIB).max(KIB),
            m4_iterations: at(10, 500),
            m5_iterations: at(2, 5),
            writer_bytes: at(2 * GIB, 8 * GIB).max(MIB),
            scenario_writer_bytes: at(2 * GIB, 4 * GIB).max(MIB),
            completion_bytes: at(512 * MIB, 8 * GIB).max(MIB),
            alone: Duration::from_secs(at(4, 10)),
            busy: Duration::from_secs(10),
            launches: at(5, 500),
            camera: Duration::from_secs(at(6, 60)),
            shot_bytes: 8 * MIB,
            installs: at(2, 20),
            package_bytes: at(8 * MIB, 43 * MIB),
            responses: 3,
            openings: at(12, 25),
            // 72 MB each: 85.0 MB are 7.4 % of all 16 (paper "003", §V).
            app_pages: at(768, 18_400),
            program_starts: at(1, 5),
            phone_days: at(17, 180),
            phone_sessions: 22,
            sqlite_single: at(10, 1000),
            sqlite_bulk: at(500, 25_000),
            sqlite_scans: at(4, 100),
            sqlite_lookups: at(100, 5000),
            rewrite_bytes: at(512 * MIB, 8 * GIB).max(MIB),
            random_bytes: at(512 * MIB, 8 * GIB).max(MIB),
            paced_bytes: at(256 * MIB, GIB).max(MIB).next_multiple_of(MIB),
            // The file exceeds a guest's memory.
            backup_bytes: at(GIB, 4 * GIB).max(MIB).next_multiple_of(MIB),
            sequential_requests: at(512, 8192),
            random_requests: at(2000, 50_000),
            overhead_requests: at(2000, 50_000),
            direct_span_bytes: at(64 * MIB, GIB).max(MIB).next_multiple_of(MIB),
            calibration_bytes: at(16 * MIB, GIB).max(MIB),
            calibration_requests: at(500, 20_000),
            beyond_dirty_limit: true,
            memcg_bytes: 256 * MIB,
            warm_up_bytes: 4 * MIB,
            warm_up_limit: Duration::from_secs(60),
            steady_limit: Duration::from_secs(20),
        }
    }

    /// Sizes for one workload and its load.
    pub(crate) fn of_workload(scale: Scale, code: &Code) -> Self {
        let sizes = Sizes::of(scale);
        Sizes {
            writer_bytes: (code.writer_bytes)(&sizes),
            ..sizes
        }
    }

    /// A workload's own size.
    pub(crate) fn pick(&self, size: Size) -> u64 {
        let scaled = |scale: Scale| scale.pick(size.demo, size.full).max(size.least);
        self.scale.map_or(size.tiny, scaled)
    }

    /// Sizes for tests on a machine with any amount of memory, with no long waits for writeback.
    #[cfg(test)]
    pub(crate) fn tiny() -> Self {
        Sizes {
            scale: None,
            m1_iterations: 3,
            m2_iterations: 2,
            m3_bytes: 16 * KIB,
            m4_iterations: 2,
            m5_iterations: 2,
            writer_bytes: 2 * MIB,
            scenario_writer_bytes: 2 * MIB,
            completion_bytes: 2 * MIB,
            alone: Duration::from_millis(20),
            busy: Duration::from_millis(20),
            launches: 2,
            camera: Duration::from_millis(300),
            shot_bytes: 64 * KIB,
            installs: 2,
            package_bytes: 512 * KIB,
            responses: 2,
            openings: 2,
            app_pages: 20,
            program_starts: 1,
            phone_days: 8,
            phone_sessions: 1,
            sqlite_single: 3,
            sqlite_bulk: 10,
            sqlite_scans: 2,
            sqlite_lookups: 5,
            rewrite_bytes: MIB,
            random_bytes: MIB,
            paced_bytes: MIB,
            backup_bytes: MIB,
            sequential_requests: 16,
            random_requests: 40,
            overhead_requests: 40,
            direct_span_bytes: MIB,
            calibration_bytes: MIB,
            calibration_requests: 10,
            beyond_dirty_limit: false,
            memcg_bytes: 64 * MIB,
            warm_up_bytes: 0,
            warm_up_limit: Duration::ZERO,
            steady_limit: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_what_the_paper_did() {
        let sizes = Sizes::of(Scale::Full);
        assert_eq!(sizes.m1_iterations, 500);
        assert_eq!(sizes.m2_iterations, 200);
        assert_eq!(sizes.m3_bytes, 300 << 20);
        assert_eq!(sizes.m4_iterations, 500);
        assert_eq!(sizes.writer_bytes, 8 << 30);
        assert_eq!(sizes.rewrite_bytes, 8 << 30);
    }

    #[test]
    fn no_scale_makes_a_size_vanish() {
        let sizes = Sizes::of(Scale::Factor(1e-9));
        assert!(sizes.m1_iterations >= 1 && sizes.m5_iterations >= 1);
        assert!(sizes.m3_bytes >= 1024 && sizes.writer_bytes >= 1 << 20);
    }
}
