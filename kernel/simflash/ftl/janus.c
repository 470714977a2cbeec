// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Janus commands (dissertation §4.2-4.4, table 6), and copies that are not
 * programmed.
 *
 * A range that is remapped:
 *
 *	src --FTL_REMAP--> src and dst --FTL_LOG_COMMIT--> dst
 *	                   src and dst --FTL_LOG_DISCARD--> src
 *
 * The dissertation unsets src at once, and its fsck has to roll the file
 * system back when the completion flag is missing. Here both LBAs have the
 * data until the host has said which one its metadata names; whatever a power
 * cut leaves of the metadata, it can be read. A move whose entry is in flash
 * is open again after a mount; one whose entry is not has never happened.
 *
 * FTL_ARM is for a host that copies in its own way (ext4's EXT4_IOC_MOVE_EXT):
 * the write that would be the copy is answered with a remap. Both LBAs keep
 * the data; src goes when the host discards or overwrites it.
 */
#include "internal.h"

bool ftl_prepare_remap(struct ftl *ftl)
{
	uint32_t pages = ftl->config.capacity_pages;
	uint32_t armed = pages < FTL_MAX_RANGE_PAGES ? pages : FTL_MAX_RANGE_PAGES;

	/* An LBA is an alias of one page at most. */
	if (!ftl->alias.limit && !ftl_pairs_create(&ftl->alias, pages))
		return false;
	if (!ftl->armed.limit && !ftl_pairs_create(&ftl->armed, armed))
		return false;
	if (!ftl->log.moved)
		ftl->log.moved = ftl_alloc_array(FTL_MAX_MOVES, sizeof(*ftl->log.moved));
	return ftl->log.moved;
}

static bool overlap(uint32_t one, uint32_t pages, uint32_t other, uint32_t other_pages)
{
	return one < other + other_pages && other < one + pages;
}

static bool ranges_overlap(const struct ftl_range *one, const struct ftl_range *other)
{
	return overlap(one->src, one->pages, other->src, other->pages) ||
	       overlap(one->src, one->pages, other->dst, other->pages) ||
	       overlap(one->dst, one->pages, other->src, other->pages) ||
	       overlap(one->dst, one->pages, other->dst, other->pages);
}

static bool inside(const struct ftl *ftl, uint32_t lba, uint32_t pages)
{
	return lba < ftl->config.capacity_pages && pages <= ftl->config.capacity_pages - lba;
}

/* Every LBA is named once. */
static enum ftl_status check_ranges(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t pages = 0;
	uint32_t i, j;

	if (!cmd->ranges || cmd->ranges > FTL_MAX_RANGES)
		return FTL_BAD_RANGE;
	for (i = 0; i < cmd->ranges; i++) {
		const struct ftl_range *range = &cmd->range[i];

		if (!range->pages || range->pages > FTL_MAX_RANGE_PAGES - pages ||
		    !inside(ftl, range->src, range->pages))
			return FTL_BAD_RANGE;
		pages += range->pages;
		if (cmd->op == FTL_SPREAD)
			continue;
		if (!inside(ftl, range->dst, range->pages) ||
		    overlap(range->src, range->pages, range->dst, range->pages))
			return FTL_BAD_RANGE;
		for (j = 0; j < i; j++) {
			if (ranges_overlap(range, &cmd->range[j]))
				return FTL_BAD_RANGE;
		}
	}
	return pages == cmd->pages ? FTL_OK : FTL_BAD_RANGE;
}

/* Another LBA can have what `lba` has. */
static bool can_be_shared(const struct ftl *ftl, uint32_t lba)
{
	uint32_t physical;

	return !ftl_map_find(ftl, lba, &physical) ||
	       ftl_pairs_count(&ftl->alias, physical) < FTL_MAX_ALIASES;
}

static enum ftl_status check_remap(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t i, page;

	if (!ftl->log.moved || ftl->log.moves + cmd->ranges > FTL_MAX_MOVES)
		return FTL_LOG_FULL;
	if (ftl_log_is_full(ftl)) {
		ftl_log_flush(ftl);		/* has it compacted */
		return FTL_LOG_FULL;
	}
	for (i = 0; i < cmd->ranges; i++) {
		const struct ftl_range *range = &cmd->range[i];

		if (ftl_cache_has_any(ftl, range->src, range->pages) ||
		    ftl_cache_has_any(ftl, range->dst, range->pages))
			return FTL_BUSY;
		for (page = 0; page < range->pages; page++) {
			if (!can_be_shared(ftl, range->src + page))
				return FTL_BUSY;
		}
	}
	return ftl_log_reserve(ftl, cmd->ranges) ? FTL_OK : FTL_LOG_FULL;
}

/* dst is to have what src has, and nothing if that has nothing. */
static void share(struct ftl *ftl, uint32_t src, uint32_t dst)
{
	uint32_t physical;

	ftl_map_unmap(ftl, dst);
	if (ftl_map_find(ftl, src, &physical))
		ftl_map_share(ftl, dst, physical);
}

static void remap(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t i, page;

	for (i = 0; i < cmd->ranges; i++) {
		const struct ftl_range *range = &cmd->range[i];

		ftl_log_append(ftl, FTL_LOG_MOVE, range->dst, range->src, range->pages);
		for (page = 0; page < range->pages; page++)
			share(ftl, range->src + page, range->dst + page);
		ftl->log.moved[ftl->log.moves++] = *range;
		ftl->stats.remapped_pages += range->pages;
	}
}

/*
 * A copy that the collector has under program has a lower number than the
 * entry, and would be found by it though it is not the page that was shared.
 * So nothing is under program when this happens.
 */
void ftl_janus_remap(struct ftl *ftl, struct ftl_cmd *cmd)
{
	cmd->status = check_remap(ftl, cmd);
	if (cmd->status == FTL_OK)
		remap(ftl, cmd);
	ftl_command_respond(ftl, cmd);
}

/*
 * Ends the moves: of two LBAs that still have one page, `loser` has nothing
 * from now on. One that was written again meanwhile keeps what was written.
 * The record comes before the entries that spell it out, and does by itself
 * what they do (recover.c).
 */
static void end_moves(struct ftl *ftl, bool commit)
{
	struct ftl_log *log = &ftl->log;
	uint32_t i, page;

	for (i = 0; i < log->moves; i++) {
		const struct ftl_range *range = &log->moved[i];

		for (page = 0; page < range->pages; page++) {
			uint32_t src = range->src + page, dst = range->dst + page;
			uint32_t loser = commit ? src : dst;

			if (!ftl->map[src] || ftl->map[src] != ftl->map[dst] ||
			    ftl_cache_has_any(ftl, loser, 1))
				continue;
			if (ftl_log_reserve(ftl, 1))
				ftl_log_append(ftl, FTL_LOG_UNMAP, loser, 0, 1);
			ftl_map_unmap(ftl, loser);
		}
	}
	log->moves = 0;
	ftl_collect_wake_waiting(ftl);
}

bool ftl_log_committed(const struct ftl *ftl)
{
	return !ftl->log.moves;
}

static void finish_moves(struct ftl *ftl, struct ftl_cmd *cmd)
{
	bool commit = cmd->op == FTL_LOG_COMMIT;

	if (!ftl_log_reserve(ftl, 1)) {
		cmd->status = FTL_LOG_FULL;
		ftl_command_respond(ftl, cmd);
		return;
	}
	if (ftl->log.moves) {
		ftl_log_append(ftl, commit ? FTL_LOG_COMMITTED : FTL_LOG_DISCARDED, 0, 0, 0);
		end_moves(ftl, commit);
	}
	ftl_log_flush(ftl);
	cmd->flush_log = ftl->log.handed_number;
	ftl_log_wait(ftl, cmd);
}

static void checkpoint(struct ftl *ftl, struct ftl_cmd *cmd)
{
	if (ftl->log.moves) {
		cmd->status = FTL_LOG_FULL;
		ftl_command_respond(ftl, cmd);
		return;
	}
	ftl_log_snapshot(ftl, FTL_FULL_CHECKPOINT);
	cmd->flush_log = FTL_NEVER;
	ftl_log_wait(ftl, cmd);
}

/* What was written before the command is in flash. */
void ftl_janus_flushed(struct ftl *ftl, struct ftl_cmd *cmd)
{
	switch (cmd->op) {
	case FTL_REMAP:
		ftl->log.remap = cmd;
		return;
	case FTL_LOG_COMMIT:
	case FTL_LOG_DISCARD:
		finish_moves(ftl, cmd);
		return;
	case FTL_CHECKPOINT:
		checkpoint(ftl, cmd);
		return;
	case FTL_LOG_FLUSH:
		ftl_log_flush(ftl);
		cmd->flush_log = ftl->log.handed_number;
		ftl_log_wait(ftl, cmd);
		return;
	default:
		ftl_command_respond(ftl, cmd);
	}
}

/* Copies that are not programmed. */

static void arm(struct ftl *ftl, struct ftl_cmd *cmd)
{
	uint32_t i, page, old;

	if (!cmd->ranges) {
		ftl_pairs_clear(&ftl->armed);
		return;
	}
	if (ftl->armed.limit - ftl->armed.count < cmd->pages) {
		cmd->status = FTL_LOG_FULL;
		return;
	}
	for (i = 0; i < cmd->ranges; i++) {
		const struct ftl_range *range = &cmd->range[i];

		for (page = 0; page < range->pages; page++) {
			if (ftl_pairs_find(&ftl->armed, range->dst + page, &old))
				ftl_pairs_remove(&ftl->armed, range->dst + page, old);
			ftl_pairs_add(&ftl->armed, range->dst + page, range->src + page);
		}
	}
}

static bool same_data(const struct ftl *ftl, uint32_t physical, const struct ftl_content *content)
{
	const struct ftl_page *page = ftl_store_page(ftl, physical);

	if (page->buffer != content->buffer)
		return false;
	if (!page->buffer)
		return page->word == content->word;
	return !memcmp((const void *)(uintptr_t)page->word,
		       (const void *)(uintptr_t)content->word, FTL_PAGE_BYTES);
}

bool ftl_janus_elide(struct ftl *ftl, uint32_t lba, const struct ftl_content *content,
		     uint32_t *physical)
{
	uint32_t src;

	if (!ftl_pairs_find(&ftl->armed, lba, &src))
		return false;
	ftl_pairs_remove(&ftl->armed, lba, src);
	if (ftl_cache_has(ftl, src) || !ftl_map_find(ftl, src, physical) ||
	    ftl_collect_has(ftl, *physical) || !same_data(ftl, *physical, content) || !can_be_shared(ftl, src) ||
	    ftl_log_is_full(ftl) || !ftl_log_reserve(ftl, 1))
		return false;
	ftl_log_append(ftl, FTL_LOG_SHARE, lba, src, 1);
	ftl_cache_discard(ftl, lba, 1);
	share(ftl, src, lba);
	ftl->stats.elided_pages++;
	return true;
}

/* Physical redistribution. */

static uint32_t row_of(const struct ftl *ftl, uint32_t physical)
{
	return physical / ftl->config.row_pages;
}

struct dof {
	uint32_t rows[FTL_MAX_DIES];	/* of the request */
	uint32_t pages, last_row;
	uint64_t takes, best;		/* row reads one after another, of all requests */
};

static void end_request(const struct ftl *ftl, struct dof *dof)
{
	uint32_t fewest = (dof->pages + ftl->config.row_pages - 1) / ftl->config.row_pages;
	uint32_t most = 0;
	uint32_t die;

	for (die = 0; die < ftl->dies; die++) {
		if (dof->rows[die] > most)
			most = dof->rows[die];
	}
	dof->takes += most;
	dof->best += (fewest + ftl->dies - 1) / ftl->dies;
	memset(dof->rows, 0, sizeof(dof->rows));
	dof->pages = 0;
	dof->last_row = FTL_NONE;
}

static void count_page(const struct ftl *ftl, struct dof *dof, uint32_t lba)
{
	uint32_t physical;

	if (!ftl_map_find(ftl, lba, &physical))
		return;
	if (row_of(ftl, physical) != dof->last_row) {
		dof->last_row = row_of(ftl, physical);
		dof->rows[physical / ftl->config.block_pages / ftl->blocks_per_die]++;
	}
	if (++dof->pages == ftl->config.command_pages)
		end_request(ftl, dof);
}

/*
 * DoP of a sequential read in requests of the largest size: the row reads that
 * have to follow one another when every row is full and the dies share evenly,
 * to those that do. DoF_P is what is missing to one.
 */
uint32_t ftl_dof_p_permille(const struct ftl *ftl, const struct ftl_range *range, uint32_t ranges)
{
	struct dof dof = { .last_row = FTL_NONE };
	uint32_t i, page;

	for (i = 0; i < ranges; i++) {
		for (page = 0; page < range[i].pages && inside(ftl, range[i].src, page + 1); page++)
			count_page(ftl, &dof, range[i].src + page);
	}
	if (dof.pages)
		end_request(ftl, &dof);
	return dof.takes ? 1000 - (uint32_t)(dof.best * 1000 / dof.takes) : 0;
}

/* The next row's worth of pages; false if there is none left. */
static bool spread_gather(struct ftl *ftl)
{
	struct ftl_spread *spread = &ftl->spread;
	const struct ftl_cmd *cmd = spread->cmd;

	spread->pages = 0;
	while (spread->range < cmd->ranges && spread->pages < ftl->config.row_pages) {
		const struct ftl_range *range = &cmd->range[spread->range];
		uint32_t lba = range->src + spread->page;

		if (spread->page++ == range->pages) {
			spread->page = 0;
			spread->range++;
			continue;
		}
		spread->lba[spread->pages] = lba;
		if (!ftl_cache_has(ftl, lba) &&
		    ftl_map_find(ftl, lba, &spread->physical[spread->pages]))
			spread->pages++;
	}
	return spread->pages;
}

static void spread_read(struct ftl *ftl)
{
	struct ftl_spread *spread = &ftl->spread;
	struct ftl_operation *last = NULL, *first = spread->cmd->operation, *operation = first;
	uint32_t i;

	for (i = 0; i < spread->pages; i++) {
		uint32_t physical = spread->physical[i];

		ftl_store_pin(ftl, physical);
		if (last && row_of(ftl, last->physical) == row_of(ftl, physical)) {
			last->pages++;
			continue;
		}
		last = operation++;
		last->kind = FTL_SPREAD_READ;
		last->physical = physical;
		last->pages = 1;
	}
	spread->reads = operation - first;
	for (i = spread->reads; i--;)
		ftl_die_queue(ftl, ftl_die_of(ftl, first[i].physical), &first[i],
			      FTL_CLASS_BACKGROUND);
}

static void spread_next(struct ftl *ftl)
{
	struct ftl_cmd *cmd = ftl->spread.cmd;

	if (spread_gather(ftl)) {
		spread_read(ftl);
		return;
	}
	ftl->spread.cmd = NULL;
	ftl_cache_flush(ftl, cmd);
}

void ftl_janus_read(struct ftl *ftl, struct ftl_operation *operation)
{
	uint32_t i;

	for (i = 0; i < operation->pages; i++)
		ftl_store_unpin(ftl, operation->physical);
	ftl->spread.reads--;
	ftl_janus_go_on(ftl);
}

/* A page that was written meanwhile lies where that put it. */
static bool spread_write(struct ftl *ftl, uint32_t lba, uint32_t physical)
{
	struct ftl_content content;
	uint32_t now;
	bool written = true;

	if (ftl_map_find(ftl, lba, &now) && now == physical && !ftl_cache_has(ftl, lba) &&
	    ftl_store_copy(ftl, physical, &content)) {
		written = ftl_cache_write(ftl, lba, &content, NULL);
		ftl->stats.spread_pages += written;
		ftl->spread.cmd->moved += written;
		ftl_content_drop(&content);
	}
	return written;
}

/* The pages fit in the row that is being filled, or there is another. */
static bool spread_fits(const struct ftl *ftl)
{
	uint32_t staged = ftl_cache_staged(ftl, 0);

	return ftl->free_rows || (staged && staged + ftl->spread.pages <= ftl->config.row_pages);
}

/*
 * Pages that have been read go on to the cache as soon as it has room for them,
 * as a row of their own: one that others share would be read for parts of it.
 */
void ftl_janus_go_on(struct ftl *ftl)
{
	struct ftl_spread *spread = &ftl->spread;
	uint32_t i;

	if (!spread->cmd || spread->reads || ftl_log_wants_quiet(ftl) ||
	    ftl->cache.free_count < spread->pages)
		return;
	if (!spread_fits(ftl)) {
		ftl_cache_push_all(ftl);
		if (ftl_collect_goes_on(ftl))
			return;
	}
	if (ftl_cache_staged(ftl, 0) + spread->pages > ftl->config.row_pages)
		ftl_cache_push(ftl, 0);
	if (!ftl_provide(ftl)) {
		spread->cmd->status = FTL_LOG_FULL;
		spread->range = spread->cmd->ranges;
		spread->pages = 0;
	}
	for (i = 0; i < spread->pages; i++) {
		if (!spread_write(ftl, spread->lba[i], spread->physical[i]))
			spread->cmd->status = FTL_NO_SPACE;
	}
	spread_next(ftl);
}

/* Both ends of a move are to have one page until its commit, as for the collector. */
static void spread_start(struct ftl *ftl, struct ftl_cmd *cmd)
{
	if (ftl->log.moves) {
		cmd->status = FTL_LOG_FULL;
		ftl_command_respond(ftl, cmd);
		return;
	}
	if (ftl_dof_p_permille(ftl, cmd->range, cmd->ranges) < 500) {
		ftl_command_respond(ftl, cmd);
		return;
	}
	memset(&ftl->spread, 0, sizeof(ftl->spread));
	ftl->spread.cmd = cmd;
	spread_next(ftl);
}

void ftl_janus_start(struct ftl *ftl, struct ftl_cmd *cmd)
{
	if (cmd->op == FTL_REMAP || cmd->op == FTL_SPREAD || (cmd->op == FTL_ARM && cmd->ranges))
		cmd->status = check_ranges(ftl, cmd);
	if (cmd->status != FTL_OK) {
		ftl_command_respond(ftl, cmd);
		return;
	}
	switch (cmd->op) {
	case FTL_RESERVE:
	case FTL_SOON_INVALID:
	case FTL_PREFETCH:
		ftl_hints_start(ftl, cmd);
		return;
	case FTL_SPREAD:
		spread_start(ftl, cmd);
		return;
	case FTL_ARM:
		arm(ftl, cmd);
		ftl_command_respond(ftl, cmd);
		return;
	default:
		ftl_cache_flush(ftl, cmd);
	}
}
