//! Classification of a blocked interval, and the task, file and request that ended it.

use super::account::{Accounts, Pending};
use super::calls::syncs;
use super::context::Context;
use super::history::History;
use super::journal::Journal;
use super::recent::Completed;
use super::tasks::Task;
use crate::event::{Blocked, CallKind, Dev, Event, FileId, Op, Reason, Transaction};
use crate::recording::Header;
use crate::store::{Error, Store};
use crate::tables;
use crate::wait::Class;
use rusqlite::params;
use std::collections::HashMap;

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
    class: Class,
    reason: &'static str,
    file: Option<u64>,
    page: Option<u64>,
    commit: Option<u64>,
    other: Option<u64>,
    stack: Option<u64>,
    request: Option<Completed>,
    /// A request must exist; the wait counts as unlinked if none is found.
    wants_request: bool,
}

impl Found {
    /// A wait for this request, because of the task whose data it has.
    fn by(request: Option<&Completed>) -> Found {
        Found {
            other: request.and_then(|done| done.origin),
            request: request.cloned(),
            ..Found::default()
        }
    }
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
    /// Divides the time until the wake-up; without a request all of it is `before_ns`.
    fn of(blocked: &Blocked, request: Option<&Completed>) -> Parts {
        let (begin_ns, woken_ns) = (blocked.begin_ns, blocked.woken_ns);
        let all = woken_ns.saturating_sub(begin_ns);
        let Some(done) = request else {
            return Parts {
                before_ns: all,
                ..Parts::default()
            };
        };
        let at = |moment: u64| moment.clamp(begin_ns, woken_ns.max(begin_ns));
        let queued = at(done.queued_ns);
        let issued = at(done.issued_ns).max(queued);
        let completed = at(done.completed_ns).max(issued);
        Parts {
            before_ns: queued - begin_ns,
            block_ns: issued - queued,
            device_ns: completed - issued,
            driver_ns: at(woken_ns) - completed,
        }
    }
}

/// Classifies waits, and remembers those of each task: they may be the cause of another task's.
#[derive(Debug)]
pub struct Waits {
    history: History,
    /// The disk of each partition, and the partition's first sector there.
    partitions: HashMap<Dev, (Dev, u64)>,
    /// Users' waits whose accounts are still to be made, where only waits are asked for.
    pub accounts: Accounts,
}

impl Waits {
    /// Begins without waits, on the disks of `header`.
    pub fn new(header: &Header) -> Waits {
        let partitions = header.disks.iter().flat_map(|disk| {
            let parts = disk.partitions.iter();
            parts.map(|part| (part.dev, (disk.dev, part.start_sector)))
        });
        Waits {
            history: History::default(),
            partitions: partitions.collect(),
            accounts: Accounts::default(),
        }
    }

    /// Classifies a blocked interval and adds its row.
    pub fn blocked(
        &mut self,
        context: &mut Context,
        journal: &mut Journal,
        event: &Event,
        blocked: &Blocked,
    ) -> Result<(), Error> {
        let task = context.task(event.thread)?;
        let (task, is_kernel, is_journal) = (task.id, task.kernel, task.is_journal());
        // Outside of recorded calls there is none to charge, but for io_uring's workers.
        let call = match blocked.call.is_some() || event.in_fault {
            true => Some(context.call_of(event)?),
            false => context.operation_of_worker(event.thread),
        };
        let mut waiter = Waiter {
            context,
            journal,
            partitions: &self.partitions,
            event,
            blocked,
            call,
            task,
            is_kernel,
            is_journal,
        };
        let found = waiter.found()?;
        if found.wants_request {
            let counts = &mut waiter.context.rows.counts;
            counts.waits_without_request.one(found.request.is_some());
        }
        let parts = Parts::of(blocked, found.request.as_ref());
        let (cause, other) = waiter.blocker(&self.history, &found, parts);
        self.history.push(
            task,
            blocked.begin_ns,
            blocked.woken_ns,
            cause.unwrap_or(found.class),
        );
        let row = tables::Wait {
            cause,
            other_task_id: other,
            ..waiter.row(call, &found, parts)
        };
        if let Some(call) = call {
            ended_in_call(context, call, event.time_ns, &found, (parts, blocked))?;
        }
        let wait = context.rows.wait(row)?;
        if !is_kernel && context.rows.store.has_only_waits() {
            let (begin_ns, woken_ns) = (blocked.begin_ns, blocked.woken_ns);
            self.accounts.push(Pending {
                wait,
                begin_ns,
                woken_ns,
            });
        }
        Ok(())
    }
}

