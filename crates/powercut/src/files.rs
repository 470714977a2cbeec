//! Files that are known to be in flash at a moment, by their sums.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Its length.
    pub bytes: u64,
    /// CRC-32 of its content.
    pub crc32: u32,
}

impl Sum {
    /// Of this content.
    pub fn of(content: &[u8]) -> Self {
        Sum {
            bytes: content.len() as u64,
            crc32: crc32fast::hash(content),
        }
    }
}

/// Files by their path from the file system's root.
pub type Files = BTreeMap<String, Sum>;

/// What the host wrote into the stream when all of its files were in flash and at rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What begins here.
    pub begins: Phase,
    /// All files.
    pub files: Files,
}

/// What goes on between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Files are written, changed and removed.
    Ageing,
    /// They are only moved.
    Defragmentation,
    /// Nothing more.
    End,
}

/// All files below `directory`, named from `root`.
///
/// # Errors
/// What the system says, with the path.
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

/// Files that both have, the same: nobody changed them in between, so they are there at every
/// moment in between.
pub fn unchanged(before: &Files, after: &Files) -> Files {
    let same = |(name, sum): &(&String, &Sum)| after.get(*name) == Some(*sum);
    let files = before.iter().filter(same);
    files.map(|(name, sum)| (name.clone(), *sum)).collect()
}
