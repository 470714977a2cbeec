//! Classes of waiting: the reason for each interval in which a task was blocked.
//!
//! The names with an underscore are the dependencies on asynchronous writes of the QASIO paper
//! (section 3). `D_…` waits for such a write itself; `I_…` waits for a task that does.

mod classify;

use crate::store::{Error, Store};
use rusqlite::params;

/// Why a task was blocked for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It changes a metadata block that is being written back or written into the journal.
    Meta,
    /// It changes a data page that is being written back.
    Data,
    /// It syncs, truncates or removes a file whose pages are being written back for another task.
    Sync,
    /// It waits for discards that it did not issue itself.
    Discard,
    /// It gets no journal handle: a commit waits for the open handles, or the journal is full.
    JournalHandle,
    /// It waits for the end of a journal commit.
    JournalCommit,
    /// It waits for a tag: all requests of the queue are in use.
    Tag,
    /// It is held back by writeback throttling or another rq-qos policy of the queue.
    QueueThrottle,
    /// It is held back in `balance_dirty_pages`, because too many pages are dirty.
    DirtyThrottle,
    /// It reclaims memory itself (direct reclaim).
    Reclaim,
    /// It waits for its own request, or for another task's request with the data it needs.
    Service,
    /// It waits for a lock of a file or of the file system, held by another task.
    Lock,
    /// No class above fits.
    Other,
}

impl Class {
    /// All classes, in the order of their declaration.
    pub const ALL: [Class; 13] = [
        Class::Meta,
        Class::Data,
        Class::Sync,
        Class::Discard,
        Class::JournalHandle,
        Class::JournalCommit,
        Class::Tag,
        Class::QueueThrottle,
        Class::DirtyThrottle,
        Class::Reclaim,
        Class::Service,
        Class::Lock,
        Class::Other,
    ];

    /// Name in the column `class` of the table `waits`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Meta => "D_meta",
            Class::Data => "D_data",
            Class::Sync => "D_sync",
            Class::Discard => "D_discard",
            Class::JournalHandle => "I_jhandle",
            Class::JournalCommit => "I_jcommit",
            Class::Tag => "tag",
            Class::QueueThrottle => "wbt",
            Class::DirtyThrottle => "dirty throttling",
            Class::Reclaim => "reclaim",
            Class::Service => "service",
            Class::Lock => "lock",
            Class::Other => "other",
        }
    }

    /// The class with this name, or None if no class has it.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// What the task waited for in plain words, to be put after "waited".
    pub fn words(self) -> &'static str {
        match self {
            Class::Meta => "to change a metadata block that was being written",
            Class::Data => "to change a page that was being written back",
            Class::Sync => "for pages of the file that were being written back already",
            Class::Discard => "for discards to end",
            Class::JournalHandle => "to be let into the journal",
            Class::JournalCommit => "for a journal commit",
            Class::Tag => "for a free request of the queue (a tag)",
            Class::QueueThrottle => "as the queue throttles writes (wbt)",
            Class::DirtyThrottle => "as there were too many dirty pages",
            Class::Reclaim => "to reclaim memory",
            Class::Service => "for its own I/O to be served",
            Class::Lock => "for a lock that another task held",
            Class::Other => "for something else",
        }
    }

    /// Whether it waits for another task, which may itself be blocked.
    fn is_indirect(self) -> bool {
        matches!(
            self,
            Class::JournalHandle | Class::JournalCommit | Class::Lock | Class::Discard
        )
    }
}

/// Kernel functions that give the class of a wait whose reason no program could tell, from the
/// innermost out. The first entry that is in the stack decides.
const BY_FUNCTION: [(&str, Class); 20] = [
    ("reclaim_throttle", Class::Reclaim),
    ("shrink_lruvec", Class::Reclaim),
    ("try_to_free_pages", Class::Reclaim),
    ("balance_dirty_pages", Class::DirtyThrottle),
    ("blk_mq_get_tag", Class::Tag),
    ("rq_qos_wait", Class::QueueThrottle),
    ("ext4_should_retry_alloc", Class::Discard),
    ("blkdev_issue_discard", Class::Discard),
    ("jbd2_journal_wait_updates", Class::JournalHandle),
    ("start_this_handle", Class::JournalHandle),
    ("jbd2_log_wait_commit", Class::JournalCommit),
    ("do_get_write_access", Class::Meta),
    ("wb_wait_for_completion", Class::Sync),
    ("folio_wait_stable", Class::Data),
    ("folio_wait_writeback", Class::Sync),
    ("submit_bio_wait", Class::Service),
    ("filemap_get_pages", Class::Service),
    ("filemap_fault", Class::Service),
    ("__do_sys_io_uring_enter", Class::Service),
    ("read_events", Class::Service),
];

impl Class {
    /// The class of a wait by the kernel functions in its stack; None if no known one is among
    /// them.
    pub fn of_stack(functions: &[&str]) -> Option<Class> {
        let known = BY_FUNCTION.iter().find(|(function, _)| {
            let mut names = functions.iter();
            names.any(|name| name.starts_with(function))
        });
        known.map(|(_, class)| *class)
    }
}

/// Sets the class of waits that only the stack tells, and the file of waits that only their call
/// tells. Stacks and the files of calls may be told as late as the end of a recording, so this runs
/// last.
pub(crate) fn complete(store: &Store) -> Result<(), Error> {
    let database = store.database();
    let mut stacks = database.prepare("SELECT stack_id, functions FROM stacks")?;
    let stacks: Vec<(i64, String)> = stacks
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    // The file of a call may be known only when the call returns.
    database.execute_batch(
        "UPDATE waits SET file_id = (SELECT file_id FROM syscalls
             WHERE syscalls.syscall_id = waits.syscall_id)
         WHERE file_id IS NULL AND syscall_id IS NOT NULL",
    )?;
    // A wait that ended with the task's own request may have been for something that the request
    // freed, such as its tag.
    let mut update = database.prepare("UPDATE waits SET class = ?1 WHERE stack_id = ?2")?;
    for (stack, functions) in stacks {
        let functions: Vec<&str> = functions.split(" < ").collect();
        if let Some(class) = Class::of_stack(&functions) {
            update.execute(params![class.name(), stack])?;
        }
    }
    Ok(())
}
