// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write cache: pages on their way to flash.
 *
 * Pages are staged in order of arrival until a row is full, then the row goes
 * to a die; FLUSH and FUA send it before it is full, padded. A page leaves
 * the cache when its program has ended, for until then the cells do not hold
 * it. Each stream has a row of its own, as long as there are rows; else its pages
 * join those of another one, for a row that is staged has flash.
 */
#include "internal.h"

static uint32_t *bucket_of(const struct ftl_cache *cache, uint32_t lba)
{
	return &cache->bucket[(uint32_t)(lba * 0x9e3779b1u) >> cache->bucket_shift];
}

static uint32_t find(const struct ftl_cache *cache, uint32_t lba)
{
	uint32_t slot = *bucket_of(cache, lba);

	while (slot != FTL_NONE && cache->slot[slot].lba != lba)
		slot = cache->slot[slot].next;
	return slot;
}

static void list_slot(struct ftl_cache *cache, uint32_t index)
{
	uint32_t *bucket = bucket_of(cache, cache->slot[index].lba);

	cache->slot[index].next = *bucket;
	cache->slot[index].listed = true;
	*bucket = index;
}

static void unlist_slot(struct ftl_cache *cache, uint32_t index)
{
	uint32_t *link = bucket_of(cache, cache->slot[index].lba);

	while (*link != index)
		link = &cache->slot[*link].next;
	*link = cache->slot[index].next;
	cache->slot[index].listed = false;
}

static void free_slot(struct ftl_cache *cache, uint32_t index)
{
	cache->slot[index].used = false;
	cache->slot[index].next = cache->free_head;
	cache->free_head = index;
	cache->free_count++;
}

static uint32_t new_slot(struct ftl_cache *cache)
{
	uint32_t index = cache->free_head;

	cache->free_head = cache->slot[index].next;
	cache->free_count--;
	return index;
}

static void free_row(struct ftl_cache *cache, struct ftl_row *row)
{
	row->next = cache->free_row;
	cache->free_row = row;
}

/* Nothing is in the cache. */
static void clear(struct ftl *ftl)
{
	struct ftl_cache *cache = &ftl->cache;
	uint32_t buckets = 0xffffffffu >> cache->bucket_shift;
	uint32_t i;

	cache->free_head = FTL_NONE;
	cache->free_count = 0;
	cache->free_row = NULL;
	for (i = 0; i < ftl->config.cache_pages; i++) {
		free_slot(cache, i);
		free_row(cache, &cache->row[i]);
	}
	for (i = 0; i <= buckets; i++)
		cache->bucket[i] = FTL_NONE;
	memset(cache->staged, 0, sizeof(cache->staged));
	cache->oldest = cache->newest = NULL;
	cache->flush_head = NULL;
}

bool ftl_cache_create(struct ftl *ftl)
{
	struct ftl_cache *cache = &ftl->cache;
	uint32_t pages = ftl->config.cache_pages;
	uint32_t bits = 1;

	while (1u << bits < pages)
		bits++;
	cache->bucket_shift = 32 - bits;
	cache->slot = ftl_alloc_array(pages, sizeof(*cache->slot));
	cache->row = ftl_alloc_array(pages, sizeof(*cache->row));
	cache->bucket = ftl_alloc_array(1u << bits, sizeof(*cache->bucket));
	if (ftl->config.own_streams)
		cache->written = ftl_alloc_array(ftl->lbas, sizeof(*cache->written));
	if (!cache->slot || !cache->row || !cache->bucket ||
	    (ftl->config.own_streams && !cache->written))
		return false;
	clear(ftl);
	return true;
}

static void drop_contents(struct ftl *ftl)
{
	struct ftl_cache *cache = &ftl->cache;
	uint32_t i;

	for (i = 0; cache->slot && i < ftl->config.cache_pages; i++) {
		if (cache->slot[i].used)
			ftl_content_drop(&cache->slot[i].content);
	}
}

void ftl_cache_power_lost(struct ftl *ftl)
{
	drop_contents(ftl);
	clear(ftl);
	if (ftl->cache.written)
		memset(ftl->cache.written, 0, ftl->lbas * sizeof(*ftl->cache.written));
}

void ftl_cache_destroy(struct ftl *ftl)
{
	struct ftl_cache *cache = &ftl->cache;

	drop_contents(ftl);
	ftl_free_array(cache->slot);
	ftl_free_array(cache->written);
	ftl_free_array(cache->row);
	ftl_free_array(cache->bucket);
}

