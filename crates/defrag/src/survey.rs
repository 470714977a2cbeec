//! What there is: every regular file below a path, once, and how fragmented it is.

use crate::measure::{Measure, Spot};
use crate::{Error, Filesystem, Identity, Physical, ReadTime, WORTH_SPREADING, failed};
use device::Layout;
use serde::Serialize;
use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A file in more pieces than it need be, or on fewer of the device's dies.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Where it is.
    pub path: PathBuf,
    /// Which file it is.
    #[serde(skip)]
    pub identity: Identity,
    /// Bytes that have a place on the device.
    pub size_bytes: u64,
    /// Pieces that it is in.
    pub fragments: u64,
    /// The fewest that it could be in.
    pub fewest_fragments: u64,
    /// The one over the other (dissertation §2.1).
    pub dof_l: f64,
    /// The share of the device's parallelism that reading it misses; nothing where the device
    /// does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dof_p: Option<f64>,
    /// How long reading it takes; nothing where that was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadTime>,
    /// How often it was seen to be read; nothing where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_read: Option<f64>,
}

/// Files and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many.
    pub files: u64,
    /// Bytes that have a place on the device.
    pub bytes: u64,
    /// Pieces.
    pub fragments: u64,
    /// The fewest possible.
    pub fewest_fragments: u64,
    /// Files that could not be opened.
    pub unreadable_files: u64,
    /// Files whose places tell nothing: compressed, or inside the file system's metadata.
    pub encoded_files: u64,
}

/// What there is below a path.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The file system.
    pub filesystem: Filesystem,
    /// All regular files.
    pub all: Tally,
    /// Those in more pieces than they need be, by path.
    pub fragmented: Vec<Finding>,
    /// Those that are worth spreading over the device's dies, by path, where it tells.
    pub unspread: Vec<Finding>,
    /// Where the longest piece of all is.
    pub(crate) longest: Option<Spot>,
}

/// Opens a file to look at it: no link is followed, no lease broken, no pipe waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

impl Survey {
    /// Of the file `path`, or all below the directory, on the same file system.
    ///
    /// # Errors
    /// As [`Survey::with`].
    pub fn of(path: &Path, stop: &AtomicBool) -> Result<Self, Error> {
        Survey::with(path, None, stop)
    }

    /// The same; where there is a `physical` the device is asked which dies each file is on.
    ///
    /// # Errors
    /// [`Error::Io`] for `path` itself, [`Error::NoLayout`], and [`Error::Interrupted`] when
    /// `stop` becomes true. Of files below it, those that cannot be opened are counted.
    pub fn with(
        path: &Path,
        physical: Option<&Physical>,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let file = open(path).map_err(failed("open", path))?;
        let (filesystem, _) = Filesystem::of(&file).map_err(failed("look at", path))?;
        let metadata = file.metadata().map_err(failed("look at", path))?;
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
    /// What times reading here; `None` if no file can be read directly.
    pub fn measure(&self) -> Option<Measure> {
        Measure::new(self.longest.as_ref())
    }

    /// Reads the fragmented files as they lie, those first that may lose most time, until
    /// `budget_bytes` were read; `progress` hears how many of how many are done.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when `stop` becomes true. A file that cannot be read directly is
    /// left without a figure.
    pub fn read_all(
        &mut self,
        measure: &mut Measure,
        budget_bytes: u64,
        progress: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        measure.findings(&mut self.fragmented, budget_bytes, progress, stop)
    }

    /// The same for those that are worth spreading.
    ///
    /// # Errors
    /// As [`Survey::read_all`].
    pub fn read_unspread(
        &mut self,
        measure: &mut Measure,
        budget_bytes: u64,
        progress: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        measure.findings(&mut self.unspread, budget_bytes, progress, stop)
    }
}

struct Walk<'a> {
    survey: Survey,
    physical: Option<&'a Physical>,
    device: u64,
    /// Inodes with more than one name.
    seen: HashSet<u64>,
    stop: &'a AtomicBool,
}

impl Walk<'_> {
    /// Depth is bounded by the path's length, not by the stack: directories wait in a list.
    fn directory(&mut self, top: &Path) -> Result<(), Error> {
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if directory == top => return Err(failed("list", top)(error)),
                Err(_) => {
                    self.survey.all.unreadable_files += 1;
                    continue;
                }
            };
            for entry in entries {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                let entry = entry.map_err(failed("list", &directory))?;
                // A file that has gone meanwhile is no longer there to be counted.
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
        let layout = match Layout::of(&file, false) {
            Ok(layout) => layout,
            Err(error) if is_unsupported(&error) => {
                return Err(Error::NoLayout {
                    path: path.to_owned(),
                    filesystem: self.survey.filesystem,
                });
            }
            Err(error) => return Err(failed("find the places of", path)(error)),
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
        // A file whose places change meanwhile may be where the device has nothing.
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
    // btrfs and network file systems say ENOTTY, others EOPNOTSUPP.
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS)
    )
}
