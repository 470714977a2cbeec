// SPDX-License-Identifier: GPL-2.0-only
/* The read cache: what is read from RAM, and what is not any more. */
#include "suites.h"
#include "../ftl/internal.h"
#include "device.h"
#include "invariants.h"

#define PAGES 4096

static char memory[128 * FTL_PAGE_BYTES];

static struct ftl_config cache_config(uint32_t pages, bool announced)
{
	struct ftl_config config = device_config();

	config.capacity_pages = PAGES;
	config.block_pages = 32;
	config.read_cache_pages = pages;
	config.read_cache_announced = announced;
	return config;
}

static void write_pages(struct device *device, uint32_t lba, uint32_t pages)
{
	fill_uniform(memory, pages, lba + 1);
	device_do(device, FTL_WRITE, lba, pages, memory);
}

static void open_written(struct device *device, const struct ftl_config *config)
{
	uint32_t lba;

	device_open(device, config);
	for (lba = 0; lba < 1024; lba += 4)
		write_pages(device, lba, 4);
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
}

static enum ftl_status prefetch(struct device *device, uint32_t lba, uint32_t pages)
{
	struct ftl_range range = { .src = lba, .pages = pages };
	struct ftl_cmd *cmd = device_control(device, FTL_PREFETCH, &range, 1);

	device_run(device, cmd);
	device_drain(device);
	return cmd->status;
}

enum place { RAM, FLASH, WRONG };

/* Where a read of the page finds its data; WRONG if these are others. */
static enum place read_from(struct device *device, uint32_t lba, uint64_t expected)
{
	struct ftl_stats before, after;
	uint64_t word;

	ftl_read_stats(device->ftl, &before);
	device_read(device, lba, &word);
	ftl_read_stats(device->ftl, &after);
	if (word != expected)
		return WRONG;
	return after.row_reads == before.row_reads &&
	       after.read_cache_hits > before.read_cache_hits ? RAM : FLASH;
}

static void announced_pages_are_read_from_ram(void)
{
	struct ftl_config config = cache_config(16, true);
	struct ftl_stats stats;
	struct device device;
	uint64_t slow_ns, fast_ns, word;

	open_written(&device, &config);
	slow_ns = device_read(&device, 101, &word);
	EXPECT(read_from(&device, 101, 102) == FLASH);		/* it is in the host's cache now */
	EXPECT(prefetch(&device, 100, 8) == FTL_OK);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.prefetched_pages == 8);
	fast_ns = device_read(&device, 101, &word);
	EXPECT(slow_ns - fast_ns == config.read_ns + config.channel_page_ns);
	EXPECT(read_from(&device, 101, 102) == FLASH);
	EXPECT(read_from(&device, 107, 108) == RAM);
	EXPECT(read_from(&device, 108, 109) == FLASH);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void what_was_overwritten_is_read_from_flash(void)
{
	struct ftl_config config = cache_config(16, true);
	struct device device;

	open_written(&device, &config);
	prefetch(&device, 100, 8);
	fill_uniform(memory, 1, 77);
	device_do(&device, FTL_WRITE, 100, 1, memory);
	device_do(&device, FTL_DISCARD, 101, 1, NULL);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	device_drain(&device);
	EXPECT(!broken_invariant(device.ftl));
	EXPECT(read_from(&device, 100, 77) == FLASH);
	EXPECT(read_from(&device, 102, 103) == RAM);
	device_close(&device);
}

/* The oldest of what is kept makes room. */
static void what_was_read_last_is_kept(void)
{
	struct ftl_config config = cache_config(4, false);
	struct device device;
	uint32_t lba;
	uint64_t word;

	open_written(&device, &config);
	EXPECT(prefetch(&device, 200, 2) == FTL_OK);
	EXPECT(read_from(&device, 200, 201) == FLASH);
	for (lba = 0; lba < 16; lba += 4)
		device_read(&device, lba, &word);
	EXPECT(read_from(&device, 0, 1) == RAM);
	device_read(&device, 300, &word);
	EXPECT(read_from(&device, 4, 5) == FLASH);
	EXPECT(read_from(&device, 0, 1) == RAM);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

/* The collector's copy is the same data. */
static void what_is_moved_stays_in_ram(void)
{
	struct ftl_config config = cache_config(16, true);
	uint64_t state = 3;
	uint32_t before, after, i, lba;
	struct device device;

	config.spare_percent = 20;
	open_written(&device, &config);
	for (i = 1024; i < PAGES; i += 4)
		write_pages(&device, i, 4);
	prefetch(&device, 100, 8);
	ftl_map_find(device.ftl, 100, &before);
	for (i = 0; i < 20000; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		lba = (state >> 33) % PAGES;
		if (lba < 100 || lba >= 108)
			write_pages(&device, lba, 1);
	}
	device_drain(&device);
	ftl_map_find(device.ftl, 100, &after);
	EXPECT(before != after);
	EXPECT(read_from(&device, 100, 101) == RAM);
	device_close(&device);
}

static void a_power_cut_empties_it(void)
{
	struct ftl_config config = cache_config(16, true);
	struct device device;

	config.power_loss = true;
	open_written(&device, &config);
	prefetch(&device, 100, 8);
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns));
	EXPECT(!broken_invariant(device.ftl));
	EXPECT(read_from(&device, 100, 101) == FLASH);
	EXPECT(prefetch(&device, PAGES - 1, 2) == FTL_BAD_RANGE);
	device_close(&device);
}

const struct test read_cache_tests[] = {
	TEST(announced_pages_are_read_from_ram),
	TEST(what_was_overwritten_is_read_from_flash),
	TEST(what_was_read_last_is_kept),
	TEST(what_is_moved_stays_in_ram),
	TEST(a_power_cut_empties_it),
	{ NULL, NULL },
};
