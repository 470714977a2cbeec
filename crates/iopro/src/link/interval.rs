//! Linking what is being recorded: the tables of one interval after the other.

use super::Linker;
use crate::store::{Error, Store};
use crate::wait;

/// Tables whose rows belong to an interval. The others say what things are, which
/// later rows refer to.
const OF_AN_INTERVAL: [&str; 11] = [
    "syscalls",
    "requests",
    "bios",
    "segments",
    "links",
    "writebacks",
    "commits",
    "commit_calls",
    "waits",
    "lost",
    "file_names",
];

impl Linker {
    /// What was over since the last [`forget`](Linker::forget), and as unfinished
    /// ones the calls that are under way at `now_ns`.
    pub fn interval(&mut self, now_ns: u64) -> Result<&Store, Error> {
        for (id, call) in self.calls.under_way() {
            let mut row = call.row_until(id, now_ns);
            row.unfinished = true;
            self.store.add(&row)?;
        }
        wait::complete(&self.store)?;
        Ok(&self.store)
    }

    /// Begins the next interval: what was over has no rows any more.
    pub fn forget(&mut self) -> Result<(), Error> {
        for table in OF_AN_INTERVAL {
            let delete = format!("DELETE FROM {table}");
            self.store.database().execute(&delete, [])?;
        }
        Ok(())
    }
}
