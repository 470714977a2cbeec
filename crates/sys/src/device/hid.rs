//! Host Initiated Defrag: a UFS device that defragments itself on request (JESD220G; Linux since
//! 6.18, Documentation/ABI/testing/sysfs-driver-ufs).
//!
//! ```text
//! idle ──analyse──> analysis in progress ──> not required
//!                                        └─> required ──defragment──> in progress ──> completed
//! ```
//!
//! It covers the whole device, and changes neither addresses nor data.

use crate::device::Device;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Unit of sizes (JESD220G, dHIDAvailableSize and dHIDSize), in bytes.
const UNIT_BYTES: u64 = 4096;

/// Size that is not known, or that stands for the whole device.
const NO_SIZE: u32 = u32::MAX;

/// Error of newer kernels instead of `NO_SIZE`.
const NOT_KNOWN: i32 = libc::ENODATA;

/// State of the device's defragmentation (bHIDState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The device was not analysed.
    Idle,
    /// The device analyses its fragmentation.
    Analysing,
    /// The device is fragmented.
    Required,
    /// The device defragments itself.
    Defragmenting,
    /// The defragmentation has ended.
    Completed,
    /// The device is not fragmented.
    NotRequired,
}

impl State {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "idle" => State::Idle,
            "analysis_in_progress" => State::Analysing,
            "defrag_required" => State::Required,
            "defrag_in_progress" => State::Defragmenting,
            "defrag_completed" => State::Completed,
            "defrag_not_required" => State::NotRequired,
            _ => return None,
        })
    }
}

/// The `hid` attributes of a UFS device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hid {
    directory: PathBuf,
}

impl Hid {
    /// The attributes of `device`; `None` if it or the kernel has none.
    pub fn of(device: &Device) -> Option<Self> {
        let inside = |it: &&Path| it.file_name().is_some_and(|name| name != "devices");
        let above = device.directory.ancestors().take_while(inside);
        let mut found = above.map(|it| it.join("hid"));
        let directory = found.find(|it| it.join("defrag_trigger").exists())?;
        Some(Hid { directory })
    }

    /// Directory of the attributes in sysfs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// State of the device.
    ///
    /// # Errors
    /// The system's error; `InvalidData` for an unknown state.
    pub fn state(&self) -> io::Result<State> {
        let text = self.read("state")?;
        State::named(&text).ok_or_else(|| invalid(&text))
    }

    /// Fragmented bytes of the device; `None` before an analysis.
    ///
    /// # Errors
    /// The system's error.
    pub fn fragmented_bytes(&self) -> io::Result<Option<u64>> {
        match self.number("fragmented_size") {
            Ok(NO_SIZE) => Ok(None),
            Ok(units) => Ok(Some(u64::from(units) * UNIT_BYTES)),
            Err(error) if error.raw_os_error() == Some(NOT_KNOWN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Completed part of the requested defragmentation, in per cent.
    ///
    /// # Errors
    /// The system's error.
    pub fn progress_percent(&self) -> io::Result<u32> {
        self.number("progress_ratio")
    }

    /// Starts an analysis of the fragmentation.
    ///
    /// # Errors
    /// The system's error.
    pub fn analyse(&self) -> io::Result<()> {
        self.write("analysis_trigger", "enable")
    }

    /// Starts a defragmentation of at most `most_bytes`, or of all for None. The device keeps the
    /// size, so the previous one is returned for [`Hid::stop`].
    ///
    /// # Errors
    /// The system's error.
    pub fn defragment(&self, most_bytes: Option<u64>) -> io::Result<Size> {
        let before = Size(self.number("defrag_size")?);
        let units = most_bytes.map_or(NO_SIZE, |it| {
            u32::try_from(it / UNIT_BYTES).unwrap_or(NO_SIZE)
        });
        self.write("defrag_size", &units.to_string())?;
        match self.write("defrag_trigger", "enable") {
            Ok(()) => Ok(before),
            Err(error) => self.restore(before).and(Err(error)),
        }
    }

    /// Stops the defragmentation at once, and restores a size that was set.
    ///
    /// # Errors
    /// The system's error.
    pub fn stop(&self, size: Option<Size>) -> io::Result<()> {
        let stopped = self.write("defrag_trigger", "disable");
        stopped.and(size.map_or(Ok(()), |it| self.restore(it)))
    }

    fn restore(&self, size: Size) -> io::Result<()> {
        self.write("defrag_size", &size.0.to_string())
    }

    fn read(&self, attribute: &str) -> io::Result<String> {
        let text = fs::read_to_string(self.directory.join(attribute))?;
        Ok(text.trim().to_owned())
    }

    fn number(&self, attribute: &str) -> io::Result<u32> {
        let text = self.read(attribute)?;
        text.parse().map_err(|_| invalid(&text))
    }

    fn write(&self, attribute: &str, value: &str) -> io::Result<()> {
        fs::write(self.directory.join(attribute), value)
    }
}

/// Value of `defrag_size` before a defragmentation was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u32);

fn invalid(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it says {text:?}, which is not known"),
    )
}
