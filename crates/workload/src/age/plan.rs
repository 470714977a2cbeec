//! The plan: writes and removals of each session, as a pure function of the parameters.

use crate::age::apps::{APPS, App};
use crate::age::{Error, Use};
use std::collections::{BTreeMap, VecDeque};
use sys::random::Random;

/// Days between two updates of all apps (§6.1).
const UPDATE_DAYS: u32 = 10;

const PAGE_BYTES: u64 = sys::device::PAGE_BYTES as u64;
/// Bytes of a download or an installation between two writebacks.
const PIECE_BYTES: u64 = 128 << 10;
/// Smallest size that a share of the capacity becomes, in bytes.
const LEAST_BYTES: u64 = 64 << 10;

/// An operation on one file. Names are relative to the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes data, creates the file if it does not exist, and starts writeback. ext4 chooses the
    /// place at that time.
    Write {
        /// Name of the file.
        path: String,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Whether the data must be in flash before the next step (fdatasync).
        durably: bool,
    },
    /// Removes the file.
    Remove(String),
    /// Renames the first file to the second, which it replaces.
    Replace(String, String),
}

/// The plan's state: the phone's files so far.
pub struct Usage {
    of: Use,
    random: Random,
    /// Size of each file, in bytes.
    files: BTreeMap<String, u64>,
    bytes: u64,
    made: u64,
}

impl Usage {
    /// An empty phone.
    ///
    /// # Errors
    /// [`Error::TooSmall`].
    pub fn new(of: Use) -> Result<Self, Error> {
        let usage = Usage {
            random: Random::new(of.seed),
            of,
            files: BTreeMap::new(),
            bytes: 0,
            made: 0,
        };
        // A package exists twice while it is replaced.
        let apps_bytes = APPS
            .iter()
            .map(|app| {
                2 * usage.share(app.package_permille)
                    + usage.share(app.database_permille)
                    + usage.share(app.cache_permille)
            })
            .sum();
        match apps_bytes < of.target_bytes {
            true => Ok(usage),
            false => Err(Error::TooSmall {
                apps_bytes,
                target_bytes: of.target_bytes,
            }),
        }
    }

    /// A share of the capacity, in bytes of whole pages.
    fn share(&self, permille: u64) -> u64 {
        (self.of.capacity_bytes / 1000 * permille).max(LEAST_BYTES) / PAGE_BYTES * PAGE_BYTES
    }

    /// Size of all files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Installs the apps, and fills the phone with photos and music.
    pub fn install(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for app in &APPS {
            steps.extend(self.package(app));
        }
        while self.bytes < self.of.target_bytes {
            let photo = self.photo();
            steps.extend(photo);
        }
        steps
    }

    /// Steps of one session with one app, and of what other apps do meanwhile.
    pub fn session(&mut self, day: u32, session: u32) -> Vec<Step> {
        let number = u64::from(day) * u64::from(self.of.sessions) + u64::from(session);
        let app = &APPS[number as usize % APPS.len()];
        let mut jobs = vec![self.transactions(app), self.cached(app)];
        // Messages and mail arrive at any time.
        let other = &APPS[self.random.below(APPS.len() as u64) as usize];
        jobs.push(self.logged(other));
        if self.random.below(4) == 0 {
            jobs.push(self.photo());
        }
        if session == 0 && day > 0 && day.is_multiple_of(UPDATE_DAYS) {
            for app in &APPS {
                jobs.push(self.package(app));
            }
        }
        let mut steps = self.interleave(jobs);
        steps.extend(self.evicted(app));
        steps.extend(self.kept_to_target());
        steps
    }

    /// Mixes the steps of jobs at random; each job keeps its order.
    fn interleave(&mut self, jobs: Vec<Vec<Step>>) -> Vec<Step> {
        let mut jobs: Vec<VecDeque<Step>> = jobs.into_iter().map(VecDeque::from).collect();
        let mut steps = Vec::new();
        loop {
            jobs.retain(|job| !job.is_empty());
            if jobs.is_empty() {
                return steps;
            }
            let chosen = self.random.below(jobs.len() as u64) as usize;
            steps.extend(jobs[chosen].pop_front());
        }
    }

