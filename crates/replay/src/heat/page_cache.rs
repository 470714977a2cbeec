//! A page cache: what of a use reaches the device, and what its host knows then.
//!
//! Pages are kept by when they were used last. Dirty ones are written when they have expired, when
//! too many are dirty, when their memory is needed, or when somebody synchronizes them.

use super::{Access, Act, Heat, Kind, Sent, What};
use crate::ahead::Steps;
use crate::flash::Range;
use std::collections::{BTreeMap, HashMap};

/// Largest command of writeback, and of a read.
const PIECE_PAGES: u32 = 128;
/// Dirty pages at which writeback begins, in per cent of the memory, and those at which it ends.
const MOST_DIRTY_PERCENT: u32 = 20;
const LEFT_DIRTY_PERCENT: u32 = 10;
/// Most ranges of an announcement (`FTL_MAX_RANGES`).
const MOST_RANGES: usize = 1024;

struct Page {
    used: u64,
    /// Uses since it came into the cache.
    uses: u32,
    /// Time since which it is dirty, and writes since then.
    dirty: Option<(u64, u32)>,
    kind: Kind,
}

/// The page cache of a host.
pub struct PageCache {
    capacity: usize,
    steps: Steps,
    pages: HashMap<u32, Page>,
    /// Pages by the number of their last use.
    by_use: BTreeMap<u64, u32>,
    /// Dirty pages by the time since which they are, then in the order of their addresses.
    dirty: BTreeMap<(u64, u32), ()>,
    next_use: u64,
    now_ns: u64,
    next_step_ns: u64,
    /// Time of the last write of a page to the device.
    written_ns: HashMap<u32, u64>,
    /// Clean pages that left the cache since the last step though they had been used again.
    missed: Vec<u32>,
    sent: Vec<Sent>,
}

