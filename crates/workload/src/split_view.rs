//! Several apps on the screen at once ("002", 7.2.3). Each is a process that reads at random places of a
//! file of its own, one read at a time, and each as fast as it is served. Nothing is read from memory.
//! The first app is the active one. A policy names all of them as the foreground, or the others by the
//! share of the screen that they cover.

use crate::background::{Background, Pattern, Script, Shared, monotonic_ns};
use crate::code::Code;
use crate::content;
use crate::footprint::Footprint;
use crate::load::{WRITER, fill};
use crate::memcg::MemoryCgroup;
use crate::meter::Meter;
use crate::sizes::Size;
use crate::stage::{Foreground, RunContext, rate_mb_s, wait};
use crate::{Error, Measurement};
use record::policy::SCREEN_PERCENT;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Size of one read.
const READ_BYTES: u64 = 64 << 10;

/// Size of an app's file.
const FILE_BYTES: Size = Size {
    demo: 128 << 20,
    full: 1 << 30,
    least: 1 << 20,
    tiny: 1 << 20,
};

/// Time for which the apps read, in milliseconds.
const TIME_MS: Size = Size {
    demo: 5000,
    full: 60_000,
    least: 1000,
    tiny: 100,
};

const APP: Pattern = Pattern {
    perform: read_for_ever,
    ..WRITER
};

pub(crate) const SPLIT_VIEW: Code = Code::app(
    |request, context| Box::new(SplitView::new(context, request.screen_cgroups)),
    |sizes| Footprint::of(SCREEN_PERCENT.len() as u64 * sizes.pick(FILE_BYTES), 0),
);

/// The apps on the screen.
pub(crate) struct SplitView {
    directory: PathBuf,
    seed: u64,
    file_bytes: u64,
    time: Duration,
    cgroups: Vec<PathBuf>,
    scripts: Vec<Script>,
    seen: Vec<Seen>,
}

/// Reads of one app.
struct Seen {
    percent: u8,
    bytes: u64,
    rate_mb_s: f64,
    /// Mean and longest read.
    reads: Option<(Duration, Duration)>,
}

impl SplitView {
    fn new(context: &RunContext, cgroups: &[PathBuf]) -> Self {
        SplitView {
            directory: context.directory.clone(),
            seed: context.seed,
            file_bytes: context.sizes.pick(FILE_BYTES),
            time: Duration::from_millis(context.sizes.pick(TIME_MS)),
            cgroups: cgroups.to_vec(),
            scripts: Vec::new(),
            seen: Vec::new(),
        }
    }

    fn path(&self, percent: u8) -> PathBuf {
        self.directory.join(format!("view-{percent}"))
    }

    fn start(&mut self) -> Result<Vec<Background>, Error> {
        let scripts = std::mem::take(&mut self.scripts);
        let mut apps = Vec::with_capacity(scripts.len());
        for (number, (script, percent)) in scripts.into_iter().zip(SCREEN_PERCENT).enumerate() {
            let cgroup = self.cgroups.get(number);
            let cgroup = cgroup.map(|it| MemoryCgroup::existing(it)).transpose()?;
            apps.push(Background::start(script, self.path(percent), cgroup)?);
        }
        Ok(apps)
    }
}

impl Foreground for SplitView {
    fn prepare(&mut self) -> Result<(), Error> {
        let stop = AtomicBool::new(false);
        for percent in SCREEN_PERCENT {
            let path = self.path(percent);
            let purpose = format!("view-{percent}");
            let mut random = sys::random::Random::for_purpose(self.seed, &purpose);
            fill(&path, self.file_bytes, &mut random, &stop)?;
            self.scripts.push(Script {
                pattern: &APP,
                file: open(&path)?,
                file_bytes: self.file_bytes,
                rounds: u64::MAX,
                data: content::uniform(READ_BYTES as usize, &mut random),
                random,
                idle_class: false,
            });
        }
        Ok(())
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let begun = Instant::now();
        let mut apps = self.start()?;
        wait(self.time, meter.stop(), || {
            apps.iter_mut().try_for_each(Background::check)?;
            Ok(false)
        })?;
        let time = begun.elapsed();
        let seen = apps.iter().zip(SCREEN_PERCENT).map(|(app, percent)| Seen {
            percent,
            bytes: app.written_bytes(),
            rate_mb_s: rate_mb_s(app.written_bytes(), time),
            reads: app.noted_calls(),
        });
        self.seen = seen.collect();
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let all_bytes: u64 = self.seen.iter().map(|it| it.bytes).sum();
        let mut figures = Vec::new();
        for app in &self.seen {
            let name = |what: &str| format!("view_{}_{what}", app.percent);
            let share = app.bytes as f64 / all_bytes.max(1) as f64;
            figures.push(Measurement::new(name("read_mb_s"), "MB/s", app.rate_mb_s));
            figures.push(Measurement::new(name("share"), "1", share));
            if let Some((mean, longest)) = app.reads {
                figures.push(Measurement::duration(&name("read_mean_ms"), mean));
                figures.push(Measurement::duration(&name("read_max_ms"), longest));
            }
        }
        figures
    }
}

/// Opens the file for reads of which the kernel adds none.
fn open(path: &Path) -> Result<File, Error> {
    let failed = |source| Error::io("open", path, source);
    let file = File::open(path).map_err(failed)?;
    match advise(&file, 0, 0, libc::POSIX_FADV_RANDOM) {
        0 => Ok(file),
        errno => Err(failed(std::io::Error::from_raw_os_error(errno))),
    }
}

/// Returns an error's number, or 0.
fn advise(file: &File, offset: u64, bytes: u64, advice: libc::c_int) -> libc::c_int {
    let (offset, bytes) = (offset as libc::off_t, bytes as libc::off_t);
    // SAFETY: an open descriptor and numbers.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, bytes, advice) }
}

/// Bytes that were read count as written. What is read leaves the memory at once.
fn read_for_ever(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    let places = script.file_bytes / READ_BYTES;
    loop {
        let offset = script.random.below(places) * READ_BYTES;
        let begun_ns = monotonic_ns();
        script.read_at(READ_BYTES, offset)?;
        shared.note_call(monotonic_ns() - begun_ns);
        shared.progress(READ_BYTES);
        match advise(&script.file, offset, READ_BYTES, libc::POSIX_FADV_DONTNEED) {
            0 => {}
            errno => return Err(errno),
        }
    }
}
