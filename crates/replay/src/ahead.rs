//! A phone's use on an aged device whose host may announce what it will write, in virtual time.
//!
//! Dirty data is known to the host from the moment an app writes it, and reaches the device when it
//! has expired. Reads and committed writes reach it at once, and somebody waits for them.

use crate::flash::{Command, Config, Counters, Flash, Image, Range};
use crate::{Error, Kind, Stopwatch, Times, Trace};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::random::Random;

const SECOND_NS: u64 = 1_000_000_000;
/// Size of a write by the kernel's writeback, in pages.
const PIECE_PAGES: u32 = 128;

/// One command of the use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time at which it is sent to the device.
    pub time_ns: u64,
    /// Command that the host sends then.
    pub command: Command,
    /// Of writeback: the time since which the host has known it. `None` if somebody waits for it.
    pub dirty_since_ns: Option<u64>,
}

impl Event {
    fn written_pages(&self) -> u32 {
        match self.command {
            Command::Write { pages, .. } => pages,
            _ => 0,
        }
    }
}

/// Data that the host knows it will write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Time since which it is dirty.
    pub since_ns: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// What a host knows at a step of its writeback.
#[derive(Debug)]
pub struct View<'a> {
    /// Time of the step.
    pub now_ns: u64,
    /// Data that are dirty now, each with its age.
    pub dirty: &'a [Known],
    /// Bytes of committed writes since the step before.
    pub direct_bytes: u64,
    /// Bytes that can be written before another block must be freed.
    pub free_bytes: u64,
}

/// What a host announces at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Bytes that it expects to write within the horizon.
    pub expected_bytes: u64,
    /// Bytes that the device is to have free; `None` announces nothing.
    pub reserve_bytes: Option<u64>,
}

/// Lengths of the kernel's writeback.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Time between two steps.
    pub step_ns: u64,
    /// Age at which dirty data is written: the horizon of announcements.
    pub expire_ns: u64,
}

/// Bytes expected in a horizon, and those that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prediction {
    /// Time of the step.
    pub time_ns: u64,
    /// Bytes that were expected.
    pub expected_bytes: u64,
    /// Bytes that were written in the horizon after it.
    pub came_bytes: u64,
}

/// Result of a use.
#[derive(Clone, Debug, Serialize)]
pub struct Used {
    /// Times of reads; None if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Times>,
    /// Times of committed writes and of their flushes, each by itself; None if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Times>,
    /// Times of writeback, from its step to its end; None if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writeback: Option<Times>,
    /// Counters of the device.
    pub counters: Counters,
    /// Pages programmed for each page written; None if none was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
    /// Expectations, in the order of their steps; those whose horizon is beyond the use are left out.
    pub predictions: Vec<Prediction>,
}

/// A generated hour of a phone, compressed: photos, films, an installation and a database.
pub fn phone(capacity_pages: u32, minutes: u32, seed: u64, steps: Steps) -> Vec<Event> {
    let mut phone = Phone {
        random: Random::for_purpose(seed, "phone"),
        capacity_pages,
        steps,
        events: Vec::new(),
    };
    let end_ns = u64::from(minutes) * 60 * SECOND_NS;
    phone.database(end_ns);
    phone.files(end_ns);
    phone.events.sort_by_key(|it| it.time_ns);
    phone.events
}

