// SPDX-License-Identifier: GPL-2.0-only
/*
 * The read cache: pages of flash that are in RAM as well.
 *
 * It keeps what was read last, or with read_cache_announced what the host announces
 * (FTL_PREFETCH). The second is for what the host's page cache is about to miss: a page that
 * was just read is in that one already, and so it is given up here.
 *
 * Which pages are in RAM is all that is kept here; their data are those that the map leads
 * to. So it can be wrong about a read's time and not about its data.
 */
#include "internal.h"

static uint32_t pages(const struct ftl *ftl)
{
	return ftl->config.read_cache_pages;
}

static void clear(struct ftl *ftl)
{
	struct ftl_readcache *cache = &ftl->readcache;
	uint32_t i;

	cache->newest = cache->oldest = cache->free = FTL_NONE;
	for (i = 0; i < pages(ftl); i++) {
		cache->kept[i].next = cache->free;
		cache->free = i;
	}
	cache->first_wanted = cache->wanted_count = 0;
	memset(cache->fetch, 0, sizeof(cache->fetch));
}

bool ftl_readcache_create(struct ftl *ftl)
{
	struct ftl_readcache *cache = &ftl->readcache;

	if (!pages(ftl))
		return true;
	cache->place = ftl_alloc_array(ftl->lbas, sizeof(*cache->place));
	cache->kept = ftl_alloc_array(pages(ftl), sizeof(*cache->kept));
	cache->wanted = ftl_alloc_array(pages(ftl), sizeof(*cache->wanted));
	if (!cache->place || !cache->kept || !cache->wanted)
		return false;
	clear(ftl);
	return true;
}

void ftl_readcache_destroy(struct ftl *ftl)
{
	ftl_free_array(ftl->readcache.place);
	ftl_free_array(ftl->readcache.kept);
	ftl_free_array(ftl->readcache.wanted);
}

void ftl_readcache_power_lost(struct ftl *ftl)
{
	if (!pages(ftl))
		return;
	memset(ftl->readcache.place, 0, ftl->lbas * sizeof(*ftl->readcache.place));
	clear(ftl);
}

static bool is_kept(const struct ftl *ftl, uint32_t lba)
{
	return pages(ftl) && ftl->readcache.place[lba];
}

static void unlink(struct ftl_readcache *cache, uint32_t entry)
{
	const struct ftl_kept *kept = &cache->kept[entry];

	if (kept->previous == FTL_NONE)
		cache->newest = kept->next;
	else
		cache->kept[kept->previous].next = kept->next;
	if (kept->next == FTL_NONE)
		cache->oldest = kept->previous;
	else
		cache->kept[kept->next].previous = kept->previous;
}

static void give_up(struct ftl *ftl, uint32_t lba)
{
	struct ftl_readcache *cache = &ftl->readcache;
	uint32_t entry = cache->place[lba] - 1;

	unlink(cache, entry);
	cache->place[lba] = 0;
	cache->kept[entry].next = cache->free;
	cache->free = entry;
}

static void keep(struct ftl *ftl, uint32_t lba)
{
	struct ftl_readcache *cache = &ftl->readcache;
	struct ftl_kept *kept;
	uint32_t entry;

	if (cache->place[lba])
		give_up(ftl, lba);
	else if (cache->free == FTL_NONE)
		give_up(ftl, cache->kept[cache->oldest].lba);
	entry = cache->free;
	kept = &cache->kept[entry];
	cache->free = kept->next;
	kept->lba = lba;
	kept->previous = FTL_NONE;
	kept->next = cache->newest;
	if (cache->newest == FTL_NONE)
		cache->oldest = entry;
	else
		cache->kept[cache->newest].previous = entry;
	cache->newest = entry;
	cache->place[lba] = entry + 1;
}

bool ftl_readcache_read(struct ftl *ftl, uint32_t lba, void *memory)
{
	uint32_t physical;

	if (!is_kept(ftl, lba) || !ftl_map_find(ftl, lba, &physical))
		return false;
	ftl_store_read(ftl, physical, memory);
	ftl->stats.read_cache_hits++;
	if (ftl->config.read_cache_announced)
		give_up(ftl, lba);
	else
		keep(ftl, lba);
	return true;
}

