//! Files: their numbers in the tables, and their names.

use crate::event::{Dev, FileId, Name, NameReason};
use crate::recording::{Header, Mount};
use crate::store::{Error, Store};
use crate::tables;
use rusqlite::{OptionalExtension, params};
use std::collections::HashMap;

/// Most files in memory; the others are looked up in the database.
const KNOWN_AT_MOST: usize = 200_000;

#[derive(Clone, Copy, Debug)]
struct Known {
    id: u64,
    removed: bool,
}

/// All files of the recording.
#[derive(Debug)]
pub struct Files {
    known: HashMap<FileId, Known>,
    mounts: Vec<Mount>,
    names: HashMap<Dev, String>,
    next: u64,
}

impl Files {
    /// Begins without files, on the file systems of `header`.
    pub fn new(header: &Header, store: &mut Store) -> Result<Files, Error> {
        store
            .database()
            .execute_batch("CREATE INDEX files_by_inode ON files (device_id, inode, generation)")?;
        let mut names = HashMap::new();
        for disk in &header.disks {
            names.insert(disk.dev, disk.name.clone());
            for partition in &disk.partitions {
                names.insert(partition.dev, partition.name.clone());
            }
        }
        Ok(Files {
            known: HashMap::new(),
            mounts: header.mounts.clone(),
            names,
            next: 0,
        })
    }

    /// `file_id` of the file; a new file gets a row.
    pub fn id(&mut self, file: FileId, store: &mut Store) -> Result<u64, Error> {
        Ok(self.known(file, store)?.id)
    }

    fn known(&mut self, file: FileId, store: &mut Store) -> Result<Known, Error> {
        if let Some(known) = self.known.get(&file) {
            return Ok(*known);
        }
        if self.known.len() >= KNOWN_AT_MOST {
            self.known.clear();
        }
        let stored: Option<(i64, bool)> = store
            .database()
            .prepare_cached(
                "SELECT file_id, removed FROM files
                 WHERE device_id = ? AND inode = ? AND generation = ? ORDER BY file_id DESC",
            )?
            .query_row(
                params![file.dev.0, file.inode as i64, file.generation],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let known = match stored {
            Some((id, removed)) => Known {
                id: id as u64,
                removed,
            },
            None => self.add(file, store)?,
        };
        self.known.insert(file, known);
        Ok(known)
    }

    fn add(&mut self, file: FileId, store: &mut Store) -> Result<Known, Error> {
        self.next += 1;
        let (path, kind) = match file.is_block_device() {
            true => {
                let name = self.names.get(&file.dev);
                let name = name.cloned().unwrap_or_else(|| file.dev.to_string());
                (format!("/dev/{name}"), "block device")
            }
            false => (String::new(), ""),
        };
        store.add(&tables::File {
            file_id: self.next,
            device_id: file.dev.0.into(),
            inode: file.inode,
            generation: file.generation.into(),
            path,
            kind,
            removed: false,
        })?;
        Ok(Known {
            id: self.next,
            removed: false,
        })
    }

    /// Adds a name of a file and updates its row.
    pub fn named(&mut self, time_ns: u64, name: &Name, store: &mut Store) -> Result<(), Error> {
        let mut known = self.known(name.file, store)?;
        if known.removed && name.why == NameReason::Seen {
            // The inode number was used again, on a file system without generations.
            known = self.add(name.file, store)?;
        }
        known.removed |= matches!(name.why, NameReason::Removed | NameReason::SeenRemoved);
        self.known.insert(name.file, known);
        if name.file.is_block_device() {
            return Ok(());
        }
        let path = match name.cut {
            true => name.path.clone(),
            false => self.below_mount(name.file.dev, &name.path),
        };
        store
            .database()
            .prepare_cached(
                "UPDATE files SET path = CASE ?1 WHEN '' THEN path ELSE ?1 END,
                 kind = ?2, removed = ?3 WHERE file_id = ?4",
            )?
            .execute(params![
                path,
                kind(name.mode),
                known.removed,
                known.id as i64
            ])?;
        store.add(&tables::FileName {
            file_id: known.id,
            time_ns,
            path,
            why: name.why.name(),
        })
    }

    /// The path in the machine's tree if the file system was mounted at the begin, else `path`.
    fn below_mount(&self, dev: Dev, path: &str) -> String {
        let mounted = self.mounts.iter().filter(|mount| mount.dev == dev);
        let below = mounted.filter_map(|mount| {
            let rest = path.strip_prefix(mount.root.trim_end_matches('/'))?;
            let whole = rest.is_empty() || rest.starts_with('/');
            whole.then(|| format!("{}{rest}", mount.path.trim_end_matches('/')))
        });
        match path.is_empty() {
            true => String::new(),
            false => below
                .min_by_key(String::len)
                .unwrap_or_else(|| path.to_owned()),
        }
    }
}

fn kind(mode: u16) -> &'static str {
    match mode & 0o170_000 {
        0o100_000 => "file",
        0o040_000 => "directory",
        0o120_000 => "symlink",
        0o060_000 => "block device",
        0 => "",
        _ => "other",
    }
}
