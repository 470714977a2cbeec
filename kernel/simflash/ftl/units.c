// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large units of writing: what cheap cards and sticks do to random writes.
 *
 * Their map is of units of several MiB (the allocation units of flashbench), of which
 * a few are open. A write elsewhere opens another one, and the longest unused is
 * merged: what was not written to it is copied, unless it was written in order from
 * its beginning to its end. That takes the controller `merge_ns`, and nothing else
 * happens meanwhile. Only the time is modelled here; data are kept page by page.
 */
#include "internal.h"

static uint32_t unit_pages(const struct ftl *ftl)
{
	return ftl->config.unit_pages;
}

/* Where the unit is among the open ones, or their number. */
static uint32_t find(const struct ftl_units *units, uint32_t unit)
{
	uint32_t i;

	for (i = 0; i < units->count && units->open[i].unit != unit; i++)
		;
	return i;
}

/* Moves what is at @place to the front: the last is the longest unused. */
static void use(struct ftl_units *units, uint32_t place)
{
	struct ftl_unit used = units->open[place];

	memmove(units->open + 1, units->open, place * sizeof(used));
	units->open[0] = used;
}

/* Time until the unit is open, as the first. */
static uint64_t open_unit(struct ftl *ftl, uint32_t unit)
{
	struct ftl_units *units = &ftl->units;
	uint32_t place = find(units, unit);
	uint64_t merge_ns = 0;

	if (place < units->count) {
		use(units, place);
		return 0;
	}
	if (units->count == ftl->config.open_units) {
		const struct ftl_unit *oldest = &units->open[--place];

		if (!oldest->in_order || oldest->next < unit_pages(ftl)) {
			merge_ns = ftl->config.merge_ns;
			ftl->stats.unit_merges++;
		}
	} else {
		units->count++;
	}
	units->open[place] = (struct ftl_unit){ .unit = unit, .in_order = true };
	use(units, place);
	return merge_ns;
}

uint64_t ftl_units_write_ns(struct ftl *ftl, const struct ftl_cmd *cmd)
{
	uint32_t lba = cmd->lba, end = cmd->lba + cmd->pages;
	uint64_t merge_ns = 0;

	while (ftl->config.unit_pages && lba < end) {
		struct ftl_unit *open = &ftl->units.open[0];
		uint32_t first = lba % unit_pages(ftl);
		uint32_t pages = unit_pages(ftl) - first;

		if (pages > end - lba)
			pages = end - lba;
		merge_ns += open_unit(ftl, lba / unit_pages(ftl));
		open->in_order = open->in_order && open->next == first;
		open->next = first + pages;
		lba += pages;
	}
	return merge_ns;
}
