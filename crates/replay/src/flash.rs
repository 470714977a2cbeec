//! The flash core in this process: a simulated device without a kernel and with virtual time.
//!
//! Pages are 4096 bytes. Each holds one repeated 64-bit word, which the core stores without memory
//! for the page.

mod arena;
mod image;
mod power;
mod raw;

pub use image::Image;
pub use power::{OPERATION_COUNTERS, Range, Snapshot};

use arena::{Arena, enter};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// Size of a page, in bytes.
pub const PAGE_BYTES: u64 = raw::PAGE_BYTES as u64;

/// Reasons why a device cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profile has a parameter that the core does not know.
    #[error("the device profile's parameter {0} is unknown: `modinfo simflash.ko` lists them")]
    Parameter(String),
    /// A parameter's value is beyond what the core takes.
    #[error("the device profile's {0} is too large")]
    TooLarge(String),
    /// The core refuses the configuration; holds the core's sentence.
    #[error("this device cannot be: {0}")]
    Config(String),
    /// Memory is short; holds the number of the device's pages.
    #[error("there is not enough memory for the map of a device with {0} pages of 4 KB")]
    Memory(u32),
}

/// Value of a profile's `in_turn` for a driver that waits for each command, however many tags it
/// offers the block layer.
const ALL_IN_TURN: u64 = 2;

/// Number of commands that such a driver has begun at most: one in the device, and the next one.
const BEGUN: u64 = 2;

/// Parameters of a device: the `[simflash]` table of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config(raw::Config);

impl Config {
    /// The device of a profile, with names as in `experiments/devices/*.toml`.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::TooLarge`].
    pub fn of_profile(parameters: &BTreeMap<String, u64>) -> Result<Self, Error> {
        let mut config = Config(raw::Config::default());
        for (name, value) in parameters {
            config.set(name, *value)?;
        }
        if parameters.get("in_turn") == Some(&ALL_IN_TURN) {
            config.set("queue_depth", BEGUN)?;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), Error> {
        if OF_NO_REPLAY.contains(&name) {
            return Ok(());
        }
        let unknown = || Error::Parameter(name.to_owned());
        let c_name = CString::new(name).map_err(|_| unknown())?;
        // SAFETY: the core reads the name and changes the configuration's members only.
        match unsafe { raw::ftl_config_set(&mut self.0, c_name.as_ptr(), value) } {
            raw::PARAMETER_SET => Ok(()),
            raw::PARAMETER_UNKNOWN => Err(unknown()),
            _ => Err(Error::TooLarge(name.to_owned())),
        }
    }

    /// Value of a parameter in the core's unit, which is pages instead of KiB and MiB.
    fn number(&self, name: &str) -> u64 {
        // SAFETY: the index is a parameter's, and the configuration is only read.
        unsafe { raw::ftl_config_number(&self.0, parameter_index(name)) }
    }

    /// The device with some parameters changed, by the names of a profile.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::TooLarge`].
    pub fn with(mut self, parameters: &[(&str, u64)]) -> Result<Self, Error> {
        for (name, value) in parameters {
            self.set(name, *value)?;
        }
        Ok(self)
    }

    /// The device with another capacity, and with spare flash of so many per cent of it.
    #[must_use]
    pub fn sized(mut self, capacity_pages: u32, spare_percent: u32) -> Self {
        for (name, number) in [
            ("capacity_mib", capacity_pages),
            ("spare_percent", spare_percent),
        ] {
            let index = parameter_index(name);
            // SAFETY: the index is a parameter's; the number fits, for it has 32 bits.
            unsafe { raw::ftl_config_set_number(&mut self.0, index, u64::from(number)) };
        }
        self
    }

    /// Number of commands that the device takes at once.
    pub fn queue_depth(&self) -> u32 {
        self.number("queue_depth") as u32
    }

    /// Capacity that the host sees, in pages.
    pub fn capacity_pages(&self) -> u32 {
        self.number("capacity_mib") as u32
    }

    /// Size of a row, in bytes.
    pub fn row_bytes(&self) -> u64 {
        self.number("row_pages") * PAGE_BYTES
    }

    /// Rate at which all dies program, in bytes a second; 0 if that takes no time.
    pub fn program_bytes_per_s(&self) -> f64 {
        let lower_ns = self.number("program_ns");
        let upper_ns = match self.number("program_upper_ns") {
            0 => lower_ns,
            upper_ns => upper_ns,
        };
        let dies = self.number("channels") * self.number("dies_per_channel");
        match lower_ns + upper_ns {
            0 => 0.0,
            both_ns => (dies * self.row_bytes()) as f64 * 2e9 / both_ns as f64,
        }
    }

    /// Largest read or write, in pages.
    pub fn command_pages(&self) -> u32 {
        self.number("request_kib") as u32
    }
}

/// Parameters of the kernel's block layer or of power cuts, which a replay does not use.
const OF_NO_REPLAY: [&str; 9] = [
    "discard_mib",
    "hardware_queues",
    "fua",
    "stable_pages",
    "removable",
    "in_turn",
    "budget",
    "power_loss",
    "stream_mib",
];

/// Names of the core's parameters, in the core's order.
fn parameter_names() -> impl Iterator<Item = &'static CStr> {
    // SAFETY: the core's count bounds the index, and its names are static strings.
    let name = |index| unsafe { CStr::from_ptr(raw::ftl_parameter_name(index)) };
    // SAFETY: it only tells a constant.
    (0..unsafe { raw::ftl_parameters() }).map(name)
}

