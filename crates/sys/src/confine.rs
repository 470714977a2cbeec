//! Rights that a command gives up once it has opened what it needs.
//!
//! A recording or a snapshot may be anybody's, and root reads it. Whoever finds a way to take the reader over
//! is to gain nothing by it. A [`Confinement`] says what is needed from then on, and the kernel refuses the
//! rest, in three ways:
//!
//! - capabilities: those that are not kept are dropped, so that root is a user by the name of root;
//! - Landlock: no file is opened but below the directories that were named, each by a descriptor. What
//!   is open already stays usable;
//! - seccomp: no sockets, no programs, nothing of other processes, nothing that changes the kernel.
//!
//! All of it holds for this thread and those that it starts, seccomp for threads that run already, too. None
//! of it can be taken back. A kernel without one of the three still has the others.

mod calls;

use crate::output::Workplace;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags,
};
use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

pub use rustix::thread::CapabilitySet as Capabilities;

/// Newest rights to files that are dealt with. The crate leaves out what the kernel does not know.
const KNOWN: ABI = ABI::V5;

/// What takes a file into another directory, or out of it.
const PUBLISH: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{Refer | MakeReg | MakeDir | RemoveFile | RemoveDir});

/// Reasons why rights that a command does not need could not be given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Capabilities were not dropped.
    #[error("cannot drop capabilities: {0}; report this with your kernel's version")]
    Capabilities(#[source] io::Error),
    /// The kernel has Landlock and does not take these rules.
    #[error("cannot close off other files (Landlock): {0}; report this with your kernel's version")]
    Files(#[from] RulesetError),
    /// The kernel has seccomp and does not take this filter.
    #[error("cannot forbid system calls (seccomp): {0}; report this with your kernel's version")]
    Calls(String),
}

/// What a command does to the kernel's tracing programs after it has confined itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// It has none, or is done with them.
    #[default]
    None,
    /// It reads and writes the maps of those that are loaded.
    Loaded,
    /// It attaches them anew.
    Attached,
}

/// What is still needed.
#[derive(Debug)]
#[must_use]
pub struct Confinement {
    kept: Capabilities,
    /// Rights to what is in these directories, or to these files. None leaves all files as they are.
    files: Option<Vec<(OwnedFd, BitFlags<AccessFs>)>>,
    programs: Programs,
    may_signal: bool,
    has_children: bool,
}

/// What the kernel could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confined {
    /// Whether Landlock holds.
    pub files: bool,
    /// Whether seccomp holds.
    pub calls: bool,
}

impl Confinement {
    /// Of a command that reads what is open, and opens nothing.
    pub fn of_reader() -> Self {
        Confinement {
            kept: Capabilities::empty(),
            files: Some(Vec::new()),
            programs: Programs::None,
            may_signal: false,
            has_children: false,
        }
    }

    /// Of a command that watches the machine: it opens what it may.
    pub fn of_watcher() -> Self {
        Confinement {
            files: None,
            ..Confinement::of_reader()
        }
    }

    /// Of a command that has programs read what is open: they are read from anywhere, and write only where
    /// they are told.
    ///
    /// # Errors
    /// What the system says.
    pub fn of_starter() -> io::Result<Self> {
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let read = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
        Ok(Confinement {
            files: Some(vec![(root, read)]),
            may_signal: true,
            has_children: true,
            ..Confinement::of_reader()
        })
    }

    /// Keeps these capabilities as well, if it has them.
    pub fn keeping(mut self, capabilities: Capabilities) -> Self {
        self.kept |= capabilities;
        self
    }

    /// It may do this with the kernel's tracing programs.
    pub fn with_programs(mut self, programs: Programs) -> Self {
        self.programs = programs;
        self
    }

    /// It may send signals to other processes.
    pub fn with_signals(mut self) -> Self {
        self.may_signal = true;
        self
    }