bool ftl_cache_read(const struct ftl *ftl, uint32_t lba, void *memory)
{
	const struct ftl_cache *cache = &ftl->cache;
	uint32_t slot;

	if (cache->free_count == ftl->config.cache_pages)
		return false;
	slot = find(cache, lba);
	if (slot == FTL_NONE)
		return false;
	ftl_content_read(&cache->slot[slot].content, memory);
	return true;
}

static void own(struct ftl_slot *slot, struct ftl_content *content, struct ftl_cmd *fua)
{
	slot->content = *content;
	content->buffer = false;
	slot->fua = fua;
	if (fua)
		fua->waiting++;
}

/*
 * A staged page is overwritten in place. No FUA write waits for it then: one
 * write at a time moves into the cache, and a FUA write's pages are sent off
 * with its last.
 */
static void overwrite(struct ftl *ftl, struct ftl_slot *slot, struct ftl_content *content,
		      struct ftl_cmd *fua)
{
	ftl_content_drop(&slot->content);
	own(slot, content, fua);
	ftl->stats.cache_overwrites++;
}

static bool stage_row(struct ftl *ftl, uint32_t stream)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_row *row = cache->free_row;

	if (!ftl_store_reserve_row(ftl))
		return false;
	cache->free_row = row->next;
	row->pages = 0;
	row->operation.foreground = false;
	cache->staged[stream] = row;
	return true;
}

/*
 * Streams by how long ago a page was written last, in pages written since: the first is
 * for pages that are overwritten within the least time, each further one for four times as
 * much, up to a quarter of the device. Others, and new pages, have no stream. When the
 * collector moved a page does not count, so its OOB does not tell.
 */
static uint32_t stream_by_age(const struct ftl *ftl, uint32_t lba)
{
	const struct ftl_cache *cache = &ftl->cache;
	uint32_t streams = ftl_config_streams(&ftl->config);
	uint32_t age = cache->pages_written - cache->written[lba];
	uint32_t stream;

	for (stream = 1; cache->written[lba] && stream < streams; stream++) {
		if (age < ftl->config.capacity_pages >> 2 * (streams - stream))
			return stream;
	}
	return 0;
}

static void note_written(struct ftl_cache *cache, uint32_t lba)
{
	if (!cache->written)
		return;
	if (!++cache->pages_written)
		cache->pages_written = 1;
	cache->written[lba] = cache->pages_written;
}

uint32_t ftl_cache_stream(const struct ftl *ftl, uint32_t lba, const struct ftl_cmd *cmd)
{
	if (cmd && cmd->stream)
		return cmd->stream;
	return cmd && ftl->config.own_streams ? stream_by_age(ftl, lba) : 0;
}

/* The stream in whose row the next page of @stream goes; that has none if no row is being filled. */
static uint32_t staged_in(const struct ftl *ftl, uint32_t stream)
{
	uint32_t other;

	if (ftl->cache.staged[stream] || ftl->free_rows)
		return stream;
	for (other = 0; other < ftl_config_streams(&ftl->config); other++) {
		if (ftl->cache.staged[other])
			return other;
	}
	return stream;
}

static void stage_page(struct ftl *ftl, uint32_t stream, uint32_t lba,
		       struct ftl_content *content, struct ftl_cmd *fua)
{
	struct ftl_cache *cache = &ftl->cache;
	uint32_t index = new_slot(cache);
	struct ftl_slot *slot = &cache->slot[index];
	struct ftl_row *row = cache->staged[stream];

	slot->lba = lba;
	slot->stream = stream;
	slot->used = true;
	slot->staged = true;
	slot->dropped = false;
	slot->blank = false;
	own(slot, content, fua);
	list_slot(cache, index);
	row->slot[row->pages++] = index;
	if (row->pages == ftl->config.row_pages)
		ftl_cache_push(ftl, stream);
}

/* Takes the content, of the command or of nobody's; false if there is no flash left for it. */
bool ftl_cache_write(struct ftl *ftl, uint32_t lba, struct ftl_content *content,
		     struct ftl_cmd *cmd)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_cmd *fua = cmd && cmd->fua ? cmd : NULL;
	uint32_t index = find(cache, lba);
	bool in_place = index != FTL_NONE && cache->slot[index].staged;
	uint32_t stream = in_place ? cache->slot[index].stream :
				     staged_in(ftl, ftl_cache_stream(ftl, lba, cmd));

	if (!cache->staged[stream] && !stage_row(ftl, stream))
		return false;
	note_written(cache, lba);
	cache->staged[stream]->operation.foreground |= ftl_command_is_front(ftl, cmd);
	if (in_place) {
		overwrite(ftl, &cache->slot[index], content, fua);
		return true;
	}
	if (index != FTL_NONE)
		unlist_slot(cache, index);
	stage_page(ftl, stream, lba, content, fua);
	return true;
}

