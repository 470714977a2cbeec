// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "disk.h"
#include "../../../simflash/test/profile.h"

/* What mmc's driver holds (MMC_QUEUE_DEPTH), whatever the card takes. */
#define SERIAL_TAGS 64

/* A device that was never written reads without its flash. */
static void fill(struct disk *disk, u32 area_mib)
{
	u32 pages = disk->config.command_pages, end = area_mib * 256, lba;
	u64 now_ns = 0;

	for (lba = 0; lba + pages <= end; lba += pages) {
		struct io io = { .op = FTL_WRITE, .lba = lba, .pages = pages };

		disk_give(disk, &io, now_ns);
		while (!disk_take_done(disk, now_ns))
			now_ns = disk_next_ns(disk);
	}
	while (disk_next_ns(disk) != FTL_NEVER)
		disk_take_done(disk, disk_next_ns(disk));
}

bool disk_open(struct disk *disk, const char *profile, u32 area_mib)
{
	memset(disk, 0, sizeof(*disk));
	if (!profile_read(profile, &disk->config))
		return false;
	disk->is_serial = disk->config.commands_at_once == 1;
	disk->tags = disk->is_serial ? SERIAL_TAGS : disk->config.queue_depth;
	disk->ftl = ftl_create(&disk->config, 0);
	if (!disk->ftl)
		abort();
	fill(disk, area_mib);
	return true;
}

void disk_close(struct disk *disk)
{
	ftl_destroy(disk->ftl);
}

static unsigned int free_slot(struct disk *disk)
{
	unsigned int slot = 0;

	while (disk->is_taken[slot])
		slot++;
	return slot;
}

static void issue(struct disk *disk, struct io *io, u64 now_ns)
{
	unsigned int slot = free_slot(disk);
	struct ftl_cmd *cmd = ftl_command(disk->ftl, slot);
	u32 i;

	disk->is_taken[slot] = true;
	disk->in_device++;
	cmd->op = io->op;
	cmd->fua = io->fua;
	cmd->foreground = false;
	cmd->lba = io->lba;
	cmd->pages = io->op == FTL_FLUSH ? 0 : io->pages;
	cmd->owner = io;
	for (i = 0; i < cmd->pages; i++)
		if (io->op == FTL_WRITE)
			cmd->page[i].content = (struct ftl_content) { .word = io->lba + i };
		else
			cmd->page[i].memory = disk->memory + i * FTL_PAGE_BYTES;
	if (io->op == FTL_WRITE && !ftl_provide(disk->ftl))
		abort();
	ftl_submit(disk->ftl, cmd, now_ns);
}

static void issue_held(struct disk *disk, u64 now_ns)
{
	unsigned int most = disk->is_serial ? 1 : disk->config.queue_depth;

	while (disk->first && disk->in_device < most) {
		struct io *io = disk->first;

		disk->first = io->next;
		issue(disk, io, now_ns);
	}
}

void disk_give(struct disk *disk, struct io *io, u64 now_ns)
{
	disk->held++;
	io->next = NULL;
	if (disk->first)
		disk->last->next = io;
	else
		disk->first = io;
	disk->last = io;
	issue_held(disk, now_ns);
}

static unsigned int slot_of(const struct disk *disk, const struct ftl_cmd *cmd)
{
	return cmd - ftl_command(disk->ftl, 0);
}

struct io *disk_take_done(struct disk *disk, u64 now_ns)
{
	struct ftl_cmd *cmd;
	struct io *io;

	disk->now_ns = now_ns;
	ftl_run(disk->ftl, now_ns);
	cmd = ftl_take_done(disk->ftl);
	if (!cmd)
		return NULL;
	if (cmd->status != FTL_OK)
		abort();
	io = cmd->owner;
	disk->is_taken[slot_of(disk, cmd)] = false;
	disk->in_device--;
	disk->held--;
	issue_held(disk, now_ns);
	return io;
}

u64 disk_now_ns(const struct disk *disk)
{
	return disk->now_ns;
}

u64 disk_next_ns(const struct disk *disk)
{
	return ftl_next_ns(disk->ftl);
}
