/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control of a simflash device: ioctls on /dev/simflash0.
 *
 * Every structure starts with `version`, which the caller sets to
 * SIMFLASH_IOCTL_VERSION; another version is refused with EPROTO. Times are
 * nanoseconds, pages are 4096 bytes.
 */
#ifndef SIMFLASH_IOCTL_H
#define SIMFLASH_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SIMFLASH_IOCTL_VERSION 3

#define SIMFLASH_MAX_DIES 64

enum simflash_op {
	SIMFLASH_READ,
	SIMFLASH_WRITE,
	SIMFLASH_FLUSH,
	SIMFLASH_DISCARD,
	SIMFLASH_OPS,
};

/* Since the module was loaded or the last reset, except where it says "now". */
struct simflash_stats {
	__u32 version;
	__u32 dies;				/* of the device */
	__u64 elapsed_ns;
	/* By enum simflash_op. A command's time is from arrival to response. */
	__u64 commands[SIMFLASH_OPS];
	__u64 command_pages[SIMFLASH_OPS];
	__u64 command_ns[SIMFLASH_OPS];		/* summed */
	__u64 command_max_ns[SIMFLASH_OPS];
	__u64 failed_commands;
	__u64 fua_writes;
	__u64 cache_read_hit_pages;
	__u64 cache_overwrite_pages;		/* written again before they were programmed */
	__u64 unmapped_read_pages;
	/* Flash operations. A row is what a die reads or programs at once. */
	__u64 row_reads;
	__u64 page_reads;
	__u64 row_programs;
	__u64 page_programs;			/* without padding */
	__u64 padded_pages;
	__u64 erases;
	/* Time between an operation's arrival at its die and its service. */
	__u64 die_read_wait_ns;			/* summed */
	__u64 die_read_wait_max_ns;
	__u64 die_program_wait_ns;		/* summed */
	__u64 die_program_wait_max_ns;
	/* [n]: time during which n dies were busy at once. */
	__u64 busy_ns[SIMFLASH_MAX_DIES + 1];
	/* Now. */
	__u64 mapped_pages;
	__u64 buffered_pages;			/* that need memory: not one repeated word */
	__u64 cached_pages;
	__u64 free_rows;
	__u64 total_rows;
};

/*
 * The Janus commands (dissertation, table 6). Pages are logical blocks of the
 * device. Each command waits until what was written before it is in flash.
 */
#define SIMFLASH_SPREAD 0xffffffffu	/* a dst: physical redistribution */
#define SIMFLASH_MAX_RANGES 1024
#define SIMFLASH_MAX_RANGE_PAGES 65536	/* of all ranges of a command */

struct simflash_range {
	__u32 src;
	__u32 dst;
	__u32 pages;
	__u32 unused;
};

struct simflash_ranges {
	__u32 version;
	__u32 count;
	__u64 ranges;		/* address of `count` struct simflash_range */
	__u64 pages_done;	/* set by the device */
	__u32 dof_p_permille;	/* set by SIMFLASH_IOC_DOF_P */
	__u32 unused;
};

enum simflash_log_op {
	SIMFLASH_LOG_FLUSH,	/* what was remapped is in the log, in flash */
	SIMFLASH_LOG_COMMIT,	/* ... and completed: each src is given up */
	SIMFLASH_LOG_DISCARD,	/* ... and undone: each dst is given up */
	SIMFLASH_LOG_CHECK,	/* only says whether something is left to be completed */
	SIMFLASH_LOG_CHECKPOINT, /* before power-off: the next mount reads the map */
	SIMFLASH_LOG_OPS,
};

struct simflash_log {
	__u32 version;
	__u32 op;		/* enum simflash_log_op */
	__u32 committed;	/* set: nothing is left to be committed or discarded */
	__u32 unused;
};

enum simflash_power_op { SIMFLASH_POWER_CUT, SIMFLASH_POWER_ON, SIMFLASH_POWER_OPS };

/*
 * CUT: while the `operations`th program or erase from now is under way, or at
 * once if that is 0. Requests fail from then on, until ON, which mounts.
 */
struct simflash_power {
	__u32 version;
	__u32 op;		/* enum simflash_power_op */
	__u64 operations;
	__u64 seed;		/* of how what was under way is torn */
	__u32 off;		/* set: the power is off now */
	__u32 unused;
};

/* Of the flash translation layer, since the last reset, except where it says "now". */
struct simflash_ftl_stats {
	__u32 version;
	__u32 unused;
	/* Bytes programmed are pages times 4096; padding is in simflash_stats. */
	__u64 collect_page_reads;
	__u64 collect_page_programs;
	__u64 collected_blocks;
	__u64 level_blocks;
	__u64 log_page_programs;	/* defrag log and checkpoints */
	__u64 log_erases;
	__u64 log_compactions;
	__u64 checkpoints;
	__u64 remapped_pages;
	__u64 elided_pages;		/* written, and remapped instead of programmed */
	__u64 spread_pages;
	__u64 map_look_ups;		/* pages of the map that reads asked for */
	__u64 map_misses;		/* ... that were not in RAM */
	__u64 map_page_reads;		/* for these, and for changes */
	__u64 map_page_programs;
	__u64 slc_page_programs;	/* in the write buffer, of the host's and the map's */
	__u64 folded_pages;		/* moved out of it; collect_page_programs has them, too */
	__u64 suspensions;		/* of programs and erases, for reads */
	__u64 unit_merges;
	__u64 mounts;
	__u64 mount_ns;			/* of the last mount */
	/* Now. */
	__u64 remapped_now;		/* pages whose OOB does not tell their place */
	__u64 log_live_pages;
	__u64 log_buffered_entries;
	__u64 blocks;
	__u64 erases_min;		/* of a block */
	__u64 erases_max;
	__u64 erases_sum;
};

