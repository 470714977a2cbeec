//! Files that must not be moved stay unchanged, and the reason is given.

use super::{NEVER, fragmented, holds, layout, sync};
use crate::failure::require;
use crate::{Failure, Outcome, TestBed};
use ::layout::defrag::{Pace, Refusal, repair};
use rustix::fs::IFlags;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const BLOCK: usize = 4096;

pub(super) fn run(bed: &TestBed, directory: &Path) -> Outcome<()> {
    // The file is fragmented, so that there is a reason to move it.
    let (path, bytes) = fragmented(directory, bed.seed + 2)?.swap_remove(0);
    let stays = |expected: Refusal| stays(&path, &bytes, &expected);
    for (flag, refusal) in [
        (IFlags::IMMUTABLE, Refusal::Immutable),
        (IFlags::APPEND, Refusal::AppendOnly),
    ] {
        let file = File::open(&path).map_err(Failure::io("open", &path))?;
        let flags = rustix::fs::ioctl_getflags(&file).map_err(errno("ask for flags of", &path))?;
        let set = |flags| rustix::fs::ioctl_setflags(&file, flags);
        set(flags | flag).map_err(errno("set flags of", &path))?;
        stays(refusal)?;
        set(flags).map_err(errno("set flags of", &path))?;
    }
    leased(&path, &stays)?;
    full(directory, &stays)?;
    read_only(bed, directory, &stays)?;
    link(directory, &path)?;
    executed(directory)?;
    swapped_on(directory)
}

fn errno(action: &str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> Failure + use<> {
    let failure = Failure::io(action, path);
    move |errno| failure(errno.into())
}

fn stays(path: &Path, bytes: &[u8], expected: &Refusal) -> Outcome<()> {
    let before = layout(path)?;
    match repair(Path::new("/"), path, None, &mut Pace::new(None), &NEVER) {
        Err(refusal) if refusal == *expected => {}
        other => {
            return Err(Failure::new(format!(
                "{} was to be refused as '{expected}', and it said {other:?}",
                path.display()
            )));
        }
    }
    require(layout(path)? == before, || {
        format!("{} was moved, although '{expected}'", path.display())
    })?;
    holds(path, bytes)
}

fn leased(path: &Path, stays: &dyn Fn(Refusal) -> Outcome<()>) -> Outcome<()> {
    let file = File::open(path).map_err(Failure::io("open", path))?;
    let lease = |kind: libc::c_int| {
        // SAFETY: takes numbers and an open file.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) } {
            0 => Ok(()),
            _ => Err(Failure::io("lease", path)(std::io::Error::last_os_error())),
        }
    };
    lease(libc::F_RDLCK)?;
    stays(Refusal::Lease)?;
    lease(libc::F_UNLCK)
}

fn full(directory: &Path, stays: &dyn Fn(Refusal) -> Outcome<()>) -> Outcome<()> {
    let path = directory.join("all-the-rest");
    let mut file = File::create(&path).map_err(Failure::io("make", &path))?;
    loop {
        match file
            .write_all(&[3; 64 << 10])
            .and_then(|()| file.sync_data())
        {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => break,
            Err(error) => return Err(Failure::io("fill", &path)(error)),
        }
    }
    while file
        .write_all(&[3; BLOCK])
        .and_then(|()| file.sync_data())
        .is_ok()
    {}
    stays(Refusal::NoSpace)?;
    fs::remove_file(&path).map_err(Failure::io("remove", &path))?;
    drop(file);
    sync(directory)
}

fn read_only(
    bed: &TestBed,
    directory: &Path,
    stays: &dyn Fn(Refusal) -> Outcome<()>,
) -> Outcome<()> {
    sync(directory)?;
    remount(bed, libc::MS_RDONLY)?;
    stays(Refusal::ReadOnly)?;
    remount(bed, 0)
}

