// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a device promises about power cuts, one command after another:
 *
 *  - without a cut, an LBA has what was written or remapped to it last;
 *  - after a cut it has that, or something it had since it was last certain,
 *    never anything older and never another LBA's data;
 *  - a FLUSH makes certain what was written and remapped before it, a FUA
 *    write what it wrote. A discard is certain only when the log was flushed:
 *    until then, what was discarded is gone or as it was;
 *  - of a move that is cut short, at least one of both LBAs has the data;
 *  - a mount finds the map as it was: the core's invariants hold.
 */
#include <stdlib.h>

#include "../ftl/internal.h"
#include "bytes.h"
#include "device.h"
#include "invariants.h"
#include "mirror.h"

#define MAX_LBAS 256
#define MAX_PAGES 16
#define MAX_MAYBE 24

/* What an LBA has, and what a cut may leave it with; 0 is nothing. */
struct cell {
	uint64_t maybe[MAX_MAYBE];	/* the last is what it has */
	uint32_t count;
};

struct move {
	uint32_t src, dst;
	uint64_t data;
	bool certain;		/* before the move; what was not may be lost before it */
};

struct mirror {
	struct device device;
	struct cell cell[MAX_LBAS];
	uint32_t lbas;
	struct move move[MAX_PAGES];	/* not committed */
	uint32_t moves;
	uint64_t next_data;
	struct bytes bytes;
	const char *broken;
	uint64_t cuts, spread_pages;
};

static void read_config(struct mirror *mirror, struct ftl_config *config)
{
	uint8_t times = bytes_take(&mirror->bytes);

	*config = (struct ftl_config){
		.queue_depth = 2,
		.command_pages = MAX_PAGES,
		.power_loss = true,
	};
	config->capacity_pages = 32 + bytes_below(&mirror->bytes, MAX_LBAS - 32 + 1);
	config->spare_percent = bytes_below(&mirror->bytes, 60);
	bytes_config(&mirror->bytes, config);
	config->log_pages = config->row_pages * (4 + bytes_below(&mirror->bytes, 8));
	if (!bytes_below(&mirror->bytes, 4))
		config->checkpoint_pages = 50 + bytes_below(&mirror->bytes, 500);
	config->read_ns = times & 1 ? 100 : 0;
	config->program_ns = times & 2 ? 1000 : 0;
	config->erase_ns = times & 4 ? 3000 : 0;
	config->link_page_ns = times & 8 ? 20 : 0;
	mirror->lbas = config->capacity_pages;
}

static uint64_t data_of(const struct mirror *mirror, uint32_t lba)
{
	return mirror->cell[lba].maybe[mirror->cell[lba].count - 1];
}

static void set(struct mirror *mirror, uint32_t lba, uint64_t data)
{
	struct cell *cell = &mirror->cell[lba];

	cell->maybe[cell->count++] = data;
}

static void certain(struct mirror *mirror, uint32_t lba, uint64_t data)
{
	mirror->cell[lba].maybe[0] = data;
	mirror->cell[lba].count = 1;
}

static void everything_is_certain(struct mirror *mirror, bool discards)
{
	uint32_t lba;

	for (lba = 0; lba < mirror->lbas; lba++) {
		if (discards || data_of(mirror, lba))
			certain(mirror, lba, data_of(mirror, lba));
	}
}

/* Pages are told apart by their first word; every third is not uniform. */
static void make_page(char *memory, uint64_t data)
{
	if (!data)
		memset(memory, 0, FTL_PAGE_BYTES);
	else if (data % 3)
		fill_uniform(memory, 1, data);
	else
		fill_mixed(memory, 1, data);
}

static bool holds(const char *memory, uint64_t data)
{
	static char page[FTL_PAGE_BYTES];

	make_page(page, data);
	return !memcmp(memory, page, FTL_PAGE_BYTES);
}

static enum ftl_status run(struct mirror *mirror, struct ftl_cmd *cmd)
{
	enum ftl_status status;
	struct ftl_cmd *done;

	device_submit(&mirror->device, cmd);
	done = device_next(&mirror->device);
	if (done != cmd) {
		mirror->broken = "a command never ended";
		return FTL_POWER_LOST;
	}
	status = cmd->status;
	device_release(&mirror->device, cmd);
	return status;
}

static enum ftl_status run_janus(struct mirror *mirror, enum ftl_op op,
				 const struct ftl_range *range, uint32_t ranges)
{
	return run(mirror, device_control(&mirror->device, op, range, ranges));
}

