// SPDX-License-Identifier: GPL-2.0-only
#include "../ftl/internal.h"
#include "invariants.h"

/* Every mapped LBA must be found in the OOB of its page. */
static const char *check_map(const struct ftl *ftl, uint64_t *mapped)
{
	uint32_t lba, physical;

	for (lba = 0; lba < ftl->config.capacity_pages; lba++) {
		if (!ftl_map_find(ftl, lba, &physical))
			continue;
		if (physical / ftl->config.block_pages >= ftl->blocks)
			return "an LBA is mapped to a page beyond the flash";
		if (!ftl->block[physical / ftl->config.block_pages].page)
			return "an LBA is mapped into a block that holds nothing";
		if (ftl_store_lba(ftl, physical) != lba)
			return "a mapped page's OOB names another LBA";
		(*mapped)++;
	}
	return *mapped == ftl->mapped_pages ? NULL : "mapped_pages is miscounted";
}

static uint32_t map_points_at(const struct ftl *ftl, uint32_t block)
{
	uint32_t first = block * ftl->config.block_pages;
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++) {
		uint32_t lba = ftl_store_lba(ftl, first + i);
		uint32_t physical;

		if (lba == FTL_NO_LBA)
			continue;
		count += ftl_map_find(ftl, lba, &physical) && physical == first + i;
	}
	return count;
}

/* Recovery by OOB depends on it: a later page of a block is a later write. */
static bool sequences_grow(const struct ftl *ftl, const struct ftl_block *block)
{
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++) {
		if (block->page[i].lba == FTL_NO_LBA)
			continue;
		if (last > block->page[i].sequence)
			return false;
		last = (uint64_t)block->page[i].sequence + 1;
	}
	return true;
}

static const char *check_blocks(const struct ftl *ftl, uint64_t mapped)
{
	uint64_t valid = 0, free_rows = 0, buffered = 0;
	uint32_t i, page;

	for (i = 0; i < ftl->blocks; i++) {
		const struct ftl_block *block = &ftl->block[i];

		valid += block->valid;
		if (!block->page) {
			if (block->valid || block->programs || block->readers)
				return "a block that holds nothing is in use";
			free_rows += ftl->rows_per_block;
			continue;
		}
		if (map_points_at(ftl, i) != block->valid)
			return "a block's valid pages are miscounted";
		if (!sequences_grow(ftl, block))
			return "a block's sequence numbers do not grow";
		if (block->closed && !block->valid && !block->programs &&
		    !block->readers)
			return "a block without valid pages was not given back";
		for (page = 0; page < ftl->config.block_pages; page++)
			buffered += block->page[page].buffer;
	}
	for (i = 0; i < ftl->dies; i++) {
		if (ftl->die[i].open != FTL_NONE)
			free_rows += ftl->rows_per_block - ftl->die[i].open_rows;
	}
	if (ftl->cache.staged)
		free_rows--;
	if (valid != mapped)
		return "valid pages and mapped LBAs differ in number";
	if (free_rows != ftl->free_rows)
		return "free_rows is miscounted";
	return buffered == ftl->buffered_pages ? NULL : "buffered_pages is miscounted";
}

static const char *check_cache(const struct ftl *ftl)
{
	const struct ftl_cache *cache = &ftl->cache;
	const struct ftl_row *row;
	uint32_t used = cache->staged ? cache->staged->pages : 0;

	for (row = cache->oldest; row; row = row->next) {
		if (row->next && row->next->number <= row->number)
			return "rows under program are out of order";
		used += row->pages;
	}
	if (used != ftl->config.cache_pages - cache->free_count)
		return "cache slots are lost";
	return NULL;
}

const char *broken_invariant(const struct ftl *ftl)
{
	uint64_t mapped = 0;
	const char *broken = check_map(ftl, &mapped);

	if (!broken)
		broken = check_blocks(ftl, mapped);
	return broken ? broken : check_cache(ftl);
}
