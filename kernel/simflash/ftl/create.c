// SPDX-License-Identifier: GPL-2.0-only
/* Making a device and taking it apart. */
#include "internal.h"

/* A die's open block, the one erased ahead, and the one garbage collection writes to. */
#define BLOCKS_OPEN 3

static uint64_t blocks_per_die(const struct ftl_config *config)
{
	uint64_t pages = config->capacity_pages;
	uint64_t dies = config->channels * config->dies_per_channel;
	uint64_t die_pages;

	pages += pages * config->spare_percent / 100;
	die_pages = pages / dies + 1;
	return die_pages / config->block_pages + 1 + BLOCKS_OPEN + FTL_RESERVED_BLOCKS;
}

const char *ftl_config_error(const struct ftl_config *config)
{
	if (!config->channels || !config->dies_per_channel ||
	    config->channels > FTL_MAX_DIES || config->dies_per_channel > FTL_MAX_DIES ||
	    config->channels * config->dies_per_channel > FTL_MAX_DIES)
		return "channels times dies_per_channel must be 1 to 64";
	if (!config->row_pages || config->row_pages > FTL_MAX_ROW_PAGES)
		return "row_pages must be 1 to 16";
	if (!config->block_pages || config->block_pages > FTL_MAX_BLOCK_PAGES ||
	    config->block_pages % config->row_pages)
		return "block_pages must be a multiple of row_pages and at most 256";
	if (config->cache_pages < 2 * config->row_pages ||
	    config->cache_pages > FTL_MAX_CACHE_PAGES)
		return "the write cache must hold at least two rows and at most 256 MiB";
	if (!config->queue_depth || config->queue_depth > FTL_MAX_QUEUE_DEPTH)
		return "queue_depth must be 1 to 1024";
	if (!config->command_pages || config->command_pages > FTL_MAX_COMMAND_PAGES)
		return "the largest request must be 4 KiB to 4 MiB";
	if (config->policy >= FTL_POLICIES)
		return "policy must be 0 (fifo), 1 (read-first) or 2 (foreground-aware)";
	if (config->victim >= FTL_VICTIMS)
		return "victim must be 0 (greedy) or 1 (cost-benefit)";
	if (config->log_pages < 4 * config->row_pages || config->log_pages > 1 << 20)
		return "the defrag log must have four rows to 4 GiB";
	if (!config->capacity_pages || config->spare_percent > 1000 ||
	    blocks_per_die(config) * config->channels * config->dies_per_channel *
		config->block_pages >= FTL_NO_LBA)
		return "capacity and spare_percent must leave less than 8 TiB of flash, and more than none";
	return NULL;
}

void ftl_destroy(struct ftl *ftl)
{
	ftl_command_destroy(ftl);
	ftl_log_destroy(ftl);
	ftl_system_destroy(ftl);
	ftl_cache_destroy(ftl);
	ftl_map_destroy(ftl);
	ftl_store_destroy(ftl);
	ftl_free_array(ftl);
}

struct ftl *ftl_create(const struct ftl_config *config, uint64_t now_ns)
{
	struct ftl *ftl = ftl_alloc_array(1, sizeof(*ftl));
	uint32_t i;

	if (!ftl)
		return NULL;
	ftl->config = *config;
	ftl->now_ns = now_ns;
	ftl->next_sequence = 1;		/* 0 is no version */
	ftl->busy_since_ns = now_ns;
	ftl->stats_since_ns = now_ns;
	ftl->dies = config->channels * config->dies_per_channel;
	ftl->due_count = FTL_DUE_DIE + ftl->dies;
	for (i = 0; i < ftl->due_count; i++)
		ftl->due_ns[i] = FTL_NEVER;
	/* Neighbours in the round are on different channels. */
	for (i = 0; i < ftl->dies; i++)
		ftl->die[i].channel = i % config->channels;
	ftl->blocks_per_die = blocks_per_die(config);
	ftl->blocks = ftl->blocks_per_die * ftl->dies;

	if (!ftl_store_create(ftl) || !ftl_map_create(ftl) || !ftl_cache_create(ftl) ||
	    !ftl_system_create(ftl) ||
	    !ftl_command_create(ftl)) {
		ftl_destroy(ftl);
		return NULL;
	}
	return ftl;
}