    /// Transactions of a database in rollback mode: write the journal, write pages, remove the
    /// journal.
    fn transactions(&mut self, app: &App) -> Vec<Step> {
        let database = format!("{}/data.db", app.name);
        let journal = format!("{database}-journal");
        let most_bytes = self.share(app.database_permille);
        let mut steps = Vec::new();
        for _ in 0..app.transactions {
            let pages = 1 + self.random.below(4);
            steps.push(self.commit(&journal, 0, pages * PAGE_BYTES));
            let size_bytes = self.size(&database);
            let grows = size_bytes < most_bytes && (size_bytes == 0 || self.random.below(3) == 0);
            let page = match grows {
                true => size_bytes / PAGE_BYTES,
                false => self.random.below(size_bytes / PAGE_BYTES),
            };
            let end = match grows {
                true => page + 4 * pages,
                false => (page + pages).min(size_bytes / PAGE_BYTES),
            };
            steps.push(self.commit(&database, page * PAGE_BYTES, (end - page) * PAGE_BYTES));
            steps.push(self.remove(&journal));
        }
        steps
    }

    /// Adds web pages and pictures to the cache.
    fn cached(&mut self, app: &App) -> Vec<Step> {
        let largest_pages = (self.share(app.cache_permille) / 16 / PAGE_BYTES).max(2);
        let mut steps = Vec::new();
        for _ in 0..app.cached {
            self.made += 1;
            let path = format!("{}/cache/{}", app.name, self.made);
            let bytes = (1 + self.random.below(largest_pages)) * PAGE_BYTES;
            steps.extend(self.new_file(&path, bytes, PIECE_BYTES / 4));
        }
        steps
    }

    /// Removes random files from the cache until it has its final size.
    fn evicted(&mut self, app: &App) -> Vec<Step> {
        let most_bytes = self.share(app.cache_permille);
        let prefix = format!("{}/cache/", app.name);
        let mut steps = Vec::new();
        loop {
            let cached = self.below_prefix(&prefix);
            let bytes: u64 = cached.iter().map(|path| self.files[path]).sum();
            if bytes <= most_bytes {
                return steps;
            }
            let chosen = self.random.below(cached.len() as u64) as usize;
            steps.push(self.remove(&cached[chosen]));
        }
    }

    fn logged(&mut self, app: &App) -> Vec<Step> {
        let path = format!("{}/log", app.name);
        if self.size(&path) > self.share(1) {
            return vec![self.remove(&path)];
        }
        (0..3)
            .map(|_| {
                let end = self.size(&path);
                self.write(&path, end, PAGE_BYTES)
            })
            .collect()
    }

    fn photo(&mut self) -> Vec<Step> {
        self.made += 1;
        let path = format!("photos/{}", self.made);
        let share = self.share(4);
        let bytes = share / 2 + self.random.below(share / PAGE_BYTES) * PAGE_BYTES;
        self.new_file(&path, bytes, PIECE_BYTES)
    }

    /// Installs or updates an app: the new package is written before the old one is removed.
    fn package(&mut self, app: &App) -> Vec<Step> {
        let path = format!("{}/package", app.name);
        let new = format!("{path}.new");
        let bytes = self.share(app.package_permille);
        let mut steps = self.new_file(&new, bytes, PIECE_BYTES);
        self.bytes -= self.size(&path);
        self.files.remove(&new);
        self.files.insert(path.clone(), bytes);
        steps.push(Step::Replace(new, path));
        steps
    }

    /// Removes photos until the files have their total size, as a user moves them elsewhere.
    fn kept_to_target(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while self.bytes > self.of.target_bytes {
            let photos = self.below_prefix("photos/");
            if photos.is_empty() {
                return steps;
            }
            let chosen = self.random.below(photos.len() as u64) as usize;
            steps.push(self.remove(&photos[chosen]));
        }
        steps
    }

