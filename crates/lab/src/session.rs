//! A guest from start to end, on the host's side.

use crate::Error;
use crate::cache::Cache;
use crate::emulator::{self, Emulator};
use crate::error::GuestFailure;
use crate::host_cpu::HostCpu;
use crate::kept::{Everything, Keep};
use crate::kernel::Kernel;
use crate::messages::Messages;
use crate::qemu::{Clock, Console, Guest, Machine};
use guest::console;
use guest::outbox::{self, Item};
use record::{GuestSpec, Row};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Interval at which a guest's messages are read.
const POLL: Duration = Duration::from_millis(50);

/// Limit of host seconds for each second of guest time, beyond which the guest counts as stuck. A
/// busy guest needs about five on an idle host; waiting costs nothing.
const HOST_SECONDS_PER_VIRTUAL: u64 = 15;
const HOST_SECONDS_TO_BOOT: u64 = 300;

/// As much of the console log as an error shows.
const SHOWN_LINES: usize = 40;

/// Decisions of a session's owner while the guest runs.
pub trait Owner {
    /// Run `index` of `count` begins.
    fn progress(&self, index: usize, count: usize, text: &str);
    /// Whether the guest is no longer wanted.
    fn is_over(&self) -> bool;
}

/// A bare stop flag is an `Owner` that ignores progress.
impl Owner for AtomicBool {
    fn progress(&self, _index: usize, _count: usize, _text: &str) {}

