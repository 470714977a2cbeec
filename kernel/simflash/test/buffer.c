// SPDX-License-Identifier: GPL-2.0-only
/* The write buffer in flash: fast until it is full, emptied while nobody asks for anything. */
#include "suites.h"
#include "device.h"

#define IDLE_NS 50000000ull

static char memory[128 * FTL_PAGE_BYTES];

/* 1024 pages of it beside 4096, four times as fast. */
static struct ftl_config buffered(void)
{
	struct ftl_config config = device_config();

	config.slc_pages = 1024;
	config.slc_program_ns = 250000;
	config.slc_read_ns = 40000;
	config.fold_after_ns = IDLE_NS;
	return config;
}

/* Writes so many pages from an LBA on and waits for their flash; how long that took. */
static uint64_t write_pages(struct device *device, uint32_t lba, uint32_t pages)
{
	uint64_t start_ns = device->now_ns;

	for (; pages; pages -= 128, lba += 128) {
		fill_uniform(memory, 128, lba + 1);
		device_do(device, FTL_WRITE, lba, 128, memory);
	}
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	return device->now_ns - start_ns;
}

static void writes_are_fast_until_the_buffer_is_full(void)
{
	struct ftl_config config = buffered();
	struct device device;
	uint64_t fast_ns, slow_ns;

	device_open(&device, &config);
	fast_ns = write_pages(&device, 0, 1024);
	slow_ns = write_pages(&device, 1024, 1024);
	/* 64 rows a die, each moved over the channel and programmed. */
	EXPECT_NEAR(fast_ns, 64 * (40000 + 250000.0), 15);
	EXPECT_NEAR(slow_ns, 64 * (40000 + 1000000.0), 5);
	device_close(&device);
}

static void an_idle_device_empties_its_buffer(void)
{
	struct ftl_config config = buffered();
	struct ftl_stats stats;
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	write_pages(&device, 0, 1024);
	device_read(&device, 0, &word);
	device.now_ns += IDLE_NS / 2;
	ftl_run(device.ftl, device.now_ns);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.collect_page_programs == 0);
	EXPECT(stats.slc_page_programs == 1024 && stats.folded_pages == 0);
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.collect_page_programs == 1024);
	EXPECT(stats.slc_page_programs == 1024 && stats.folded_pages == 1024);
	EXPECT_NEAR(write_pages(&device, 1024, 1024), 64 * (40000 + 250000.0), 15);
	device_read(&device, 1023, &word);
	EXPECT(word == 1024);
	device_close(&device);
}

static void a_command_ends_the_folding(void)
{
	struct ftl_config config = buffered();
	struct ftl_stats before, after;
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	write_pages(&device, 0, 1024);
	device.now_ns += IDLE_NS + 5000000;
	ftl_run(device.ftl, device.now_ns);
	device_read(&device, 0, &word);
	ftl_read_stats(device.ftl, &before);
	EXPECT(before.collect_page_programs > 0 && before.collect_page_programs < 1024);
	device.now_ns += IDLE_NS - 10000;
	ftl_run(device.ftl, device.now_ns);
	ftl_read_stats(device.ftl, &after);
	/* A row that was read is still programmed on each die. */
	EXPECT(after.collect_page_programs - before.collect_page_programs <= 2 * 16);
	device_close(&device);
}

static void the_buffer_is_read_faster(void)
{
	struct ftl_config config = buffered();
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	write_pages(&device, 0, 128);
	EXPECT(device_read(&device, 0, &word) == 50000 + 40000 + 10000 + 20000 + 5000);
	device_close(&device);
}

static void what_is_overwritten_is_not_folded(void)
{
	struct ftl_config config = buffered();
	struct ftl_stats stats;
	struct device device;
	int i;

	device_open(&device, &config);
	for (i = 0; i < 7; i++)
		write_pages(&device, 0, 128);
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.collect_page_programs <= 128);
	device_close(&device);
}

const struct test buffer_tests[] = {
	TEST(writes_are_fast_until_the_buffer_is_full),
	TEST(an_idle_device_empties_its_buffer),
	TEST(a_command_ends_the_folding),
	TEST(the_buffer_is_read_faster),
	TEST(what_is_overwritten_is_not_folded),
	{ NULL, NULL },
};