bool ftl_cache_has_row(const struct ftl *ftl, uint32_t stream)
{
	return ftl->cache.staged[staged_in(ftl, stream)];
}

uint32_t ftl_cache_staged(const struct ftl *ftl, uint32_t stream)
{
	const struct ftl_row *row = ftl->cache.staged[staged_in(ftl, stream)];

	return row ? row->pages : 0;
}

static void link_row(struct ftl_cache *cache, struct ftl_row *row)
{
	row->number = ++cache->next_row;
	row->next = NULL;
	row->previous = cache->newest;
	if (row->previous)
		row->previous->next = row;
	else
		cache->oldest = row;
	cache->newest = row;
}

static void unlink_row(struct ftl_cache *cache, struct ftl_row *row)
{
	if (row->previous)
		row->previous->next = row->next;
	else
		cache->oldest = row->next;
	if (row->next)
		row->next->previous = row->previous;
	else
		cache->newest = row->previous;
}

/* What was discarded before it had a sequence number must not get a later one. */
static void send_off(struct ftl_slot *slot)
{
	slot->staged = false;
	slot->blank = slot->dropped;
}

void ftl_cache_push(struct ftl *ftl, uint32_t stream)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_row *row = cache->staged[stream];
	uint32_t i;

	if (!row)
		return;
	cache->staged[stream] = NULL;
	link_row(cache, row);
	for (i = 0; i < row->pages; i++) {
		send_off(&cache->slot[row->slot[i]]);
		ftl_map_prefetch_page(ftl, cache->slot[row->slot[i]].lba);
	}

	row->sequence = ftl->next_sequence;
	row->operation.kind = FTL_PROGRAM_ROW;
	row->operation.physical = ftl_store_take_row(ftl, stream, &row->operation.erase_first);
	row->operation.pages = row->pages;
	ftl->next_sequence += row->pages;
	ftl->stats.padded_pages += ftl->config.row_pages - row->pages;
	ftl_die_queue(ftl, ftl_die_of(ftl, row->operation.physical), &row->operation,
		      FTL_CLASS_PROGRAM);
}

/* What is left of two streams goes to one row, if it fits: instead of being padded twice. */
static void join(struct ftl *ftl, uint32_t to, uint32_t from)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_row *into = cache->staged[to], *row = cache->staged[from];
	uint32_t i;

	if (!into || !row || into->pages + row->pages > ftl->config.row_pages)
		return;
	for (i = 0; i < row->pages; i++) {
		cache->slot[row->slot[i]].stream = to;
		into->slot[into->pages++] = row->slot[i];
	}
	into->operation.foreground |= row->operation.foreground;
	cache->staged[from] = NULL;
	free_row(cache, row);
	ftl_store_give_back_row(ftl);
}

void ftl_cache_push_all(struct ftl *ftl)
{
	uint32_t streams = ftl_config_streams(&ftl->config);
	uint32_t stream, other;

	for (stream = 0; stream < streams; stream++) {
		for (other = stream + 1; other < streams; other++)
			join(ftl, stream, other);
		ftl_cache_push(ftl, stream);
	}
}

static bool has_page_of(const struct ftl_cache *cache, const struct ftl_row *row,
			const struct ftl_cmd *cmd)
{
	uint32_t i;

	for (i = 0; row && i < row->pages; i++) {
		if (cache->slot[row->slot[i]].fua == cmd)
			return true;
	}
	return false;
}

void ftl_cache_push_of(struct ftl *ftl, const struct ftl_cmd *fua)
{
	uint32_t stream;

	for (stream = 0; stream < ftl_config_streams(&ftl->config); stream++) {
		if (has_page_of(&ftl->cache, ftl->cache.staged[stream], fua))
			ftl_cache_push(ftl, stream);
	}
}

/* Ends the flushes whose rows are all programmed, then the log and the map they asked for. */
void ftl_cache_end_flushes(struct ftl *ftl)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_cmd *cmd;

	while ((cmd = cache->flush_head)) {
		if (cache->oldest && cache->oldest->number <= cmd->flush_row)
			return;
		if (cmd->flush_log && cmd->flush_log > ftl_system_written(ftl))
			return;
		if (cmd->op == FTL_FLUSH && !ftl_mapcache_flush(ftl, cmd))
			return;
		cache->flush_head = cmd->next;
		if (cmd->op == FTL_FLUSH)
			ftl_command_respond(ftl, cmd);
		else
			ftl_janus_flushed(ftl, cmd);
	}
}

