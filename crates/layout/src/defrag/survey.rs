//! Survey of all regular files below a path, and of their fragmentation.

use crate::defrag::measure::{Measure, Spot};
use crate::defrag::{Error, Filesystem, Identity, Physical, ReadTime, WORTH_SPREADING};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use sys::PathError;
use sys::device::{Layout, State};

/// A file in more pieces than necessary, or on fewer of the device's dies than possible.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Path of the file.
    pub path: PathBuf,
    /// Device and inode number of the file.
    #[serde(skip)]
    pub identity: Identity,
    /// Bytes that are placed on the device.
    pub size_bytes: u64,
    /// Number of pieces on the device.
    pub fragments: u64,
    /// Smallest possible number of pieces.
    pub fewest_fragments: u64,
    /// DoF_L: `fragments` over `fewest_fragments` (dissertation §2.1).
    pub dof_l: f64,
    /// DoF_P: share of the device's parallelism that a read of the file misses. None if the device
    /// does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dof_p: Option<f64>,
    /// Read times of the file; None if they were not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadTime>,
    /// How often the file was read; None if that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_read: Option<f64>,
}

/// Sums over files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of files.
    pub files: u64,
    /// Bytes that are placed on the device.
    pub bytes: u64,
    /// Number of pieces on the device.
    pub fragments: u64,
    /// Smallest possible number of pieces.
    pub fewest_fragments: u64,
    /// Number of files that could not be opened.
    pub unreadable_files: u64,
    /// Number of files without usable extents: compressed, or inside the file system's metadata.
    pub encoded_files: u64,
}

/// Which files of a [`Survey`] are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Those in more pieces than necessary.
    Fragmented,
    /// Those that are worth spreading.
    Unspread,
}

/// The files below a path, and those worth a move.
#[derive(Clone, Debug)]
pub struct Survey {
    /// File system of the path.
    pub filesystem: Filesystem,
    /// Sums over all regular files.
    pub all: Tally,
    /// Files in more pieces than necessary, by path.
    pub fragmented: Vec<Finding>,
    /// Files worth spreading over the device's dies, by path; empty if the device does not tell.
    pub unspread: Vec<Finding>,
    /// The longest piece of all files, for measurement.
    pub(crate) longest: Option<Spot>,
}

/// Opens a file for a survey: the open follows no link, breaks no lease, and opens no pipe or device
/// that took the file's name.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    sys::walk::open_quietly(path, &options)
}

impl Survey {
    /// Surveys the file `path`, or all files below the directory on the same file system.
    ///
    /// # Errors
    /// As [`Survey::with`].
    pub fn of(path: &Path, stop: &AtomicBool) -> Result<Self, Error> {
        Survey::with(path, None, stop)
    }

    /// As [`Survey::of`]; with `physical` the device is asked for the dies of each file.
    ///
    /// # Errors
    /// [`Error::Io`] for `path` itself, [`Error::NoLayout`], and [`Error::Interrupted`] when `stop`
    /// becomes true. Files below `path` that cannot be opened are only counted.
    pub fn with(
        path: &Path,
        physical: Option<&Physical>,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let file = open(path).map_err(PathError::of("open", path))?;
        let (filesystem, _) = Filesystem::of(&file).map_err(PathError::of("look at", path))?;
        let metadata = file.metadata().map_err(PathError::of("look at", path))?;
        let mut walk = Walk {
            survey: Survey {
                filesystem,
                all: Tally::default(),
                fragmented: Vec::new(),
                unspread: Vec::new(),
                longest: None,
            },
            physical,
            device: metadata.dev(),
            seen: HashSet::new(),
            stop,
        };
        match metadata.is_dir() {
            true => walk.directory(path)?,
            false => walk.file(path, &metadata)?,
        }
        let mut survey = walk.survey;
        for findings in [&mut survey.fragmented, &mut survey.unspread] {
            findings.sort_by(|one, other| one.path.cmp(&other.path));
        }
        Ok(survey)
    }
}

impl Survey {
    /// Prepares the measurement of read times; `None` if no file can be read with O_DIRECT.
    pub fn measure(&self) -> Option<Measure> {
        Measure::new(self.longest.as_ref())
    }

