// SPDX-License-Identifier: GPL-2.0-only
/* The page-level map: which physical page holds an LBA's newest programmed data. */
#include "internal.h"

bool ftl_map_create(struct ftl *ftl)
{
	ftl->map = ftl_alloc_array(ftl->config.capacity_pages, sizeof(*ftl->map));
	return ftl->map;
}

void ftl_map_destroy(struct ftl *ftl)
{
	ftl_free_array(ftl->map);
}

bool ftl_map_find(const struct ftl *ftl, uint32_t lba, uint32_t *physical)
{
	uint32_t entry = ftl->map[lba];

	*physical = entry - 1;
	return entry;
}

/*
 * Rows finish in another order than they were issued in: only the sequence
 * number tells which of two pages of one LBA is the newer.
 */
bool ftl_map_programmed(struct ftl *ftl, uint32_t lba, uint32_t physical)
{
	uint32_t old;

	if (!ftl_map_find(ftl, lba, &old)) {
		ftl->mapped_pages++;
	} else {
		if (ftl_store_sequence(ftl, old) > ftl_store_sequence(ftl, physical))
			return false;
		ftl_store_invalidate(ftl, old);
	}
	ftl->map[lba] = physical + 1;
	ftl_store_validate(ftl, physical);
	return true;
}

void ftl_map_discard(struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	uint32_t end = lba + pages;
	uint32_t physical;

	for (; lba < end; lba++) {
		if (!ftl_map_find(ftl, lba, &physical))
			continue;
		ftl->map[lba] = 0;
		ftl->mapped_pages--;
		ftl_store_invalidate(ftl, physical);
	}
}
