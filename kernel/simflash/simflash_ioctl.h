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

#define SIMFLASH_IOCTL_VERSION 1

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

#define SIMFLASH_IOC_MAGIC 0xf5

/* EPROTO: another version. ENODEV: the device is gone. */
#define SIMFLASH_IOC_STATS _IOWR(SIMFLASH_IOC_MAGIC, 1, struct simflash_stats)

/* EPERM: needs CAP_SYS_ADMIN. ENODEV: the device is gone. */
#define SIMFLASH_IOC_RESET_STATS _IO(SIMFLASH_IOC_MAGIC, 2)

#endif
