//! The requests that were completed lately: whoever waited for one is told of
//! after it is done.

use crate::event::Dev;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// So many are remembered; a thread that is told of later than that many
/// completions after its wait waited for an unknown request.
const REMEMBERED: usize = 1 << 15;
/// No request has more pages in one run, or more sectors: how far back of a
/// place the request that covers it may begin.
const LONGEST_PAGES: u64 = 1 << 13;
const LONGEST_SECTORS: u64 = 1 << 16;
/// How many requests are looked at to find out who had the device.
const LOOKED_BACK: usize = 512;

/// Adjoining pages in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The file.
    pub file: u64,
    /// The first page.
    pub index: u64,
    /// How many.
    pub pages: u64,
    /// They are the file system's own, in the block device's cache.
    pub metadata: bool,
    /// The bio as it was queued. Its pages are done when all of it is, also
    /// where it was cut into several requests. 0 if it was not seen.
    pub bio: u64,
}

/// A request that is done.
#[derive(Clone, Debug)]
pub struct Done {
    /// Its number in the tables.
    pub request: u64,
    /// The disk.
    pub dev: Dev,
    /// Its first sector.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// What it did.
    pub op: &'static str,
    /// REQ_SYNC.
    pub sync: bool,
    /// When its first bio was queued.
    pub queued_ns: u64,
    /// When the driver got it.
    pub issued_ns: u64,
    /// When it was done.
    pub completed_ns: u64,
    /// The task that submitted it.
    pub submitter: Option<u64>,
    /// The task whose data it wrote, else the submitter.
    pub origin: Option<u64>,
    /// The commit that it belonged to.
    pub commit: Option<u64>,
    /// The pages in it.
    pub runs: Vec<Run>,
}

/// The latest of them.
#[derive(Debug, Default)]
pub struct Recent {
    done: VecDeque<Done>,
    /// How many were forgotten: the number of the first in `done`.
    forgotten: u64,
    by_page: BTreeMap<(u64, u64, u64), u64>,
    by_sector: BTreeMap<(Dev, u64, u64), u64>,
    /// The request that ended a bio.
    by_bio: HashMap<u64, u64>,
}

impl Recent {
    /// A request is done.
    pub fn push(&mut self, done: Done) {
        let number = self.forgotten + self.done.len() as u64;
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

    /// The request that this page had to wait for, if it was done after
    /// `since_ns`: of those that its bio was cut into the last one.
    pub fn awaited_with_page(&self, file: u64, index: u64, since_ns: u64) -> Option<&Done> {
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
    fn with_page(&self, file: u64, index: u64) -> Option<&Done> {
        let from = (file, index.saturating_sub(LONGEST_PAGES), 0);
        let near = self.by_page.range(from..=(file, index, u64::MAX)).rev();
        let covers = near.filter(|((_, start, _), pages)| start + **pages > index);
        let done = covers
            .take(LOOKED_BACK)
            .filter_map(|((.., number), _)| self.at(*number));
        done.max_by_key(|done| done.completed_ns)
    }

    /// The last request with this sector that was done after `since_ns`.
    pub fn with_sector(&self, dev: Dev, sector: u64, since_ns: u64) -> Option<&Done> {
        let from = (dev, sector.saturating_sub(LONGEST_SECTORS), 0);
        let near = self.by_sector.range(from..=(dev, sector, u64::MAX)).rev();
        let covers = near.filter(|((_, start, _), sectors)| start + **sectors > sector);
        let done = covers
            .take(LOOKED_BACK)
            .filter_map(|((.., number), _)| self.at(*number));
        done.filter(|done| done.completed_ns >= since_ns)
            .max_by_key(|done| done.completed_ns)
    }

    /// The last request that this task submitted and that was done after
    /// `since_ns`.
    pub fn submitted_by(&self, task: u64, since_ns: u64) -> Option<&Done> {
        let after = self
            .done
            .iter()
            .rev()
            .take_while(|done| done.completed_ns >= since_ns);
        after
            .take(LOOKED_BACK)
            .find(|done| done.submitter == Some(task))
    }

    /// The last request with pages of this file that was done between two moments.
    pub fn with_file(&self, file: u64, from_ns: u64, to_ns: u64) -> Option<&Done> {
        let after = self
            .done
            .iter()
            .rev()
            .take_while(|done| done.completed_ns >= from_ns);
        after
            .take(LOOKED_BACK)
            .filter(|done| done.completed_ns <= to_ns)
            .find(|done| done.runs.iter().any(|run| run.file == file))
    }

    /// The request that wrote this page and was queued after `since_ns`.
    pub fn written_since(&self, file: u64, index: u64, since_ns: u64) -> Option<u64> {
        let done = self.with_page(file, index)?;
        (done.op == "write" && done.queued_ns >= since_ns).then_some(done.request)
    }

    /// Whether this request was done after `since_ns`.
    pub fn was_done_since(&self, request: u64, since_ns: u64) -> bool {
        let after = self
            .done
            .iter()
            .rev()
            .take_while(|done| done.completed_ns >= since_ns);
        after.take(REMEMBERED).any(|done| done.request == request)
    }

    /// The task other than `not` for which the device worked most from
    /// `begin_ns` to `end_ns`.
    pub fn busiest(&self, dev: Option<Dev>, not: u64, begin_ns: u64, end_ns: u64) -> Option<u64> {
        let mut by_task: HashMap<u64, u64> = HashMap::new();
        let near = self
            .done
            .iter()
            .rev()
            .take_while(|done| done.completed_ns >= begin_ns);
        for done in near.take(LOOKED_BACK) {
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

    fn at(&self, number: u64) -> Option<&Done> {
        self.done.get(number.checked_sub(self.forgotten)? as usize)
    }
}
