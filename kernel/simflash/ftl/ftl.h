/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A flash device: page-level map, physical pages with their OOB, channels and
 * dies with their queues, a write cache, and the time all of it takes.
 *
 * The core has no clock, no thread and no lock. The caller holds one lock
 * around every call, says what time it is, and comes back when ftl_next_ns()
 * says that something will have happened:
 *
 *	ftl_submit(ftl, cmd, now);  or  ftl_run(ftl, now);
 *	while ((cmd = ftl_take_done(ftl)))
 *		...
 *	wake up at ftl_next_ns(ftl)
 *
 * Times are nanoseconds of one steadily growing clock. Everything that fell
 * due between two calls happens in the order and at the instant it fell due,
 * however late the call comes.
 *
 * How a command goes:
 *
 *	arrival -> controller -> dies and cache -> link -> response -> done
 *
 * controller	serves one command at a time: protocol and map look-up.
 * die		serves one flash operation at a time from its own queue; which
 *		one is decided when it gets free, never on arrival.
 * channel	moves data between dies and controller, one die at a time.
 * link		moves data between host and device, one piece at a time.
 * response	latency of the answer; nobody waits behind it.
 *
 * Vocabulary: a *page* is 4 KB, the unit of the map. A die reads and programs
 * a *row* of several pages at once (one page of real NAND, all planes). A
 * *block* is what one erase clears. An *LBA* here counts pages.
 */
#ifndef FTL_H
#define FTL_H

#include "platform.h"

#define FTL_PAGE_BYTES 4096
#define FTL_NEVER (~(uint64_t)0)
#define FTL_NONE 0xffffffffu
#define FTL_NO_LBA 0x7fffffffu

#define FTL_MAX_DIES 64
#define FTL_MAX_ROW_PAGES 16
#define FTL_MAX_BLOCK_PAGES 256
#define FTL_MAX_CACHE_PAGES 65536
#define FTL_MAX_QUEUE_DEPTH 1024
#define FTL_MAX_COMMAND_PAGES 1024
#define FTL_MAX_STREAMS 8

enum ftl_policy {
	FTL_FIFO,		/* a die serves in order of arrival */
	FTL_READ_FIRST,		/* a die serves reads before programs */
	FTL_FG_AWARE,		/* FG read > FG write > BG read > BG write, everywhere */
	FTL_POLICIES,
};

/* Which block garbage collection empties next. */
enum ftl_victim {
	FTL_GREEDY,		/* the one with the fewest valid pages */
	FTL_COST_BENEFIT,	/* most space for the work, old blocks before recent ones */
	FTL_HEAT,		/* ... where a page that is soon invalid costs twice */
	FTL_VICTIMS,
};

/*
 * What a profile sets (parameters.h); 0 ns is allowed everywhere and means no time
 * passes. Members are 32 or 64 bits wide.
 */
struct ftl_config {
	uint32_t capacity_pages;	/* what the host sees */
	uint32_t spare_percent;		/* flash beyond that */
	uint32_t channels;
	uint32_t dies_per_channel;
	uint32_t block_pages;
	uint32_t row_pages;
	uint32_t cache_pages;
	uint32_t queue_depth;
	uint32_t commands_at_once;	/* in service; 0: queue_depth */
	uint32_t command_pages;		/* largest read or write */
	uint32_t policy;		/* enum ftl_policy */
	uint32_t victim;		/* enum ftl_victim */
	uint32_t wear_gap;		/* erases between blocks that level wear; 0: never */
	uint32_t log_pages;		/* the defrag log at its largest */
	uint32_t checkpoint_pages;	/* programmed between two checkpoints; 0: only when asked */
	uint32_t map_cache_pages;	/* of the map in RAM; 0: all */
	uint32_t map_page_lbas;		/* whose entries a page of the map has */
	uint32_t slc_pages;		/* write buffer in flash, beside the rest */
	uint32_t unit_pages;		/* mapped as a whole; 0: pages are */
	uint32_t open_units;		/* of them written at a time */
	/*
	 * Flash keeps what was not erased, and discards are logged: what a power
	 * cut needs. Takes 16 bytes a page for invalid flash, too.
	 */
	uint32_t power_loss;
	uint32_t link_duplex;		/* reads and writes cross it side by side */
	uint32_t collect_yields;	/* FTL_FG_AWARE: to the foreground's programs */
	uint32_t front_rows;		/* FTL_FG_AWARE: only the foreground's writes take them */
	uint32_t idle_percent;		/* of the spare flash, kept free while idle; 0: a 64th */
	uint32_t streams;		/* of writes, each with blocks of its own; 0: one */
	uint32_t own_streams;		/* the device gives one to a write that has none */
	uint32_t read_cache_pages;
	uint32_t read_cache_announced;	/* it keeps FTL_PREFETCH's pages, not what was read last */

