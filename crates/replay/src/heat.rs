//! Hot and cold data kept apart by a host with little memory and its device, in virtual time.
//!
//! A use goes through a modelled page cache, which decides what of it reaches the device. What the
//! host knows of each write it may tell: the kind of the file, as a rule or an app would, and how
//! often the page was written. The same commands go to a device with each [`Policy`].

mod page_cache;
mod usage;

pub use page_cache::PageCache;
pub use usage::phone;

use crate::flash::{Command, Config, Counters, Flash, Image, Range};
use crate::{Error, Kind as TraceKind, Stopwatch, Times, Trace};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an app does with pages of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads these pages, from memory where it has them.
    Read,
    /// Writes them, to memory.
    Write,
    /// Waits until they are in flash.
    Sync,
    /// Gives them up.
    Delete,
}

/// Kinds of files that a rule tells by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Write-ahead log or journal of a database.
    Wal,
    /// Database, whose pages are overwritten often.
    Database,
    /// Photo or thumbnail.
    Media,
    /// Part of an installed app.
    App,
    /// Any other file.
    Other,
}

/// An access by an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Time of the access.
    pub time_ns: u64,
    /// Act on the pages.
    pub act: Act,
    /// Kind of the file.
    pub kind: Kind,
    /// Number of the first page on the device.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
}

/// How soon the host expects a page to be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// Nothing is known.
    Unknown,
    /// Within some times the age at which dirty data is written.
    Warm,
    /// At about that age.
    Hot,
}

/// A command, or an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A read: first page and number of pages.
    Read(u32, u32),
    /// A write: first page and number of pages.
    Write(u32, u32),
    /// A discard: first page and number of pages.
    Discard(u32, u32),
    /// Flush of the device's write cache.
    Flush,
    /// Pages that are dirty in memory, so that those in flash are soon out of date.
    SoonInvalid(Vec<Range>),
    /// Pages that have left memory though they were used more than once.
    Prefetch(Vec<Range>),
}

/// What a host sends, with all that it could tell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Time at which the host sends it.
    pub time_ns: u64,
    /// An app waits for its end.
    pub waited_for: bool,
    /// Command or announcement.
    pub what: What,
    /// Kind of the file that a write is of.
    pub kind: Kind,
    /// Heat of the pages that a write is of.
    pub heat: Heat,
}

/// Ways to keep hot and cold data apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The device writes all data to the same blocks.
    None,
    /// As none, but collection chooses by cost and benefit, as it does with `Streams`.
    Benefit,
    /// The host tells the kind of file, and the device has a stream for each.
    Hints,
    /// The device keeps apart by itself what is overwritten soon.
    Streams,
    /// Both; the host also tells heat, dirty pages and pages that its memory will miss.
    Integrated,
}

/// Streams of a device that has any.
const STREAMS: u64 = 3;

impl Policy {
    /// All of them, in the order of what they do.
    pub const ALL: [Policy; 5] = [
        Policy::None,
        Policy::Benefit,
        Policy::Hints,
        Policy::Streams,
        Policy::Integrated,
    ];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Benefit => "benefit",
            Policy::Hints => "hints",
            Policy::Streams => "streams",
            Policy::Integrated => "integrated",
        }
    }

    /// The device's parameters; the read cache's size is the same for all.
    pub fn parameters(self) -> Vec<(&'static str, u64)> {
        match self {
            Policy::None => vec![],
            Policy::Benefit => vec![("victim", 1)],
            Policy::Hints => vec![("streams", STREAMS)],
            Policy::Streams => vec![("streams", STREAMS), ("own_streams", 1), ("victim", 1)],
            Policy::Integrated => vec![
                ("streams", STREAMS),
                ("own_streams", 1),
                ("victim", 2),
                ("read_cache_announced", 1),
            ],
        }
    }

    /// Stream of a write: 1 for what is written again soonest. 0 is none.
    fn stream(self, sent: &Sent) -> u8 {
        let of_file = match sent.kind {
            Kind::Wal => 1,
            Kind::Database => 2,
            Kind::Media | Kind::App | Kind::Other => 0,
        };
        let of_heat = match sent.heat {
            Heat::Unknown => of_file,
            Heat::Warm => 2,
            Heat::Hot => 1,
        };
        match self {
            Policy::None | Policy::Benefit | Policy::Streams => 0,
            Policy::Hints => of_file,
            Policy::Integrated if of_file == 1 => 1,
            Policy::Integrated => of_heat,
        }
    }
}

