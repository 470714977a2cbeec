// SPDX-License-Identifier: GPL-2.0-only
/* What raw.rs has to agree with: sizes and offsets of the interface's structures. */
#include <stddef.h>

#include "ftl.h"

const size_t frontrow_ftl_layout[] = {
	sizeof(struct ftl_config),
	sizeof(struct ftl_command_page),
	offsetof(struct ftl_command_page, oob),
	offsetof(struct ftl_cmd, fua),
	offsetof(struct ftl_cmd, foreground),
	offsetof(struct ftl_cmd, stream),
	offsetof(struct ftl_cmd, pages),
	offsetof(struct ftl_cmd, owner),
	offsetof(struct ftl_cmd, status),
	offsetof(struct ftl_cmd, page),
	offsetof(struct ftl_cmd, ranges),
	sizeof(struct ftl_stats),
	offsetof(struct ftl_stats, page_programs),
	offsetof(struct ftl_stats, collect_page_programs),
	offsetof(struct ftl_stats, map_misses),
	offsetof(struct ftl_stats, suspensions),
	offsetof(struct ftl_stats, log_erases),
	offsetof(struct ftl_stats, busy_ns),
	FTL_OPS,
	FTL_MAX_DIES,
	FTL_PAGE_BYTES,
	FTL_FG_AWARE,
	sizeof(struct ftl_usage),
	offsetof(struct ftl_usage, free_rows),
	offsetof(struct ftl_cmd, within_ns),
	FTL_RESERVE,
	FTL_SOON_INVALID,
	FTL_PREFETCH,
	offsetof(struct ftl_stats, prefetched_pages),
};
