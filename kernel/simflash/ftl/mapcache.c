// SPDX-License-Identifier: GPL-2.0-only
/*
 * The map in flash, and the part of it that is in RAM (as DFTL's, Gupta et al. 2009).
 *
 * A *map page* has the entries of map_page_lbas LBAs in a row. It is a page like any
 * other, with an LBA behind the capacity: written in rows, collected, found by its
 * OOB after a power cut. Where the map pages are is always in RAM.
 *
 *	absent --an LBA of it is looked up--> reading --> clean
 *	absent, clean --an entry changes--> dirty
 *	dirty --FLUSH, or too many are in RAM--> written, in rows of several --> clean
 *	clean --more in RAM than there is room for, the longest unused first--> absent
 *
 * A look-up that finds its page absent costs a read of it; a change to an absent
 * page has it read, too, before it can be written. Commands wait for look-ups only;
 * a host's writes wait where more pages are dirty than there is room for. FLUSH ends
 * when the pages that were dirty once its data was in flash are in flash themselves.
 *
 * All entries are in ftl->map: what is here is what they cost. A mount does not
 * read map pages either, it rebuilds the map from OOBs and log (recover.c), so a map
 * page that a power cut tears loses nothing.
 */
#include "internal.h"

/* Rows of map pages under program for each die. */
#define ROWS_A_DIE 2

uint32_t ftl_mapcache_pages(const struct ftl_config *config)
{
	uint32_t pages;

	if (!config->map_cache_pages)
		return 0;
	pages = (config->capacity_pages + config->map_page_lbas - 1) / config->map_page_lbas;
	return config->map_cache_pages < pages ? pages : 0;
}

static void list_push(struct ftl_mapcache *cache, struct ftl_map_list *list, uint32_t index)
{
	struct ftl_map_page *page = &cache->page[index];

	page->next = FTL_NONE;
	page->previous = list->count ? list->tail : FTL_NONE;
	if (list->count++)
		cache->page[list->tail].next = index;
	else
		list->head = index;
	list->tail = index;
}

static void list_remove(struct ftl_mapcache *cache, struct ftl_map_list *list, uint32_t index)
{
	struct ftl_map_page *page = &cache->page[index];

	if (page->previous == FTL_NONE)
		list->head = page->next;
	else
		cache->page[page->previous].next = page->next;
	if (page->next == FTL_NONE)
		list->tail = page->previous;
	else
		cache->page[page->next].previous = page->previous;
	list->count--;
}

/* Nothing is in RAM, and no row is under program. */
static void clear(struct ftl *ftl)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t i;

	memset(cache->page, 0, cache->pages * sizeof(*cache->page));
	memset(&cache->clean, 0, sizeof(cache->clean));
	memset(&cache->dirty, 0, sizeof(cache->dirty));
	memset(&cache->waits, 0, sizeof(cache->waits));
	cache->writing = cache->to_flush = 0;
	cache->flushing = NULL;
	cache->free_row = NULL;
	for (i = 0; i < ROWS_A_DIE * ftl->dies; i++) {
		cache->row[i].busy = false;
		cache->row[i].next = cache->free_row;
		cache->free_row = &cache->row[i];
	}
}

bool ftl_mapcache_create(struct ftl *ftl)
{
	struct ftl_mapcache *cache = &ftl->mapcache;

	cache->pages = ftl_mapcache_pages(&ftl->config);
	if (!cache->pages)
		return true;
	cache->page = ftl_alloc_array(cache->pages, sizeof(*cache->page));
	cache->row = ftl_alloc_array(ROWS_A_DIE * ftl->dies, sizeof(*cache->row));
	if (!cache->page || !cache->row)
		return false;
	clear(ftl);
	return true;
}

void ftl_mapcache_destroy(struct ftl *ftl)
{
	ftl_free_array(ftl->mapcache.page);
	ftl_free_array(ftl->mapcache.row);
}

void ftl_mapcache_power_lost(struct ftl *ftl)
{
	if (ftl->mapcache.pages)
		clear(ftl);
}

