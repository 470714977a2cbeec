//! What a directory is on: its device, scheduler, file system and free space.

use crate::exit::{Exit, Failure};
use device::{Device, Statistics};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The surroundings of a benchmark.
pub struct Target {
    /// `uname -r`.
    pub kernel: String,
    /// The disk and its model, or why there is none.
    pub device: String,
    /// The disk's scheduler.
    pub policy: String,
    /// What the kernel would give this disk.
    pub stock_default: String,
    /// What this user may still write.
    pub free_bytes: u64,
    /// The disk's name, such as `sda`; empty where there is none.
    pub disk: String,
    nr_requests: String,
    wbt_lat_usec: String,
}

impl Target {
    /// Looks at `directory`, which has to exist.
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
            Err(device::Error::NoDevice { filesystem, .. }) if is_memory(&filesystem) => {
                let sentence = format_args!(
                    "{} is in memory ({filesystem}): name a directory on a disk",
                    directory.display()
                )
                .to_string();
                return Err(Failure::new(Exit::Unsupported, sentence));
            }
            // Overlays and network file systems can be measured as well; there
            // is only nothing to say about their queue.
            Err(_) => {}
        }
        Ok(target)
    }

    fn describe(&mut self, disk: &Device) -> Result<(), device::Error> {
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

    /// What was ever written to the disk, where there is one.
    pub fn written_bytes(&self) -> Option<u64> {
        let stat = fs::read_to_string(format!("/sys/block/{}/stat", self.disk)).ok()?;
        Some(Statistics::parse(&stat)?.written_bytes)
    }

    /// What figures depend on, for the result file.
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
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    // SAFETY: all-zero is a valid statvfs, and the kernel fills it.
    let mut answer: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a terminated string and a place for the answer, both alive.
    match unsafe { libc::statvfs(name.as_ptr(), &mut answer) } {
        0 => Ok(answer.f_bavail * answer.f_frsize),
        _ => Err(failed(io::Error::last_os_error())),
    }
}
