//! Linking of a recording in progress: the tables of one interval after the other.

use super::account::Account;
use super::{Linker, Use, waits};
use crate::event::Dev;
use crate::store::{Error, Store};
use crate::tables::{Of, TABLES};
use std::collections::BTreeMap;

impl Linker {
    /// The tables with all that ended since the last [`forget`](Linker::forget). Calls in progress
    /// at `now_ns` are in them as unfinished ones.
    pub fn interval(&mut self, now_ns: u64) -> Result<&Store, Error> {
        for (id, call) in self.context.calls.under_way() {
            let mut row = call.row_until(id, now_ns);
            row.unfinished = true;
            self.context.rows.store.add(&row)?;
        }
        waits::complete(&self.context.rows.store)?;
        Ok(&self.context.rows.store)
    }

    /// What disks worked for during the waits that ended since this was called last, as far as it is
    /// known at `now_ns`.
    pub fn accounts(&mut self, now_ns: u64) -> Vec<Account> {
        let in_flight = self.block.in_flight(now_ns);
        self.waits.accounts.take(&self.context.recent, &in_flight)
    }

    /// What disks did since this was called last.
    pub fn uses(&mut self) -> BTreeMap<Dev, Use> {
        self.block.uses.take()
    }

    /// Begins the next interval and deletes the rows of the last one.
    pub fn forget(&mut self) -> Result<(), Error> {
        for table in TABLES.iter().filter(|it| it.of != Of::All) {
            let delete = format!("DELETE FROM {}", table.name);
            self.context.rows.store.database().execute(&delete, [])?;
        }
        Ok(())
    }
}
