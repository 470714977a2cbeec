//! The machine's memory: what `/proc/meminfo` counts, and the caches in it.

use std::path::Path;
use std::{fs, io};

/// Bytes of an entry of `/proc/meminfo` below `root`, such as `MemTotal`.
///
/// # Errors
/// The system's error, or that there is no such entry.
pub fn bytes(root: &Path, entry: &str) -> io::Result<u64> {
    entry_bytes(&fs::read_to_string(root.join("proc/meminfo"))?, entry)
}

/// The same of the file's text.
///
/// # Errors
/// There is no such entry.
pub fn entry_bytes(text: &str, entry: &str) -> io::Result<u64> {
    let kib = text.lines().find_map(|line| {
        let number = line.strip_prefix(entry)?.strip_prefix(':')?;
        let number = number.trim().strip_suffix("kB")?.trim();
        number.parse::<u64>().ok()
    });
    kib.map(|kib| kib << 10)
        .ok_or_else(|| io::Error::other(format!("/proc/meminfo has no {entry}")))
}

/// Drops what is clean from memory: pages, directories and inodes. Requires root.
///
/// # Errors
/// The system's error.
pub fn drop_caches() -> io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_its_whole_name() {
        let text = "MemTotal:        1048576 kB\nMemFree: 1 kB\nHugePages_Total:       0\n";
        assert_eq!(entry_bytes(text, "MemTotal").unwrap(), 1 << 30);
        for missing in ["Mem", "Total", "HugePages_Total"] {
            assert!(entry_bytes(text, missing).is_err(), "{missing}");
        }
    }
}
