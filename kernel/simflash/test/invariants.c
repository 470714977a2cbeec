// SPDX-License-Identifier: GPL-2.0-only
#include "../ftl/internal.h"
#include "invariants.h"

/* Every mapped LBA must be found in the OOB of its page, or among its aliases: L2P = P2L. */
static const char *check_map(const struct ftl *ftl, uint64_t *mapped, uint64_t *aliases)
{
	uint32_t lba, physical;

	for (lba = 0; lba < ftl->lbas; lba++) {
		if (!ftl_map_find(ftl, lba, &physical))
			continue;
		if (physical / ftl->config.block_pages >= ftl->blocks)
			return "an LBA is mapped to a page beyond the flash";
		if (!ftl->block[physical / ftl->config.block_pages].page)
			return "an LBA is mapped into a block that holds nothing";
		if (!ftl_map_names(ftl, physical, lba))
			return "a mapped page names another LBA";
		*aliases += ftl_pairs_has(&ftl->alias, physical, lba);
		(*mapped)++;
	}
	return *mapped == ftl->mapped_pages ? NULL : "mapped_pages is miscounted";
}

static uint32_t map_points_at(const struct ftl *ftl, uint32_t block)
{
	uint32_t first = block * ftl->config.block_pages;
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++)
		count += ftl_map_owner(ftl, first + i) != FTL_NO_LBA;
	return count;
}

/* Recovery by OOB depends on it: a later page of a block is a later write. */
static bool sequences_grow(const struct ftl *ftl, const struct ftl_block *block)
{
	uint64_t last = 0;
	uint32_t i;

	for (i = 0; i < ftl->config.block_pages; i++) {
		if (block->page[i].lba >= ftl->lbas)
			continue;
		if (last > block->page[i].sequence)
			return false;
		last = (uint64_t)block->page[i].sequence + 1;
	}
	return true;
}

/* Rows that can be reserved: the spare blocks' but the collector's, and the open blocks'. */
static uint64_t count_free_rows(const struct ftl *ftl)
{
	uint64_t rows = 0;
	uint32_t i, stream;

	for (i = 0; i < ftl->dies; i++) {
		const struct ftl_die *die = &ftl->die[i];
		uint32_t blocks = ftl_store_free_blocks(die);

		rows += (blocks > FTL_RESERVED_BLOCKS ? blocks - FTL_RESERVED_BLOCKS : 0) *
			ftl->rows_per_block;
		for (stream = 0; stream < ftl->streams; stream++) {
			if (die->open[stream].block != FTL_NONE)
				rows += ftl->rows_per_block - die->open[stream].rows;
		}
	}
	for (stream = 0; stream < FTL_MAX_STREAMS; stream++)
		rows -= !!ftl->cache.staged[stream];
	return rows;
}

static const char *check_block(const struct ftl *ftl, uint32_t index)
{
	const struct ftl_block *block = &ftl->block[index];

	if (!block->page)
		return block->valid || block->programs || block->readers || block->moving ||
		       block->candidate ? "a block that holds nothing is in use" : NULL;
	if (map_points_at(ftl, index) != block->valid)
		return "a block's valid pages are miscounted";
	if (!sequences_grow(ftl, block))
		return "a block's sequence numbers do not grow";
	if (block->closed && !block->valid && !block->programs && !block->readers &&
	    !block->moving)
		return "a block without valid pages was not given back";
	if (block->closed && !block->programs && !block->moving && !block->candidate &&
	    ftl->die[index / ftl->blocks_per_die].collector.victim != index)
		return "a closed block is lost to the collector";
	return NULL;
}

/* LBAs that share the page with another one. */
static uint32_t more_than_one_lba(const struct ftl *ftl, uint32_t physical)
{
	return ftl_pairs_count(&ftl->alias, physical) ? ftl_map_owners(ftl, physical) - 1 : 0;
}

static const char *check_blocks(const struct ftl *ftl, uint64_t mapped)
{
	uint64_t valid = 0, buffered = 0, extra = 0;
	const char *broken;
	uint32_t i, page;

	for (i = 0; i < ftl->blocks; i++) {
		const struct ftl_block *block = &ftl->block[i];

		valid += block->valid;
		broken = check_block(ftl, i);
		if (broken)
			return broken;
		for (page = 0; block->page && page < ftl->config.block_pages; page++)
			buffered += block->page[page].buffer;
		for (page = 0; block->old_page && page < ftl->config.block_pages; page++)
			buffered += block->old_page[page].buffer;
	}
	for (i = 0; ftl->alias.count && i < ftl->blocks * ftl->config.block_pages; i++)
		extra += more_than_one_lba(ftl, i);
	if (valid + extra != mapped)
		return "valid pages and mapped LBAs differ in number";
	if (count_free_rows(ftl) != ftl->free_rows)
		return "free_rows is miscounted";
	return buffered == ftl->buffered_pages ? NULL : "buffered_pages is miscounted";
}

/* Marks are of mapped LBAs, and counted where these are. */
static const char *check_hints(const struct ftl *ftl)
{
	uint64_t marks = 0, in_blocks = 0;
	uint32_t lba, i, physical;

	for (lba = 0; lba < ftl->lbas; lba++) {
		if (!ftl_hints_is_marked(ftl, lba))
			continue;
		if (!ftl_map_find(ftl, lba, &physical))
			return "an LBA without data is soon invalid";
		if (!ftl_hints_marks_in(ftl, physical / ftl->config.block_pages))
			return "a block has more marked pages than it counts";
		marks++;
	}
	for (i = 0; i < ftl->blocks; i++)
		in_blocks += ftl_hints_marks_in(ftl, i);
	return marks == ftl->hints.marks && in_blocks == marks ? NULL : "marks are miscounted";
}

/* What is kept is mapped, and is in the list once. */
static const char *check_read_cache(const struct ftl *ftl)
{
	const struct ftl_readcache *cache = &ftl->readcache;
	uint32_t pages = ftl->config.read_cache_pages;
	uint32_t entry, physical, kept = 0, lba;

	if (!pages)
		return NULL;
	for (entry = cache->newest; entry != FTL_NONE && kept <= pages; kept++) {
		lba = cache->kept[entry].lba;
		if (cache->place[lba] != entry + 1)
			return "a page of the read cache is not where its LBA says";
		if (!ftl_map_find(ftl, lba, &physical))
			return "the read cache keeps an LBA without data";
		entry = cache->kept[entry].next;
	}
	for (lba = 0; lba < ftl->lbas; lba++)
		kept -= !!cache->place[lba];
	for (entry = cache->free; entry != FTL_NONE; entry = cache->kept[entry].next)
		pages--;
	for (entry = cache->oldest; entry != FTL_NONE; entry = cache->kept[entry].previous)
		pages--;
	return kept || pages ? "the read cache's pages are miscounted" : NULL;
}

static const char *check_cache(const struct ftl *ftl)
{
	const struct ftl_cache *cache = &ftl->cache;
	const struct ftl_row *row;
	uint32_t used = 0, i;

	for (i = 0; i < FTL_MAX_STREAMS; i++)
		used += cache->staged[i] ? cache->staged[i]->pages : 0;

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
	uint64_t mapped = 0, aliases = 0;
	const char *broken = check_map(ftl, &mapped, &aliases);

	if (!broken && aliases != ftl->alias.count)
		broken = "an alias is not in the map";
	if (!broken)
		broken = check_blocks(ftl, mapped);
	if (!broken)
		broken = check_hints(ftl);
	if (!broken)
		broken = check_read_cache(ftl);
	return broken ? broken : check_cache(ftl);
}
