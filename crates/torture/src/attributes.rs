//! Random writes to the scheduler's attributes and random ioctls of the device, in any order and
//! under load. The kernel must accept or refuse each, and both modules must stay intact.
//!
//! The device has no file system here, since an ioctl may move any page to any place.

use crate::failure::require;
use crate::leak::no_allocation_is_lost;
use crate::test_bed::{FRONTROW, is_debug_kernel};
use crate::{Failure, Outcome, TestBed};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use sys::random::Random;

/// Number of writes and ioctls; a debug kernel takes long for each.
const CALLS: u32 = 5_000;
const CALLS_DEBUG: u32 = 4_000;

/// All attributes, with those that are read-only.
const ATTRIBUTES: [&str; 9] = [
    "boost",
    "async_share",
    "background_share",
    "foreground",
    "background",
    "visible",
    "slice_us",
    "stats",
    "dispatched",
];

/// Parts of values, valid and invalid ones.
const WORDS: [&str; 24] = [
    "none",
    "all",
    "meta",
    "data,journal",
    "discard",
    "0",
    "1",
    "12",
    "100",
    "101",
    "2500",
    "1000001",
    "-1",
    "18446744073709551616",
    "/",
    "/torture",
    "/torture/a",
    "/torture/a b",
    "/nowhere",
    "/../..",
    "30 /torture",
    "0 /torture/a",
    "\n",
    "%s%n",
];

const CGROUPS: &str = "/sys/fs/cgroup";

/// Magic number of simflash's ioctls, and the sizes of their structures
/// (`kernel/simflash/simflash_ioctl.h`).
const MAGIC: u64 = 0xf5;
const SIZES: [u64; 6] = [0, 16, 32, 168, 8, 1024];
const OPERATIONS: usize = 12;

const PAGES: usize = 16 << 10;
const PAGE_BYTES: u64 = 4096;

/// Number of writers of the load.
const WRITERS: u64 = 2;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let calls = match is_debug_kernel() {
        true => CALLS_DEBUG,
        false => CALLS,
    };
    make_cgroups()?;
    let outcome = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (stop, written) = (&stop, &written);
                scope.spawn(move || write_on(bed, writer, stop, written))
            })
            .collect();
        let done = call_at_random(bed, calls * bed.rounds, &written);
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().fold(done, |outcome, writer| {
            let panicked = |_| Err(Failure::new("a writer panicked"));
            outcome.and(writer.join().unwrap_or_else(panicked))
        })
    });
    outcome?;
    // The scheduler must still work after all of this.
    for list in ["foreground", "background", "visible"] {
        bed.set(&format!("iosched/{list}"), "none")?;
    }
    bed.set("scheduler", "none")?;
    bed.set("scheduler", FRONTROW)?;
    holds_what_is_written(bed)?;
    no_allocation_is_lost()
}

/// Makes cgroups for the lists, one of them with a blank in its name.
fn make_cgroups() -> Outcome<()> {
    for path in ["torture", "torture/a", "torture/a b"] {
        let path = Path::new(CGROUPS).join(path);
        fs::create_dir_all(&path).map_err(Failure::io("make", &path))?;
    }
    Ok(())
}

