//! FastTrack's three foreground apps ("002", 2.3.2 and 6.1): the wait of a user who opens one. The
//! first opening is cold. Then the app is left for a while and opened again; pages that are still
//! in the page cache need not be read. Each app has a file of its own.

pub(crate) mod camera;
pub(crate) mod gallery;
pub(crate) mod game;

use crate::Error;
use crate::background::Background;
use crate::content;
use crate::launch::{read_through, replace, write_new};
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext};
use crate::timed::{drop_cached, forget_cached};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::Pages;

/// Size of one read, as read-ahead would have it.
const READ_BYTES: usize = 128 << 10;

/// Size of the app's code.
const PROGRAM_BYTES: usize = 4 << 20;

/// Time to decode a photo, or a part of a game's assets.
const DECODE: Duration = Duration::from_millis(1);

/// Time for which the user leaves the app.
const ABSENCE: Duration = Duration::from_secs(1);

/// Disk space of an app without its scenario, in bytes.
const OWN_BYTES: u64 = (PROGRAM_BYTES + READ_BYTES) as u64;

/// Files of every app: its code, and settings that it saves.
pub(crate) struct App {
    pub(crate) program: PathBuf,
    settings: PathBuf,
    pub(crate) data: Pages,
    buffer: Pages,
    pub(crate) responses: u64,
}

impl App {
    fn new(context: &RunContext) -> Self {
        App {
            program: context.directory.join("program"),
            settings: context.directory.join("settings.xml"),
            data: content::uniform(1 << 20, &mut context.random("foreground")),
            buffer: Pages::zeroed(READ_BYTES),
            responses: context.sizes.responses,
        }
    }

    fn prepare(&self) -> Result<(), Error> {
        write_new(&self.program, &self.data, PROGRAM_BYTES)?;
        write_new(&self.settings, &self.data, READ_BYTES)?;
        forget_cached(&self.program)
    }

    fn read(&mut self, meter: &mut Meter, path: &Path) -> Result<(), Error> {
        read_through(meter, path, &mut self.buffer)
    }

    fn start(&mut self, meter: &mut Meter) -> Result<(), Error> {
        meter.step(|meter| read_through(meter, &self.program, &mut self.buffer))
    }

    fn save_settings(&self, meter: &mut Meter) -> Result<(), Error> {
        meter.step(|meter| replace(meter, &self.settings, &self.data[..READ_BYTES / 8]))
    }
}

/// Part of an app that differs between scenarios.
pub(crate) trait Scenario {
    fn prepare(&self, app: &App) -> Result<(), Error>;

    /// Files that it reads besides the app's code.
    fn read_files(&self) -> &[PathBuf];

    /// Performs everything that the user waits for.
    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error>;
}

pub(crate) struct Front<S> {
    pub(crate) app: App,
    pub(crate) scenario: S,
}

impl<S: Scenario> Front<S> {
    /// Drops all files that it reads from the page cache. They were synced when they were prepared,
    /// so this does not sync, which would disturb others.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        drop_cached(&self.app.program)?;
        let mut files = self.scenario.read_files().iter();
        files.try_for_each(|file| drop_cached(file))
    }

    /// Opens the app and records the response.
    pub(crate) fn open(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let Front { app, scenario } = self;
        meter.span("response", |meter| scenario.respond(app, meter))
    }
}

impl<S: Scenario> Foreground for Front<S> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.app.prepare()?;
        self.scenario.prepare(&self.app)
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        for number in 0..self.app.responses {
            if number > 0 {
                be_elsewhere(meter);
            }
            self.open(meter)?;
        }
        Ok(())
    }
}

/// Leaves the app; the time does not count as the foreground's.
pub(crate) fn be_elsewhere(meter: &mut Meter) {
    let left = Instant::now();
    std::thread::sleep(ABSENCE);
    meter.exclude(left.elapsed());
}
