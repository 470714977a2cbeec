//! Requests that completed lately: a wait for a request is told after the request is done.

use super::account::Span;
use crate::event::{Dev, Op};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Number of requests that are kept. A wait that is told more completions later has an unknown
/// request.
const REMEMBERED: usize = 1 << 15;
/// Most pages in a run, and most sectors in a request. A request that covers a place begins at most
/// this far before it.
const LONGEST_PAGES: u64 = 1 << 13;
const LONGEST_SECTORS: u64 = 1 << 16;
/// Most requests that are searched for the task that had the device.
const LOOKED_BACK: usize = 512;

/// Adjoining pages of one file in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// `file_id` of the pages' file.
    pub file: u64,
    /// Number of the first page in the file.
    pub index: u64,
    /// Number of pages.
    pub pages: u64,
    /// Nothing of its first and last page is left out.
    pub whole: bool,
    /// They are file system metadata, in the block device's cache.
    pub metadata: bool,
    /// Number of the bio as it was queued; 0 if it was not seen. Its pages are done when all its
    /// parts are, also if these are in several requests.
    pub bio: u64,
}

/// A request that is done.
#[derive(Clone, Debug)]
pub struct Completed {
    /// `request_id` in the tables.
    pub request: u64,
    /// Device number of the disk.
    pub dev: Dev,
    /// First sector on the disk, of 512 bytes.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Operation, as in the table `requests`.
    pub op: Op,
    /// Whether it had REQ_SYNC.
    pub sync: bool,
    /// When its first bio was queued.
    pub queued_ns: u64,
    /// When the driver got it.
    pub issued_ns: u64,
    /// When it was done.
    pub completed_ns: u64,
    /// `task_id` of the task that submitted it.
    pub submitter: Option<u64>,
    /// `task_id` of the task whose data it wrote, else of the submitter.
    pub origin: Option<u64>,
    /// `commit_id` of the commit that it belonged to.
    pub commit: Option<u64>,
    /// The runs of pages in it.
    pub runs: Vec<Run>,
}

/// The requests that completed last.
#[derive(Debug, Default)]
pub struct Recent {
    done: VecDeque<Completed>,
    /// Number of requests that were forgotten, which is the number of the first one in `done`.
    forgotten: u64,
    by_page: BTreeMap<(u64, u64, u64), u64>,
    by_sector: BTreeMap<(Dev, u64, u64), u64>,
    /// Number of the request that ended a bio.
    by_bio: HashMap<u64, u64>,
    /// Longest time from issue to completion of all requests so far.
    longest_ns: u64,
}

impl Recent {
    /// Adds a request that is done, and forgets the oldest one.
    pub fn push(&mut self, done: Completed) {
        let number = self.forgotten + self.done.len() as u64;
        let took_ns = done.completed_ns.saturating_sub(done.issued_ns);
        self.longest_ns = self.longest_ns.max(took_ns);
        for run in &done.runs {
            self.by_page
                .insert((run.file, run.index, number), run.pages);
            if run.bio != 0 {
                self.by_bio.insert(run.bio, number);
            }
        }
        self.by_sector
            .insert((done.dev, done.sector, number), done.sectors);
        self.done.push_back(done);
        if self.done.len() > REMEMBERED
            && let Some(old) = self.done.pop_front()
        {
            let number = self.forgotten;
            self.forgotten += 1;
            for run in &old.runs {
                self.by_page.remove(&(run.file, run.index, number));
                if self.by_bio.get(&run.bio) == Some(&number) {
                    self.by_bio.remove(&run.bio);
                }
            }
            self.by_sector.remove(&(old.dev, old.sector, number));
        }
    }

    /// The request that a waiter for this page had to wait for, if it was done after `since_ns`. If
    /// the page's bio was cut into several requests, it is the last of these.
    pub fn awaited_with_page(&self, file: u64, index: u64, since_ns: u64) -> Option<&Completed> {
        let done = self.with_page(file, index)?;
        let run = done
            .runs
            .iter()
            .find(|run| run.file == file && run.index <= index && index < run.index + run.pages)?;
        let last = self
            .by_bio
            .get(&run.bio)
            .and_then(|number| self.at(*number));
        last.or(Some(done))
            .filter(|last| last.completed_ns >= since_ns)
    }