/// Figures of the second half of a use; the first is for the device to get there.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Times of reads; None if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Times>,
    /// Times of synchronized writes and their flushes; None if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Times>,
    /// Counters of the device.
    pub counters: Counters,
    /// Pages programmed for each page written; None if none was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
    /// The whole use, minute by minute.
    pub minutes: Vec<Minute>,
}

/// Pages of a minute.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Minute {
    /// Pages that the host wrote.
    pub written_pages: u64,
    /// Pages that the device moved.
    pub moved_pages: u64,
}

/// A block trace as accesses of a host: those of its device, whose page cache is not known.
pub fn traced(trace: &Trace, capacity_pages: u32) -> Vec<Access> {
    let capacity = u64::from(capacity_pages);
    let mut accesses = Vec::new();
    for operation in trace.operations() {
        let Some((first, end)) = operation.pages() else {
            continue;
        };
        let name = trace.name(operation.lane);
        let act = match operation.kind {
            TraceKind::Read => Act::Read,
            TraceKind::Discard => Act::Delete,
            _ => Act::Write,
        };
        let pages = (end - first).min(capacity);
        let first = (first % capacity).min(capacity - pages);
        let access = Access {
            time_ns: operation.time_ns,
            act,
            kind: Kind::Other,
            first: first as u32,
            pages: pages as u32,
        };
        accesses.push(access);
        if act == Act::Write && !crate::ahead::is_writeback(name) {
            accesses.push(Access {
                act: Act::Sync,
                ..access
            });
        }
    }
    accesses
}

/// Plays what a host sends on a device that begins with `image`.
///
/// # Errors
/// [`Error::Flash`], [`Error::Image`], [`Error::Full`], [`Error::Stuck`], [`Error::Interrupted`].
pub fn play(
    config: &Config,
    image: &Image,
    policy: Policy,
    sent: &[Sent],
    stop: &AtomicBool,
) -> Result<Figures, Error> {
    let mut flash = Flash::new(config)?;
    flash.load(image).map_err(Error::Image)?;
    let mut player = Player {
        slots: vec![None; config.queue_depth() as usize],
        flash,
        policy,
        sent,
        now_ns: 0,
        next: 0,
        half_ns: sent.last().map_or(0, |it| it.time_ns / 2),
        waited_for: VecDeque::new(),
        background: VecDeque::new(),
        announcements: VecDeque::new(),
        watches: std::array::from_fn(|_| Stopwatch::new()),
        before_half: None,
        minutes: Vec::new(),
        last: Counters::default(),
    };
    while player.next < sent.len() || !player.is_done() {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        player.take_due();
        player.send();
        player.advance()?;
    }
    Ok(player.figures())
}

struct Player<'a> {
    flash: Flash,
    policy: Policy,
    sent: &'a [Sent],
    slots: Vec<Option<usize>>,
    now_ns: u64,
    next: usize,
    half_ns: u64,
    waited_for: VecDeque<usize>,
    background: VecDeque<usize>,
    announcements: VecDeque<usize>,
    watches: [Stopwatch; 2],
    before_half: Option<Counters>,
    minutes: Vec<Minute>,
    last: Counters,
}

const MINUTE_NS: u64 = 60_000_000_000;
/// Time for which dirty pages are announced: two steps of writeback more than they are dirty for.
const ANNOUNCED_NS: u64 = 40_000_000_000;

