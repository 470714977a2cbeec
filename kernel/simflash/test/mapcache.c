// SPDX-License-Identifier: GPL-2.0-only
/* What a map that is in flash costs. Times are those of device_config(). */
#include "suites.h"
#include "device.h"

#define READ_NS (50000 + 100000 + 10000 + 20000 + 5000)
#define MAP_READ_NS (100000 + 10000)
#define PROGRAM_NS 1000000

/* 4096 pages, of which 64 share a page of the map; two of these fit in RAM. */
static struct ftl_config small_map(void)
{
	struct ftl_config config = device_config();

	config.map_page_lbas = 64;
	config.map_cache_pages = 2;
	return config;
}

/* Writes the page at every `step`th LBA, and waits until it and the map are in flash. */
static void write_every(struct device *device, uint32_t step)
{
	uint32_t lba;

	for (lba = 0; lba < device->config.capacity_pages; lba += step)
		device_write(device, lba, lba + 1);
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
}

static void a_look_up_that_misses_costs_a_read(void)
{
	struct ftl_config config = small_map();
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	write_every(&device, 64);
	EXPECT(device_read(&device, 0, &word) == MAP_READ_NS + READ_NS && word == 1);
	EXPECT(device_read(&device, 0, &word) == READ_NS);
	EXPECT(device_read(&device, 64, &word) == MAP_READ_NS + READ_NS);
	EXPECT(device_read(&device, 0, &word) == READ_NS);
	/* The third page takes the place of the one that was not used for longest. */
	EXPECT(device_read(&device, 128, &word) == MAP_READ_NS + READ_NS);
	EXPECT(device_read(&device, 0, &word) == READ_NS);
	EXPECT(device_read(&device, 64, &word) == MAP_READ_NS + READ_NS && word == 65);
	device_close(&device);
}

static void hits_and_misses_are_counted(void)
{
	struct ftl_config config = small_map();
	struct ftl_stats stats;
	struct device device;
	uint64_t word;
	int i;

	device_open(&device, &config);
	write_every(&device, 64);
	ftl_reset_stats(device.ftl);
	for (i = 0; i < 10; i++)
		device_read(&device, 0, &word);
	device_read(&device, 64, &word);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.map_look_ups == 11 && stats.map_misses == 2);
	EXPECT(stats.map_page_reads == 2 && stats.map_page_programs == 0);
	device_close(&device);
}

static void a_flush_writes_the_map_after_the_data(void)
{
	struct ftl_config config = small_map();
	struct ftl_stats stats;
	struct device device;
	uint64_t took_ns;

	device_open(&device, &config);
	device_write(&device, 0, 1);
	took_ns = device_do(&device, FTL_FLUSH, 0, 0, NULL);
	EXPECT(took_ns == 70000 + 2 * (10000 + PROGRAM_NS) + 5000);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.map_row_programs == 1 && stats.map_page_programs == 1);
	/* Nothing has changed since. */
	EXPECT(device_do(&device, FTL_FLUSH, 0, 0, NULL) == 70000 + 5000);
	device_close(&device);
}

static void random_writes_cost_the_map_a_page_each(void)
{
	struct ftl_config config = small_map();
	struct ftl_stats stats;
	struct device device;

	device_open(&device, &config);
	write_every(&device, 64);
	ftl_reset_stats(device.ftl);
	write_every(&device, 64);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.page_programs == 64);
	EXPECT(stats.map_page_programs == 64 && stats.map_page_reads == 64);
	device_close(&device);
}

static void sequential_writes_cost_the_map_next_to_nothing(void)
{
	struct ftl_config config = small_map();
	struct ftl_stats stats;
	struct device device;

	device_open(&device, &config);
	write_every(&device, 1);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.page_programs == 4096);
	EXPECT(stats.map_page_programs >= 64 && stats.map_page_programs < 160);
	device_close(&device);
}

static void after_a_power_cut_the_map_is_read_again(void)
{
	struct ftl_config config = small_map();
	struct device device;
	uint64_t word;

	config.power_loss = true;
	device_open(&device, &config);
	write_every(&device, 64);
	device_read(&device, 0, &word);
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns));
	device_do(&device, FTL_FLUSH, 0, 0, NULL);	/* the mount is over */
	EXPECT(device_read(&device, 0, &word) == MAP_READ_NS + READ_NS && word == 1);
	device_close(&device);
}

const struct test mapcache_tests[] = {
	TEST(a_look_up_that_misses_costs_a_read),
	TEST(hits_and_misses_are_counted),
	TEST(a_flush_writes_the_map_after_the_data),
	TEST(random_writes_cost_the_map_a_page_each),
	TEST(sequential_writes_cost_the_map_next_to_nothing),
	TEST(after_a_power_cut_the_map_is_read_again),
	{ NULL, NULL },
};
