//! Classes of waiting: the reason for each interval in which a task was blocked.
//!
//! The names with an underscore are the dependencies on asynchronous writes of the QASIO paper
//! (section 3). `D_…` waits for such a write itself; `I_…` waits for a task that does.

use crate::named::named;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::{Serialize, Serializer};
use std::fmt;

named! {
    /// Why a task was blocked for an interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Class {
        /// It changes a metadata block that is being written back or written into the journal.
        Meta "D_meta",
        /// It changes a data page that is being written back.
        Data "D_data",
        /// It syncs, truncates or removes a file whose pages are being written back for another task.
        Sync "D_sync",
        /// It waits for discards that it did not issue itself.
        Discard "D_discard",
        /// It gets no journal handle: a commit waits for the open handles, or the journal is full.
        JournalHandle "I_jhandle",
        /// It waits for the end of a journal commit.
        JournalCommit "I_jcommit",
        /// It waits for a tag: all requests of the queue are in use.
        Tag "tag",
        /// It is held back by writeback throttling or another rq-qos policy of the queue.
        QueueThrottle "wbt",
        /// It is held back in `balance_dirty_pages`, because too many pages are dirty.
        DirtyThrottle "dirty throttling",
        /// It reclaims memory itself (direct reclaim).
        Reclaim "reclaim",
        /// It waits for its own request, or for another task's request with the data it needs.
        Service "service",
        /// It waits for a lock of a file or of the file system, held by another task.
        Lock "lock",
        /// It waits until a frozen file system is thawed.
        Frozen "frozen",
        /// No class above fits.
        #[default]
        Other "other",
    }
}

impl Class {
    /// The class with this name, or None if no class has it.
    pub fn named(name: &str) -> Option<Class> {
        Class::ALL
            .iter()
            .copied()
            .find(|class| class.name() == name)
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
            Class::Frozen => "for a frozen file system to be thawed",
            Class::Other => "for something else",
        }
    }
}

/// Kernel functions that give the class of a wait whose reason no program could tell, from the
/// innermost out. The first entry that is in the stack decides.
const BY_FUNCTION: [(&str, Class); 38] = [
    ("reclaim_throttle", Class::Reclaim),
    ("shrink_lruvec", Class::Reclaim),
    ("try_to_free_pages", Class::Reclaim),
    ("balance_dirty_pages", Class::DirtyThrottle),
    ("blk_mq_get_tag", Class::Tag),
    ("rq_qos_wait", Class::QueueThrottle),
    // mmc's driver waits for the device in the task that submits.
    ("blk_mq_dispatch_rq_list", Class::Service),
    ("ext4_should_retry_alloc", Class::Discard),
    ("blkdev_issue_discard", Class::Discard),
    ("jbd2_journal_wait_updates", Class::JournalHandle),
    ("start_this_handle", Class::JournalHandle),
    ("jbd2_log_wait_commit", Class::JournalCommit),
    ("do_get_write_access", Class::Meta),
    ("wb_wait_for_completion", Class::Sync),
    ("folio_wait_stable", Class::Data),
    // The same, inlined.
    ("__filemap_get_folio", Class::Data),
    ("folio_wait_writeback", Class::Sync),
    ("submit_bio_wait", Class::Service),
    ("filemap_get_pages", Class::Service),
    ("filemap_fault", Class::Service),
    ("__do_sys_io_uring_enter", Class::Service),
    ("read_events", Class::Service),
    // XFS, Btrfs, F2FS, bcachefs and ZFS: of their sources, none of them met in a guest.
    ("xfs_buf_lock", Class::Meta),
    ("xfs_buf_iowait", Class::Service),
    ("xlog_grant_head_wait", Class::JournalHandle),
    ("xlog_wait_on_iclog", Class::JournalCommit),
    ("xfs_log_force", Class::JournalCommit),
    ("xlog_", Class::JournalCommit),
    ("wait_current_trans", Class::JournalHandle),
    ("handle_reserve_ticket", Class::JournalHandle),
    ("btrfs_wait_ordered", Class::Sync),
    ("btrfs_wait_for_commit", Class::JournalCommit),
    ("wait_for_commit", Class::JournalCommit),
    ("btrfs_commit_transaction", Class::JournalCommit),
    ("f2fs_issue_checkpoint", Class::JournalCommit),
    ("txg_wait_", Class::JournalCommit),
    ("bch2_journal_", Class::JournalCommit),
    ("dquot_writeback_dquots", Class::JournalCommit),
];
/// Function in which a task waits for a frozen file system, among others, and begins of the names of
/// those which it then comes from.
const FREEZE: [&str; 2] = ["percpu_rwsem_wait", "__percpu_down_read"];
const FREEZABLE: [&str; 14] = [
    "vfs_",
    "mnt_want_write",
    "sb_start",
    "__sb_start",
    "do_sendfile",
    "do_splice",
    "do_truncate",
    "io_write",
    "aio_write",
    "do_page_mkwrite",
    "file_start_write",
    "ext4_",
    "xfs_",
    "btrfs_",
];

impl Class {
    /// The class of a wait by the kernel functions in its stack; None if no known one is among
    /// them.
    pub fn of_stack(functions: &[&str]) -> Option<Class> {
        let has = |wanted: &[&str]| {
            let is_one = |name: &&str| wanted.iter().any(|it| name.starts_with(it));
            functions.iter().any(is_one)
        };
        if has(&FREEZE) && has(&FREEZABLE) {
            return Some(Class::Frozen);
        }
        let known = BY_FUNCTION.iter().find(|(function, _)| {
            let mut names = functions.iter();
            names.any(|name| name.starts_with(function))
        });
        known.map(|(_, class)| *class)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromSql for Class {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Class> {
        Class::named(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}
