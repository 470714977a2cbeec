//! The file systems of the kernel's own, and the end of the machine.

use super::Outcome;
use std::ffi::CString;
use std::io;

const FLAGS: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV;

/// Mounts what programs and the lab expect. An initramfs has none of it.
pub fn all() -> Outcome<()> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
        ("cgroup2", "/sys/fs/cgroup"),
    ] {
        let flags = if kind == "devtmpfs" {
            libc::MS_NOSUID
        } else {
            FLAGS
        };
        mount(kind, place, kind, flags, "")
            .map_err(|error| format!("it cannot mount {place}: {error}"))?;
    }
    Ok(())
}

/// `mount -t kind -o options source place`.
pub fn mount(
    source: &str,
    place: &str,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> io::Result<()> {
    let [source, place, kind, options] = [source, place, kind, options].map(CString::new);
    let (source, place, kind, options) = (source?, place?, kind?, options?);
    // SAFETY: all four are strings that live until the call returns.
    let status = unsafe {
        libc::mount(
            source.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Ends the machine.
pub fn power_off() -> ! {
    // SAFETY: takes no pointers; as pid 1 with all rights it does not return.
    unsafe { libc::reboot(libc::RB_POWER_OFF) };
    // The kernel panics when pid 1 ends, and that ends the machine too.
    std::process::exit(1)
}
