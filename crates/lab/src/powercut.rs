//! The command stream of a small phone, recorded in a guest for power cuts on the host.

use crate::Error;
use crate::cache::Cache;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::qemu::Clock;
use crate::run::{DEVICE, PROGRAMS};
use crate::session::Session;
use crate::sources::Sources;
use record::{GuestSpec, Scale, Task};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

const MEMORY_MIB: u64 = 512;

/// A small guest minute for each day, and more than it takes.
const LIMIT_S: u64 = 600;

/// What of the device differs from its profile: small, so that a file system is checked in no
/// time; with small blocks, little spare flash and a small log, so that collection, compaction
/// and checkpoints are among what is cut.
const DIFFERENT: [(&str, u64); 7] = [
    ("capacity_mib", 64),
    ("spare_percent", 12),
    ("block_pages", 32),
    ("log_kib", 256),
    ("checkpoint_mib", 16),
    ("power_loss", 1),
    ("stream_mib", 192),
];

/// What to record, and where.
pub struct PowerCut {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The profile that gives times and parallelism.
    pub device: record::Device,
    /// Days of use; files are defragmented after each.
    pub days: u32,
    /// Of all that is left to chance.
    pub seed: u64,
}

/// The stream, until `stop` becomes true.
pub fn record_stream(
    cache: &Cache,
    sources: &Sources,
    request: &PowerCut,
    stop: &AtomicBool,
) -> Result<Vec<u8>, Error> {
    let policies = ["mq-deadline".to_owned()];
    let image = Image::make(cache, sources, &request.kernel, &policies, &PROGRAMS)?;
    let mut parameters = request.device.simflash.clone();
    parameters.extend(DIFFERENT.map(|(name, value)| (name.to_owned(), value)));
    let spec = GuestSpec {
        experiment: "powercut".to_owned(),
        policy: policies[0].clone(),
        seed: request.seed,
        scale: Scale::Demo,
        modules: image.modules(&policies[0], &parameters),
        device: DEVICE.to_owned(),
        // The stream is played again from an empty device on.
        flash_image: None,
        sysctls: BTreeMap::new(),
        writes: BTreeMap::new(),
        io_cost_model: String::new(),
        mount_options: vec!["discard".to_owned()],
        limit_virtual_s: LIMIT_S,
        task: Task::PowerCut { days: request.days },
    };
    let session = Session::new(&spec, stop, &image.with_spec(&spec)?)?;
    let kernel = &request.kernel;
    let ((_, stream), _) = session.run_for_parcel(kernel, MEMORY_MIB, Clock::Instructions)?;
    Ok(stream)
}
