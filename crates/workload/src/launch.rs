//! Scenario A (§3, §4.3.1): an app starts. Its user-interface task reads its files cold, looks rows
//! up in its database and makes its new state durable. That is a SQLite transaction, and preference
//! files that are replaced as Android does (rename to a backup, write anew, fsync, unlink the
//! backup).

use crate::Error;
use crate::background::Background;
use crate::code::Code;
use crate::content;
use crate::database::{Database, Journal, seed_library};
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext};
use crate::timed::{Timed, create, forget_cached, rename, unlink};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::Pages;
use sys::random::Random;

/// Sizes of the app's code and resources, in bytes.
const PROGRAM_BYTES: [usize; 3] = [3 << 20, 2 << 20, 1 << 20];

/// Largest size of all files of the app, in bytes.
const APP_BYTES: u64 = 8 << 20;

/// Most bytes that one start makes durable: preferences, pages, journal.
const STATE_BYTES: u64 = 256 << 10;

/// Size of one read of the program, as read-ahead would have it.
const READ_BYTES: usize = 64 << 10;

/// Rows of the database before the first start.
const ROWS: u64 = 500;

/// Rows that a start looks up, and rows that it updates.
const SELECTS: u64 = 20;
const UPDATES: u64 = 10;

/// Number of preference files, and size of the largest.
const PREFERENCES: usize = 3;
const PREFERENCE_BYTES: usize = 16 << 10;

/// Workload of scenario A.
pub(crate) struct Launches {
    programs: Vec<PathBuf>,
    preferences: Vec<PathBuf>,
    database_path: PathBuf,
    data: Pages,
    buffer: Pages,
    launches: u64,
    seed: u64,
    random: Random,
}

pub(crate) const LAUNCHES: Code = Code::app(
    |_, context| Box::new(Launches::new(context)),
    |sizes| Footprint::of(APP_BYTES, sizes.launches * STATE_BYTES),
)
.scenario();

impl Launches {
    pub(crate) fn new(context: &RunContext) -> Self {
        let mut random = context.random("foreground");
        let file = |name: String| context.directory.join(name);
        Launches {
            programs: (0..PROGRAM_BYTES.len())
                .map(|index| file(format!("program-{index}")))
                .collect(),
            preferences: (0..PREFERENCES)
                .map(|index| file(format!("preferences-{index}.xml")))
                .collect(),
            database_path: file("contacts.db".to_owned()),
            data: content::uniform(1 << 20, &mut random),
            buffer: Pages::zeroed(READ_BYTES),
            launches: context.sizes.launches,
            seed: context.seed,
            random,
        }
    }

    fn launch(&mut self, meter: &mut Meter) -> Result<(), Error> {
        for program in &self.programs {
            read_through(meter, program, &mut self.buffer)?;
        }
        let mut database = Database::open(&self.database_path, Journal::Rollback)?;
        for _ in 0..SELECTS {
            let row = self.random.below(ROWS);
            meter.span("select", |_| database.select_by_number(row))?;
        }
        let first = self.random.below(ROWS - UPDATES);
        meter.span("transaction", |_| database.update_range(first, UPDATES))?;
        drop(database);
        for preference in &self.preferences {
            let bytes = self.random.between(1 << 10, PREFERENCE_BYTES as u64) as usize;
            replace(meter, preference, &self.data[..bytes])?;
        }
        Ok(())
    }
}

impl Foreground for Launches {
    fn prepare(&mut self) -> Result<(), Error> {
        for (path, bytes) in self.programs.iter().zip(PROGRAM_BYTES) {
            write_new(path, &self.data, bytes)?;
        }
        for path in &self.preferences {
            write_new(path, &self.data, PREFERENCE_BYTES)?;
        }
        seed_library(self.seed);
        let mut database = Database::open(&self.database_path, Journal::Rollback)?;
        database.create_table()?;
        database.insert_batch(0, ROWS)?;
        database.create_index()
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        for _ in 0..self.launches {
            let between = Instant::now();
            for program in &self.programs {
                forget_cached(program)?;
            }
            std::thread::sleep(Duration::from_millis(self.random.between(50, 150)));
            meter.exclude(between.elapsed());
            meter.span("launch", |meter| self.launch(meter))?;
        }
        Ok(())
    }
}

/// Reads a file from start to end.
pub(crate) fn read_through(meter: &mut Meter, path: &Path, buffer: &mut [u8]) -> Result<(), Error> {
    let mut file = Timed::open_to_read(meter, path)?;
    while file.read(meter, buffer)? > 0 {}
    file.close(meter)
}

/// Replaces a file so that the old or the new one survives a crash.
pub(crate) fn replace(meter: &mut Meter, path: &Path, data: &[u8]) -> Result<(), Error> {
    let backup = path.with_extension("bak");
    rename(meter, path, &backup)?;
    crate::micro::write_durably(meter, path, data)?;
    unlink(meter, &backup)
}

/// Writes a new file of `bytes` bytes that repeats `data`, unmeasured.
pub(crate) fn write_new(path: &Path, data: &[u8], bytes: usize) -> Result<(), Error> {
    let failed = |source| Error::io("write", path, source);
    let mut file = create(path).map_err(failed)?;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(data.len());
        file.write_all(&data[..now]).map_err(failed)?;
        left -= now;
    }
    Ok(())
}
