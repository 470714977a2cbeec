//! A user's command in a guest, and its output files.

use super::{MOUNT_POINT, Outcome};
use crate::outbox::{self, Item};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Directory whose files are sent to the host.
pub const OUT: &str = "/out";

/// Runs `command` where the device is mounted, and sends what it said and left.
/// A command that fails is told as such, with all it left.
pub fn run(command: &[String]) -> Outcome<()> {
    let out = Path::new(OUT);
    let failed = |error: io::Error| format!("it cannot use {OUT}: {error}");
    let stream = |name: &str| File::create(out.join(name)).map_err(failed);
    fs::create_dir_all(out).map_err(failed)?;
    let name = command.first().map(String::as_str).unwrap_or_default();
    let status = Command::new(name)
        .args(command.iter().skip(1))
        .current_dir(MOUNT_POINT)
        .env("PATH", "/bin")
        .env("HOME", "/tmp")
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries)
        .stdin(Stdio::null())
        .stdout(stream("stdout")?)
        .stderr(stream("stderr")?)
        .status()
        .map_err(|error| format!("it cannot run {name}: {error}"))?;
    let mut items = Vec::new();
    collect(out, out, &mut items).map_err(failed)?;
    items.sort();
    items.insert(0, ("status".to_owned(), said(status).into_bytes()));
    send_items(&items)
}

/// Sends files to the host through the outbox.
pub fn send_items(items: &[Item]) -> Outcome<()> {
    let outbox = outbox::pack(items)?;
    send(&outbox).map_err(|error| format!("it cannot send its files: {error}"))
}

fn said(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => code.to_string(),
        None => status.to_string(),
    }
}

fn collect(root: &Path, dir: &Path, items: &mut Vec<Item>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &entry.path(), items)?;
        } else if kind.is_file() {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap_or(&path);
            items.push((name.to_string_lossy().into_owned(), fs::read(&path)?));
        }
    }
    Ok(())
}

fn send(outbox: &[u8]) -> io::Result<()> {
    let device = shared_memory()?;
    // The memory of a PCI device responds only while the device is enabled.
    fs::write(device.join("enable"), "1")?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(device.join("resource2"))?;
    // SAFETY: a new mapping of a file that is as long as an outbox may be.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            outbox::BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is at least as long as the outbox, and nobody in the
    // guest reads it.
    unsafe {
        std::ptr::copy_nonoverlapping(outbox.as_ptr(), memory.cast(), outbox.len());
        libc::munmap(memory, outbox::BYTES);
    }
    Ok(())
}

fn shared_memory() -> io::Result<PathBuf> {
    let (vendor, device) = outbox::PCI_ID;
    for entry in fs::read_dir("/sys/bus/pci/devices")? {
        let path = entry?.path();
        let is = |file: &str, id: &str| {
            Ok::<_, io::Error>(fs::read_to_string(path.join(file))?.trim() == id)
        };
        if is("vendor", vendor)? && is("device", device)? {
            return Ok(path);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "the machine has no shared memory",
    ))
}
