//! The journal of changes, and the way back.
//!
//! `NAME.jsonl` in a directory of `/run` ([`places`]): JSON lines. The first names the boot, as no change
//! outlives one; each other is a [`Change`]. A line is on disk before its knob is touched, so only
//! the last line can be torn, and the change of a torn line was never made.
//!
//! Who changes knobs holds `NAME.lock`. It is a file of its own that nobody else can open: a
//! lock on a file that everybody may read is everybody's to hold.

use crate::knobs::change::{each_knob_once, standing};
use crate::knobs::form::{Form, there_are};
use crate::knobs::{Change, Error, Restored, Standing, knob};
use crate::places;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for the lock; a change of knobs takes less than a second.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Most attempts to restore a list of cgroups, since one may be removed meanwhile.
const ATTEMPTS: usize = 16;

const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

#[derive(Serialize, Deserialize)]
struct Header {
    boot_id: String,
}

/// Owner of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Commands that root runs; in `/run/frontrow`, readable by all users.
    Tools,
    /// The daemon, which has a user of its own; in `/run/frontrowd`, private, since it shows which
    /// apps users use.
    Daemon,
}

impl Home {
    /// Makes its directory where there is none: others may look into it, and put nothing there.
    ///
    /// # Errors
    /// What the system said, or that others may write to it.
    pub fn make(self, root: &Path) -> io::Result<()> {
        make_directory(&self.directory(root))
    }

    /// The directory itself, whether it is there or not.
    pub fn directory(self, root: &Path) -> PathBuf {
        places::until_reboot(root).join(match self {
            Home::Tools => "frontrow",
            Home::Daemon => "frontrowd",
        })
    }

    fn mode(self) -> u32 {
        match self {
            Home::Tools => 0o644,
            Home::Daemon => 0o600,
        }
    }

    fn journal(self, root: &Path, name: &str) -> PathBuf {
        self.directory(root).join(format!("{name}.jsonl"))
    }
}

/// The changes made under one name. While it exists, other processes wait for it, for a time.
#[derive(Debug)]
pub struct Journal {
    root: PathBuf,
    path: PathBuf,
    mode: u32,
    file: File,
    changes: Vec<Change>,
    _lock: File,
}

impl Journal {
    /// Opens the journal `name` of the system below `root`; it is made if it does not exist,
    /// and emptied if it is from before the last boot.
    ///
    /// # Errors
    /// [`Error::Journal`], [`Error::Locked`], or [`Error::Damaged`] for what cannot be a torn last
    /// line.
    pub fn open(root: &Path, home: Home, name: &str) -> Result<Self, Error> {
        let path = home.journal(root, name);
        let failed = |source| Error::Journal {
            path: path.clone(),
            source,
        };
        let directory = home.directory(root);
        make_directory(&directory).map_err(failed)?;
        let lock = lock(&path.with_extension("lock"), PATIENCE)?;
        let mut file = open_for_lines(&path, home.mode()).map_err(failed)?;
        let mut text = String::new();
        File::open(&directory)
            .and_then(|directory| directory.sync_all())
            .and_then(|()| file.read_to_string(&mut text))
            .map_err(failed)?;
        let boot_id = boot_id(root).map_err(failed)?;
        let changes = parse(&path, &text, &boot_id)?;
        let mut journal = Self {
            root: root.to_owned(),
            path: path.clone(),
            mode: home.mode(),
            file,
            changes,
            _lock: lock,
        };
        journal.begin(&text, boot_id).map_err(failed)?;
        Ok(journal)
    }

    /// Whether the journal `name` exists, so that there is something to restore.
    pub fn exists(root: &Path, home: Home, name: &str) -> bool {
        home.journal(root, name).exists()
    }

    /// The changes of the journal `name`, without waiting for who holds it; none if it does
    /// not exist or is from before the last boot.
    ///
    /// # Errors
    /// [`Error::Journal`] or [`Error::Damaged`].
    pub fn peek(root: &Path, home: Home, name: &str) -> Result<Vec<Change>, Error> {
        let path = home.journal(root, name);
        let failed = |source| Error::Journal {
            path: path.clone(),
            source,
        };
        match fs::read_to_string(&path) {
            Ok(text) => parse(&path, &text, &boot_id(root).map_err(failed)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Changes the knob at `path` to `value`, unless it holds that already.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Journal`] (then the knob is untouched) or [`Error::Write`].
    pub fn set(&mut self, path: &Path, value: &str, reason: &str) -> Result<(), Error> {
        let before = self.get(path)?;
        if before == value {
            return Ok(());
        }
        self.append(Change {
            path: path.to_owned(),
            before,
            value: Some(value.to_owned()),
            reason: reason.to_owned(),
        })?;
        knob::write(&self.root, path, value)
    }

    /// Remembers what the knob at `path` holds, for [`Self::restore`]: for knobs that the
    /// kernel changes when another one is set.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Journal`].
    pub fn remember(&mut self, path: &Path, reason: &str) -> Result<(), Error> {
        let before = self.get(path)?;
        self.append(Change {
            path: path.to_owned(),
            before,
            value: None,
            reason: reason.to_owned(),
        })
    }

    /// Present value of the knob at `path`.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn get(&self, path: &Path) -> Result<String, Error> {
        knob::value(&self.root, path)
    }

    /// Changes, first one first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Origin of the present value of the knob at `path`. An unchanged knob has the value of
    /// before.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn standing(&self, path: &Path) -> Result<Standing, Error> {
        standing(&self.root, &self.changes, path)
    }

