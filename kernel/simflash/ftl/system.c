// SPDX-License-Identifier: GPL-2.0-only
/*
 * The system area: flash of its own, for the defrag log and the checkpoints.
 *
 * Both are one stream of numbered pages. It is written row by row, round robin
 * over the dies, in *stripes*: block n of the area on every die.
 *
 *	erased --first row--> being filled --last row--> full
 *	full --nothing in it is needed any more--> erasing --all dies--> erased
 *
 * A page counts as written when all pages before it are: what is in flash of
 * the stream is its beginning, wherever the power is cut. What of it is still
 * needed, log.c says.
 */
#include "internal.h"

#define NO_STRIPE FTL_NONE

bool ftl_system_create(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;
	uint32_t map_pages = ftl->lbas / FTL_MAP_ENTRIES + 1 +
			     ftl->blocks / FTL_MAP_ENTRIES + 1;
	uint64_t pages = 2ull * (map_pages + ftl->config.log_pages) + 8 * ftl->config.row_pages;
	uint32_t stripe_pages, i;

	system->stripe_rows = ftl->dies * ftl->rows_per_block;
	stripe_pages = system->stripe_rows * ftl->config.row_pages;
	system->stripes = pages / stripe_pages + 4;
	system->filling = NO_STRIPE;
	system->erasing = NO_STRIPE;
	system->next_number = 1;
	system->page = ftl_alloc_array((size_t)system->stripes * stripe_pages,
				       sizeof(*system->page));
	system->stripe = ftl_alloc_array(system->stripes, sizeof(*system->stripe));
	for (i = 0; system->stripe && i < system->stripes; i++)
		system->stripe[i].erased = true;
	return system->page && system->stripe;
}

static void free_pending(struct ftl_system *system)
{
	struct ftl_system_page *page;

	while ((page = system->pending_head)) {
		system->pending_head = page->next;
		ftl_free_page(page);
	}
}

static void drop(struct ftl_system *system, uint64_t index)
{
	if (system->page[index] && system->page[index] != FTL_TORN_PAGE)
		ftl_free_page(system->page[index]);
	system->page[index] = NULL;
}

void ftl_system_destroy(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;
	uint64_t pages = (uint64_t)system->stripes * system->stripe_rows * ftl->config.row_pages;
	uint32_t die, i;

	free_pending(system);
	for (die = 0; die < ftl->dies; die++) {
		for (i = 0; system->write[die].busy && i < system->write[die].pages; i++)
			ftl_free_page(system->write[die].page[i]);
	}
	for (; system->page && pages--;)
		drop(system, pages);
	ftl_free_array(system->page);
	ftl_free_array(system->stripe);
}

uint64_t ftl_system_pages(const struct ftl *ftl)
{
	return (uint64_t)ftl->system.stripes * ftl->system.stripe_rows * ftl->config.row_pages;
}

/* The stripe's row, in order of writing, is on this die. */
static uint64_t index_of_row(const struct ftl *ftl, uint32_t stripe, uint32_t row)
{
	return ((uint64_t)stripe * ftl->system.stripe_rows + row) * ftl->config.row_pages;
}

uint64_t ftl_system_append(struct ftl *ftl, struct ftl_system_page *page)
{
	struct ftl_system *system = &ftl->system;

	page->number = system->next_number++;
	page->follows = system->last_number;
	system->last_number = page->number;
	page->next = NULL;
	if (system->pending_head)
		system->pending_tail->next = page;
	else
		system->pending_head = page;
	system->pending_tail = page;
	return page->number;
}

uint64_t ftl_system_written(const struct ftl *ftl)
{
	const struct ftl_system *system = &ftl->system;
	uint64_t first = system->next_number;
	uint32_t die;

	if (system->pending_head)
		first = system->pending_head->number;
	for (die = 0; die < ftl->dies; die++) {
		if (system->write[die].busy && system->write[die].page[0]->number < first)
			first = system->write[die].page[0]->number;
	}
	return first - 1;
}

