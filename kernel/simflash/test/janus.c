// SPDX-License-Identifier: GPL-2.0-only
/* The Janus commands: what a defragmenter asks of the device. */
#include "../ftl/internal.h"
#include "suites.h"
#include "device.h"
#include "invariants.h"

static char memory[128 * FTL_PAGE_BYTES], other[128 * FTL_PAGE_BYTES];

static enum ftl_status control(struct device *device, enum ftl_op op,
			       const struct ftl_range *range, uint32_t ranges)
{
	struct ftl_cmd *cmd = device_control(device, op, range, ranges);
	struct ftl_cmd *done;

	device_submit(device, cmd);
	done = device_next(device);
	device_release(device, cmd);
	return done == cmd ? cmd->status : FTL_POWER_LOST;
}

static void open_janus(struct device *device, const struct ftl_config *config)
{
	device_open(device, config);
	ftl_prepare_remap(device->ftl);
}

static void write_words(struct device *device, uint32_t lba, uint32_t pages, uint64_t first)
{
	fill_uniform(memory, pages, first);
	device_do(device, FTL_WRITE, lba, pages, memory);
	device_do(device, FTL_FLUSH, 0, 0, NULL);
}

/* Each page has its own word from `first` on; or all are 0. */
static bool has_words(struct device *device, uint32_t lba, uint32_t pages, uint64_t first)
{
	uint32_t i;

	device_do(device, FTL_READ, lba, pages, memory);
	for (i = 0; i < pages; i++) {
		uint64_t word;

		memcpy(&word, memory + i * FTL_PAGE_BYTES, sizeof(word));
		if (word != (first ? first + i : 0))
			return false;
	}
	return true;
}

static void a_committed_move_copies_nothing(void)
{
	const struct ftl_range range[] = { { 10, 1000, 20 }, { 50, 1020, 30 } };
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;

	open_janus(&device, &config);
	write_words(&device, 10, 20, 100);
	write_words(&device, 50, 30, 200);
	ftl_reset_stats(device.ftl);
	EXPECT(control(&device, FTL_REMAP, range, 2) == FTL_OK);
	EXPECT(!ftl_log_committed(device.ftl));
	EXPECT(has_words(&device, 10, 20, 100) && has_words(&device, 1000, 20, 100));
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	EXPECT(ftl_log_committed(device.ftl));
	EXPECT(has_words(&device, 1000, 20, 100) && has_words(&device, 1020, 30, 200));
	EXPECT(has_words(&device, 10, 20, 0) && has_words(&device, 50, 30, 0));
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.page_programs == 0 && stats.log_page_programs <= 2);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void a_discarded_move_leaves_the_source_alone(void)
{
	const struct ftl_range range = { 10, 1000, 20 };
	struct ftl_config config = device_config();
	struct device device;

	open_janus(&device, &config);
	write_words(&device, 10, 20, 100);
	EXPECT(control(&device, FTL_REMAP, &range, 1) == FTL_OK);
	EXPECT(control(&device, FTL_LOG_DISCARD, NULL, 0) == FTL_OK);
	EXPECT(has_words(&device, 10, 20, 100) && has_words(&device, 1000, 20, 0));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void moving_there_and_back_is_identity(void)
{
	const struct ftl_range there = { 10, 1000, 20 }, back = { 1000, 10, 20 };
	struct ftl_config config = device_config();
	struct device device;

	config.power_loss = true;
	open_janus(&device, &config);
	write_words(&device, 10, 20, 100);
	EXPECT(control(&device, FTL_REMAP, &there, 1) == FTL_OK);
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	EXPECT(control(&device, FTL_REMAP, &back, 1) == FTL_OK);
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	EXPECT(has_words(&device, 10, 20, 100) && has_words(&device, 1000, 20, 0));
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns));
	EXPECT(has_words(&device, 10, 20, 100) && has_words(&device, 1000, 20, 0));
	device_close(&device);
}

static void a_move_that_was_flushed_is_open_again_after_a_mount(void)
{
	const struct ftl_range range = { 10, 1000, 20 };
	struct ftl_config config = device_config();
	struct device device;

	config.power_loss = true;
	open_janus(&device, &config);
	write_words(&device, 10, 20, 100);
	EXPECT(control(&device, FTL_REMAP, &range, 1) == FTL_OK);
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns));
	EXPECT(ftl_log_committed(device.ftl));		/* it was not flushed: it never was */
	EXPECT(has_words(&device, 10, 20, 100));

	EXPECT(control(&device, FTL_REMAP, &range, 1) == FTL_OK);
	EXPECT(control(&device, FTL_LOG_FLUSH, NULL, 0) == FTL_OK);
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns));
	EXPECT(!ftl_log_committed(device.ftl));
	EXPECT(has_words(&device, 10, 20, 100) && has_words(&device, 1000, 20, 100));
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	EXPECT(has_words(&device, 10, 20, 0) && has_words(&device, 1000, 20, 100));
	device_close(&device);
}

