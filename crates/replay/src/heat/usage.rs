//! A phone's use as its apps see it: databases, a gallery, app starts and installations.
//!
//! Sizes are those of a phone of 16 GB, and shrink with the device.

use super::{Access, Act, Kind};
use sys::random::Random;

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Pages of the device for which the sizes below are.
const FULL_PAGES: u64 = 16 * 1024 * 256;

/// Number of databases, and sizes of one and of its write-ahead log, in pages.
const DATABASES: u64 = 8;
const DATABASE_PAGES: u64 = 4096;
const WAL_PAGES: u64 = 1024;
/// Small files of apps' state, which are rewritten and not synchronized.
const STATE_PAGES: u64 = 16_384;
const THUMBNAIL_PAGES: u64 = 8;
const THUMBNAILS: u64 = 6400;
const PHOTO_PAGES: u64 = 768;
const PHOTOS: u64 = 2000;
/// An app as installed; each of them has two places, of which the older one is given up.
const APPS: u64 = 6;
const APP_PAGES: u64 = 25_600;
const STARTED_EXTENTS: u64 = 200;
const EXTENT_PAGES: u64 = 32;

/// A file, or an area of files.
#[derive(Clone, Copy)]
struct Area {
    first: u64,
    pages: u64,
}

impl Area {
    fn part(self, index: u64, pages: u64) -> Area {
        Area {
            first: self.first + index * pages,
            pages,
        }
    }
}

struct Database {
    file: Area,
    wal: Area,
    /// Pages of the log that are written, and those of the database that are in it.
    logged: u64,
    changed: Vec<u64>,
}

struct Use {
    random: Random,
    accesses: Vec<Access>,
    end_ns: u64,
}

/// A number below `limit`; small ones are frequent: half of them are below an eighth of it.
fn skewed(random: &mut Random, limit: u64) -> u64 {
    const STEPS: u64 = 1 << 20;
    let part = random.below(STEPS) as f64 / STEPS as f64;
    ((limit as f64 * part * part * part) as u64).min(limit - 1)
}

/// Accesses of so many minutes on a device of this size, in the order of their times.
pub fn phone(capacity_pages: u32, minutes: u32, seed: u64) -> Vec<Access> {
    let scaled = |pages: u64| (pages * u64::from(capacity_pages) / FULL_PAGES).max(1);
    let mut next = 0;
    let mut area = |pages: u64| {
        let area = Area { first: next, pages };
        next += pages;
        area
    };
    let mut using = Use {
        random: Random::for_purpose(seed, "heat"),
        accesses: Vec::new(),
        end_ns: u64::from(minutes) * 60 * SECOND_NS,
    };
    let databases: Vec<Database> = (0..DATABASES)
        .map(|_| Database {
            file: area(scaled(DATABASE_PAGES).max(16)),
            wal: area(scaled(WAL_PAGES).max(16)),
            logged: 0,
            changed: Vec::new(),
        })
        .collect();
    let state = area(scaled(STATE_PAGES).max(16));
    let thumbnails = area(scaled(THUMBNAILS) * THUMBNAIL_PAGES);
    let photo_pages = scaled(PHOTO_PAGES).max(8);
    let photos = area(PHOTOS * photo_pages * scaled(PHOTO_PAGES) / photo_pages);
    let apps = area(2 * APPS * scaled(APP_PAGES).max(64));
    using.databases(databases);
    using.state(state);
    using.gallery(thumbnails, photos, photo_pages);
    using.apps(apps);
    using.accesses.sort_by_key(|it| it.time_ns);
    using.accesses
}

impl Use {
    fn push(&mut self, time_ns: u64, act: Act, kind: Kind, area: Area) {
        self.accesses.push(Access {
            time_ns,
            act,
            kind,
            first: area.first as u32,
            pages: area.pages as u32,
        });
    }

    /// Times with pauses of up to twice this, until the end.
    fn next_ns(&mut self, now_ns: &mut u64, mean_ns: u64) -> bool {
        *now_ns += self.random.below(2 * mean_ns);
        *now_ns < self.end_ns
    }

