//! A UFS device that defragments itself when it is asked to: Host Initiated Defrag (JESD220G;
//! Linux since 6.18, Documentation/ABI/testing/sysfs-driver-ufs).
//!
//! ```text
//! idle ──analyse──> analysis in progress ──> not required
//!                                        └─> required ──defragment──> in progress ──> completed
//! ```
//!
//! It is about all of the device, and changes no address and no data.

use crate::Device;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Sizes are in this unit (JESD220G, dHIDAvailableSize and dHIDSize).
const UNIT_BYTES: u64 = 4096;

/// A size that is not known, or that means all there is.
const NO_SIZE: u32 = u32::MAX;

/// Since the kernel that hides that number it says this instead.
const NOT_KNOWN: i32 = libc::ENODATA;

/// How far the device has come (bHIDState).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It knows nothing: analyse first.
    Idle,
    /// It looks how fragmented it is.
    Analysing,
    /// It is fragmented.
    Required,
    /// It defragments itself.
    Defragmenting,
    /// It has.
    Completed,
    /// It is not fragmented.
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

/// The attributes of such a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hid {
    directory: PathBuf,
}

impl Hid {
    /// Those of `device`; `None` if it has none, or if the kernel shows none.
    pub fn of(device: &Device) -> Option<Self> {
        let inside = |it: &&Path| it.file_name().is_some_and(|name| name != "devices");
        let above = device.directory.ancestors().take_while(inside);
        let mut found = above.map(|it| it.join("hid"));
        let directory = found.find(|it| it.join("defrag_trigger").exists())?;
        Some(Hid { directory })
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How far the device has come.
    ///
    /// # Errors
    /// What the system says; `InvalidData` for a state that is not known.
    pub fn state(&self) -> io::Result<State> {
        let text = self.read("state")?;
        State::named(&text).ok_or_else(|| invalid(&text))
    }

    /// Bytes of the device that are fragmented; `None` before it was analysed.
    ///
    /// # Errors
    /// What the system says.
    pub fn fragmented_bytes(&self) -> io::Result<Option<u64>> {
        match self.number("fragmented_size") {
            Ok(NO_SIZE) => Ok(None),
            Ok(units) => Ok(Some(u64::from(units) * UNIT_BYTES)),
            Err(error) if error.raw_os_error() == Some(NOT_KNOWN) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How much of what was asked for is done, in per cent.
    ///
    /// # Errors
    /// What the system says.
    pub fn progress_percent(&self) -> io::Result<u32> {
        self.number("progress_ratio")
    }

    /// Has it look how fragmented it is.
    ///
    /// # Errors
    /// What the system says.
    pub fn analyse(&self) -> io::Result<()> {
        self.write("analysis_trigger", "enable")
    }

    /// Has it defragment itself, so many bytes at most. The size is the device's to keep:
    /// returned is what it was, to be given to [`Hid::stop`].
    ///
    /// # Errors
    /// What the system says.
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

    /// Has it do nothing of it any more, at once, and puts back a size that was set.
    ///
    /// # Errors
    /// What the system says.
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

/// What `defrag_size` was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(u32);

fn invalid(text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("it says {text:?}, which is not known"),
    )
}
