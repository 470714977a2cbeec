//! A memory cgroup (cgroup v2) for a background load. The kernel limits its dirty pages apart from
//! those of others.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

/// A cgroup for a load.
pub(crate) struct MemoryCgroup {
    entrance: File,
    /// Path of a cgroup that was made here, which is removed on drop.
    made: Option<PathBuf>,
}

impl MemoryCgroup {
    /// Makes a cgroup with at most `limit_bytes` of memory. The io controller is enabled too, since
    /// writeback is divided by cgroup only with it.
    pub(crate) fn create(limit_bytes: u64) -> Result<Self, Error> {
        let root = mount_point()?;
        write(&root.join("cgroup.subtree_control"), "+memory +io")?;
        let path = root.join(format!("frontrow-load-{}", std::process::id()));
        fs::create_dir(&path).map_err(|source| Error::io("make", &path, source))?;
        let entrance = open(&path.join("cgroup.procs")).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        let limit = path.join("memory.max");
        let cgroup = MemoryCgroup {
            entrance,
            made: Some(path),
        };
        write(&limit, &limit_bytes.to_string())?;
        Ok(cgroup)
    }

    /// Uses an existing cgroup.
    pub(crate) fn existing(path: &Path) -> Result<Self, Error> {
        Ok(MemoryCgroup {
            entrance: open(&path.join("cgroup.procs"))?,
            made: None,
        })
    }

    /// Runs `act` with this process in the cgroup, which is charged for the files made then.
    pub(crate) fn inside<T>(&self, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let home = own_entrance()?;
        let moved = (&self.entrance).write_all(b"0");
        moved.map_err(|source| unusable(Path::new("cgroup.procs"), &source))?;
        let done = act();
        write(&home, "0")?;
        done
    }

    /// Descriptor of `cgroup.procs`: a process that writes `0` to it moves into the cgroup.
    pub(crate) fn entrance(&self) -> RawFd {
        self.entrance.as_raw_fd()
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        // The cgroup is empty: its only process was waited for. An empty cgroup does no harm, so a
        // failure is ignored.
        if let Some(path) = &self.made {
            let _ = fs::remove_dir(path);
        }
    }
}

/// `cgroup.procs` of this process's cgroup, from the line `0::PATH` of the unified hierarchy
/// (cgroups(7)).
fn own_entrance() -> Result<PathBuf, Error> {
    let own = Path::new("/proc/self/cgroup");
    let text = fs::read_to_string(own).map_err(|source| Error::io("read", own, source))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let path = path.ok_or_else(|| Error::Interface {
        path: own.to_owned(),
        reason: "this process is in no cgroup of version 2".to_owned(),
    })?;
    Ok(mount_point()?.join(path).join("cgroup.procs"))
}

fn mount_point() -> Result<PathBuf, Error> {
    let missing = |reason: String| Error::Interface {
        path: PathBuf::from("/proc/self/mountinfo"),
        reason,
    };
    let found = sys::device::cgroup_root(Path::new("/"));
    found
        .map_err(|error| missing(error.to_string()))?
        .ok_or_else(|| {
            missing("no cgroup v2 hierarchy is mounted; choose a load without -memcg".to_owned())
        })
}

fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .map_err(|source| unusable(path, &source))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| unusable(path, &source))
}

fn unusable(path: &Path, source: &io::Error) -> Error {
    Error::Interface {
        path: path.to_owned(),
        reason: format!(
            "a load in its own memory cgroup needs root and the memory and io controllers \
             on cgroup v2 ({source}); choose a load without -memcg"
        ),
    }
}
