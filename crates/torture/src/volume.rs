//! A file system on the device, which is unmounted on drop.

use crate::test_bed::read;
use crate::{Failure, Outcome, TestBed};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system.
pub(crate) struct Volume {
    place: PathBuf,
}

/// Mount options with which ext4 neither reads nor writes by itself (`fs/ext4/super.c`).
const QUIET: &str = "noinit_itable,no_prefetch_block_bitmaps";

/// Type of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    F2fs,
    Btrfs,
}

impl Kind {
    /// Name of the type as mount(2) takes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::F2fs => "f2fs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// Whether the kernel has it.
    pub(crate) fn is_known(self) -> Outcome<bool> {
        let all = read("/proc/filesystems")?;
        Ok(all.split_whitespace().any(|it| it == self.name()))
    }

    /// Whether a trial fails where frontrow is slower on it than another scheduler. On the others it
    /// may be (docs/results/drivers.md).
    pub(crate) fn is_promised(self) -> bool {
        matches!(self, Kind::Ext4 | Kind::Xfs)
    }

    /// Program and options that make one without discarding; None for ext4, whose options depend on
    /// the layout.
    fn mkfs(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Kind::Ext4 => None,
            Kind::Xfs => Some(("/bin/mkfs.xfs", &["-q", "-f", "-K"])),
            Kind::F2fs => Some(("/bin/mkfs.f2fs", &["-q", "-f", "-t", "0"])),
            Kind::Btrfs => Some(("/bin/mkfs.btrfs", &["-q", "-f", "-K"])),
        }
    }
}

/// Options of mkfs and mount; all but the type are for ext4 only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) kind: Kind,
    /// Size in MiB; None for the whole device.
    pub(crate) mib: Option<u32>,
    /// Mount options, added to those that prevent background work.
    pub(crate) options: &'static str,
    /// Makes it without a journal, so that metadata are written back like data.
    pub(crate) without_journal: bool,
    /// Leaves what was on the device before: an emulated card takes a minute to discard it.
    pub(crate) without_discard: bool,
}

impl Layout {
    pub(crate) const DEFAULT: Layout = Layout {
        kind: Kind::Ext4,
        mib: None,
        options: "",
        without_journal: false,
        without_discard: false,
    };

    /// For a disk of QEMU.
    pub(crate) const fn on_disk(kind: Kind) -> Layout {
        Layout {
            kind,
            without_discard: true,
            ..Layout::DEFAULT
        }
    }
}

impl Volume {
    /// Makes an ext4 with discards and mounts it.
    pub(crate) fn make(bed: &TestBed) -> Outcome<Volume> {
        let layout = Layout {
            options: "discard",
            ..Layout::DEFAULT
        };
        Volume::with(bed, layout)
    }

    /// Makes a file system of this layout and mounts it.
    pub(crate) fn with(bed: &TestBed, layout: Layout) -> Outcome<Volume> {
        format(&bed.device_node(), layout)?;
        Volume::mount(bed, layout)
    }

    /// Mounts the file system on the device.
    pub(crate) fn mount(bed: &TestBed, layout: Layout) -> Outcome<Volume> {
        let kind = layout.kind.name();
        let options = match (layout.kind, layout.options) {
            (Kind::Ext4, "") => QUIET.to_owned(),
            (Kind::Ext4, more) => format!("{QUIET},{more}"),
            _ => String::new(),
        };
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(format!("it cannot mount {kind} with '{options}': {error}"))
        };
        let data = CString::new(options.as_str()).map_err(|error| failed(&error))?;
        rustix::mount::mount(
            bed.device_node(),
            &bed.mount_point,
            kind,
            MountFlags::empty(),
            data.as_c_str(),
        )
        .map_err(|error| failed(&error))?;
        Ok(Volume {
            place: bed.mount_point.clone(),
        })
    }

    /// Mount point of the file system.
    pub(crate) fn path(&self) -> &Path {
        &self.place
    }

    /// Unmounts the file system, which writes everything back.
    pub(crate) fn unmount(self) -> Outcome<()> {
        let place = self.place.clone();
        std::mem::forget(self);
        rustix::mount::unmount(&place, UnmountFlags::empty())
            .map_err(|errno| Failure::io("unmount", &place)(errno.into()))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // The drop follows a failure or the removal of the device. Open files stay open, but the
        // mount disappears.
        let _ = rustix::mount::unmount(&self.place, UnmountFlags::DETACH);
    }
}

fn format(device: &Path, layout: Layout) -> Outcome<()> {
    if let Some((program, options)) = layout.kind.mkfs() {
        let mut mkfs = Command::new(program);
        mkfs.args(options)
            .arg(device)
            .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries);
        return succeeds(mkfs);
    }
    let mut mke2fs = Command::new("/bin/mke2fs");
    mke2fs
        .args(["-q", "-F", "-t", "ext4", "-E"])
        .arg(match layout.without_discard {
            true => "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
            false => "lazy_itable_init=1,lazy_journal_init=1",
        })
        .arg(device)
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries);
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
