//! FastTrack's three foreground apps ("002", 2.3.2 and 6.1): the wait of a user who opens one. The
//! first opening is cold. Then the app is left for a while and opened again; pages that are still
//! in the page cache need not be read.

use crate::Error;
use crate::background::Background;
use crate::content;
use crate::launch::{read_through, replace, write_new};
use crate::meter::Meter;
use crate::sizes::Sizes;
use crate::stage::{Foreground, Ground};
use crate::timed::{Timed, drop_cached, forget_cached};
use device::Pages;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// Size of one read, as read-ahead would have it.
const READ_BYTES: usize = 128 << 10;

/// Size of the app's code.
const PROGRAM_BYTES: usize = 4 << 20;

/// Size of a photo and of its thumbnail, and the time to decode either.
const PHOTO_BYTES: usize = 512 << 10;
const THUMBNAIL_BYTES: usize = 16 << 10;
const DECODE: Duration = Duration::from_millis(1);

/// Size of one of a game's asset files.
const ASSET_BYTES: usize = 2 << 20;

/// Time for which the user leaves the app.
const ABSENCE: Duration = Duration::from_secs(1);

/// Disk space of the gallery, in bytes.
pub(crate) fn gallery_bytes(sizes: &Sizes) -> u64 {
    (PROGRAM_BYTES + READ_BYTES) as u64 + sizes.photos * (PHOTO_BYTES + THUMBNAIL_BYTES) as u64
}

/// Disk space of the camera, in bytes.
pub(crate) fn camera_bytes(sizes: &Sizes) -> u64 {
    (PROGRAM_BYTES + READ_BYTES) as u64 + sizes.burst_shots * sizes.burst_shot_bytes
}

/// Disk space of the game in bytes, with an eighth of its assets unpacked.
pub(crate) fn game_bytes(sizes: &Sizes) -> u64 {
    (PROGRAM_BYTES + READ_BYTES) as u64 + sizes.game_bytes / 8 * 9
}

/// Files of every app: its code, and settings that it saves.
pub(crate) struct App {
    pub(crate) program: PathBuf,
    settings: PathBuf,
    pub(crate) data: Pages,
    buffer: Pages,
    pub(crate) responses: u64,
}

impl App {
    fn new(ground: &Ground) -> Self {
        App {
            program: ground.directory.join("program"),
            settings: ground.directory.join("settings.xml"),
            data: content::uniform(MIB, &mut ground.random("foreground")),
            buffer: Pages::zeroed(READ_BYTES),
            responses: ground.sizes.responses,
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

/// An album that is opened: each photo is read, and its thumbnail appended to a cache.
pub(crate) struct Gallery {
    photos: Vec<PathBuf>,
    thumbnails: PathBuf,
}

pub(crate) fn gallery(ground: &Ground) -> Front<Gallery> {
    Front {
        app: App::new(ground),
        scenario: Gallery::new(ground),
    }
}

impl Gallery {
    fn new(ground: &Ground) -> Self {
        let photo = |index| ground.directory.join(format!("photo-{index}.jpg"));
        Gallery {
            photos: (0..ground.sizes.photos).map(photo).collect(),
            thumbnails: ground.directory.join("thumbnails"),
        }
    }
}

impl Scenario for Gallery {
    fn prepare(&self, app: &App) -> Result<(), Error> {
        for photo in &self.photos {
            write_new(photo, &app.data, PHOTO_BYTES)?;
            forget_cached(photo)?;
        }
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &self.photos
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        app.start(meter)?;
        let mut thumbnails = Timed::creat(meter, &self.thumbnails)?;
        for photo in &self.photos {
            meter.step(|meter| {
                app.read(meter, photo)?;
                std::thread::sleep(DECODE);
                thumbnails.write(meter, &app.data[..THUMBNAIL_BYTES])
            })?;
        }
        thumbnails.close(meter)?;
        app.save_settings(meter)
    }
}

/// A camera that is left: the burst in memory is made durable, then the home screen is read.
pub(crate) struct Camera {
    shots: Vec<PathBuf>,
    shot_bytes: usize,
}

pub(crate) fn camera(ground: &Ground) -> Front<Camera> {
    let shot = |index| ground.directory.join(format!("shot-{index}.jpg"));
    Front {
        app: App::new(ground),
        scenario: Camera {
            shots: (0..ground.sizes.burst_shots).map(shot).collect(),
            shot_bytes: ground.sizes.burst_shot_bytes as usize,
        },
    }
}

impl Camera {
    fn save(&self, app: &App, meter: &mut Meter, shot: &Path) -> Result<(), Error> {
        let mut file = Timed::creat(meter, shot)?;
        let mut left = self.shot_bytes;
        while left > 0 {
            let now = left.min(app.data.len());
            file.write(meter, &app.data[..now])?;
            left -= now;
        }
        file.fsync(meter)?;
        file.close(meter)
    }
}

impl Scenario for Camera {
    fn prepare(&self, _: &App) -> Result<(), Error> {
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &[]
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        for shot in &self.shots {
            meter.step(|meter| self.save(app, meter, shot))?;
        }
        app.start(meter)?;
        app.save_settings(meter)
    }
}

/// A game that is loaded: it reads its assets and writes what it unpacks to a cache.
pub(crate) struct Game {
    assets: Vec<PathBuf>,
    cache: PathBuf,
}

pub(crate) fn game(ground: &Ground) -> Front<Game> {
    let assets = (ground.sizes.game_bytes as usize).div_ceil(ASSET_BYTES);
    let asset = |index| ground.directory.join(format!("asset-{index}.obb"));
    Front {
        app: App::new(ground),
        scenario: Game {
            assets: (0..assets).map(asset).collect(),
            cache: ground.directory.join("cache"),
        },
    }
}

impl Scenario for Game {
    fn prepare(&self, app: &App) -> Result<(), Error> {
        for asset in &self.assets {
            write_new(asset, &app.data, ASSET_BYTES)?;
            forget_cached(asset)?;
        }
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &self.assets
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        app.start(meter)?;
        let mut cache = Timed::creat(meter, &self.cache)?;
        for asset in &self.assets {
            meter.step(|meter| {
                app.read(meter, asset)?;
                std::thread::sleep(DECODE);
                cache.write(meter, &app.data[..ASSET_BYTES / 8])
            })?;
        }
        meter.step(|meter| {
            cache.fsync(meter)?;
            cache.close(meter)
        })?;
        app.save_settings(meter)
    }
}
