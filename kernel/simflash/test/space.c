// SPDX-License-Identifier: GPL-2.0-only
/* Blocks: reused when invalid, erased before, collected when few are left. */
#include "suites.h"
#include "device.h"
#include "invariants.h"

static char memory[128 * FTL_PAGE_BYTES];

static void write_all(struct device *device, uint32_t lba, uint32_t pages, uint64_t first)
{
	uint32_t done, step;

	for (done = 0; done < pages; done += step) {
		step = pages - done < 128 ? pages - done : 128;
		fill_uniform(memory, step, first + done);
		device_do(device, FTL_WRITE, lba + done, step, memory);
	}
}

static void invalid_blocks_are_erased_and_written_again(void)
{
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;
	uint64_t word;
	int round;

	device_open(&device, &config);
	for (round = 1; round <= 5; round++)
		write_all(&device, 0, config.capacity_pages / 2, round * 10000);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.failed == 0);
	EXPECT(stats.erases > 0);
	device_read(&device, 7, &word);
	EXPECT(word == 50007);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void a_fresh_device_needs_no_erase(void)
{
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;

	device_open(&device, &config);
	write_all(&device, 0, config.capacity_pages, 1);
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.erases == 0);
	device_close(&device);
}

static uint64_t write_amplification_permille(struct device *device)
{
	struct ftl_stats stats;

	ftl_read_stats(device->ftl, &stats);
	return (stats.page_programs + stats.collect_page_programs) * 1000 /
	       stats.command_pages[FTL_WRITE];
}

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % limit;
}

/* Overwrites single pages of `area` at random, `writes` times; the model is `newest`. */
static void scatter(struct device *device, uint32_t area, uint32_t writes, uint64_t *newest)
{
	uint64_t state = 1;
	uint32_t i;

	for (i = 0; i < writes; i++) {
		uint32_t lba = random_below(&state, area);

		newest[lba] = 1000000 + i;
		device_write(device, lba, newest[lba]);
	}
}

static bool holds_newest(struct device *device, const uint64_t *newest, uint32_t pages)
{
	uint32_t lba;
	uint64_t word;

	for (lba = 0; lba < pages; lba++) {
		device_read(device, lba, &word);
		if (word != newest[lba])
			return false;
	}
	return true;
}

static void a_full_device_is_collected_and_loses_nothing(void)
{
	static uint64_t newest[4096];
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;
	uint32_t lba;

	config.spare_percent = 10;
	device_open(&device, &config);
	write_all(&device, 0, config.capacity_pages, 1);
	for (lba = 0; lba < config.capacity_pages; lba++)
		newest[lba] = lba + 1;
	scatter(&device, config.capacity_pages, 40000, newest);
	EXPECT(!broken_invariant(device.ftl));
	EXPECT(holds_newest(&device, newest, config.capacity_pages));
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.failed == 0);
	EXPECT(stats.collect_page_programs > 0);
	/* Uniform overwriting at 75 % use: what greedy collection costs in theory and here. */
	EXPECT(write_amplification_permille(&device) > 1000);
	EXPECT(write_amplification_permille(&device) < 2500);
	device_close(&device);
}

/* The device does all it has begun, and then nothing. */
static bool comes_to_rest(struct device *device)
{
	uint32_t events = 10000;

	while (events-- && ftl_next_ns(device->ftl) != FTL_NEVER) {
		device->now_ns = ftl_next_ns(device->ftl);
		ftl_run(device->ftl, device->now_ns);
	}
	return ftl_next_ns(device->ftl) == FTL_NEVER;
}

/* Some die gets more of the pages than others, and hardly a free block is left on it. */
static void blocks_without_invalid_pages_are_left_alone(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t state = 1;
	uint32_t i;

	config.capacity_pages = 33;
	config.spare_percent = 6;
	config.channels = 6;
	config.row_pages = 1;
	config.block_pages = 1;
	config.cache_pages = 6;
	device_open(&device, &config);
	for (i = 0; i < 1000 && comes_to_rest(&device); i++)
		device_write(&device, random_below(&state, config.capacity_pages), i);
	EXPECT(i == 1000);
	device_close(&device);
}