    fn below_prefix(&self, prefix: &str) -> Vec<String> {
        let from = self.files.range(prefix.to_owned()..);
        from.map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(prefix))
            .collect()
    }

    fn new_file(&mut self, path: &str, bytes: u64, piece_bytes: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = 0;
        while at < bytes {
            let piece = piece_bytes.min(bytes - at);
            steps.push(self.write(path, at, piece));
            at += piece;
        }
        steps
    }

    fn size(&self, path: &str) -> u64 {
        self.files.get(path).copied().unwrap_or(0)
    }

    /// A durable write, as in a database's commit.
    fn commit(&mut self, path: &str, offset: u64, bytes: u64) -> Step {
        let mut step = self.write(path, offset, bytes);
        if let Step::Write { durably, .. } = &mut step {
            *durably = true;
        }
        step
    }

    fn write(&mut self, path: &str, offset: u64, bytes: u64) -> Step {
        let old = self.size(path);
        let new = old.max(offset + bytes);
        self.bytes += new - old;
        self.files.insert(path.to_owned(), new);
        Step::Write {
            path: path.to_owned(),
            offset,
            bytes,
            durably: false,
        }
    }

    fn remove(&mut self, path: &str) -> Step {
        self.bytes -= self.files.remove(path).unwrap_or(0);
        Step::Remove(path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(seed: u64, capacity_mib: u64, fill: u64) -> Use {
        Use {
            days: 30,
            sessions: 6,
            capacity_bytes: capacity_mib << 20,
            target_bytes: (capacity_mib << 20) / 100 * fill,
            seed,
        }
    }

    fn all(of: Use) -> Vec<Vec<Step>> {
        let mut usage = Usage::new(of).unwrap();
        let mut sessions = vec![usage.install()];
        for day in 0..of.days {
            sessions.extend((0..of.sessions).map(|session| usage.session(day, session)));
        }
        sessions
    }

    /// Applies a step to the sizes of files, and checks that it is valid.
    fn apply(files: &mut BTreeMap<String, u64>, step: &Step) {
        match step {
            Step::Write {
                path,
                offset,
                bytes,
                ..
            } => {
                let size = files.entry(path.clone()).or_default();
                assert!(*offset <= *size, "{path} gets a hole");
                assert!(*bytes > 0);
                *size = (*size).max(offset + bytes);
            }
            Step::Remove(path) => {
                assert!(files.remove(path).is_some(), "{path} is not there");
            }
            Step::Replace(new, old) => {
                let size = files.remove(new).expect("it was written");
                files.insert(old.clone(), size);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_step_makes_sense_and_the_fill_stays(
            seed in any::<u64>(), capacity_mib in 64_u64..2000, fill in 30_u64..90,
        ) {
            let of = of(seed, capacity_mib, fill);
            let mut files = BTreeMap::new();
            for steps in all(of) {
                steps.iter().for_each(|step| apply(&mut files, step));
                let bytes: u64 = files.values().sum();
                // The deviation is at most one photo.
                prop_assert!(bytes.abs_diff(of.target_bytes) < of.capacity_bytes / 50);
            }
        }
    }

    #[test]
    fn the_same_seed_is_the_same_use_and_another_one_is_another() {
        assert_eq!(all(of(1, 100, 80)), all(of(1, 100, 80)));
        assert_ne!(all(of(1, 100, 80)), all(of(2, 100, 80)));
    }

    #[test]
    fn all_apps_are_updated_every_ten_days() {
        let updates = all(of(3, 100, 80))
            .iter()
            .flatten()
            .filter(|step| matches!(step, Step::Replace(_, old) if old.ends_with("/package")))
            .count();
        assert_eq!(
            updates,
            APPS.len() * 3,
            "installed, and on the 10th and 20th day"
        );
    }

    #[test]
    fn apps_that_do_not_fit_are_refused() {
        assert!(matches!(
            Usage::new(of(1, 100, 10)),
            Err(Error::TooSmall { .. })
        ));
    }
}