/// # Panics
/// If the core has no such parameter.
fn parameter_index(name: &str) -> u32 {
    let found = parameter_names().position(|it| it.to_bytes() == name.as_bytes());
    found.expect("a parameter of ftl/parameters.h") as u32
}

/// Commands of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A read of consecutive pages.
    Read {
        /// Number of the first page.
        lba: u32,
        /// Number of pages, at most [`Flash::command_pages`].
        pages: u32,
    },
    /// A write of consecutive pages.
    Write {
        /// Number of the first page.
        lba: u32,
        /// Number of pages, at most [`Flash::command_pages`].
        pages: u32,
        /// The command ends only when the pages are in flash (FUA).
        fua: bool,
    },
    /// A discard of consecutive pages.
    Discard {
        /// Number of the first page.
        lba: u32,
        /// Number of pages, without a limit.
        pages: u32,
    },
    /// A flush: it ends when all acknowledged writes are in flash.
    Flush,
}

/// A simulated device.
pub struct Flash {
    ftl: NonNull<raw::Ftl>,
    capacity_pages: u32,
    queue_depth: u32,
    command_pages: u32,
    /// Free slots; the one after the queue's slots is for control commands.
    free: Vec<u32>,
    /// Buffers of each slot for the pages of a read. They are boxed, so that they do not move.
    memory: Vec<Box<[u64]>>,
    /// Ranges of the control command in flight.
    ranges: Arc<[Range]>,
    /// Memory of the whole device, if it is savable.
    arena: Option<Box<Arena>>,
}

// SAFETY: the core has no thread of its own and nothing that belongs to one.
unsafe impl Send for Flash {}

/// Number of 64-bit words of a page.
const WORDS: usize = raw::PAGE_BYTES / size_of::<u64>();

impl Flash {
    /// Creates an empty device at time 0.
    ///
    /// # Errors
    /// [`Error::Config`] with the core's sentence, [`Error::Memory`].
    pub fn new(config: &Config) -> Result<Self, Error> {
        Flash::in_memory(config, None)
    }

    fn in_memory(config: &Config, mut arena: Option<Box<Arena>>) -> Result<Self, Error> {
        // SAFETY: the configuration is only read; the sentence is a static string or null.
        let sentence = unsafe { raw::ftl_config_error(&config.0) };
        if !sentence.is_null() {
            // SAFETY: it is not null, and ends with a zero as all C strings.
            let sentence = unsafe { CStr::from_ptr(sentence) };
            return Err(Error::Config(sentence.to_string_lossy().into_owned()));
        }
        let entered = enter(arena.as_deref_mut());
        // SAFETY: the configuration was checked above, and is copied.
        let ftl = NonNull::new(unsafe { raw::ftl_create(&config.0, 0) })
            .ok_or(Error::Memory(config.capacity_pages()))?;
        drop(entered);
        let words = WORDS * config.command_pages() as usize;
        Ok(Flash {
            ftl,
            capacity_pages: config.capacity_pages(),
            queue_depth: config.queue_depth(),
            command_pages: config.command_pages(),
            free: (0..=config.queue_depth()).rev().collect(),
            memory: (0..config.queue_depth())
                .map(|_| vec![0; words].into_boxed_slice())
                .collect(),
            ranges: Arc::default(),
            arena,
        })
    }

