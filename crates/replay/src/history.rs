//! The history of a phone's flash in months of use. It is played through the flash core in this
//! process until garbage collection is in a steady state. The lab's devices begin with the image of
//! that state.
//!
//! Three kinds of data share the device, in the order of their creation. Their addresses are mixed,
//! as a file system would mix them:
//!
//! - Half of the mapped pages are *cold*: files that are written once and stay.
//! - A twenty-fifth is *hot*: databases, whose single pages are overwritten at random, a few at a
//!   time and then flushed, as SQLite does. A third of all written pages is hot.
//! - The rest are files that come and go: written in order, deleted as a whole and discarded.
//!
//! Sizes of files have a log-normal distribution with a median of 1 MB. After each file and its
//! share of transactions the phone is idle until the device has no more work.

use crate::Error;
use crate::flash::{Command, Config, Counters, Flash, Image};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::random::Random;

/// Version of the history. It changes whenever the same arguments give a different image.
pub const VERSION: u32 = 1;

const MEDIAN_FILE_PAGES: u64 = 256;
const MOST_FILE_PAGES: u32 = 64 * 256;
/// Standard deviation of the logarithm of a file's size, in powers of two.
const DEVIATION: i64 = 2;
/// A file has at most one part in this many of the device.
const FILE_SHARE: u32 = 64;
const HOT_SHARE: u32 = 25;
/// Size of a database, in pages.
const DATABASE_PAGES: u32 = 2048;
/// Pages of files that are written for each page of a database.
const FILE_PAGES_PER_HOT: u32 = 2;
/// Most pages that a transaction overwrites.
const MOST_TRANSACTION_PAGES: u64 = 8;

/// Parameters of a history: the fill level and the amount of data written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Share of the capacity that is mapped at the end, in per cent.
    pub filled_percent: u32,
    /// Data written after the device first reached that level, in per cent of the capacity.
    pub overwritten_percent: u32,
}

/// The result of a history.
#[derive(Debug)]
pub struct Aged {
    /// Image of the device at the end.
    pub image: Image,
    /// Counters of the device, from the time it first reached its final fill level.
    pub counters: Counters,
}

impl History {
    /// Plays the history. `progress` is called with the number of pages written and that at the
    /// end.
    ///
    /// # Errors
    /// [`Error::Flash`], [`Error::Full`] if the device cannot reach that fill level,
    /// [`Error::Interrupted`].
    pub fn play(
        &self,
        config: &Config,
        seed: u64,
        progress: &mut dyn FnMut(u64, u64),
        stop: &AtomicBool,
    ) -> Result<Aged, Error> {
        let mut phone = Phone::new(config, self.filled_percent, seed)?;
        let share = |percent| u64::from(config.capacity_pages()) * u64::from(percent) / 100;
        let fill = share(self.filled_percent);
        let total = fill + share(self.overwritten_percent);
        phone.make_databases()?;
        while phone.room() > 0 {
            phone.file_and_transactions(stop)?;
            progress(phone.written, total);
        }
        phone.flash.reset_counters();
        let end = phone.written + share(self.overwritten_percent);
        while phone.written < end {
            phone.file_and_transactions(stop)?;
            progress(phone.written.min(total), total);
        }
        phone.fill_up()?;
        Ok(Aged {
            counters: phone.flash.counters(),
            image: phone.flash.image().map_err(Error::Image)?,
        })
    }
}

/// First page and number of pages.
type Extent = (u32, u32);

struct Phone {
    flash: Flash,
    now_ns: u64,
    random: Random,
    capacity: u32,
    /// Number of pages that are mapped at the end.
    target: u32,
    mapped: u32,
    free: BTreeMap<u32, u32>,
    warm: Vec<Vec<Extent>>,
    cold_pages: u32,
    hot: Vec<u32>,
    written: u64,
}

impl Phone {
    fn new(config: &Config, filled_percent: u32, seed: u64) -> Result<Self, Error> {
        let capacity = config.capacity_pages();
        let target = u64::from(capacity) * u64::from(filled_percent) / 100;
        Ok(Phone {
            flash: Flash::new(config)?,
            now_ns: 0,
            random: Random::new(seed),
            capacity,
            target: target as u32,
            mapped: 0,
            free: BTreeMap::from([(0, capacity)]),
            warm: Vec::new(),
            cold_pages: 0,
            hot: Vec::new(),
            written: 0,
        })
    }

    fn room(&self) -> u32 {
        self.target - self.mapped
    }

    /// Writes the databases, at random addresses.
    fn make_databases(&mut self) -> Result<(), Error> {
        while self.hot.len() < (self.target / HOT_SHARE) as usize {
            let pages = DATABASE_PAGES.min(self.target / HOT_SHARE);
            let extents = self.make_file(pages)?;
            for (first, pages) in extents {
                self.hot.extend(first..first + pages);
            }
        }
        Ok(())
    }

    /// Writes a new file and its share of transactions, then lets the device become idle. Files are
    /// cold until there are enough cold ones; later ones replace as many deleted pages.
    fn file_and_transactions(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let mut pages = self.file_pages();
        while self.room() < pages && !self.warm.is_empty() {
            self.delete_one()?;
        }
        pages = pages.min(self.room());
        let extents = self.make_file(pages)?;
        if self.cold_pages < self.target / 2 && self.random.below(2) == 0 {
            self.cold_pages += pages;
        } else if !extents.is_empty() {
            self.warm.push(extents);
        }
        self.transactions(pages / FILE_PAGES_PER_HOT)?;
        self.rest()
    }

