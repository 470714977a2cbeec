// SPDX-License-Identifier: GPL-2.0-only
/* Streams of writes: what shares blocks, rows and dies. */
#include "suites.h"
#include "../ftl/internal.h"
#include "device.h"
#include "invariants.h"

#define PAGES 4096
#define SECOND_NS 1000000000ull

static char memory[128 * FTL_PAGE_BYTES];

static struct ftl_config stream_config(uint32_t streams)
{
	struct ftl_config config = device_config();

	config.capacity_pages = PAGES;
	config.spare_percent = 30;
	config.block_pages = 32;
	config.cache_pages = 64;
	config.streams = streams;
	return config;
}

static void write_to(struct device *device, uint32_t stream, uint32_t lba, uint32_t pages, bool fua)
{
	struct ftl_cmd *cmd;

	fill_uniform(memory, pages, lba + 1);
	cmd = device_command(device, FTL_WRITE, lba, pages, memory);
	cmd->stream = stream;
	cmd->fua = fua;
	device_run(device, cmd);
}

static struct ftl_stats stats_of(struct device *device)
{
	struct ftl_stats stats;

	ftl_read_stats(device->ftl, &stats);
	return stats;
}

static uint32_t block_of(struct device *device, uint32_t lba)
{
	return (device->ftl->map[lba] - 1) / device->config.block_pages;
}

static uint32_t die_of(struct device *device, uint32_t lba)
{
	return block_of(device, lba) / device->ftl->blocks_per_die;
}

/* Two writers in turn, each to a half, one row and two: pages of both in one block. */
static uint32_t shared_blocks(uint32_t streams)
{
	struct ftl_config config = stream_config(streams);
	uint32_t lba, other, shared = 0;
	struct device device;

	device_open(&device, &config);
	for (lba = 0; lba < 256; lba += 4) {
		write_to(&device, 2, lba, 4, false);
		write_to(&device, 3, PAGES / 2 + 2 * lba, 8, false);
	}
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	for (lba = 0; lba < 256; lba++) {
		for (other = 0; other < 512; other++)
			shared += block_of(&device, lba) ==
				  block_of(&device, PAGES / 2 + other);
	}
	device_close(&device);
	return shared;
}

static void streams_share_no_block(void)
{
	EXPECT(shared_blocks(0) > 0);
	EXPECT(shared_blocks(2) > 0);	/* it has neither of them */
	EXPECT(shared_blocks(3) == 0);
	EXPECT(shared_blocks(4) == 0);
}

/* Pages moved in a use that rewrites one page in sixteen. */
static uint64_t moved(uint32_t streams, bool own)
{
	struct ftl_config config = stream_config(streams);
	uint64_t state = 1;
	struct ftl_stats stats;
	struct device device;
	uint32_t lba, i;

	config.own_streams = own;
	device_open(&device, &config);
	for (lba = 0; lba < PAGES; lba += 4)
		write_to(&device, 0, lba, 4, false);
	ftl_reset_stats(device.ftl);
	for (i = 0; i < 8000; i++) {
		bool hot = i % 4;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		lba = (state >> 33) % (hot ? PAGES / 16 : PAGES) / 4 * 4;
		write_to(&device, hot && !own, lba, 4, false);
	}
	device_drain(&device);
	stats = stats_of(&device);
	device_close(&device);
	return stats.failed ? FTL_NEVER : stats.collect_page_programs;
}

static void what_dies_together_is_not_moved(void)
{
	uint64_t mixed = moved(0, false);

	printf("       %llu pages moved, %llu with streams, %llu with the device's own\n",
	       (unsigned long long)mixed, (unsigned long long)moved(2, false),
	       (unsigned long long)moved(2, true));

	EXPECT(moved(2, false) < mixed * 9 / 10);
	/* The device sees by itself which pages come again soon. */
	EXPECT(moved(2, true) < mixed);
}

