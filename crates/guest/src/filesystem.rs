//! The file system under test: made anew for each run.

use super::{Outcome, mount};
use record::GuestSpec;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Makes the whole device as it is before each run: with its past, or as if never written.
pub fn renew(spec: &GuestSpec, device: &Path) -> Outcome<()> {
    match &spec.flash_image {
        Some(image) => load(device, image)
            .map_err(|error| format!("it cannot load {image} into {}: {error}", device.display())),
        None => discard_all(device)
            .map_err(|error| format!("it cannot discard {}: {error}", device.display())),
    }
}

fn load(device: &Path, image: &str) -> io::Result<()> {
    let device = OpenOptions::new().write(true).open(device)?;
    sys::device::load_image(&device, &fs::read(image)?)
}

fn discard_all(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let bytes = file.seek(SeekFrom::End(0))?;
    sys::device::discard(&file, 0, bytes)
}

/// Makes an ext4 with Debian's defaults, which mke2fs has built in and uses where
/// there is no configuration file. Its identifiers come from the seed. The tables that mkfs
/// leaves for the kernel to zero stay as they are, so that nothing is written behind the
/// workload's back: nobody reads what the group descriptors say was never used. Nothing is
/// discarded: what an aged device holds is there beneath it, as on a phone that was set up anew.
pub fn make(device: &Path, seed: u64) -> Outcome<()> {
    let uuid = format!("00000000-0000-4000-8000-{seed:012x}");
    let output = Command::new("/bin/mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-U", &uuid, "-E"])
        .arg(format!(
            "nodiscard,lazy_itable_init=1,lazy_journal_init=1,hash_seed={uuid}"
        ))
        .arg(device)
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries)
        .output()
        .map_err(|error| format!("it has no mke2fs: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("mke2fs failed: {}", said.trim()))
}

/// Mounts it with `options` besides those that keep the kernel from zeroing
/// tables in the background.
pub fn mount(device: &Path, place: &Path, options: &[String]) -> Outcome<()> {
    let mut all = vec!["noinit_itable".to_owned()];
    all.extend_from_slice(options);
    let (device, place) = (device.display().to_string(), place.display().to_string());
    mount::mount(&device, &place, "ext4", 0, &all.join(","))
        .map_err(|error| format!("it cannot mount {device} with {}: {error}", all.join(",")))
}

/// Writes all back and unmounts.
pub fn unmount(place: &Path) -> Outcome<()> {
    let failed = |error: io::Error| format!("it cannot unmount {}: {error}", place.display());
    let path = CString::new(place.as_os_str().as_bytes()).map_err(|error| failed(error.into()))?;
    // SAFETY: the string lives until the call returns.
    match unsafe { libc::umount2(path.as_ptr(), 0) } {
        0 => Ok(()),
        _ => Err(failed(io::Error::last_os_error())),
    }
}