static void what_is_written_during_a_move_stays(void)
{
	const struct ftl_range range = { 10, 1000, 20 };
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word;

	open_janus(&device, &config);
	write_words(&device, 10, 20, 100);
	EXPECT(control(&device, FTL_REMAP, &range, 1) == FTL_OK);
	device_write(&device, 12, 7777);
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	device_read(&device, 12, &word);
	EXPECT(word == 7777);
	EXPECT(has_words(&device, 1000, 20, 100));
	device_close(&device);
}

static void wrong_ranges_change_nothing(void)
{
	const struct ftl_range wrong[][2] = {
		{ { 10, 20, 11 }, { 0, 0, 0 } },	/* overlaps itself */
		{ { 10, 4090, 7 }, { 0, 0, 0 } },	/* beyond the device */
		{ { 10, 100, 5 }, { 14, 200, 5 } },	/* one source twice */
		{ { 10, 100, 5 }, { 50, 104, 5 } },	/* one destination twice */
		{ { 10, 0xffffffff, 5 }, { 0, 0, 0 } },
		{ { 10, 100, 0 }, { 0, 0, 0 } },
		{ { 10, 100, 70000 }, { 0, 0, 0 } },
	};
	struct ftl_config config = device_config();
	struct device device;
	size_t i;

	open_janus(&device, &config);
	write_words(&device, 10, 60, 100);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		EXPECT(control(&device, FTL_REMAP, wrong[i], 1 + !!wrong[i][1].pages) ==
		       FTL_BAD_RANGE);
	EXPECT(has_words(&device, 10, 60, 100) && has_words(&device, 100, 10, 0));
	device_close(&device);
}

static void a_copy_of_what_is_armed_is_not_programmed(void)
{
	const struct ftl_range range = { 10, 1000, 32 };
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;

	open_janus(&device, &config);
	fill_mixed(other, 32, 100);
	device_do(&device, FTL_WRITE, 10, 32, other);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	EXPECT(control(&device, FTL_ARM, &range, 1) == FTL_OK);
	ftl_reset_stats(device.ftl);
	device_do(&device, FTL_WRITE, 1000, 32, other);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.elided_pages == 32 && stats.page_programs == 0);
	EXPECT(stats.row_reads >= 8);		/* it has to be compared with something */
	device_do(&device, FTL_READ, 1000, 32, memory);
	EXPECT(!memcmp(memory, other, 32 * FTL_PAGE_BYTES));
	device_do(&device, FTL_DISCARD, 10, 32, NULL);
	device_do(&device, FTL_READ, 1000, 32, memory);
	EXPECT(!memcmp(memory, other, 32 * FTL_PAGE_BYTES));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void other_data_than_what_is_armed_are_programmed(void)
{
	const struct ftl_range range = { 10, 1000, 8 };
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;

	open_janus(&device, &config);
	write_words(&device, 10, 8, 100);
	EXPECT(control(&device, FTL_ARM, &range, 1) == FTL_OK);
	write_words(&device, 1000, 8, 104);
	EXPECT(has_words(&device, 1000, 8, 104) && has_words(&device, 10, 8, 100));
	EXPECT(control(&device, FTL_ARM, &range, 1) == FTL_OK);
	EXPECT(control(&device, FTL_ARM, NULL, 0) == FTL_OK);
	write_words(&device, 1000, 8, 100);		/* nothing is armed any more */
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.elided_pages == 0);
	device_close(&device);
}

/* Rows of 4 pages, every fourth of them the file's: all on one die. */
static void write_on_one_die(struct device *device, uint32_t lba, uint32_t pages)
{
	uint32_t page;

	for (page = 0; page < pages; page += 4) {
		fill_uniform(memory, 4, 100 + page);
		device_do(device, FTL_WRITE, lba + page, 4, memory);
		fill_uniform(memory, 12, 1);
		device_do(device, FTL_WRITE, 2000 + 3 * page, 12, memory);
	}
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
}

static void a_file_on_one_die_is_spread_over_all(void)
{
	const struct ftl_range range = { 0, FTL_NONE, 128 };
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;
	uint64_t before_ns;

	open_janus(&device, &config);
	write_on_one_die(&device, 0, 128);
	EXPECT(ftl_dof_p_permille(device.ftl, &range, 1) == 750);
	before_ns = device_do(&device, FTL_READ, 0, 128, memory);
	EXPECT(control(&device, FTL_SPREAD, &range, 1) == FTL_OK);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.spread_pages == 128);
	EXPECT(ftl_dof_p_permille(device.ftl, &range, 1) == 0);
	EXPECT(device_do(&device, FTL_READ, 0, 128, memory) < before_ns);
	EXPECT(has_words(&device, 0, 128, 100));

	/* And then there is nothing to be done. */
	EXPECT(control(&device, FTL_SPREAD, &range, 1) == FTL_OK);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.spread_pages == 128);
	device_close(&device);
}

