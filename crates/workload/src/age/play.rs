//! Execution of the plan on files.

use crate::age::{APPS, Error, Step, Usage, Use};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;
use sys::device::{Layout, PAGE_BYTES};

/// Result of an ageing.
#[derive(Clone, Debug, Serialize)]
pub struct Aged {
    /// Number of days that passed.
    pub days: u32,
    /// Number of sessions on all days.
    pub sessions: u64,
    /// Bytes written to files since the installation of the apps.
    pub written_bytes: u64,
    /// Size of all files in bytes.
    pub files_bytes: u64,
    /// The apps, in the order of table 7.
    pub apps: Vec<AgedApp>,
}

/// Files of an app, and their fragmentation.
#[derive(Clone, Debug, Serialize)]
pub struct AgedApp {
    /// Name of the app and of its directory.
    pub name: &'static str,
    /// Number of files.
    pub files: u64,
    /// Size of all its files in bytes.
    pub bytes: u64,
    /// DoF_L of all its files together; `None` if the file system does not tell the places of
    /// files.
    pub dof_l: Option<f64>,
}

/// Uses `directory`, which must be empty, as a phone. `shown` is called with the number of days
/// passed and their total.
///
/// # Errors
/// [`Error`]. Files that were written before stay.
pub fn age(
    of: Use,
    directory: &Path,
    shown: &mut dyn FnMut(u32, u32),
    stop: &AtomicBool,
) -> Result<Aged, Error> {
    let mut phone = Phone::install(of, directory, stop)?;
    while phone.days() < of.days {
        phone.day(stop)?;
        shown(phone.days(), of.days);
    }
    phone.aged()
}

/// A phone that is used day by day.
pub struct Phone<'a> {
    of: Use,
    usage: Usage,
    player: Player<'a>,
    days: u32,
}

impl<'a> Phone<'a> {
    /// Installs the apps and files in `directory`, which must be empty.
    ///
    /// # Errors
    /// [`Error`]. Files that were written before stay.
    pub fn install(of: Use, directory: &'a Path, stop: &AtomicBool) -> Result<Self, Error> {
        let mut usage = Usage::new(of)?;
        for app in &APPS {
            make(&directory.join(app.name).join("cache"))?;
        }
        make(&directory.join("photos"))?;
        let mut player = Player {
            directory,
            written_bytes: 0,
            next_word: of.seed,
        };
        player.play(&usage.install(), stop)?;
        player.written_bytes = 0;
        Ok(Phone {
            of,
            usage,
            player,
            days: 0,
        })
    }

    /// Number of days that have passed.
    pub fn days(&self) -> u32 {
        self.days
    }

    /// Uses the phone for another day.
    ///
    /// # Errors
    /// [`Error`]. Files that were written before stay.
    pub fn day(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        for session in 0..self.of.sessions {
            let steps = self.usage.session(self.days, session);
            self.player.play(&steps, stop)?;
        }
        self.days += 1;
        Ok(())
    }

    /// Sizes and fragmentation of the files now.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn aged(&self) -> Result<Aged, Error> {
        let apps = APPS.iter();
        let apps = apps.map(|app| aged_app(self.player.directory, app.name));
        Ok(Aged {
            days: self.days,
            sessions: u64::from(self.days) * u64::from(self.of.sessions),
            written_bytes: self.player.written_bytes,
            files_bytes: self.usage.bytes(),
            apps: apps.collect::<Result<_, _>>()?,
        })
    }
}

fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| failed("make", path, source))
}

fn failed(verb: &'static str, path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::NoSpace(path.to_owned())
        }
        _ => PathError::of(verb, path)(source).into(),
    }
}

struct Player<'a> {
    directory: &'a Path,
    written_bytes: u64,
    next_word: u64,
}

