//! Steps from a profile to requests that can be sent: open files, find their extents, and get each
//! device and its table.

use crate::latency::Latency;
use crate::load::{self, Error, Sent, Source};
use crate::plan::{DevicePieces, Joining, Part, Purpose, Request, layout};
use crate::working_set::WorkingSet;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Largest padding, as a part of the working set.
pub const PADDING: f64 = 0.1;

/// The reads of one device.
#[derive(Debug)]
pub struct DevicePlan {
    /// Name of the device below /dev; empty if sysfs has none.
    pub name: String,
    /// Whether the device has a latency table, so that padding could be decided on.
    pub calibrated: bool,
    /// Requests, in the order in which the start needs them.
    pub requests: Vec<Request>,
    /// The device, open with O_DIRECT; None if this user may not open it.
    device: Option<File>,
}

/// Lays out the pieces that lie on each device. `latency` gives a device's table by its name.
pub fn prepare(
    devices: BTreeMap<u64, DevicePieces>,
    latency: impl Fn(&str) -> Option<Latency>,
) -> Vec<DevicePlan> {
    let plan = |(number, mut on_device): (u64, DevicePieces)| {
        let name = device_name(number).unwrap_or_default();
        let table = latency(&name);
        let device = open_device(number).ok();
        on_device.readable = device.is_some();
        let calibrated = table.is_some();
        let joining = table.map_or(Joining::Merge, |latency| Joining::Pad {
            latency: Box::new(latency),
            most: PADDING,
        });
        let mut requests = layout(on_device, &joining);
        by_need(&mut requests);
        DevicePlan {
            name,
            calibrated,
            requests,
            device,
        }
    };
    devices.into_iter().map(plan).collect()
}

/// Sorts requests of single files into the order of the profile's files. A request's place makes no
/// difference to flash, and an app that starts meanwhile waits less.
fn by_need(requests: &mut [Request]) {
    let file = |part: &Part| match part.purpose {
        Purpose::Pages(place) => Some(place.file),
        _ => None,
    };
    requests.sort_by_key(|request| request.parts.iter().filter_map(file).min());
}

/// Sends the requests of one device after another, and returns when all are on their way.
///
/// # Errors
/// [`Error`]; the requests sent before are still read.
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

/// Opens the block device with this number (`st_dev`) for reads with O_DIRECT.
///
/// # Errors
/// The system's error; most users may not read devices.
pub fn open_device(number: u64) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(Path::new("/dev").join(device_name(number)?))
}

/// Name below /dev of the block device with this number, from sysfs.
///
/// # Errors
/// The system's error: no block device has this number.
pub fn device_name(number: u64) -> io::Result<String> {
    let (major, minor) = (libc::major(number), libc::minor(number));
    let uevent = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/uevent"));
    let text = fs::read_to_string(uevent)?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="));
    name.map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}