    /// Most pages of a read or write.
    pub fn command_pages(&self) -> u32 {
        self.command_pages
    }

    /// Sends a command at time `now_ns`. `word` gives the content of each page of a write. Returns
    /// the command's slot, which is taken until [`Flash::take_done`] returns it.
    ///
    /// Returns `None` if all slots are taken, or memory for the data is short. The caller has to
    /// run on and try again.
    ///
    /// # Panics
    /// If the pages are not on the device, or more than a command may have.
    pub fn submit(
        &mut self,
        command: Command,
        now_ns: u64,
        word: impl FnMut(u32) -> u64,
    ) -> Option<u32> {
        self.submit_of(false, command, now_ns, word)
    }

    /// [`Flash::submit`] of a command of the foreground, or of the background.
    pub fn submit_of(
        &mut self,
        foreground: bool,
        command: Command,
        now_ns: u64,
        word: impl FnMut(u32) -> u64,
    ) -> Option<u32> {
        self.submit_to(0, foreground, command, now_ns, word)
    }

    /// [`Flash::submit_of`] in a write stream; 0 is none.
    pub fn submit_to(
        &mut self,
        stream: u8,
        foreground: bool,
        command: Command,
        now_ns: u64,
        mut word: impl FnMut(u32) -> u64,
    ) -> Option<u32> {
        let (op, lba, pages, fua) = match command {
            Command::Read { lba, pages } => (raw::READ, lba, pages, false),
            Command::Write { lba, pages, fua } => (raw::WRITE, lba, pages, fua),
            Command::Discard { lba, pages } => (raw::DISCARD, lba, pages, false),
            Command::Flush => (raw::FLUSH, 0, 0, false),
        };
        let end = lba.checked_add(pages).expect("pages of the device");
        assert!(end <= self.capacity_pages, "beyond the device");
        let moves = matches!(op, raw::READ | raw::WRITE);
        assert!(
            !moves || (1..=self.command_pages).contains(&pages),
            "a command of {pages} pages"
        );
        // The control slot is the lowest one and must stay.
        let slot = *self.free.last().filter(|it| **it < self.queue_depth)?;
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        if op == raw::WRITE && !unsafe { raw::ftl_provide(self.ftl.as_ptr()) } {
            return None;
        }
        self.free.pop();
        // SAFETY: the slot is below the queue depth and was taken back, or never used; its
        // `page` array has room for `command_pages`, which `pages` is not above.
        unsafe {
            let cmd = raw::ftl_command(self.ftl.as_ptr(), slot);
            (*cmd).op = op;
            (*cmd).fua = fua;
            (*cmd).foreground = foreground;
            (*cmd).stream = stream;
            (*cmd).lba = lba;
            (*cmd).pages = pages;
            (*cmd).owner = slot as usize as *mut c_void;
            (*cmd).range = std::ptr::null();
            (*cmd).ranges = 0;
            let memory = self.memory[slot as usize].as_mut_ptr();
            for page in 0..if moves { pages as usize } else { 0 } {
                let data = &mut (*(*cmd).page.add(page)).data;
                if op == raw::READ {
                    data.memory = memory.add(page * WORDS).cast();
                } else {
                    data.content = raw::Content {
                        word: word(lba + page as u32),
                        buffer: false,
                    };
                }
            }
            raw::ftl_submit(self.ftl.as_ptr(), cmd, now_ns);
        }
        Some(slot)
    }

    /// Announces that so many pages will be written within this time, in place of what was announced
    /// before. `false` if the previous announcement has not ended.
    pub fn reserve(&mut self, pages: u32, within_ns: u64, now_ns: u64) -> bool {
        let ranges = Arc::default();
        self.announce(raw::RESERVE, pages, ranges, within_ns, now_ns)
    }

    /// Announces that the `src` pages of the ranges will be overwritten or discarded within this
    /// time; no ranges take back all such announcements. `false` if the previous announcement has
    /// not ended, or memory is short.
    pub fn soon_invalid(&mut self, ranges: &[Range], within_ns: u64, now_ns: u64) -> bool {
        let pages = ranges.iter().map(|range| range.pages).sum();
        self.announce(raw::SOON_INVALID, pages, ranges.into(), within_ns, now_ns)
    }

