//! Page versions against a model that keeps an owner for each byte. Writes, writeback, requests and
//! truncations come in any order. Each call's part in each version must end in exactly one kind.

use crate::synthetic::*;
use iopro::event::*;
use iopro::link::Linker;
use iopro::recording::Ending;
use iopro::store::Store;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Small pages, so that all ways to cover a page occur.
const PAGE_BYTES: u64 = 8;
const PAGES: u64 = 6;

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64),
    Clean(u64, u64),
    Issue,
    Complete,
    Truncate(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = PAGES * PAGE_BYTES;
    prop_oneof![
        5 => (0..bytes, 1..3 * PAGE_BYTES).prop_map(move |(start, length)| {
            Step::Write(start, length.min(bytes - start))
        }),
        2 => (0..PAGES, 1..=PAGES).prop_map(|(first, count)| {
            Step::Clean(first, count.min(PAGES - first))
        }),
        2 => Just(Step::Issue),
        1 => Just(Step::Complete),
        1 => (0..bytes).prop_map(Step::Truncate),
    ]
}

/// `syscall_id` of the owner of each byte of a dirty page; 0 for none.
type Owners = [u64; PAGE_BYTES as usize];

fn calls_in(owners: &Owners) -> BTreeSet<u64> {
    owners.iter().copied().filter(|call| *call != 0).collect()
}

/// The page cache, and the links that the tables must have.
struct Model {
    /// Pages that become dirty and are taken together, though a call may change only some.
    folio_pages: u64,
    dirty_folios: BTreeSet<u64>,
    live: BTreeMap<u64, Owners>,
    taken: BTreeMap<u64, Owners>,
    in_device: Vec<(u64, Io, BTreeSet<u64>)>,
    calls: u64,
    requests: u64,
    /// Expected number of each (call, page, kind, request).
    fates: BTreeMap<(u64, u64, &'static str, u64), u64>,
}

impl Model {
    fn new(folio_pages: u64) -> Model {
        Model {
            folio_pages,
            dirty_folios: BTreeSet::new(),
            live: BTreeMap::new(),
            taken: BTreeMap::new(),
            in_device: Vec::new(),
            calls: 0,
            requests: 0,
            fates: BTreeMap::new(),
        }
    }

    fn fate(&mut self, call: u64, page: u64, kind: &'static str, request: u64) {
        *self.fates.entry((call, page, kind, request)).or_default() += 1;
    }

    fn step(&mut self, stream: &mut Stream, step: &Step) {
        match *step {
            Step::Write(start, length) => self.write(stream, start, length),
            Step::Clean(first, count) => self.clean(stream, first, count),
            Step::Issue => self.issue(stream),
            Step::Complete => self.complete(stream),
            Step::Truncate(from) => self.truncate(stream, from),
        }
    }

    fn write(&mut self, stream: &mut Stream, start: u64, length: u64) {
        self.calls += 1;
        let call = Stream::call(CallKind::Pwrite64, file(10), start, length);
        let begin = stream.enter(APP, &call);
        for page in start / PAGE_BYTES..(start + length).div_ceil(PAGE_BYTES) {
            let folio = page / self.folio_pages;
            if self.dirty_folios.insert(folio) {
                let first = folio * self.folio_pages;
                stream.dirtied(APP, file(10), first, self.folio_pages);
            }
            let owners = self.live.entry(page).or_default();
            let before = calls_in(owners);
            for (byte, owner) in owners.iter_mut().enumerate() {
                let at = page * PAGE_BYTES + byte as u64;
                if at >= start && at < start + length {
                    *owner = self.calls;
                }
            }
            let after = calls_in(owners);
            for gone in before.difference(&after) {
                self.fate(*gone, page, "overwritten", 0);
            }
        }
        stream.exit(APP, call, begin, length as i64);
    }

    fn clean(&mut self, stream: &mut Stream, first: u64, count: u64) {
        for folio in first / self.folio_pages..(first + count).div_ceil(self.folio_pages) {
            let first = folio * self.folio_pages;
            let pages = first..first + self.folio_pages;
            let mut in_device = self.in_device.iter();
            let busy = pages.clone().any(|page| self.taken.contains_key(&page))
                || in_device.any(|(_, _, busy)| pages.clone().any(|page| busy.contains(&page)));
            if busy || !self.dirty_folios.remove(&folio) {
                continue;
            }
            stream.cleaned(KWORKER, file(10), first, self.folio_pages);
            for page in pages {
                if let Some(owners) = self.live.remove(&page) {
                    self.taken.insert(page, owners);
                }
            }
        }
    }

    fn issue(&mut self, stream: &mut Stream) {
        let taken = std::mem::take(&mut self.taken);
        if taken.is_empty() {
            return;
        }
        self.requests += 1;
        let write = io(Op::Write, 0, 0, taken.len() as u64 * PAGE_BYTES);
        let bio = stream.queue(KWORKER, write);
        let parts: Vec<_> = taken
            .keys()
            .map(|page| (bio, Some((file(10), *page)), PAGE_BYTES))
            .collect();
        let request = stream.issue(write, &parts);
        for (page, owners) in &taken {
            for call in calls_in(owners) {
                self.fate(call, *page, "write", self.requests);
            }
        }
        self.in_device
            .push((request, write, taken.into_keys().collect()));
    }