	uint64_t read_ns;		/* a row, cells to the die's register */
	uint64_t read_upper_ns;		/* every other row; 0: read_ns */
	uint64_t program_ns;		/* a row, register to cells */
	uint64_t program_upper_ns;	/* every other row; 0: program_ns */
	uint64_t erase_ns;		/* a block */
	uint64_t suspend_ns;		/* a program or erase makes way for a read; 0: never */
	uint64_t merge_ns;		/* controller, when a unit is opened in place of another */
	uint64_t slc_read_ns;		/* a row of the write buffer */
	uint64_t slc_program_ns;
	uint64_t fold_after_ns;		/* idle time until the write buffer is emptied */
	uint64_t channel_page_ns;	/* a page between die and controller */
	uint64_t link_page_ns;		/* a page between host and device */
	uint64_t read_command_ns;	/* controller, each command */
	uint64_t write_command_ns;
	uint64_t flush_command_ns;
	uint64_t discard_command_ns;
	uint64_t discard_mib_ns;	/* controller, each MiB begun */
	uint64_t response_ns;		/* each command, passed in parallel */
};

/*
 * The Janus commands (dissertation, table 6) follow those of every device.
 * They go through the controller as the others do, from the control slot.
 *
 * FTL_REMAP	defrag(src, dst): dst is to have what src has, without a copy.
 *		Until the commit both have it; then src has nothing. What dst had
 *		before is gone at once. All ranges or, with another status than
 *		FTL_OK, none.
 * FTL_SPREAD	defrag(src, -1): rewrites the ranges over all dies if their
 *		DoF_P is at least one half; `moved` is the pages rewritten. FTL_LOG_FULL
 *		while a move waits for its commit.
 * FTL_ARM	when a write to dst brings what src has, its page is remapped as
 *		by FTL_REMAP, and both keep it: a copy that programs nothing.
 *		With no ranges: forget all that is armed.
 * FTL_LOG_FLUSH	the defrag log is in flash.
 * FTL_LOG_COMMIT	... and what was remapped stays: the completion flag.
 * FTL_LOG_DISCARD	what was remapped since the last commit is undone.
 * FTL_CHECKPOINT	before power-off: the next mount reads the map, and scans nothing.
 *
 * What the host announces (hints.c) goes the same way:
 *
 * FTL_RESERVE	it will write `pages` pages within `within_ns`. The device collects as much
 *		ahead while it is idle, and no more. Replaces what was announced before.
 * FTL_SOON_INVALID	src of the ranges is about to be overwritten or dropped, within
 *		`within_ns`. With no ranges: forget all that was announced.
 * FTL_PREFETCH	src of the ranges will be read: a device with read_cache_announced reads it into
 *		its RAM while it is idle.
 */
enum ftl_op {
	FTL_READ, FTL_WRITE, FTL_FLUSH, FTL_DISCARD, FTL_OPS,
	FTL_REMAP = FTL_OPS, FTL_SPREAD, FTL_ARM, FTL_LOG_FLUSH, FTL_LOG_COMMIT,
	FTL_LOG_DISCARD, FTL_CHECKPOINT, FTL_RESERVE, FTL_SOON_INVALID, FTL_PREFETCH,
};

enum ftl_status {
	FTL_OK,
	FTL_NO_SPACE,	/* no row could be had: every block holds valid pages */
	FTL_CORRUPT,	/* a page's OOB names another LBA: the map is wrong */
	FTL_POWER_LOST,	/* the power was cut before the command ended, or is off */
	FTL_BAD_RANGE,	/* ranges overlap, or are beyond the device */
	FTL_BUSY,	/* the range is being written */
	FTL_LOG_FULL,	/* commit or discard first; or memory is short */
};

/* Pages of a Janus command. */
struct ftl_range {
	uint32_t src, dst, pages;
};

#define FTL_MAX_RANGES 1024
#define FTL_MAX_RANGE_PAGES 65536	/* of all ranges of a command */

/*
 * A page's data. Most pages of a benchmark's files repeat one word; they are
 * kept as that word, so that gigabytes of them cost nothing.
 */
struct ftl_content {
	uint64_t word;		/* the repeated word, or the buffer's address */
	bool buffer;
};

/* One page of a command: where to it is read, or what is written. */
struct ftl_command_page {
	union {
		void *memory;
		struct ftl_content content;
	};
	uint32_t physical;
	uint32_t oob;		/* the LBA its OOB has to name */
};