uint32_t ftl_system_free_stripes(const struct ftl *ftl)
{
	uint32_t free = 0;
	uint32_t i;

	for (i = 0; i < ftl->system.stripes; i++)
		free += ftl->system.stripe[i].erased || !ftl->system.stripe[i].needed;
	return free;
}

static void erase_start(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;
	uint32_t i;

	for (i = 0; i < system->stripes && system->erasing == NO_STRIPE; i++) {
		if (!system->stripe[i].erased && !system->stripe[i].needed &&
		    i != system->filling && !system->stripe[i].writing)
			system->erasing = i;
	}
	if (system->erasing == NO_STRIPE)
		return;
	system->erases_left = ftl->dies;
	for (i = 0; i < ftl->dies; i++) {
		struct ftl_operation *erase = &system->erase[i];

		erase->kind = FTL_SYSTEM_ERASE;
		erase->physical = i;
		ftl_die_queue(ftl, &ftl->die[i], erase, FTL_CLASS_BACKGROUND);
	}
}

static bool next_stripe(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;
	uint32_t i;

	for (i = 0; i < system->stripes && !system->stripe[i].erased; i++)
		;
	if (i == system->stripes) {
		if (system->erasing == NO_STRIPE)
			erase_start(ftl);
		return false;
	}
	system->stripe[i].erased = false;
	system->filling = i;
	system->row = 0;
	return true;
}

static void write_row(struct ftl *ftl, uint32_t die)
{
	struct ftl_system *system = &ftl->system;
	struct ftl_system_write *write = &system->write[die];

	write->pages = 0;
	while (write->pages < ftl->config.row_pages && system->pending_head) {
		write->page[write->pages++] = system->pending_head;
		system->pending_head = system->pending_head->next;
	}
	write->stripe = system->filling;
	write->index = index_of_row(ftl, system->filling, system->row++);
	write->busy = true;
	system->stripe[write->stripe].needed += write->pages;
	system->stripe[write->stripe].writing++;
	write->operation.kind = FTL_SYSTEM_PROGRAM;
	write->operation.physical = die;
	write->operation.pages = write->pages;
	ftl->stats.padded_pages += ftl->config.row_pages - write->pages;
	ftl_die_queue(ftl, &ftl->die[die], &write->operation, FTL_CLASS_PROGRAM);
}

/* Programs what is pending, as far as dies are free for it. */
void ftl_system_run(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;

	while (system->pending_head) {
		uint32_t die;

		if (system->filling != NO_STRIPE && system->row >= system->stripe_rows)
			system->filling = NO_STRIPE;
		if (system->filling == NO_STRIPE && !next_stripe(ftl))
			return;
		die = system->row % ftl->dies;
		if (system->write[die].busy)
			return;
		write_row(ftl, die);
	}
}

void ftl_system_programmed(struct ftl *ftl, uint32_t die)
{
	struct ftl_system_write *write = &ftl->system.write[die];
	uint32_t i;

	for (i = 0; i < write->pages; i++) {
		write->page[i]->next = NULL;
		ftl->system.page[write->index + i] = write->page[i];
	}
	ftl->system.stripe[write->stripe].writing--;
	write->busy = false;
	ftl_system_run(ftl);
	ftl_log_written(ftl);
}

static void erase_die(struct ftl *ftl, uint32_t stripe, uint32_t die)
{
	uint32_t row, i;

	for (row = die; row < ftl->system.stripe_rows; row += ftl->dies) {
		for (i = 0; i < ftl->config.row_pages; i++)
			drop(&ftl->system, index_of_row(ftl, stripe, row) + i);
	}
}

void ftl_system_erased(struct ftl *ftl, uint32_t die)
{
	struct ftl_system *system = &ftl->system;

	erase_die(ftl, system->erasing, die);
	ftl->stats.log_erases++;
	if (--system->erases_left)
		return;
	system->stripe[system->erasing].erased = true;
	system->erasing = NO_STRIPE;
	ftl_system_run(ftl);
	if (ftl_system_free_stripes(ftl) < system->stripes / 2)
		erase_start(ftl);
}

