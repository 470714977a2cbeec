//! Attributes of the request queue (Documentation/ABI/stable/sysfs-block of the kernel).

use crate::device::{Device, Error};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The I/O schedulers of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedulers {
    /// Name of the active scheduler.
    pub active: String,
    /// Names of all schedulers whose modules are loaded.
    pub available: Vec<String>,
}

impl Device {
    /// The schedulers of the queue. `None` for a device without requests, which passes bios on.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn schedulers(&self) -> Result<Option<Schedulers>, Error> {
        Ok(self
            .text_if_any("queue/scheduler")?
            .as_deref()
            .and_then(parse_schedulers))
    }

    /// Device number as the kernel writes it, such as `8:0`.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn number_text(&self) -> Result<String, Error> {
        self.text("dev")
    }

    /// Whether the disk is removable: by its own attribute, because it is on USB, or an SD card.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn is_removable(&self) -> Result<bool, Error> {
        let by_its_word = self.text_if_any("removable")?.as_deref() == Some("1")
            || self.text_if_any("device/type")?.as_deref() == Some("SD");
        let mut parents = self.directory.iter();
        Ok(by_its_word || parents.any(|name| name.to_string_lossy().starts_with("usb")))
    }

    /// Whether seeks cost time. The kernel takes a SCSI disk for rotating until it says that it is not, which
    /// USB sticks and card readers never say. But no rotating disk has a removable medium.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn rotates(&self) -> Result<bool, Error> {
        const SCSI_DISK: &str = "0";
        let has = |path, value| Ok(self.text_if_any(path)?.as_deref() == Some(value));
        let is_flash = has("removable", "1")? && has("device/type", SCSI_DISK)?;
        Ok(self.number("queue/rotational")? == 1 && !is_flash)
    }

    /// Whether the kernel takes no writes for it, as for the boot partitions of an eMMC.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn is_read_only(&self) -> Result<bool, Error> {
        Ok(self.text_if_any("ro")?.as_deref() == Some("1"))
    }

    /// Whether it is not hardware itself: a file (loop), memory (zram) or device mapper.
    pub fn is_virtual(&self) -> bool {
        self.directory.iter().any(|name| name == "virtual")
    }

    /// Whether it is a virtual machine's, by the driver's name for it: virtio or Xen. The kernel takes
    /// such disks for rotating ones unless their host says otherwise.
    pub fn is_of_virtual_machine(&self) -> bool {
        ["vd", "xvd"].iter().any(|it| self.name.starts_with(it))
    }

    /// Subsystem that created a device mapper disk, such as `CRYPT` or `LVM`; None for other disks.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn mapper(&self) -> Result<Option<String>, Error> {
        let uuid = self.text_if_any("dm/uuid")?;
        Ok(uuid.map(|it| it.split('-').next().unwrap_or_default().to_owned()))
    }

    /// Number of requests that the queue may hold, for reads and writes each.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn nr_requests(&self) -> Result<u64, Error> {
        self.number("queue/nr_requests")
    }

    /// Size of the largest request that the kernel makes for it, in bytes.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn largest_request_bytes(&self) -> Result<u64, Error> {
        Ok(self.number("queue/max_sectors_kb")?.saturating_mul(1024))
    }

    /// Target latency of writeback throttling, in microseconds. `Some(0)` if it is off, `None` if
    /// the kernel or the device has none.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn wbt_lat_usec(&self) -> Result<Option<u64>, Error> {
        match self.number("queue/wbt_lat_usec") {
            Ok(latency) => Ok(Some(latency)),
            // The attribute exists, but throttling does not: EINVAL.
            Err(Error::Read { source, .. })
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Number of hardware queues of the driver; 0 for a device without requests.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn hardware_queues(&self) -> Result<u64, Error> {
        names_in(&self.directory.join("mq")).map(|names| names.len() as u64)
    }

    /// Names of the disks and partitions at the bottom of this one's stack. For a logical volume on
    /// an encrypted device it is the partition below both.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn below(&self) -> Result<Vec<String>, Error> {
        let mut lowest = Vec::new();
        add_lowest(&self.directory, &mut lowest)?;
        lowest.sort();
        lowest.dedup();
        Ok(lowest)
    }

    pub(crate) fn number(&self, attribute: &str) -> Result<u64, Error> {
        let text = self.text(attribute)?;
        text.parse().map_err(|_| Error::NotANumber {
            path: self.directory.join(attribute),
            text,
        })
    }

    pub(crate) fn text_if_any(&self, attribute: &str) -> Result<Option<String>, Error> {
        match self.text(attribute) {
            Ok(text) => Ok(Some(text)),
            Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn text(&self, attribute: &str) -> Result<String, Error> {
        let path = self.directory.join(attribute);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(source) => Err(Error::Read { path, source }),
        }
    }
}

/// Adds the devices at the bottom of the stack of `directory`'s device.
fn add_lowest(directory: &Path, lowest: &mut Vec<String>) -> Result<(), Error> {
    let slaves = directory.join("slaves");
    for name in names_in(&slaves)? {
        let slave = slaves.join(&name);
        if names_in(&slave.join("slaves"))?.is_empty() {
            lowest.push(name);
        } else {
            add_lowest(&slave, lowest)?;
        }
    }
    Ok(())
}

/// Names in a directory in ascending order; empty if it does not exist.
fn names_in(path: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Parses a list such as `[none] mq-deadline`, with the active one in brackets. A queue without
/// schedulers has `none` without brackets (`elv_iosched_show` in block/elevator.c).
fn parse_schedulers(text: &str) -> Option<Schedulers> {
    let mut active = None;
    let mut available = Vec::new();
    for word in text.split_whitespace() {
        let chosen = word.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        active = active.or(chosen);
        available.push(chosen.unwrap_or(word).to_owned());
    }
    let only = (available.len() == 1 && text != "none").then_some(text);
    Some(Schedulers {
        active: active.or(only)?.to_owned(),
        available,
    })
}
