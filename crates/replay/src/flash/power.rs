//! Power cuts and mounts, and the commands that only a device with a log has.

use super::arena::{Arena, Saved, enter};
use super::{Config, Error, Flash, raw};
use std::ffi::CStr;
use std::sync::Arc;

/// A range of pages in a Janus command (`struct ftl_range`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First page of the data now.
    pub src: u32,
    /// First page of the data after the command.
    pub dst: u32,
    /// Number of pages.
    pub pages: u32,
}

/// Number of counters of programs, erases, and reads for them, see [`Flash::operation_counters`].
pub const OPERATION_COUNTERS: usize = 15;

/// Saved state of a savable device.
pub struct Snapshot {
    memory: Saved,
    free: Vec<u32>,
    ranges: Arc<[Range]>,
}

/// A device never does this many operations.
const NEVER_CUT: u64 = 1 << 62;

impl Config {
    /// Builds a configuration from the numbers of the core's parameters, in the core's order.
    /// `None` if their count differs from the core's, or one is too large.
    pub fn of_numbers(numbers: &[u64]) -> Option<Self> {
        let mut config = raw::Config::default();
        let all = super::parameter_names().count() == numbers.len();
        let set = numbers.iter().zip(0..).all(|(number, index)| {
            // SAFETY: there are as many parameters as numbers.
            all && unsafe { raw::ftl_config_set_number(&mut config, index, *number) }
        });
        (all && set).then_some(Config(config))
    }

    /// Whether the device's power can be cut.
    pub fn power_loss(&self) -> bool {
        self.number("power_loss") != 0
    }

    /// Whether the device serves commands with the foreground's priority first.
    pub fn is_foreground_aware(&self) -> bool {
        self.number("policy") == u64::from(raw::FG_AWARE)
    }
}

impl Flash {
    /// A device that can be saved and restored, and whose programs and erases are counted.
    ///
    /// # Errors
    /// As [`Flash::new`].
    pub fn savable(config: &Config) -> Result<Self, Error> {
        let arena = Arena::new().ok_or(Error::Memory(config.capacity_pages()))?;
        let mut flash = Flash::in_memory(config, Some(arena))?;
        flash.cut_power(NEVER_CUT, 0);
        Ok(flash)
    }

    /// Saves the device's state; `None` if it is not savable.
    pub fn save(&self) -> Option<Snapshot> {
        Some(Snapshot {
            memory: self.arena.as_ref()?.save(),
            free: self.free.clone(),
            ranges: Arc::clone(&self.ranges),
        })
    }

    /// Restores the saved state; does nothing if the device is not savable.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        let Some(arena) = &mut self.arena else {
            return;
        };
        arena.restore(&snapshot.memory);
        self.free.clone_from(&snapshot.free);
        self.ranges = Arc::clone(&snapshot.ranges);
    }

    /// Sends a control command, which is one of `enum ftl_op` after the common ones, and returns
    /// its slot.
    ///
    /// `None` if the previous one has not ended, or memory is short.
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
            (*cmd).stream = 0;
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

    /// Cuts the power during the `operations`th program or erase from now; 0 is at once. `seed`
    /// determines how operations in flight are torn.
    pub fn cut_power(&mut self, operations: u64, seed: u64) {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_cut_power(self.ftl.as_ptr(), operations, seed) }
    }

    /// Whether the power is cut.
    pub fn is_off(&self) -> bool {
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_power_is_off(self.ftl.as_ptr()) }
    }

    /// Number of programs and erases that ended since the savable device was made.
    pub fn operations(&self) -> u64 {
        // SAFETY: the device lives as long as `self`.
        NEVER_CUT - unsafe { raw::frontrow_ftl_operations_left(self.ftl.as_ptr()) }
    }

    /// Mounts a device after a power cut; false if memory is short.
    pub fn power_on(&mut self, now_ns: u64) -> bool {
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the device lives as long as `self`.
        unsafe { raw::ftl_power_on(self.ftl.as_ptr(), now_ns) }
    }

    /// A sentence on a broken invariant of the core, such as that map and OOBs must agree (L2P =
    /// P2L). None if all hold.
    pub fn broken_invariant(&self) -> Option<&'static str> {
        // SAFETY: it only reads; the sentence is a static string or null.
        let sentence = unsafe { raw::broken_invariant(self.ftl.as_ptr()) };
        // SAFETY: if it is not null, it ends with a zero as all C strings.
        (!sentence.is_null()).then(|| unsafe { CStr::from_ptr(sentence) }.to_str().unwrap_or("?"))
    }

    /// Word of each page of a device that was just mounted and whose pages all repeat a word.
    pub fn all_words(&self) -> Vec<u64> {
        let mut words = vec![0; self.capacity_pages as usize];
        // SAFETY: there is a word for each of the device's pages.
        unsafe { raw::frontrow_ftl_words(self.ftl.as_ptr(), words.as_mut_ptr()) };
        words
    }

    /// Virtual time of the last mount in nanoseconds, and the number of rows that it read.
    pub fn last_mount(&mut self) -> (u64, u64) {
        let stats = self.stats();
        (stats.mount_ns, stats.mount_row_reads)
    }

    /// Counters since the last reset, in this order:
    ///
    /// - row reads, row programs, page programs, padded pages and erases;
    /// - row and page programs of garbage collection;
    /// - row programs, page programs and erases of log and checkpoints;
    /// - pages elided and pages spread;
    /// - row and page programs of the map;
    /// - pages folded.
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