/* The time to read a file that was appended row by row, each time with so many rows of others. */
static uint64_t read_appended(uint32_t streams, uint32_t others, uint32_t *in_order)
{
	struct ftl_config config = stream_config(streams);
	struct device device;
	uint64_t took_ns;
	uint32_t lba, i;

	device_open(&device, &config);
	for (lba = 0; lba < 128; lba += 4) {
		write_to(&device, 1, lba, 4, false);
		for (i = 0; i < others; i++)
			write_to(&device, 0, 1024 + lba * others + i * 4, 4, false);
	}
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	device_drain(&device);
	*in_order = 0;
	for (lba = 4; lba < 128; lba += 4)
		*in_order += die_of(&device, lba) == (die_of(&device, lba - 4) + 1) % 4;
	took_ns = device_do(&device, FTL_READ, 0, 128, memory);
	device_close(&device);
	return took_ns;
}

static void a_stream_keeps_its_order_over_dies_beside_others(void)
{
	uint32_t in_order;
	uint64_t alone_ns = read_appended(0, 0, &in_order);

	EXPECT(in_order == 31);
	/* All of it is on one die of four. */
	EXPECT(read_appended(0, 3, &in_order) > alone_ns * 12 / 10);
	EXPECT(in_order == 0);
	EXPECT(read_appended(2, 3, &in_order) == alone_ns);
	EXPECT(in_order == 31);
}