    fn is_over(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// A guest and its files on the host.
pub struct Session<'a> {
    cache: &'a Cache,
    spec: &'a GuestSpec,
    owner: &'a dyn Owner,
    initramfs: PathBuf,
    console: PathBuf,
    messages: PathBuf,
    complaints: PathBuf,
    outbox: PathBuf,
    /// QEMU that has the disks; None for the host's own.
    emulator: Option<Emulator>,
    disks: Vec<(&'static torture::Disk, PathBuf)>,
    keep: Option<&'a Keep<'a>>,
    files: TempDir,
}

impl<'a> Session<'a> {
    /// Prepares the files of a guest that is to boot `initramfs`.
    pub fn new(
        cache: &'a Cache,
        spec: &'a GuestSpec,
        owner: &'a dyn Owner,
        initramfs: &[u8],
    ) -> Result<Session<'a>, Error> {
        let files = tempfile::Builder::new()
            .prefix("frontrow-guest-")
            .tempdir()
            .map_err(Error::file(std::env::temp_dir()))?;
        let path = |name| files.path().join(name);
        let session = Session {
            cache,
            spec,
            owner,
            initramfs: path("initramfs"),
            console: path("console"),
            messages: path("messages"),
            complaints: path("qemu"),
            outbox: path("outbox"),
            emulator: None,
            disks: Vec::new(),
            keep: None,
            files,
        };
        fs::write(&session.initramfs, initramfs).map_err(Error::file(&session.initramfs))?;
        for path in [&session.console, &session.messages] {
            File::create(path).map_err(Error::file(path))?;
        }
        Ok(session)
    }

    /// Attaches empty disks to the guest.
    pub fn attach(&mut self, disks: &'static [torture::Disk]) -> Result<(), Error> {
        for disk in disks {
            let path = self.files.path().join(format!("disk-{}", self.disks.len()));
            let file = File::create(&path).map_err(Error::file(&path))?;
            file.set_len(disk.mib << 20).map_err(Error::file(&path))?;
            self.disks.push((disk, path));
        }
        Ok(())
    }

    /// Runs the guest on `emulator` instead of the host's own QEMU.
    pub fn run_on(&mut self, emulator: Emulator) {
        self.emulator = Some(emulator);
    }

    /// Keeps what the guest leaves if its time is exact, or takes what the same guest left before.
    pub fn keep(&mut self, keep: Option<&'a Keep<'a>>) {
        self.keep = keep;
    }

    /// Boots `kernel` and returns all of the guest's rows, or an error.
    pub fn run(&self, kernel: &Kernel, memory_mib: u64, clock: Clock) -> Result<Vec<Row>, Error> {
        self.boot(kernel, memory_mib, clock, None)
    }

    /// Boots `kernel` and returns the files in the outbox: the first one, and all others.
    pub fn run_for_outbox(
        &self,
        kernel: &Kernel,
        memory_mib: u64,
        clock: Clock,
    ) -> Result<(Item, Vec<Item>), Error> {
        self.boot(kernel, memory_mib, clock, Some(&self.outbox))?;
        let memory = read_sparse(&self.outbox).map_err(Error::file(&self.outbox))?;
        let mut items = outbox::unpack(&memory).unwrap_or_default().into_iter();
        let first = items.next();
        let first = first.ok_or_else(|| self.failure("its files did not arrive".to_owned(), ""))?;
        Ok((first, items.collect()))
    }

    fn boot(
        &self,
        kernel: &Kernel,
        memory_mib: u64,
        clock: Clock,
        outbox: Option<&Path>,
    ) -> Result<Vec<Row>, Error> {
        let disks = self
            .disks
            .iter()
            .map(|(disk, path)| (*disk, path.as_path()));
        let disks: Vec<_> = disks.collect();
        let of_host = Emulator::of_host(kernel.tree.arch);
        let machine = Machine {
            emulator: self.emulator.as_ref().unwrap_or(&of_host),
            kernel,
            initramfs: &self.initramfs,
            memory_mib,
            seed: self.spec.seed,
            clock,
            console: Console::Files {
                log: &self.console,
                messages: &self.messages,
            },
            outbox,
            disks: &disks,
            host_cpu: None,
        };
        match self.keep {
            Some(keep) if machine.is_exact() => self.boot_or_recall(&machine, keep),
            _ => self.boot_anew(&machine),
        }
    }

    fn boot_anew(&self, machine: &Machine) -> Result<Vec<Row>, Error> {
        let complaints = File::create(&self.complaints).map_err(Error::file(&self.complaints))?;
        let cpu = match machine.clock {
            Clock::Instructions => HostCpu::free(self.cache)?,
            Clock::Host { .. } | Clock::HostInTurn { .. } => None,
        };
        let machine = Machine {
            host_cpu: cpu.as_ref().map(HostCpu::set),
            ..*machine
        };
        let mut guest = Guest::start(&machine, complaints)?;
        let said = self.attend(&mut guest)?;
        drop(guest);
        let log = text_of(&self.console)?;
        verdict(said, &log).map_err(|reason| self.failure(reason, &log))
    }

    fn boot_or_recall(&self, machine: &Machine, keep: &Keep) -> Result<Vec<Row>, Error> {
        let read = |path: &Path| fs::read(path).map_err(Error::file(path));
        let version = emulator::version(machine.kernel.tree.arch)?;
        let everything = Everything {
            initramfs: &read(&self.initramfs)?,
            kernel: &read(&machine.kernel.image)?,
            machine: &format!("{version}\n{}", machine.without_paths()),
        };
        let left = [&self.messages, &self.outbox];
        let (place, rows) = keep.guest(&everything, |directory| {
            let rows = self.boot_anew(machine)?;
            for path in left.into_iter().filter(|it| it.exists()) {
                copy_sparse(path, &directory.join(path.file_name().unwrap_or_default()))?;
            }
            Ok(rows)
        })?;
        if let Some(rows) = rows {
            return Ok(rows);
        }
        for path in left {
            let kept = place.join(path.file_name().unwrap_or_default());
            if kept.exists() {
                fs::copy(&kept, path).map_err(Error::file(path))?;
            }
        }
        let mut messages = Messages::open(&self.messages).map_err(Error::file(&self.messages))?;
        let read = messages.read(&mut |index, count, text| self.owner.progress(index, count, text));
        let said = read.and_then(|()| messages.finish());
        said.map_err(|reason| self.failure(reason, ""))
    }

    /// Listens until the guest has ended or has to be ended. The inner error is
    /// a sentence about the guest.
    fn attend(&self, guest: &mut Guest) -> Result<Result<Vec<Row>, String>, Error> {
        let mut messages = Messages::open(&self.messages).map_err(Error::file(&self.messages))?;
        let limit_s = HOST_SECONDS_TO_BOOT + HOST_SECONDS_PER_VIRTUAL * self.spec.limit_virtual_s;
        let begun = Instant::now();
        loop {
            // Asked before reading: what a guest says last is there when it has ended.
            let ended = guest.ended().map_err(Error::file(&self.complaints))?;
            let read =
                messages.read(&mut |index, count, text| self.owner.progress(index, count, text));
            if let Err(reason) = read {
                return Ok(Err(reason));
            }
            if let Some(status) = ended {
                return match status.success() {
                    true => Ok(messages.finish()),
                    false => self.complaint(status).map(Err),
                };
            }
            if self.owner.is_over() {
                return Err(Error::Interrupted);
            }
            if begun.elapsed() > Duration::from_secs(limit_s) {
                return Ok(Err(format!(
                    "it was still running after {limit_s} s on the host"
                )));
            }
            thread::sleep(POLL);
        }
    }

    fn complaint(&self, status: ExitStatus) -> Result<String, Error> {
        let text = text_of(&self.complaints)?;
        Ok(format!("QEMU failed ({status}): {}", text.trim()))
    }

    fn failure(&self, reason: String, log: &str) -> Error {
        Error::Guest(Box::new(GuestFailure {
            experiment: self.spec.experiment.clone(),
            policy: self.spec.policy.to_string(),
            seed: self.spec.seed,
            reason,
            console: console::excerpt(log, SHOWN_LINES),
        }))
    }
}

/// A problem in the log is the reason, whatever the guest said: most others are
/// its consequences.
fn verdict(said: Result<Vec<Row>, String>, log: &str) -> Result<Vec<Row>, String> {
    match console::problem(log) {
        Some((meaning, line)) => Err(format!("{meaning}: {line}")),
        None => said,
    }
}

/// The file's content. Skips holes; an outbox is mostly holes.
fn read_sparse(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut content = vec![0; file.metadata()?.len() as usize];
    let mut end = 0;
    loop {
        let start = match rustix::fs::seek(&file, SeekFrom::Data(end)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(content),
            Err(error) => return Err(error.into()),
        };
        end = rustix::fs::seek(&file, SeekFrom::Hole(start))?;
        file.read_exact_at(&mut content[start as usize..end as usize], start)?;
    }
}

/// Copies a file that is mostly holes, up to the end of what is in it.
fn copy_sparse(from: &Path, to: &Path) -> Result<(), Error> {
    let mut content = read_sparse(from).map_err(Error::file(from))?;
    let end = content
        .iter()
        .rposition(|it| *it != 0)
        .map_or(0, |it| it + 1);
    content.truncate(end);
    fs::write(to, content).map_err(Error::file(to))
}

fn text_of(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(Error::file(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_holes_is_read_as_any_other() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(read_sparse(file.path()).unwrap().is_empty());
        file.as_file().set_len(10 << 20).unwrap();
        file.as_file().write_all_at(b"first", 0).unwrap();
        file.as_file().write_all_at(b"last", 7 << 20).unwrap();
        let content = read_sparse(file.path()).unwrap();
        assert!(content == fs::read(file.path()).unwrap());
    }

    #[test]
    fn figures_of_a_kernel_with_a_problem_are_no_result() {
        let log = "[ 1.0] WARNING: CPU: 0 PID: 1 at fs/ext4/inode.c:1 f+0x1/0x2\n";
        assert!(
            verdict(Ok(Vec::new()), log)
                .unwrap_err()
                .contains("WARNING")
        );
        assert!(
            verdict(Err("cut short".to_owned()), log)
                .unwrap_err()
                .contains("WARNING")
        );
        assert_eq!(verdict(Ok(Vec::new()), "[ 1.0] fine\n"), Ok(Vec::new()));
    }
}
