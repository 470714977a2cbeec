// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the host announces: how much it will write, and which pages are about to be
 * overwritten or dropped. It is advice, kept in RAM: a host that is wrong loses time
 * and no data.
 *
 *	FTL_RESERVE	a die that has nothing else to do collects until it has its share
 *			of the rows, and no more. Rows that the host is given count as used.
 *	FTL_SOON_INVALID	a block with such pages is emptied only when somebody waits for
 *			space: the pages would be moved in vain.
 *	FTL_PREFETCH	the pages will be read, or have left the host's page cache though they
 *			are in use: what has room is read into RAM (readcache.c).
 *
 * The first two are for a time. After it the device keeps what it keeps by itself.
 */
#include "internal.h"

bool ftl_prepare_hints(struct ftl *ftl)
{
	struct ftl_hints *hints = &ftl->hints;

	if (!hints->marked)
		hints->marked = ftl_alloc_array((ftl->lbas + 31) / 32, sizeof(*hints->marked));
	if (!hints->in_block)
		hints->in_block = ftl_alloc_array(ftl->blocks, sizeof(*hints->in_block));
	return hints->marked && hints->in_block;
}

void ftl_hints_destroy(struct ftl *ftl)
{
	ftl_free_array(ftl->hints.marked);
	ftl_free_array(ftl->hints.in_block);
}

static void forget_marks(struct ftl *ftl)
{
	struct ftl_hints *hints = &ftl->hints;

	if (!hints->marks)
		return;
	memset(hints->marked, 0, (ftl->lbas + 31) / 32 * sizeof(*hints->marked));
	memset(hints->in_block, 0, ftl->blocks * sizeof(*hints->in_block));
	hints->marks = 0;
}

void ftl_hints_power_lost(struct ftl *ftl)
{
	forget_marks(ftl);
	ftl->hints.rows = 0;
	ftl->hints.reserved_until_ns = 0;
}

bool ftl_hints_is_marked(const struct ftl *ftl, uint32_t lba)
{
	return ftl->hints.marks && (ftl->hints.marked[lba / 32] >> lba % 32 & 1);
}

uint32_t ftl_hints_marks_in(const struct ftl *ftl, uint32_t block)
{
	return ftl->hints.marks ? ftl->hints.in_block[block] : 0;
}

bool ftl_hints_avoid(const struct ftl *ftl)
{
	return ftl->hints.marks && ftl->now_ns < ftl->hints.marked_until_ns;
}

bool ftl_hints_reserve(const struct ftl *ftl, uint32_t *rows_of_die)
{
	if (ftl->now_ns >= ftl->hints.reserved_until_ns)
		return false;
	*rows_of_die = (ftl->hints.rows + ftl->dies - 1) / ftl->dies;
	return true;
}

/* A mark is of the data that the LBA has: it moves with it, and goes with it. */
void ftl_hints_mapped(struct ftl *ftl, uint32_t lba, uint32_t before, uint32_t after)
{
	struct ftl_hints *hints = &ftl->hints;

	if (!before || !ftl_hints_is_marked(ftl, lba))
		return;
	hints->in_block[(before - 1) / ftl->config.block_pages]--;
	if (after) {
		hints->in_block[(after - 1) / ftl->config.block_pages]++;
		return;
	}
	hints->marked[lba / 32] &= ~(1u << lba % 32);
	hints->marks--;
}

static void mark(struct ftl *ftl, uint32_t lba)
{
	struct ftl_hints *hints = &ftl->hints;
	uint32_t physical;

	if (!ftl_map_find(ftl, lba, &physical) || ftl_hints_is_marked(ftl, lba))
		return;
	hints->marked[lba / 32] |= 1u << lba % 32;
	hints->in_block[physical / ftl->config.block_pages]++;
	hints->marks++;
	ftl->stats.announced_invalid_pages++;
}

static bool is_on_device(const struct ftl *ftl, const struct ftl_range *range)
{
	return range->src < ftl->config.capacity_pages &&
	       range->pages <= ftl->config.capacity_pages - range->src;
}

static bool are_on_device(const struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < cmd->ranges; i++) {
		if (!is_on_device(ftl, &cmd->range[i]))
			return false;
	}
	return true;
}

static enum ftl_status mark_ranges(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t i, page;

	if (!are_on_device(ftl, cmd))
		return FTL_BAD_RANGE;
	if (!cmd->ranges || ftl->now_ns >= ftl->hints.marked_until_ns)
		forget_marks(ftl);
	ftl->hints.marked_until_ns = ftl->now_ns + cmd->within_ns;
	for (i = 0; i < cmd->ranges; i++) {
		for (page = 0; page < cmd->range[i].pages; page++)
			mark(ftl, cmd->range[i].src + page);
	}
	return FTL_OK;
}

static enum ftl_status fetch_announced(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t i;

	if (!are_on_device(ftl, cmd))
		return FTL_BAD_RANGE;
	for (i = 0; i < cmd->ranges; i++)
		ftl_readcache_want(ftl, &cmd->range[i]);
	return FTL_OK;
}

static void reserve(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	struct ftl_hints *hints = &ftl->hints;
	uint32_t i;

	hints->rows = ((uint64_t)cmd->pages + ftl->config.row_pages - 1) / ftl->config.row_pages;
	hints->reserved_until_ns = ftl->now_ns + cmd->within_ns;
	ftl->stats.reserves++;
	for (i = 0; i < ftl->dies; i++)
		ftl_collect_wake(ftl, &ftl->die[i]);
}

void ftl_hints_start(struct ftl *ftl, struct ftl_cmd *cmd)
{
	if (cmd->op == FTL_RESERVE)
		reserve(ftl, cmd);
	else if (cmd->op == FTL_PREFETCH)
		cmd->status = fetch_announced(ftl, cmd);
	else if (!ftl->hints.marked || !ftl->hints.in_block)
		cmd->status = FTL_LOG_FULL;
	else
		cmd->status = mark_ranges(ftl, cmd);
	ftl_command_respond(ftl, cmd);
}
