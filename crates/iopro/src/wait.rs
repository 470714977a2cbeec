//! Why a task could not go on: the classes of waiting.
//!
//! The names with an underscore are the dependencies on asynchronous writes of
//! the QASIO paper (section 3): `D_…` waits for such a write itself, `I_…` for
//! somebody who does.

mod classify;

use crate::store::{Error, Store};
use rusqlite::params;

/// What a blocked interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It changes a metadata block that is being written back, or written into
    /// the journal.
    Meta,
    /// It changes a page that is being written back.
    Data,
    /// It syncs, cuts or removes a file whose pages are being written back for
    /// somebody else.
    Sync,
    /// Discards have to end first that it did not ask for itself.
    Discard,
    /// It gets no journal handle, as a commit waits for those who have one, or
    /// as the journal is full.
    JournalHandle,
    /// It waits for the end of a commit.
    JournalCommit,
    /// All requests of the queue are in use.
    Tag,
    /// Writeback throttling, or another policy of the queue.
    QueueThrottle,
    /// It made too many pages dirty.
    DirtyThrottle,
    /// It reclaims memory itself.
    Reclaim,
    /// Its own request, or one with what it needs, is being served.
    Service,
    /// A lock of a file or of the file system, held by another task.
    Lock,
    /// None of these.
    Other,
}

impl Class {
    /// All of them.
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

    /// As in the tables.
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

    /// The class of this name.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// In plain words, after "waited".
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

    /// Whether it waits for another task to go on, which may wait itself.
    fn is_indirect(self) -> bool {
        matches!(
            self,
            Class::JournalHandle | Class::JournalCommit | Class::Lock | Class::Discard
        )
    }
}

/// Functions that tell what a thread waited for where no program could, from
/// the innermost out; the first that is in the stack decides.
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
    /// The class of a wait by where it is: the functions of its stack in the kernel.
    pub fn of_stack(functions: &[&str]) -> Option<Class> {
        let known = BY_FUNCTION.iter().find(|(function, _)| {
            let mut names = functions.iter();
            names.any(|name| name.starts_with(function))
        });
        known.map(|(_, class)| *class)
    }
}

/// Gives the waits whose place only the stack tells the class of that place,
/// and all waits the files of their calls. Both may be told at the end of a
/// recording, so this comes last.
pub(crate) fn complete(store: &Store) -> Result<(), Error> {
    let database = store.database();
    let mut stacks = database.prepare("SELECT stack_id, functions FROM stacks")?;
    let stacks: Vec<(i64, String)> = stacks
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    // A call's file may be known only when it returns.
    database.execute_batch(
        "UPDATE waits SET file_id = (SELECT file_id FROM syscalls
             WHERE syscalls.syscall_id = waits.syscall_id)
         WHERE file_id IS NULL AND syscall_id IS NOT NULL",
    )?;
    // What ended with the task's own request may have been for something else
    // that the request gave back, such as its tag.
    let mut update = database.prepare("UPDATE waits SET class = ?1 WHERE stack_id = ?2")?;
    for (stack, functions) in stacks {
        let functions: Vec<&str> = functions.split(" < ").collect();
        if let Some(class) = Class::of_stack(&functions) {
            update.execute(params![class.name(), stack])?;
        }
    }
    Ok(())
}
