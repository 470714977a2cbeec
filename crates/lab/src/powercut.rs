//! The command stream of a small phone, recorded in a guest for power cuts on the host.

use crate::Error;
use crate::cache::Cache;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::qemu::Clock;
use crate::run::PROGRAMS;
use crate::session::Session;
use crate::sources::Sources;
use record::{GuestSpec, Policy, Task};
use std::sync::atomic::AtomicBool;

const MEMORY_MIB: u64 = 512;

/// A small guest minute for each day, and more than it takes.
const LIMIT_S: u64 = 600;

/// Parameters that differ from the device's profile. The device is small, so the file system check
/// is fast. Small blocks, little spare flash and a small log make collection, compaction and
/// checkpoints frequent.
const DIFFERENT: [(&str, u64); 7] = [
    ("capacity_mib", 64),
    ("spare_percent", 12),
    ("block_pages", 32),
    ("log_kib", 256),
    ("checkpoint_mib", 16),
    ("power_loss", 1),
    ("stream_mib", 192),
];

/// A recording for power cuts.
pub struct PowerCut {
    /// The kernel to boot.
    pub kernel: Kernel,
    /// The profile that gives times and parallelism.
    pub device: record::Device,
    /// Days of use; files are defragmented after each.
    pub days: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The stream, until `stop` becomes true.
pub fn record_stream(
    cache: &Cache,
    sources: &Sources,
    request: &PowerCut,
    stop: &AtomicBool,
) -> Result<Vec<u8>, Error> {
    let policy = Policy::kernel_default();
    let policies = std::slice::from_ref(&policy);
    let image = Image::make(cache, sources, &request.kernel, policies, &PROGRAMS)?;
    let mut parameters = request.device.simflash.clone();
    parameters.extend(DIFFERENT.map(|(name, value)| (name.to_owned(), value)));
    let modules = image.modules(&policy, &parameters);
    let task = Task::PowerCut { days: request.days };
    // The stream is played again from an empty device on.
    let spec = GuestSpec {
        seed: request.seed,
        limit_virtual_s: LIMIT_S,
        ..GuestSpec::new("powercut", policy, modules, task)
    };
    let session = Session::new(cache, &spec, stop, &image.with_spec(&spec)?)?;
    let kernel = &request.kernel;
    let ((_, stream), _) = session.run_for_outbox(kernel, MEMORY_MIB, Clock::Instructions)?;
    Ok(stream)
}
