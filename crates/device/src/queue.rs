//! The request queue's attributes (Documentation/ABI/stable/sysfs-block of the kernel).

use crate::{Device, Error};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The schedulers a queue can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedulers {
    /// The one it has.
    pub active: String,
    /// All whose modules are loaded.
    pub available: Vec<String>,
}

impl Device {
    /// The queue's scheduler and its choices; `None` for a device that has no use for one,
    /// because it passes bios on instead of having requests.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn schedulers(&self) -> Result<Option<Schedulers>, Error> {
        Ok(self
            .text_if_any("queue/scheduler")?
            .as_deref()
            .and_then(parse_schedulers))
    }

    /// Its number as the kernel writes it: `8:0`.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn number_text(&self) -> Result<String, Error> {
        self.text("dev")
    }

    /// Whether it can be taken out: by its own word, as it hangs on USB, or as it is an SD card.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn is_removable(&self) -> Result<bool, Error> {
        let by_its_word = self.text_if_any("removable")?.as_deref() == Some("1")
            || self.text_if_any("device/type")?.as_deref() == Some("SD");
        let mut parents = self.directory.iter();
        Ok(by_its_word || parents.any(|name| name.to_string_lossy().starts_with("usb")))
    }

    /// Whether it is no hardware's: a file (loop), memory (zram), what device mapper makes of others.
    pub fn is_virtual(&self) -> bool {
        self.directory.iter().any(|name| name == "virtual")
    }

    /// What device mapper made it for, such as `CRYPT` or `LVM`; none for other disks.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn mapper(&self) -> Result<Option<String>, Error> {
        let uuid = self.text_if_any("dm/uuid")?;
        Ok(uuid.map(|it| it.split('-').next().unwrap_or_default().to_owned()))
    }

    /// How many requests a queue may hold, reads and writes apart.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn nr_requests(&self) -> Result<u64, Error> {
        self.number("queue/nr_requests")
    }

    /// What writeback throttling aims at; `Some(0)` when it is off, `None` when the kernel or
    /// the device has none.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::NotANumber`].
    pub fn wbt_lat_usec(&self) -> Result<Option<u64>, Error> {
        match self.number("queue/wbt_lat_usec") {
            Ok(latency) => Ok(Some(latency)),
            // The attribute is there, but nothing behind it: EINVAL.
            Err(Error::Read { source, .. })
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// How many queues the driver has; 0 for a device without requests.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn hardware_queues(&self) -> Result<u64, Error> {
        names_in(&self.directory.join("mq")).map(|names| names.len() as u64)
    }

    /// The disks and partitions that this one is made of in the end: of a logical volume on an
    /// encrypted one, the partition below both.
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

/// What `directory`'s device is made of: what is made of nothing itself.
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

/// In order; none where there is no such directory.
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

/// `[none] mq-deadline`: the active one is in brackets. A queue that takes no scheduler has
/// `none` without brackets (`elv_iosched_show` in block/elevator.c).
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