    fn complete(&mut self, stream: &mut Stream) {
        if !self.in_device.is_empty() {
            let (request, write, _) = self.in_device.remove(0);
            stream.complete(request, write);
        }
    }

    /// The kernel waits for pages under writeback first, so it throws away only dirty ones. It splits
    /// a folio in which a file ends, so that the model ends it between folios, if they are large.
    fn truncate(&mut self, stream: &mut Stream, from: u64) {
        if !self.taken.is_empty() {
            return;
        }
        let folio_bytes = self.folio_pages * PAGE_BYTES;
        let from = match self.folio_pages {
            1 => from,
            _ => from.next_multiple_of(folio_bytes),
        };
        self.dirty_folios.retain(|folio| folio * folio_bytes < from);
        stream.push(
            APP,
            What::Truncated(Truncated {
                file: file(10),
                from_bytes: from,
                to_bytes: u64::MAX,
                removed: false,
            }),
        );
        for page in from / PAGE_BYTES..PAGES {
            let Some(mut owners) = self.live.remove(&page) else {
                continue;
            };
            let before = calls_in(&owners);
            for (byte, owner) in owners.iter_mut().enumerate() {
                if page * PAGE_BYTES + byte as u64 >= from {
                    *owner = 0;
                }
            }
            let after = calls_in(&owners);
            for gone in before.difference(&after) {
                self.fate(*gone, page, "truncated", 0);
            }
            if page * PAGE_BYTES < from {
                self.live.insert(page, owners);
            }
        }
    }

    fn end(&mut self) {
        let left = self.live.iter().chain(&self.taken);
        let left: Vec<(u64, Owners)> = left.map(|(page, owners)| (*page, *owners)).collect();
        for (page, owners) in left {
            for call in calls_in(&owners) {
                self.fate(call, page, "pending", 0);
            }
        }
    }
}

/// Number of each (call, page, kind, request) in the tables.
type Fates = BTreeMap<(u64, u64, String, u64), u64>;

/// Links of the tables, one for each page.
fn linked(stream: &Stream) -> (Fates, Tables) {
    let mut header = header();
    header.page_bytes = PAGE_BYTES;
    let mut linker = Linker::new(&header, None, Store::temporary().unwrap()).unwrap();
    for event in &stream.events {
        linker.event(event).unwrap();
    }
    let end_ns = stream.now;
    let tables = Tables(linker.finish(Some(Ending::Complete { end_ns })).unwrap());
    let mut fates = BTreeMap::new();
    {
        // Rows of kind `kernel` and `unrecorded` have numbers, too.
        let mut statement = tables
            .0
            .database()
            .prepare(
                "SELECT dense_rank() OVER (ORDER BY syscalls.begin_ns), page_index, links.kind, pages,
                     coalesce(request_id, 0)
                 FROM syscalls LEFT JOIN links USING (syscall_id) WHERE syscalls.kind = 'pwrite64'",
            )
            .unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let Some(first) = row.get::<_, Option<u64>>(1).unwrap() else {
                continue;
            };
            let pages: u64 = row.get(3).unwrap();
            for page in first..first + pages {
                let key = (
                    row.get(0).unwrap(),
                    page,
                    row.get(2).unwrap(),
                    row.get(4).unwrap(),
                );
                *fates.entry(key).or_default() += 1;
            }
        }
    }
    (fates, tables)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_part_in_a_version_ends_as_the_model_says(
        steps in prop::collection::vec(step(), 1..60),
        folio_pages in 1..=3u64,
    ) {
        let mut stream = Stream::new();
        let mut model = Model::new(folio_pages);
        for step in &steps {
            model.step(&mut stream, step);
        }
        model.end();
        let expected: Fates = model
            .fates
            .iter()
            .map(|((call, page, kind, request), count)| {
                ((*call, *page, (*kind).to_owned(), *request), *count)
            })
            .collect();
        let (found, tables) = linked(&stream);
        prop_assert_eq!(&found, &expected);
        let parts: u64 = expected.values().sum();
        prop_assert_eq!(
            tables.ask("SELECT coalesce(sum(dirtied_pages), 0) FROM syscalls"),
            [parts.to_string()]
        );
    }

    /// Events of a recording may be lost. The others are linked, and no part in a version is
    /// counted twice.
    #[test]
    fn lost_events_are_no_error(
        steps in prop::collection::vec(step(), 1..60),
        lost in prop::collection::vec(prop::bool::weighted(0.1), 400),
        folio_pages in 1..=3u64,
    ) {
        let mut stream = Stream::new();
        let mut model = Model::new(folio_pages);
        for step in &steps {
            model.step(&mut stream, step);
        }
        let mut lost = lost.iter();
        stream.events.retain(|_| !matches!(lost.next(), Some(true)));
        let (_, tables) = linked(&stream);
        prop_assert_eq!(
            tables.ask("SELECT syscall_id, linked, dirtied_pages
                        FROM (SELECT syscall_id, sum(pages) AS linked FROM links
                        WHERE kind IN ('write', 'overwritten', 'truncated', 'pending', 'unlinked')
                        GROUP BY 1) JOIN syscalls USING (syscall_id) WHERE linked <> dirtied_pages"),
            [""; 0]
        );
    }
}
