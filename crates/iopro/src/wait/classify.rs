//! Classification of a blocked interval, and the task, file and request that ended it.

use super::Class;
use crate::event::{Blocked, Dev, Event, FileId, Op, Reason, Transaction};
use crate::link::{Done, Linker};
use crate::store::Error;
use crate::tables;

/// The wake-up, or its event, comes up to this much later than the completion that causes it.
const SLACK_NS: u64 = 1_000_000;
/// A task that is woken this soon after its request's completion waited for that request.
const AT_ONCE_NS: u64 = 100_000;
const SECTOR_BYTES: u64 = 512;
/// Reason in the table for a wait for the kernel's flusher as a whole.
const FLUSHER: &str = "flusher";

/// The fields of a row of `waits`, as far as they are known.
#[derive(Debug, Default)]
struct Found {
    class: Option<Class>,
    reason: &'static str,
    file: Option<u64>,
    page: Option<u64>,
    commit: Option<u64>,
    other: Option<u64>,
    stack: Option<u64>,
    request: Option<Done>,
    /// A request must exist; the wait counts as unlinked if none is found.
    wants_request: bool,
}

/// Duration of a wait, divided by where the awaited request was.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    before_ns: u64,
    block_ns: u64,
    device_ns: u64,
    driver_ns: u64,
}

impl Parts {
    /// Divides `begin_ns` to `woken_ns`; without a request all of it is `before_ns`.
    fn of(begin_ns: u64, woken_ns: u64, request: Option<&Done>) -> Parts {
        let all = woken_ns.saturating_sub(begin_ns);
        let Some(done) = request else {
            return Parts {
                before_ns: all,
                ..Parts::default()
            };
        };
        let at = |moment: u64| moment.clamp(begin_ns, woken_ns.max(begin_ns));
        let (queued, issued, completed) = (
            at(done.queued_ns),
            at(done.issued_ns),
            at(done.completed_ns),
        );
        let issued = issued.max(queued);
        Parts {
            before_ns: queued - begin_ns,
            block_ns: issued - queued,
            device_ns: completed.max(issued) - issued,
            driver_ns: woken_ns.max(begin_ns) - completed.max(issued),
        }
    }
}

impl Linker {
    /// Classifies a blocked interval and adds its row.
    pub(crate) fn blocked(&mut self, event: &Event, blocked: &Blocked) -> Result<(), Error> {
        if blocked.call.is_none() && !event.in_fault {
            // A thread that blocks outside of recorded calls has finished its unrecorded work.
            self.end_unrecorded_at(event)?;
        }
        let (task, journal) = {
            let task = self.task_of_thread(event.thread)?;
            (task.id, task.is_journal())
        };
        let call = self.call_for_wait(event, blocked)?;
        let mut found = self.found(event, blocked, task, journal)?;
        if blocked.in_reclaim {
            found.class = Some(Class::Reclaim);
        } else if blocked.for_journal_space {
            found.class = Some(Class::JournalHandle);
            found.reason = "journal space";
        }
        let of_request = found.request.as_ref().and_then(|done| done.commit);
        found.commit = found.commit.or(of_request);
        let class = found.class.unwrap_or(Class::Other);
        if found.wants_request {
            self.count_wait(found.request.is_some());
        }
        let end_ns = event.time_ns;
        let parts = Parts::of(blocked.begin_ns, blocked.woken_ns, found.request.as_ref());
        let indirect = class.is_indirect() || found.reason == FLUSHER;
        let other = found.other.filter(|other| *other != task);
        let waker = self
            .known_task(blocked.waker)
            .filter(|waker| indirect && *waker != task);
        let cause = other
            .or(waker)
            .filter(|_| indirect)
            .and_then(|blocker| self.mostly(blocker, blocked.begin_ns, blocked.woken_ns));
        let other = other
            .or_else(|| self.culprit(class, task, blocked, &found, parts))
            .or(waker);
        self.remember_wait(
            task,
            blocked.begin_ns,
            blocked.woken_ns,
            cause.unwrap_or(class),
        );
        self.charge(call, class, parts, blocked, end_ns);
        if let (Class::JournalCommit, Some(commit), Some(call)) = (class, found.commit, call) {
            self.waited_for_commit(commit, call, end_ns)?;
        }
        let file_id = found
            .file
            .or_else(|| call.and_then(|call| self.file_of_call(call)));
        self.wait_row(tables::Wait {
            task_id: task,
            syscall_id: call,
            class: class.name(),
            cause: cause.map(Class::name),
            reason: found.reason,
            begin_ns: blocked.begin_ns,
            woken_ns: blocked.woken_ns,
            end_ns,
            file_id,
            page_index: found.page,
            request_id: found.request.as_ref().map(|done| done.request),
            commit_id: found.commit,
            other_task_id: other,
            before_ns: parts.before_ns,
            block_ns: parts.block_ns,
            device_ns: parts.device_ns,
            driver_ns: parts.driver_ns,
            stack_id: found.stack,
            iowait: blocked.iowait,
            ..tables::Wait::default()
        })
    }

