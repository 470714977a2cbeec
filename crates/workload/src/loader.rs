//! Ways to load an app's working set: demand paging alone, other launch loaders, and `frontrow
//! launch`.

use crate::Error;
use crate::app::{App, Range};
use crate::gaps::Gaps;
use launch::load::{Source, send};
use launch::plan::{Joining, Request, layout};
use launch::prepare::{PADDING, open_device};
use launch::profile::{self, Profile, ProfiledFile, Timing};
use launch::residency::{resident_pages, stop_readahead};
use launch::resume::resume;
use launch::{Identity, Latency, WorkingSet};
use record::policy::Loader;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use sys::device::{PAGE_BYTES, Pages};

/// Most pages of one readahead(2) in ureadahead, and wherever requests may not be longer.
const CALL_PAGES: u64 = (128 << 10) / PAGE_BYTES as u64;

/// An app on the file system under test.
pub(crate) struct Installed {
    pub(crate) app: App,
    pub(crate) paths: Vec<PathBuf>,
    profile: Profile,
    /// Index of a file and a range of its pages, in the order of ureadahead.
    by_place: Vec<(usize, Range)>,
    /// The start's reads in the device's order.
    reads_by_place: Vec<(usize, Range)>,
}

/// Bytes that a loader read beside the working set, and the gaps of its plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Padding {
    pub(crate) bytes: u64,
    pub(crate) gaps: Gaps,
}