    /// Measures the files of `found`, those with the largest possible loss first, until `budget_bytes` were
    /// read. `progress` is called with the number of measured files and their total.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when `stop` becomes true. A file that cannot be read with O_DIRECT
    /// gets no figure.
    pub fn read(
        &mut self,
        found: Found,
        measure: &mut Measure,
        budget_bytes: u64,
        progress: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let findings = match found {
            Found::Fragmented => &mut self.fragmented,
            Found::Unspread => &mut self.unspread,
        };
        measure.findings(findings, budget_bytes, progress, stop)
    }
}

struct Walk<'a> {
    survey: Survey,
    physical: Option<&'a Physical>,
    device: u64,
    /// Inodes with more than one link that were counted.
    seen: HashSet<u64>,
    stop: &'a AtomicBool,
}

impl Walk<'_> {
    /// Visits a tree with a list of directories, so that its depth is not limited by the stack.
    fn directory(&mut self, top: &Path) -> Result<(), Error> {
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if directory == top => {
                    return Err(PathError::of("list", top)(error).into());
                }
                Err(_) => {
                    self.survey.all.unreadable_files += 1;
                    continue;
                }
            };
            for entry in entries {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let entry = entry.map_err(PathError::of("list", &directory))?;
                // A file that was removed meanwhile is not counted.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if metadata.dev() != self.device {
                    continue;
                }
                if metadata.is_dir() {
                    waiting.push(entry.path());
                } else if metadata.is_file() {
                    self.file(&entry.path(), &metadata)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) -> Result<(), Error> {
        if metadata.nlink() > 1 && !self.seen.insert(metadata.ino()) {
            return Ok(());
        }
        let all = &mut self.survey.all;
        let file = match open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => {
                all.unreadable_files += 1;
                return Ok(());
            }
        };
        let layout = match placed(&file) {
            Ok(layout) => layout,
            Err(error) if is_unsupported(&error) => {
                return Err(Error::NoLayout {
                    path: path.to_owned(),
                    filesystem: self.survey.filesystem,
                });
            }
            Err(error) => return Err(PathError::of("find the places of", path)(error).into()),
        };
        self.count(path, metadata, &layout);
        Ok(())
    }

    fn count(&mut self, path: &Path, metadata: &Metadata, layout: &Layout) {
        let all = &mut self.survey.all;
        all.files += 1;
        all.encoded_files += u64::from(layout.is_encoded());
        all.bytes += layout.placed_bytes();
        let (fragments, fewest) = (layout.fragments(), layout.fewest_fragments());
        all.fragments += fragments;
        all.fewest_fragments += fewest;
        let longest = Spot::longest(path, layout);
        if longest.as_ref().map(Spot::size_bytes)
            > self.survey.longest.as_ref().map(Spot::size_bytes)
        {
            self.survey.longest = longest;
        }
        let Some(dof_l) = layout.dof_l() else {
            return;
        };
        // A file that changes meanwhile may have extents where the device has no data.
        let dof_p = self.physical.and_then(|it| it.dof_p(layout).ok());
        let finding = Finding {
            path: path.to_owned(),
            identity: Identity {
                device: (libc::major(metadata.dev()), libc::minor(metadata.dev())),
                inode: metadata.ino(),
            },
            size_bytes: layout.placed_bytes(),
            fragments,
            fewest_fragments: fewest,
            dof_l,
            dof_p,
            read: None,
            times_read: None,
        };
        if dof_p.is_some_and(|it| it >= WORTH_SPREADING) {
            self.survey.unspread.push(finding.clone());
        }
        if fragments > fewest {
            self.survey.fragmented.push(finding);
        }
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    // btrfs and network file systems return ENOTTY, others EOPNOTSUPP.
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS)
    )
}

/// The file's extents. Data that have no place yet are written first, as is soon done anyway.
fn placed(file: &File) -> io::Result<Layout> {
    let layout = Layout::of(file, false)?;
    let waits = layout.extents().iter().any(|it| it.state == State::Pending);
    match waits {
        true => Layout::of(file, true),
        false => Ok(layout),
    }
}