/* Counts again what of each stripe `needed` says is needed. */
void ftl_system_sort_out(struct ftl *ftl,
			 bool (*needed)(const struct ftl *ftl, const struct ftl_system_page *page))
{
	struct ftl_system *system = &ftl->system;
	uint32_t pages = system->stripe_rows * ftl->config.row_pages;
	uint32_t stripe, i;

	for (stripe = 0; stripe < system->stripes; stripe++) {
		system->stripe[stripe].needed = 0;
		for (i = 0; i < pages; i++) {
			const struct ftl_system_page *page =
				system->page[(uint64_t)stripe * pages + i];

			if (page && page != FTL_TORN_PAGE && needed(ftl, page))
				system->stripe[stripe].needed++;
		}
	}
	for (i = 0; i < ftl->dies; i++) {
		if (system->write[i].busy)
			system->stripe[system->write[i].stripe].needed += system->write[i].pages;
	}
	if (system->erasing == NO_STRIPE)
		erase_start(ftl);
}

/* The power is cut: a row under program or a block under erase is half done. */
void ftl_system_torn(struct ftl *ftl, uint32_t die, enum ftl_kind kind)
{
	struct ftl_system *system = &ftl->system;
	struct ftl_system_write *write = &system->write[die];
	uint32_t row, i;

	if (kind == FTL_SYSTEM_PROGRAM) {
		for (i = 0; i < write->pages; i++) {
			switch (ftl_power_fate(ftl)) {
			case FTL_FATE_DONE:
				system->page[write->index + i] = write->page[i];
				write->page[i] = NULL;
				break;
			case FTL_FATE_TORN:
				system->page[write->index + i] = FTL_TORN_PAGE;
				break;
			default:
				break;
			}
		}
		return;
	}
	for (row = die; row < system->stripe_rows; row += ftl->dies) {
		uint64_t index = index_of_row(ftl, system->erasing, row);

		for (i = 0; i < ftl->config.row_pages; i++) {
			enum ftl_fate fate = ftl_power_fate(ftl);

			if (fate == FTL_FATE_NOTHING)
				continue;
			drop(system, index + i);
			if (fate == FTL_FATE_TORN)
				system->page[index + i] = FTL_TORN_PAGE;
		}
	}
}

/* Forgets what was in RAM; what is in flash stays. */
void ftl_system_reset(struct ftl *ftl)
{
	struct ftl_system *system = &ftl->system;
	uint32_t die, i;

	free_pending(system);
	for (die = 0; die < ftl->dies; die++) {
		struct ftl_system_write *write = &system->write[die];

		for (i = 0; write->busy && i < write->pages; i++) {
			if (write->page[i])
				ftl_free_page(write->page[i]);
		}
		write->busy = false;
	}
	system->filling = NO_STRIPE;
	system->erasing = NO_STRIPE;
	for (i = 0; i < system->stripes; i++)
		system->stripe[i].writing = 0;
}

static uint32_t rows_in_use(const struct ftl *ftl, uint32_t stripe)
{
	uint32_t row = ftl->system.stripe_rows;
	uint32_t i;

	while (row--) {
		for (i = 0; i < ftl->config.row_pages; i++) {
			if (ftl->system.page[index_of_row(ftl, stripe, row) + i])
				return row + 1;
		}
	}
	return 0;
}

/*
 * After a mount the stream goes on behind its last row. One row of each die is
 * left out: though it looks erased, it may have been under program when the
 * power was cut.
 */
void ftl_system_resume(struct ftl *ftl, uint64_t highest_number, uint64_t last_number,
		       uint64_t last_index)
{
	struct ftl_system *system = &ftl->system;
	uint32_t i;

	system->next_number = highest_number + 1;
	system->last_number = last_number;
	for (i = 0; i < system->stripes; i++)
		system->stripe[i].erased = !rows_in_use(ftl, i);
	if (!highest_number)
		return;
	system->filling = last_index / ((uint64_t)system->stripe_rows * ftl->config.row_pages);
	system->row = rows_in_use(ftl, system->filling) + ftl->dies;
}