    fn found(
        &mut self,
        event: &Event,
        blocked: &Blocked,
        task: u64,
        journal: bool,
    ) -> Result<Found, Error> {
        let since_ns = blocked.begin_ns.saturating_sub(SLACK_NS);
        Ok(match blocked.reason {
            Reason::Writeback { file, index } => {
                let found = self.on_page(file, index, since_ns, "writeback")?;
                let syncing = journal || Linker::is_syncing(blocked.call);
                Found {
                    class: Some(match &found.request {
                        _ if file.is_block_device() => Class::Meta,
                        Some(done) if syncing && done.sync && done.submitter == Some(task) => {
                            Class::Service
                        }
                        _ if syncing => Class::Sync,
                        _ => Class::Data,
                    }),
                    ..found
                }
            }
            Reason::PageLock { file, index } => {
                let mut found = self.on_page(file, index, since_ns, "page lock")?;
                if found.request.is_none() {
                    found = self.near_page(found, blocked);
                }
                Found {
                    class: Some(match &found.request {
                        Some(done) if done.op == "write" => Class::Data,
                        Some(_) => Class::Service,
                        None => Class::Lock,
                    }),
                    wants_request: false,
                    ..found
                }
            }
            Reason::Buffer {
                dev,
                block,
                block_bytes,
            } => self.on_block(dev, block, block_bytes, (since_ns, task, journal)),
            Reason::JournalBuffer { dev } => {
                self.on_journal(dev, blocked, event.time_ns, (Class::Meta, "journal buffer"))
            }
            Reason::JournalCommit(transaction) => self.on_commit(transaction),
            Reason::JournalHandle { dev } => self.on_journal(
                dev,
                blocked,
                event.time_ns,
                (Class::JournalHandle, "journal handle"),
            ),
            Reason::JournalSpace { dev } => self.on_journal(
                dev,
                blocked,
                event.time_ns,
                (Class::JournalHandle, "journal space"),
            ),
            Reason::Tag => plain(Class::Tag, "tag"),
            Reason::QueueThrottle => plain(Class::QueueThrottle, "queue throttling"),
            Reason::DirtyThrottle => plain(Class::DirtyThrottle, "dirty throttling"),
            Reason::OwnBio { op } => {
                let discards = matches!(op, Op::Discard | Op::SecureErase);
                let own = self.own_request(task, since_ns);
                let kernel = self.is_kernel(event.thread);
                Found {
                    // A discard that a program asks for itself comes from an ioctl, which is not
                    // recorded.
                    class: Some(match discards && (blocked.call.is_some() || kernel) {
                        true => Class::Discard,
                        false => Class::Service,
                    }),
                    reason: if discards { "own discard" } else { "own bio" },
                    request: own,
                    ..Found::default()
                }
            }
            Reason::DirectIo => Found {
                class: Some(Class::Service),
                reason: "direct I/O",
                request: self.own_request(task, since_ns),
                ..Found::default()
            },
            Reason::Lock { of_file, .. } => match of_file {
                true => plain(Class::Lock, "file lock"),
                false => plain(Class::Lock, "lock"),
            },
            Reason::FlusherDone => plain(Class::Sync, FLUSHER),
            Reason::ReclaimThrottle => plain(Class::Reclaim, "reclaim"),
            Reason::Other { stack } => self.elsewhere(stack, task, blocked),
        })
    }

    fn on_page(
        &mut self,
        file: FileId,
        index: u64,
        since_ns: u64,
        reason: &'static str,
    ) -> Result<Found, Error> {
        let id = self.file_number(file)?;
        let request = self
            .recent()
            .awaited_with_page(id, index, since_ns)
            .cloned();
        Ok(Found {
            reason,
            file: Some(id),
            page: Some(index),
            other: request.as_ref().and_then(|done| done.origin),
            request,
            wants_request: true,
            ..Found::default()
        })
    }

    /// Finds the request for a read page, which may be a guess (`bpf/waits.h`). If the wait ended
    /// just when a request with other pages of the file did, it was for that request.
    fn near_page(&self, found: Found, blocked: &Blocked) -> Found {
        let from_ns = blocked.woken_ns.saturating_sub(AT_ONCE_NS);
        let from_ns = from_ns.max(blocked.begin_ns);
        let request = found
            .file
            .and_then(|file| self.recent().with_file(file, from_ns, blocked.woken_ns))
            .cloned();
        match request {
            Some(done) => Found {
                page: None,
                other: done.origin,
                request: Some(done),
                ..found
            },
            None => found,
        }
    }