/* After a mount: what each LBA has must be one of what it may have. */
static void take_stock(struct mirror *mirror, uint32_t lba)
{
	static char memory[FTL_PAGE_BYTES];
	const struct cell *cell = &mirror->cell[lba];
	uint32_t i = cell->count;

	if (run(mirror, device_command(&mirror->device, FTL_READ, lba, 1, memory)) != FTL_OK) {
		mirror->broken = "a read failed after a power cut";
		return;
	}
	while (i && !holds(memory, cell->maybe[i - 1]))
		i--;
	if (!i)
		mirror->broken = "after a power cut an LBA has what it cannot have";
	else
		certain(mirror, lba, cell->maybe[i - 1]);
}

/* Data of a move are in one place at least; what is left of it is decided now. */
static void settle_moves(struct mirror *mirror)
{
	uint32_t i;

	for (i = 0; i < mirror->moves; i++) {
		const struct move *move = &mirror->move[i];

		if (move->certain && data_of(mirror, move->src) != move->data &&
		    data_of(mirror, move->dst) != move->data)
			mirror->broken = "data that were being moved are lost";
	}
	mirror->moves = 0;
}

/*
 * The loser has nothing, unless a copy of the page was made that only one of
 * both was to have when the power was cut: then each has its own.
 */
static void decide_moves(struct mirror *mirror)
{
	bool open = !ftl_log_committed(mirror->device.ftl);
	bool commit = bytes_take(&mirror->bytes) & 1;
	uint32_t i;

	for (i = 0; open && i < mirror->moves; i++) {
		const struct move *move = &mirror->move[i];

		if (data_of(mirror, move->src) == move->data &&
		    data_of(mirror, move->dst) == move->data && move->data)
			set(mirror, commit ? move->src : move->dst, 0);
	}
	if (run_janus(mirror, commit ? FTL_LOG_COMMIT : FTL_LOG_DISCARD, NULL, 0) != FTL_OK)
		mirror->broken = "moves could not be ended after a power cut";
}

static void check_lba(struct mirror *mirror, uint32_t lba);

static void recover(struct mirror *mirror)
{
	struct ftl *ftl = mirror->device.ftl;
	uint32_t lba;

	mirror->cuts++;
	while (device_next(&mirror->device))
		;
	if (!ftl_power_on(ftl, mirror->device.now_ns)) {
		mirror->broken = "a mount was short of memory";
		return;
	}
	mirror->broken = broken_invariant(ftl);
	if (!mirror->broken && bytes_take(&mirror->bytes) % 4 == 0) {
		/* A second cut before anything was done changes nothing. */
		ftl_cut_power(ftl, 0, bytes_take(&mirror->bytes));
		ftl_power_on(ftl, mirror->device.now_ns);
	}
	for (lba = 0; lba < mirror->lbas && !mirror->broken; lba++)
		take_stock(mirror, lba);
	if (!mirror->broken)
		decide_moves(mirror);
	for (lba = 0; lba < mirror->lbas && !mirror->broken; lba++)
		take_stock(mirror, lba);
	if (!mirror->broken)
		settle_moves(mirror);
}

/* True if the command ended as it should; else the device has been mounted again. */
static bool ended(struct mirror *mirror, enum ftl_status status)
{
	if (status == FTL_OK)
		return true;
	if (mirror->broken)
		return false;
	if (status == FTL_POWER_LOST)
		recover(mirror);
	else
		mirror->broken = "a command failed";
	return false;
}

static void check_lba(struct mirror *mirror, uint32_t lba)
{
	static char memory[FTL_PAGE_BYTES];

	if (ended(mirror, run(mirror, device_command(&mirror->device, FTL_READ, lba, 1, memory))) &&
	    !holds(memory, data_of(mirror, lba)))
		mirror->broken = "a read returned other data than were written";
}

/* A cell that could be too many things is made certain. */
static void make_room(struct mirror *mirror, uint32_t lba, uint32_t pages)
{
	for (; pages--; lba++) {
		if (mirror->cell[lba].count < MAX_MAYBE - 2)
			continue;
		if (ended(mirror, run_janus(mirror, FTL_LOG_FLUSH, NULL, 0)))
			everything_is_certain(mirror, true);
		return;
	}
}

static void write_pages(struct mirror *mirror, uint32_t lba, uint32_t pages, bool fua)
{
	static char memory[MAX_PAGES * FTL_PAGE_BYTES];
	struct ftl_cmd *cmd;
	uint32_t i;

	make_room(mirror, lba, pages);
	if (mirror->broken)
		return;
	for (i = 0; i < pages; i++) {
		set(mirror, lba + i, ++mirror->next_data);
		make_page(memory + i * FTL_PAGE_BYTES, mirror->next_data);
	}
	cmd = device_command(&mirror->device, FTL_WRITE, lba, pages, memory);
	cmd->fua = fua;
	cmd->foreground = lba % 2;
	cmd->stream = bytes_below(&mirror->bytes, FTL_MAX_STREAMS + 1);
	if (!ended(mirror, run(mirror, cmd)))
		return;
	for (i = 0; fua && i < pages; i++)
		certain(mirror, lba + i, data_of(mirror, lba + i));
}

