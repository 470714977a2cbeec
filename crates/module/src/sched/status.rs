//! Status of a device: its scheduler and counters.

use crate::sched::enable::{journal_name, schedulers};
use crate::sched::{Boost, Counters, Error, SCHEDULER};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use sys::PathError;
use sys::device::Device;
use sys::knobs::{Change, Home, Journal};

/// A device and its scheduler.
#[derive(Clone, Debug)]
pub struct Status {
    /// The scheduler it has.
    pub scheduler: String,
    /// Changes of [`crate::sched::enable()`].
    pub changes: Vec<Change>,
    /// Which waits promote; `None` under another scheduler.
    pub boost: Option<Boost>,
    /// The counters since the scheduler was set; `None` under another one.
    pub counters: Option<Counters>,
}

/// The state of `device`.
///
/// # Errors
/// [`Error::NoScheduler`], or what kept the state from being read.
pub fn status(root: &Path, device: &Device) -> Result<Status, Error> {
    let scheduler = schedulers(device)?.active;
    let changes = sys::knobs::net(
        root,
        &Journal::peek(root, Home::Tools, &journal_name(device)?)?,
    )?;
    if scheduler != SCHEDULER {
        return Ok(Status {
            scheduler,
            changes,
            boost: None,
            counters: None,
        });
    }
    let boost = sys::knobs::read(&attribute(root, device, "iosched/boost"))?.parse()?;
    Ok(Status {
        scheduler,
        changes,
        boost: Some(boost),
        counters: Some(counters(root, device)?),
    })
}

/// The counters of `device` since its scheduler was set; `None` under another one.
///
/// # Errors
/// As of [`status`].
pub fn counters_of(root: &Path, device: &Device) -> Result<Option<Counters>, Error> {
    match schedulers(device)?.active == SCHEDULER {
        true => counters(root, device).map(Some),
        false => Ok(None),
    }
}

fn attribute(root: &Path, device: &Device, name: &str) -> PathBuf {
    let path = device.queue_attribute(name);
    root.join(path.strip_prefix("/").unwrap_or(&path))
}

/// All counters that this user may read: those of the classes tell when the foreground app does I/O,
/// and are root's. Older modules have none, or all in one file.
fn counters(root: &Path, device: &Device) -> Result<Counters, Error> {
    let mut text = String::new();
    for (name, is_roots) in [("iosched/stats", false), ("iosched/dispatched", true)] {
        let path = attribute(root, device, name);
        match fs::read_to_string(&path) {
            Ok(lines) => text.push_str(&lines),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) if is_roots && error.kind() == ErrorKind::PermissionDenied => {}
            Err(source) => return Err(PathError::of("access", &path)(source).into()),
        }
    }
    Ok(Counters::parse(&text))
}
