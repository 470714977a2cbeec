//! What `frontrow on` found, by which `frontrow off` puts everything back. It is on disk before the
//! first change and goes after the last one is undone, so whatever happens between, `off` knows.

use super::systemd::{self, Whose};
use super::{DAEMON, FOLLOWER, needs_root};
use crate::exit::{Exit, Failure};
use module::sched;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use sys::device::Device;
use sys::{durable, places};

const NAME: &str = "on.json";
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
const MODULE: &str = "sys/module/frontrow_iosched";

/// Directories that changes may make. Each is behind the one that it is in.
const DIRECTORIES: [&str; 6] = [
    "var/lib/frontrow",
    "etc/udev",
    "etc/udev/rules.d",
    "etc/systemd/system/multi-user.target.wants",
    "etc/systemd/user",
    "etc/systemd/user/graphical-session.target.wants",
];

/// The state of before.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The boot in which it was switched on; what is not enabled does not outlive it.
    boot_id: String,
    /// Disks that were under the scheduler already.
    had_scheduler: Vec<String>,
    had_module: bool,
    daemon_was_enabled: bool,
    daemon_was_active: bool,
    follower_was_enabled: bool,
    /// Directories that were missing, those within others last.
    missing: Vec<PathBuf>,
}

impl Record {
    /// The record of an earlier `on`; None if it is off.
    pub(super) fn read(root: &Path) -> Result<Option<Record>, Failure> {
        let path = path(root);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(
                Exit::Internal,
                format_args!("cannot read {}: {error}", path.display()),
            )
        };
        let Some(text) = durable::read(&path).map_err(|error| failed(&error))? else {
            return Ok(None);
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            failed(&format_args!(
                "{error}: delete it, and `sudo frontrow off` switches everything off, \
                 also units that were enabled by hand before"
            ))
        })
    }

    /// The record of an earlier `on`, or a new one, which is on disk when this returns.
    pub(super) fn begin(root: &Path) -> Result<Record, Failure> {
        if let Some(record) = Record::read(root)? {
            return Ok(record);
        }
        let record = Record::of(root)?;
        let text = crate::print::json(&record)?;
        let path = path(root);
        durable::write(&path, text.as_bytes()).map_err(|error| needs_root(&path, &error))?;
        Ok(record)
    }

    fn of(root: &Path) -> Result<Record, Failure> {
        let has_systemd = systemd::runs(root);
        let mut had_scheduler = Vec::new();
        for device in Device::all(root).map_err(|error| crate::sched::failure(error.into()))? {
            let changes = sched::changes(root, &device).map_err(crate::sched::failure)?;
            if !changes.is_empty() {
                had_scheduler.push(device.name().to_owned());
            }
        }
        let missing = DIRECTORIES.iter().map(Path::new);
        Ok(Record {
            boot_id: boot_id(root)?,
            had_scheduler,
            had_module: root.join(MODULE).is_dir(),
            daemon_was_enabled: has_systemd && systemd::is_enabled(Whose::System, DAEMON),
            daemon_was_active: has_systemd && systemd::is_active(Whose::System, DAEMON),
            follower_was_enabled: has_systemd && systemd::is_enabled(Whose::AllUsers, FOLLOWER),
            missing: missing
                .filter(|it| !root.join(it).exists())
                .map(Path::to_owned)
                .collect(),
        })
    }

    /// Whether the disk of that name was under the scheduler before, and is so for the same reason.
    pub(super) fn had_scheduler(&self, root: &Path, disk: &str) -> Result<bool, Failure> {
        Ok(self.is_of_this_boot(root)? && self.had_scheduler.iter().any(|it| it == disk))
    }

    /// Whether the module was there before. After a reboot only what is enabled can have loaded it.
    pub(super) fn had_module(&self, root: &Path) -> Result<bool, Failure> {
        Ok(self.is_of_this_boot(root)? && self.had_module)
    }

    pub(super) fn daemon_was_enabled(&self) -> bool {
        self.daemon_was_enabled
    }

    /// Whether the daemon would run had nobody said `on`.
    pub(super) fn daemon_was_active(&self, root: &Path) -> Result<bool, Failure> {
        Ok(match self.is_of_this_boot(root)? {
            true => self.daemon_was_active,
            false => self.daemon_was_enabled,
        })
    }

    pub(super) fn follower_was_enabled(&self) -> bool {
        self.follower_was_enabled
    }

    fn is_of_this_boot(&self, root: &Path) -> Result<bool, Failure> {
        Ok(self.boot_id == boot_id(root)?)
    }

    /// Removes the record, and the directories that were missing if they are empty.
    pub(super) fn end(self, root: &Path) -> Result<(), Failure> {
        let path = path(root);
        durable::remove(&path).map_err(|error| needs_root(&path, &error))?;
        for directory in self.missing.iter().rev() {
            // One that is not empty is in use by somebody else.
            let _ = fs::remove_dir(root.join(directory));
        }
        Ok(())
    }
}

fn path(root: &Path) -> PathBuf {
    places::across_reboots(root).join(NAME)
}

fn boot_id(root: &Path) -> Result<String, Failure> {
    let path = root.join(BOOT_ID);
    let text = fs::read_to_string(&path).map_err(|error| needs_root(&path, &error))?;
    Ok(text.trim().to_owned())
}