static void discard_pages(struct mirror *mirror, uint32_t lba, uint32_t pages)
{
	uint32_t i;

	make_room(mirror, lba, pages);
	if (mirror->broken)
		return;
	for (i = 0; i < pages; i++) {
		if (data_of(mirror, lba + i))
			set(mirror, lba + i, 0);
	}
	ended(mirror, run(mirror, device_command(&mirror->device, FTL_DISCARD, lba, pages, NULL)));
}

static void flush(struct mirror *mirror)
{
	if (ended(mirror, run(mirror, device_command(&mirror->device, FTL_FLUSH, 0, 0, NULL))))
		everything_is_certain(mirror, false);
}

static void end_moves(struct mirror *mirror, bool commit)
{
	uint32_t i;

	for (i = 0; i < mirror->moves; i++) {
		uint32_t loser = commit ? mirror->move[i].src : mirror->move[i].dst;

		if (mirror->move[i].data)
			set(mirror, loser, 0);
	}
	if (!ended(mirror, run_janus(mirror, commit ? FTL_LOG_COMMIT : FTL_LOG_DISCARD, NULL, 0)))
		return;
	mirror->moves = 0;
	everything_is_certain(mirror, true);
}

/* defrag(src, dst), then sometimes other things, then commit or discard. */
static void move_pages(struct mirror *mirror, uint32_t src, uint32_t dst, uint32_t pages)
{
	struct ftl_range range = { .src = src, .dst = dst, .pages = pages };
	enum ftl_status status;
	uint32_t i;

	if (src < dst + pages && dst < src + pages)
		return;
	make_room(mirror, src, pages);
	if (!mirror->broken)
		make_room(mirror, dst, pages);
	if (mirror->broken)
		return;
	for (i = 0; i < pages; i++) {
		mirror->move[i] = (struct move){
			src + i, dst + i, data_of(mirror, src + i),
			mirror->cell[src + i].count == 1,
		};
		set(mirror, dst + i, data_of(mirror, src + i));
	}
	mirror->moves = pages;
	status = run_janus(mirror, FTL_REMAP, &range, 1);
	if (status == FTL_LOG_FULL || status == FTL_BUSY) {
		for (i = 0; i < pages; i++)
			mirror->cell[dst + i].count--;
		mirror->moves = 0;
		return;
	}
	if (!ended(mirror, status))
		return;
	for (i = 0; i < pages; i++) {
		if (!mirror->move[i].data)
			continue;
		mirror->move[i].certain = true;
		certain(mirror, src + i, mirror->move[i].data);
	}
	if (bytes_take(&mirror->bytes) & 1)
		flush(mirror);
	if (!mirror->moves || mirror->broken)
		return;
	end_moves(mirror, bytes_take(&mirror->bytes) & 1);
}

/* A copy by the host, which the device answers with a remap. */
static void copy_pages(struct mirror *mirror, uint32_t src, uint32_t dst, uint32_t pages)
{
	static char memory[MAX_PAGES * FTL_PAGE_BYTES];
	struct ftl_range range = { .src = src, .dst = dst, .pages = pages };
	uint32_t i;

	if (src < dst + pages && dst < src + pages)
		return;
	make_room(mirror, dst, pages);
	if (mirror->broken || !ended(mirror, run_janus(mirror, FTL_ARM, &range, 1)))
		return;
	for (i = 0; i < pages; i++) {
		make_page(memory + i * FTL_PAGE_BYTES, data_of(mirror, src + i));
		set(mirror, dst + i, data_of(mirror, src + i));
	}
	ended(mirror, run(mirror, device_command(&mirror->device, FTL_WRITE, dst, pages, memory)));
}

static void spread(struct mirror *mirror, uint32_t lba, uint32_t pages)
{
	struct ftl_range range = { .src = lba, .pages = pages };
	struct ftl_cmd *cmd = device_control(&mirror->device, FTL_SPREAD, &range, 1);

	ended(mirror, run(mirror, cmd));
	mirror->spread_pages += cmd->moved;
}

static void log_flush(struct mirror *mirror, enum ftl_op op)
{
	if (ended(mirror, run_janus(mirror, op, NULL, 0)))
		everything_is_certain(mirror, true);
}

