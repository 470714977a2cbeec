//! Check of the ext4 that a power cut left on a device.

use crate::Error;
use crate::files::{Files, Sum};
use crate::stream::{PAGE_BYTES, Stream};
use ext4_view::Ext4;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

/// Exit codes of e2fsck: no error, or errors that it repaired (the journal).
const CLEAN: i32 = 0;
const REPAIRED: i32 = 1;

/// Content of a device in memory, as a file that programs can open.
pub struct Image {
    file: File,
    /// Content of each page as a number of the stream's pages. None for pages that e2fsck may have
    /// written.
    known: Vec<Option<u64>>,
}

impl Image {
    /// An empty image.
    ///
    /// # Errors
    /// The system's error.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the name ends with a zero; the descriptor is new and nobody else's.
        unsafe {
            match libc::memfd_create(c"powercut".as_ptr(), libc::MFD_CLOEXEC) {
                -1 => Err(io::Error::last_os_error()),
                descriptor => Ok(Image {
                    file: File::from_raw_fd(descriptor),
                    known: Vec::new(),
                }),
            }
        }
    }

    /// Gives the image the device's content; `words` are numbers of the stream's pages.
    ///
    /// # Errors
    /// The system's error.
    pub fn fill(&mut self, stream: &Stream, words: &[u64]) -> io::Result<()> {
        self.known.resize(words.len(), None);
        self.file.set_len((words.len() * PAGE_BYTES) as u64)?;
        let mut page = [0; PAGE_BYTES];
        let mut at = 0;
        while at < words.len() {
            let empty = words[at..].iter().take_while(|word| **word == 0).count();
            if empty > 0 {
                self.empty(at, empty)?;
                at += empty;
                continue;
            }
            if self.known[at] != Some(words[at]) {
                let number = words[at] as u32;
                stream.fill(number, &mut page);
                self.file.write_all_at(&page, (at * PAGE_BYTES) as u64)?;
                // e2fsck writes only metadata, and so no page of this kind.
                self.known[at] = stream.is_content(number).then_some(words[at]);
            }
            at += 1;
        }
        Ok(())
    }

    fn empty(&mut self, at: usize, pages: usize) -> io::Result<()> {
        self.known[at..at + pages].fill(None);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (offset, bytes) = ((at * PAGE_BYTES) as u64, (pages * PAGE_BYTES) as u64);
        Ok(fallocate(&self.file, flags, offset, bytes)?)
    }

    /// Runs e2fsck as a boot does, which replays the journal, and then checks everything.
    ///
    /// # Errors
    /// [`Error::NoTool`], and [`Error::FileSystem`] for any damage.
    pub fn check(&self) -> Result<(), Error> {
        self.e2fsck(&["-p"], &[CLEAN, REPAIRED])?;
        self.e2fsck(&["-f", "-n"], &[CLEAN])
    }

    fn e2fsck(&self, options: &[&str], good: &[i32]) -> Result<(), Error> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        let done = Command::new("e2fsck")
            .args(options)
            .arg(format!(
                "/proc/{}/fd/{}",
                std::process::id(),
                self.file.as_raw_fd()
            ))
            // e2fsck is in sbin, which is not in every user's PATH.
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(Error::NoTool)?;
        if done.status.code().is_some_and(|code| good.contains(&code)) {
            return Ok(());
        }
        let said = [done.stdout, done.stderr].concat();
        let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
        Err(Error::FileSystem(format!(
            "e2fsck {} says: {said}",
            options.join(" ")
        )))
    }

    /// Reads each of the files with another implementation of ext4 than the kernel's.
    ///
    /// # Errors
    /// [`Error::FileSystem`] for a file with another content.
    pub fn holds(&self, files: &Files) -> Result<(), Error> {
        let failed = |error: ext4_view::Ext4Error| Error::FileSystem(error.to_string());
        let file = self.file.try_clone().map_err(Error::Memory)?;
        let ext4 = Ext4::load(Box::new(file)).map_err(failed)?;
        for (name, sum) in files {
            let path = format!("/{name}");
            let content = ext4
                .read(path.as_str())
                .map_err(|error| Error::FileSystem(format!("{path} cannot be read: {error}")))?;
            let found = Sum::of(&content);
            if found != *sum {
                return Err(Error::FileSystem(format!(
                    "{path} has {} bytes with CRC-32 {:08x} instead of {} with {:08x}",
                    found.bytes, found.crc32, sum.bytes, sum.crc32
                )));
            }
        }
        Ok(())
    }
}
