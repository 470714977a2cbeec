// SPDX-License-Identifier: GPL-2.0-only
/* Making a device and taking it apart. */
#include "internal.h"

void ftl_destroy(struct ftl *ftl)
{
	ftl_command_destroy(ftl);
	ftl_hints_destroy(ftl);
	ftl_log_destroy(ftl);
	ftl_system_destroy(ftl);
	ftl_readcache_destroy(ftl);
	ftl_cache_destroy(ftl);
	ftl_mapcache_destroy(ftl);
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
	ftl->main_blocks = ftl_config_main_blocks(config);
	ftl->blocks_per_die = ftl->main_blocks + ftl_config_buffer_blocks(config);
	ftl->blocks = ftl->blocks_per_die * ftl->dies;
	ftl->lbas = config->capacity_pages + ftl_mapcache_pages(config);
	ftl->streams = ftl_config_streams(config);
	if (ftl->streams > 1 && ftl_mapcache_pages(config))
		ftl->streams++;

	if (!ftl_store_create(ftl) || !ftl_map_create(ftl) || !ftl_mapcache_create(ftl) ||
	    !ftl_cache_create(ftl) || !ftl_readcache_create(ftl) || !ftl_system_create(ftl) || !ftl_command_create(ftl)) {
		ftl_destroy(ftl);
		return NULL;
	}
	return ftl;
}
