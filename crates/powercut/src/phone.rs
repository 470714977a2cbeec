//! The recorded guest: a phone that is used and defragmented.

use crate::files::{Mark, Phase, files_below};
use crate::stream::PAGE_BYTES;
use layout::defrag::{Pace, Remap, Survey};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use workload::age::{Phone, Use, room};

/// Files in debugfs that take marks, and give the stream.
const MARK: &str = "mark";
const STREAM: &str = "stream";

/// Uses a phone for `days` days, and defragments it after each; returns the stream. `mount_point`
/// is an empty ext4 on a device whose debugfs directory is `device`.
///
/// # Errors
/// A sentence that says what failed.
pub fn record(days: u32, seed: u64, mount_point: &Path, device: &Path) -> Result<Vec<u8>, String> {
    let never = AtomicBool::new(false);
    let directory = mount_point.join("phone");
    fs::create_dir(&directory).map_err(failed("make", &directory))?;
    let mark = |begins| mark(begins, mount_point, device);
    mark(Phase::Ageing)?;
    let of = use_of(days, seed, &directory)?;
    let aged = |error: workload::age::Error| error.to_string();
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
        target_bytes: wanted_bytes.saturating_sub(room.used_bytes()),
        seed,
    })
}

fn failed<'a>(verb: &'static str, path: &'a Path) -> impl Fn(io::Error) -> String + 'a {
    move |error| format!("it cannot {verb} {}: {error}", path.display())
}

/// Syncs all files, and writes their checksums into the stream.
fn mark(begins: Phase, mount_point: &Path, device: &Path) -> Result<(), String> {
    sync(mount_point).map_err(failed("sync", mount_point))?;
    let mark = Mark {
        begins,
        files: files_below(mount_point, mount_point).map_err(failed("read", mount_point))?,
    };
    let text = serde_json::to_vec(&mark).map_err(|error| error.to_string())?;
    let path = device.join(MARK);
    // One write makes one mark.
    fs::write(&path, text).map_err(failed("write to", &path))
}

fn sync(mount_point: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(mount_point)?)?)
}

/// A writer that syncs during the defragmentation, so that journal and collector are busy.
struct Beside {
    over: Arc<AtomicBool>,
    path: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

/// Size of the writer's file, in pages.
const BESIDE_PAGES: u64 = 64;

/// Number of pages that are written before each sync.
const AT_ONCE_PAGES: u64 = 3;

/// Pause of the writer after each sync.
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

/// Writes pages until `over` is set; each page gets new content.
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

/// Defragments each file with more pieces than necessary, without measurement.
fn defragment(directory: &Path, never: &AtomicBool) -> Result<(), String> {
    let said = |error: layout::defrag::Error| error.to_string();
    let remap = Remap::of(directory).map_err(said)?;
    let remap = remap.ok_or_else(|| "the device cannot remap".to_owned())?;
    let survey = Survey::of(directory, never).map_err(said)?;
    let mut last = None;
    for finding in &survey.fragmented {
        let path = &finding.path;
        // A file that is refused stays where it is.
        let moved = layout::defrag::repair(
            Path::new("/"),
            path,
            Some(&remap),
            &mut Pace::new(None),
            never,
        );
        last = moved.ok().map(|_| path).or(last);
    }
    match last {
        Some(path) => layout::defrag::settle(path).map_err(failed("sync", path)),
        None => Ok(()),
    }
}
