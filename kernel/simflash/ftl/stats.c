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

void ftl_read_usage(const struct ftl *ftl, struct ftl_usage *usage)
{
	usage->mapped_pages = ftl->mapped_pages;
	usage->buffered_pages = ftl->buffered_pages;
	usage->free_rows = ftl->free_rows;
	usage->total_rows = (uint64_t)ftl->blocks * ftl->rows_per_block;
	usage->cached_pages = ftl->config.cache_pages - ftl->cache.free_count;
}