impl Player<'_> {
    fn play(&mut self, steps: &[Step], stop: &AtomicBool) -> Result<(), Error> {
        for step in steps {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            match step {
                Step::Write {
                    path,
                    offset,
                    bytes,
                    durably,
                } => self.write(&self.directory.join(path), (*offset, *bytes), *durably)?,
                Step::Remove(path) => {
                    let path = self.directory.join(path);
                    fs::remove_file(&path).map_err(|source| failed("remove", &path, source))?;
                }
                Step::Replace(new, old) => {
                    let old = self.directory.join(old);
                    fs::rename(self.directory.join(new), &old)
                        .map_err(|source| failed("replace", &old, source))?;
                }
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        path: &Path,
        (offset, bytes): (u64, u64),
        durably: bool,
    ) -> Result<(), Error> {
        let mut data = vec![0; bytes as usize];
        // Each page repeats one word, which the emulated device stores without memory for the page.
        for page in data.chunks_mut(PAGE_BYTES) {
            self.next_word = self.next_word.wrapping_add(1);
            for place in page.chunks_exact_mut(8) {
                place.copy_from_slice(&self.next_word.to_le_bytes());
            }
        }
        let written = || {
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            file.write_all_at(&data, offset)?;
            match durably {
                true => file.sync_data(),
                false => write_back(&file, offset, bytes),
            }
        };
        written().map_err(|source| failed("write", path, source))?;
        self.written_bytes += bytes;
        Ok(())
    }
}

/// Starts writeback, as the kernel does for data that have been dirty for long.
fn write_back(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (offset, bytes) = (offset as i64, bytes as i64);
    // SAFETY: takes numbers and an open file.
    match unsafe {
        libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn aged_app(directory: &Path, name: &'static str) -> Result<AgedApp, Error> {
    let mut paths = Vec::new();
    for below in [directory.join(name), directory.join(name).join("cache")] {
        paths.extend(files_in(&below)?);
    }
    let mut app = AgedApp {
        name,
        files: paths.len() as u64,
        bytes: 0,
        dof_l: None,
    };
    let (mut pieces, mut fewest, mut known) = (0, 0, true);
    for path in &paths {
        let file = File::open(path).map_err(|source| failed("open", path, source))?;
        let metadata = file.metadata();
        app.bytes += metadata
            .map_err(|source| failed("read", path, source))?
            .len();
        match Layout::of(&file, true) {
            Ok(layout) => {
                pieces += layout.fragments();
                fewest += layout.fewest_fragments();
            }
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => known = false,
            Err(source) => return Err(failed("find the places of", path, source)),
        }
    }
    app.dof_l = (known && fewest > 0).then(|| pieces as f64 / fewest as f64);
    Ok(app)
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |source| failed("list", directory, source);
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if entry.file_type().map_err(wrong)?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Use = Use {
        days: 11,
        sessions: 2,
        capacity_bytes: 32 << 20,
        target_bytes: 24 << 20,
        seed: 1,
    };

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn bytes_below(directory: &Path) -> u64 {
        let entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap());
        entries
            .map(|it| match it.file_type().unwrap().is_dir() {
                true => bytes_below(&it.path()),
                false => it.metadata().unwrap().len(),
            })
            .sum()
    }

    #[test]
    fn the_files_are_what_the_plan_says_and_twice_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let mut days = Vec::new();
        let aged = age(OF, directory.path(), &mut |day, _| days.push(day), &NEVER).unwrap();
        assert_eq!(bytes_below(directory.path()), aged.files_bytes);
        assert_eq!(days.len(), 11);
        assert_eq!(aged.sessions, 22);
        assert!(aged.written_bytes > 1 << 20);
        assert!(aged.apps.iter().all(|app| app.files >= 3 && app.bytes > 0));
        let again = tempfile::tempdir().unwrap();
        let same = age(OF, again.path(), &mut |_, _| {}, &NEVER).unwrap();
        assert_eq!(aged.written_bytes, same.written_bytes);
        assert_eq!(bytes_below(again.path()), aged.files_bytes);
    }

    #[test]
    fn somebody_who_stops_it_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(true);
        let ended = age(OF, directory.path(), &mut |_, _| {}, &stop);
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}
