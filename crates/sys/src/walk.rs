//! Paths that are walked name by name, each looked up once, in the directory that was opened for the
//! name before it.
//!
//! Root is told to write and load by paths of which others may own a part. Whoever can rename a
//! directory or exchange a name for a link would otherwise choose, between a check and its use,
//! what root uses.

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, mkdirat, openat,
    readlinkat, statat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Most links of a path, as the kernel's.
const MOST_LINKS: usize = 40;

/// Why a path is not used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

pub(crate) fn refusal(sentence: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, Refusal(sentence))
}

/// Whether the error says that a path is in others' hands, rather than what the system says.
pub fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|it| it.is::<Refusal>())
}

/// What a walk demands of the names that it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// No link that another user may have made or may exchange.
    OwnLinks,
    /// Nothing that another user may change or replace.
    Ours,
}

/// What becomes of a directory that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Fails,
    /// It is made, for this user to write and all to read.
    IsMade,
}

/// A name in a directory that is held open.
#[derive(Debug)]
pub struct Place {
    directory: OwnedFd,
    name: OsString,
}

impl Place {
    /// The place that `path` names; its last name may be missing. A link of this user's or of
    /// root's is followed where nobody else can exchange it.
    ///
    /// # Errors
    /// What the system says; [`is_refusal`] for a link of somebody else's.
    pub fn of(path: &Path) -> io::Result<Self> {
        Walk::begin(path, Demand::OwnLinks, Missing::Fails)?.place(true)
    }

    /// As [`Place::of`], but the last name is taken as it is, whether or not it is a link.
    ///
    /// # Errors
    /// As of [`Place::of`].
    pub fn at(path: &Path) -> io::Result<Self> {
        Walk::begin(path, Demand::OwnLinks, Missing::Fails)?.place(false)
    }

    /// A name in a directory that is open.
    pub(crate) fn in_open(directory: OwnedFd, name: impl Into<OsString>) -> Self {
        let name = name.into();
        Place { directory, name }
    }

    /// The open directory.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The name in it.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Path of the directory by its descriptor, for this process as long as this value lives.
    pub fn directory_path(&self) -> PathBuf {
        by_descriptor(&self.directory)
    }

    /// Path of the name in the open directory.
    pub fn path(&self) -> PathBuf {
        self.directory_path().join(&self.name)
    }

    /// What has the name, without opening it; None if nothing has. [`open_again`] opens it.
    ///
    /// # Errors
    /// What the system says.
    pub fn held(&self) -> io::Result<Option<File>> {
        step();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(held) => Ok(Some(held.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// What has the name; None if nothing has.
    ///
    /// # Errors
    /// What the system says.
    pub fn stat(&self) -> io::Result<Option<Stat>> {
        step();
        match statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Opens what [`Place::held`] found, whatever has its name now.
///
/// # Errors
/// What the system says.
pub fn open_again(held: &File, options: &std::fs::OpenOptions) -> io::Result<File> {
    options.open(by_descriptor(held))
}

/// Path of what is open, which leads there whatever becomes of its name.
pub(crate) fn by_descriptor(open: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()))
}

/// Opens a regular file for reading, if nobody but this user and root may change it, replace it, or
/// exchange a directory or link above it.
///
/// # Errors
/// What the system says; [`is_refusal`] with what others may change.
pub fn open_own_file(path: &Path) -> io::Result<File> {
    let walk = Walk::begin(&std::path::absolute(path)?, Demand::Ours, Missing::Fails)?;
    let place = walk.place(true)?;
    step();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&place.directory, &place.name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refusal(format!("{} is not a regular file", path.display())));
    }
    require_ours(&stat, path)?;
    Ok(file.into())
}

/// Opens a regular file for reading, without opening anything else: that may have effects of its own,
/// as of a device, or block, as of a pipe. The last name is not followed if it is a link.
///
/// # Errors
/// What the system says; [`is_refusal`] for what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    step();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(CWD, path, flags, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(refusal(format!("{} is not a regular file", path.display())));
    }
    step();
    File::open(by_descriptor(&found))
}

/// Opens a regular file or a directory by `options`, without opening anything else, as
/// [`open_regular`].
///
/// # Errors
/// What the system says; ELOOP for a link, and for what is neither.
pub fn open_quietly(path: &Path, options: &std::fs::OpenOptions) -> io::Result<File> {
    step();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = File::from(openat(CWD, path, flags, Mode::empty())?);
    match FileType::from_raw_mode(fstat(&found)?.st_mode) {
        FileType::RegularFile | FileType::Directory => open_again(&found, options),
        _ => Err(Errno::LOOP.into()),
    }
}