/* The host announces what may not come: that must cost no data. */
static void announce(struct mirror *mirror, uint32_t lba, uint32_t pages)
{
	struct ftl_range range = { .src = lba, .pages = pages };
	static const enum ftl_op ops[] = { FTL_RESERVE, FTL_SOON_INVALID, FTL_PREFETCH };
	enum ftl_op op = ops[bytes_below(&mirror->bytes, 3)];
	struct ftl_cmd *cmd = device_control(&mirror->device, op, &range,
					     bytes_take(&mirror->bytes) % 4 != 0);

	cmd->pages = op == FTL_RESERVE ? bytes_below(&mirror->bytes, 64) : pages;
	cmd->within_ns = bytes_below(&mirror->bytes, 50000);
	ended(mirror, run(mirror, cmd));
}

/* Nobody asks for anything: the write buffer is emptied, until the power fails or he does. */
static void rest(struct mirror *mirror)
{
	struct ftl *ftl = mirror->device.ftl;

	mirror->device.now_ns += 400 + bytes_below(&mirror->bytes, 30000);
	ftl_run(ftl, mirror->device.now_ns);
	if (ftl_power_is_off(ftl))
		recover(mirror);
}

static void arm_cut(struct mirror *mirror)
{
	uint32_t operations = bytes_below(&mirror->bytes, 60);

	ftl_cut_power(mirror->device.ftl, operations, bytes_take(&mirror->bytes) << 8 | operations);
	if (!operations)
		recover(mirror);
}

static void step(struct mirror *mirror)
{
	uint8_t what = bytes_take(&mirror->bytes);
	uint32_t lba = bytes_below(&mirror->bytes, mirror->lbas);
	uint32_t pages = 1 + (what >> 4);

	if (pages > mirror->lbas - lba)
		pages = mirror->lbas - lba;
	switch (what & 15) {
	case 0: case 1: case 2: case 3:
		write_pages(mirror, lba, pages, false);
		return;
	case 4:
		write_pages(mirror, lba, pages, true);
		return;
	case 5:
		flush(mirror);
		return;
	case 6:
		discard_pages(mirror, lba, pages);
		return;
	case 7: case 8:
		move_pages(mirror, lba, bytes_below(&mirror->bytes, mirror->lbas - pages + 1), pages);
		return;
	case 9:
		copy_pages(mirror, lba, bytes_below(&mirror->bytes, mirror->lbas - pages + 1), pages);
		return;
	case 10:
		spread(mirror, lba, pages);
		return;
	case 11:
		log_flush(mirror, bytes_take(&mirror->bytes) % 8 ? FTL_LOG_FLUSH : FTL_CHECKPOINT);
		return;
	case 12:
		arm_cut(mirror);
		return;
	case 13:
		rest(mirror);
		return;
	case 14:
		announce(mirror, lba, pages);
		return;
	default:
		check_lba(mirror, lba);
	}
}

static void add_counts(const struct mirror *mirror, uint64_t steps, struct mirror_counts *counts)
{
	struct ftl_stats stats;

	ftl_read_stats(mirror->device.ftl, &stats);
	counts->operations += steps;
	counts->cuts += mirror->cuts;
	counts->spread_pages += mirror->spread_pages;
	counts->map_pages += stats.map_page_programs;
	counts->map_misses += stats.map_misses;
	counts->folded_pages += stats.folded_pages;
	counts->suspensions += stats.suspensions;
	counts->unit_merges += stats.unit_merges;
	counts->held_writes += stats.held_writes;
	counts->mixed_rows += stats.mixed_rows;
	counts->prefetched_pages += stats.prefetched_pages;
}

const char *mirror_play(const uint8_t *bytes, size_t count, struct mirror_counts *counts)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));
	struct ftl_config config;
	const char *broken;
	uint64_t steps = 0;
	uint32_t lba;

	mirror->bytes = (struct bytes){ bytes, count };
	read_config(mirror, &config);
	device_open(&mirror->device, &config);
	ftl_prepare_remap(mirror->device.ftl);
	ftl_prepare_hints(mirror->device.ftl);
	for (lba = 0; lba < mirror->lbas; lba++)
		certain(mirror, lba, 0);
	while (mirror->bytes.left && !mirror->broken) {
		step(mirror);
		if (!(++steps % 64) && !mirror->broken)
			mirror->broken = broken_invariant(mirror->device.ftl);
	}
	ftl_cut_power(mirror->device.ftl, FTL_NEVER, 1);
	for (lba = 0; lba < mirror->lbas && !mirror->broken; lba++)
		check_lba(mirror, lba);
	broken = mirror->broken;
	if (counts)
		add_counts(mirror, steps, counts);
	device_close(&mirror->device);
	free(mirror);
	return broken;
}