fn remount(bed: &TestBed, flags: libc::c_ulong) -> Outcome<()> {
    let place = CString::new(bed.mount_point.as_os_str().as_encoded_bytes())
        .map_err(|error| Failure::new(error.to_string()))?;
    // SAFETY: the place is a string that ends with a zero; the others may be null.
    let outcome = unsafe {
        libc::mount(
            std::ptr::null(),
            place.as_ptr(),
            std::ptr::null(),
            libc::MS_REMOUNT | flags,
            std::ptr::null(),
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(Failure::io("remount", &bed.mount_point)(
            std::io::Error::last_os_error(),
        )),
    }
}

/// A symbolic link is not followed: its target was not named.
fn link(directory: &Path, path: &Path) -> Outcome<()> {
    let link = directory.join("link");
    std::os::unix::fs::symlink(path, &link).map_err(Failure::io("make", &link))?;
    match repair(Path::new("/"), &link, None, &mut Pace::new(None), &NEVER) {
        Err(Refusal::NotRegular) => Ok(()),
        other => Err(Failure::new(format!("a link was followed: {other:?}"))),
    }
}

/// A program that has just started is refused, or moved if the kernel allows writes to running
/// programs (6.11 and 6.12). In both cases it runs to its end.
fn executed(directory: &Path) -> Outcome<()> {
    const PROGRAM: &str = "/bin/mke2fs";
    let path = directory.join("program");
    let bytes = fs::read(PROGRAM).map_err(Failure::io("read", Path::new(PROGRAM)))?;
    fs::write(&path, &bytes).map_err(Failure::io("write", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .map_err(Failure::io("make executable", &path))?;
    sync(directory)?;
    let mut command = Command::new(&path);
    command
        .arg("-V")
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries)
        .stderr(std::process::Stdio::null());
    let stopped_at_its_beginning = || {
        // SAFETY: has no arguments but the request.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec it makes one system call and nothing else.
    unsafe { command.pre_exec(stopped_at_its_beginning) };
    let mut child = command.spawn().map_err(Failure::io("run", &path))?;
    let outcome = repair(Path::new("/"), &path, None, &mut Pace::new(None), &NEVER);
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let process = child.id() as libc::pid_t;
    let mut status = 0;
    // SAFETY: our own child: it is waited for until it has stopped, and let go.
    unsafe {
        libc::waitpid(process, &mut status, libc::__WALL);
        libc::ptrace(libc::PTRACE_DETACH, process, nothing, nothing);
    }
    let ended = child.wait().map_err(Failure::io("wait for", &path))?;
    require(ended.success(), || {
        format!("a program that was being moved ended with {ended}, after {outcome:?}")
    })?;
    holds(&path, &bytes)?;
    match outcome {
        Ok(_) | Err(Refusal::Executing | Refusal::NoBetterPlace) => Ok(()),
        Err(other) => Err(Failure::new(format!("a running program: {other:?}"))),
    }
}

/// Makes a swap file with a header of one page (`union swap_header` in include/linux/swap.h).
fn swapped_on(directory: &Path) -> Outcome<()> {
    let path = directory.join("swap");
    let mut bytes = vec![0; BLOCK * 64];
    bytes[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    bytes[1028..1032].copy_from_slice(&63u32.to_ne_bytes());
    bytes[BLOCK - 10..BLOCK].copy_from_slice(b"SWAPSPACE2");
    fs::write(&path, &bytes).map_err(Failure::io("write", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
        .map_err(Failure::io("protect", &path))?;
    sync(directory)?;
    let name = CString::new(path.as_os_str().as_encoded_bytes())
        .map_err(|error| Failure::new(error.to_string()))?;
    // SAFETY: the name is a string that ends with a zero.
    if unsafe { libc::swapon(name.as_ptr(), 0) } != 0 {
        return Err(Failure::io("swap to", &path)(
            std::io::Error::last_os_error(),
        ));
    }
    let outcome = repair(Path::new("/"), &path, None, &mut Pace::new(None), &NEVER);
    // SAFETY: as above.
    if unsafe { libc::swapoff(name.as_ptr()) } != 0 {
        return Err(Failure::io("take swap off", &path)(
            std::io::Error::last_os_error(),
        ));
    }
    match outcome {
        Err(Refusal::Swap) => Ok(()),
        other => Err(Failure::new(format!("swap was not refused: {other:?}"))),
    }
}
