//! Loading the scheduler's module, and why a kernel may refuse it.

use crate::sched::Error;
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use sys::PathError;

const NAME: &str = "frontrow_iosched";

/// Source of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Module {
    /// The running kernel's module directory, through modprobe.
    Installed,
    /// A module file.
    File(PathBuf),
}

impl Module {
    /// Whether the running kernel has it, or can load it: whether its file is there.
    ///
    /// # Errors
    /// [`Error::NoModule`], or [`Error::File`] for a file that is not there.
    pub fn find(&self, root: &Path) -> Result<(), Error> {
        if root.join("sys/module").join(NAME).is_dir() {
            return Ok(());
        }
        let release = release(root)?;
        match self {
            Self::File(path) => match fs::metadata(path) {
                Ok(_) => Ok(()),
                Err(source) => Err(PathError::of("access", path)(source).into()),
            },
            Self::Installed if is_installed(root, &release) => Ok(()),
            Self::Installed => Err(Error::NoModule { release }),
        }
    }

    /// Puts the module into the running kernel.
    ///
    /// # Errors
    /// One error for each reason that a user can do something about; [`Error::ModuleRefused`]
    /// for all others.
    pub fn load(&self, root: &Path) -> Result<(), Error> {
        let release = release(root)?;
        match self {
            Self::File(path) => load_file(root, path, &release),
            Self::Installed if is_installed(root, &release) => modprobe(root, &release),
            Self::Installed => Err(Error::NoModule { release }),
        }
    }
}

fn release(root: &Path) -> Result<String, Error> {
    Ok(sys::knobs::read(&root.join("proc/sys/kernel/osrelease"))?)
}

/// Whether depmod has seen it, in whatever directory and compression.
fn is_installed(root: &Path, release: &str) -> bool {
    let table = root.join("lib/modules").join(release).join("modules.dep");
    let modules = fs::read_to_string(table).unwrap_or_default();
    modules
        .lines()
        .filter_map(|line| line.split_once(':')?.0.rsplit('/').next())
        .any(|file| file.split('.').next() == Some(NAME))
}

fn load_file(root: &Path, path: &Path, release: &str) -> Result<(), Error> {
    // What was checked is what is loaded.
    let file = sys::walk::open_own_file(path).map_err(|error| unusable(path, error))?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(explain(errno, is_locked_down(root), release)),
    }
}

fn unusable(path: &Path, error: io::Error) -> Error {
    match sys::walk::is_refusal(&error) {
        true => Error::Shared {
            path: path.to_owned(),
            reason: error.to_string(),
        },
        false => PathError::of("access", path)(error).into(),
    }
}

fn modprobe(root: &Path, release: &str) -> Result<(), Error> {
    let output = sys::programs::output_of("modprobe", &[NAME]).map_err(Error::NoModprobe)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    Err(match errno_named_in(said) {
        Some(errno) => explain(errno, is_locked_down(root), release),
        None => Error::ModuleRefused(said.to_owned()),
    })
}

/// modprobe passes on the kernel's error in the C library's words.
fn errno_named_in(said: &str) -> Option<Errno> {
    const WORDS: [(&str, Errno); 6] = [
        ("Key was rejected by service", Errno::KEYREJECTED),
        ("Required key not available", Errno::NOKEY),
        ("Operation not permitted", Errno::PERM),
        ("Exec format error", Errno::NOEXEC),
        ("Permission denied", Errno::ACCESS),
        ("Operation not supported", Errno::OPNOTSUPP),
    ];
    WORDS
        .into_iter()
        .find(|(words, _)| said.contains(words))
        .map(|(_, errno)| errno)
}

/// Secure Boot puts the kernel into lockdown, in which it says EPERM to modules without a
/// signature; those with a wrong one are rejected by their key. So are they, and those without
/// any, by a kernel that was told to ask for signatures.
fn explain(errno: Errno, locked_down: bool, release: &str) -> Error {
    let release = release.to_owned();
    match errno {
        Errno::KEYREJECTED | Errno::NOKEY => Error::NotTrusted {
            release,
            locked_down,
        },
        Errno::PERM if locked_down => Error::NotTrusted {
            release,
            locked_down,
        },
        Errno::PERM | Errno::ACCESS => Error::Permission {
            what: "loading a kernel module".into(),
        },
        Errno::NOEXEC => Error::OtherKernel { release },
        Errno::OPNOTSUPP => Error::KernelUnsupported { release },
        other => Error::ModuleRefused(std::io::Error::from(other).to_string()),
    }
}

fn is_locked_down(root: &Path) -> bool {
    sys::knobs::read_choice(&root.join("sys/kernel/security/lockdown"))
        .is_ok_and(|mode| mode != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        for (said, locked_down, sentence) in [
            (
                "could not insert 'frontrow_iosched': Key was rejected by service",
                true,
                "trusts (Secure Boot)",
            ),
            (
                "could not insert 'frontrow_iosched': Required key not available",
                false,
                "boot without module.sig_enforce=1",
            ),
            (
                "could not insert 'frontrow_iosched': Operation not permitted",
                true,
                "Secure Boot",
            ),
            (
                "could not insert 'frontrow_iosched': Operation not permitted",
                false,
                "needs root",
            ),
            (
                "could not insert 'frontrow_iosched': Exec format error",
                false,
                "build it again",
            ),
            (
                "could not insert 'frontrow_iosched': Operation not supported",
                false,
                "PREEMPT_RT",
            ),
        ] {
            let errno = errno_named_in(said).unwrap();
            let error = explain(errno, locked_down, "6.1.0-18-amd64").to_string();
            assert!(error.contains(sentence), "{said}: {error}");
        }
        assert_eq!(errno_named_in("Cannot allocate memory"), None);
    }

    #[test]
    fn a_module_is_found_in_any_directory_and_compression() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("lib/modules/6.1");
        fs::create_dir_all(&directory).unwrap();
        for (table, installed) in [
            ("kernel/block/bfq.ko: kernel/lib/lz4.ko\n", false),
            ("extra/not_frontrow_iosched.ko:\n", false),
            ("updates/dkms/frontrow_iosched.ko.xz:\n", true),
            ("extra/frontrow_iosched.ko:\n", true),
        ] {
            fs::write(directory.join("modules.dep"), table).unwrap();
            assert_eq!(is_installed(root.path(), "6.1"), installed, "{table}");
        }
    }
}
