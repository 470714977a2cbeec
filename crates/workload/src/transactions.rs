//! The load `database`: transactions with a rollback journal, like SQLite's.

use crate::Error;
use crate::background::{Pattern, Script, Shared, sync, write_to};
use crate::load::{fill, make_directory};
use crate::sizes::Size;
use std::ffi::CStr;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use sys::device::PAGE_BYTES;
use sys::random::Random;

/// Size of the database, one page of which is overwritten in each transaction.
const DATABASE_BYTES: Size = Size {
    demo: 16 << 20,
    full: 64 << 20,
    least: 1 << 20,
    tiny: 1 << 20,
};

/// Name of the database's file in its directory, and of its rollback journal during a transaction.
const DATABASE_NAME: &str = "database";
const DATABASE_PATH: &CStr = c"database";
const JOURNAL_PATH: &CStr = c"database-journal";

/// Bytes that a transaction writes before the database's page: a header and the old page.
const JOURNAL_BYTES: usize = 8 << 10;

pub(crate) const DATABASE: Pattern = Pattern {
    bytes: |sizes| sizes.pick(DATABASE_BYTES),
    is_steady: true,
    has_an_end: false,
    make,
    perform: commit_for_ever,
};

fn make(path: &Path, bytes: u64, random: &mut Random, stop: &AtomicBool) -> Result<File, Error> {
    let directory = make_directory(path)?;
    fill(&path.join(DATABASE_NAME), bytes, random, stop)?;
    Ok(directory)
}

/// Makes transactions: writes the journal, writes the page, and removes the journal, which
/// commits (SQLite's "Atomic Commit", sections 3 and 4).
fn commit_for_ever(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    let database = script.open_in(DATABASE_PATH, libc::O_WRONLY)?;
    let pages = script.file_bytes / PAGE_BYTES as u64;
    loop {
        let journal = script.open_in(JOURNAL_PATH, libc::O_WRONLY | libc::O_CREAT)?;
        write_to(&journal, &script.data[..JOURNAL_BYTES], 0, shared)?;
        sync(&journal)?;
        let offset = script.random.below(pages) * PAGE_BYTES as u64;
        write_to(&database, &script.data[..PAGE_BYTES], offset, shared)?;
        sync(&database)?;
        script.unlink_in(JOURNAL_PATH)?;
    }
}