/* Filled in by the caller up to `private`, from the one ftl_command() gives. */
struct ftl_cmd {
	enum ftl_op op;
	bool fua;
	bool foreground;		/* somebody looks at who waits (FTL_FG_AWARE) */
	uint8_t stream;			/* of a write; 0, or one that the device has not: none */
	uint32_t lba;
	uint32_t pages;
	void *owner;			/* the caller's */
	enum ftl_status status;		/* once done */
	struct ftl_command_page *page;	/* command_pages of them */
	const struct ftl_range *range;	/* of a Janus command, until it is done */
	uint32_t ranges;		/* and `pages` is the sum of theirs */
	uint64_t within_ns;		/* of FTL_RESERVE and FTL_SOON_INVALID */

	/* private */
	struct ftl_cmd *next;
	struct ftl_operation *operation;
	uint64_t number;
	uint64_t arrival_ns;
	uint64_t due_ns;
	uint64_t flush_row;
	uint64_t flush_log;		/* number of a page of the log */
	uint32_t moved;
	uint32_t waiting;
	uint32_t overtaken;
	bool under_way;
};

struct ftl_stats {
	uint64_t elapsed_ns;
	uint64_t commands[FTL_OPS];
	uint64_t command_pages[FTL_OPS];
	uint64_t command_ns[FTL_OPS];		/* arrival to response, summed */
	uint64_t command_max_ns[FTL_OPS];
	uint64_t failed;
	uint64_t fua_writes;
	uint64_t cache_read_hits;		/* pages */
	uint64_t cache_overwrites;		/* pages */
	uint64_t unmapped_reads;		/* pages */
	uint64_t row_reads;
	uint64_t page_reads;
	uint64_t row_programs;
	uint64_t page_programs;
	uint64_t padded_pages;
	uint64_t erases;
	uint64_t collect_row_reads;		/* by garbage collection */
	uint64_t collect_page_reads;
	uint64_t collect_row_programs;
	uint64_t collect_page_programs;
	uint64_t collected_blocks;		/* read to their end */
	uint64_t level_blocks;			/* of them, only to level wear */
	uint64_t collect_passed_over;		/* programs that urgent collection made way for */
	uint64_t held_writes;			/* of the background, until more rows were free */
	uint64_t reserves;			/* announcements of writes */
	uint64_t announced_invalid_pages;
	uint64_t mixed_rows;			/* in another stream's block, for lack of an own one */
	uint64_t read_cache_hits;		/* pages */
	uint64_t prefetched_pages;		/* read for FTL_PREFETCH */
	uint64_t unit_merges;
	uint64_t map_look_ups;			/* pages of the map that reads asked for */
	uint64_t map_misses;			/* ... that were not in RAM */
	uint64_t map_page_reads;		/* for these, and for changes */
	uint64_t map_row_programs;
	uint64_t map_page_programs;
	uint64_t slc_page_programs;		/* of the host's and the map's, in the write buffer */
	uint64_t folded_pages;			/* moved out of it */
	uint64_t suspensions;			/* of programs and erases, for reads */
	uint64_t log_row_programs;		/* defrag log and checkpoints */
	uint64_t log_page_programs;
	uint64_t log_erases;
	uint64_t log_compactions;
	uint64_t checkpoints;
	uint64_t remapped_pages;		/* by FTL_REMAP */
	uint64_t elided_pages;			/* written to armed pages, and not programmed */
	uint64_t spread_pages;			/* by FTL_SPREAD */
	uint64_t mounts;
	uint64_t mount_ns;			/* of the last one */
	uint64_t mount_row_reads;
	uint64_t die_read_wait_ns;		/* queued at a die, summed */
	uint64_t die_read_wait_max_ns;
	uint64_t die_program_wait_ns;
	uint64_t die_program_wait_max_ns;
	uint64_t busy_ns[FTL_MAX_DIES + 1];	/* time with that many dies busy */
};

/* What the device holds now. */
struct ftl_usage {
	uint64_t mapped_pages;
	uint64_t buffered_pages;	/* physical pages that are not uniform */
	uint64_t free_rows;
	uint64_t total_rows;
	uint64_t cached_pages;
	uint64_t remapped_now;		/* LBAs whose page names another one in its OOB */
	uint64_t log_live_pages;	/* of the defrag log, in flash */
	uint64_t log_buffered_entries;
	uint32_t erases_min, erases_max;	/* of the blocks */
	uint64_t erases_sum;
	uint32_t blocks;
};

struct ftl;

/* The time a page takes at a rate of so many 10^6 bytes a second; 0: none. */
static inline uint64_t ftl_page_ns(uint32_t mb_s)
{
	return mb_s ? FTL_PAGE_BYTES * 1000 / mb_s : 0;
}