/// A block trace of a phone as such a use. Kernel threads write back what was dirty for as long as
/// the kernel lets it be; all other threads' requests are waited for.
pub fn traced(trace: &Trace, capacity_pages: u32, steps: Steps) -> Vec<Event> {
    let mut events = Vec::new();
    for operation in trace.operations() {
        let dirty_since_ns = (operation.kind == Kind::Write
            && is_writeback(trace.name(operation.lane)))
        .then(|| operation.time_ns.saturating_sub(steps.expire_ns));
        let Some((mut first, end)) = operation.pages() else {
            events.push(Event {
                time_ns: operation.time_ns,
                command: Command::Flush,
                dirty_since_ns: None,
            });
            continue;
        };
        while first < end {
            let lba = (first % u64::from(capacity_pages)) as u32;
            let pages = (end - first)
                .min(u64::from(PIECE_PAGES))
                .min(u64::from(capacity_pages - lba)) as u32;
            let command = match operation.kind {
                Kind::Read => Command::Read { lba, pages },
                Kind::Discard => Command::Discard { lba, pages },
                _ => Command::Write {
                    lba,
                    pages,
                    fua: false,
                },
            };
            events.push(Event {
                time_ns: operation.time_ns,
                command,
                dirty_since_ns,
            });
            first += u64::from(pages);
        }
    }
    events
}

/// Whether a thread of this name writes back what others wrote.
pub(crate) fn is_writeback(name: &str) -> bool {
    name.starts_with("kworker") || name.starts_with("f2fs_")
}

struct Phone {
    random: Random,
    capacity_pages: u32,
    steps: Steps,
    events: Vec<Event>,
}

/// Size of a photo, of a film's second and of an installation, in pages.
const PHOTO_PAGES: u64 = 1536;
const FILM_PAGES_PER_S: u64 = 4096;
const INSTALLED_PAGES: u64 = 76_800;

impl Phone {
    fn push(&mut self, time_ns: u64, command: Command) {
        self.events.push(Event {
            time_ns,
            command,
            dirty_since_ns: None,
        });
    }

    /// Transactions of 1 to 8 pages in one area, and reads all over, about every 200 ms.
    fn database(&mut self, end_ns: u64) {
        let area = u64::from(self.capacity_pages / 64).max(16);
        let mut now_ns = 0;
        while now_ns < end_ns {
            now_ns += self.random.below(400_000_000);
            let pages = 1 + self.random.below(8) as u32;
            if self.random.below(2) == 0 {
                let lba = self.random.below(u64::from(self.capacity_pages - 32)) as u32;
                let pages = pages * 4;
                self.push(now_ns, Command::Read { lba, pages });
                continue;
            }
            let lba = self.random.below(area - u64::from(pages)) as u32;
            let fua = false;
            self.push(now_ns, Command::Write { lba, pages, fua });
            self.push(now_ns, Command::Flush);
        }
    }

    /// Bursts of buffered writes with pauses of up to two minutes.
    fn files(&mut self, end_ns: u64) {
        let mut now_ns = 0;
        loop {
            now_ns += self.random.below(120 * SECOND_NS);
            if now_ns >= end_ns {
                return;
            }
            let (seconds, pages_per_s) = match self.random.below(4) {
                0 => (1 + self.random.below(30), FILM_PAGES_PER_S),
                1 => (20, INSTALLED_PAGES / 20),
                _ => (1 + self.random.below(10), PHOTO_PAGES),
            };
            for _ in 0..seconds {
                self.file(now_ns, pages_per_s as u32);
                now_ns += SECOND_NS;
            }
        }
    }

    /// A file that an app writes at once, and writeback when it has expired.
    fn file(&mut self, since_ns: u64, pages: u32) {
        let pages = pages.min(self.capacity_pages / 4) / PIECE_PAGES * PIECE_PAGES;
        let room = u64::from((self.capacity_pages - pages) / PIECE_PAGES);
        let first = self.random.below(room) as u32 * PIECE_PAGES;
        let step_ns = self.steps.step_ns;
        let time_ns = (since_ns + self.steps.expire_ns).div_ceil(step_ns) * step_ns;
        for lba in (first..first + pages).step_by(PIECE_PAGES as usize) {
            self.events.push(Event {
                time_ns,
                command: Command::Write {
                    lba,
                    pages: PIECE_PAGES,
                    fua: false,
                },
                dirty_since_ns: Some(since_ns),
            });
        }
    }
}

