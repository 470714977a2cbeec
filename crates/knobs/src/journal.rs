//! The journal of changes, and the way back.
//!
//! `/run/frontrow/NAME.jsonl`: JSON lines. The first names the boot, as no change outlives
//! one; each other is a [`Change`]. A line is on disk before its knob is touched, so only
//! the last line can be torn, and the change of a torn line was never made.

use crate::change::{below, each_knob_once, standing};
use crate::{Change, Error, Restored, Standing, knob};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "run/frontrow";
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

#[derive(Serialize, Deserialize)]
struct Header {
    boot_id: String,
}

/// The changes made under one name. While it exists, other processes wait for it.
#[derive(Debug)]
pub struct Journal {
    root: PathBuf,
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
}

impl Journal {
    /// Opens the journal `name` of the system below `root`; it is made if it does not exist,
    /// and emptied if it is from before the last boot.
    ///
    /// # Errors
    /// [`Error::Journal`], or [`Error::Damaged`] for what cannot be a torn last line.
    pub fn open(root: &Path, name: &str) -> Result<Self, Error> {
        let directory = root.join(DIRECTORY);
        let path = directory.join(format!("{name}.jsonl"));
        let failed = |source| Error::Journal {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&directory).map_err(failed)?;
        let (file, text) = Self::lock(&directory, &path).map_err(failed)?;
        let boot_id = boot_id(root).map_err(failed)?;
        let changes = parse(&path, &text, &boot_id)?;
        let mut journal = Self {
            root: root.to_owned(),
            path: path.clone(),
            file,
            changes,
        };
        journal.begin(&text, boot_id).map_err(failed)?;
        Ok(journal)
    }

    /// Whether the journal `name` exists, so that there is something to restore.
    pub fn exists(root: &Path, name: &str) -> bool {
        root.join(DIRECTORY).join(format!("{name}.jsonl")).exists()
    }

    /// The changes of the journal `name`, without waiting for who holds it; none if it does
    /// not exist or is from before the last boot.
    ///
    /// # Errors
    /// [`Error::Journal`] or [`Error::Damaged`].
    pub fn peek(root: &Path, name: &str) -> Result<Vec<Change>, Error> {
        let path = root.join(DIRECTORY).join(format!("{name}.jsonl"));
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
        knob::write(&self.below_root(path), value)
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

    /// What the knob at `path` holds now.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn get(&self, path: &Path) -> Result<String, Error> {
        knob::read(&self.below_root(path))
    }

    /// What was changed, first change first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whose value the knob at `path` holds. One that was not changed here holds that of before.
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
            Standing::Ours => match knob::write(&self.below_root(path), before) {
                Ok(()) => Ok(Restored::Written),
                Err(error) if error.is_gone() => Ok(Restored::Gone),
                Err(error) => Err(error),
            },
        }
    }

    /// A new file in place of the old one, locked before anybody else can see it.
    fn rewrite(&self, changes: &[Change]) -> io::Result<File> {
        let boot_id = boot_id(&self.root)?;
        let path = self.path.with_extension("new");
        let mut file = open_for_lines(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        // Left by a crash.
        file.set_len(0)?;
        let mut text = line(&Header { boot_id })?;
        for change in changes {
            text.push_str(&line(change)?);
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&path, &self.path)?;
        Ok(file)
    }

    /// Two processes that change the same knobs would remember each other's values. The
    /// lock's holder may delete the file, so that who waited has to look again.
    fn lock(directory: &Path, path: &Path) -> io::Result<(File, String)> {
        loop {
            let mut file = open_for_lines(path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            if is_current(&file, path)? {
                File::open(directory)?.sync_all()?;
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                return Ok((file, text));
            }
        }
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

    fn below_root(&self, path: &Path) -> PathBuf {
        below(&self.root, path)
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

/// What follows the last newline is torn.
fn complete(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
}

fn open_for_lines(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true).open(path)
}

fn write_line(file: &mut File, content: &impl Serialize) -> io::Result<()> {
    file.write_all(line(content)?.as_bytes())?;
    file.sync_all()
}

fn line(content: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(content)? + "\n")
}

fn is_current(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(named) => Ok(named.ino() == file.metadata()?.ino()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn boot_id(root: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(root.join(BOOT_ID))?.trim().to_owned())
}
