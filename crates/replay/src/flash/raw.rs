//! The flash core's interface, `kernel/simflash/ftl/ftl.h`, in Rust.
//!
//! A test compares these structures with the C compiler's.

use std::ffi::{c_char, c_void};

pub const PAGE_BYTES: usize = 4096;
pub const NEVER: u64 = !0;
pub const OPS: usize = 4;
pub const MAX_DIES: usize = 64;

/// Operations of `enum ftl_op`, without the Janus commands.
pub const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const FLUSH: u32 = 2;
pub const DISCARD: u32 = 3;

/// Announcements of the host in `enum ftl_op`.
pub const RESERVE: u32 = 11;
pub const SOON_INVALID: u32 = 12;
pub const PREFETCH: u32 = 13;

/// Success in `enum ftl_status`.
pub const OK: u32 = 0;

/// Values of `enum ftl_parameter_fate`.
pub const PARAMETER_SET: u32 = 0;
pub const PARAMETER_UNKNOWN: u32 = 1;

/// Value of `enum ftl_policy`.
pub const FG_AWARE: u32 = 2;

/// `struct ftl`, opaque here.
#[repr(C)]
pub struct Ftl {
    _opaque: [u8; 0],
}

/// Size of `struct ftl_config` in words; only the core knows its members.
const CONFIG_WORDS: usize = 33;

/// `struct ftl_config`, opaque here.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config([u64; CONFIG_WORDS]);

impl Default for Config {
    fn default() -> Self {
        let mut config = Config([0; CONFIG_WORDS]);
        // SAFETY: it is as large as the core's, and every member's every value is one.
        unsafe { ftl_config_default(&mut config) };
        config
    }
}

/// `struct ftl_content`: with `buffer` false, a page that repeats `word`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Content {
    pub word: u64,
    pub buffer: bool,
}

/// The union of `struct ftl_command_page`.
#[repr(C)]
pub union PageData {
    pub memory: *mut c_void,
    pub content: Content,
}

/// `struct ftl_command_page`: one page of a command.
#[repr(C)]
pub struct CommandPage {
    pub data: PageData,
    pub physical: u32,
    pub oob: u32,
}

/// `struct ftl_cmd` without its last members, which are the core's own.
#[repr(C)]
pub struct Cmd {
    pub op: u32,
    pub fua: bool,
    pub foreground: bool,
    pub stream: u8,
    pub lba: u32,
    pub pages: u32,
    pub owner: *mut c_void,
    pub status: u32,
    pub page: *mut CommandPage,
    pub range: *const c_void,
    pub ranges: u32,
    pub within_ns: u64,
}

/// `struct ftl_stats`: the core's counters.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Stats {
    pub elapsed_ns: u64,
    pub commands: [u64; OPS],
    pub command_pages: [u64; OPS],
    pub command_ns: [u64; OPS],
    pub command_max_ns: [u64; OPS],
    pub failed: u64,
    pub fua_writes: u64,
    pub cache_read_hits: u64,
    pub cache_overwrites: u64,
    pub unmapped_reads: u64,
    pub row_reads: u64,
    pub page_reads: u64,
    pub row_programs: u64,
    pub page_programs: u64,
    pub padded_pages: u64,
    pub erases: u64,
    pub collect_row_reads: u64,
    pub collect_page_reads: u64,
    pub collect_row_programs: u64,
    pub collect_page_programs: u64,
    pub collected_blocks: u64,
    pub level_blocks: u64,
    pub collect_passed_over: u64,
    pub held_writes: u64,
    pub reserves: u64,
    pub announced_invalid_pages: u64,
    pub mixed_rows: u64,
    pub read_cache_hits: u64,
    pub prefetched_pages: u64,
    pub unit_merges: u64,
    pub map_look_ups: u64,
    pub map_misses: u64,
    pub map_page_reads: u64,
    pub map_row_programs: u64,
    pub map_page_programs: u64,
    pub slc_page_programs: u64,
    pub folded_pages: u64,
    pub suspensions: u64,
    pub log_row_programs: u64,
    pub log_page_programs: u64,
    pub log_erases: u64,
    pub log_compactions: u64,
    pub checkpoints: u64,
    pub remapped_pages: u64,
    pub elided_pages: u64,
    pub spread_pages: u64,
    pub mounts: u64,
    pub mount_ns: u64,
    pub mount_row_reads: u64,
    pub die_read_wait_ns: u64,
    pub die_read_wait_max_ns: u64,
    pub die_program_wait_ns: u64,
    pub die_program_wait_max_ns: u64,
    pub busy_ns: [u64; MAX_DIES + 1],
}

