//! Journals: commits, their content, and the calls that wait for them.

use super::context::Context;
use super::rows::Rows;
use crate::event::{Commit, CommitPhase, Dev, Event, Transaction};
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;

/// Number of commits that are kept after their end. A wait for a commit may be told later.
const REMEMBERED: u64 = 256;

/// The commits of all journals.
#[derive(Debug, Default)]
pub struct Journal {
    commits: HashMap<Transaction, tables::Commit>,
    by_id: HashMap<u64, Transaction>,
    /// Transaction that is being committed, by the journal's thread.
    committing: HashMap<u32, Transaction>,
    next: u64,
}

impl Journal {
    /// `commit_id` of a transaction; new transactions get a number.
    pub fn id(&mut self, transaction: Transaction) -> u64 {
        if let Some(commit) = self.commits.get(&transaction) {
            return commit.commit_id;
        }
        self.next += 1;
        let row = tables::Commit {
            commit_id: self.next,
            device_id: transaction.dev.0.into(),
            tid: transaction.tid.into(),
            ..tables::Commit::default()
        };
        self.commits.insert(transaction, row);
        self.by_id.insert(self.next, transaction);
        self.next
    }

    /// `commit_id` of the commit that a journal's thread works on.
    pub fn committing(&self, thread: u32) -> Option<u64> {
        let transaction = self.committing.get(&thread)?;
        Some(self.commits.get(transaction)?.commit_id)
    }

    /// Adds a request that is done to its commit.
    pub fn carried(&mut self, commit: u64, bytes: u64) {
        let transaction = self.by_id.get(&commit);
        if let Some(row) = transaction.and_then(|it| self.commits.get_mut(it)) {
            row.requests += 1;
            row.bytes += bytes;
        }
    }

    /// The commit of a file system that was in progress between two moments: its `commit_id` and
    /// its thread's `task_id`. If there were several, it is the latest.
    pub fn under_way(&self, dev: Dev, begin_ns: u64, end_ns: u64) -> Option<(u64, Option<u64>)> {
        let of_dev = self
            .commits
            .iter()
            .filter(|(transaction, _)| transaction.dev == dev);
        let overlaps = of_dev.map(|(_, row)| row).filter(|row| {
            row.begin_ns.is_some_and(|begin| begin < end_ns)
                && row.end_ns.is_none_or(|end| end >= begin_ns)
        });
        let latest = overlaps.max_by_key(|row| row.commit_id)?;
        Some((latest.commit_id, latest.task_id))
    }

    /// `task_id` of the thread that commits.
    pub fn task(&self, commit: u64) -> Option<u64> {
        self.commits.get(self.by_id.get(&commit)?)?.task_id
    }

    /// Notes the phase that a commit enters.
    pub fn enters(
        &mut self,
        context: &mut Context,
        event: &Event,
        commit: &Commit,
    ) -> Result<(), Error> {
        let at = event.time_ns;
        let task = context.task(event.thread)?.id;
        let id = self.id(commit.transaction);
        let Some(row) = self.commits.get_mut(&commit.transaction) else {
            return Ok(());
        };
        row.task_id = Some(task);
        match commit.phase {
            CommitPhase::Start => row.begin_ns = Some(at),
            CommitPhase::Locking => row.locking_ns = Some(at),
            CommitPhase::Flushing => row.flushing_ns = Some(at),
            CommitPhase::Logging => row.logging_ns = Some(at),
            CommitPhase::End => row.end_ns = Some(at),
        }
        row.begin_ns = row.begin_ns.or(Some(at));
        match commit.phase {
            CommitPhase::End => self.committing.remove(&event.thread),
            _ => self.committing.insert(event.thread, commit.transaction),
        };
        self.forget_before(id, &mut context.rows)
    }

    /// Writes the rows of commits that ended long before commit `latest`, and forgets them.
    fn forget_before(&mut self, latest: u64, rows: &mut Rows) -> Result<(), Error> {
        let Some(old) = latest.checked_sub(REMEMBERED) else {
            return Ok(());
        };
        let over = |row: &tables::Commit| row.commit_id <= old && row.end_ns.is_some();
        let commits = self.commits.iter().filter(|(_, row)| over(row));
        let over: Vec<Transaction> = commits.map(|(transaction, _)| *transaction).collect();
        for transaction in over {
            if let Some(row) = self.commits.remove(&transaction) {
                self.by_id.remove(&row.commit_id);
                rows.store.add(&row)?;
            }
        }
        Ok(())
    }

    /// Links a call to the transaction that it changes metadata in.
    pub fn joined(
        &mut self,
        context: &mut Context,
        event: &Event,
        transaction: Transaction,
    ) -> Result<(), Error> {
        let commit_id = self.id(transaction);
        let syscall_id = context.call_of(event)?;
        context.rows.store.add(&tables::CommitCall {
            commit_id,
            syscall_id,
            role: "changed",
            time_ns: event.time_ns,
        })
    }

    /// Writes the rows of all commits at the end of the recording.
    pub fn end(&mut self, rows: &mut Rows) -> Result<(), Error> {
        let mut left: Vec<tables::Commit> = self.commits.drain().map(|(_, row)| row).collect();
        left.sort_unstable_by_key(|row| row.commit_id);
        left.iter().try_for_each(|row| rows.store.add(row))
    }
}