    /// The last request with this page.
    fn with_page(&self, file: u64, index: u64) -> Option<&Completed> {
        let from = (file, index.saturating_sub(LONGEST_PAGES), 0);
        let near = self.by_page.range(from..=(file, index, u64::MAX)).rev();
        let covers = near.filter(|((_, start, _), pages)| start + **pages > index);
        let done = covers
            .take(LOOKED_BACK)
            .filter_map(|((.., number), _)| self.at(*number));
        done.max_by_key(|done| done.completed_ns)
    }

    /// The last request with this sector that was done after `since_ns`.
    pub fn with_sector(&self, dev: Dev, sector: u64, since_ns: u64) -> Option<&Completed> {
        let from = (dev, sector.saturating_sub(LONGEST_SECTORS), 0);
        let near = self.by_sector.range(from..=(dev, sector, u64::MAX)).rev();
        let covers = near.filter(|((_, start, _), sectors)| start + **sectors > sector);
        let done = covers
            .take(LOOKED_BACK)
            .filter_map(|((.., number), _)| self.at(*number));
        done.filter(|done| done.completed_ns >= since_ns)
            .max_by_key(|done| done.completed_ns)
    }

    /// The last request that this task submitted and that was done after `since_ns`.
    pub fn submitted_by(&self, task: u64, since_ns: u64) -> Option<&Completed> {
        self.since(since_ns)
            .take(LOOKED_BACK)
            .find(|done| done.submitter == Some(task))
    }

    /// The last request with pages of this file that was done between two moments.
    pub fn with_file(&self, file: u64, from_ns: u64, to_ns: u64) -> Option<&Completed> {
        self.since(from_ns)
            .take(LOOKED_BACK)
            .filter(|done| done.completed_ns <= to_ns)
            .find(|done| done.runs.iter().any(|run| run.file == file))
    }

    /// `request_id` of the request that wrote this page and was queued after `since_ns`.
    pub fn written_since(&self, file: u64, index: u64, since_ns: u64) -> Option<u64> {
        let done = self.with_page(file, index)?;
        (done.op == Op::Write && done.queued_ns >= since_ns).then_some(done.request)
    }

    /// Whether this request was done after `since_ns`.
    pub fn was_done_since(&self, request: u64, since_ns: u64) -> bool {
        self.since(since_ns).any(|done| done.request == request)
    }

    /// The task other than `not` that the device worked for longest from `begin_ns` to `end_ns`.
    pub fn busiest(&self, dev: Option<Dev>, not: u64, begin_ns: u64, end_ns: u64) -> Option<u64> {
        let mut by_task: HashMap<u64, u64> = HashMap::new();
        for done in self.since(begin_ns).take(LOOKED_BACK) {
            let Some(task) = done.origin.filter(|task| *task != not) else {
                continue;
            };
            let overlap = done
                .completed_ns
                .min(end_ns)
                .saturating_sub(done.issued_ns.max(begin_ns));
            if overlap > 0 && dev.is_none_or(|dev| dev == done.dev) {
                *by_task.entry(task).or_default() += overlap;
            }
        }
        by_task
            .into_iter()
            .max_by_key(|(task, ns)| (*ns, *task))
            .map(|(task, _)| task)
    }

    /// The times in which the driver had requests between two moments.
    pub fn overlapping(&self, begin_ns: u64, end_ns: u64) -> impl Iterator<Item = Span> {
        let first = self.done.partition_point(|it| it.completed_ns < begin_ns);
        // A request that was done later than this began after the end.
        let last_ns = end_ns.saturating_add(self.longest_ns);
        let until = self.done.partition_point(|it| it.completed_ns <= last_ns);
        let found = self.done.range(first..until.max(first));
        found
            .filter(move |it| it.issued_ns < end_ns)
            .map(|it| Span {
                dev: it.dev,
                owner: it.origin,
                discards: it.op == Op::Discard,
                issued_ns: it.issued_ns,
                completed_ns: it.completed_ns,
            })
    }

    /// The requests that were done after `since_ns`, the last first.
    fn since(&self, since_ns: u64) -> impl Iterator<Item = &Completed> {
        let last_first = self.done.iter().rev();
        last_first.take_while(move |done| done.completed_ns >= since_ns)
    }

    fn at(&self, number: u64) -> Option<&Completed> {
        self.done.get(number.checked_sub(self.forgotten)? as usize)
    }
}