impl Player<'_> {
    fn is_done(&self) -> bool {
        self.waited_for.is_empty() && self.background.is_empty() && self.flash.is_idle()
    }

    fn take_due(&mut self) {
        while self.now_ns >= (self.minutes.len() as u64 + 1) * MINUTE_NS {
            let now = self.flash.counters();
            self.minutes.push(Minute {
                written_pages: now.host_write_pages - self.last.host_write_pages,
                moved_pages: now.collected_pages - self.last.collected_pages,
            });
            self.last = now;
        }
        if self.before_half.is_none() && self.now_ns >= self.half_ns {
            self.before_half = Some(self.flash.counters());
            self.watches = std::array::from_fn(|_| Stopwatch::new());
        }
        while let Some(sent) = self.sent.get(self.next)
            && sent.time_ns <= self.now_ns
        {
            match sent.what {
                What::SoonInvalid(_) | What::Prefetch(_) => {
                    if self.policy == Policy::Integrated {
                        self.announcements.push_back(self.next);
                    }
                }
                _ if sent.waited_for => self.waited_for.push_back(self.next),
                _ => self.background.push_back(self.next),
            }
            self.next += 1;
        }
    }

    fn send(&mut self) {
        while let Some(&index) = self.announcements.front()
            && self.announce(index)
        {
            self.announcements.pop_front();
        }
        loop {
            let (queue, waited_for) = match self.waited_for.front() {
                Some(_) => (&mut self.waited_for, true),
                None => (&mut self.background, false),
            };
            let Some(&index) = queue.front() else {
                return;
            };
            let sent = &self.sent[index];
            let command = match sent.what {
                What::Read(lba, pages) => Command::Read { lba, pages },
                What::Write(lba, pages) => Command::Write {
                    lba,
                    pages,
                    fua: false,
                },
                What::Discard(lba, pages) => Command::Discard { lba, pages },
                _ => Command::Flush,
            };
            let stream = self.policy.stream(sent);
            let slot = self
                .flash
                .submit_to(stream, waited_for, command, self.now_ns, |_| 1);
            let Some(slot) = slot else {
                return;
            };
            queue.pop_front();
            self.slots[slot as usize] = Some(index);
        }
    }

    /// Whether it was sent, or there is nothing to send.
    fn announce(&mut self, index: usize) -> bool {
        match &self.sent[index].what {
            What::SoonInvalid(ranges) => self.flash.soon_invalid(ranges, ANNOUNCED_NS, self.now_ns),
            What::Prefetch(ranges) => ranges.is_empty() || self.flash.prefetch(ranges, self.now_ns),
            _ => true,
        }
    }

    fn advance(&mut self) -> Result<(), Error> {
        let event_ns = self.sent.get(self.next).map(|it| it.time_ns);
        let next_ns = [self.flash.next_ns(), event_ns];
        let Some(next_ns) = next_ns.into_iter().flatten().min() else {
            return match self.is_done() {
                true => Ok(()),
                false => Err(Error::Stuck),
            };
        };
        self.now_ns = next_ns.max(self.now_ns);
        self.flash.run(self.now_ns);
        while let Some((slot, good)) = self.flash.take_done() {
            if !good {
                return Err(Error::Full);
            }
            if let Some(index) = self.slots.get_mut(slot as usize).and_then(Option::take) {
                self.ended(index);
            }
        }
        Ok(())
    }

    fn ended(&mut self, index: usize) {
        let sent = &self.sent[index];
        if !sent.waited_for {
            return;
        }
        let watch = usize::from(!matches!(sent.what, What::Read(..)));
        self.watches[watch].add(self.now_ns - sent.time_ns, 1);
    }

    fn figures(mut self) -> Figures {
        let before = self.before_half.unwrap_or_default();
        let counters = self.flash.counters().since(&before);
        let times = |watch: &Stopwatch| watch.any().then(|| watch.times());
        Figures {
            read: times(&self.watches[0]),
            commit: times(&self.watches[1]),
            write_amplification: counters.write_amplification(),
            counters,
            minutes: self.minutes,
        }
    }
}

#[cfg(test)]
mod tests;
