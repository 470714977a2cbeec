//! From a profile to requests that can be sent: files opened, places found, device and
//! table at hand.

use crate::latency::Latency;
use crate::load::{self, Error, Sent, Source};
use crate::plan::{Joining, Part, Purpose, Request, layout};
use crate::working_set::WorkingSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Padding at most, as a part of the working set.
pub const PADDING: f64 = 0.1;

/// What is to be read from one device.
#[derive(Debug)]
pub struct DevicePlan {
    /// The device's name below /dev; empty if sysfs does not tell.
    pub name: String,
    /// Whether padding was decided on: the device's table is there.
    pub calibrated: bool,
    /// Those that the start needs first come first.
    pub requests: Vec<Request>,
    /// Open with O_DIRECT, where this user may.
    device: Option<File>,
}

/// Lays out what of `set` is not in memory. `latency` gives a device's table by its name.
pub fn prepare(set: &WorkingSet, latency: impl Fn(&str) -> Option<Latency>) -> Vec<DevicePlan> {
    let plan = |(number, mut ground): (u64, crate::plan::Ground)| {
        let name = device_name(number).unwrap_or_default();
        let table = latency(&name);
        let device = open_device(number).ok();
        ground.readable = device.is_some();
        let calibrated = table.is_some();
        let joining = table.map_or(Joining::Merge, |latency| Joining::Pad {
            latency: Box::new(latency),
            most: PADDING,
        });
        let mut requests = layout(ground, &joining);
        by_need(&mut requests);
        DevicePlan {
            name,
            calibrated,
            requests,
            device,
        }
    };
    set.grounds().into_iter().map(plan).collect()
}

/// In the order of the profile's files, as far as requests are of one file. Where on the
/// device a whole request lies makes no difference to flash, and an app that starts
/// meanwhile waits for less.
fn by_need(requests: &mut [Request]) {
    let file = |part: &Part| match part.purpose {
        Purpose::Pages(place) => Some(place.file),
        _ => None,
    };
    requests.sort_by_key(|request| request.parts.iter().filter_map(file).min());
}

/// Sends all of it, one device after another, and returns when all is on its way.
///
/// # Errors
/// [`Error`]; what was sent until then comes into memory.
pub fn send_all<'a>(set: &'a WorkingSet, plans: &'a [DevicePlan]) -> Result<Vec<Sent<'a>>, Error> {
    let files: Vec<&File> = set.files.iter().map(|it| &it.file).collect();
    let send = |plan: &'a DevicePlan| {
        let source = Source {
            files: files.clone(),
            device: plan.device.as_ref(),
        };
        load::send(&plan.requests, source)
    };
    plans.iter().map(send).collect()
}

/// The block device with that number (`st_dev`), for reading past its cache.
///
/// # Errors
/// What the system said; most users may not read devices.
pub fn open_device(number: u64) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(Path::new("/dev").join(device_name(number)?))
}

/// Its name below /dev, as sysfs has it.
///
/// # Errors
/// What the system said: there is no block device with that number.
pub fn device_name(number: u64) -> io::Result<String> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let uevent = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/uevent"));
    let text = fs::read_to_string(uevent)?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}
