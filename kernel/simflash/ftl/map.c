// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page-level map: which physical page holds an LBA's data.
 *
 * A page's OOB names the LBA it was written for. After a remap other LBAs may
 * have the page as well, or instead: they are its *aliases*, and the log's
 * business until the page is rewritten. An LBA can be an alias of a page that
 * names it: it came back to that page after it had had a newer one.
 */
#include "internal.h"

bool ftl_map_create(struct ftl *ftl)
{
	ftl->map = ftl_alloc_array(ftl->lbas, sizeof(*ftl->map));
	return ftl->map;
}

void ftl_map_destroy(struct ftl *ftl)
{
	ftl_pairs_destroy(&ftl->alias);
	ftl_pairs_destroy(&ftl->armed);
	ftl_free_array(ftl->map);
}

/* The map, like all of RAM, is lost. */
void ftl_map_power_lost(struct ftl *ftl)
{
	memset(ftl->map, 0, ftl->lbas * sizeof(*ftl->map));
	ftl->mapped_pages = 0;
	ftl_pairs_clear(&ftl->alias);
	ftl_pairs_clear(&ftl->armed);
	ftl_hints_power_lost(ftl);
}

bool ftl_map_find(const struct ftl *ftl, uint32_t lba, uint32_t *physical)
{
	uint32_t entry = ftl->map[lba];

	*physical = entry - 1;
	return entry;
}

static void set(struct ftl *ftl, uint32_t lba, uint32_t entry)
{
	if (ftl->hints.marks)
		ftl_hints_mapped(ftl, lba, ftl->map[lba], entry);
	if (!entry)
		ftl_readcache_changed(ftl, lba);
	ftl->map[lba] = entry;
	ftl_mapcache_changed(ftl, lba);
}

static bool has(const struct ftl *ftl, uint32_t lba, uint32_t physical)
{
	return lba < ftl->lbas && ftl->map[lba] == physical + 1;
}

/* An LBA whose data a physical page holds: the one in its OOB, or an alias. */
uint32_t ftl_map_owner(const struct ftl *ftl, uint32_t physical)
{
	uint32_t lba = ftl_store_lba(ftl, physical);

	if (has(ftl, lba, physical) || ftl_pairs_find(&ftl->alias, physical, &lba))
		return lba;
	return FTL_NO_LBA;
}

bool ftl_map_names(const struct ftl *ftl, uint32_t physical, uint32_t lba)
{
	return ftl_store_lba(ftl, physical) == lba || ftl_pairs_has(&ftl->alias, physical, lba);
}

static void let_go(struct ftl *ftl, uint32_t lba, uint32_t physical, bool by_entry)
{
	set(ftl, lba, 0);
	if (ftl->alias.count) {
		ftl_pairs_remove(&ftl->alias, physical, lba);
		if (ftl_map_owner(ftl, physical) != FTL_NO_LBA)
			return;
	}
	ftl_store_invalidate(ftl, physical, by_entry);
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
		let_go(ftl, lba, old, false);
	}
	set(ftl, lba, physical + 1);
	ftl_store_validate(ftl, physical);
	return true;
}

void ftl_map_unmap(struct ftl *ftl, uint32_t lba)
{
	uint32_t physical;

	if (!ftl_map_find(ftl, lba, &physical))
		return;
	ftl->mapped_pages--;
	let_go(ftl, lba, physical, true);
}

/* A valid page has one LBA more, which had none. */
void ftl_map_share(struct ftl *ftl, uint32_t lba, uint32_t physical)
{
	set(ftl, lba, physical + 1);
	ftl->mapped_pages++;
	ftl_pairs_add(&ftl->alias, physical, lba);
}

bool ftl_map_under_program(const struct ftl *ftl, uint32_t physical)
{
	uint32_t index;

	if (ftl_cache_under_program(ftl, ftl_store_lba(ftl, physical)))
		return true;
	if (!ftl->alias.count)
		return false;
	for (index = ftl_pairs_first(&ftl->alias, physical); index != FTL_NONE;
	     index = ftl_pairs_next(&ftl->alias, index)) {
		if (ftl_cache_under_program(ftl, ftl->alias.pair[index].value))
			return true;
	}
	return false;
}

/* How many LBAs have the page. */
uint32_t ftl_map_owners(const struct ftl *ftl, uint32_t physical)
{
	uint32_t named = ftl_store_lba(ftl, physical);

	return ftl_pairs_count(&ftl->alias, physical) +
	       (has(ftl, named, physical) && !ftl_pairs_has(&ftl->alias, physical, named));
}

/* Memory for the log is there. */
bool ftl_map_may_move(struct ftl *ftl)
{
	return !ftl->alias.count || ftl_log_reserve(ftl, FTL_MAX_ALIASES + 1);
}

/* An LBA that finds the copy by the log. */
static void move_alias(struct ftl *ftl, uint32_t from, uint32_t to, uint32_t lba)
{
	/* What is on its way has a lower number than the entry would have. */
	if (ftl_cache_under_program(ftl, lba))
		return;
	ftl_log_append(ftl, FTL_LOG_MAP, lba, to, 1);
	ftl_pairs_remove(&ftl->alias, from, lba);
	set(ftl, lba, to + 1);
	ftl_pairs_add(&ftl->alias, to, lba);
}

static uint32_t aliases_of(const struct ftl *ftl, uint32_t physical, uint32_t *lba)
{
	uint32_t count = 0;
	uint32_t index;

	for (index = ftl_pairs_first(&ftl->alias, physical);
	     index != FTL_NONE && count < FTL_MAX_ALIASES;
	     index = ftl_pairs_next(&ftl->alias, index))
		lba[count++] = ftl->alias.pair[index].value;
	return count;
}

/*
 * The copy's OOB names one of the page's LBAs; for each other one an entry of
 * the log says where it is now.
 */
void ftl_map_moved(struct ftl *ftl, uint32_t from, uint32_t to, uint32_t lba)
{
	uint32_t alias[FTL_MAX_ALIASES];
	uint32_t named = ftl_store_lba(ftl, from);
	uint32_t aliases = aliases_of(ftl, from, alias);
	bool shared = ftl_map_owners(ftl, from) > 1;

	set(ftl, lba, to + 1);
	ftl_store_validate(ftl, to);
	ftl_pairs_remove(&ftl->alias, from, lba);
	if (has(ftl, named, from) && !ftl_pairs_has(&ftl->alias, from, named))
		move_alias(ftl, from, to, named);
	while (aliases--) {
		if (alias[aliases] != lba)
			move_alias(ftl, from, to, alias[aliases]);
	}
	if (ftl_map_owner(ftl, from) == FTL_NO_LBA)
		ftl_store_invalidate(ftl, from, shared);
}

bool ftl_map_has(const struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	uint32_t end = lba + pages;

	for (; lba < end; lba++) {
		if (ftl->map[lba])
			return true;
	}
	return false;
}

void ftl_map_discard(struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	uint32_t end = lba + pages;

	for (; lba < end; lba++)
		ftl_map_unmap(ftl, lba);
}
