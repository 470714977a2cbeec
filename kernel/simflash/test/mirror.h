/* SPDX-License-Identifier: GPL-2.0-only */
/* A device against a map from LBA to data: remaps, collection, power cuts, mixed. */
#ifndef MIRROR_H
#define MIRROR_H

#include <stddef.h>
#include <stdint.h>

struct mirror_counts {
	uint64_t operations, cuts, spread_pages;
	uint64_t map_pages, map_misses, folded_pages, suspensions, unit_merges, held_writes;
	uint64_t mixed_rows, prefetched_pages;
};

/*
 * Plays operations as the bytes say. NULL if the device kept every promise,
 * else the broken one. Adds to `counts`, if not NULL, what was done.
 */
const char *mirror_play(const uint8_t *bytes, size_t count, struct mirror_counts *counts);

#endif
