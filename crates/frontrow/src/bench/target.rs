//! Device, scheduler, file system and free space of a directory.

use crate::exit::{Exit, Failure};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use sys::device::{Device, Statistics};
use sys::space::Space;

/// Environment of a benchmark.
pub struct Target {
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Disk and its model, or the reason why there is none.
    pub device: String,
    /// Scheduler of the disk.
    pub policy: String,
    /// Default scheduler of the kernel for this disk.
    pub stock_default: String,
    /// Free space for this user.
    pub free_bytes: u64,
    /// Kernel name of the disk, such as `sda`; empty if there is none.
    pub disk: String,
    nr_requests: String,
    wbt_lat_usec: String,
}

impl Target {
    /// Finds the environment of `directory`, which must exist.
    pub fn of(directory: &Path) -> Result<Self, Failure> {
        let path = fs::canonicalize(directory)
            .ok()
            .filter(|path| path.is_dir())
            .ok_or_else(|| {
                let sentence = format_args!(
                    "{} is not a directory: name one on the device to measure",
                    directory.display()
                )
                .to_string();
                Failure::new(Exit::Usage, sentence)
            })?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|error| {
            Failure::new(
                Exit::Internal,
                format_args!("cannot read the kernel's release: {error}"),
            )
        })?;
        let mut target = Target {
            kernel: kernel.trim().to_owned(),
            device: "a file system without a disk".to_owned(),
            policy: "unknown".to_owned(),
            stock_default: "unknown".to_owned(),
            free_bytes: free_bytes(&path)?,
            disk: String::new(),
            nr_requests: String::new(),
            wbt_lat_usec: String::new(),
        };
        match Device::resolve(Path::new("/"), &path.to_string_lossy()) {
            Ok(disk) => target
                .describe(&disk)
                .map_err(|error| Failure::new(Exit::Internal, error))?,
            Err(sys::device::Error::NoDevice { filesystem, .. }) if is_memory(&filesystem) => {
                let sentence = format_args!(
                    "{} is in memory ({filesystem}): name a directory on a disk",
                    directory.display()
                )
                .to_string();
                return Err(Failure::new(Exit::Unsupported, sentence));
            }
            // Overlays and network file systems can be measured, too; they have no queue.
            Err(_) => {}
        }
        Ok(target)
    }

    fn describe(&mut self, disk: &Device) -> Result<(), sys::device::Error> {
        let identity = disk.identity()?;
        self.disk.clone_from(&identity.name);
        self.device = match &identity.model {
            Some(model) => format!("{} ({model})", identity.name),
            None => identity.name.clone(),
        };
        self.stock_default = record::policy::kernel_default(identity.hardware_queues).to_owned();
        if let Some(schedulers) = disk.schedulers()? {
            self.policy = schedulers.active;
            self.nr_requests = disk.nr_requests()?.to_string();
        }
        if let Some(latency_us) = disk.wbt_lat_usec()? {
            self.wbt_lat_usec = latency_us.to_string();
        }
        Ok(())
    }

    /// Bytes written to the disk since boot; None without a disk.
    pub fn written_bytes(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/sys/block/{}/stat", self.disk)).ok()?;
        Some(Statistics::parse(&stat)?.written_bytes)
    }

    /// Inputs that figures depend on, for the result file.
    pub fn inputs(&self) -> BTreeMap<String, String> {
        let setting = |name| fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap_or_default();
        super::items([
            ("nr_requests", &self.nr_requests),
            ("wbt_lat_usec", &self.wbt_lat_usec),
            (
                "vm.dirty_background_ratio",
                setting("dirty_background_ratio").trim(),
            ),
            ("vm.dirty_ratio", setting("dirty_ratio").trim()),
            (
                "vm.dirty_expire_centisecs",
                setting("dirty_expire_centisecs").trim(),
            ),
        ])
    }
}

fn is_memory(filesystem: &str) -> bool {
    matches!(filesystem, "tmpfs" | "ramfs" | "devtmpfs")
}

fn free_bytes(path: &Path) -> Result<u64, Failure> {
    let failed = |error: io::Error| {
        let sentence = format!(
            "cannot ask for the free space of {}: {error}",
            path.display()
        );
        Failure::new(Exit::Internal, sentence)
    };
    Ok(Space::at(path).map_err(failed)?.free_bytes)
}
