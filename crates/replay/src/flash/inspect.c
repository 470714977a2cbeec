// SPDX-License-Identifier: GPL-2.0-only
/* What a device holds that was just mounted, without the time that reading takes. */
#include "internal.h"

/* The word of each LBA's page, 0 where it has none. Nothing may be in the cache. */
void frontrow_ftl_words(const struct ftl *ftl, uint64_t *word)
{
	uint32_t lba, physical;

	for (lba = 0; lba < ftl->config.capacity_pages; lba++)
		word[lba] = ftl_map_find(ftl, lba, &physical) ?
			    ftl_store_page(ftl, physical)->word : 0;
}

/* Programs and erases until the power is cut. */
uint64_t frontrow_ftl_operations_left(const struct ftl *ftl)
{
	return ftl->power.cut_in;
}