    /// Announces that the `src` pages of the ranges will be read. A device with
    /// `read_cache_announced` reads them into its RAM. `false` if the previous announcement has not
    /// ended, or memory is short.
    pub fn prefetch(&mut self, ranges: &[Range], now_ns: u64) -> bool {
        let pages = ranges.iter().map(|range| range.pages).sum();
        self.announce(raw::PREFETCH, pages, ranges.into(), 0, now_ns)
    }

    fn announce(
        &mut self,
        op: u32,
        pages: u32,
        ranges: Arc<[Range]>,
        within_ns: u64,
        now_ns: u64,
    ) -> bool {
        let slot = self.queue_depth;
        if !self.free.contains(&slot) {
            return false;
        }
        self.ranges = ranges;
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the control slot is free; its ranges live as long as it is not.
        unsafe {
            if !raw::ftl_prepare_hints(self.ftl.as_ptr()) {
                return false;
            }
            let cmd = raw::ftl_command(self.ftl.as_ptr(), slot);
            (*cmd).op = op;
            (*cmd).fua = false;
            (*cmd).foreground = false;
            (*cmd).stream = 0;
            (*cmd).lba = 0;
            (*cmd).pages = pages;
            (*cmd).owner = slot as usize as *mut c_void;
            (*cmd).range = self.ranges.as_ptr().cast();
            (*cmd).ranges = self.ranges.len() as u32;
            (*cmd).within_ns = within_ns;
            raw::ftl_submit(self.ftl.as_ptr(), cmd, now_ns);
        }
        self.free.retain(|it| *it != slot);
        true
    }

