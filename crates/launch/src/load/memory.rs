//! Check that loading does not use up memory.

use std::fs;
use std::io;
use sys::memory::entry_bytes;

/// Loading stops when less than one part in this many of memory is available (`MemAvailable`). At
/// about this point the kernel begins to reclaim memory in use.
const SPARE: u64 = 16;

/// Bytes to load between two checks.
const STEP_BYTES: u64 = 4 << 20;

/// Checks `/proc/meminfo` at intervals.
#[derive(Default)]
pub struct Watch {
    unwatched_bytes: u64,
}

impl Watch {
    /// Whether loading should stop; the caller loads `bytes` next.
    pub fn is_short(&mut self, bytes: u64) -> io::Result<bool> {
        self.unwatched_bytes += bytes;
        if self.unwatched_bytes < STEP_BYTES {
            return Ok(false);
        }
        self.unwatched_bytes = 0;
        is_short(&fs::read_to_string("/proc/meminfo")?)
    }
}

fn is_short(text: &str) -> io::Result<bool> {
    Ok(entry_bytes(text, "MemAvailable")? < entry_bytes(text, "MemTotal")? / SPARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_when_little_is_available() {
        let text = |kib| format!("MemTotal: 1600 kB\nMemFree: 7 kB\nMemAvailable: {kib} kB\n");
        assert!(!is_short(&text(100)).unwrap());
        assert!(is_short(&text(99)).unwrap());
        assert!(is_short("MemTotal: 1600 kB\n").is_err());
    }
}
