// SPDX-License-Identifier: GPL-2.0-only
/* Blocks: reused when invalid, erased before, and what happens when none is left. */
#include "check.h"
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

/*
 * One page of every block is kept valid, so that no block can be reused: the
 * device ends up full with little of it in use.
 */
static uint32_t wear_out(struct device *device)
{
	uint32_t kept = 0;
	struct ftl_cmd *cmd;
	bool full = false;

	while (!full) {
		fill_uniform(memory, 64, 1);
		((uint64_t *)memory)[0] = 1;
		cmd = device_command(device, FTL_WRITE, 64, 64, memory);
		device_submit(device, cmd);
		while (device_next(device) != cmd)
			;
		full = cmd->status == FTL_NO_SPACE;
		device_release(device, cmd);
		if (full)
			break;
		fill_uniform(memory, 1, 5000 + kept);
		cmd = device_command(device, FTL_WRITE, 128 + kept, 1, memory);
		device_submit(device, cmd);
		while (device_next(device) != cmd)
			;
		full = cmd->status == FTL_NO_SPACE;
		device_release(device, cmd);
		kept += !full;
	}
	return kept;
}

static void a_full_device_refuses_writes_and_keeps_what_it_accepted(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint32_t kept, i;
	uint64_t word;

	config.spare_percent = 0;
	device_open(&device, &config);
	kept = wear_out(&device);
	EXPECT(kept > 10);
	device_drain(&device);
	for (i = 0; i < kept; i++) {
		device_read(&device, 128 + i, &word);
		EXPECT(word == 5000 + i);
	}
	EXPECT(!broken_invariant(device.ftl));

	device_do(&device, FTL_DISCARD, 0, config.capacity_pages, NULL);
	EXPECT(device_write(&device, 0, 42) > 0);
	device_read(&device, 0, &word);
	EXPECT(word == 42);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
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
	TEST(a_full_device_refuses_writes_and_keeps_what_it_accepted),
	TEST(overwritten_data_takes_no_memory),
	TEST(a_whole_discard_gives_everything_back),
	{ NULL, NULL },
};
