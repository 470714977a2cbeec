// SPDX-License-Identifier: GPL-2.0-only
/*
 * The power is cut: RAM is gone, and what the dies were doing is half done.
 *
 *	on --the armed operation is about to end, or at once--> off
 *	off --ftl_power_on(): the steps in recover.c--> on
 *
 * Of a row under program each page is still erased, unreadable, or complete;
 * of a block under erase each page is as it was, unreadable, or erased. An
 * operation that waits in a queue has not touched the cells. (Flash that
 * stores several bits in a cell may also lose older pages of the row under
 * program; devices guard against that with a capacitor or a copy, and this one
 * has no such pages.)
 */
#include "internal.h"

/* xorshift64* */
enum ftl_fate ftl_power_fate(struct ftl *ftl)
{
	uint64_t *state = &ftl->power.seed;

	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * 0x2545f4914f6cdd1dull >> 40) % 3;
}

static void tear_row(struct ftl *ftl, const struct ftl_row *row)
{
	uint32_t i;

	for (i = 0; i < row->pages; i++) {
		struct ftl_slot *slot = &ftl->cache.slot[row->slot[i]];
		uint32_t physical = row->operation.physical + i;
		enum ftl_fate fate = ftl_power_fate(ftl);

		if (fate == FTL_FATE_TORN)
			ftl_store_torn_page(ftl, physical);
		else if (fate == FTL_FATE_DONE && !slot->blank)
			ftl_store_program(ftl, physical, slot->lba, row->sequence + i,
					  &slot->content);
	}
}

static void tear_collected(struct ftl *ftl, const struct ftl_collector *collector)
{
	uint32_t i;

	for (i = 0; i < collector->operation.pages; i++) {
		uint32_t physical = collector->operation.physical + i;
		enum ftl_fate fate = ftl_power_fate(ftl);
		struct ftl_content content;

		if (fate == FTL_FATE_DONE &&
		    ftl_store_copy(ftl, collector->page[i], &content))
			ftl_store_program(ftl, physical, collector->lba[i],
					  collector->sequence + i, &content);
		else if (fate != FTL_FATE_NOTHING)
			ftl_store_torn_page(ftl, physical);
	}
}

static void tear(struct ftl *ftl, struct ftl_die *die)
{
	struct ftl_operation *operation = die->suspended ? die->suspended : die->serving;
	bool half_done = die->suspended || die->phase == FTL_SUSPENDING;
	enum ftl_phase phase = half_done ? die->suspended_phase : die->phase;

	if (!operation)
		return;
	if (phase == FTL_ERASE_FIRST || operation->kind == FTL_ERASE_BLOCK)
		ftl_store_torn_erase(ftl, operation->physical);
	else if (operation->kind == FTL_PROGRAM_ROW)
		tear_row(ftl, (struct ftl_row *)operation);
	else if (operation->kind == FTL_MAP_PROGRAM)
		ftl_mapcache_torn(ftl, (struct ftl_map_row *)operation);
	else if (operation->kind == FTL_COLLECT_PROGRAM)
		tear_collected(ftl, &die->collector);
	else if (operation->kind == FTL_SYSTEM_PROGRAM || operation->kind == FTL_SYSTEM_ERASE)
		ftl_system_torn(ftl, operation->physical, operation->kind);
}

static void fail(struct ftl *ftl)
{
	uint32_t i;

	ftl->power.off = true;
	ftl->power.cut_in = 0;
	for (i = 0; i < ftl->dies; i++)
		tear(ftl, &ftl->die[i]);
	ftl_die_power_lost(ftl);
	ftl_cache_power_lost(ftl);
	ftl_readcache_power_lost(ftl);
	ftl_mapcache_power_lost(ftl);
	memset(&ftl->units, 0, sizeof(ftl->units));
	ftl_system_reset(ftl);
	ftl_log_reset(ftl);
	ftl_store_power_lost(ftl);
	memset(&ftl->spread, 0, sizeof(ftl->spread));
	ftl_map_power_lost(ftl);
	ftl_command_power_lost(ftl);
}

bool ftl_power_cut_now(struct ftl *ftl)
{
	if (!ftl->power.cut_in || --ftl->power.cut_in)
		return false;
	fail(ftl);
	return true;
}

void ftl_cut_power(struct ftl *ftl, uint64_t operations, uint64_t seed)
{
	if (ftl->power.off)
		return;
	ftl->power.seed = seed | 1;
	ftl->power.cut_in = operations;
	if (!operations)
		fail(ftl);
}

bool ftl_power_is_off(const struct ftl *ftl)
{
	return ftl->power.off;
}