static uint32_t index_of(const struct ftl *ftl, uint32_t lba)
{
	return lba / ftl->config.map_page_lbas;
}

static uint32_t lba_of(const struct ftl *ftl, uint32_t index)
{
	return ftl->config.capacity_pages + index;
}

static bool is_in_ram(const struct ftl_map_page *page)
{
	return page->state == FTL_MAP_CLEAN || page->state == FTL_MAP_DIRTY ||
	       page->state == FTL_MAP_UNDER_PROGRAM;
}

/* Has the page read, unless it is being read or flash has none. */
static void read_page(struct ftl *ftl, uint32_t index, bool front)
{
	struct ftl_map_page *page = &ftl->mapcache.page[index];
	uint32_t physical;

	if (page->reading || !ftl_map_find(ftl, lba_of(ftl, index), &physical))
		return;
	page->reading = true;
	page->read.kind = FTL_MAP_READ;
	page->read.physical = physical;
	page->read.first = index;
	page->read.pages = 1;
	ftl->stats.map_page_reads++;
	ftl_store_pin(ftl, physical);
	ftl_die_queue(ftl, ftl_die_of(ftl, physical), &page->read,
		      front ? FTL_CLASS_FRONT_READ : FTL_CLASS_READ);
}

/* Makes room: clean pages go, the longest unused first, and then dirty ones are written. */
static void make_room(struct ftl *ftl)
{
	struct ftl_mapcache *cache = &ftl->mapcache;

	while (cache->clean.count + cache->dirty.count + cache->writing >
	       ftl->config.map_cache_pages && cache->clean.count) {
		uint32_t index = cache->clean.head;

		list_remove(cache, &cache->clean, index);
		cache->page[index].state = FTL_MAP_ABSENT;
	}
	cache->wanted = cache->to_flush ||
			cache->dirty.count + cache->writing > ftl->config.map_cache_pages / 2;
}

static void use(struct ftl_mapcache *cache, uint32_t index)
{
	if (cache->page[index].state != FTL_MAP_CLEAN || cache->clean.tail == index)
		return;
	list_remove(cache, &cache->clean, index);
	list_push(cache, &cache->clean, index);
}

/* The pages that a read's entries are in and that have to be read first. */
bool ftl_mapcache_look_up(struct ftl *ftl, struct ftl_cmd *cmd)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t index, last;

	if (!cache->pages)
		return true;
	cmd->waiting = 0;
	last = index_of(ftl, cmd->lba + cmd->pages - 1);
	for (index = index_of(ftl, cmd->lba); index <= last; index++) {
		struct ftl_map_page *page = &cache->page[index];

		ftl->stats.map_look_ups++;
		if (is_in_ram(page) && !page->reading) {
			use(cache, index);
			continue;
		}
		ftl->stats.map_misses++;
		read_page(ftl, index, ftl_command_is_front(ftl, cmd));
		cmd->waiting += page->reading;
	}
	if (!cmd->waiting)
		return true;
	ftl_commands_push(&cache->waits, cmd);
	return false;
}

static bool needs(const struct ftl *ftl, const struct ftl_cmd *cmd, uint32_t index)
{
	return index >= index_of(ftl, cmd->lba) &&
	       index <= index_of(ftl, cmd->lba + cmd->pages - 1);
}

/* Commands that waited for this page, and for no other, go on. */
static void end_waits(struct ftl *ftl, uint32_t index)
{
	struct ftl_commands waits = ftl->mapcache.waits;
	struct ftl_cmd *cmd;

	memset(&ftl->mapcache.waits, 0, sizeof(waits));
	while ((cmd = ftl_commands_pop(&waits))) {
		if (needs(ftl, cmd, index) && !--cmd->waiting)
			ftl_command_looked_up(ftl, cmd);
		else
			ftl_commands_push(&ftl->mapcache.waits, cmd);
	}
}