/// Plays `events` on a device that begins with `image`. `host` decides at each step what is announced.
///
/// # Errors
/// [`Error::Flash`], [`Error::Image`], [`Error::Full`], [`Error::Stuck`], [`Error::Interrupted`].
pub fn play(
    config: &Config,
    image: &Image,
    events: &[Event],
    steps: Steps,
    host: &mut dyn FnMut(&View) -> Announced,
    stop: &AtomicBool,
) -> Result<Used, Error> {
    let mut flash = Flash::new(config)?;
    flash.load(image).map_err(Error::Image)?;
    let mut player = Player {
        row_bytes: config.row_bytes(),
        slots: vec![None; config.queue_depth() as usize],
        flash,
        events,
        steps,
        now_ns: 0,
        next: 0,
        next_step_ns: 0,
        waited_for: VecDeque::new(),
        writeback: VecDeque::new(),
        direct_bytes: 0,
        to_mark: false,
        watches: std::array::from_fn(|_| Stopwatch::new()),
        predictions: Vec::new(),
    };
    player.run(host, stop)?;
    Ok(player.used())
}

struct Player<'a> {
    flash: Flash,
    row_bytes: u64,
    events: &'a [Event],
    steps: Steps,
    now_ns: u64,
    next: usize,
    next_step_ns: u64,
    /// Commands that are due and not sent, as a scheduler has them: those waited for go first.
    waited_for: VecDeque<usize>,
    writeback: VecDeque<usize>,
    slots: Vec<Option<usize>>,
    direct_bytes: u64,
    /// The pages that will be overwritten are announced when the reserve's command has ended.
    to_mark: bool,
    watches: [Stopwatch; 3],
    predictions: Vec<Prediction>,
}

/// Most ranges of an announcement (`FTL_MAX_RANGES`).
const MOST_RANGES: usize = 1024;

