//! Power cuts and mounts, and the commands that only a device with a log has.

use super::arena::{Arena, Saved, enter};
use super::{Config, Error, Flash, raw};
use std::ffi::CStr;
use std::sync::Arc;

/// Pages of a Janus command (`struct ftl_range`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First page that the data are in.
    pub src: u32,
    /// First page that they are to be in.
    pub dst: u32,
    /// How many.
    pub pages: u32,
}

/// What a device programmed and erased, and read to do so; counted by the core.
pub const OPERATION_COUNTERS: usize = 15;

/// A device as it was.
pub struct Snapshot {
    memory: Saved,
    free: Vec<u32>,
    ranges: Arc<[Range]>,
}

/// More operations than a device ever does.
const NEVER_CUT: u64 = 1 << 62;

impl Config {
    /// Of the numbers of the core's parameters, in their order; `None` if there are more or
    /// fewer of them than the core has, or one is too large.
    pub fn of_numbers(numbers: &[u64]) -> Option<Self> {
        let mut config = raw::Config::default();
        let all = super::parameter_names().count() == numbers.len();
        let set = numbers.iter().zip(0..).all(|(number, index)| {
            // SAFETY: there are as many parameters as numbers.
            all && unsafe { raw::ftl_config_set_number(&mut config, index, *number) }
        });
        (all && set).then_some(Config(config))
    }

    /// Whether its power can be cut.
    pub fn power_loss(&self) -> bool {
        self.number("power_loss") != 0
    }

    /// Whether it serves what has the foreground's priority first.
    pub fn is_foreground_aware(&self) -> bool {
        self.number("policy") == u64::from(raw::FG_AWARE)
    }
}

impl Flash {
    /// A device that can be saved and put back, and whose programs and erases are counted.
    ///
    /// # Errors
    /// As [`Flash::new`].
    pub fn savable(config: &Config) -> Result<Self, Error> {
        let arena = Arena::new().ok_or(Error::Memory(config.capacity_pages()))?;
        let mut flash = Flash::in_memory(config, Some(arena))?;
        flash.cut_power(NEVER_CUT, 0);
        Ok(flash)
    }

    /// The device as it is now; `None` if it is not savable.
    pub fn save(&self) -> Option<Snapshot> {
        Some(Snapshot {
            memory: self.arena.as_ref()?.save(),
            free: self.free.clone(),
            ranges: Arc::clone(&self.ranges),
        })
    }

    /// The device is again as it was. Nothing is changed if it is not savable.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        let Some(arena) = &mut self.arena else {
            return;
        };
        arena.restore(&snapshot.memory);
        self.free.clone_from(&snapshot.free);
        self.ranges = Arc::clone(&snapshot.ranges);
    }

    /// Sends a command of `enum ftl_op` that follows those of every device, and gives its slot.
    ///
    /// `None` if the one before has not ended, or memory is short.
    pub fn submit_control(&mut self, op: u32, ranges: &[Range], now_ns: u64) -> Option<u32> {
        let slot = self.queue_depth;
        if self.control_busy() {
            return None;
        }
        self.ranges = ranges.into();
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the control slot is free; its ranges live as long as it is not, in this device
        // or in a snapshot of it.
        unsafe {
            if !raw::ftl_prepare_remap(self.ftl.as_ptr()) {
                return None;
            }
            let cmd = raw::ftl_command(self.ftl.as_ptr(), slot);
            (*cmd).op = op;
            (*cmd).fua = false;
            (*cmd).foreground = false;
            (*cmd).lba = 0;
            (*cmd).pages = ranges.iter().map(|range| range.pages).sum();
            (*cmd).owner = slot as usize as *mut _;
            (*cmd).range = self.ranges.as_ptr().cast();
            (*cmd).ranges = ranges.len() as u32;
            raw::ftl_submit(self.ftl.as_ptr(), cmd, now_ns);
        }
        self.free.retain(|it| *it != slot);
        Some(slot)
    }

    /// The power fails while the `operations`th program or erase from now is under way, or at
    /// once if that is 0; how what is under way is torn depends on `seed`.
    pub fn cut_power(&mut self, operations: u64, seed: u64) {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_cut_power(self.ftl.as_ptr(), operations, seed) }
    }

    /// Whether the power was cut.
    pub fn is_off(&self) -> bool {
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_power_is_off(self.ftl.as_ptr()) }
    }

    /// Programs and erases that have ended, since a savable device was made.
    pub fn operations(&self) -> u64 {
        // SAFETY: the device lives as long as `self`.
        NEVER_CUT - unsafe { raw::frontrow_ftl_operations_left(self.ftl.as_ptr()) }
    }

    /// Mounts a device whose power was cut; false if memory is short.
    pub fn power_on(&mut self, now_ns: u64) -> bool {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_power_on(self.ftl.as_ptr(), now_ns) }
    }

    /// What of the core's own account does not add up, among it that map and OOBs name each
    /// other (L2P = P2L).
    pub fn broken_invariant(&self) -> Option<&'static str> {
        // SAFETY: it only reads; the sentence is a static string or null.
        let sentence = unsafe { raw::broken_invariant(self.ftl.as_ptr()) };
        // SAFETY: if it is not null, it ends with a zero as all C strings.
        (!sentence.is_null()).then(|| unsafe { CStr::from_ptr(sentence) }.to_str().unwrap_or("?"))
    }

    /// What each page of a device holds that was just mounted, whose pages all repeat a word.
    pub fn all_words(&self) -> Vec<u64> {
        let mut words = vec![0; self.capacity_pages as usize];
        // SAFETY: there is a word for each of the device's pages.
        unsafe { raw::frontrow_ftl_words(self.ftl.as_ptr(), words.as_mut_ptr()) };
        words
    }

    /// Time that the last mount took, and the rows that it read.
    pub fn last_mount(&mut self) -> (u64, u64) {
        let stats = self.stats();
        (stats.mount_ns, stats.mount_row_reads)
    }

    /// Row reads, row programs, page programs, padded pages and erases; row and page programs of
    /// garbage collection; row programs, page programs and erases of log and checkpoints; pages
    /// elided and spread; row and page programs of the map; pages folded.
    pub fn operation_counters(&mut self) -> [u64; OPERATION_COUNTERS] {
        let it = self.stats();
        [
            it.row_reads,
            it.row_programs,
            it.page_programs,
            it.padded_pages,
            it.erases,
            it.collect_row_programs,
            it.collect_page_programs,
            it.log_row_programs,
            it.log_page_programs,
            it.log_erases,
            it.elided_pages,
            it.spread_pages,
            it.map_row_programs,
            it.map_page_programs,
            it.folded_pages,
        ]
    }

    fn control_busy(&self) -> bool {
        !self.free.contains(&self.queue_depth)
    }
}

#[cfg(test)]
mod tests;