    /// Takes back a command that has ended: its slot, and whether it succeeded.
    pub fn take_done(&mut self) -> Option<(u32, bool)> {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`; a command that is not null is one of
        // its own, whose owner `submit` or `submit_control` has set.
        let (slot, status) = unsafe {
            let cmd = NonNull::new(raw::ftl_take_done(self.ftl.as_ptr()))?;
            ((*cmd.as_ptr()).owner as usize as u32, cmd.as_ref().status)
        };
        match slot == self.queue_depth {
            true => self.free.insert(0, slot),
            false => self.free.push(slot),
        }
        Some((slot, status == raw::OK))
    }

    /// Content of the last read in a slot, one word for each page. `None` for a page that does not
    /// repeat one word.
    pub fn words(&self, slot: u32, pages: u32) -> impl Iterator<Item = Option<u64>> {
        let memory = &self.memory[slot as usize];
        memory.chunks_exact(WORDS).take(pages as usize).map(|page| {
            let uniform = page.iter().all(|word| *word == page[0]);
            uniform.then_some(page[0])
        })
    }

    /// Advances the device's time to `now_ns`.
    pub fn run(&mut self, now_ns: u64) {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_run(self.ftl.as_ptr(), now_ns) }
    }

    /// Time of the next event; `None` if no command is in flight.
    pub fn next_ns(&self) -> Option<u64> {
        // SAFETY: the device lives as long as `self`.
        let next = unsafe { raw::ftl_next_ns(self.ftl.as_ptr()) };
        (next != raw::NEVER).then_some(next)
    }

    /// Whether no command is in flight.
    pub fn is_idle(&self) -> bool {
        self.free.len() > self.queue_depth as usize
    }

    /// Counters of the device's operations.
    pub fn counters(&mut self) -> Counters {
        Counters::of(&self.stats())
    }

    /// Rows that can still be written before another block must be freed.
    pub fn free_rows(&self) -> u64 {
        // SAFETY: all of the structure's fields are integers, and the core fills in all.
        unsafe {
            let mut usage: raw::Usage = std::mem::zeroed();
            raw::ftl_read_usage(self.ftl.as_ptr(), &mut usage);
            usage.free_rows
        }
    }

    fn stats(&mut self) -> raw::Stats {
        // SAFETY: all of the structure's fields are integers, and the core fills in all.
        unsafe {
            let mut stats: raw::Stats = std::mem::zeroed();
            raw::ftl_read_stats(self.ftl.as_ptr(), &mut stats);
            stats
        }
    }

    /// Sets all counters to 0.
    pub fn reset_counters(&mut self) {
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_reset_stats(self.ftl.as_ptr()) }
    }
}

impl Drop for Flash {
    fn drop(&mut self) {
        // The core requires that no command is in flight; their results do not matter.
        while !self.is_idle() {
            while self.take_done().is_some() {}
            match self.next_ns() {
                Some(next) => self.run(next),
                None => break,
            }
        }
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: it is not used again.
        unsafe { raw::ftl_destroy(self.ftl.as_ptr()) }
    }
}

/// Counters of a device's operations, in pages of 4 KB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Pages that the host wrote.
    pub host_write_pages: u64,
    /// Part of `host_write_pages` that was overwritten in the write cache, and so not programmed.
    pub cache_overwrite_pages: u64,
    /// Pages programmed with the host's data.
    pub programmed_pages: u64,
    /// Pages programmed by garbage collection.
    pub collected_pages: u64,
    /// Pages programmed for the defrag log and checkpoints.
    pub log_pages: u64,
    /// Pages programmed for changed parts of a map that is not wholly in RAM.
    pub map_pages: u64,
    /// Look-ups of pages of the map by reads.
    pub map_look_ups: u64,
    /// Part of `map_look_ups` that was not in RAM.
    pub map_misses: u64,
    /// Pages of the host and the map that were programmed in the write buffer.
    pub buffered_pages: u64,
    /// Pages moved out of the write buffer; [`collected_pages`](Self::collected_pages) includes
    /// them.
    pub folded_pages: u64,
    /// Programs and erases that were suspended for a read.
    pub suspensions: u64,
    /// Rows that were written to a block of another stream.
    pub mixed_rows: u64,
    /// Pages that were read from the device's RAM, without the write cache.
    pub read_cache_hit_pages: u64,
    /// Pages that were read into it because the host announced them.
    pub prefetched_pages: u64,
    /// Pages left empty in rows that had to be programmed before they were full.
    pub padded_pages: u64,
    /// Number of erased blocks.
    pub erases: u64,
}

impl Counters {
    fn of(stats: &raw::Stats) -> Self {
        Counters {
            host_write_pages: stats.command_pages[raw::WRITE as usize],
            cache_overwrite_pages: stats.cache_overwrites,
            programmed_pages: stats.page_programs,
            collected_pages: stats.collect_page_programs,
            log_pages: stats.log_page_programs,
            map_pages: stats.map_page_programs,
            map_look_ups: stats.map_look_ups,
            map_misses: stats.map_misses,
            buffered_pages: stats.slc_page_programs,
            folded_pages: stats.folded_pages,
            suspensions: stats.suspensions,
            mixed_rows: stats.mixed_rows,
            read_cache_hit_pages: stats.read_cache_hits,
            prefetched_pages: stats.prefetched_pages,
            padded_pages: stats.padded_pages,
            erases: stats.erases + stats.log_erases,
        }
    }

    /// Adds the counters of another run.
    pub fn add(&mut self, other: &Counters) {
        for (mine, theirs) in self.all_mut().into_iter().zip({ *other }.all_mut()) {
            *mine += *theirs;
        }
    }

    /// What was counted after `before`.
    #[must_use]
    pub fn since(mut self, before: &Counters) -> Self {
        for (mine, theirs) in self.all_mut().into_iter().zip({ *before }.all_mut()) {
            *mine -= *theirs;
        }
        self
    }

    fn all_mut(&mut self) -> [&mut u64; 16] {
        [
            &mut self.host_write_pages,
            &mut self.cache_overwrite_pages,
            &mut self.programmed_pages,
            &mut self.collected_pages,
            &mut self.log_pages,
            &mut self.map_pages,
            &mut self.map_look_ups,
            &mut self.map_misses,
            &mut self.buffered_pages,
            &mut self.folded_pages,
            &mut self.suspensions,
            &mut self.mixed_rows,
            &mut self.read_cache_hit_pages,
            &mut self.prefetched_pages,
            &mut self.padded_pages,
            &mut self.erases,
        ]
    }

    /// Pages programmed, with padding, for each page that the host wrote; `None` if it wrote none.
    pub fn write_amplification(&self) -> Option<f64> {
        let programmed = self.programmed_pages
            + self.collected_pages
            + self.log_pages
            + self.map_pages
            + self.padded_pages;
        (self.host_write_pages > 0).then(|| programmed as f64 / self.host_write_pages as f64)
    }
}