    /// Transactions: pages are read, appended to the log and synchronized. A full log is
    /// checkpointed: its pages are written to the database, and it begins again.
    fn databases(&mut self, mut databases: Vec<Database>) {
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 50 * MS_NS) {
            let which = skewed(&mut self.random, DATABASES) as usize;
            let database = &mut databases[which];
            for _ in 0..1 + self.random.below(6) {
                let page = skewed(&mut self.random, database.file.pages);
                self.push(
                    now_ns,
                    Act::Read,
                    Kind::Database,
                    database.file.part(page, 1),
                );
                database.changed.push(page);
            }
            let pages = 1 + self.random.below(6).min(database.wal.pages - 1);
            if database.logged + pages > database.wal.pages {
                self.checkpoint(now_ns, database);
            }
            let appended = Area {
                first: database.wal.first + database.logged,
                pages,
            };
            database.logged += pages;
            self.push(now_ns, Act::Write, Kind::Wal, appended);
            self.push(now_ns, Act::Sync, Kind::Wal, appended);
        }
    }

    fn checkpoint(&mut self, now_ns: u64, database: &mut Database) {
        database.changed.sort_unstable();
        database.changed.dedup();
        for page in std::mem::take(&mut database.changed) {
            self.push(
                now_ns,
                Act::Write,
                Kind::Database,
                database.file.part(page, 1),
            );
        }
        self.push(now_ns, Act::Sync, Kind::Database, database.file);
        database.logged = 0;
    }

    fn state(&mut self, state: Area) {
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 25 * MS_NS) {
            let page = skewed(&mut self.random, state.pages);
            self.push(now_ns, Act::Write, Kind::Other, state.part(page, 1));
        }
    }

    /// Thumbnails are looked at in tens, photos by themselves; new ones take the place of old ones.
    fn gallery(&mut self, thumbnails: Area, photos: Area, photo_pages: u64) {
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 2 * SECOND_NS) {
            for _ in 0..10 {
                let which = skewed(&mut self.random, thumbnails.pages / THUMBNAIL_PAGES);
                let thumbnail = thumbnails.part(which, THUMBNAIL_PAGES);
                self.push(now_ns, Act::Read, Kind::Media, thumbnail);
            }
        }
        let count = (photos.pages / photo_pages).max(1);
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 15 * SECOND_NS) {
            let which = skewed(&mut self.random, count);
            self.push(
                now_ns,
                Act::Read,
                Kind::Media,
                photos.part(which, photo_pages),
            );
        }
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 20 * SECOND_NS) {
            let photo = photos.part(self.random.below(count), photo_pages);
            self.push(now_ns, Act::Write, Kind::Media, photo);
        }
    }

    /// Each start reads the same extents of the app. An installation is written in 20 s and
    /// synchronized; then the older one is deleted.
    fn apps(&mut self, apps: Area) {
        let pages = apps.pages / (2 * APPS);
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 15 * SECOND_NS) {
            let app = apps.part(2 * skewed(&mut self.random, APPS), pages);
            for index in 0..STARTED_EXTENTS.min(pages / EXTENT_PAGES / 2) {
                let extent = app.part(2 * index, EXTENT_PAGES);
                self.push(now_ns, Act::Read, Kind::App, extent);
            }
        }
        let mut now_ns = 0;
        while self.next_ns(&mut now_ns, 40 * SECOND_NS) {
            let which = self.random.below(2 * APPS);
            let (new, old) = (apps.part(which, pages), apps.part(which ^ 1, pages));
            let piece = EXTENT_PAGES * 4;
            for index in 0..pages / piece {
                let time_ns = now_ns + index * 20 * SECOND_NS / (pages / piece);
                self.push(time_ns, Act::Write, Kind::App, new.part(index, piece));
            }
            now_ns += 20 * SECOND_NS;
            self.push(now_ns, Act::Sync, Kind::App, new);
            self.push(now_ns, Act::Delete, Kind::App, old);
        }
    }
}
