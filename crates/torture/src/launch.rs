//! Assumptions of `frontrow launch`: a batch of reads becomes the requests of its plan across
//! files, and padding is read but does not stay in memory.

use crate::failure::require;
use crate::trace::Tracing;
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use ::launch::load::{Source, send};
use ::launch::plan::{DevicePieces, Joining, Request, layout};
use ::launch::profile::{PAGE_BYTES, Pages, Profile, ProfiledFile, Timing};
use ::launch::{Identity, Latency, WorkingSet, residency};
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const SECTOR_BYTES: u64 = 512;
const FILES: usize = 10;
const FILE_PAGES: u64 = 12;

/// Pages of each file in the profile, with gaps at the begin, in the middle and at the end.
const PAGES: [Pages; 2] = [Pages { first: 2, count: 3 }, Pages { first: 7, count: 4 }];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    // `frontrow launch` refuses larger pages.
    if rustix::param::page_size() as u64 != PAGE_BYTES {
        return Ok(());
    }
    let volume = Volume::make(bed)?;
    let profile = profile(&volume)?;
    // The first asynchronous direct read of a mount creates a workqueue (sb_init_dio_done_wq(), for
    // reads since 6.19). That sleeps, and sends the earlier reads of its batch alone.
    for (_, joining, most) in plans() {
        load(bed, &profile, &joining, most)?;
    }
    for scheduler in bed.schedulers()? {
        bed.set("scheduler", &scheduler)?;
        for (name, joining, most) in plans() {
            let failed = |failure: Failure| Failure::new(format!("{scheduler}, {name}: {failure}"));
            try_one(bed, &profile, &joining, most).map_err(failed)?;
        }
    }
    volume.unmount()
}

/// Ways of joining, and the most requests that each may take.
fn plans() -> [(&'static str, Joining, usize); 2] {
    // A command costs as much as 64 pages, so all gaps of the profile's files are worth reading.
    let latency = Latency {
        ns: std::array::from_fn(|pages| 65 + pages as u64),
        page_ns: 1,
        gap_ns: 0,
        hidden_ns: 0,
    };
    let padded = Joining::Pad {
        latency: Box::new(latency),
        most: 9.0,
    };
    [
        ("merged", Joining::Merge, FILES * PAGES.len()),
        ("padded", padded, FILES / 2),
    ]
}

fn profile(volume: &Volume) -> Outcome<Profile> {
    let mut files = Vec::new();
    for number in 0..FILES {
        let path = volume.path().join(format!("file-{number:02}"));
        let content = vec![number as u8 + 1; (FILE_PAGES * PAGE_BYTES) as usize];
        fs::write(&path, content).map_err(Failure::io("write", &path))?;
        let file = File::open(&path).map_err(Failure::io("open", &path))?;
        file.sync_all().map_err(Failure::io("sync", &path))?;
        files.push(ProfiledFile {
            identity: Identity::of(&file).map_err(Failure::io("look at", &path))?,
            path,
            pages: PAGES.to_vec(),
            late: Default::default(),
        });
    }
    Ok(Profile {
        command: "trial".to_owned(),
        recorded_s: 0,
        runs: 1,
        timing: Timing::Before,
        measured: None,
        files,
        metadata: Vec::new(),
    })
}

fn try_one(bed: &TestBed, profile: &Profile, joining: &Joining, most: usize) -> Outcome<()> {
    let Loaded {
        planned,
        reads,
        set,
    } = load(bed, profile, joining, most)?;
    compare(&planned, &reads)?;
    set.files
        .iter()
        .try_for_each(|it| check_pages(&it.path, &it.file))
}

struct Loaded {
    planned: Vec<Request>,
    /// Ranges of sectors that the device read.
    reads: Vec<Range<u64>>,
    set: WorkingSet,
}

fn load(bed: &TestBed, profile: &Profile, joining: &Joining, most: usize) -> Outcome<Loaded> {
    // The flusher would read a dirty inode's block again, among the reads that are looked at.
    rustix::fs::sync();
    crate::test_bed::drop_caches()?;
    let set = WorkingSet::open(&profile.files);
    require(set.dropped.is_empty(), || format!("{:?}", set.dropped))?;
    let mut devices = set.places().devices.into_values();
    let on_device = DevicePieces {
        readable: true,
        ..devices.next().unwrap_or_default()
    };
    let planned = layout(on_device, joining);
    require(planned.len() <= most, || {
        format!("{} requests are planned, and not {most}", planned.len())
    })?;

    let node = bed.device_node();
    let device = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&node)
        .map_err(Failure::io("open", &node))?;
    let files: Vec<&File> = set.files.iter().map(|it| &it.file).collect();
    let tracing = Tracing::start()?;
    let source = Source {
        files,
        device: Some(&device),
    };
    let outcome = send(&planned, source).and_then(|sent| sent.finish());
    let reads = tracing.finish()?.reads;
    let outcome = outcome.map_err(|error| Failure::new(error.to_string()))?;
    require(outcome.failed == 0 && !outcome.stopped, || {
        format!("not all was read: {outcome:?}")
    })?;
    Ok(Loaded {
        planned,
        reads,
        set,
    })
}

/// Checks that the device got exactly the planned requests.
fn compare(planned: &[Request], reads: &[Range<u64>]) -> Outcome<()> {
    let sectors = |request: &Request| {
        let begin = request.begin_bytes() / SECTOR_BYTES;
        begin..begin + request.length_bytes() / SECTOR_BYTES
    };
    let planned: Vec<_> = planned.iter().map(sectors).collect();
    let mut reads = reads.to_vec();
    reads.sort_by_key(|it| it.start);
    require(planned == reads, || {
        format!("planned were {planned:?}, and sent {reads:?}")
    })
}

/// Checks that exactly the profile's pages are in memory.
fn check_pages(path: &Path, file: &File) -> Outcome<()> {
    let pages = residency::resident_pages(file).map_err(Failure::io("look at", path))?;
    require(pages.as_deref() == Some(&PAGES), || {
        format!("of {} there is {pages:?}", path.display())
    })
}
