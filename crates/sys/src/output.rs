//! Files that a command writes for its user: private, at a path that others cannot redirect, and
//! complete or absent.
//!
//! Root records what all users do, and may be told to write into a directory in which others
//! create, rename and remove as they like. So the directory of an output is looked up once
//! ([`crate::walk`]) and everything in it is done by descriptor. No link in the place of an output is
//! followed. What is written in steps is written in a directory that only its maker can enter:
//! whoever moves it away moves it along with what is in it.

use crate::walk::{Place, refusal, step};
use rustix::fs::{
    CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, mkdirat, openat, renameat,
    renameat_with,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempDir};

/// An empty file at `path` that only this user can read. One that is there is taken if it is this
/// user's, by no other name as well.
///
/// # Errors
/// What the system says; [`ErrorKind::AlreadyExists`] for a link, a pipe, a device, or a file of
/// somebody else's.
pub fn create(path: &Path) -> io::Result<File> {
    let place = Place::at(path)?;
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    step();
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match openat(place.directory(), place.name(), flags, mode) {
        Err(Errno::LOOP) => return Err(taken()),
        opened => File::from(opened?),
    };
    let metadata = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file() || metadata.uid() != own || metadata.nlink() != 1 {
        return Err(taken());
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    Ok(file)
}

/// A file that will replace what is at a path. Dropping it leaves that as it was.
#[derive(Debug)]
pub struct Replacement {
    file: NamedTempFile,
    place: Place,
}

fn no_regular_file(path: &Path) -> io::Error {
    let path = path.display();
    refusal(format!("{path} is not a regular file: give another path"))
}

/// The place of a file that is to be replaced.
fn replaceable(path: &Path) -> io::Result<Place> {
    let place = Place::of(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => no_regular_file(path),
        _ => error,
    })?;
    require_regular(&place, path)?;
    Ok(place)
}

fn require_regular(place: &Place, shown: &Path) -> io::Result<()> {
    let held = place.stat()?.map(|it| FileType::from_raw_mode(it.st_mode));
    match held.is_some_and(|it| it != FileType::RegularFile) {
        true => Err(no_regular_file(shown)),
        false => Ok(()),
    }
}

impl Replacement {
    /// Begins a file of this mode for `path`, in the same directory. A link is followed to its
    /// target, unless another user made it or may exchange it.
    ///
    /// # Errors
    /// What the system says; [`crate::walk::is_refusal`] for a link of another user's, and for
    /// what is no regular file.
    pub fn begin(path: &Path, mode: u32) -> io::Result<Self> {
        Self::in_place(replaceable(path)?, mode)
    }

    /// As [`Replacement::begin`], for a name in an open directory.
    ///
    /// # Errors
    /// As of [`Replacement::begin`].
    pub fn begin_in(directory: &Directory, name: &str, mode: u32) -> io::Result<Self> {
        let place = Place::in_open(directory.0.try_clone()?, name);
        require_regular(&place, Path::new(name))?;
        Self::in_place(place, mode)
    }

    fn in_place(place: Place, mode: u32) -> io::Result<Self> {
        step();
        let file = Builder::new()
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(place.directory_path())?;
        Ok(Replacement { file, place })
    }

    /// Appends to the file.
    ///
    /// # Errors
    /// What the system says.
    pub fn add(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)
    }

    /// Replaces what is at the path.
    ///
    /// # Errors
    /// What the system says.
    pub fn publish(self) -> io::Result<()> {
        step();
        self.file.persist(self.place.path())?;
        Ok(())
    }
}