impl PageCache {
    /// A cache of so many pages.
    pub fn new(capacity: usize, steps: Steps) -> Self {
        PageCache {
            capacity: capacity.max(1),
            steps,
            pages: HashMap::new(),
            by_use: BTreeMap::new(),
            dirty: BTreeMap::new(),
            next_use: 0,
            now_ns: 0,
            next_step_ns: 0,
            written_ns: HashMap::new(),
            missed: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// What the accesses make the host send, in the order of the times.
    pub fn pass(mut self, accesses: &[Access]) -> Vec<Sent> {
        for access in accesses {
            while self.next_step_ns <= access.time_ns {
                self.now_ns = self.next_step_ns;
                self.step();
                self.next_step_ns += self.steps.step_ns;
            }
            self.now_ns = access.time_ns;
            self.take(access);
        }
        self.sent
    }

    fn take(&mut self, access: &Access) {
        let range = access.first..access.first + access.pages;
        match access.act {
            Act::Read => {
                let missing: Vec<u32> = range
                    .clone()
                    .filter(|it| !self.pages.contains_key(it))
                    .collect();
                for extent in extents(&missing) {
                    self.push(true, What::Read, extent, Kind::Other, Heat::Unknown);
                }
                range.for_each(|page| self.touch(page, access.kind));
            }
            Act::Write => {
                for page in range {
                    self.touch(page, access.kind);
                    self.soil(page);
                }
                self.limit_dirty();
            }
            Act::Sync => {
                let dirty = |page: &u32| self.pages.get(page).is_some_and(|it| it.dirty.is_some());
                let dirty: Vec<u32> = range.filter(dirty).collect();
                self.write(&dirty, true);
                self.send(true, What::Flush, Kind::Other, Heat::Unknown);
            }
            Act::Delete => {
                for page in range {
                    self.forget(page);
                    self.written_ns.remove(&page);
                }
                let discard = What::Discard(access.first, access.pages);
                self.send(false, discard, access.kind, Heat::Unknown);
            }
        }
    }

    /// The page is in the cache and was used just now.
    fn touch(&mut self, number: u32, kind: Kind) {
        self.next_use += 1;
        let page = self.pages.entry(number).or_insert(Page {
            used: 0,
            uses: 0,
            dirty: None,
            kind,
        });
        if page.used != 0 {
            self.by_use.remove(&page.used);
        }
        page.used = self.next_use;
        page.uses += 1;
        page.kind = kind;
        self.by_use.insert(self.next_use, number);
        while self.pages.len() > self.capacity {
            self.evict();
        }
    }

    fn soil(&mut self, number: u32) {
        let Some(page) = self.pages.get_mut(&number) else {
            return;
        };
        match &mut page.dirty {
            Some((_, writes)) => *writes += 1,
            None => {
                page.dirty = Some((self.now_ns, 1));
                self.dirty.insert((self.now_ns, number), ());
            }
        }
    }

    fn evict(&mut self) {
        let Some((_, &number)) = self.by_use.first_key_value() else {
            return;
        };
        let page = &self.pages[&number];
        if page.dirty.is_some() {
            let mut oldest: Vec<u32> = self.by_use.values().take(256).copied().collect();
            oldest.retain(|it| self.pages[it].dirty.is_some());
            oldest.sort_unstable();
            self.write(&oldest, false);
        } else if page.uses > 1 {
            self.missed.push(number);
        }
        self.forget(number);
    }

    fn forget(&mut self, number: u32) {
        let Some(page) = self.pages.remove(&number) else {
            return;
        };
        self.by_use.remove(&page.used);
        if let Some((since_ns, _)) = page.dirty {
            self.dirty.remove(&(since_ns, number));
        }
    }

    fn limit_dirty(&mut self) {
        let share = |percent: u32| self.capacity * percent as usize / 100;
        if self.dirty.len() <= share(MOST_DIRTY_PERCENT) {
            return;
        }
        let count = self.dirty.len() - share(LEFT_DIRTY_PERCENT);
        let mut oldest: Vec<u32> = self.dirty.keys().take(count).map(|it| it.1).collect();
        oldest.sort_unstable();
        self.write(&oldest, false);
    }

    /// Writes what has expired, and announces what will be written and what will be missed.
    fn step(&mut self) {
        let expired = |it: &&(u64, u32)| it.0 + self.steps.expire_ns <= self.now_ns;
        let keys = self.dirty.keys().take_while(expired);
        let mut expired: Vec<u32> = keys.map(|it| it.1).collect();
        expired.sort_unstable();
        self.write(&expired, false);

        let mut dirty: Vec<u32> = self.dirty.keys().map(|it| it.1).collect();
        dirty.sort_unstable();
        self.announce(&dirty, What::SoonInvalid);
        let mut missed = std::mem::take(&mut self.missed);
        missed.retain(|it| !self.pages.contains_key(it));
        missed.sort_unstable();
        missed.dedup();
        self.announce(&missed, What::Prefetch);
    }

    fn announce(&mut self, pages: &[u32], what: fn(Vec<Range>) -> What) {
        let range = |(src, pages)| Range { src, dst: 0, pages };
        let ranges = extents(pages).map(range).take(MOST_RANGES).collect();
        self.send(false, what(ranges), Kind::Other, Heat::Unknown);
    }

    fn send(&mut self, waited_for: bool, what: What, kind: Kind, heat: Heat) {
        self.sent.push(Sent {
            time_ns: self.now_ns,
            waited_for,
            what,
            kind,
            heat,
        });
    }

    /// Writes dirty pages, given in the order of their addresses; they are clean then.
    fn write(&mut self, pages: &[u32], waited_for: bool) {
        let alike: Vec<(u32, Kind, Heat)> = pages
            .iter()
            .map(|&number| (number, self.pages[&number].kind, self.heat(number)))
            .collect();
        let same = |one: &(u32, Kind, Heat), other: &(u32, Kind, Heat)| {
            (one.1, one.2) == (other.1, other.2)
        };
        for chunk in alike.chunk_by(same) {
            let numbers: Vec<u32> = chunk.iter().map(|it| it.0).collect();
            for extent in extents(&numbers) {
                self.push(waited_for, What::Write, extent, chunk[0].1, chunk[0].2);
            }
        }
        for &number in pages {
            let page = self.pages.get_mut(&number).and_then(|it| it.dirty.take());
            if let Some((since_ns, _)) = page {
                self.dirty.remove(&(since_ns, number));
            }
            self.written_ns.insert(number, self.now_ns);
        }
    }

    /// How soon the host expects a page to be written again: by the time since it was written last,
    /// and by how often apps wrote it while it was dirty.
    fn heat(&self, number: u32) -> Heat {
        let again = self.pages[&number].dirty.map_or(0, |it| it.1) > 1;
        let age_ns = self.written_ns.get(&number).map(|it| self.now_ns - it);
        match age_ns {
            Some(age_ns) if age_ns <= 4 * self.steps.expire_ns => Heat::Hot,
            Some(age_ns) if again || age_ns <= 40 * self.steps.expire_ns => Heat::Warm,
            None if again => Heat::Warm,
            _ => Heat::Unknown,
        }
    }

    fn push(
        &mut self,
        waited_for: bool,
        what: fn(u32, u32) -> What,
        (first, pages): (u32, u32),
        kind: Kind,
        heat: Heat,
    ) {
        for lba in (first..first + pages).step_by(PIECE_PAGES as usize) {
            let pages = PIECE_PAGES.min(first + pages - lba);
            self.send(waited_for, what(lba, pages), kind, heat);
        }
    }
}

/// Extents of pages that are given in order: first page and number of pages.
fn extents(pages: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    pages
        .chunk_by(|one, other| one + 1 == *other)
        .map(|run| (run[0], run.len() as u32))
}