/// A blocked interval that is classified, with what can tell of it.
struct Waiter<'a> {
    context: &'a mut Context,
    journal: &'a mut Journal,
    partitions: &'a HashMap<Dev, (Dev, u64)>,
    event: &'a Event,
    blocked: &'a Blocked,
    /// `syscall_id` of the recorded call that it was in.
    call: Option<u64>,
    /// `task_id` of the thread that was blocked.
    task: u64,
    is_kernel: bool,
    is_journal: bool,
}

impl Waiter<'_> {
    /// What the kernel function that the thread blocked in tells, and the state that it was in.
    fn found(&mut self) -> Result<Found, Error> {
        let mut found = self.by_reason()?;
        if self.blocked.in_reclaim {
            found.class = Class::Reclaim;
        } else if self.blocked.for_journal_space {
            found.class = Class::JournalHandle;
            found.reason = "journal space";
        }
        let of_request = found.request.as_ref().and_then(|done| done.commit);
        found.commit = found.commit.or(of_request);
        Ok(found)
    }

    fn by_reason(&mut self) -> Result<Found, Error> {
        Ok(match self.blocked.reason {
            Reason::Writeback { file, index } => self.for_writeback(file, index)?,
            Reason::PageLock { file, index } => self.for_page_lock(file, index)?,
            Reason::Buffer {
                dev,
                block,
                block_bytes,
            } => self.for_block(dev, block, block_bytes),
            Reason::JournalBuffer { dev } => self.for_commit_of(dev, Class::Meta, "journal buffer"),
            Reason::JournalCommit(transaction) => self.for_commit(transaction),
            Reason::JournalHandle { dev } => {
                self.for_commit_of(dev, Class::JournalHandle, "journal handle")
            }
            Reason::JournalSpace { dev } => {
                self.for_commit_of(dev, Class::JournalHandle, "journal space")
            }
            Reason::Tag => plain(Class::Tag, "tag"),
            Reason::QueueThrottle => plain(Class::QueueThrottle, "queue throttling"),
            Reason::DirtyThrottle => plain(Class::DirtyThrottle, "dirty throttling"),
            Reason::OwnBio { op } => self.for_own_bio(op),
            Reason::DirectIo => self.for_own_requests(),
            Reason::Lock { of_file: true, .. } => plain(Class::Lock, "file lock"),
            Reason::Lock { of_file: false, .. } => plain(Class::Lock, "lock"),
            Reason::FlusherDone => plain(Class::Sync, FLUSHER),
            Reason::ReclaimThrottle => plain(Class::Reclaim, "reclaim"),
            Reason::Other { stack } => self.elsewhere(stack),
        })
    }

    /// A request that completed before this did not end the wait.
    fn since_ns(&self) -> u64 {
        self.blocked.begin_ns.saturating_sub(SLACK_NS)
    }

    /// A request that completed since then completed just when the wait ended.
    fn just_before_waking_ns(&self) -> u64 {
        let from_ns = self.blocked.woken_ns.saturating_sub(AT_ONCE_NS);
        from_ns.max(self.blocked.begin_ns)
    }

    fn for_writeback(&mut self, file: FileId, index: u64) -> Result<Found, Error> {
        let found = self.on_page(file, index, "writeback")?;
        let is_syncing = self.is_journal || self.blocked.call.is_some_and(syncs);
        let class = match &found.request {
            _ if file.is_block_device() => Class::Meta,
            Some(done) if is_syncing && done.sync && done.submitter == Some(self.task) => {
                Class::Service
            }
            _ if is_syncing => Class::Sync,
            _ => Class::Data,
        };
        Ok(Found { class, ..found })
    }

    fn for_page_lock(&mut self, file: FileId, index: u64) -> Result<Found, Error> {
        let mut found = self.on_page(file, index, "page lock")?;
        if found.request.is_none() {
            found = self.near_page(found);
        }
        found.wants_request = false;
        found.class = match &found.request {
            Some(done) if done.op == Op::Write => Class::Data,
            Some(_) => Class::Service,
            None => Class::Lock,
        };
        Ok(found)
    }

    fn on_page(&mut self, file: FileId, index: u64, reason: &'static str) -> Result<Found, Error> {
        let id = self.context.file(file)?;
        let recent = &self.context.recent;
        let request = recent.awaited_with_page(id, index, self.since_ns());
        Ok(Found {
            reason,
            file: Some(id),
            page: Some(index),
            wants_request: true,
            ..Found::by(request)
        })
    }

    /// Finds the request for a read page, which may be a guess (`bpf/waits.h`). If the wait ended
    /// just when a request with other pages of the file did, it was for that request.
    fn near_page(&self, found: Found) -> Found {
        let (from_ns, to_ns) = (self.just_before_waking_ns(), self.blocked.woken_ns);
        let recent = &self.context.recent;
        let near = |file| recent.with_file(file, from_ns, to_ns);
        match found.file.and_then(near) {
            Some(done) => Found {
                reason: found.reason,
                file: found.file,
                ..Found::by(Some(done))
            },
            None => found,
        }
    }

    fn for_block(&self, dev: Dev, block: u64, block_bytes: u32) -> Found {
        let sector = block.saturating_mul(u64::from(block_bytes) / SECTOR_BYTES);
        let (disk, sector) = match self.partitions.get(&dev) {
            Some((disk, start)) => (*disk, start + sector),
            None => (dev, sector),
        };
        let recent = &self.context.recent;
        let request = recent.with_sector(disk, sector, self.since_ns());
        Found {
            class: match request {
                // The task reads the block, or another task reads it for both.
                Some(done) if done.op == Op::Read => Class::Service,
                Some(done) if done.submitter == Some(self.task) => Class::Service,
                // The journal's thread waits for the blocks that it wrote.
                None if self.is_journal => Class::Service,
                _ => Class::Meta,
            },
            reason: "buffer",
            wants_request: true,
            ..Found::by(request)
        }
    }

    /// A wait for the commit of a file system's journal that was in progress.
    fn for_commit_of(&self, dev: Dev, class: Class, reason: &'static str) -> Found {
        let (begin_ns, end_ns) = (self.blocked.begin_ns, self.event.time_ns);
        let commit = self.journal.under_way(dev, begin_ns, end_ns);
        Found {
            commit: commit.map(|(commit, _)| commit),
            other: commit.and_then(|(_, task)| task),
            ..plain(class, reason)
        }
    }

    fn for_commit(&mut self, transaction: Transaction) -> Found {
        let commit = self.journal.id(transaction);
        Found {
            commit: Some(commit),
            other: self.journal.task(commit),
            ..plain(Class::JournalCommit, "journal commit")
        }
    }

    /// A wait for direct I/O, or for what was submitted before. Without any of it in progress an
    /// io_uring waits for events, such as a client's words.
    fn for_own_requests(&self) -> Found {
        let request = self.own_request(self.since_ns());
        let process = self.context.tasks.get(self.event.thread);
        let rings = &self.context.calls.rings;
        let is_idle = self.blocked.call == Some(CallKind::IoUringEnter)
            && request.is_none()
            && process.is_some_and(|it| !rings.worked(it.process, self.blocked.begin_ns));
        Found {
            request,
            ..match is_idle {
                true => plain(Class::Other, "events"),
                false => plain(Class::Service, "direct I/O"),
            }
        }
    }

    fn for_own_bio(&self, op: Op) -> Found {
        let request = self.own_request(self.since_ns());
        let found = match op {
            // A discard that a program asks for itself comes from an ioctl, which is not recorded.
            Op::Discard | Op::SecureErase if self.blocked.call.is_some() || self.is_kernel => {
                plain(Class::Discard, "own discard")
            }
            Op::Discard | Op::SecureErase => plain(Class::Service, "own discard"),
            _ => plain(Class::Service, "own bio"),
        };
        Found { request, ..found }
    }

    /// Classifies a wait in a place that has no class, as far as its end tells; its stack may tell
    /// more ([`complete`]). If it ended just when the task's own request did, or one with pages of
    /// the file that it calls for, it was for that request.
    fn elsewhere(&self, stack: Option<u32>) -> Found {
        let found = Found {
            stack: stack.map(u64::from),
            ..plain(Class::Other, "other")
        };
        if self.is_woken_by_journal() {
            return Found {
                class: Class::JournalCommit,
                ..found
            };
        }
        let (from_ns, to_ns) = (self.just_before_waking_ns(), self.blocked.woken_ns);
        let own = self.own_request(from_ns);
        if let Some(own) = own.filter(|done| done.completed_ns <= to_ns) {
            return Found {
                class: Class::Service,
                request: Some(own),
                ..found
            };
        }
        let file = self
            .call
            .and_then(|call| self.context.calls.get(call)?.file);
        let of_file =
            file.and_then(|(_, file)| self.context.recent.with_file(file, from_ns, to_ns));
        Found {
            class: found.class,
            reason: found.reason,
            stack: found.stack,
            ..Found::by(of_file)
        }
    }

    fn is_woken_by_journal(&self) -> bool {
        let waker = self.context.tasks.get(self.blocked.waker);
        self.call.is_some() && waker.is_some_and(Task::is_journal)
    }

    fn own_request(&self, since_ns: u64) -> Option<Completed> {
        let recent = &self.context.recent;
        recent.submitted_by(self.task, since_ns).cloned()
    }

    /// The class that the task at the other end waited for itself, and the `task_id` of that task.
    fn blocker(
        &self,
        history: &History,
        found: &Found,
        parts: Parts,
    ) -> (Option<Class>, Option<u64>) {
        // What a stack tells of comes last.
        let may_be = found.stack.is_some() && found.request.is_none();
        let is_indirect = is_indirect(found.class) || may_be || found.reason == FLUSHER;
        let not_itself = |task: &u64| *task != self.task;
        let other = found.other.filter(not_itself);
        let waker = self.context.tasks.latest(self.blocked.waker);
        let waker = waker.filter(|task| is_indirect && not_itself(task));
        let (begin_ns, woken_ns) = (self.blocked.begin_ns, self.blocked.woken_ns);
        let cause = other
            .or(waker)
            .filter(|_| is_indirect)
            .and_then(|blocker| history.mostly(blocker, begin_ns, woken_ns));
        let other = other.or_else(|| self.culprit(found, parts)).or(waker);
        (cause, other)
    }

    /// The other task that the device worked for most while this task waited for a free device or
    /// queue. None if it waited for something else.
    fn culprit(&self, found: &Found, parts: Parts) -> Option<u64> {
        let (begin_ns, end_ns) = (self.blocked.begin_ns, self.blocked.woken_ns);
        let recent = &self.context.recent;
        match (found.class, &found.request) {
            (Class::Service, Some(done)) if parts.block_ns > 0 => {
                let (from_ns, to_ns) = (done.queued_ns.max(begin_ns), done.issued_ns.min(end_ns));
                recent.busiest(Some(done.dev), self.task, from_ns, to_ns)
            }
            (Class::Sync, None)
            | (Class::Tag | Class::QueueThrottle | Class::DirtyThrottle | Class::Reclaim, _) => {
                recent.busiest(None, self.task, begin_ns, end_ns)
            }
            _ => None,
        }
    }

    /// The row of the wait, but for its cause and the task at the other end.
    fn row(&self, call: Option<u64>, found: &Found, parts: Parts) -> tables::Wait {
        let of_call = call.and_then(|call| self.context.calls.get(call)?.file);
        tables::Wait {
            task_id: self.task,
            syscall_id: call,
            class: found.class,
            reason: found.reason,
            begin_ns: self.blocked.begin_ns,
            woken_ns: self.blocked.woken_ns,
            end_ns: self.event.time_ns,
            file_id: found.file.or(of_call.map(|(_, file)| file)),
            page_index: found.page,
            request_id: found.request.as_ref().map(|done| done.request),
            commit_id: found.commit,
            before_ns: parts.before_ns,
            block_ns: parts.block_ns,
            device_ns: parts.device_ns,
            driver_ns: parts.driver_ns,
            stack_id: found.stack,
            iowait: self.blocked.iowait,
            ..tables::Wait::default()
        }
    }
}

