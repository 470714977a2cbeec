//! The janusd experiment. A phone is used for months, and defragmented every week, every few or not. Then the
//! files of its six apps are read cold (dissertation §6.2.1). They are read at the end of each week too,
//! just before the phone is defragmented, which is when it has been used longest since the last time.

use crate::age::{APPS, Aged, Phone, Use, room};
use crate::background::Background;
use crate::code::Code;
use crate::cold::{Reads, drop_caches};
use crate::dof::Files;
use crate::layout::settle;
use crate::meter::Meter;
use crate::programmed::{Programmed, megabytes};
use crate::sqlite;
use crate::stage::{Foreground, RunContext, rate_mb_s};
use crate::upkeep;
use crate::{Error, Measurement};
use record::Series;
use record::policy::Upkeep;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

/// Days of a week.
const WEEK: u32 = 7;

/// Twice the commit interval of ext4.
const REST: Duration = Duration::from_secs(10);

/// Bytes that a program reads at once.
const READ_BYTES: usize = 128 << 10;

/// Number of the newest cached files that a start reads.
const START_CACHED: usize = 8;
/// Pages of a piece of the package that a start reads, and of a gap between pieces: least and most.
const PIECE_PAGES: (u64, u64) = (4, 32);
const GAP_PAGES: (u64, u64) = (0, 48);

pub(crate) const READING: Code = Code::app(
    |request, context| Box::new(Reading::new(context, request.upkeep)),
    sqlite::footprint,
);

/// A phone and its upkeep.
pub(crate) struct Reading {
    directory: PathBuf,
    days: u32,
    sessions: u32,
    seed: u64,
    upkeep: Upkeep,
    kept: Kept,
    /// Reads of all files of each app at the end of each week.
    weeks: Vec<Vec<Cold>>,
    aged: Option<Aged>,
    files: Files,
    apps: Vec<AppRead>,
}

/// Cost of the upkeep over all weeks.
#[derive(Default)]
struct Kept {
    times: u32,
    time: Duration,
    programmed: Programmed,
    /// Pages programmed for any reason since the installation of the apps.
    all: Programmed,
}

/// A cold read of all files of an app.
struct Cold {
    bytes: u64,
    time: Duration,
    requests: u64,
}

impl Cold {
    fn rate_mb_s(&self) -> f64 {
        rate_mb_s(self.bytes, self.time)
    }
}

/// Reads of all files of an app, and of its start.
struct AppRead {
    name: &'static str,
    cold: Cold,
    start: Duration,
}

impl Reading {
    pub(crate) fn new(context: &RunContext, upkeep: Upkeep) -> Self {
        Reading {
            directory: context.directory.join("phone"),
            days: context.sizes.phone_days as u32,
            sessions: context.sizes.phone_sessions as u32,
            seed: context.seed,
            upkeep,
            kept: Kept::default(),
            weeks: Vec::new(),
            aged: None,
            files: Files::default(),
            apps: Vec::new(),
        }
    }

    /// Parameters of the phone's use, with the whole free space of the file system.
    fn of(&self) -> Result<Use, Error> {
        let room = room(&self.directory)?;
        let wanted_bytes = room.capacity_bytes / 100 * u64::from(Use::FILL);
        Ok(Use {
            days: self.days,
            sessions: self.sessions,
            capacity_bytes: room.capacity_bytes,
            target_bytes: wanted_bytes.saturating_sub(room.used_bytes()),
            seed: self.seed,
        })
    }

    /// Waits until the journal has nothing to commit, and the device nothing to collect.
    fn rest(&self) -> Result<(), Error> {
        std::thread::sleep(REST);
        settle(&self.directory)?;
        std::thread::sleep(REST);
        Ok(())
    }

    /// Reads the files of an app with nothing in memory.
    fn read_cold(&self, files: &[PathBuf], buffer: &mut [u8]) -> Result<Cold, Error> {
        drop_caches()?;
        let before = Reads::of(&self.directory)?;
        let begun = Instant::now();
        let mut bytes = 0;
        for path in files {
            bytes += read_whole(path, buffer)?;
        }
        Ok(Cold {
            bytes,
            time: begun.elapsed(),
            requests: Reads::of(&self.directory)?.since(before).requests,
        })
    }

