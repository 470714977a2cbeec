//! Disk space and written bytes of a run, computed before it runs.

use crate::app::APPS;
use crate::load::Load;
use crate::sizes::Sizes;
use crate::{Error, Surface, calibrate, camera, check, front, launch, surface};
use device::PAGE_BYTES;
use record::{Run, Scale};

/// Space for directories, the seed's file layout and the journal of a database.
const MARGIN_BYTES: u64 = 32 << 20;

/// Bytes of a row of the SQLite benchmark, with its index.
const ROW_BYTES: u64 = 128;

/// Disk use of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Largest size of its files at a time, in bytes.
    pub disk_bytes: u64,
    /// Approximate bytes that it writes, with one pass of the load over its file. The load
    /// continues until the foreground has ended.
    pub written_bytes: u64,
}

/// Footprint of one run at this scale on this machine: a load's file is larger than the kernel's
/// dirty limit.
///
/// # Errors
/// The errors of [`check`].
pub fn footprint(run: &Run, scale: Scale) -> Result<Footprint, Error> {
    check(run)?;
    let sizes = Sizes::of_workload(scale, &run.workload);
    let own = foreground(run, &sizes);
    let mut load_bytes = 0;
    for load in Load::parse_all(&run.load)? {
        load_bytes += load.file_bytes(&sizes)?;
    }
    Ok(Footprint {
        disk_bytes: own.disk_bytes + load_bytes + MARGIN_BYTES,
        written_bytes: own.written_bytes + load_bytes,
    })
}

fn foreground(run: &Run, sizes: &Sizes) -> Footprint {
    if surface(&run.workload) == Surface::Device {
        let requests = sizes.sequential_requests * (128 << 10);
        let written = requests.max(calibrate::bytes(sizes));
        return of(sizes.direct_span_bytes, written);
    }
    let rows = sizes.sqlite_single + 2 * sizes.sqlite_bulk;
    match run.workload.as_str() {
        "m1" | "share" | "completion" => of(4 << 10, sizes.m1_iterations * (4 << 10)),
        "m2" => of(1 << 20, sizes.m2_iterations << 20),
        "m3" => of(sizes.m3_bytes, 0),
        "m4" => of(2 << 20, sizes.m4_iterations * (2 << 20)),
        "m5" => of(sizes.m5_iterations * (4 << 10), 0),
        "a" => of(launch::APP_BYTES, sizes.launches * launch::STATE_BYTES),
        "b" => of(camera::shots_at_most(sizes.camera) * sizes.shot_bytes, 0),
        "c" => of(
            2 * sizes.package_bytes,
            sizes.installs * sizes.package_bytes,
        ),
        "gallery" | "aged-gallery" | "third" | "undisturbed" => of(front::gallery_bytes(sizes), 0),
        "camera" => of(front::camera_bytes(sizes), front::camera_bytes(sizes)),
        "game" | "aged-game" => of(front::game_bytes(sizes), 0),
        // An app has about three times the size of its working set.
        "launch" => of(APPS as u64 * sizes.app_pages * 3 * PAGE_BYTES as u64, 0),
        _ => of(rows * ROW_BYTES, 3 * rows * ROW_BYTES),
    }
}

/// A footprint of files that are written once, and of further writes.
fn of(files_bytes: u64, again_bytes: u64) -> Footprint {
    Footprint {
        disk_bytes: files_bytes,
        written_bytes: files_bytes + again_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LOADS, WORKLOADS};

    fn named(workload: &str, load: &str, scale: Scale) -> Result<Footprint, Error> {
        let run = Run {
            workload: workload.to_owned(),
            load: load.to_owned(),
        };
        footprint(&run, scale)
    }

    #[test]
    fn every_pair_that_can_run_has_a_footprint() {
        for workload in WORKLOADS {
            for load in LOADS {
                if let Ok(used) = named(workload.name, load.name, Scale::Factor(0.01)) {
                    assert!(used.written_bytes > 0, "{} {}", workload.name, load.name);
                }
            }
        }
    }

    // The load is idle, because a load's file follows the machine's dirty limit, which changes.
    #[test]
    fn a_larger_scale_never_needs_less() {
        for workload in WORKLOADS {
            if let Ok(full) = named(workload.name, "idle", Scale::Full) {
                let part = named(workload.name, "idle", Scale::Factor(0.01)).unwrap();
                assert!(full.disk_bytes >= part.disk_bytes, "{}", workload.name);
                assert!(
                    full.written_bytes >= part.written_bytes,
                    "{}",
                    workload.name
                );
            }
        }
    }

    #[test]
    fn a_load_needs_room_for_its_file() {
        let idle = named("m1", "idle", Scale::Full).unwrap();
        let loaded = named("m1", "writer", Scale::Full).unwrap();
        assert!(loaded.disk_bytes >= idle.disk_bytes + (8 << 30));
    }
}