/// Makes the directory and those above it that are missing, and opens it, if nobody but this user and
/// root may change it or exchange a directory or link above it.
///
/// # Errors
/// What the system says; [`is_refusal`] with what others may change.
pub fn make_own_directory(path: &Path) -> io::Result<OwnedFd> {
    let path = std::path::absolute(path)?;
    Walk::begin(&path, Demand::Ours, Missing::IsMade)?.directory()
}

/// A walk on its way.
struct Walk {
    demand: Demand,
    missing: Missing,
    at: OwnedFd,
    /// Path of `at` as it was walked, for sentences.
    shown: PathBuf,
    /// Names to come, the next one last.
    left: Vec<OsString>,
    links_left: usize,
}

/// Where a name leads.
enum Next {
    Directory(OwnedFd, Stat),
    Link(OwnedFd, Stat),
    /// Anything else, or nothing.
    End,
}

impl Walk {
    fn begin(path: &Path, demand: Demand, missing: Missing) -> io::Result<Self> {
        step();
        let start = match path.is_absolute() {
            true => "/",
            false => ".",
        };
        let mut walk = Walk {
            demand,
            missing,
            at: open_directory(start)?,
            shown: PathBuf::from(start),
            left: Vec::new(),
            links_left: MOST_LINKS,
        };
        walk.push(path);
        walk.require(&fstat(&walk.at)?)?;
        Ok(walk)
    }

    fn push(&mut self, path: &Path) {
        let names = path.components().filter_map(|it| match it {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        let names: Vec<_> = names.collect();
        self.left.extend(names.into_iter().rev());
    }

    /// Walks to the last name.
    fn place(mut self, follows_last: bool) -> io::Result<Place> {
        while let Some(name) = self.left.pop() {
            let is_last = self.left.is_empty();
            if name == ".." {
                self.go_up()?;
                continue;
            }
            if is_last && !follows_last {
                return Ok(self.end(name));
            }
            match self.next(&name)? {
                Next::Link(link, stat) => self.follow(&name, &link, &stat)?,
                _ if is_last => return Ok(self.end(name)),
                Next::Directory(directory, stat) => self.enter(name, directory, &stat)?,
                Next::End => return Err(self.no_directory(&name)),
            }
        }
        Err(io::Error::new(
            ErrorKind::IsADirectory,
            "it names a directory",
        ))
    }

    /// Walks into the last directory.
    fn directory(mut self) -> io::Result<OwnedFd> {
        while let Some(name) = self.left.pop() {
            if name == ".." {
                self.go_up()?;
                continue;
            }
            match self.next(&name)? {
                Next::Link(link, stat) => self.follow(&name, &link, &stat)?,
                Next::Directory(directory, stat) => self.enter(name, directory, &stat)?,
                Next::End => return Err(self.no_directory(&name)),
            }
        }
        Ok(self.at)
    }

    fn end(self, name: OsString) -> Place {
        Place {
            directory: self.at,
            name,
        }
    }

    fn next(&self, name: &OsStr) -> io::Result<Next> {
        step();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match openat(&self.at, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if self.missing == Missing::IsMade => {
                step();
                mkdirat(&self.at, name, Mode::from_raw_mode(0o755))?;
                step();
                openat(&self.at, name, flags, Mode::empty())?
            }
            Err(Errno::NOENT) => return Ok(Next::End),
            opened => opened?,
        };
        let stat = fstat(&opened)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Next::Directory(opened, stat),
            FileType::Symlink => Next::Link(opened, stat),
            _ => Next::End,
        })
    }

    fn enter(&mut self, name: OsString, directory: OwnedFd, stat: &Stat) -> io::Result<()> {
        self.at = directory;
        self.shown.push(name);
        self.require(stat)
    }

    /// Whoever may move the present directory chooses what is above it.
    fn go_up(&mut self) -> io::Result<()> {
        if is_root() && is_shared(&fstat(&self.at)?) {
            let shown = self.shown.display();
            return Err(refusal(format!(
                "{shown}/.. may be moved by others: give the path without .."
            )));
        }
        step();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.at = openat(&self.at, "..", flags, Mode::empty())?;
        self.shown.push("..");
        self.require(&fstat(&self.at)?)
    }

    fn follow(&mut self, name: &OsStr, link: &OwnedFd, stat: &Stat) -> io::Result<()> {
        let shown = self.shown.join(name);
        let directory = fstat(&self.at)?;
        if !self.may_follow(stat, &directory) {
            return Err(refusal(format!(
                "{} is a link that another user made or may exchange: give another path",
                shown.display()
            )));
        }
        self.links_left = self.links_left.checked_sub(1).ok_or(Errno::LOOP)?;
        // A link of /proc leads to what is open, whatever its text says.
        if fstatfs(&self.at)?.f_type == PROC_SUPER_MAGIC {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            if let Ok(opened) = openat(&self.at, name, flags, Mode::empty())
                && FileType::from_raw_mode(fstat(&opened)?.st_mode) == FileType::Directory
            {
                let stat = fstat(&opened)?;
                return self.enter(name.to_owned(), opened, &stat);
            }
        }
        // The link that was opened, not one that has its name now.
        let target = readlinkat(link, "", Vec::new())?;
        let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
        if target.is_absolute() {
            step();
            self.at = open_directory("/")?;
            self.shown = PathBuf::from("/");
        }
        self.push(&target);
        Ok(())
    }