impl Player<'_> {
    fn run(
        &mut self,
        host: &mut dyn FnMut(&View) -> Announced,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.take_due();
            if self.now_ns >= self.next_step_ns && self.next < self.events.len() {
                self.step(host);
            }
            self.send();
            if self.next == self.events.len() && self.is_done() {
                return Ok(());
            }
            self.advance()?;
        }
    }

    fn is_done(&self) -> bool {
        self.waited_for.is_empty() && self.writeback.is_empty() && self.flash.is_idle()
    }

    fn take_due(&mut self) {
        while let Some(event) = self.events.get(self.next)
            && event.time_ns <= self.now_ns
        {
            if event.dirty_since_ns.is_some() {
                self.writeback.push_back(self.next);
            } else {
                self.waited_for.push_back(self.next);
                self.direct_bytes += u64::from(event.written_pages()) * crate::flash::PAGE_BYTES;
            }
            self.next += 1;
        }
    }

    /// Writeback that the host knows now and has not sent.
    fn known(&self) -> impl Iterator<Item = &Event> {
        let queued = self.writeback.iter().map(|index| &self.events[*index]);
        let horizon_ns = self.now_ns + self.steps.expire_ns + self.steps.step_ns;
        let later = self.events[self.next..].iter();
        let later = later.take_while(move |it| it.time_ns <= horizon_ns);
        let known = |it: &&Event| it.dirty_since_ns.is_some_and(|since| since <= self.now_ns);
        queued.chain(later).filter(known)
    }

    fn step(&mut self, host: &mut dyn FnMut(&View) -> Announced) {
        self.next_step_ns = self.now_ns + self.steps.step_ns;
        let known = |it: &Event| Known {
            since_ns: it.dirty_since_ns.unwrap_or(0),
            bytes: u64::from(it.written_pages()) * crate::flash::PAGE_BYTES,
        };
        let dirty: Vec<Known> = self.known().map(known).collect();
        let announced = host(&View {
            now_ns: self.now_ns,
            dirty: &dirty,
            direct_bytes: std::mem::take(&mut self.direct_bytes),
            free_bytes: self.flash.free_rows() * self.row_bytes,
        });
        self.predict(announced.expected_bytes);
        if let Some(bytes) = announced.reserve_bytes {
            self.announce(bytes);
        }
    }

    /// Announces at each step, unless the device is so busy that the last step's has not ended.
    fn announce(&mut self, reserve_bytes: u64) {
        let pages = reserve_bytes / crate::flash::PAGE_BYTES;
        let within_ns = self.steps.expire_ns;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        self.to_mark = self.flash.reserve(pages, within_ns, self.now_ns);
    }

    /// Announces which data is about to be overwritten.
    fn mark(&mut self) {
        if !std::mem::take(&mut self.to_mark) {
            return;
        }
        let range = |it: &Event| match it.command {
            Command::Write { lba, pages, .. } => Some(Range {
                src: lba,
                dst: 0,
                pages,
            }),
            _ => None,
        };
        let ranges: Vec<Range> = self.known().filter_map(range).take(MOST_RANGES).collect();
        if !ranges.is_empty() {
            let within_ns = self.steps.expire_ns + self.steps.step_ns;
            self.flash.soon_invalid(&ranges, within_ns, self.now_ns);
        }
    }

    fn predict(&mut self, expected_bytes: u64) {
        let end_ns = self.now_ns + self.steps.expire_ns;
        let last_ns = self.events.last().map_or(0, |it| it.time_ns);
        if end_ns > last_ns {
            return;
        }
        let came = self.events[self.next..]
            .iter()
            .take_while(|it| it.time_ns < end_ns)
            .map(|it| u64::from(it.written_pages()))
            .sum::<u64>();
        let queued: u64 = self
            .writeback
            .iter()
            .map(|index| u64::from(self.events[*index].written_pages()))
            .sum();
        self.predictions.push(Prediction {
            time_ns: self.now_ns,
            expected_bytes,
            came_bytes: (came + queued) * crate::flash::PAGE_BYTES,
        });
    }

    fn send(&mut self) {
        loop {
            let index = self.waited_for.front().or(self.writeback.front());
            let Some(index) = index.copied() else {
                return;
            };
            let event = self.events[index];
            let waited_for = event.dirty_since_ns.is_none();
            let slot = self
                .flash
                .submit_of(waited_for, event.command, self.now_ns, |_| 1);
            let Some(slot) = slot else {
                return;
            };
            self.slots[slot as usize] = Some(index);
            match waited_for {
                true => self.waited_for.pop_front(),
                false => self.writeback.pop_front(),
            };
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        let event_ns = self.events.get(self.next).map(|it| it.time_ns);
        let step_ns = event_ns.map(|_| self.next_step_ns);
        let next_ns = [self.flash.next_ns(), event_ns, step_ns];
        let next_ns = next_ns.into_iter().flatten().min().ok_or(Error::Stuck)?;
        self.now_ns = next_ns.max(self.now_ns);
        self.flash.run(self.now_ns);
        while let Some((slot, good)) = self.flash.take_done() {
            if !good {
                return Err(Error::Full);
            }
            match self.slots.get_mut(slot as usize) {
                Some(index) => {
                    let index = index.take();
                    self.ended(index);
                }
                None => self.mark(),
            }
        }
        Ok(())
    }

    fn ended(&mut self, index: Option<usize>) {
        let Some(index) = index else {
            return;
        };
        let event = self.events[index];
        let watch = match (event.command, event.dirty_since_ns) {
            (Command::Read { .. }, _) => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        };
        let took_ns = self.now_ns - event.time_ns;
        self.watches[watch].add(took_ns, u64::from(event.written_pages()));
    }

    fn used(mut self) -> Used {
        let counters = self.flash.counters();
        let times = |watch: &Stopwatch| watch.any().then(|| watch.times());
        Used {
            read: times(&self.watches[0]),
            commit: times(&self.watches[1]),
            writeback: times(&self.watches[2]),
            write_amplification: counters.write_amplification(),
            counters,
            predictions: self.predictions,
        }
    }
}

#[cfg(test)]
mod tests;