    /// It may make, read and remove what is in a directory of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn working_in(mut self, work: &Workplace) -> io::Result<Self> {
        self.allow(work.handle(), AccessFs::from_all(KNOWN))?;
        self.allow(work.parent(), AccessFs::RemoveDir.into())?;
        Ok(self.keeping(to_change(work.parent())?))
    }

    /// As [`Confinement::working_in`], and it may move the result to its place.
    ///
    /// # Errors
    /// What the system says.
    pub fn publishing(mut self, work: &Workplace) -> io::Result<Self> {
        self.allow(work.parent(), PUBLISH)?;
        self.working_in(work)
    }

    /// It may write to this device.
    ///
    /// # Errors
    /// What the system says.
    pub fn writing_to(mut self, device: &impl AsFd) -> io::Result<Self> {
        let write = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});
        self.allow(device, write)?;
        Ok(self)
    }

    fn allow(&mut self, place: &impl AsFd, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let place = place.as_fd().try_clone_to_owned()?;
        if let Some(files) = &mut self.files {
            files.push((place, rights));
        }
        Ok(())
    }

    /// Gives up everything else, for good. Threads that run already keep their capabilities and files.
    ///
    /// # Errors
    /// [`Error`], if the kernel can do what it does not do here. What was given up before stays so.
    pub fn begin(self) -> Result<Confined, Error> {
        // Without it no user may use the other two.
        set_no_new_privs(true).map_err(|it| Error::Capabilities(it.into()))?;
        keep_only(self.kept)?;
        Ok(Confined {
            files: self.close_files()?,
            calls: self.forbid_calls()?,
        })
    }

    fn close_files(&self) -> Result<bool, Error> {
        let Some(files) = &self.files else {
            return Ok(false);
        };
        // Before 5.19, nothing moves from one directory to another: the outputs could not be published. There
        // this crate does nothing.
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::SoftRequirement)
            .handle_access(AccessFs::Refer)?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?
            .create()?;
        let rules = rules.add_rules(files.iter().map(|(place, rights)| {
            Ok::<_, RulesetError>(PathBeneath::new(place.as_fd(), *rights))
        }))?;
        Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
    }

    fn forbid_calls(&self) -> Result<bool, Error> {
        calls::forbid(&calls::Needs {
            programs: self.programs,
            may_signal: self.may_signal,
            has_children: self.has_children,
            keeps_to_its_files: self.files.is_some(),
        })
    }
}

/// Drops all capabilities of this thread, which needs none for what it does.
///
/// # Errors
/// [`Error::Capabilities`].
pub fn drop_capabilities() -> Result<(), Error> {
    keep_only(Capabilities::empty())
}

/// Capabilities that this user needs to add and remove names in a directory: none in one of their own.
///
/// # Errors
/// What the system says.
pub fn to_change(directory: &impl AsFd) -> io::Result<Capabilities> {
    let stat = fstat(directory)?;
    let owners = Mode::WUSR | Mode::XUSR;
    let is_own = stat.st_uid == geteuid().as_raw();
    match is_own && Mode::from_raw_mode(stat.st_mode).contains(owners) {
        true => Ok(Capabilities::empty()),
        // The latter for a name of somebody else's in a directory with the sticky bit.
        false => Ok(Capabilities::DAC_OVERRIDE | Capabilities::FOWNER),
    }
}

/// Capabilities that this user needs to open a file again for reading: none for one of their own.
///
/// # Errors
/// What the system says.
pub fn to_read(file: &impl AsFd) -> io::Result<Capabilities> {
    let stat = fstat(file)?;
    let is_own = stat.st_uid == geteuid().as_raw();
    match is_own && Mode::from_raw_mode(stat.st_mode).contains(Mode::RUSR) {
        true => Ok(Capabilities::empty()),
        false => Ok(Capabilities::DAC_READ_SEARCH),
    }
}

fn keep_only(kept: Capabilities) -> Result<(), Error> {
    let failed = |errno: Errno| Error::Capabilities(errno.into());
    let had = capabilities(None).map_err(failed)?;
    if had.effective.contains(Capabilities::SETPCAP) {
        limit_programs(kept).map_err(failed)?;
    }
    // Kernels before 4.3 have no such set.
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let sets = CapabilitySets {
        effective: had.effective & kept,
        permitted: had.permitted & kept,
        inheritable: Capabilities::empty(),
    };
    set_capabilities(None, sets).map_err(failed)
}

/// Takes all capabilities but these from programs that are started from now on.
fn limit_programs(kept: Capabilities) -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let one = Capabilities::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) if !kept.contains(one) => remove_capability_from_bounding_set(one)?,
            Ok(_) => {}
            // The last one that the kernel knows was before.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