    /// Reads what the apps have at the end of a week.
    fn look(&mut self) -> Result<(), Error> {
        self.rest()?;
        let mut buffer = Pages::zeroed(READ_BYTES);
        let apps = APPS.iter().map(|app| {
            let files = files_of(&self.directory.join(app.name))?;
            self.read_cold(&files, &mut buffer)
        });
        let week = apps.collect::<Result<_, Error>>()?;
        self.weeks.push(week);
        Ok(())
    }

    /// Performs the upkeep. Its programs are counted from one idle state to the next, without dirty
    /// data or garbage collection in progress. Journal, tables and their garbage thus are included.
    fn keep(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        self.rest()?;
        let before = Programmed::of(&self.directory)?;
        let begun = Instant::now();
        upkeep::perform(self.upkeep, &self.directory, stop)?;
        self.kept.time += begun.elapsed();
        self.rest()?;
        if let (Some(before), Some(after)) = (before, Programmed::of(&self.directory)?) {
            self.kept.programmed = self.kept.programmed.and(after.since(before));
        }
        self.kept.times += 1;
        Ok(())
    }
}

impl Foreground for Reading {
    fn prepare(&mut self) -> Result<(), Error> {
        let (directory, stop) = (self.directory.clone(), AtomicBool::new(false));
        fs::create_dir(&directory).map_err(|source| Error::io("make", &directory, source))?;
        let mut phone = Phone::install(self.of()?, &directory, &stop)?;
        settle(&directory)?;
        let installed = Programmed::of(&directory)?;
        while phone.days() < self.days {
            phone.day(&stop)?;
            if !phone.days().is_multiple_of(WEEK) {
                continue;
            }
            self.look()?;
            if phone.days().is_multiple_of(WEEK * self.upkeep.weeks()) {
                self.keep(&stop)?;
            }
        }
        settle(&directory)?;
        if let (Some(before), Some(after)) = (installed, Programmed::of(&directory)?) {
            self.kept.all = after.since(before);
        }
        self.aged = Some(phone.aged()?);
        self.files = Files::of(&directory)?;
        Ok(())
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let mut buffer = Pages::zeroed(READ_BYTES);
        for app in &APPS {
            meter.go_on()?;
            let files = files_of(&self.directory.join(app.name))?;
            let cold = self.read_cold(&files, &mut buffer)?;
            let mut random = Random::for_purpose(self.seed, app.name);
            drop_caches()?;
            let begun = Instant::now();
            start(
                &self.directory.join(app.name),
                &files,
                &mut buffer,
                &mut random,
            )?;
            self.apps.push(AppRead {
                name: app.name,
                cold,
                start: begun.elapsed(),
            });
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let mut figures = Vec::new();
        let apps = self.apps.len().max(1) as f64;
        let mean = |of: fn(&AppRead) -> f64| self.apps.iter().map(of).sum::<f64>() / apps;
        let rate = mean(|app| app.cold.rate_mb_s());
        figures.push(Measurement::new("read_mb_s", "MB/s", rate));
        let start_ms = mean(|app| app.start.as_secs_f64() * 1e3);
        figures.push(Measurement::milliseconds("start_ms".to_owned(), start_ms));
        let requests = mean(|app| app.cold.requests as f64);
        figures.push(Measurement::new("read_requests", "1", requests));
        for app in &self.apps {
            let name = |what: &str| format!("{}_{what}", app.name);
            let rate = app.cold.rate_mb_s();
            figures.push(Measurement::new(name("read_mb_s"), "MB/s", rate));
            figures.push(Measurement::duration(&name("start_ms"), app.start));
        }
        let aged = self.aged.iter().flat_map(|it| &it.apps);
        for app in aged {
            let name = format!("{}_dof_l", app.name);
            figures.extend(app.dof_l.map(|it| Measurement::new(name, "1", it)));
        }
        figures.extend(weekly(&self.weeks));
        figures.extend(self.files.figures());
        figures.extend(self.kept.figures());
        figures
    }
}

/// Rates at the ends of the weeks: of each app, and the mean of the apps.
fn weekly(weeks: &[Vec<Cold>]) -> Vec<Measurement> {
    if weeks.is_empty() {
        return Vec::new();
    }
    let figure = |name: String, rates: Vec<f64>| {
        let series = Series::of_operations(rates);
        Measurement {
            series: Some(series.clone()),
            ..Measurement::new(name, "MB/s", series.mean())
        }
    };
    let rates = |week: &[Cold]| week.iter().map(Cold::rate_mb_s).collect::<Vec<_>>();
    let mean = |week: &Vec<Cold>| rates(week).iter().sum::<f64>() / week.len().max(1) as f64;
    let all = figure(
        "weekly_read_mb_s".to_owned(),
        weeks.iter().map(mean).collect(),
    );
    let each = APPS.iter().enumerate().map(|(index, app)| {
        let rates = weeks.iter().map(|week| week[index].rate_mb_s());
        figure(format!("{}_weekly_read_mb_s", app.name), rates.collect())
    });
    [all].into_iter().chain(each).collect()
}

impl Kept {
    fn figures(&self) -> Vec<Measurement> {
        let amount = |name: &str, pages| Measurement::new(name, "MB", megabytes(pages));
        let it = &self.programmed;
        vec![
            Measurement::new("upkeeps", "1", f64::from(self.times)),
            Measurement::duration("upkeep_ms", self.time),
            amount("upkeep_programmed_mb", it.pages()),
            amount("upkeep_log_mb", it.log_pages),
            amount("upkeep_map_mb", it.map_pages),
            amount("upkeep_collected_mb", it.collection_pages),
            amount("upkeep_padding_mb", it.padded_pages),
            amount("all_programmed_mb", self.all.pages()),
            amount("all_padding_mb", self.all.padded_pages),
        ]
    }
}

/// Files of an app by name; cached files, whose names are numbers, by age.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for below in [directory.to_owned(), directory.join("cache")] {
        let failed = |source| Error::io("list", &below, source);
        for entry in fs::read_dir(&below).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort_by_key(|path| (number(path), path.clone()));
    Ok(files)
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

fn read_whole(path: &Path, buffer: &mut [u8]) -> Result<u64, Error> {
    let failed = |source| Error::io("read", path, source);
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = 0;
    loop {
        match file.read(buffer).map_err(failed)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// Reads pieces of the package in random order, the database, the log and the newest cached files.
fn start(
    directory: &Path,
    files: &[PathBuf],
    buffer: &mut [u8],
    random: &mut Random,
) -> Result<(), Error> {
    read_pieces(&directory.join("package"), buffer, random)?;
    for name in ["data.db", "log"] {
        let path = directory.join(name);
        if files.contains(&path) {
            read_whole(&path, buffer)?;
        }
    }
    let cached = files.iter().rev().filter(|path| number(path).is_some());
    for path in cached.take(START_CACHED) {
        read_whole(path, buffer)?;
    }
    Ok(())
}

fn read_pieces(path: &Path, buffer: &mut [u8], random: &mut Random) -> Result<(), Error> {
    let failed = |source| Error::io("read", path, source);
    let file = File::open(path).map_err(failed)?;
    let pages = file.metadata().map_err(failed)?.len() / PAGE_BYTES as u64;
    let mut pieces = Vec::new();
    let mut page = 0;
    while page < pages {
        let count = random
            .between(PIECE_PAGES.0, PIECE_PAGES.1)
            .min(pages - page);
        pieces.push((page, count));
        page += count + random.between(GAP_PAGES.0, GAP_PAGES.1);
    }
    for left in (1..=pieces.len() as u64).rev() {
        let (page, count) = pieces.swap_remove(random.below(left) as usize);
        let bytes = count as usize * PAGE_BYTES;
        file.read_exact_at(&mut buffer[..bytes], page * PAGE_BYTES as u64)
            .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_week_is_a_point_of_each_app_and_of_their_mean() {
        let cold = |megabytes: u64| Cold {
            bytes: megabytes * 1_000_000,
            time: Duration::from_secs(1),
            requests: 1,
        };
        let week = |first: u64| (0..APPS.len() as u64).map(|it| cold(first + it)).collect();
        let figures = weekly(&[week(10), week(40)]);
        let points = |it: &Measurement| it.series.clone().unwrap().values;
        assert_eq!(figures.len(), 1 + APPS.len());
        assert_eq!(figures[0].metric, "weekly_read_mb_s");
        assert_eq!(points(&figures[0]), [12.5, 42.5]);
        assert_eq!(figures[0].value, 27.5);
        let last = figures.last().unwrap();
        assert_eq!(last.metric, format!("{}_weekly_read_mb_s", APPS[5].name));
        assert_eq!(points(last), [15.0, 45.0]);
        assert!(weekly(&[]).is_empty());
    }
}
