//! Directory of profiles: one file an app, below the user's data directory.

use super::{Error, Profile};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use sys::PathError;

/// Largest size of a profile's file; profiles are far smaller.
const LIMIT_BYTES: u64 = 64 << 20;

/// Reasons why a profile could not be stored or used. The app starts without it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name could leave the directory.
    #[error("{0:?} is no name for a profile: give one without a slash with --name")]
    Name(String),
    /// Neither HOME nor XDG_DATA_HOME names a place for the directory.
    #[error("there is no place for profiles: set HOME")]
    NoPlace,
    /// No profile was recorded for the app.
    #[error("there is no profile {path}: make one with `frontrow launch record -- {name}`")]
    Missing {
        /// Path that the profile would have.
        path: PathBuf,
        /// Name of the app.
        name: String,
    },
    /// Another user could have written the profile.
    #[error("{path} is not used: it belongs to another user or others may write to it")]
    NotOwn {
        /// Path of the profile.
        path: PathBuf,
    },
    /// The file is not a profile that `record` wrote.
    #[error("{path} is not used, record the app again: {source}")]
    Bad {
        /// Path of the profile.
        path: PathBuf,
        /// What is wrong with the file.
        source: Error,
    },
    /// The profile or the directory could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
}

/// A directory of profiles.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// A store in `directory`, which need not exist.
    pub fn at(directory: PathBuf) -> Store {
        Store { directory }
    }

    /// The user's own store: `$XDG_DATA_HOME/frontrow/launch`, by default below `~/.local/share`.
    ///
    /// # Errors
    /// [`StoreError::NoPlace`].
    pub fn of_user() -> Result<Store, StoreError> {
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| Some(home()?.join(".local/share")))
            .ok_or(StoreError::NoPlace)?;
        Ok(Store::at(data.join("frontrow/launch")))
    }

    /// Path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of the profile with this name.
    ///
    /// # Errors
    /// [`StoreError::Name`].
    pub fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        match name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            true => Err(StoreError::Name(name.to_owned())),
            false => Ok(self.directory.join(format!("{name}.profile"))),
        }
    }

    /// Reads the profile with this name.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn read(&self, name: &str) -> Result<Profile, StoreError> {
        let path = self.path(name)?;
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => StoreError::Missing {
                path: path.clone(),
                name: name.to_owned(),
            },
            _ => PathError::of("access", &path)(source).into(),
        };
        // The open must not block if a pipe or a terminal lies at the path.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&path)
            .map_err(failed)?;
        if !is_own(&file).map_err(failed)? {
            return Err(StoreError::NotOwn { path });
        }
        let mut bytes = Vec::new();
        file.take(LIMIT_BYTES)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        Profile::decode(&bytes).map_err(|source| StoreError::Bad { path, source })
    }

    /// Stores a profile under this name and returns its path. A crash leaves the old profile or the
    /// new one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn write(&self, name: &str, profile: &Profile) -> Result<PathBuf, StoreError> {
        let path = self.path(name)?;
        let failed = PathError::of("access", &path);
        fs::create_dir_all(&self.directory).map_err(&failed)?;
        write_durably(&self.directory, &path, &profile.encode()).map_err(failed)?;
        Ok(path)
    }
}

fn absolute(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

/// The user's home directory; a system service has root's rights and no HOME.
fn home() -> Option<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    absolute("HOME").or_else(|| is_root.then(|| PathBuf::from("/root")))
}

/// Writes to a temporary file with a random name beside `path`, and renames it.
fn write_durably(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Whether only root or the caller can write the file: a profile names files that are read with the
/// caller's rights.
fn is_own(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    let trusted = metadata.uid() == 0 || metadata.uid() == user;
    Ok(metadata.is_file() && trusted && metadata.mode() & 0o022 == 0)
}
