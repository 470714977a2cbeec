//! An ext4 on the device, unmounted when dropped.

use crate::{Failure, Outcome, Stand};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system.
pub(crate) struct Volume {
    place: PathBuf,
}

/// What an ext4 is made and mounted with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Its size; the whole device without.
    pub(crate) mib: Option<u32>,
    /// Mount options besides those that keep background work away.
    pub(crate) options: &'static str,
    /// Without a journal metadata are written back like data.
    pub(crate) without_journal: bool,
}

impl Layout {
    pub(crate) const DEFAULT: Layout = Layout {
        mib: None,
        options: "",
        without_journal: false,
    };
}

impl Volume {
    /// Makes an ext4 with discards and mounts it.
    pub(crate) fn make(stand: &Stand) -> Outcome<Volume> {
        let layout = Layout {
            options: "discard",
            ..Layout::DEFAULT
        };
        Volume::with(stand, layout)
    }

    /// Makes an ext4 of this layout and mounts it.
    pub(crate) fn with(stand: &Stand, layout: Layout) -> Outcome<Volume> {
        format(&stand.device_node(), layout)?;
        Volume::mount(stand, layout)
    }

    /// Mounts what is there.
    pub(crate) fn mount(stand: &Stand, layout: Layout) -> Outcome<Volume> {
        let options = match layout.options {
            "" => "noinit_itable".to_owned(),
            more => format!("noinit_itable,{more}"),
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!("it cannot mount an ext4 with {options}: {error}"))
        };
        let data = CString::new(options.as_str()).map_err(|error| failed(&error))?;
        rustix::mount::mount(
            stand.device_node(),
            &stand.mount_point,
            "ext4",
            MountFlags::empty(),
            data.as_c_str(),
        )
        .map_err(|error| failed(&error))?;
        Ok(Volume {
            place: stand.mount_point.clone(),
        })
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.place
    }

    /// Writes all back and unmounts.
    pub(crate) fn unmount(self) -> Outcome<()> {
        let place = self.place.clone();
        std::mem::forget(self);
        rustix::mount::unmount(&place, UnmountFlags::empty())
            .map_err(|errno| Failure::io("unmount", &place)(errno.into()))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // On the way out of a failure, or after the device has gone: whoever
        // has a file open keeps it, and nobody can find it any more.
        let _ = rustix::mount::unmount(&self.place, UnmountFlags::DETACH);
    }
}

fn format(device: &Path, layout: Layout) -> Outcome<()> {
    let mut mke2fs = Command::new("/bin/mke2fs");
    mke2fs
        .args(["-q", "-F", "-t", "ext4", "-E"])
        .arg("lazy_itable_init=1,lazy_journal_init=1")
        .arg(device)
        .env("LD_LIBRARY_PATH", "/lib/x86_64-linux-gnu");
    if layout.without_journal {
        mke2fs.args(["-O", "^has_journal"]);
    }
    if let Some(mib) = layout.mib {
        mke2fs.arg(format!("{mib}M"));
    }
    let done = mke2fs
        .output()
        .map_err(Failure::io("run", Path::new("/bin/mke2fs")))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "mke2fs failed: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}
