//! Files that are read often, as measured before (dissertation §4.4).

use crate::defrag::{Finding, Survey};
use std::collections::HashMap;

/// Identity of a file: the device number of its file system, and its inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Major and minor number of the device, from stat(2).
    pub device: (u32, u32),
    /// Inode number in the file system.
    pub inode: u64,
}

/// Bytes that the device read of each file.
#[derive(Clone, Debug, Default)]
pub struct Hot {
    read_bytes: HashMap<Identity, u64>,
}

impl Hot {
    /// Takes the bytes read of each file; other files were not read.
    pub fn new(files: impl IntoIterator<Item = (Identity, u64)>) -> Self {
        let mut hot = Hot::default();
        for (file, bytes) in files {
            *hot.read_bytes.entry(file).or_default() += bytes;
        }
        hot
    }

    /// How often the file was read: bytes read over its size.
    fn times_read(&self, finding: &Finding) -> f64 {
        let bytes = self.read_bytes.get(&finding.identity).copied();
        bytes.unwrap_or(0) as f64 / finding.size_bytes.max(1) as f64
    }
}

impl Survey {
    /// Sets how often each file of the survey was read.
    pub fn heat(&mut self, hot: &Hot) {
        for finding in self.fragmented.iter_mut().chain(&mut self.unspread) {
            finding.times_read = Some(hot.times_read(finding));
        }
    }
}