bool ftl_readcache_has(const struct ftl *ftl, uint32_t lba, uint32_t count)
{
	for (; count && is_kept(ftl, lba); count--)
		lba++;
	return !count;
}

void ftl_readcache_was_read(struct ftl *ftl, uint32_t lba)
{
	uint32_t physical;

	if (pages(ftl) && !ftl->config.read_cache_announced && ftl_map_find(ftl, lba, &physical))
		keep(ftl, lba);
}

/* It has other data, or none. A copy that the collector made is the same. */
void ftl_readcache_changed(struct ftl *ftl, uint32_t lba)
{
	if (is_kept(ftl, lba))
		give_up(ftl, lba);
}

/* What is wanted. */

static uint32_t first_wanted(const struct ftl_readcache *cache)
{
	return cache->wanted[cache->first_wanted];
}

static void pop_wanted(struct ftl *ftl)
{
	ftl->readcache.first_wanted = (ftl->readcache.first_wanted + 1) % pages(ftl);
	ftl->readcache.wanted_count--;
}

/* The page of flash to be read for the first of those wanted; false if nothing need be. */
static bool is_in_flash_only(const struct ftl *ftl, uint32_t *physical)
{
	uint32_t lba = first_wanted(&ftl->readcache);

	return !is_kept(ftl, lba) && !ftl_cache_has(ftl, lba) && ftl_map_find(ftl, lba, physical);
}

static uint32_t row_of(const struct ftl *ftl, uint32_t physical)
{
	return physical / ftl->config.row_pages;
}

/* Takes those that follow and lie in the row. */
static void gather(struct ftl *ftl, struct ftl_fetch *fetch)
{
	struct ftl_readcache *cache = &ftl->readcache;
	uint32_t physical;

	fetch->operation.pages = 0;
	while (cache->wanted_count && fetch->operation.pages < ftl->config.row_pages) {
		if (is_in_flash_only(ftl, &physical)) {
			if (row_of(ftl, physical) != row_of(ftl, fetch->operation.physical))
				return;
			fetch->lba[fetch->operation.pages++] = first_wanted(cache);
		}
		pop_wanted(ftl);
	}
}

static void fetch_wanted(struct ftl *ftl)
{
	struct ftl_readcache *cache = &ftl->readcache;
	struct ftl_fetch *fetch;
	struct ftl_die *die;
	uint32_t physical;

	while (cache->wanted_count) {
		if (!is_in_flash_only(ftl, &physical)) {
			pop_wanted(ftl);
			continue;
		}
		die = ftl_die_of(ftl, physical);
		fetch = &cache->fetch[die - ftl->die];
		if (fetch->busy)
			return;
		fetch->operation.kind = FTL_PREFETCH_READ;
		fetch->operation.physical = physical;
		gather(ftl, fetch);
		fetch->busy = true;
		ftl_store_pin(ftl, physical);
		ftl_die_queue(ftl, die, &fetch->operation, FTL_CLASS_BACKGROUND);
	}
}

void ftl_readcache_want(struct ftl *ftl, const struct ftl_range *range)
{
	struct ftl_readcache *cache = &ftl->readcache;
	uint32_t i;

	if (!ftl->config.read_cache_announced)
		return;
	for (i = 0; i < range->pages && cache->wanted_count < pages(ftl); i++) {
		cache->wanted[(cache->first_wanted + cache->wanted_count) % pages(ftl)] =
			range->src + i;
		cache->wanted_count++;
	}
	fetch_wanted(ftl);
}

/* A page that was written meanwhile is left out: its data are newer than what was read. */
void ftl_readcache_fetched(struct ftl *ftl, struct ftl_operation *operation)
{
	struct ftl_fetch *fetch = (struct ftl_fetch *)operation;
	uint32_t i, physical;

	fetch->busy = false;
	for (i = 0; i < operation->pages; i++) {
		if (!ftl_map_find(ftl, fetch->lba[i], &physical) ||
		    row_of(ftl, physical) != row_of(ftl, operation->physical))
			continue;
		keep(ftl, fetch->lba[i]);
		ftl->stats.prefetched_pages++;
	}
	ftl_store_unpin(ftl, operation->physical);
	fetch_wanted(ftl);
}