    /// As the kernel's `fs.protected_symlinks` in directories with the sticky bit, and more for root:
    /// a user may write through links of whoever owns the directory, root may not.
    fn may_follow(&self, link: &Stat, directory: &Stat) -> bool {
        let is_own = is_trusted(link.st_uid);
        if is_root() || self.demand == Demand::Ours {
            return is_own && !is_shared(directory);
        }
        is_own || link.st_uid == directory.st_uid && !is_writable_by_others(directory)
    }

    fn require(&self, stat: &Stat) -> io::Result<()> {
        match self.demand {
            Demand::OwnLinks => Ok(()),
            Demand::Ours => require_ours(stat, &self.shown),
        }
    }

    fn no_directory(&self, name: &OsStr) -> io::Error {
        let shown = self.shown.join(name);
        let kind = match statat(&self.at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => ErrorKind::NotADirectory,
            Err(_) => ErrorKind::NotFound,
        };
        io::Error::new(kind, format!("there is no directory {}", shown.display()))
    }
}

fn require_ours(stat: &Stat, path: &Path) -> io::Result<()> {
    match is_shared(stat) {
        false => Ok(()),
        true => Err(refusal(format!(
            "others may change {}: use a path that only this user and root can write to",
            path.display()
        ))),
    }
}

fn open_directory(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Root, this user, and on Android the system's user, which owns `/data`.
fn is_trusted(uid: u32) -> bool {
    const ANDROID_SYSTEM: u32 = 1000;
    let is_androids = || uid == ANDROID_SYSTEM && crate::places::is_android(Path::new("/"));
    uid == 0 || uid == rustix::process::geteuid().as_raw() || is_androids()
}

/// Whether others may change a file, or exchange names of this user's and root's in a directory. In
/// one with the sticky bit they may not.
fn is_shared(stat: &Stat) -> bool {
    const STICKY: u32 = 0o1000;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let is_sticky = is_directory && stat.st_mode & STICKY != 0;
    !is_trusted(stat.st_uid) || is_writable_by_others(stat) && !is_sticky
}

/// A user's group of the same number is the user's own, as distributions make them; root's is not.
fn is_writable_by_others(stat: &Stat) -> bool {
    let by_group = stat.st_mode & 0o020 != 0;
    let is_own_group = stat.st_uid != 0 && stat.st_gid == stat.st_uid;
    stat.st_mode & 0o002 != 0 || by_group && !is_own_group
}

/// Called before each system call that looks a name up, so that tests can change names there.
#[cfg(not(test))]
pub(crate) fn step() {}
#[cfg(test)]
pub(crate) use swaps::step;

/// An attacker who acts between two system calls.
#[cfg(test)]
pub(crate) mod swaps {
    use std::cell::RefCell;

    type Attack = Box<dyn FnOnce()>;

    thread_local! {
        static NEXT: RefCell<Option<(usize, Attack)>> = const { RefCell::new(None) };
    }

    /// Makes `attack` before the system call of this number of this thread.
    pub(crate) fn before_step(number: usize, attack: impl FnOnce() + 'static) {
        NEXT.set(Some((number, Box::new(attack))));
    }

    /// Whether the attack was made; it is not made later.
    pub(crate) fn was_made() -> bool {
        NEXT.take().is_none()
    }

    pub(crate) fn step() {
        let due = NEXT.with_borrow_mut(|next| match next {
            Some((0, _)) => next.take().map(|(_, attack)| attack),
            Some((number, _)) => {
                *number -= 1;
                None
            }
            None => None,
        });
        if let Some(attack) = due {
            attack();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A module in a directory of its own, all of it this user's.
    fn module() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().join("above");
        fs::create_dir(&above).unwrap();
        chmod(&above, 0o755);
        let module = above.join("a.ko");
        fs::write(&module, "module").unwrap();
        chmod(&module, 0o644);
        (root, module)
    }

    #[test]
    fn what_others_may_change_is_not_loaded() {
        let (root, module) = module();
        let above = module.parent().unwrap();
        open_own_file(&module).unwrap();
        let link = root.path().join("link");
        symlink(&module, &link).unwrap();
        open_own_file(&link).unwrap();
        chmod(above, 0o757);
        assert!(is_refusal(&open_own_file(&module).unwrap_err()));
        assert!(
            is_refusal(&open_own_file(&link).unwrap_err()),
            "a link to it"
        );
        // The sticky bit keeps names as they are.
        chmod(above, 0o1777);
        open_own_file(&module).unwrap();
        chmod(&module, 0o666);
        assert!(is_refusal(&open_own_file(&module).unwrap_err()));
        assert!(
            is_refusal(&open_own_file(above).unwrap_err()),
            "a directory"
        );
        let missing = open_own_file(&above.join("b.ko")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_belongs_to_another_user_is_not_loaded() {
        if !is_root() {
            return;
        }
        let (_root, module) = module();
        let above = module.parent().unwrap();
        for theirs in [above, &module] {
            chown(theirs, Some(65534), None).unwrap();
            assert!(is_refusal(&open_own_file(&module).unwrap_err()));
            chown(theirs, Some(0), None).unwrap();
        }
        open_own_file(&module).unwrap();
    }

    #[test]
    fn a_pipe_or_link_that_takes_a_files_name_is_not_opened() {
        let (_root, module) = module();
        let path = module.clone();
        swaps::before_step(0, move || {
            fs::remove_file(&path).unwrap();
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
        });
        assert!(is_refusal(&open_regular(&module).unwrap_err()));
        assert!(swaps::was_made());
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        let is_loop = |error: io::Error| error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        assert!(is_loop(open_quietly(&module, &options).unwrap_err()));
        assert!(is_loop(
            open_quietly(Path::new("/dev/null"), &options).unwrap_err()
        ));
        fs::remove_file(&module).unwrap();
        symlink("/etc/hostname", &module).unwrap();
        assert!(is_refusal(&open_regular(&module).unwrap_err()));
        assert!(is_loop(open_quietly(&module, &options).unwrap_err()));
        open_quietly(module.parent().unwrap(), &options).unwrap();
    }

    /// A module is loaded from the descriptor that was checked.
    #[test]
    fn whoever_exchanges_a_module_at_any_step_has_another_one_loaded_never() {
        if !is_root() {
            return;
        }
        for number in 0.. {
            let (root, module) = module();
            let sticky = root.path().join("tmp");
            fs::create_dir(&sticky).unwrap();
            chmod(&sticky, 0o1777);
            let theirs = root.path().join("theirs.ko");
            fs::write(&theirs, "evil").unwrap();
            chown(&theirs, Some(65534), None).unwrap();
            let link = sticky.join("link");
            symlink(&module, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
            swaps::before_step(number, move || {
                fs::remove_file(&link).unwrap();
                symlink(&theirs, &link).unwrap();
            });
            let opened = open_own_file(&sticky.join("link"));
            let was_made = swaps::was_made();
            assert!(opened.is_err_and(|it| is_refusal(&it)), "step {number}");
            if !was_made {
                break;
            }
        }
    }

    #[test]
    fn a_directory_is_made_where_nobody_else_may_write_and_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        make_own_directory(&at("a/b")).unwrap();
        make_own_directory(&at("a/b")).unwrap();
        assert!(at("a/b").is_dir());
        chmod(&at("a"), 0o777);
        assert!(is_refusal(&make_own_directory(&at("a/c")).unwrap_err()));
        assert!(is_refusal(&make_own_directory(&at("a/b")).unwrap_err()));
        assert!(!at("a/c").exists());
    }

    #[test]
    fn paths_lead_where_they_did() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a/b", at("link")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (path, found) in [
            ("a/b/new", "a/b/new"),
            ("a/../link/new", "a/b/new"),
            ("link", "a/b"),
            ("./a//new", "a/new"),
        ] {
            let place = Place::of(&at(path)).unwrap();
            let path_of = fs::canonicalize(place.directory_path()).unwrap();
            assert_eq!(
                path_of.join(place.name()),
                root.path().canonicalize().unwrap().join(found)
            );
        }
        assert_eq!(Place::at(&at("link")).unwrap().name(), "link");
        assert_eq!(Place::of(Path::new("new")).unwrap().name(), "new");
        // As programs are given the outputs of others.
        let open = fs::File::open(at("a")).unwrap();
        let by_number = by_descriptor(&open).join("b/new");
        assert_eq!(Place::of(&by_number).unwrap().name(), "new");
        for (path, kind) in [
            ("missing/new", ErrorKind::NotFound),
            ("..", ErrorKind::IsADirectory),
        ] {
            assert_eq!(Place::of(&at(path)).unwrap_err().kind(), kind, "{path}");
        }
        assert!(Place::of(&at("loop")).is_err());
        assert!(Place::of(Path::new("")).is_err());
    }
}