/* The parameters' names, in the order of parameters.h. */
uint32_t ftl_parameters(void);
const char *ftl_parameter_name(uint32_t index);

enum ftl_parameter_fate { FTL_PARAMETER_SET, FTL_PARAMETER_UNKNOWN, FTL_PARAMETER_TOO_LARGE };

/* Every parameter by default; then one by its name, in the name's unit. */
void ftl_config_default(struct ftl_config *config);
enum ftl_parameter_fate ftl_config_set(struct ftl_config *config, const char *name,
				       uint64_t value);

/* The member that a parameter sets, in the member's unit; false if it is too large. */
uint64_t ftl_config_number(const struct ftl_config *config, uint32_t index);
bool ftl_config_set_number(struct ftl_config *config, uint32_t index, uint64_t number);

/* NULL if the configuration can be built, else what to change, one sentence. */
const char *ftl_config_error(const struct ftl_config *config);

/* NULL if memory is short. May sleep. */
struct ftl *ftl_create(const struct ftl_config *config, uint64_t now_ns);

/* No command may be under way. */
void ftl_destroy(struct ftl *ftl);

/*
 * The command of queue slot `tag`, below queue_depth; free once it was taken
 * back. Slot queue_depth is for the Janus commands.
 */
struct ftl_cmd *ftl_command(struct ftl *ftl, uint32_t tag);

/*
 * Takes the memory that the next write's blocks may need; false if it is
 * short, and then no write may be submitted.
 */
bool ftl_provide(struct ftl *ftl);

void ftl_submit(struct ftl *ftl, struct ftl_cmd *cmd, uint64_t now_ns);
void ftl_run(struct ftl *ftl, uint64_t now_ns);
uint64_t ftl_next_ns(const struct ftl *ftl);
struct ftl_cmd *ftl_take_done(struct ftl *ftl);

/*
 * Memory for the Janus commands; false if it is short. May sleep, so it is
 * called without the lock, by one caller at a time.
 */
bool ftl_prepare_remap(struct ftl *ftl);

/* The same for FTL_SOON_INVALID. FTL_PREFETCH needs none. */
bool ftl_prepare_hints(struct ftl *ftl);

/* check(): whether all that was remapped is committed. */
bool ftl_log_committed(const struct ftl *ftl);

/* How far the dies are from sharing a sequential read of the ranges evenly, in thousandths. */
uint32_t ftl_dof_p_permille(const struct ftl *ftl, const struct ftl_range *range,
			    uint32_t ranges);

/*
 * The power fails while the `operations`th program or erase from now is under
 * way; 0: at once. What was under way in the cells is half done, in a way that
 * depends on `seed`. Every command ends with FTL_POWER_LOST, and every later
 * one, until ftl_power_on(). For devices with power_loss.
 */
void ftl_cut_power(struct ftl *ftl, uint64_t operations, uint64_t seed);
bool ftl_power_is_off(const struct ftl *ftl);

/*
 * Mounts: the map is rebuilt from flash, and commands wait as long as that
 * takes. Programs nothing, so that it can be cut and repeated. False if memory
 * is short; then the power is still off.
 */
bool ftl_power_on(struct ftl *ftl, uint64_t now_ns);

/*
 * An image is what is in a device's flash, but for the data: which pages are
 * valid, whose, and how worn and how old blocks are. It is aligned to 8 bytes.
 * These functions give NULL, or why they have done nothing, in one sentence.
 * Save: of a device at rest. Check: whether it is a whole one, of such a device.
 * Load: into one that was just made; its pages then hold a word each that tells
 * their LBA. The image is not trusted. Loading takes memory and time, and is
 * called without the lock.
 */
size_t ftl_image_bytes(const struct ftl *ftl);
const char *ftl_image_save(const struct ftl *ftl, void *image, size_t bytes);
const char *ftl_image_check(const struct ftl *ftl, const void *image, size_t bytes);
const char *ftl_image_load(struct ftl *ftl, const void *image, size_t bytes);

/* False if memory is short. Needs no lock. `memory` is aligned to 8 bytes. */
bool ftl_capture(struct ftl_content *content, const void *memory);
void ftl_content_read(const struct ftl_content *content, void *memory);
void ftl_content_drop(struct ftl_content *content);

/* Up to the time of the last ftl_run(). */
void ftl_read_stats(struct ftl *ftl, struct ftl_stats *stats);
void ftl_reset_stats(struct ftl *ftl);
void ftl_read_usage(const struct ftl *ftl, struct ftl_usage *usage);

#endif