/* A small device that is nearly full, written by all streams in turn. */
static void without_flash_streams_share_blocks(void)
{
	struct ftl_config config = stream_config(8);
	uint64_t state = 7;
	struct device device;
	uint32_t i;

	config.capacity_pages = 1024;
	config.spare_percent = 1;
	device_open(&device, &config);
	for (i = 0; i < 1024; i++)
		write_to(&device, i % 8, i, 1, false);
	for (i = 0; i < 4000; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		write_to(&device, i % 8, (state >> 33) % 1024, 1, i % 64 == 0);
	}
	EXPECT(!stats_of(&device).failed);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

/*
 * Five streams have all of a small device's blocks, and the last row of each is being
 * filled: nothing is closed, so nothing can be collected.
 */
static void a_stream_without_a_row_joins_another_one(void)
{
	struct ftl_config config = stream_config(8);
	struct device device;
	uint32_t stream, lba;
	uint64_t word;

	config.capacity_pages = 32;
	config.spare_percent = 0;
	config.channels = 1;
	config.block_pages = 24;
	device_open(&device, &config);
	for (stream = 0; stream < 5; stream++) {
		for (lba = 0; lba < 20; lba += 4)
			write_to(&device, stream, lba, 4, false);
		device_drain(&device);
	}
	for (stream = 0; stream < 5; stream++)
		write_to(&device, stream, 20 + stream, 1, false);
	EXPECT(device.ftl->free_rows == 0);
	write_to(&device, 5, 30, 1, false);
	EXPECT(!stats_of(&device).failed);
	device_read(&device, 30, &word);
	EXPECT(word == 31);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

/* One page in each stream, and a flush: as many rows as they fill. */
static void leftovers_of_streams_share_a_padded_row(void)
{
	struct ftl_config config = stream_config(6);
	struct device device;
	uint32_t stream;

	device_open(&device, &config);
	for (stream = 0; stream < 6; stream++)
		write_to(&device, stream, stream * 8, 1, false);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	EXPECT(stats_of(&device).row_programs == 2);
	EXPECT(stats_of(&device).padded_pages == 2);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void a_fua_write_sends_its_own_rows_only(void)
{
	struct ftl_config config = stream_config(4);
	struct device device;

	device_open(&device, &config);
	write_to(&device, 1, 0, 1, false);
	write_to(&device, 2, 8, 1, false);
	write_to(&device, 3, 16, 2, true);
	device_drain(&device);
	EXPECT(stats_of(&device).row_programs == 1);
	EXPECT(stats_of(&device).page_programs == 2);
	device_close(&device);
}

/* The newer version of a staged page takes its place, whatever its stream. */
static void a_page_is_overwritten_in_the_cache_by_another_stream(void)
{
	struct ftl_config config = stream_config(4);
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	write_to(&device, 1, 5, 1, false);
	write_to(&device, 2, 5, 1, false);
	EXPECT(stats_of(&device).cache_overwrites == 1);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	EXPECT(stats_of(&device).row_programs == 1);
	device_read(&device, 5, &word);
	EXPECT(word == 6);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void announce(struct device *device, enum ftl_op op, uint32_t lba, uint32_t pages)
{
	struct ftl_range range = { .src = lba, .pages = pages };
	struct ftl_cmd *cmd = device_control(device, op, &range, 1);

	cmd->within_ns = FTL_NEVER / 2;
	device_run(device, cmd);
}

/* A row on each die, of so many. */
static void overwrite_rows(struct device *device, uint32_t from, uint32_t to, uint32_t every)
{
	for (; from < to; from += 16 * every)
		write_to(device, 0, from, 16, false);
}

/*
 * Marked pages that are moved when flash is short. Blocks of the first two quarters are half valid. They
 * changed in turn, the first quarter's earlier; its pages are about to be overwritten.
 */
static uint64_t moved_when_short(enum ftl_victim victim)
{
	struct ftl_config config = stream_config(0);
	uint32_t before[PAGES / 4], lba;
	struct device device;
	uint64_t moved = 0;

	config.victim = victim;
	config.spare_percent = 22;
	device_open(&device, &config);
	ftl_prepare_hints(device.ftl);
	announce(&device, FTL_RESERVE, 0, 0);
	overwrite_rows(&device, 0, PAGES, 1);
	for (lba = 0; lba < PAGES / 4; lba += 32) {
		overwrite_rows(&device, lba, lba + 16, 1);
		overwrite_rows(&device, PAGES / 4 + lba, PAGES / 4 + lba + 16, 1);
	}
	announce(&device, FTL_SOON_INVALID, 0, PAGES / 4);
	memcpy(before, device.ftl->map, sizeof(before));
	overwrite_rows(&device, PAGES / 2, PAGES, 4);
	device_drain(&device);
	for (lba = 0; lba < PAGES / 4; lba++)
		moved += before[lba] != device.ftl->map[lba];
	device_close(&device);
	return moved;
}

static void a_block_of_pages_that_die_soon_is_left(void)
{
	uint64_t cold = moved_when_short(FTL_COST_BENEFIT), heat = moved_when_short(FTL_HEAT);

	printf("       %llu pages moved in vain by cost and benefit, %llu with heat\n",
	       (unsigned long long)cold, (unsigned long long)heat);
	EXPECT(heat < cold / 2);
}

static void what_cannot_be_is_refused(void)
{
	struct ftl_config config = stream_config(9);

	EXPECT(ftl_config_error(&config));
	config = stream_config(8);
	EXPECT(!ftl_config_error(&config));
	config.cache_pages = 9 * config.row_pages - 1;
	EXPECT(ftl_config_error(&config));
	config = stream_config(1);
	config.own_streams = 1;
	EXPECT(ftl_config_error(&config));
	config = stream_config(0);
	config.read_cache_announced = 1;
	EXPECT(ftl_config_error(&config));
}

const struct test stream_tests[] = {
	TEST(streams_share_no_block),
	TEST(what_dies_together_is_not_moved),
	TEST(a_stream_keeps_its_order_over_dies_beside_others),
	TEST(without_flash_streams_share_blocks),
	TEST(a_stream_without_a_row_joins_another_one),
	TEST(leftovers_of_streams_share_a_padded_row),
	TEST(a_fua_write_sends_its_own_rows_only),
	TEST(a_page_is_overwritten_in_the_cache_by_another_stream),
	TEST(a_block_of_pages_that_die_soon_is_left),
	TEST(what_cannot_be_is_refused),
	{ NULL, NULL },
};
