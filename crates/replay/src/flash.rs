//! The flash core in this process: a device without a kernel, whose time is a number.
//!
//! Pages are 4096 bytes and hold one repeated 64-bit word, which is how the core keeps
//! them without memory of their own.

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

/// Bytes of a page.
pub const PAGE_BYTES: u64 = raw::PAGE_BYTES as u64;

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profile has a parameter that no such device has.
    #[error("the device profile's parameter {0} is unknown: `modinfo simflash.ko` lists them")]
    Parameter(String),
    /// A number beyond what the core takes.
    #[error("the device profile's {0} is too large")]
    TooLarge(String),
    /// The core cannot build it.
    #[error("this device cannot be: {0}")]
    Config(String),
    /// Memory is short.
    #[error("there is not enough memory for the map of a device with {0} pages of 4 KB")]
    Memory(u32),
}

/// What the device is: a profile's `[simflash]` table.
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

    /// What the core has for a parameter, in the core's unit: pages instead of KiB and MiB.
    fn number(&self, name: &str) -> u64 {
        // SAFETY: the index is a parameter's, and the configuration is only read.
        unsafe { raw::ftl_config_number(&self.0, parameter_index(name)) }
    }

    /// The same device with another size and as much flash beyond it.
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

    /// Commands that it takes at once.
    pub fn queue_depth(&self) -> u32 {
        self.number("queue_depth") as u32
    }

    /// Pages that the host sees.
    pub fn capacity_pages(&self) -> u32 {
        self.number("capacity_mib") as u32
    }

    /// Largest read or write.
    pub fn command_pages(&self) -> u32 {
        self.number("request_kib") as u32
    }
}

/// Parameters of the kernel's block layer, or of power cuts, which a replay has none of.
const OF_NO_REPLAY: [&str; 7] = [
    "discard_mib",
    "hardware_queues",
    "fua",
    "stable_pages",
    "removable",
    "power_loss",
    "stream_mib",
];

/// The core's parameters, in their order.
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

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Pages from `lba` on.
    Read {
        /// First page.
        lba: u32,
        /// At most [`Flash::command_pages`].
        pages: u32,
    },
    /// Pages from `lba` on.
    Write {
        /// First page.
        lba: u32,
        /// At most [`Flash::command_pages`].
        pages: u32,
        /// It ends when they are in flash.
        fua: bool,
    },
    /// Pages from `lba` on, of any number.
    Discard {
        /// First page.
        lba: u32,
        /// How many.
        pages: u32,
    },
    /// All that was written is in flash.
    Flush,
}

/// A device.
pub struct Flash {
    ftl: NonNull<raw::Ftl>,
    capacity_pages: u32,
    queue_depth: u32,
    command_pages: u32,
    /// Slots; the one behind the queue's is for control commands.
    free: Vec<u32>,
    /// For each slot the pages that a read brings; boxed, so that they stay where they are.
    memory: Vec<Box<[u64]>>,
    /// Those of the control command that is under way.
    ranges: Arc<[Range]>,
    /// Where all of it is, if it is savable.
    arena: Option<Box<Arena>>,
}

// SAFETY: the core has no thread of its own and nothing that belongs to one.
unsafe impl Send for Flash {}

/// Words of a page.
const WORDS: usize = raw::PAGE_BYTES / size_of::<u64>();

impl Flash {
    /// An empty device at time 0.
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

    /// Pages that a read or write may have.
    pub fn command_pages(&self) -> u32 {
        self.command_pages
    }

    /// Sends a command at `now_ns`; `word` gives what each page of a write holds. Gives the
    /// slot that the command has until [`Flash::take_done`] names it.
    ///
    /// `None` if all slots are taken, or memory for the data is short: run on and try again.
    ///
    /// # Panics
    /// If the pages are not on the device, or more than a command may have.
    pub fn submit(
        &mut self,
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
        // The control slot stays at the bottom.
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
            (*cmd).foreground = false;
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

    /// A command that is done: its slot, and whether it did what it was to do.
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

    /// What the last read of a slot brought, a word for each page; `None` for a page that
    /// does not repeat one word.
    pub fn words(&self, slot: u32, pages: u32) -> impl Iterator<Item = Option<u64>> {
        let memory = &self.memory[slot as usize];
        memory.chunks_exact(WORDS).take(pages as usize).map(|page| {
            let uniform = page.iter().all(|word| *word == page[0]);
            uniform.then_some(page[0])
        })
    }

    /// Lets time go on to `now_ns`.
    pub fn run(&mut self, now_ns: u64) {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_run(self.ftl.as_ptr(), now_ns) }
    }

    /// When something will happen next; `None` if nothing is under way.
    pub fn next_ns(&self) -> Option<u64> {
        // SAFETY: the device lives as long as `self`.
        let next = unsafe { raw::ftl_next_ns(self.ftl.as_ptr()) };
        (next != raw::NEVER).then_some(next)
    }

    /// Whether no command is under way.
    pub fn is_idle(&self) -> bool {
        self.free.len() > self.queue_depth as usize
    }

    /// What the device counted.
    pub fn counters(&mut self) -> Counters {
        Counters::of(&self.stats())
    }

    fn stats(&mut self) -> raw::Stats {
        // SAFETY: all of the structure's fields are integers, and the core fills in all.
        unsafe {
            let mut stats: raw::Stats = std::mem::zeroed();
            raw::ftl_read_stats(self.ftl.as_ptr(), &mut stats);
            stats
        }
    }

    /// Counts anew.
    pub fn reset_counters(&mut self) {
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_reset_stats(self.ftl.as_ptr()) }
    }
}

impl Drop for Flash {
    fn drop(&mut self) {
        // Commands must not be under way then; nobody waits for how they end.
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

/// What a device did, in pages of 4 KB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Written by the host.
    pub host_write_pages: u64,
    /// Of them, written again while they were in the write cache, and so not programmed.
    pub cache_overwrite_pages: u64,
    /// Programmed because the host wrote them.
    pub programmed_pages: u64,
    /// Programmed by garbage collection.
    pub collected_pages: u64,
    /// Programmed for the defrag log and checkpoints.
    pub log_pages: u64,
    /// Programmed for the part of the map that changed, where not all of it is in RAM.
    pub map_pages: u64,
    /// Pages of the map that reads asked for.
    pub map_look_ups: u64,
    /// Of them, not in RAM.
    pub map_misses: u64,
    /// Programmed in the write buffer, of the host's and the map's.
    pub buffered_pages: u64,
    /// Moved out of the write buffer; [`collected_pages`](Self::collected_pages) has them, too.
    pub folded_pages: u64,
    /// Programs and erases that were suspended for a read.
    pub suspensions: u64,
    /// Left empty in rows that had to be programmed before they were full.
    pub padded_pages: u64,
    /// Blocks erased.
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
            padded_pages: stats.padded_pages,
            erases: stats.erases + stats.log_erases,
        }
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