void ftl_mapcache_read_done(struct ftl *ftl, struct ftl_operation *operation)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t index = operation->first;
	struct ftl_map_page *page = &cache->page[index];

	ftl_invariant(ftl_store_lba(ftl, operation->physical) == lba_of(ftl, index));
	ftl_store_unpin(ftl, operation->physical);
	page->reading = false;
	if (page->state == FTL_MAP_ABSENT) {
		page->state = FTL_MAP_CLEAN;
		list_push(cache, &cache->clean, index);
	}
	make_room(ftl);
	end_waits(ftl, index);
}

static void set_dirty(struct ftl *ftl, uint32_t index)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	struct ftl_map_page *page = &cache->page[index];

	if (page->state == FTL_MAP_ABSENT)
		read_page(ftl, index, false);
	if (page->state == FTL_MAP_CLEAN)
		list_remove(cache, &cache->clean, index);
	page->state = FTL_MAP_DIRTY;
	list_push(cache, &cache->dirty, index);
	make_room(ftl);
}

/* An LBA's entry has changed. */
void ftl_mapcache_changed(struct ftl *ftl, uint32_t lba)
{
	struct ftl_map_page *page;

	if (!ftl->mapcache.pages || lba >= ftl->config.capacity_pages)
		return;
	page = &ftl->mapcache.page[index_of(ftl, lba)];
	if (page->state == FTL_MAP_UNDER_PROGRAM)
		page->again = true;
	else if (page->state != FTL_MAP_DIRTY)
		set_dirty(ftl, index_of(ftl, lba));
}

bool ftl_mapcache_is_full(const struct ftl *ftl)
{
	const struct ftl_mapcache *cache = &ftl->mapcache;

	return cache->pages && cache->dirty.count + cache->writing > ftl->config.map_cache_pages;
}

bool ftl_mapcache_is_quiet(const struct ftl *ftl)
{
	return !ftl->mapcache.writing;
}

bool ftl_mapcache_under_program(const struct ftl *ftl, uint32_t lba)
{
	return ftl->mapcache.page[lba - ftl->config.capacity_pages].state == FTL_MAP_UNDER_PROGRAM;
}

/* The dirty pages that can be written, the longest dirty first, up to a row of them. */
static uint32_t gather(struct ftl *ftl, uint32_t *index)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t pages = 0;
	uint32_t at = cache->dirty.count ? cache->dirty.head : FTL_NONE;

	for (; at != FTL_NONE && pages < ftl->config.row_pages; at = cache->page[at].next) {
		if (!cache->page[at].reading)
			index[pages++] = at;
	}
	return pages;
}

static bool write_row(struct ftl *ftl)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	struct ftl_map_row *row = cache->free_row;
	uint32_t i;

	if (!row || ftl_log_wants_quiet(ftl))
		return false;
	row->operation.pages = gather(ftl, row->page);
	if (!row->operation.pages || !ftl_provide(ftl))
		return false;
	if (!ftl_store_reserve_row(ftl)) {
		/* What the host has staged holds rows, and it waits for this. */
		ftl_cache_push_all(ftl);
		ftl_collect_goes_on(ftl);
		return false;
	}
	cache->free_row = row->next;
	row->busy = true;
	for (i = 0; i < row->operation.pages; i++) {
		list_remove(cache, &cache->dirty, row->page[i]);
		cache->page[row->page[i]].state = FTL_MAP_UNDER_PROGRAM;
		cache->page[row->page[i]].again = false;
	}
	cache->writing += row->operation.pages;
	row->sequence = ftl->next_sequence;
	row->operation.kind = FTL_MAP_PROGRAM;
	row->operation.foreground = false;
	row->operation.physical = ftl_store_take_row(ftl, ftl_store_map_stream(ftl),
						     &row->operation.erase_first);
	ftl->next_sequence += row->operation.pages;
	ftl->stats.padded_pages += ftl->config.row_pages - row->operation.pages;
	ftl_die_queue(ftl, ftl_die_of(ftl, row->operation.physical), &row->operation,
		      FTL_CLASS_PROGRAM);
	return true;
}