/// Adds a wait that ended at `end_ns` to the times of its call, and links the call to the commit
/// that it waited for.
fn ended_in_call(
    context: &mut Context,
    call: u64,
    end_ns: u64,
    found: &Found,
    (parts, blocked): (Parts, &Blocked),
) -> Result<(), Error> {
    if let Some(call) = context.calls.get_mut(call) {
        charge(&mut call.row, found.class, parts);
        call.row.blocked_ns += blocked.woken_ns.saturating_sub(blocked.begin_ns);
        call.row.runqueue_ns += end_ns.saturating_sub(blocked.woken_ns);
    }
    match (found.class, found.commit) {
        (Class::JournalCommit, Some(commit_id)) => context.rows.store.add(&tables::CommitCall {
            commit_id,
            syscall_id: call,
            role: "waited",
            time_ns: end_ns,
        }),
        _ => Ok(()),
    }
}

/// Adds the parts of a wait to the times of its call by layer.
fn charge(times: &mut tables::Syscall, class: Class, parts: Parts) {
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
        | Class::Frozen
        | Class::Other => &mut times.file_system_ns,
    };
    *before += parts.before_ns;
}

fn plain(class: Class, reason: &'static str) -> Found {
    Found {
        class,
        reason,
        ..Found::default()
    }
}

