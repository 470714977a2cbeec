//! A foreground app beside a background writer on an aged device, in virtual time.
//!
//! The writer overwrites the device in pieces of 512 KB, as many at a time as its host would send.
//! The app reads, and commits transactions (a write and a flush), with pauses in between.

use crate::flash::{Command, Config, Counters, Flash, Image};
use crate::{Error, Stopwatch};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::random::Random;

/// Size of a write of the background, in pages.
const PIECE_PAGES: u32 = 128;
/// Pieces of a file, which lie one after the other.
const FILE_PIECES: u32 = 16;
/// Most commands that the writer has in flight.
const WRITER_DEPTH: usize = 8;
/// Longest pause of the app between two operations.
const MOST_PAUSE_NS: u64 = 40_000_000;
const MOST_READ_PAGES: u64 = 32;
const MOST_WRITE_PAGES: u64 = 32;

/// Length and order of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Virtual time of the run.
    pub seconds: u32,
    /// Seed of addresses, sizes and pauses.
    pub seed: u64,
}

/// Times of several runs, of which [`Beside::figures`] makes figures.
pub struct Beside {
    reads: Stopwatch,
    writes: Stopwatch,
    written_bytes: u64,
    virtual_ns: u64,
    counters: Counters,
}

/// Median, 99th percentile and longest of some times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Number of operations.
    pub count: u64,
    /// Median, in nanoseconds.
    pub median_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Longest one, in nanoseconds.
    pub max_ns: u64,
}

/// Figures of runs with one configuration of the device.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Reads of the foreground.
    pub read: Latency,
    /// Transactions of the foreground: a write, and the flush after it.
    pub commit: Latency,
    /// Rate of the background, in bytes a second.
    pub background_bytes_per_s: f64,
    /// Pages programmed for each page written.
    pub write_amplification: f64,
}

impl Default for Beside {
    fn default() -> Self {
        Beside {
            reads: Stopwatch::new(),
            writes: Stopwatch::new(),
            written_bytes: 0,
            virtual_ns: 0,
            counters: Counters::default(),
        }
    }
}

impl Beside {
    /// Adds a run on a device that begins with `image`.
    ///
    /// # Errors
    /// [`Error::Flash`], [`Error::Image`], [`Error::Full`], [`Error::Interrupted`].
    pub fn play(
        &mut self,
        config: &Config,
        image: &Image,
        load: Load,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let mut flash = Flash::new(config)?;
        flash.load(image).map_err(Error::Image)?;
        let mut run = Run {
            capacity: config.capacity_pages(),
            end_ns: u64::from(load.seconds) * 1_000_000_000,
            slots: vec![None; config.queue_depth() as usize],
            depth: WRITER_DEPTH.min(config.queue_depth() as usize - 1).max(1),
            writer: Writer::new(load.seed),
            app: App::new(load.seed),
            now_ns: 0,
            flash,
            of: self,
        };
        run.play(stop)?;
        let counters = run.flash.counters();
        self.virtual_ns += u64::from(load.seconds) * 1_000_000_000;
        self.counters.add(&counters);
        Ok(())
    }

    /// The figures; all runs count alike.
    pub fn figures(&self) -> Figures {
        Figures {
            read: latency(&self.reads),
            commit: latency(&self.writes),
            background_bytes_per_s: self.written_bytes as f64 * 1e9 / self.virtual_ns as f64,
            write_amplification: self.counters.write_amplification().unwrap_or(1.0),
        }
    }
}

fn latency(watch: &Stopwatch) -> Latency {
    let times = watch.times();
    Latency {
        count: times.count,
        median_ns: watch.quantile_ns(0.5),
        p99_ns: times.p99_ns,
        max_ns: times.max_ns,
    }
}

/// Owner of a command in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Writer,
    App,
}

struct Writer {
    random: Random,
    /// First page of the next piece, and pieces left in its file.
    next: u32,
    left: u32,
    in_flight: usize,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Writer {
            random: Random::for_purpose(seed, "writer"),
            next: 0,
            left: 0,
            in_flight: 0,
        }
    }

    fn piece(&mut self, capacity: u32) -> u32 {
        if self.left == 0 {
            let pieces = u64::from((capacity / PIECE_PAGES).saturating_sub(FILE_PIECES)).max(1);
            self.next = self.random.below(pieces) as u32 * PIECE_PAGES;
            self.left = FILE_PIECES;
        }
        let piece = self.next;
        self.next += PIECE_PAGES;
        self.left -= 1;
        piece
    }
}

struct App {
    random: Random,
    /// Command to be sent at its time, and after it.
    next: Option<Command>,
    then: Option<Command>,
    due_ns: u64,
    begun_ns: u64,
    reads: bool,
}

impl App {
    fn new(seed: u64) -> Self {
        App {
            random: Random::for_purpose(seed, "app"),
            next: None,
            then: None,
            due_ns: 0,
            begun_ns: 0,
            reads: false,
        }
    }

