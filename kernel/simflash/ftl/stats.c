// SPDX-License-Identifier: GPL-2.0-only
/* What the device did since the last reset, and what it holds. */
#include "internal.h"

void ftl_stats_busy(struct ftl *ftl, int change)
{
	ftl->stats.busy_ns[ftl->busy_dies] += ftl->now_ns - ftl->busy_since_ns;
	ftl->busy_since_ns = ftl->now_ns;
	ftl->busy_dies += change;
}

void ftl_read_stats(struct ftl *ftl, struct ftl_stats *stats)
{
	ftl_stats_busy(ftl, 0);
	*stats = ftl->stats;
	stats->elapsed_ns = ftl->now_ns - ftl->stats_since_ns;
}

void ftl_reset_stats(struct ftl *ftl)
{
	memset(&ftl->stats, 0, sizeof(ftl->stats));
	ftl->stats_since_ns = ftl->now_ns;
	ftl->busy_since_ns = ftl->now_ns;
}

static void read_wear(const struct ftl *ftl, struct ftl_usage *usage)
{
	uint32_t i;

	usage->blocks = ftl->blocks;
	usage->erases_min = ftl->block[0].erases;
	usage->erases_max = 0;
	usage->erases_sum = 0;
	for (i = 0; i < ftl->blocks; i++) {
		uint32_t erases = ftl->block[i].erases;

		usage->erases_sum += erases;
		if (erases < usage->erases_min)
			usage->erases_min = erases;
		if (erases > usage->erases_max)
			usage->erases_max = erases;
	}
}

void ftl_read_usage(const struct ftl *ftl, struct ftl_usage *usage)
{
	usage->mapped_pages = ftl->mapped_pages;
	usage->buffered_pages = ftl->buffered_pages;
	usage->free_rows = ftl->free_rows;
	usage->total_rows = (uint64_t)ftl->blocks * ftl->rows_per_block;
	usage->cached_pages = ftl->config.cache_pages - ftl->cache.free_count;
	usage->remapped_now = ftl->alias.count;
	usage->log_live_pages = ftl->log.pages;
	usage->log_buffered_entries = ftl->log.buffered_entries;
	read_wear(ftl, usage);
}