    fn on_block(
        &mut self,
        dev: Dev,
        block: u64,
        block_bytes: u32,
        (since_ns, task, journal): (u64, u64, bool),
    ) -> Found {
        let sector = block.saturating_mul(u64::from(block_bytes) / SECTOR_BYTES);
        let (disk, sector) = self.on_disk(dev, sector);
        let request = self.recent().with_sector(disk, sector, since_ns).cloned();
        let own = request
            .as_ref()
            .is_some_and(|done| done.submitter == Some(task));
        Found {
            class: Some(match &request {
                // The task reads the block, or another task reads it for both.
                Some(done) if done.op == "read" => Class::Service,
                Some(_) if own => Class::Service,
                // The journal's thread waits for the blocks that it wrote.
                None if journal => Class::Service,
                _ => Class::Meta,
            }),
            reason: "buffer",
            other: request.as_ref().and_then(|done| done.origin),
            request,
            wants_request: true,
            ..Found::default()
        }
    }

    fn on_journal(
        &mut self,
        dev: Dev,
        blocked: &Blocked,
        end_ns: u64,
        (class, reason): (Class, &'static str),
    ) -> Found {
        let commit = self.commit_under_way(dev, blocked.begin_ns, end_ns);
        Found {
            class: Some(class),
            reason,
            commit: commit.map(|(commit, _)| commit),
            other: commit.and_then(|(_, task)| task),
            ..Found::default()
        }
    }

    fn on_commit(&mut self, transaction: Transaction) -> Found {
        let commit = self.commit_number(transaction);
        Found {
            class: Some(Class::JournalCommit),
            reason: "journal commit",
            commit: Some(commit),
            other: self.commit_task(commit),
            ..Found::default()
        }
    }

    /// Classifies a wait in a place that has no class. If it ended just when the task's own request
    /// did, it was for that request.
    fn elsewhere(&self, stack: Option<u32>, task: u64, blocked: &Blocked) -> Found {
        let since_ns = blocked.woken_ns.saturating_sub(AT_ONCE_NS);
        let own = self.own_request(task, since_ns.max(blocked.begin_ns));
        let own = own.filter(|done| done.completed_ns <= blocked.woken_ns);
        Found {
            class: Some(match own {
                Some(_) => Class::Service,
                None => Class::Other,
            }),
            reason: "other",
            stack: stack.map(u64::from),
            request: own,
            ..Found::default()
        }
    }

    fn own_request(&self, task: u64, since_ns: u64) -> Option<Done> {
        self.recent().submitted_by(task, since_ns).cloned()
    }

    /// The other task that the device worked for most while this task waited for a free device or
    /// queue. None if it waited for something else.
    fn culprit(
        &self,
        class: Class,
        task: u64,
        blocked: &Blocked,
        found: &Found,
        parts: Parts,
    ) -> Option<u64> {
        let (begin_ns, end_ns) = (blocked.begin_ns, blocked.woken_ns);
        match (class, &found.request) {
            (Class::Service, Some(done)) if parts.block_ns > 0 => {
                let (from, to) = (done.queued_ns.max(begin_ns), done.issued_ns.min(end_ns));
                self.recent().busiest(Some(done.dev), task, from, to)
            }
            (Class::Sync, None) => self.recent().busiest(None, task, begin_ns, end_ns),
            (Class::Tag | Class::QueueThrottle | Class::DirtyThrottle | Class::Reclaim, _) => {
                self.recent().busiest(None, task, begin_ns, end_ns)
            }
            _ => None,
        }
    }

    /// Adds the parts of a wait to the layers' times of its call.
    fn charge(
        &mut self,
        call: Option<u64>,
        class: Class,
        parts: Parts,
        blocked: &Blocked,
        end_ns: u64,
    ) {
        let Some(times) = call.and_then(|call| self.times_of_call(call)) else {
            return;
        };
        times.blocked_ns += blocked.woken_ns.saturating_sub(blocked.begin_ns);
        times.runqueue_ns += end_ns.saturating_sub(blocked.woken_ns);
        times.block_ns += parts.block_ns;
        times.device_ns += parts.device_ns;
        times.driver_ns += parts.driver_ns;
        let before = match class {
            Class::Tag | Class::QueueThrottle => &mut times.block_ns,
            Class::Data | Class::Sync | Class::DirtyThrottle | Class::Reclaim | Class::Service => {
                &mut times.page_cache_ns
            }
            Class::Meta
            | Class::Discard
            | Class::JournalHandle
            | Class::JournalCommit
            | Class::Lock
            | Class::Other => &mut times.file_system_ns,
        };
        *before += parts.before_ns;
    }
}

fn plain(class: Class, reason: &'static str) -> Found {
    Found {
        class: Some(class),
        reason,
        ..Found::default()
    }
}
