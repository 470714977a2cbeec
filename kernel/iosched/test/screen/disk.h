/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flash core behind what a driver does with requests: it issues them as they come,
 * or, as mmc's without command queueing, waits for each before it looks at the next.
 */
#ifndef SCREEN_DISK_H
#define SCREEN_DISK_H

#include "../../core/core.h"
#include "../../../simflash/ftl/ftl.h"

/* A request, from its sender to its completion. */
struct io {
	struct frontrow_item item;
	struct io *next;		/* in a list of the scheduler's or the driver's */
	void *sender;
	enum ftl_op op;
	bool fua;
	u32 lba, pages;
	u64 came_ns;
};

struct disk {
	struct ftl *ftl;
	struct ftl_config config;
	bool is_serial;
	unsigned int tags;		/* requests that the driver holds at once */
	unsigned int held;		/* of them in use */
	struct io *first, *last;	/* the driver has them, the device not yet */
	unsigned int in_device;
	u64 now_ns;			/* of the last call */
	bool is_taken[FTL_MAX_QUEUE_DEPTH];
	char memory[FTL_MAX_COMMAND_PAGES * FTL_PAGE_BYTES];
};

/* False, and a sentence on stderr, if there is no such profile. */
bool disk_open(struct disk *disk, const char *profile, u32 area_mib);
void disk_close(struct disk *disk);

static inline bool disk_has_tag(const struct disk *disk)
{
	return disk->held < disk->tags;
}

/* Whether the driver has begun all that it was given. */
static inline bool disk_has_begun(const struct disk *disk)
{
	return !disk->first;
}

void disk_give(struct disk *disk, struct io *io, u64 now_ns);
/* The next request that has completed by @now_ns; NULL if none has. */
struct io *disk_take_done(struct disk *disk, u64 now_ns);
u64 disk_next_ns(const struct disk *disk);
u64 disk_now_ns(const struct disk *disk);

#endif
