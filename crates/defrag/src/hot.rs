//! Which files are read often, as somebody saw them being read (dissertation §4.4).

use crate::{Finding, Survey};
use std::collections::HashMap;

/// A file, by the number of its file system's device (major, minor) and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// As stat(2) has it.
    pub device: (u32, u32),
    /// On that device.
    pub inode: u64,
}

/// Bytes that the device was seen to read of each file.
#[derive(Clone, Debug, Default)]
pub struct Hot {
    read_bytes: HashMap<Identity, u64>,
}

impl Hot {
    /// Of these files; what is not among them was not read.
    pub fn new(files: impl IntoIterator<Item = (Identity, u64)>) -> Self {
        let mut hot = Hot::default();
        for (file, bytes) in files {
            *hot.read_bytes.entry(file).or_default() += bytes;
        }
        hot
    }

    /// How often the file was read, whole reads and parts of one.
    fn times_read(&self, finding: &Finding) -> f64 {
        let bytes = self.read_bytes.get(&finding.identity).copied();
        bytes.unwrap_or(0) as f64 / finding.size_bytes.max(1) as f64
    }
}

impl Survey {
    /// Says of each file that was found how often it was read.
    pub fn heat(&mut self, hot: &Hot) {
        for finding in self.fragmented.iter_mut().chain(&mut self.unspread) {
            finding.times_read = Some(hot.times_read(finding));
        }
    }
}