    /// Puts one knob back to what it held before its first change, and forgets it. Until
    /// [`Self::settle`] the file names it still, which does no harm: it holds that already.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Write`].
    pub fn put_back(&mut self, path: &Path) -> Result<Restored, Error> {
        let before = self.changes.iter().find(|change| change.path == path);
        let Some(before) = before.map(|change| change.before.clone()) else {
            return Ok(Restored::Unchanged);
        };
        let restored = self.undo(path, &before)?;
        self.changes.retain(|change| change.path != path);
        Ok(restored)
    }

    /// Forgets one knob, whose value is somebody else's by now. Until [`Self::settle`] or
    /// [`Self::restore`] the file names it still.
    pub fn forget(&mut self, path: &Path) {
        self.changes.retain(|change| change.path != path);
    }

    /// Makes the file hold only what is in force: for each knob its first value and its last.
    /// Where knobs are changed again and again, it would grow without end.
    ///
    /// # Errors
    /// [`Error::Journal`]; then the old file stands.
    pub fn settle(&mut self) -> Result<(), Error> {
        let changes = each_knob_once(&self.changes);
        self.file = self
            .rewrite(&changes)
            .map_err(|source| self.failed(source))?;
        self.changes = changes;
        Ok(())
    }

    /// Puts every knob back to what it held before its first change, last knob first, but
    /// those that somebody else has set since, and ends the journal. If a knob refuses, the
    /// others are put back all the same, and the journal stays.
    ///
    /// # Errors
    /// The first knob's that refused.
    pub fn restore(self) -> Result<Vec<(Change, Restored)>, Error> {
        let mut restored = Vec::new();
        let mut first_error = None;
        for change in each_knob_once(&self.changes).into_iter().rev() {
            match self.undo(&change.path, &change.before) {
                Ok(outcome) => restored.push((change, outcome)),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            // Undoing a change again does no harm, so the journal stays as it is.
            Some(error) => Err(error),
            None => {
                fs::remove_file(&self.path).map_err(|source| self.failed(source))?;
                Ok(restored)
            }
        }
    }

    fn undo(&self, path: &Path, before: &str) -> Result<Restored, Error> {
        match self.standing(path)? {
            Standing::Gone => Ok(Restored::Gone),
            Standing::Before => Ok(Restored::Unchanged),
            Standing::Theirs => Ok(Restored::Overruled),
            Standing::Ours => match self.put(path, before) {
                Ok(()) => Ok(Restored::Written),
                Err(error) if error.is_gone() => Ok(Restored::Gone),
                Err(error) => Err(error),
            },
        }
    }

    fn put(&self, path: &Path, before: &str) -> Result<(), Error> {
        if knob::form(path)? != Form::Cgroups {
            return knob::write(&self.root, path, before);
        }
        let mut attempt = 1;
        loop {
            // Users end their apps when they like.
            match knob::write(&self.root, path, &there_are(&self.root, before)) {
                Err(error) if !error.is_gone() && attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// A new file in place of the old one.
    fn rewrite(&self, changes: &[Change]) -> io::Result<File> {
        let boot_id = boot_id(&self.root)?;
        let path = self.path.with_extension("new");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            // Left by a crash.
            _ => {}
        }
        let mut file = open_for_lines(&path, self.mode)?;
        let mut text = line(&Header { boot_id })?;
        for change in changes {
            text.push_str(&line(change)?);
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&path, &self.path)?;
        Ok(file)
    }

    fn append(&mut self, change: Change) -> Result<(), Error> {
        write_line(&mut self.file, &change).map_err(|source| self.failed(source))?;
        self.changes.push(change);
        Ok(())
    }

    /// Makes the file end where a change can be appended.
    fn begin(&mut self, text: &str, boot_id: String) -> io::Result<()> {
        if self.changes.is_empty() {
            self.file.set_len(0)?;
            return write_line(&mut self.file, &Header { boot_id });
        }
        self.file.set_len(complete(text).len() as u64)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Journal {
            path: self.path.clone(),
            source,
        }
    }
}

fn parse(path: &Path, text: &str, boot_id: &str) -> Result<Vec<Change>, Error> {
    let damaged = |line| Error::Damaged {
        path: path.to_owned(),
        line,
    };
    let mut lines = complete(text).lines().enumerate();
    let Some((_, first)) = lines.next() else {
        return Ok(Vec::new());
    };
    let header: Header = serde_json::from_str(first).map_err(|_| damaged(1))?;
    if header.boot_id != boot_id {
        return Ok(Vec::new());
    }
    lines
        .map(|(index, line)| serde_json::from_str(line).map_err(|_| damaged(index + 1)))
        .collect()
}

/// The text without an incomplete last line.
fn complete(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

/// Makes a directory that other users can read, but not write to.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    match metadata.is_dir() && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(io::Error::other(
            "others may write to its directory: remove that first",
        )),
    }
}

/// Two processes that change the same knobs would remember each other's values.
fn lock(path: &Path, patience: Duration) -> Result<File, Error> {
    let failed = |source| Error::Journal {
        path: path.to_owned(),
        source,
    };
    let file = open_for_lines(path, 0o600).map_err(failed)?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < patience => thread::sleep(LOOK_AGAIN),
            Err(Errno::WOULDBLOCK) => {
                return Err(Error::Locked {
                    path: path.to_owned(),
                });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
    }
}

fn open_for_lines(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(mode)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

fn write_line(file: &mut File, content: &impl Serialize) -> io::Result<()> {
    file.write_all(line(content)?.as_bytes())?;
    file.sync_all()
}

fn line(content: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(content)? + "\n")
}

fn boot_id(root: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(root.join(BOOT_ID))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_the_lock_is_not_waited_for_without_an_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("name.lock");
        let held = lock(&path, Duration::ZERO).unwrap();
        let refused = lock(&path, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(refused, Error::Locked { .. }), "{refused}");
        drop(held);
        lock(&path, Duration::ZERO).unwrap();
    }
}
