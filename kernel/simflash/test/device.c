// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "device.h"

#define WORDS (FTL_PAGE_BYTES / sizeof(uint64_t))

struct ftl_config device_config(void)
{
	return (struct ftl_config){
		.capacity_pages = 4096,
		.spare_percent = 50,
		.channels = 4,
		.dies_per_channel = 1,
		.block_pages = 64,
		.row_pages = 4,
		.cache_pages = 32,
		.queue_depth = 8,
		.command_pages = 128,
		.policy = FTL_FIFO,
		.log_pages = 64,
		.read_ns = 100000,
		.program_ns = 1000000,
		.erase_ns = 3000000,
		.channel_page_ns = 10000,
		.link_page_ns = 20000,
		.read_command_ns = 50000,
		.write_command_ns = 60000,
		.flush_command_ns = 70000,
		.discard_command_ns = 80000,
		.discard_mib_ns = 500000,
		.response_ns = 5000,
	};
}

void device_open(struct device *device, const struct ftl_config *config)
{
	memset(device, 0, sizeof(*device));
	device->config = *config;
	device->ftl = ftl_create(config, 0);
}

void device_close(struct device *device)
{
	ftl_destroy(device->ftl);
}

static bool take_write(struct ftl_cmd *cmd, const char *memory)
{
	uint32_t page;

	for (page = 0; page < cmd->pages; page++) {
		if (ftl_capture(&cmd->page[page].content, memory + page * FTL_PAGE_BYTES))
			continue;
		while (page--)
			ftl_content_drop(&cmd->page[page].content);
		return false;
	}
	return true;
}

struct ftl_cmd *device_command(struct device *device, enum ftl_op op, uint32_t lba,
			       uint32_t pages, void *memory)
{
	struct ftl_cmd *cmd;
	uint32_t tag, page;

	for (tag = 0; tag < device->config.queue_depth && device->taken[tag]; tag++)
		;
	if (tag == device->config.queue_depth)
		return NULL;

	cmd = ftl_command(device->ftl, tag);
	cmd->op = op;
	cmd->fua = false;
	cmd->foreground = false;
	cmd->stream = 0;
	cmd->lba = lba;
	cmd->pages = pages;
	cmd->owner = &device->taken[tag];
	if (op == FTL_WRITE && (!take_write(cmd, memory)))
		return NULL;
	if (op == FTL_WRITE && !ftl_provide(device->ftl)) {
		for (page = 0; page < pages; page++)
			ftl_content_drop(&cmd->page[page].content);
		return NULL;
	}
	for (page = 0; op == FTL_READ && page < pages; page++)
		cmd->page[page].memory = (char *)memory + page * FTL_PAGE_BYTES;
	device->taken[tag] = true;
	return cmd;
}

struct ftl_cmd *device_control(struct device *device, enum ftl_op op,
			       const struct ftl_range *range, uint32_t ranges)
{
	uint32_t slot = device->config.queue_depth;
	struct ftl_cmd *cmd = ftl_command(device->ftl, slot);
	uint32_t i;

	if (device->taken[slot])
		return NULL;
	cmd->op = op;
	cmd->fua = false;
	cmd->stream = 0;
	cmd->lba = 0;
	cmd->pages = 0;
	cmd->range = range;
	cmd->within_ns = 0;
	cmd->ranges = ranges;
	for (i = 0; i < ranges; i++)
		cmd->pages += range[i].pages;
	cmd->owner = &device->taken[slot];
	device->taken[slot] = true;
	return cmd;
}

void device_submit(struct device *device, struct ftl_cmd *cmd)
{
	device->in_flight++;
	ftl_submit(device->ftl, cmd, device->now_ns);
}

void device_release(struct device *device, struct ftl_cmd *cmd)
{
	device->in_flight--;
	*(bool *)cmd->owner = false;
}

struct ftl_cmd *device_next(struct device *device)
{
	struct ftl_cmd *cmd;

	while (!(cmd = ftl_take_done(device->ftl))) {
		uint64_t next_ns = ftl_next_ns(device->ftl);

		if (next_ns == FTL_NEVER)
			return NULL;
		device->now_ns = next_ns;
		ftl_run(device->ftl, next_ns);
	}
	return cmd;
}

bool device_run(struct device *device, struct ftl_cmd *cmd)
{
	bool good;

	device_submit(device, cmd);
	while (device_next(device) != cmd)
		;
	good = cmd->status == FTL_OK;
	device_release(device, cmd);
	return good;
}

/* Until no command is under way; programs may still go on. */
static void wait_commands(struct device *device)
{
	struct ftl_cmd *cmd;

	while (device->in_flight && (cmd = device_next(device)))
		device_release(device, cmd);
}

uint64_t device_do(struct device *device, enum ftl_op op, uint32_t lba, uint32_t pages,
		   void *memory)
{
	uint64_t start_ns = device->now_ns;
	struct ftl_cmd *cmd = device_command(device, op, lba, pages, memory);

	if (!cmd)
		abort();
	device_submit(device, cmd);
	wait_commands(device);
	return device->now_ns - start_ns;
}

uint64_t device_write(struct device *device, uint32_t lba, uint64_t word)
{
	uint64_t page[WORDS];

	fill_uniform(page, 1, word);
	return device_do(device, FTL_WRITE, lba, 1, page);
}

uint64_t device_read(struct device *device, uint32_t lba, uint64_t *word)
{
	uint64_t page[WORDS];
	uint64_t took_ns = device_do(device, FTL_READ, lba, 1, page);

	*word = page[0];
	return took_ns;
}

uint64_t device_drain(struct device *device)
{
	uint64_t start_ns = device->now_ns;
	struct ftl_cmd *cmd;

	while ((cmd = device_next(device)))
		device_release(device, cmd);
	return device->now_ns - start_ns;
}

void fill_uniform(void *memory, uint32_t pages, uint64_t first)
{
	uint32_t i;

	for (i = 0; i < pages; i++)
		ftl_fill_page((char *)memory + i * FTL_PAGE_BYTES, first + i);
}

void fill_mixed(void *memory, uint32_t pages, uint64_t first)
{
	uint64_t *word = memory;
	uint32_t i, j;

	for (i = 0; i < pages; i++) {
		for (j = 0; j < WORDS; j++)
			*word++ = (first + i) ^ ((uint64_t)j << 48);
	}
}
