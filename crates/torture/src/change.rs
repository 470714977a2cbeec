//! Changes of all settings while requests are in flight.

use crate::failure::require;
use crate::load::Load;
use crate::test_bed::FRONTROW;
use crate::volume::Volume;
use crate::{Outcome, TestBed};
use std::thread;
use std::time::Duration;
use sys::random::Random;

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

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let load = Load::start(volume.path(), bed.seed);
    let mut random = Random::new(bed.seed);
    let others: Vec<_> = bed
        .schedulers()?
        .into_iter()
        .filter(|name| name != FRONTROW)
        .collect();
    for switch in 0..SWITCHES * bed.rounds {
        let index = switch as usize / 2;
        if switch % 2 == 0 {
            bed.set("scheduler", &others[index % others.len()])?;
        } else {
            bed.set("scheduler", FRONTROW)?;
            bed.set("nr_requests", TAGS[index % TAGS.len()])?;
            change_setting(bed, SETTINGS[index % SETTINGS.len()])?;
            let pause_ms = random.index(40) as u64;
            thread::sleep(Duration::from_millis(pause_ms));
        }
        load.goes_on(1)?;
    }
    load.end()?;
    volume.unmount()
}

fn change_setting(bed: &TestBed, (name, value, wanted): (&str, &str, Option<i32>)) -> Outcome<()> {
    let name = format!("iosched/{name}");
    let before = bed.get(&name)?;
    let got = bed
        .try_set(&name, value)
        .err()
        .map(|error| error.raw_os_error().unwrap_or_default());
    require(got == wanted, || {
        format!("{name} answered '{value}' with error {got:?} instead of {wanted:?}")
    })?;
    let after = bed.get(&name)?;
    require(wanted.is_none() || after == before, || {
        format!("{name} refused '{value}' and yet changed from '{before}' to '{after}'")
    })
}
