//! What is recorded, in the guest: a phone is used, and its files are defragmented.

use crate::files::{Mark, Phase, files_below};
use crate::stream::PAGE_BYTES;
use age::{Phone, Use, room};
use defrag::{Pace, Remap, Survey};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Where a device that records takes marks, and gives its stream.
const MARK: &str = "mark";
const STREAM: &str = "stream";

/// Uses a phone for so many days at `mount_point`, where an ext4 is that is empty, on a device
/// whose debugfs directory is `device`, and defragments it after each; gives the stream.
///
/// # Errors
/// One sentence.
pub fn record(days: u32, seed: u64, mount_point: &Path, device: &Path) -> Result<Vec<u8>, String> {
    let never = AtomicBool::new(false);
    let directory = mount_point.join("phone");
    fs::create_dir(&directory).map_err(failed("make", &directory))?;
    let mark = |begins| mark(begins, mount_point, device);
    mark(Phase::Ageing)?;
    let of = use_of(days, seed, &directory)?;
    let aged = |error: age::Error| error.to_string();
    let mut phone = Phone::install(of, &directory, &never).map_err(aged)?;
    while phone.days() < days {
        mark(Phase::Ageing)?;
        phone.day(&never).map_err(aged)?;
        mark(Phase::Defragmentation)?;
        let beside = Beside::start(mount_point.join("beside"), phone.days());
        let defragmented = defragment(&directory, &never);
        beside.end()?;
        defragmented?;
    }
    mark(Phase::End)?;
    let stream = device.join(STREAM);
    fs::read(&stream).map_err(failed("read", &stream))
}

fn use_of(days: u32, seed: u64, directory: &Path) -> Result<Use, String> {
    let room = room(directory).map_err(|error| error.to_string())?;
    let wanted_bytes = room.capacity_bytes / 100 * u64::from(Use::FILL);
    Ok(Use {
        days,
        sessions: Use::SESSIONS,
        capacity_bytes: room.capacity_bytes,
        target_bytes: wanted_bytes.saturating_sub(room.used_bytes),
        seed,
    })
}

fn failed<'a>(verb: &'static str, path: &'a Path) -> impl Fn(io::Error) -> String + 'a {
    move |error| format!("it cannot {verb} {}: {error}", path.display())
}

/// Everything is in flash, and what it is goes into the stream.
fn mark(begins: Phase, mount_point: &Path, device: &Path) -> Result<(), String> {
    sync(mount_point).map_err(failed("sync", mount_point))?;
    let mark = Mark {
        begins,
        files: files_below(mount_point, mount_point).map_err(failed("read", mount_point))?,
    };
    let text = serde_json::to_vec(&mark).map_err(|error| error.to_string())?;
    let path = device.join(MARK);
    // One write, one mark.
    fs::write(&path, text).map_err(failed("write to", &path))
}

fn sync(mount_point: &Path) -> io::Result<()> {
    let file = File::open(mount_point)?;
    // SAFETY: takes the number of an open file.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Somebody who writes meanwhile, durably, so that the journal and the collector are at work.
struct Beside {
    over: Arc<AtomicBool>,
    path: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

/// Pages of his file.
const BESIDE_PAGES: u64 = 64;

/// What is written before it is made durable.
const AT_ONCE_PAGES: u64 = 3;

/// And how long he then rests.
const REST: Duration = Duration::from_millis(4);

impl Beside {
    fn start(path: PathBuf, day: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (seen, file) = (Arc::clone(&over), path.clone());
        Beside {
            over,
            path,
            thread: thread::spawn(move || write_on(&file, day, &seen)),
        }
    }

    fn end(self) -> Result<(), String> {
        self.over.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(written) => written.map_err(failed("write", &self.path)),
            Err(_) => Err("a thread of it died".to_owned()),
        }
    }
}

/// No page is ever written with what it had.
fn write_on(path: &Path, day: u32, over: &AtomicBool) -> io::Result<()> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let mut count = u64::from(day) << 32;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..AT_ONCE_PAGES {
            count += 1;
            let page = count.to_le_bytes().repeat(PAGE_BYTES / 8);
            let at = count * 37 % BESIDE_PAGES;
            file.write_all_at(&page, at * PAGE_BYTES as u64)?;
        }
        file.sync_data()?;
        thread::sleep(REST);
    }
    Ok(())
}

/// Every file that is in more pieces than need be, unmeasured.
fn defragment(directory: &Path, never: &AtomicBool) -> Result<(), String> {
    let said = |error: defrag::Error| error.to_string();
    let remap = Remap::of(directory).map_err(said)?;
    let remap = remap.ok_or_else(|| "the device cannot remap".to_owned())?;
    let survey = Survey::of(directory, never).map_err(said)?;
    let mut last = None;
    for finding in &survey.fragmented {
        let path = &finding.path;
        // What is refused stays where it is.
        let moved = defrag::repair(
            Path::new("/"),
            path,
            Some(&remap),
            &mut Pace::new(None),
            never,
        );
        last = moved.ok().map(|_| path).or(last);
    }
    match last {
        Some(path) => defrag::settle(path).map_err(failed("sync", path)),
        None => Ok(()),
    }
}