    /// Decides on the next operation, and when it begins.
    fn think(&mut self, capacity: u32, now_ns: u64) {
        self.due_ns = now_ns + self.random.below(MOST_PAUSE_NS);
        self.begun_ns = self.due_ns;
        self.reads = self.random.below(2) == 0;
        let most = match self.reads {
            true => MOST_READ_PAGES,
            false => MOST_WRITE_PAGES,
        };
        let pages = 1 + self.random.below(most) as u32;
        let lba = self.random.below(u64::from(capacity - pages)) as u32;
        (self.next, self.then) = match self.reads {
            true => (Some(Command::Read { lba, pages }), None),
            false => {
                let fua = false;
                let write = Command::Write { lba, pages, fua };
                (Some(write), Some(Command::Flush))
            }
        };
    }
}

struct Run<'a> {
    flash: Flash,
    capacity: u32,
    end_ns: u64,
    now_ns: u64,
    slots: Vec<Option<Of>>,
    depth: usize,
    writer: Writer,
    app: App,
    of: &'a mut Beside,
}

impl Run<'_> {
    fn play(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        self.app.think(self.capacity, self.now_ns);
        while self.now_ns < self.end_ns {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.send_app();
            self.send_writer();
            self.step()?;
        }
        Ok(())
    }

    fn send(&mut self, of: Of, command: Command) -> bool {
        let slot = self
            .flash
            .submit_of(of == Of::App, command, self.now_ns, |_| 1);
        if let Some(slot) = slot {
            self.slots[slot as usize] = Some(of);
        }
        slot.is_some()
    }

    fn send_app(&mut self) {
        if self.app.due_ns > self.now_ns {
            return;
        }
        if let Some(command) = self.app.next
            && self.send(Of::App, command)
        {
            self.app.next = None;
        }
    }

    fn send_writer(&mut self) {
        while self.writer.in_flight < self.depth {
            let lba = self.writer.piece(self.capacity);
            let pages = PIECE_PAGES.min(self.flash.command_pages());
            let fua = false;
            if !self.send(Of::Writer, Command::Write { lba, pages, fua }) {
                return;
            }
            self.writer.in_flight += 1;
        }
    }

    fn step(&mut self) -> Result<(), Error> {
        let waits = self.app.next.is_some() && self.app.due_ns > self.now_ns;
        let due_ns = waits.then_some(self.app.due_ns);
        let next_ns = [self.flash.next_ns(), due_ns].into_iter().flatten().min();
        self.now_ns = next_ns.ok_or(Error::Stuck)?.max(self.now_ns);
        self.flash.run(self.now_ns);
        while let Some((slot, good)) = self.flash.take_done() {
            if !good {
                return Err(Error::Full);
            }
            match self.slots[slot as usize].take() {
                Some(Of::Writer) => self.written(),
                _ => self.answered(),
            }
        }
        Ok(())
    }

    fn written(&mut self) {
        self.writer.in_flight -= 1;
        self.of.written_bytes += u64::from(PIECE_PAGES) * crate::flash::PAGE_BYTES;
    }

    fn answered(&mut self) {
        if let Some(command) = self.app.then.take() {
            self.app.next = Some(command);
            return;
        }
        let watch = match self.app.reads {
            true => &mut self.of.reads,
            false => &mut self.of.writes,
        };
        watch.add(self.now_ns - self.app.begun_ns, 1);
        self.app.think(self.capacity, self.now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;

    /// A small device with a past, whose foreground goes first. Its spare blocks have room for the rows
    /// that are left to the foreground; where they have not, these make commits longer.
    fn small() -> (Config, Image) {
        let parameters = [
            ("capacity_mib", 512),
            ("spare_percent", 7),
            ("block_pages", 64),
            ("policy", 2),
            ("read_ns", 90_000),
            ("program_ns", 1_120_000),
            ("erase_ns", 3_000_000),
            ("link_mb_s", 200),
            ("write_command_ns", 50_000),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
        let config = Config::of_profile(&parameters.into()).unwrap();
        let history = History {
            filled_percent: 80,
            overwritten_percent: 50,
        };
        let none = AtomicBool::new(false);
        let aged = history.play(&config, 1, &mut |_, _| (), &none).unwrap();
        (config, aged.image)
    }

    fn figures(config: &Config, image: &Image) -> Figures {
        let mut beside = Beside::default();
        for seed in 1..=3 {
            let load = Load { seconds: 20, seed };
            let none = AtomicBool::new(false);
            beside.play(config, image, load, &none).unwrap();
        }
        beside.figures()
    }

    #[test]
    fn collection_that_yields_makes_commits_shorter_and_background_goes_on() {
        let (config, image) = small();
        let before = figures(&config, &image);
        let aware = config
            .with(&[("collect_yields", 1), ("front_rows", 48)])
            .unwrap();
        let after = figures(&aware, &image);
        assert!(
            after.commit.p99_ns < before.commit.p99_ns,
            "{:?}, before {:?}",
            after.commit,
            before.commit
        );
        assert!(after.commit.median_ns <= before.commit.median_ns);
        assert!(after.background_bytes_per_s > 0.8 * before.background_bytes_per_s);
        assert!(after.commit.count > 100 && after.read.count > 100);
    }

    #[test]
    fn the_same_seeds_give_the_same_figures() {
        let (config, image) = small();
        let once = figures(&config, &image);
        let again = figures(&config, &image);
        assert_eq!((once.read, once.commit), (again.read, again.commit));
    }
}