impl Installed {
    /// `app` with its files at `paths`. What a tool keeps from an earlier start is computed here.
    pub(crate) fn new(app: App, paths: Vec<PathBuf>) -> Result<Self, Error> {
        let mut files = Vec::new();
        let mut by_place = Vec::new();
        let mut reads_by_place = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let failed = |source| Error::io("look at", path, source);
            let file = File::open(path).map_err(failed)?;
            let chunks = &app.chunks[index];
            let extents = sys::device::Layout::of(&file, false)
                .map_err(failed)?
                .written();
            for chunk in chunks {
                let place = place(chunk, &extents);
                by_place.extend(parts(*chunk).map(|part| (place, (index, part))));
            }
            let reads = app.accesses.iter().filter(|it| it.file == index);
            reads_by_place.extend(reads.map(|it| (place(&it.pages, &extents), (index, it.pages))));
            files.push(ProfiledFile {
                path: path.clone(),
                identity: Identity::of(&file).map_err(failed)?,
                pages: chunks.iter().map(pages).collect(),
                late: Default::default(),
            });
        }
        let in_order = |mut all: Vec<(u64, (usize, Range))>| -> Vec<(usize, Range)> {
            all.sort_by_key(|(place, (_, part))| (*place, part.first));
            all.into_iter().map(|(_, part)| part).collect()
        };
        Ok(Installed {
            app,
            paths,
            profile: Profile {
                command: String::new(),
                recorded_s: 0,
                runs: 1,
                timing: Timing::Before,
                measured: None,
                files,
                // New metadata are in memory anyway: the journal keeps them.
                metadata: Vec::new(),
            },
            by_place: in_order(by_place),
            reads_by_place: in_order(reads_by_place),
        })
    }

    /// Loads the app, and calls `start` when the loader lets it start. `device` is open with
    /// O_DIRECT.
    pub(crate) fn launch(
        &self,
        loader: Loader,
        latency: Option<&Latency>,
        device: Option<&File>,
        start: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Padding, Error> {
        let access = self.app.accesses.iter().map(|it| (it.file, it.pages));
        match loader {
            Loader::Demand => start().map(|()| Padding::default()),
            Loader::FirstAccess => self.read_ahead(merged_in_files(access), start),
            Loader::Reordered => {
                self.read_one_by_one()?;
                start().map(|()| Padding::default())
            }
            Loader::LbaOrder => self.read_ahead(self.by_place.iter().copied(), start),
            Loader::WholeFile => {
                let whole = |(file, &count): (usize, &u64)| (file, Range { first: 0, count });
                self.read_ahead(self.app.file_pages.iter().enumerate().map(whole), start)
            }
            Loader::Merged => self.read_planned(&Joining::Merge, None, start),
            Loader::Padded | Loader::PaddedReadahead => {
                let pad = |latency: &Latency| Joining::Pad {
                    latency: Box::new(latency.clone()),
                    most: PADDING,
                };
                // Without a latency table no gap is known to be worth reading.
                self.read_planned(&latency.map_or(Joining::Merge, pad), device, start)
            }
        }
    }

    /// Loads the app, which runs.
    pub(crate) fn resume(&self, loader: Loader, latency: Option<&Latency>) -> Result<(), Error> {
        let padding = latency.filter(|_| loader.pads());
        match loader {
            Loader::Merged | Loader::Padded | Loader::PaddedReadahead => {
                resume(&self.profile, |_| padding.cloned())
                    .map(drop)
                    .map_err(|error| self.failed(&error))
            }
            _ => self.launch(loader, None, None, || Ok(())).map(drop),
        }
    }

    /// Opens the app's files, as while it runs.
    pub(crate) fn open(&self) -> Result<Vec<File>, Error> {
        let open = |path: &PathBuf| File::open(path).map_err(|it| Error::io("open", path, it));
        self.paths.iter().map(open).collect()
    }

    fn failed(&self, error: &launch::load::Error) -> Error {
        Error::Interface {
            path: self.paths[0].clone(),
            reason: error.to_string(),
        }
    }

    fn read_ahead(
        &self,
        parts: impl Iterator<Item = (usize, Range)>,
        start: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Padding, Error> {
        let files = self.open()?;
        for (file, part) in parts {
            read_ahead(&files[file], part)
                .map_err(|source| Error::io("read ahead", &self.paths[file], source))?;
        }
        start()?;
        Ok(Padding::default())
    }

    /// Waits for each of the start's reads before the next, and has the kernel read nothing else.
    fn read_one_by_one(&self) -> Result<(), Error> {
        let files = self.open()?;
        for (file, path) in files.iter().zip(&self.paths) {
            stop_readahead(file).map_err(|it| Error::io("prepare", path, it))?;
        }
        let mut buffer = Pages::zeroed(1 << 20);
        for (file, part) in &self.reads_by_place {
            let failed = |source| Error::io("read", &self.paths[*file], source);
            let bytes = part.count as usize * PAGE_BYTES;
            files[*file]
                .read_exact_at(&mut buffer[..bytes], part.first * PAGE_BYTES as u64)
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Makes the profile of what is in memory of the app's files.
    pub(crate) fn profile_memory(&mut self) -> Result<(), Error> {
        for profiled in &mut self.profile.files {
            let failed = |source| Error::io("look at", &profiled.path, source);
            let file = File::open(&profiled.path).map_err(failed)?;
            // None only for users who may not write to the file.
            profiled.pages = resident_pages(&file).map_err(failed)?.unwrap_or_default();
        }
        Ok(())
    }

    fn read_planned(
        &self,
        joining: &Joining,
        device: Option<&File>,
        start: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Padding, Error> {
        let failed = |error: launch::load::Error| self.failed(&error);
        let set = WorkingSet::open_and_begin(&self.profile.files);
        let files: Vec<&File> = set.files.iter().map(|it| &it.file).collect();
        let mut requests: Vec<Request> = Vec::new();
        let mut gaps = Gaps::default();
        for mut on_device in set.places().devices.into_values() {
            on_device.readable = device.is_some();
            let plan = layout(on_device, joining);
            gaps.add(&plan);
            requests.extend(plan);
        }
        let source = Source { files, device };
        let sent = send(&requests, source).map_err(failed)?;
        start()?;
        let bytes = sent.finish().map_err(failed)?.padding_bytes;
        Ok(Padding { bytes, gaps })
    }
}

fn pages(range: &Range) -> profile::Pages {
    profile::Pages {
        first: range.first,
        count: range.count,
    }
}

fn place(chunk: &Range, extents: &[sys::device::Extent]) -> u64 {
    let begin = chunk.first * PAGE_BYTES as u64;
    extents
        .iter()
        .find(|it| (it.logical_bytes..it.logical_bytes + it.size_bytes).contains(&begin))
        .map_or(u64::MAX, |it| it.physical_bytes + begin - it.logical_bytes)
}

fn parts(chunk: Range) -> impl Iterator<Item = Range> {
    (0..chunk.count.div_ceil(CALL_PAGES)).map(move |index| {
        let done = index * CALL_PAGES;
        Range {
            first: chunk.first + done,
            count: CALL_PAGES.min(chunk.count - done),
        }
    })
}

/// Joins consecutive accesses that adjoin, as libprefetch does.
fn merged_in_files(
    accesses: impl Iterator<Item = (usize, Range)>,
) -> impl Iterator<Item = (usize, Range)> {
    let mut accesses = accesses.peekable();
    std::iter::from_fn(move || {
        let (file, mut range) = accesses.next()?;
        while let Some((_, next)) = accesses
            .next_if(|(other, next)| *other == file && next.first == range.first + range.count)
        {
            range.count += next.count;
        }
        Some((file, range))
    })
}

/// Calls readahead(2) in pieces: it reads at most what a request may hold (`force_page_cache_ra`).
fn read_ahead(file: &File, range: Range) -> io::Result<()> {
    let mut done = 0;
    while done < range.count {
        let count = CALL_PAGES.min(range.count - done);
        let offset = (range.first + done) * PAGE_BYTES as u64;
        let bytes = count as usize * PAGE_BYTES;
        // SAFETY: an open descriptor and numbers.
        if unsafe { libc::readahead(file.as_raw_fd(), offset as libc::off64_t, bytes) } != 0 {
            return Err(io::Error::last_os_error());
        }
        done += count;
    }
    Ok(())
}

/// Opens the block device with the file system of `path`, with O_DIRECT.
pub(crate) fn device_of(path: &Path) -> Result<File, Error> {
    let failed = |source| Error::io("open the device of", path, source);
    let device = std::fs::metadata(path).map_err(failed)?.dev();
    open_device(device).map_err(failed)
}
