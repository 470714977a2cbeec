//! The launch experiment: 16 apps start one after another with cold caches. The figure is the time
//! until a start has read its whole working set.

use crate::app::{APPS, Access, App};
use crate::background::Background;
use crate::code::Code;
use crate::cold::{Reads, drop_caches};
use crate::content;
use crate::footprint::Footprint;
use crate::gaps::Gaps;
use crate::launch::write_new;
use crate::loader::{Installed, device_of};
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext};
use crate::{Error, Measurement};
use launch::Latency;
use launch::calibrate::{SPAN_BYTES, calibrate};
use record::policy::Loader;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// Number of batches of each size in the device's calibration.
const CALIBRATION_ROUNDS: usize = 5;

/// An app has about three times the size of its working set.
pub(crate) const LOADING: Code = Code::app(
    |request, context| Box::new(Loading::new(context, request.loader)),
    |sizes| Footprint::of(APPS as u64 * sizes.app_pages * 3 * PAGE_BYTES as u64, 0),
);

/// The apps and their loader.
pub(crate) struct Loading {
    directory: PathBuf,
    loader: Loader,
    app_pages: u64,
    seed: u64,
    data: Pages,
    random: Random,
    apps: Vec<Installed>,
    latency: Option<Latency>,
    device: Option<File>,
    loaded: Loaded,
}

/// Sums over all starts.
#[derive(Default)]
struct Loaded {
    time: Duration,
    reads: u64,
    read_bytes: u64,
    padding_bytes: u64,
    gaps: Gaps,
}

impl Loading {
    pub(crate) fn new(context: &RunContext, loader: Loader) -> Self {
        let mut random = context.random("loading");
        Loading {
            directory: context.directory.clone(),
            loader,
            app_pages: context.sizes.app_pages,
            seed: context.seed,
            data: content::uniform(1 << 20, &mut random),
            random,
            apps: Vec::new(),
            latency: None,
            device: None,
            loaded: Loaded::default(),
        }
    }

    fn install(&mut self, number: usize) -> Result<(), Error> {
        let app = App::new(number, self.app_pages, self.seed);
        let directory = self.directory.join(format!("app-{number:02}"));
        fs::create_dir(&directory).map_err(|source| Error::io("make", &directory, source))?;
        let mut paths = Vec::new();
        for (index, pages) in app.file_pages.iter().enumerate() {
            let path = directory.join(format!("file-{index}"));
            write_new(&path, &self.data, *pages as usize * PAGE_BYTES)?;
            paths.push(path);
        }
        crate::layout::settle(&directory)?;
        self.apps.push(Installed::new(app, paths)?);
        Ok(())
    }

    fn calibrate(&mut self) -> Result<(), Error> {
        let path = self.directory.join("calibration");
        write_new(&path, &self.data, SPAN_BYTES as usize)?;
        crate::layout::settle(&self.directory)?;
        let failed = |source| Error::io("read", &path, source);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path)
            .map_err(failed)?;
        let random = &mut self.random;
        let latency = calibrate(
            &file,
            SPAN_BYTES,
            CALIBRATION_ROUNDS,
            || random.next_u64(),
            |_, _| true,
        );
        self.latency = Some(latency.map_err(|error| failed(std::io::Error::other(error)))?);
        fs::remove_file(&path).map_err(failed)
    }

    /// App number `number`, which is installed.
    pub(crate) fn app(&self, number: usize) -> &Installed {
        &self.apps[number]
    }

    /// The device's table of read times, where the loader pads.
    pub(crate) fn latency(&self) -> Option<&Latency> {
        self.latency.as_ref()
    }

    /// Makes each app's profile of the pages that a start by demand leaves in memory.
    fn profile_with_readahead(&mut self) -> Result<(), Error> {
        let mut buffer = Pages::zeroed(1 << 20);
        for app in &mut self.apps {
            drop_caches()?;
            Self::start(app, &mut buffer)?;
            app.profile_memory()?;
        }
        Ok(())
    }

    /// Performs the app's own reads; returns the time at which it has read all.
    fn start(app: &Installed, buffer: &mut [u8]) -> Result<Instant, Error> {
        let mut files: Vec<Option<File>> = app.paths.iter().map(|_| None).collect();
        for access in &app.app.accesses {
            let path = &app.paths[access.file];
            let file = match &mut files[access.file] {
                Some(file) => file,
                none => none.insert(File::open(path).map_err(|it| Error::io("open", path, it))?),
            };
            read(file, path, access, buffer)?;
        }
        Ok(Instant::now())
    }
}

/// Performs reads of an app whose files are open.
pub(crate) fn read_all(
    app: &Installed,
    files: &[File],
    reads: &[Access],
    buffer: &mut [u8],
) -> Result<(), Error> {
    let mut reads = reads.iter();
    reads.try_for_each(|it| read(&files[it.file], &app.paths[it.file], it, buffer))
}

fn read(file: &File, path: &Path, access: &Access, buffer: &mut [u8]) -> Result<(), Error> {
    let bytes = access.pages.count as usize * PAGE_BYTES;
    let offset = access.pages.first * PAGE_BYTES as u64;
    file.read_exact_at(&mut buffer[..bytes], offset)
        .map_err(|source| Error::io("read", path, source))
}

impl Foreground for Loading {
    fn prepare(&mut self) -> Result<(), Error> {
        if self.loader.pads() {
            self.calibrate()?;
            self.device = Some(device_of(&self.directory)?);
        }
        (0..APPS).try_for_each(|number| self.install(number))?;
        match self.loader {
            Loader::PaddedReadahead => self.profile_with_readahead(),
            _ => Ok(()),
        }
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let mut buffer = Pages::zeroed(1 << 20);
        for app in &self.apps {
            meter.go_on()?;
            let between = Instant::now();
            drop_caches()?;
            meter.exclude(between.elapsed());
            let before = Reads::of(&self.directory)?;
            let begun = Instant::now();
            let mut ended = begun;
            let (latency, device) = (self.latency.as_ref(), self.device.as_ref());
            let padding = app.launch(self.loader, latency, device, || {
                ended = Self::start(app, &mut buffer)?;
                Ok(())
            })?;
            self.loaded.time += ended - begun;
            let reads = Reads::of(&self.directory)?.since(before);
            self.loaded.reads += reads.requests;
            self.loaded.read_bytes += reads.bytes;
            self.loaded.padding_bytes += padding.bytes;
            self.loaded.gaps.merge(padding.gaps);
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let pages: u64 = self.apps.iter().map(|it| it.app.pages()).sum();
        let working_set_bytes = (pages * PAGE_BYTES as u64) as f64;
        let read_kib = self.loaded.read_bytes as f64 / 1024.0 / self.loaded.reads.max(1) as f64;
        let apps = self.apps.len() as u32;
        let mut figures = vec![
            Measurement::duration("load_time_ms", self.loaded.time / apps.max(1)),
            Measurement::new("average_read_kib", "KiB", read_kib),
            Measurement::new(
                "read_over_set",
                "1",
                self.loaded.read_bytes as f64 / working_set_bytes,
            ),
            Measurement::new(
                "padding_share",
                "1",
                self.loaded.padding_bytes as f64 / working_set_bytes,
            ),
        ];
        if self.loader.pads() {
            figures.extend(self.loaded.gaps.figures());
        }
        figures
    }
}