/// A directory for several outputs, which only this user can write to.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Makes the directory, private, or takes one that is this user's alone.
    ///
    /// # Errors
    /// What the system says; [`crate::walk::is_refusal`] for one that others own or may write to.
    pub fn make(path: &Path) -> io::Result<Self> {
        let place = Place::at(path)?;
        step();
        match mkdirat(place.directory(), place.name(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        step();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let others = || {
            let path = path.display();
            refusal(format!(
                "{path} is another user's, or others may write to it: give another directory"
            ))
        };
        let opened = match openat(place.directory(), place.name(), flags, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(others()),
            opened => File::from(opened?),
        };
        let metadata = opened.metadata()?;
        let own = rustix::process::geteuid().as_raw();
        match metadata.uid() == own && metadata.mode() & 0o022 == 0 {
            true => Ok(Directory(opened.into())),
            false => Err(others()),
        }
    }
}

fn taken() -> io::Error {
    io::Error::new(
        ErrorKind::AlreadyExists,
        "a link, a device or another user's file has this name: give another name, or remove it",
    )
}

/// Prefix of temporary files' names.
const PREFIX: &str = ".frontrow-";

/// Most directories that are made until one is not removed at once.
const MOST_TRIES: usize = 8;

/// A directory of this user's own beside the place that something is to have.
#[derive(Debug)]
pub struct Workplace {
    /// Removed with all that is in it when this is dropped.
    _directory: TempDir,
    handle: File,
    /// Where the result is to be. It holds the directory open by which the other is removed.
    place: Place,
}

impl Workplace {
    /// Makes one beside `output`, on the same file system.
    ///
    /// # Errors
    /// What the system says.
    pub fn beside(output: &Path) -> io::Result<Self> {
        Self::in_place(Place::at(output)?)
    }

    /// Makes one beside what [`Workplace::replace`] will replace, as [`Replacement::begin`] finds it.
    ///
    /// # Errors
    /// As of [`Replacement::begin`].
    pub fn to_replace(path: &Path) -> io::Result<Self> {
        Self::in_place(replaceable(path)?)
    }

    fn in_place(place: Place) -> io::Result<Self> {
        let parent = place.directory_path();
        step();
        remove_abandoned(&parent)?;
        for _ in 0..MOST_TRIES {
            step();
            let directory = Builder::new()
                .prefix(PREFIX)
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(&parent)?;
            step();
            let name = directory.path().file_name().map(OsStr::to_owned);
            match lock_own(&parent.join(name.unwrap_or_default())) {
                Ok(Some(handle)) if handle.metadata()?.nlink() > 0 => {
                    return Ok(Workplace {
                        _directory: directory,
                        handle,
                        place,
                    });
                }
                // Until it is locked, another command takes it for an abandoned one.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(taken())
    }

    /// The directory, open.
    pub(crate) fn handle(&self) -> &File {
        &self.handle
    }

    /// The directory that it is in, open.
    pub(crate) fn parent(&self) -> &OwnedFd {
        self.place.directory()
    }

    /// The path of `name` in it, for this process and those that it starts.
    pub fn path(&self, name: &str) -> PathBuf {
        let process = std::process::id();
        let descriptor = self.handle.as_raw_fd();
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}/{name}"))
    }

    /// Moves `name` to the place that [`Workplace::beside`] was told of, where nothing may be.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or what else the system says.
    pub fn publish(self, name: &str) -> io::Result<()> {
        let (to, new) = (self.place.directory(), self.place.name());
        step();
        match renameat_with(&self.handle, name, to, new, RenameFlags::NOREPLACE) {
            // Not every file system can; those of network servers cannot.
            Err(Errno::INVAL) if self.place.stat()?.is_none() => {
                renameat(&self.handle, name, to, new)?;
            }
            outcome => outcome?,
        }
        Ok(())
    }

    /// Moves `name` to the place that [`Workplace::to_replace`] was told of, over what is there.
    ///
    /// # Errors
    /// What the system says.
    pub fn replace(self, name: &str) -> io::Result<()> {
        step();
        renameat(
            &self.handle,
            name,
            self.place.directory(),
            self.place.name(),
        )?;
        Ok(())
    }
}

/// Removes temporary files of this user's killed commands, which are hidden and may have gigabytes.
fn remove_abandoned(parent: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(parent) {
        // Whoever may not list it can still make one.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        entries => entries?,
    };
    for entry in entries.flatten() {
        let is_named = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        // One that cannot be opened is left.
        if is_named && let Ok(Some(_lock)) = lock_own(&entry.path()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// The directory, locked for as long as it is open; `None` if it is another user's, or in use.
fn lock_own(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = File::from(openat(CWD, path, flags, Mode::empty())?);
    let metadata = directory.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own || metadata.mode() & 0o077 != 0 {
        return Ok(None);
    }
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{is_refusal, swaps};
    use std::os::unix::fs::{chown, lchown, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_its_maker_can_read_an_output() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("recording");
        create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        // One of before, which others could read.
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        create(&path).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, Vec::new()));
    }

    #[test]
    fn what_somebody_put_in_its_place_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join("shadow");
        fs::write(&theirs, "precious").unwrap();
        let path = directory.path().join("recording");
        symlink(&theirs, &path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
        fs::hard_link(&theirs, &path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        fs::remove_file(&path).unwrap();
        let flags = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, flags, 0).unwrap();
        // It neither waits for a reader nor takes one's word.
        assert!(create(&path).is_err());
        assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    }

    #[test]
    fn whoever_moves_a_workplace_away_redirects_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let victim = directory.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let work = Workplace::beside(&output).unwrap();
        let entries = fs::read_dir(directory.path()).unwrap().flatten();
        let mut hidden = entries.map(|it| it.path());
        let place = hidden
            .find(|it| it.is_dir())
            .expect("the workplace is beside its output");
        assert_eq!(mode(&place), 0o700);
        let away = directory.path().join("away");
        fs::rename(&place, &away).unwrap();
        fs::create_dir(&place).unwrap();
        symlink(&victim, place.join("image")).unwrap();
        fs::write(work.path("image"), "ours").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        work.publish("image").unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"ours");
    }

    #[test]
    fn what_a_killed_command_left_is_removed_and_nothing_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let dead = directory.path().join(".frontrow-dead");
        let shared = directory.path().join(".frontrow-notes");
        for (path, mode) in [(&dead, 0o700), (&shared, 0o755)] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        fs::write(dead.join("image"), "half").unwrap();
        let first = Workplace::beside(&output).unwrap();
        assert!(!dead.exists() && shared.exists());
        let _second = Workplace::beside(&output).unwrap();
        fs::write(first.path("image"), "whole").unwrap();
        first.publish("image").unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"whole");
    }

    #[test]
    fn only_a_regular_file_is_replaced_and_a_link_of_ones_own_stays() {
        let directory = tempfile::tempdir().unwrap();
        let [output, link] = ["output", "link"].map(|it| directory.path().join(it));
        fs::write(&output, "old").unwrap();
        symlink(&output, &link).unwrap();
        let work = Workplace::to_replace(&link).unwrap();
        fs::write(work.path("new"), "new").unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"old");
        work.replace("new").unwrap();
        assert_eq!(fs::read(&output).unwrap(), b"new");
        assert!(link.is_symlink());
        for path in [Path::new("/dev/null"), directory.path()] {
            assert!(is_refusal(&Workplace::to_replace(path).unwrap_err()));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn nothing_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        let work = Workplace::beside(&output).unwrap();
        fs::write(work.path("new"), "new").unwrap();
        symlink("nowhere", &output).unwrap();
        let refused = work.publish("new").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// A directory that another user shares with root, and what root's files are elsewhere.
    struct Shared {
        root: TempDir,
        directory: PathBuf,
        precious: PathBuf,
    }

    const SOMEBODY: Option<u32> = Some(65534);

    impl Shared {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let [shared, ours] = ["shared", "ours"].map(|it| root.path().join(it));
            let directory = shared.join("reports");
            for made in [&shared, &ours, &directory] {
                fs::create_dir(made).unwrap();
                chown(made, if *made == ours { None } else { SOMEBODY }, None).unwrap();
            }
            let precious = ours.join("report");
            fs::write(&precious, "precious").unwrap();
            Shared {
                directory,
                precious,
                root,
            }
        }

        fn output(&self) -> PathBuf {
            self.directory.join("report")
        }

        /// Each exchange that the directory's owner can make at once.
        fn attacks(&self) -> [Box<dyn FnOnce()>; 3] {
            let (output, directory) = (self.output(), self.directory.clone());
            let (precious, ours) = (self.precious.clone(), self.root.path().join("ours"));
            let link = |to: PathBuf, at: PathBuf| {
                move || {
                    let _ = fs::remove_file(&at)
                        .or_else(|_| fs::rename(&at, at.with_extension("away")));
                    symlink(to, &at).unwrap();
                    lchown(&at, SOMEBODY, None).unwrap();
                }
            };
            let (hard, at) = (precious.clone(), output.clone());
            [
                Box::new(link(precious, output)),
                Box::new(link(ours, directory)),
                Box::new(move || {
                    let _ = fs::remove_file(&at);
                    let _ = fs::hard_link(hard, at);
                }),
            ]
        }

        fn is_unharmed(&self) -> bool {
            let ours = fs::read_dir(self.precious.parent().unwrap())
                .unwrap()
                .count();
            fs::read(&self.precious).unwrap() == b"precious" && ours == 1
        }
    }

    /// Every way to write, with an exchange of names before each look-up.
    #[test]
    fn whoever_exchanges_names_at_any_step_redirects_nothing() {
        // Only root can make links of another user's, and only root writes where others may.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        type Way = fn(&Path) -> io::Result<()>;
        let ways: [(&str, Way); 5] = [
            ("create", |path| create(path)?.write_all(b"ours")),
            ("replacement", |path| {
                let mut file = Replacement::begin(path, 0o600)?;
                file.add(b"ours")?;
                file.publish()
            }),
            ("workplace", |path| {
                let work = Workplace::beside(path)?;
                fs::write(work.path("new"), "ours")?;
                work.publish("new")
            }),
            ("workplace over a file", |path| {
                let work = Workplace::to_replace(path)?;
                fs::write(work.path("new"), "ours")?;
                work.replace("new")
            }),
            ("directory", |path| {
                let mut file = Replacement::begin_in(&Directory::make(path)?, "study", 0o600)?;
                file.add(b"ours")?;
                file.publish()
            }),
        ];
        for (name, way) in ways {
            for kind in 0..3 {
                let mut steps = 0;
                loop {
                    let shared = Shared::new();
                    let attack = shared.attacks().into_iter().nth(kind).unwrap();
                    swaps::before_step(steps, attack);
                    let _ = way(&shared.output());
                    let was_made = swaps::was_made();
                    assert!(
                        shared.is_unharmed(),
                        "{name}, exchange {kind} at step {steps}"
                    );
                    if !was_made {
                        break;
                    }
                    steps += 1;
                }
                assert!(steps > 4, "{name} has steps");
            }
        }
    }

    #[test]
    fn a_directory_for_outputs_is_private_and_nobody_elses() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("study");
        let directory = Directory::make(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let mut file = Replacement::begin_in(&directory, "study.json", 0o600).unwrap();
        file.add(b"{}").unwrap();
        file.publish().unwrap();
        Directory::make(&path).unwrap();
        assert_eq!(fs::read(path.join("study.json")).unwrap(), b"{}");
        fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
        assert!(is_refusal(&Directory::make(&path).unwrap_err()));
        fs::remove_dir_all(&path).unwrap();
        symlink(root.path(), &path).unwrap();
        assert!(is_refusal(&Directory::make(&path).unwrap_err()));
    }
}