static void what_is_being_moved_is_not_spread(void)
{
	const struct ftl_range move = { 0, 1000, 64 }, range = { 0, FTL_NONE, 64 };
	struct ftl_config config = device_config();
	struct device device;

	open_janus(&device, &config);
	write_on_one_die(&device, 0, 64);
	EXPECT(control(&device, FTL_REMAP, &move, 1) == FTL_OK);
	EXPECT(control(&device, FTL_SPREAD, &range, 1) == FTL_LOG_FULL);
	EXPECT(control(&device, FTL_LOG_DISCARD, NULL, 0) == FTL_OK);
	EXPECT(control(&device, FTL_SPREAD, &range, 1) == FTL_OK);
	EXPECT(has_words(&device, 0, 64, 100) && has_words(&device, 1000, 64, 0));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

/* Every other page of a half of the device goes to the other half: no two are one entry. */
static bool remap_every_other(struct device *device, uint32_t half, bool back)
{
	static struct ftl_range range[512];
	uint32_t lba, i;

	for (lba = 0; lba < half; lba += 1024) {
		for (i = 0; i < 512; i++) {
			uint32_t here = lba + 2 * i, there = half + (here * 5 + 1) % half;

			range[i] = (struct ftl_range){ back ? there : here, back ? here : there, 1 };
		}
		if (control(device, FTL_REMAP, range, 512) != FTL_OK ||
		    control(device, FTL_LOG_COMMIT, NULL, 0) != FTL_OK)
			return false;
	}
	return true;
}

/*
 * More than the log has entries for, and most of what is written: each time the
 * log is full it is replaced by the map.
 */
static void all_of_a_device_can_be_remapped_with_a_log_of_any_size(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct ftl_stats stats;
	struct device device;
	uint32_t lba, round;
	uint64_t word;

	config.log_pages = 16;
	config.power_loss = true;
	open_janus(&device, &config);
	for (lba = 0; lba < 2048; lba += 2)
		device_write(&device, lba, 100 + lba);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_reset_stats(device.ftl);
	for (round = 0; round < 7; round++) {
		EXPECT(remap_every_other(&device, 2048, round % 2));
		ftl_read_usage(device.ftl, &usage);
		EXPECT(usage.log_live_pages <= config.log_pages);
	}
	EXPECT(usage.remapped_now == 1024 && usage.mapped_pages == 1024);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.page_programs == 0 && stats.checkpoints > 0);
	ftl_cut_power(device.ftl, 0, 1);
	EXPECT(ftl_power_on(device.ftl, device.now_ns) && !broken_invariant(device.ftl));
	for (lba = 0; lba < 2048; lba += 2) {
		device_read(&device, 2048 + (lba * 5 + 1) % 2048, &word);
		EXPECT(word == 100 + lba);
	}
	device_close(&device);
}

static void the_log_stays_within_its_size(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct ftl_stats stats;
	struct device device;
	uint32_t round, most = 0;

	config.log_pages = 16;
	open_janus(&device, &config);
	write_words(&device, 0, 100, 1000);
	for (round = 0; round < 300; round++) {
		const struct ftl_range range = {
			round % 2 ? 500 : 0, round % 2 ? 0 : 500, 100,
		};
		enum ftl_status status = control(&device, FTL_REMAP, &range, 1);

		if (status == FTL_LOG_FULL)
			status = control(&device, FTL_REMAP, &range, 1);
		EXPECT(status == FTL_OK);
		EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
		ftl_read_usage(device.ftl, &usage);
		if (usage.log_live_pages > most)
			most = usage.log_live_pages;
	}
	EXPECT(most <= config.log_pages);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.log_compactions > 10);
	EXPECT(stats.log_erases > 0);
	EXPECT(has_words(&device, 0, 100, 1000));
	device_close(&device);
}

static void collecting_remapped_pages_retires_their_entries(void)
{
	const struct ftl_range range = { 0, 2000, 64 };
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;
	uint32_t round;

	config.spare_percent = 0;
	open_janus(&device, &config);
	for (round = 0; round < 4096 - 128; round += 128) {
		fill_uniform(memory, 128, 10 + round);
		device_do(&device, FTL_WRITE, round, 128, memory);
	}
	EXPECT(control(&device, FTL_REMAP, &range, 1) == FTL_OK);
	EXPECT(control(&device, FTL_LOG_COMMIT, NULL, 0) == FTL_OK);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.remapped_now == 64);
	for (round = 0; round < 3000; round++)
		device_write(&device, 64 + round * 7 % 1900, round);
	device_drain(&device);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.remapped_now < 64);
	EXPECT(has_words(&device, 2000, 64, 10));
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

const struct test janus_tests[] = {
	TEST(a_committed_move_copies_nothing),
	TEST(a_discarded_move_leaves_the_source_alone),
	TEST(moving_there_and_back_is_identity),
	TEST(a_move_that_was_flushed_is_open_again_after_a_mount),
	TEST(what_is_written_during_a_move_stays),
	TEST(wrong_ranges_change_nothing),
	TEST(a_copy_of_what_is_armed_is_not_programmed),
	TEST(other_data_than_what_is_armed_are_programmed),
	TEST(a_file_on_one_die_is_spread_over_all),
	TEST(what_is_being_moved_is_not_spread),
	TEST(all_of_a_device_can_be_remapped_with_a_log_of_any_size),
	TEST(the_log_stays_within_its_size),
	TEST(collecting_remapped_pages_retires_their_entries),
	{ NULL, NULL },
};
