//! A file system on the device, unmounted when dropped.

use crate::{Failure, Outcome, Stand};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system.
pub(crate) struct Volume {
    place: PathBuf,
}

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
}

impl Kind {
    /// As mount(2) has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
        }
    }
}

/// What a file system is made and mounted with; but for the kind, all of it is ext4's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) kind: Kind,
    /// Its size; the whole device without.
    pub(crate) mib: Option<u32>,
    /// Mount options besides those that keep background work away.
    pub(crate) options: &'static str,
    /// Without a journal metadata are written back like data.
    pub(crate) without_journal: bool,
}

impl Layout {
    pub(crate) const DEFAULT: Layout = Layout {
        kind: Kind::Ext4,
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

    /// Makes a file system of this layout and mounts it.
    pub(crate) fn with(stand: &Stand, layout: Layout) -> Outcome<Volume> {
        format(&stand.device_node(), layout)?;
        Volume::mount(stand, layout)
    }

    /// Mounts what is there.
    pub(crate) fn mount(stand: &Stand, layout: Layout) -> Outcome<Volume> {
        let kind = layout.kind.name();
        let options = match (layout.kind, layout.options) {
            (Kind::Xfs, _) => String::new(),
            (Kind::Ext4, "") => "noinit_itable".to_owned(),
            (Kind::Ext4, more) => format!("noinit_itable,{more}"),
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!("it cannot mount {kind} with '{options}': {error}"))
        };
        let data = CString::new(options.as_str()).map_err(|error| failed(&error))?;
        rustix::mount::mount(
            stand.device_node(),
            &stand.mount_point,
            kind,
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
    if layout.kind == Kind::Xfs {
        let mut mkfs = Command::new("/bin/mkfs.xfs");
        mkfs.args(["-q", "-f"])
            .arg(device)
            .env("LD_LIBRARY_PATH", arch::NATIVE.libraries);
        return succeeds(mkfs);
    }
    let mut mke2fs = Command::new("/bin/mke2fs");
    mke2fs
        .args(["-q", "-F", "-t", "ext4", "-E"])
        .arg("lazy_itable_init=1,lazy_journal_init=1")
        .arg(device)
        .env("LD_LIBRARY_PATH", arch::NATIVE.libraries);
    if layout.without_journal {
        mke2fs.args(["-O", "^has_journal"]);
    }
    if let Some(mib) = layout.mib {
        mke2fs.arg(format!("{mib}M"));
    }
    succeeds(mke2fs)
}

fn succeeds(mut mkfs: Command) -> Outcome<()> {
    let program = Path::new(mkfs.get_program()).to_owned();
    let done = mkfs.output().map_err(Failure::io("run", &program))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{} failed: {}",
            program.display(),
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
    }
}