/* Pages programmed for each page written, in thousandths, at so much spare flash. */
static uint64_t amplification(uint32_t spare_percent, enum ftl_victim victim)
{
	static uint64_t newest[4096];
	struct ftl_config config = device_config();
	struct device device;
	uint64_t permille;

	config.spare_percent = spare_percent;
	config.victim = victim;
	config.block_pages = 16;
	device_open(&device, &config);
	write_all(&device, 0, config.capacity_pages, 1);
	scatter(&device, config.capacity_pages, 20000, newest);
	ftl_reset_stats(device.ftl);
	scatter(&device, config.capacity_pages, 20000, newest);
	permille = write_amplification_permille(&device);
	device_close(&device);
	return permille;
}

static void more_spare_flash_means_less_copying(void)
{
	uint64_t little = amplification(5, FTL_GREEDY);
	uint64_t much = amplification(40, FTL_GREEDY);

	EXPECT(little > 3000);
	EXPECT(much < 2000);
	EXPECT(amplification(5, FTL_COST_BENEFIT) > 3000);
	EXPECT(amplification(40, FTL_COST_BENEFIT) < 2000);
}

/* A tenth is written all the time; the rest once. */
static uint32_t wear_spread(uint32_t wear_gap)
{
	static uint64_t newest[4096];
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;
	uint32_t round;

	config.wear_gap = wear_gap;
	config.spare_percent = 10;
	config.erase_ns = config.program_ns = 0;
	device_open(&device, &config);
	write_all(&device, 0, config.capacity_pages, 1);
	for (round = 0; round < 40; round++)
		scatter(&device, config.capacity_pages / 10, 4000, newest);
	device_drain(&device);
	ftl_read_usage(device.ftl, &usage);
	device_close(&device);
	return usage.erases_max - usage.erases_min;
}

static void wear_is_levelled_where_that_is_asked_for(void)
{
	uint32_t even = wear_spread(8);

	EXPECT(even < 40);
	EXPECT(wear_spread(0) > 3 * even);
}

static void single_pages_flushed_one_by_one_do_not_fill_the_device(void)
{
	static uint64_t newest[4096];
	struct ftl_config config = device_config();
	struct device device;
	uint32_t lba;

	config.spare_percent = 0;
	device_open(&device, &config);
	for (lba = 0; lba < config.capacity_pages; lba++) {
		newest[lba] = lba + 7;
		device_write(&device, lba, newest[lba]);
		device_do(&device, FTL_FLUSH, 0, 0, NULL);
	}
	EXPECT(holds_newest(&device, newest, config.capacity_pages));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void overwritten_data_takes_no_memory(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;
	int round;

	device_open(&device, &config);
	for (round = 0; round < 10; round++) {
		fill_mixed(memory, 100, 1000 * round);
		device_do(&device, FTL_WRITE, 7, 100, memory);
	}
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.buffered_pages == 100);
	device_close(&device);
}

static void a_whole_discard_gives_everything_back(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;
	uint32_t lba;
	uint64_t free_rows;

	device_open(&device, &config);
	for (lba = 0; lba < 1024; lba += 128) {
		fill_mixed(memory, 128, lba);
		device_do(&device, FTL_WRITE, lba, 128, memory);
	}
	device_drain(&device);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.buffered_pages == 1024);
	free_rows = usage.free_rows;
	device_do(&device, FTL_DISCARD, 0, config.capacity_pages, NULL);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.mapped_pages == 0);
	EXPECT(usage.buffered_pages == 0);
	EXPECT(usage.free_rows > free_rows);
	device_close(&device);
}

const struct test space_tests[] = {
	TEST(invalid_blocks_are_erased_and_written_again),
	TEST(a_fresh_device_needs_no_erase),
	TEST(a_full_device_is_collected_and_loses_nothing),
	TEST(blocks_without_invalid_pages_are_left_alone),
	TEST(more_spare_flash_means_less_copying),
	TEST(wear_is_levelled_where_that_is_asked_for),
	TEST(single_pages_flushed_one_by_one_do_not_fill_the_device),
	TEST(overwritten_data_takes_no_memory),
	TEST(a_whole_discard_gives_everything_back),
	{ NULL, NULL },
};
