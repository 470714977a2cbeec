//! Status of a device: its scheduler and counters.

use crate::sched::enable::{journal_name, schedulers};
use crate::sched::{Boost, Counters, Error, SCHEDULER};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
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
    let attribute = |name: &str| {
        let path = device.queue_attribute(name);
        root.join(path.strip_prefix("/").unwrap_or(&path))
    };
    let boost = sys::knobs::read(&attribute("iosched/boost"))?.parse()?;
    Ok(Status {
        scheduler,
        changes,
        boost: Some(boost),
        counters: Some(counters(&attribute("iosched/stats"))?),
    })
}

/// Older modules have none.
fn counters(path: &Path) -> Result<Counters, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Counters::parse(&text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Counters::default()),
        Err(source) => Err(PathError::of("access", path)(source).into()),
    }
}
