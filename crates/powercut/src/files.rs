//! Files that must be in flash at a moment, by checksum.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Length and checksum of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Length in bytes.
    pub bytes: u64,
    /// CRC-32 of the content.
    pub crc32: u32,
}

impl Sum {
    /// The sum of this content.
    pub fn of(content: &[u8]) -> Self {
        Sum {
            bytes: content.len() as u64,
            crc32: crc32fast::hash(content),
        }
    }
}

/// Checksums of files by their path from the file system's root.
pub type Files = BTreeMap<String, Sum>;

/// Record that the host adds to the stream when all of its files are in flash and unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Phase that begins with this record.
    pub begins: Phase,
    /// All files at this moment.
    pub files: Files,
}

/// Phases between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Files are written, changed and removed.
    Ageing,
    /// Files are only moved.
    Defragmentation,
    /// The stream ends.
    End,
}

/// All files below `directory`, by their path from `root`.
///
/// # Errors
/// The system's error, with the path.
pub fn files_below(root: &Path, directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?.file_type();
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
                files.insert(name.into_owned(), Sum::of(&fs::read(&path)?));
            }
        }
    }
    Ok(files)
}

/// Files that are the same in both. They were not changed in between, so they must exist at every
/// moment in between.
pub fn unchanged(before: &Files, after: &Files) -> Files {
    let same = |(name, sum): &(&String, &Sum)| after.get(*name) == Some(*sum);
    let files = before.iter().filter(same);
    files.map(|(name, sum)| (name.clone(), *sum)).collect()
}