/// Whether it waits for another task, which may itself be blocked.
fn is_indirect(class: Class) -> bool {
    matches!(
        class,
        Class::JournalHandle | Class::JournalCommit | Class::Lock | Class::Frozen | Class::Discard
    )
}

/// Sets the class of waits that only the stack tells, and the file of waits that only their call
/// tells. Stacks and the files of calls may be told as late as the end of a recording, so this runs
/// last.
pub fn complete(store: &Store) -> Result<(), Error> {
    let database = store.database();
    let mut stacks = database.prepare("SELECT stack_id, functions FROM stacks")?;
    let stacks: Vec<(i64, String)> = stacks
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    database.execute_batch(
        "UPDATE waits SET file_id = (SELECT file_id FROM syscalls
             WHERE syscalls.syscall_id = waits.syscall_id)
         WHERE file_id IS NULL AND syscall_id IS NOT NULL",
    )?;
    // Who syncs and waits for pages that it has sent itself waits for its own request.
    let mut update = database.prepare(
        "UPDATE waits SET class = ?1 WHERE stack_id = ?2
             AND NOT (class = 'service' AND ?1 = 'D_sync')",
    )?;
    let mut forget = database.prepare(
        "UPDATE waits SET other_task_id = NULL, cause = NULL
             WHERE stack_id = ?1 AND request_id IS NULL AND class <> 'I_jcommit'",
    )?;
    for (stack, functions) in stacks {
        let functions: Vec<&str> = functions.split(" < ").collect();
        let class = Class::of_stack(&functions);
        if let Some(class) = class {
            update.execute(params![class.name(), stack])?;
        }
        // Whose interrupt woke it has nothing to do with it.
        if !class.is_some_and(is_indirect) {
            forget.execute(params![stack])?;
        }
    }
    Ok(())
}