/// Writes to the device with O_DIRECT until `stop` is set.
fn write_on(bed: &TestBed, writer: u64, stop: &AtomicBool, written: &AtomicU64) -> Outcome<()> {
    let path = bed.device_node();
    let file = File::options().write(true).open(&path);
    let file = file.map_err(Failure::io("open", &path))?;
    let mut random = Random::new(bed.seed ^ writer);
    let page = vec![writer as u8; PAGE_BYTES as usize];
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..16 {
            let at = random.index(PAGES) as u64 * PAGE_BYTES;
            file.write_all_at(&page, at)
                .map_err(Failure::io("write to", &path))?;
        }
        file.sync_data().map_err(Failure::io("sync", &path))?;
        written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn call_at_random(bed: &TestBed, calls: u32, written: &AtomicU64) -> Outcome<()> {
    let path = bed.device_node();
    let device = File::options().read(true).write(true).open(&path);
    let device = device.map_err(Failure::io("open", &path))?;
    let mut random = Random::new(bed.seed);
    let mut taken = 0;
    for call in 0..calls {
        match random.index(3) {
            0 => taken += u32::from(set(bed, &mut random).is_ok()),
            1 => show(bed, &mut random)?,
            _ => ask(&device, &mut random),
        }
        if call % 500 == 499 {
            bed.set("scheduler", "none")?;
            bed.set("scheduler", FRONTROW)?;
        }
    }
    require(taken > calls / 100, || {
        format!("of {calls} calls only {taken} set anything")
    })?;
    require(written.load(Ordering::Relaxed) > 0, || {
        "nothing was written meanwhile".to_owned()
    })
}

/// A random value: words, bytes, or more than a page.
fn value(random: &mut Random) -> Vec<u8> {
    match random.index(8) {
        0 => (0..random.index(100))
            .map(|_| random.index(256) as u8)
            .collect(),
        1 => vec![b'/'; random.index(6000)],
        2 => {
            let lines = (0..random.index(60)).map(|_| "/torture/a\n");
            lines.collect::<String>().into_bytes()
        }
        _ => {
            let words = (0..1 + random.index(3)).map(|_| WORDS[random.index(WORDS.len())]);
            words.collect::<Vec<_>>().join("\n").into_bytes()
        }
    }
}

fn set(bed: &TestBed, random: &mut Random) -> io::Result<()> {
    let attribute = ATTRIBUTES[random.index(ATTRIBUTES.len())];
    let path = bed.queue_attribute(&format!("iosched/{attribute}"));
    fs::write(path, value(random))
}

/// Reads any attribute, which must be text at any time.
fn show(bed: &TestBed, random: &mut Random) -> Outcome<()> {
    let attribute = ATTRIBUTES[random.index(ATTRIBUTES.len())];
    let text = bed.get(&format!("iosched/{attribute}"))?;
    require(
        !text.is_empty() && text.len() <= PAGE_BYTES as usize,
        || format!("{attribute} shows {} bytes", text.len()),
    )
}

/// Makes a random ioctl with a nearly valid structure, or with random bytes.
fn ask(device: &File, random: &mut Random) {
    let number = random.index(OPERATIONS) as u64;
    let size = SIZES[random.index(SIZES.len())];
    let request = (3 << 30) | (size << 16) | (MAGIC << 8) | number;
    let mut ranges = [0_u32; 64];
    ranges.fill_with(|| random.index(2 * PAGES) as u32);
    let mut structure = [0_u32; 1024];
    let is_wild = random.index(4) == 0;
    for word in &mut structure {
        *word = random.index(if is_wild { usize::MAX } else { 8 }) as u32;
    }
    if !is_wild {
        structure[0] = 1;
        structure[1] = random.index(16) as u32;
        let address = ranges.as_ptr() as u64;
        structure[2] = address as u32;
        structure[3] = (address >> 32) as u32;
    }
    // SAFETY: no operation reads or writes more than its structure, whose size is in the request's
    // number and less than this; the kernel checks the addresses in it. A refusal is as good as a
    // success.
    let _ = unsafe { libc::ioctl(device.as_raw_fd(), request, structure.as_mut_ptr()) };
}

fn holds_what_is_written(bed: &TestBed) -> Outcome<()> {
    let path = bed.device_node();
    let failed = |action: &'static str| Failure::io(action, &path);
    let file = File::options().read(true).write(true).open(&path);
    let file = file.map_err(failed("open"))?;
    let written: Vec<u8> = (0..1 << 20).map(|it: u32| (it / 7) as u8).collect();
    file.write_all_at(&written, 0).map_err(failed("write to"))?;
    file.sync_all().map_err(failed("sync"))?;
    crate::test_bed::drop_caches()?;
    let mut read = vec![0; written.len()];
    file.read_exact_at(&mut read, 0).map_err(failed("read"))?;
    require(read == written, || {
        "the device does not hold what was written to it".to_owned()
    })
}
