//! What a device is under, and what came of it.

use crate::enable::{journal_name, schedulers};
use crate::{Boost, Counters, Error, SCHEDULER};
use device::Device;
use knobs::{Change, Home, Journal};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A device and its scheduler.
#[derive(Clone, Debug)]
pub struct Status {
    /// The scheduler it has.
    pub scheduler: String,
    /// What [`crate::enable()`] changed.
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
    let changes = knobs::net(
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
    let boost = knobs::read(&attribute("iosched/boost"))?.parse()?;
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
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
    }
}