/*
 * Writes what a FLUSH waits for, or what there is no room for. Called after every
 * event while there is any: what is missing may be a row, flash, memory, or the end
 * of a read.
 */
void ftl_mapcache_run(struct ftl *ftl)
{
	while (ftl->mapcache.wanted && write_row(ftl))
		make_room(ftl);
}

/* Every change up to now is in a page that is dirty or under program, or both. */
static void mark_for_flush(struct ftl *ftl)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t index = cache->dirty.count ? cache->dirty.head : FTL_NONE;
	uint32_t i, row;

	cache->to_flush = cache->writing + cache->dirty.count;
	for (; index != FTL_NONE; index = cache->page[index].next)
		cache->page[index].flush = 1;
	for (row = 0; row < ROWS_A_DIE * ftl->dies; row++) {
		for (i = 0; cache->row[row].busy && i < cache->row[row].operation.pages; i++) {
			struct ftl_map_page *page = &cache->page[cache->row[row].page[i]];

			page->flush = 1 + page->again;
		}
	}
	cache->wanted |= cache->to_flush;
}

/*
 * A FLUSH has its data in flash: what is dirty now has to follow. One at a time has
 * its pages counted; the next is asked when that one ends. True: nothing is left.
 */
bool ftl_mapcache_flush(struct ftl *ftl, struct ftl_cmd *cmd)
{
	struct ftl_mapcache *cache = &ftl->mapcache;

	if (!cache->pages)
		return true;
	if (cache->flushing != cmd) {
		cache->flushing = cmd;
		mark_for_flush(ftl);
	}
	if (cache->to_flush)
		return false;
	cache->flushing = NULL;
	return true;
}

/* The word of a map page: which version of which it is. */
static uint64_t word_of(const struct ftl_map_row *row, uint32_t i)
{
	return (uint64_t)row->page[i] << 40 | (row->sequence + i);
}

static void page_written(struct ftl *ftl, const struct ftl_map_row *row, uint32_t i)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t index = row->page[i];
	struct ftl_map_page *page = &cache->page[index];
	struct ftl_content content = { .word = word_of(row, i) };

	ftl_store_program(ftl, row->operation.physical + i, lba_of(ftl, index),
			  row->sequence + i, &content);
	ftl_map_programmed(ftl, lba_of(ftl, index), row->operation.physical + i);
	if (page->flush && !--page->flush)
		cache->to_flush--;
	page->state = page->again ? FTL_MAP_DIRTY : FTL_MAP_CLEAN;
	list_push(cache, page->again ? &cache->dirty : &cache->clean, index);
}

void ftl_mapcache_row_done(struct ftl *ftl, struct ftl_map_row *row)
{
	struct ftl_mapcache *cache = &ftl->mapcache;
	uint32_t i;

	for (i = 0; i < row->operation.pages; i++)
		page_written(ftl, row, i);
	cache->writing -= row->operation.pages;
	row->busy = false;
	row->next = cache->free_row;
	cache->free_row = row;
	ftl_log_count(ftl, row->operation.pages);
	ftl_store_row_done(ftl, row->operation.physical);
	make_room(ftl);
	ftl_cache_end_flushes(ftl);
	if (ftl->collect_waits)
		ftl_collect_wake_waiting(ftl);
	ftl_link_start(ftl);
}

/* The power is cut while the row is under program. */
void ftl_mapcache_torn(struct ftl *ftl, const struct ftl_map_row *row)
{
	uint32_t i;

	for (i = 0; i < row->operation.pages; i++) {
		struct ftl_content content = { .word = word_of(row, i) };
		enum ftl_fate fate = ftl_power_fate(ftl);

		if (fate == FTL_FATE_TORN)
			ftl_store_torn_page(ftl, row->operation.physical + i);
		else if (fate == FTL_FATE_DONE)
			ftl_store_program(ftl, row->operation.physical + i,
					  lba_of(ftl, row->page[i]), row->sequence + i,
					  &content);
	}
}