    /// Writes a last file, so that the device reaches its fill level.
    fn fill_up(&mut self) -> Result<(), Error> {
        let room = self.room();
        let extents = self.make_file(room)?;
        self.warm.push(extents);
        // A flush covers only writes that have ended.
        self.rest()?;
        self.command(Command::Flush)?;
        self.rest()
    }

    fn file_pages(&mut self) -> u32 {
        let most = MOST_FILE_PAGES.min(self.target / FILE_SHARE).max(1);
        let exponent = DEVIATION * normal(&mut self.random);
        // Linear interpolation between powers of two gives the same result on any machine.
        let mantissa = MEDIAN_FILE_PAGES * (0x1_0000 + (exponent & 0xffff) as u64);
        let shift = 16 - (exponent >> 16);
        let pages = match u32::try_from(shift) {
            Ok(shift) => mantissa.checked_shr(shift).unwrap_or(0),
            Err(_) => mantissa.saturating_mul(1 << (-shift).min(20)),
        };
        pages.clamp(1, u64::from(most)) as u32
    }

    /// Writes a file of so many pages and returns its extents.
    fn make_file(&mut self, pages: u32) -> Result<Vec<Extent>, Error> {
        let extents = self.allocate(pages);
        self.mapped += pages;
        for &(first, pages) in &extents {
            self.write(first, pages)?;
        }
        Ok(extents)
    }

    fn delete_one(&mut self) -> Result<(), Error> {
        let chosen = self.random.below(self.warm.len() as u64) as usize;
        for (first, pages) in self.warm.swap_remove(chosen) {
            self.mapped -= pages;
            self.give_back(first, pages);
            self.command(Command::Discard { lba: first, pages })?;
        }
        Ok(())
    }

    fn transactions(&mut self, pages: u32) -> Result<(), Error> {
        let mut left = u64::from(pages);
        while left > 0 {
            let count = (1 + self.random.below(MOST_TRANSACTION_PAGES)).min(left);
            for _ in 0..count {
                let page = self.hot[self.random.below(self.hot.len() as u64) as usize];
                self.write(page, 1)?;
            }
            self.command(Command::Flush)?;
            left -= count;
        }
        Ok(())
    }

    /// Allocates free pages from a random address on; the caller knows that there are enough.
    fn allocate(&mut self, pages: u32) -> Vec<Extent> {
        let mut at = self.random.below(u64::from(self.capacity)) as u32;
        let mut extents = Vec::new();
        let mut left = pages;
        while left > 0 {
            let next = self.free.range(at..).next().or(self.free.first_key_value());
            let Some((&first, &length)) = next else {
                break;
            };
            let taken = length.min(left);
            self.free.remove(&first);
            if taken < length {
                self.free.insert(first + taken, length - taken);
            }
            extents.push((first, taken));
            left -= taken;
            at = first + taken;
        }
        extents
    }

    fn give_back(&mut self, mut first: u32, mut pages: u32) {
        if let Some((&before, &length)) = self.free.range(..first).next_back()
            && before + length == first
        {
            self.free.remove(&before);
            first = before;
            pages += length;
        }
        if let Some(length) = self.free.remove(&(first + pages)) {
            pages += length;
        }
        self.free.insert(first, pages);
    }

    fn write(&mut self, mut first: u32, mut pages: u32) -> Result<(), Error> {
        self.written += u64::from(pages);
        while pages > 0 {
            let now = pages.min(self.flash.command_pages());
            self.command(Command::Write {
                lba: first,
                pages: now,
                fua: false,
            })?;
            first += now;
            pages -= now;
        }
        Ok(())
    }

    /// Submits a command, and waits until the device takes it.
    fn command(&mut self, command: Command) -> Result<(), Error> {
        while self.flash.submit(command, self.now_ns, |_| 0).is_none() {
            self.advance()?;
        }
        Ok(())
    }

    /// Lets time go on to the next event; false if there is none.
    fn advance(&mut self) -> Result<bool, Error> {
        let next = self.flash.next_ns();
        if let Some(next_ns) = next {
            self.now_ns = next_ns;
            self.flash.run(next_ns);
        }
        let mut ended = false;
        while let Some((_, good)) = self.flash.take_done() {
            ended = true;
            if !good {
                return Err(Error::Full);
            }
        }
        Ok(next.is_some() || ended)
    }

    fn rest(&mut self) -> Result<(), Error> {
        while self.advance()? {}
        match self.flash.is_idle() {
            true => Ok(()),
            false => Err(Error::Full),
        }
    }
}

/// A normally distributed number with mean 0 and deviation 1, in units of 1/65536. It is the
/// sum of twelve uniform numbers.
fn normal(random: &mut Random) -> i64 {
    let sum: u64 = (0..12).map(|_| random.next_u64() >> 48).sum();
    sum as i64 - 6 * 0x1_0000
}

#[cfg(test)]
mod tests;