/*
 * What the host announces. It is advice: what does not come true costs time and no data.
 * RESERVE: `pages` pages will be written within `within_ns`. SOON_INVALID: the srcs are about
 * to be overwritten or discarded, within that time; no ranges take all of it back.
 * PREFETCH: the srcs will be read.
 */
enum simflash_announce_op {
	SIMFLASH_RESERVE,
	SIMFLASH_SOON_INVALID,
	SIMFLASH_PREFETCH,
	SIMFLASH_ANNOUNCE_OPS,
};

struct simflash_announce {
	__u32 version;
	__u32 op;		/* enum simflash_announce_op */
	__u64 within_ns;
	__u32 pages;		/* of RESERVE */
	__u32 count;		/* of the ranges */
	__u64 ranges;		/* address of `count` struct simflash_range */
};

/* An image of a device's flash (ftl/image.c), as `frontrow-lab` makes them. */
#define SIMFLASH_MAX_IMAGE_BYTES (1u << 30)
#define SIMFLASH_REASON_BYTES 128

struct simflash_image {
	__u32 version;
	__u32 unused;
	__u64 image;		/* its address */
	__u64 bytes;
	char reason[SIMFLASH_REASON_BYTES];	/* set with EINVAL: why it was refused */
};

#define SIMFLASH_IOC_MAGIC 0xf5

/* EPROTO: another version. ENODEV: the device is gone. */
#define SIMFLASH_IOC_STATS _IOWR(SIMFLASH_IOC_MAGIC, 1, struct simflash_stats)

/* EPERM: needs CAP_SYS_ADMIN. ENODEV: the device is gone. */
#define SIMFLASH_IOC_RESET_STATS _IO(SIMFLASH_IOC_MAGIC, 2)

/*
 * defrag(src, dst): each dst is to have what its src has, without a copy. Until
 * LOG_COMMIT both have it. All ranges, or none. With every dst SIMFLASH_SPREAD:
 * the ranges are rewritten over all dies if their DoF_P is one half or more,
 * and pages_done is how many pages that took; that is the device's own business
 * and is done, or as it was, for each page by itself.
 * EINVAL: ranges overlap or are outside the device. EBUSY: a page of a range is
 * being written: try again. ENOSPC: the log is full, or what is to be spread may
 * be moving: commit or discard first.
 */
#define SIMFLASH_IOC_DEFRAG _IOWR(SIMFLASH_IOC_MAGIC, 3, struct simflash_ranges)

/*
 * From now on a write to a dst that brings what its src has is remapped instead
 * of programmed, once; both keep it. No ranges: forget what is armed.
 */
#define SIMFLASH_IOC_ARM _IOWR(SIMFLASH_IOC_MAGIC, 4, struct simflash_ranges)

/* DoF_P of the srcs as one sequence. Needs no right. */
#define SIMFLASH_IOC_DOF_P _IOWR(SIMFLASH_IOC_MAGIC, 5, struct simflash_ranges)

/* ENOSPC: a checkpoint, and moves are not committed; or memory is short. */
#define SIMFLASH_IOC_LOG _IOWR(SIMFLASH_IOC_MAGIC, 6, struct simflash_log)

/*
 * EOPNOTSUPP: load the module with power_loss=1 and without stream_mib.
 * ENOMEM: the power is still off.
 */
#define SIMFLASH_IOC_POWER _IOWR(SIMFLASH_IOC_MAGIC, 7, struct simflash_power)

#define SIMFLASH_IOC_FTL_STATS _IOWR(SIMFLASH_IOC_MAGIC, 8, struct simflash_ftl_stats)

/*
 * The device becomes a new one with this image's past: what it held and counted
 * is gone, its power is on. What is no image of such a device, or a damaged one,
 * is refused and nothing has changed.
 * EBUSY: a file system is mounted, or somebody has the device open with O_EXCL.
 * EINVAL: `reason` says why the image was refused; if that is memory, or that the
 * image contradicts itself, the device is empty. ENOMEM: memory is short, and
 * nothing has changed. EOPNOTSUPP: load the module without stream_mib.
 */
#define SIMFLASH_IOC_IMAGE _IOWR(SIMFLASH_IOC_MAGIC, 9, struct simflash_image)

/*
 * EINVAL: ranges are outside the device, or RESERVE has some. ENOMEM: memory is short.
 * EOPNOTSUPP: load the module without stream_mib.
 */
#define SIMFLASH_IOC_ANNOUNCE _IOW(SIMFLASH_IOC_MAGIC, 10, struct simflash_announce)

/* All but the statistics and DOF_P: EPERM without CAP_SYS_ADMIN; and but IMAGE: EIO while the power is off. */

#endif
