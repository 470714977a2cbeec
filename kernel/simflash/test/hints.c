// SPDX-License-Identifier: GPL-2.0-only
/* What the host announces: collected ahead for, and left where it is. */
#include "suites.h"
#include "../ftl/internal.h"
#include "device.h"
#include "invariants.h"

#define PAGES 4096
#define SECOND_NS 1000000000ull

static char memory[128 * FTL_PAGE_BYTES];

static struct ftl_config hint_config(void)
{
	struct ftl_config config = device_config();

	config.capacity_pages = PAGES;
	config.spare_percent = 40;
	config.block_pages = 32;
	return config;
}

static void write_pages(struct device *device, uint32_t lba, uint32_t pages)
{
	fill_uniform(memory, pages, lba + 1);
	device_do(device, FTL_WRITE, lba, pages, memory);
}

static enum ftl_status announce(struct device *device, enum ftl_op op, uint32_t lba,
				uint32_t pages, uint64_t within_ns)
{
	struct ftl_range range = { .src = lba, .pages = pages };
	struct ftl_cmd *cmd = device_control(device, op, &range,
					     op == FTL_SOON_INVALID && pages);

	cmd->pages = pages;
	cmd->within_ns = within_ns;
	device_run(device, cmd);
	return cmd->status;
}

/* Full, and half of each block is out of date; an announcement keeps it from collecting. */
static void open_half_invalid(struct device *device, const struct ftl_config *config)
{
	uint32_t lba;

	device_open(device, config);
	ftl_prepare_hints(device->ftl);
	announce(device, FTL_RESERVE, 0, 0, FTL_NEVER / 2);
	for (lba = 0; lba < PAGES; lba += 32)
		write_pages(device, lba, 32);
	for (lba = 0; lba < PAGES / 4; lba++)
		write_pages(device, lba * 4, 1);
	device_drain(device);
	ftl_reset_stats(device->ftl);
}

static uint64_t collected(struct device *device)
{
	struct ftl_stats stats;

	ftl_read_stats(device->ftl, &stats);
	return stats.collect_page_programs;
}

