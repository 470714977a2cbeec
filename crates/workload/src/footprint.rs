//! Disk space and written bytes of a run, computed before it runs.

use crate::code::Code;
use crate::load::Load;
use crate::sizes::Sizes;
use crate::{Error, check};
use record::{Run, Scale};

/// Space for directories, the seed's file layout and the journal of a database.
const MARGIN_BYTES: u64 = 32 << 20;

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
    let code = Code::of(run.workload);
    let sizes = Sizes::of_workload(scale, code);
    let own = (code.footprint)(&sizes);
    let mut load_bytes = 0;
    for load in Load::all(&run.load) {
        load_bytes += load.file_bytes(&sizes)?;
    }
    Ok(Footprint {
        disk_bytes: own.disk_bytes + load_bytes + MARGIN_BYTES,
        written_bytes: own.written_bytes + load_bytes,
    })
}

impl Footprint {
    /// A footprint of files that are written once, and of further writes.
    pub(crate) const fn of(files_bytes: u64, again_bytes: u64) -> Footprint {
        Footprint {
            disk_bytes: files_bytes,
            written_bytes: files_bytes + again_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::load::listed;
    use record::workload::WORKLOADS;

    fn named(workload: &str, load: &str, scale: Scale) -> Result<Footprint, Error> {
        footprint(&Run::named(workload, load)?, scale)
    }

    #[test]
    fn every_pair_that_can_run_has_a_footprint() {
        for workload in WORKLOADS {
            for (load, _) in listed() {
                if let Ok(used) = named(workload.name, load, Scale::Factor(0.01)) {
                    assert!(used.written_bytes > 0, "{} {}", workload.name, load);
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