void ftl_cache_flush(struct ftl *ftl, struct ftl_cmd *cmd)
{
	struct ftl_cache *cache = &ftl->cache;

	ftl_cache_push_all(ftl);
	if (ftl->log.must_flush)
		ftl_log_flush(ftl);
	cmd->flush_log = ftl->log.handed_number;
	cmd->flush_row = cache->next_row;
	cmd->next = NULL;
	if (cache->flush_head)
		cache->flush_tail->next = cmd;
	else
		cache->flush_head = cmd;
	cache->flush_tail = cmd;
	ftl_cache_end_flushes(ftl);
}

void ftl_cache_discard(struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	struct ftl_cache *cache = &ftl->cache;
	uint32_t i;

	if (cache->free_count == ftl->config.cache_pages)
		return;
	for (i = 0; i < ftl->config.cache_pages; i++) {
		struct ftl_slot *slot = &cache->slot[i];

		if (!slot->used || slot->lba - lba >= pages)
			continue;
		slot->dropped = true;
		if (slot->listed)
			unlist_slot(cache, i);
	}
}

bool ftl_cache_has_any(const struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	const struct ftl_cache *cache = &ftl->cache;
	uint32_t i;

	if (cache->free_count == ftl->config.cache_pages)
		return false;
	for (i = 0; i < ftl->config.cache_pages; i++) {
		if (cache->slot[i].used && cache->slot[i].lba - lba < pages)
			return true;
	}
	return false;
}

bool ftl_cache_has(const struct ftl *ftl, uint32_t lba)
{
	return ftl->cache.free_count != ftl->config.cache_pages &&
	       find(&ftl->cache, lba) != FTL_NONE;
}

/* No row is under program, the collectors' included. */
bool ftl_cache_is_quiet(const struct ftl *ftl)
{
	uint32_t i;

	if (ftl->cache.oldest || !ftl_mapcache_is_quiet(ftl))
		return false;
	for (i = 0; i < ftl->dies; i++) {
		if (ftl->die[i].collector.busy &&
		    ftl->die[i].collector.operation.kind == FTL_COLLECT_PROGRAM)
			return false;
	}
	return true;
}

/*
 * A newer version of the LBA is on its way to the cells. Sequence numbers are
 * given when a row is sent off: a copy of the older version that were sent off
 * now would count as the newer one.
 */
bool ftl_cache_under_program(const struct ftl *ftl, uint32_t lba)
{
	const struct ftl_cache *cache = &ftl->cache;
	const struct ftl_row *row;
	uint32_t i;

	if (lba >= ftl->config.capacity_pages)
		return lba < ftl->lbas && ftl_mapcache_under_program(ftl, lba);
	for (row = cache->oldest; row; row = row->next) {
		for (i = 0; i < row->pages; i++) {
			if (cache->slot[row->slot[i]].lba == lba)
				return true;
		}
	}
	return false;
}

static void slot_programmed(struct ftl *ftl, uint32_t index, uint32_t physical,
			    uint64_t sequence)
{
	struct ftl_cache *cache = &ftl->cache;
	struct ftl_slot *slot = &cache->slot[index];

	if (slot->blank) {
		ftl_content_drop(&slot->content);
		ftl_store_torn_page(ftl, physical);
	} else {
		ftl_store_program(ftl, physical, slot->lba, sequence, &slot->content);
	}
	if (!slot->dropped && !ftl_map_programmed(ftl, slot->lba, physical))
		ftl_store_stale(ftl, physical);
	else if (slot->dropped && !ftl->config.power_loss)
		ftl_store_stale(ftl, physical);
	if (slot->listed)
		unlist_slot(cache, index);
	if (slot->fua && !--slot->fua->waiting)
		ftl_command_respond(ftl, slot->fua);
	free_slot(cache, index);
}

void ftl_cache_row_done(struct ftl *ftl, struct ftl_row *row)
{
	uint32_t i;

	for (i = 0; i < row->pages; i++)
		slot_programmed(ftl, row->slot[i], row->operation.physical + i,
				row->sequence + i);
	ftl_log_count(ftl, row->pages);
	ftl_store_row_done(ftl, row->operation.physical);
	unlink_row(&ftl->cache, row);
	free_row(&ftl->cache, row);
	ftl_cache_end_flushes(ftl);
	if (ftl->collect_waits)
		ftl_collect_wake_waiting(ftl);
	ftl_janus_go_on(ftl);
	ftl_link_start(ftl);
}