static void the_device_collects_what_is_announced_and_no_more(void)
{
	struct ftl_config config = hint_config();
	struct ftl_usage usage, after;
	struct device device;
	uint32_t rows;

	open_half_invalid(&device, &config);
	ftl_read_usage(device.ftl, &usage);
	announce(&device, FTL_RESERVE, 0, usage.free_rows * config.row_pages / 2, 60 * SECOND_NS);
	device_drain(&device);
	EXPECT(collected(&device) == 0);
	rows = usage.free_rows + 40;
	announce(&device, FTL_RESERVE, 0, rows * config.row_pages, 60 * SECOND_NS);
	device_drain(&device);
	ftl_read_usage(device.ftl, &after);
	EXPECT(after.free_rows >= rows);
	/* A block more on each die, which the last victim gave. */
	EXPECT(after.free_rows < rows + 2 * 4 * device.ftl->rows_per_block);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void rows_that_were_written_are_not_collected_for_again(void)
{
	struct ftl_config config = hint_config();
	struct device device;
	struct ftl_usage usage;
	uint64_t before;
	uint32_t lba;

	open_half_invalid(&device, &config);
	ftl_read_usage(device.ftl, &usage);
	announce(&device, FTL_RESERVE, 0, (usage.free_rows + 20) * config.row_pages,
		 FTL_NEVER / 2);
	device_drain(&device);
	before = collected(&device);
	EXPECT(before);
	for (lba = 0; lba < 400; lba += 4)
		write_pages(&device, lba, 4);
	device_drain(&device);
	EXPECT(collected(&device) == before);
	device_close(&device);
}

/* After its time, the device keeps free what it keeps by itself. */
static void announcements_that_do_not_come_true_end(void)
{
	struct ftl_config config = hint_config();
	struct device device;

	config.idle_percent = 90;
	open_half_invalid(&device, &config);
	announce(&device, FTL_RESERVE, 0, 0, SECOND_NS);
	write_pages(&device, 0, 128);
	device_drain(&device);
	EXPECT(collected(&device) == 0);
	device.now_ns += 2 * SECOND_NS;
	write_pages(&device, 0, 128);
	write_pages(&device, 128, 128);
	device_drain(&device);
	EXPECT(collected(&device) > 0);
	device_close(&device);
}

/* Pages moved for the same announcement, the first half of the device marked or not. */
static uint64_t moved_in_vain(bool told)
{
	struct ftl_config config = hint_config();
	struct ftl_usage usage;
	struct device device;
	uint64_t moved;
	uint32_t lba;

	open_half_invalid(&device, &config);
	for (lba = 0; told && lba < PAGES / 2; lba += 512)
		announce(&device, FTL_SOON_INVALID, lba, 512, FTL_NEVER / 2);
	ftl_invariant(!broken_invariant(device.ftl));
	ftl_read_usage(device.ftl, &usage);
	announce(&device, FTL_RESERVE, 0, (usage.free_rows + 30) * config.row_pages,
		 FTL_NEVER / 2);
	device_drain(&device);
	moved = 0;
	for (lba = 0; lba < PAGES / 2; lba++) {
		uint32_t physical;

		ftl_map_find(device.ftl, lba, &physical);
		moved += ftl_store_sequence(device.ftl, physical) > PAGES + PAGES / 4;
	}
	for (lba = 0; told && lba < PAGES / 2; lba += 32)
		write_pages(&device, lba, 32);
	device_drain(&device);
	ftl_invariant(!told || !device.ftl->hints.marks);
	ftl_invariant(!broken_invariant(device.ftl));
	device_close(&device);
	return moved;
}

static void pages_that_are_soon_invalid_are_not_moved(void)
{
	EXPECT(moved_in_vain(false) > 0);
	EXPECT(moved_in_vain(true) == 0);
}

/* Somebody waits: space comes of marked blocks, too. */
static void a_full_device_collects_marked_blocks(void)
{
	struct ftl_config config = hint_config();
	struct ftl_stats stats;
	struct device device;
	uint64_t state = 1;
	uint32_t i;

	open_half_invalid(&device, &config);
	for (i = 0; i < PAGES; i += 512)
		announce(&device, FTL_SOON_INVALID, i, 512, FTL_NEVER / 2);
	for (i = 0; i < 8000; i++) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		write_pages(&device, (state >> 33) % PAGES, 1);
	}
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.commands[FTL_WRITE] == 8000 && !stats.failed);
	EXPECT(stats.collected_blocks > 0);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void ranges_beyond_the_device_are_refused(void)
{
	struct ftl_config config = hint_config();
	struct device device;

	device_open(&device, &config);
	EXPECT(announce(&device, FTL_SOON_INVALID, 0, 1, SECOND_NS) == FTL_LOG_FULL);
	ftl_prepare_hints(device.ftl);
	EXPECT(announce(&device, FTL_SOON_INVALID, PAGES - 1, 1, SECOND_NS) == FTL_OK);
	EXPECT(announce(&device, FTL_SOON_INVALID, PAGES - 1, 2, SECOND_NS) == FTL_BAD_RANGE);
	EXPECT(announce(&device, FTL_SOON_INVALID, 2, FTL_NONE, SECOND_NS) == FTL_BAD_RANGE);
	EXPECT(announce(&device, FTL_RESERVE, 0, FTL_NONE, SECOND_NS) == FTL_OK);
	device_drain(&device);
	device_close(&device);
}

/* Rows that are free when the device has rested. */
static uint64_t free_rows_at_rest(uint32_t idle_percent)
{
	struct ftl_config config = hint_config();
	struct ftl_usage usage;
	struct device device;

	config.idle_percent = idle_percent;
	open_half_invalid(&device, &config);
	announce(&device, FTL_RESERVE, 0, 0, 0);
	device_drain(&device);
	ftl_read_usage(device.ftl, &usage);
	device_close(&device);
	return usage.free_rows;
}

static void a_device_keeps_its_share_of_the_spare_flash(void)
{
	const uint32_t spare_rows = PAGES * 40 / 100 / 4;

	EXPECT(free_rows_at_rest(20) < free_rows_at_rest(70));
	EXPECT(free_rows_at_rest(70) >= spare_rows * 65 / 100);
	EXPECT(free_rows_at_rest(70) < spare_rows * 90 / 100);
}

const struct test hint_tests[] = {
	TEST(the_device_collects_what_is_announced_and_no_more),
	TEST(rows_that_were_written_are_not_collected_for_again),
	TEST(announcements_that_do_not_come_true_end),
	TEST(pages_that_are_soon_invalid_are_not_moved),
	TEST(a_full_device_collects_marked_blocks),
	TEST(ranges_beyond_the_device_are_refused),
	TEST(a_device_keeps_its_share_of_the_spare_flash),
	{ NULL, NULL },
};
