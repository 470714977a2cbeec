//! Changes of all settings while requests are in flight.

use crate::failure::require;
use crate::load::{Load, Random};
use crate::stand::FRONTROW;
use crate::volume::Volume;
use crate::{Outcome, Stand};
use std::thread;
use std::time::Duration;

/// Number of switches of the scheduler.
const SWITCHES: u32 = 200;

const TAGS: [&str; 6] = ["4", "512", "5", "64", "17", "256"];

/// A setting in `queue/iosched/`, a value, and the error that it must give.
const SETTINGS: [(&str, &str, Option<i32>); 18] = [
    ("boost", "none", None),
    ("boost", "meta", None),
    ("boost", "data,journal", None),
    ("boost", "all discard", None),
    ("boost", "everything", Some(libc::EINVAL)),
    ("boost", "meta,dat", Some(libc::EINVAL)),
    ("boost", "all", None),
    ("async_share", "1", None),
    ("async_share", "100", None),
    ("async_share", "0", Some(libc::ERANGE)),
    ("async_share", "101", Some(libc::ERANGE)),
    ("async_share", "twelve", Some(libc::EINVAL)),
    ("async_share", "12", None),
    ("slice_us", "0", None),
    ("slice_us", "1000000", None),
    ("slice_us", "1000001", Some(libc::ERANGE)),
    ("slice_us", "-1", Some(libc::EINVAL)),
    ("slice_us", "2500", None),
];

pub(crate) fn run(stand: &Stand) -> Outcome<()> {
    let volume = Volume::make(stand)?;
    let load = Load::start(volume.path(), stand.seed);
    let mut random = Random::new(stand.seed);
    let others: Vec<_> = stand
        .schedulers()?
        .into_iter()
        .filter(|name| name != FRONTROW)
        .collect();
    for switch in 0..SWITCHES * stand.rounds {
        let index = switch as usize / 2;
        if switch % 2 == 0 {
            stand.set("scheduler", &others[index % others.len()])?;
        } else {
            stand.set("scheduler", FRONTROW)?;
            stand.set("nr_requests", TAGS[index % TAGS.len()])?;
            change_setting(stand, SETTINGS[index % SETTINGS.len()])?;
            let pause_ms = random.below(40) as u64;
            thread::sleep(Duration::from_millis(pause_ms));
        }
        load.goes_on(1)?;
    }
    load.end()?;
    volume.unmount()
}

fn change_setting(stand: &Stand, (name, value, wanted): (&str, &str, Option<i32>)) -> Outcome<()> {
    let name = format!("iosched/{name}");
    let before = stand.get(&name)?;
    let got = stand
        .try_set(&name, value)
        .err()
        .map(|error| error.raw_os_error().unwrap_or_default());
    require(got == wanted, || {
        format!("{name} answered '{value}' with error {got:?} instead of {wanted:?}")
    })?;
    let after = stand.get(&name)?;
    require(wanted.is_none() || after == before, || {
        format!("{name} refused '{value}' and yet changed from '{before}' to '{after}'")
    })
}
