//! What a phone's flash goes through in months of use, played through the flash core in this
//! process until collection is in a steady state; the image of that is what the lab's devices
//! begin with.
//!
//! Three kinds of data share the device, in the order in which they come and at addresses that
//! are mixed, as a file system would have them:
//!
//! - half of what is mapped is *cold*: files that are written once and stay;
//! - a twenty-fifth is *hot*: databases, whose single pages are overwritten at random, a few at a
//!   time and then flushed, as SQLite does. A third of all pages written is that;
//! - the rest are files that come and go: written in order, deleted as a whole and discarded.
//!
//! Sizes of files are distributed log-normally, with a median of 1 MB. After each file and its
//! share of transactions the phone rests until the device has nothing more to do.

use crate::Error;
use crate::flash::{Command, Config, Counters, Flash, Image};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counts changes of what is played: images made by another version are others.
pub const VERSION: u32 = 1;

const MEDIAN_FILE_PAGES: u64 = 256;
const MOST_FILE_PAGES: u32 = 64 * 256;
/// Standard deviation of a file's size, in powers of two.
const DEVIATION: i64 = 2;
/// A file is at most such a part of the device.
const FILE_SHARE: u32 = 64;
const HOT_SHARE: u32 = 25;
/// Pages of a database.
const DATABASE_PAGES: u32 = 2048;
/// Pages of files for each page of a database.
const FILE_PAGES_PER_HOT: u32 = 2;
/// Pages that a transaction overwrites at most.
const MOST_TRANSACTION_PAGES: u64 = 8;

/// How full a device is, and how much was written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Share of the capacity that is mapped in the end.
    pub filled_percent: u32,
    /// Written after it was that full for the first time, in per cent of the capacity.
    pub overwritten_percent: u32,
}

/// A device with a past.
#[derive(Debug)]
pub struct Aged {
    /// To begin with.
    pub image: Image,
    /// What the device did since it was as full as in the end.
    pub counters: Counters,
}

impl History {
    /// Plays it; `progress` hears the pages written and how many there will be.
    ///
    /// # Errors
    /// [`Error::Flash`], [`Error::Full`] if the device cannot be that full,
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
    /// Pages that are to be mapped.
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
            random: Random(seed),
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

    /// Some, anywhere.
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

    /// A new file, cold until there are enough of those, in place of as much that is deleted;
    /// and then nothing.
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

    /// As full as it is to be.
    fn fill_up(&mut self) -> Result<(), Error> {
        let room = self.room();
        let extents = self.make_file(room)?;
        self.warm.push(extents);
        // A flush is for the writes that have ended.
        self.rest()?;
        self.command(Command::Flush)?;
        self.rest()
    }

    fn file_pages(&mut self) -> u32 {
        let most = MOST_FILE_PAGES.min(self.target / FILE_SHARE).max(1);
        let exponent = DEVIATION * self.random.normal();
        // Between powers of two it is linear: the same on any machine.
        let mantissa = MEDIAN_FILE_PAGES * (0x1_0000 + (exponent & 0xffff) as u64);
        let shift = 16 - (exponent >> 16);
        let pages = match u32::try_from(shift) {
            Ok(shift) => mantissa.checked_shr(shift).unwrap_or(0),
            Err(_) => mantissa.saturating_mul(1 << (-shift).min(20)),
        };
        pages.clamp(1, u64::from(most)) as u32
    }

    /// Where it is.
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

    /// From anywhere on the first free pages, which are enough.
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

    /// As soon as the device takes it.
    fn command(&mut self, command: Command) -> Result<(), Error> {
        while self.flash.submit(command, self.now_ns, |_| 0).is_none() {
            self.advance()?;
        }
        Ok(())
    }

    /// To the next thing that happens; false if that is nothing.
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

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Of a normal distribution with mean 0 and deviation 1, in 65536ths: twelve uniform
    /// numbers' sum.
    fn normal(&mut self) -> i64 {
        let sum: u64 = (0..12).map(|_| self.next() >> 48).sum();
        sum as i64 - 6 * 0x1_0000
    }
}

#[cfg(test)]
mod tests;