/// `struct ftl_usage`: what the device holds.
#[repr(C)]
pub struct Usage {
    pub mapped_pages: u64,
    pub buffered_pages: u64,
    pub free_rows: u64,
    pub total_rows: u64,
    pub cached_pages: u64,
    pub remapped_now: u64,
    pub log_live_pages: u64,
    pub log_buffered_entries: u64,
    pub erases_min: u32,
    pub erases_max: u32,
    pub erases_sum: u64,
    pub blocks: u32,
}

unsafe extern "C" {
    pub fn ftl_parameters() -> u32;
    pub fn ftl_parameter_name(index: u32) -> *const c_char;
    pub fn ftl_config_default(config: *mut Config);
    pub fn ftl_config_set(config: *mut Config, name: *const c_char, value: u64) -> u32;
    pub fn ftl_config_number(config: *const Config, index: u32) -> u64;
    pub fn ftl_config_set_number(config: *mut Config, index: u32, number: u64) -> bool;
    pub fn ftl_config_error(config: *const Config) -> *const c_char;
    pub fn ftl_create(config: *const Config, now_ns: u64) -> *mut Ftl;
    pub fn ftl_destroy(ftl: *mut Ftl);
    pub fn ftl_command(ftl: *mut Ftl, tag: u32) -> *mut Cmd;
    pub fn ftl_provide(ftl: *mut Ftl) -> bool;
    pub fn ftl_submit(ftl: *mut Ftl, cmd: *mut Cmd, now_ns: u64);
    pub fn ftl_run(ftl: *mut Ftl, now_ns: u64);
    pub fn ftl_next_ns(ftl: *const Ftl) -> u64;
    pub fn ftl_take_done(ftl: *mut Ftl) -> *mut Cmd;
    pub fn ftl_read_stats(ftl: *mut Ftl, stats: *mut Stats);
    pub fn ftl_reset_stats(ftl: *mut Ftl);
    pub fn ftl_read_usage(ftl: *const Ftl, usage: *mut Usage);
    pub fn ftl_prepare_remap(ftl: *mut Ftl) -> bool;
    pub fn ftl_prepare_hints(ftl: *mut Ftl) -> bool;
    pub fn ftl_cut_power(ftl: *mut Ftl, operations: u64, seed: u64);
    pub fn ftl_power_is_off(ftl: *const Ftl) -> bool;
    pub fn ftl_power_on(ftl: *mut Ftl, now_ns: u64) -> bool;
    pub fn ftl_image_bytes(ftl: *const Ftl) -> usize;
    pub fn ftl_image_save(ftl: *const Ftl, image: *mut c_void, bytes: usize) -> *const c_char;
    pub fn ftl_image_load(ftl: *mut Ftl, image: *const c_void, bytes: usize) -> *const c_char;
    /// Function of `kernel/simflash/test/invariants.c`; null if all invariants hold.
    pub fn broken_invariant(ftl: *const Ftl) -> *const c_char;
    /// Function of `inspect.c`: the word of each page.
    pub fn frontrow_ftl_words(ftl: *const Ftl, word: *mut u64);
    /// Function of `inspect.c`: operations until the power is cut.
    pub fn frontrow_ftl_operations_left(ftl: *const Ftl) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    unsafe extern "C" {
        static frontrow_ftl_layout: [usize; 29];
    }

    #[test]
    fn the_structures_are_laid_out_as_in_c() {
        // SAFETY: layout.c defines it with as many elements, and nobody writes it.
        let c = unsafe { frontrow_ftl_layout };
        let rust = [
            size_of::<Config>(),
            size_of::<CommandPage>(),
            offset_of!(CommandPage, oob),
            offset_of!(Cmd, fua),
            offset_of!(Cmd, foreground),
            offset_of!(Cmd, stream),
            offset_of!(Cmd, pages),
            offset_of!(Cmd, owner),
            offset_of!(Cmd, status),
            offset_of!(Cmd, page),
            offset_of!(Cmd, ranges),
            size_of::<Stats>(),
            offset_of!(Stats, page_programs),
            offset_of!(Stats, collect_page_programs),
            offset_of!(Stats, map_misses),
            offset_of!(Stats, suspensions),
            offset_of!(Stats, log_erases),
            offset_of!(Stats, busy_ns),
            OPS,
            MAX_DIES,
            PAGE_BYTES,
            FG_AWARE as usize,
            size_of::<Usage>(),
            offset_of!(Usage, free_rows),
            offset_of!(Cmd, within_ns),
            RESERVE as usize,
            SOON_INVALID as usize,
            PREFETCH as usize,
            offset_of!(Stats, prefetched_pages),
        ];
        assert_eq!(rust, c);
    }
}
