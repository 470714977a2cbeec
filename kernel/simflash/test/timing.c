// SPDX-License-Identifier: GPL-2.0-only
/* How long things take, in virtual time: exact. Numbers are those of device_config(). */
#include "suites.h"
#include "device.h"

static char memory[128 * FTL_PAGE_BYTES];

static void a_read_takes_command_cells_channel_link_response(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	device_write(&device, 0, 7);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	EXPECT(device_read(&device, 0, &word) == 50000 + 100000 + 10000 + 20000 + 5000);
	device_close(&device);
}

static void a_cached_or_unwritten_page_needs_no_flash(void)
{
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;
	uint64_t word;

	device_open(&device, &config);
	device_write(&device, 0, 7);
	EXPECT(device_read(&device, 0, &word) == 50000 + 20000 + 5000);
	EXPECT(device_read(&device, 1, &word) == 50000 + 20000 + 5000);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.cache_read_hits == 1 && stats.unmapped_reads == 1 && stats.row_reads == 0);
	device_close(&device);
}

static void a_write_is_done_in_the_cache_and_fua_in_the_flash(void)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *cmd;
	struct device device;

	device_open(&device, &config);
	EXPECT(device_write(&device, 0, 7) == 60000 + 20000 + 5000);
	fill_uniform(memory, 1, 8);
	cmd = device_command(&device, FTL_WRITE, 1, 1, memory);
	cmd->fua = true;
	device.now_ns = 10000000;
	device_submit(&device, cmd);
	device_drain(&device);
	/* It shares its row with the page written before. */
	EXPECT(device.now_ns == 10000000 + 60000 + 20000 + 2 * 10000 + 1000000 + 5000);
	device_close(&device);
}

static void a_flush_waits_for_every_cached_page(void)
{
	struct ftl_config config = device_config();
	struct ftl_usage usage;
	struct device device;
	uint64_t start_ns;

	device_open(&device, &config);
	EXPECT(device_do(&device, FTL_FLUSH, 0, 0, NULL) == 70000 + 5000);
	/* Five full rows, the fifth behind the first on its die, and half a row. */
	fill_uniform(memory, 22, 1);
	start_ns = device.now_ns;
	device_do(&device, FTL_WRITE, 0, 22, memory);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	ftl_read_usage(device.ftl, &usage);
	EXPECT(usage.cached_pages == 0);
	EXPECT(device.now_ns - start_ns >= 2 * (40000 + 1000000));
	device_close(&device);
}

static void a_write_larger_than_the_cache_waits_for_room(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t took_ns;

	device_open(&device, &config);
	fill_uniform(memory, 128, 1);
	took_ns = device_do(&device, FTL_WRITE, 0, 128, memory);
	/* 32 rows, 8 of them fit: 6 rounds of 4 dies before the last has room. */
	EXPECT(took_ns > 6 * 1040000 && took_ns < 7 * 1040000);
	device_close(&device);
}

/* Writes `pages` and leaves them in flash. */
static void lay_out(struct device *device, uint32_t pages)
{
	uint32_t lba, step;

	for (lba = 0; lba < pages; lba += step) {
		step = pages - lba < 128 ? pages - lba : 128;
		fill_uniform(memory, step, lba + 1);
		device_do(device, FTL_WRITE, lba, step, memory);
	}
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
}

static double busy_dies(struct device *device)
{
	struct ftl_stats stats;
	double die_ns = 0, ns = 0;
	uint32_t dies;

	ftl_read_stats(device->ftl, &stats);
	for (dies = 1; dies <= FTL_MAX_DIES; dies++) {
		die_ns += (double)dies * stats.busy_ns[dies];
		ns += stats.busy_ns[dies];
	}
	return die_ns / ns;
}

static void sequential_data_is_read_from_all_dies_at_once(void)
{
	struct ftl_config config = device_config();
	static const struct { uint32_t pages; double dies; } step[] = {
		{ 1, 1 }, { 4, 1 }, { 8, 2 }, { 16, 4 }, { 128, 4 },
	};
	struct device device;
	size_t i;

	device_open(&device, &config);
	lay_out(&device, 1024);
	for (i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		ftl_reset_stats(device.ftl);
		device_do(&device, FTL_READ, 256, step[i].pages, memory);
		EXPECT(busy_dies(&device) == step[i].dies);
	}
	device_close(&device);
}

static void dies_of_one_channel_share_it(void)
{
	struct ftl_config config = device_config();
	struct device device;

	config.channels = 1;
	config.dies_per_channel = 2;
	config.link_page_ns = 0;
	device_open(&device, &config);
	lay_out(&device, 8);
	EXPECT(device_do(&device, FTL_READ, 0, 8, memory) ==
	       50000 + 100000 + 2 * 40000 + 5000);
	device_close(&device);
}

/* Reads the row on die 0 while `rows` of programs wait there; time until it ends. */
static uint64_t read_behind_programs(enum ftl_policy policy)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *read;
	struct device device;
	uint64_t start_ns;

	config.policy = policy;
	config.channels = 1;
	device_open(&device, &config);
	lay_out(&device, 4);
	fill_uniform(memory, 28, 100);
	device_do(&device, FTL_WRITE, 4, 28, memory);	/* 7 rows, and done */
	start_ns = device.now_ns;
	read = device_command(&device, FTL_READ, 0, 1, memory);
	device_submit(&device, read);
	while (device_next(&device) != read)
		;
	start_ns = device.now_ns - start_ns;
	device_release(&device, read);
	device_close(&device);
	return start_ns;
}

static void read_first_overtakes_queued_programs_and_fifo_does_not(void)
{
	EXPECT(read_behind_programs(FTL_FIFO) > 4 * 1040000);
	EXPECT(read_behind_programs(FTL_READ_FIRST) < 1040000 + 200000);
}

static void reads_cannot_starve_a_program(void)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *cmd;
	struct device device;
	int reads;

	config.policy = FTL_READ_FIRST;
	config.channels = 1;
	config.read_command_ns = 0;
	device_open(&device, &config);
	lay_out(&device, 64);
	for (reads = 0; reads < 6; reads++)
		device_submit(&device, device_command(&device, FTL_READ, reads * 4, 1, memory));
	device_write(&device, 100, 1);
	device_submit(&device, device_command(&device, FTL_FLUSH, 0, 0, NULL));
	for (reads = 0; reads < 100; reads++) {
		for (;;) {
			cmd = device_command(&device, FTL_READ, reads % 16 * 4, 1, memory);
			if (!cmd)
				break;
			device_submit(&device, cmd);
		}
		cmd = device_next(&device);
		device_release(&device, cmd);
		if (cmd->op == FTL_FLUSH)
			break;
	}
	device_drain(&device);
	device_close(&device);
	EXPECT(reads < 40);
}

/* Of six commands of the background and one of the foreground that came last: its place. */
static int place_of_foreground(enum ftl_policy policy, enum ftl_op op)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *front, *done;
	struct device device;
	int place = 0, i;

	config.policy = policy;
	config.channels = 1;
	device_open(&device, &config);
	lay_out(&device, 64);
	fill_uniform(memory, 8, 1);
	for (i = 0; i < 6; i++)
		device_submit(&device, device_command(&device, op, 8 * i, 8, memory));
	front = device_command(&device, op, 60, 1, memory);
	front->foreground = true;
	device_submit(&device, front);
	do {
		done = device_next(&device);
		device_release(&device, done);
		place++;
	} while (done != front);
	device_drain(&device);
	device_close(&device);
	return place;
}

static void the_foreground_overtakes_what_has_not_begun(void)
{
	EXPECT(place_of_foreground(FTL_FIFO, FTL_READ) == 7);
	EXPECT(place_of_foreground(FTL_FG_AWARE, FTL_READ) == 1);
	EXPECT(place_of_foreground(FTL_FIFO, FTL_WRITE) == 7);
	EXPECT(place_of_foreground(FTL_FG_AWARE, FTL_WRITE) == 2);
}

/* What a write of the foreground leaves where one of the background came before it. */
static void of_the_same_pages_nothing_overtakes(void)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *cmd;
	struct device device;
	uint64_t word;
	int i;

	config.policy = FTL_FG_AWARE;
	device_open(&device, &config);
	for (i = 1; i <= 4; i++) {
		fill_uniform(memory, 1, i);
		cmd = device_command(&device, FTL_WRITE, 8, 1, memory);
		cmd->foreground = i == 4;
		device_submit(&device, cmd);
	}
	device_drain(&device);
	device_read(&device, 8, &word);
	EXPECT(word == 4);
	device_close(&device);
}

static void the_foreground_cannot_starve_the_background(void)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *cmd, *behind;
	struct device device;
	int reads;

	config.policy = FTL_FG_AWARE;
	config.channels = 1;
	device_open(&device, &config);
	lay_out(&device, 64);
	behind = device_command(&device, FTL_READ, 0, 1, memory);
	for (reads = 0; reads < 200; reads++) {
		while ((cmd = device_command(&device, FTL_READ, 4 + reads % 15 * 4, 1, memory))) {
			cmd->foreground = true;
			device_submit(&device, cmd);
		}
		if (!reads)
			device_submit(&device, behind);
		cmd = device_next(&device);
		device_release(&device, cmd);
		if (cmd == behind)
			break;
	}
	device_drain(&device);
	device_close(&device);
	EXPECT(reads > 7 && reads < 60);
}

static void a_discard_takes_time_by_its_size(void)
{
	struct ftl_config config = device_config();
	struct device device;

	device_open(&device, &config);
	EXPECT(device_do(&device, FTL_DISCARD, 0, 1, NULL) == 80000 + 500000 + 5000);
	EXPECT(device_do(&device, FTL_DISCARD, 0, 4 * 256, NULL) == 80000 + 4 * 500000 + 5000);
	device_close(&device);
}

/* Two reads of one page each from different dies, sent together; time until both ended. */
static uint64_t two_reads(uint32_t commands_at_once)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t took_ns;

	config.commands_at_once = commands_at_once;
	device_open(&device, &config);
	lay_out(&device, 64);
	device_submit(&device, device_command(&device, FTL_READ, 0, 1, memory));
	device_submit(&device, device_command(&device, FTL_READ, 4, 1, memory + FTL_PAGE_BYTES));
	took_ns = device_drain(&device);
	device_close(&device);
	return took_ns;
}

static void one_command_at_once_overlaps_with_nothing(void)
{
	const uint64_t alone_ns = 50000 + 100000 + 10000 + 20000 + 5000;

	EXPECT(two_reads(1) == 2 * alone_ns);
	EXPECT(two_reads(2) == 50000 + alone_ns);
	EXPECT(two_reads(0) == 50000 + alone_ns);
}

/* A read's data waits for the link while a write of 32 pages crosses it, row by row. */
static uint64_t read_beside_write(uint32_t link_duplex)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *read;
	struct device device;
	uint64_t start_ns;

	config.link_duplex = link_duplex;
	config.cache_pages = 64;
	config.read_command_ns = config.write_command_ns = 0;
	device_open(&device, &config);
	lay_out(&device, 64);
	start_ns = device.now_ns;
	device_submit(&device, device_command(&device, FTL_WRITE, 64, 32, memory));
	read = device_command(&device, FTL_READ, 100, 8, memory + 32 * FTL_PAGE_BYTES);
	device_submit(&device, read);
	while (device_next(&device) != read)
		;
	start_ns = device.now_ns - start_ns;
	device_release(&device, read);
	device_drain(&device);
	device_close(&device);
	return start_ns;
}

static void a_duplex_link_carries_both_ways_at_once(void)
{
	EXPECT(read_beside_write(1) == 8 * 20000 + 5000);
	EXPECT(read_beside_write(0) == (32 + 8) * 20000 + 5000);
}

static void upper_rows_take_longer(void)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t word;

	config.channels = 1;
	config.read_upper_ns = 300000;
	config.program_upper_ns = 4000000;
	device_open(&device, &config);
	fill_uniform(memory, 4, 1);
	device_do(&device, FTL_WRITE, 0, 4, memory);
	/* It was under way while the write was answered, and the flush is answered. */
	EXPECT(device_do(&device, FTL_FLUSH, 0, 0, NULL) == 4 * 10000 + 1000000);
	device_do(&device, FTL_WRITE, 4, 4, memory);
	EXPECT(device_do(&device, FTL_FLUSH, 0, 0, NULL) == 4 * 10000 + 4000000);
	EXPECT(device_read(&device, 0, &word) == 50000 + 100000 + 10000 + 20000 + 5000);
	EXPECT(device_read(&device, 4, &word) == 50000 + 300000 + 10000 + 20000 + 5000);
	device_close(&device);
}

/* A read of the only die, 400 us after a row was sent there to be programmed. */
static uint64_t read_during_program(uint64_t suspend_ns, uint64_t *program_ns)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t start_ns, took_ns, word;

	config.channels = 1;
	config.policy = FTL_READ_FIRST;
	config.suspend_ns = suspend_ns;
	config.read_command_ns = config.write_command_ns = config.flush_command_ns = 0;
	config.link_page_ns = config.response_ns = 0;
	device_open(&device, &config);
	lay_out(&device, 4);
	fill_uniform(memory, 4, 10);
	start_ns = device.now_ns;
	device_do(&device, FTL_WRITE, 4, 4, memory);
	device.now_ns += 400000;
	took_ns = device_read(&device, 0, &word);
	device_do(&device, FTL_FLUSH, 0, 0, NULL);
	*program_ns = device.now_ns - start_ns;
	device_close(&device);
	return took_ns;
}

static void a_program_makes_way_for_a_read_and_goes_on(void)
{
	uint64_t program_ns;

	EXPECT(read_during_program(0, &program_ns) == 640000 + 110000);
	EXPECT(read_during_program(50000, &program_ns) == 50000 + 110000);
	EXPECT(program_ns == 1040000 + 50000 + 110000);
}

static void reads_do_not_suspend_a_program_for_ever(void)
{
	struct ftl_config config = device_config();
	struct ftl_cmd *cmd = NULL;
	struct ftl_stats stats;
	struct device device;
	int reads;

	config.channels = 1;
	config.policy = FTL_READ_FIRST;
	config.suspend_ns = 10000;
	device_open(&device, &config);
	lay_out(&device, 64);
	device_write(&device, 100, 1);
	device_submit(&device, device_command(&device, FTL_FLUSH, 0, 0, NULL));
	for (reads = 0; reads < 200 && !(cmd && cmd->op == FTL_FLUSH); reads++) {
		while ((cmd = device_command(&device, FTL_READ, reads % 16 * 4, 1, memory)))
			device_submit(&device, cmd);
		cmd = device_next(&device);
		device_release(&device, cmd);
	}
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	device_close(&device);
	EXPECT(reads > 10 && reads < 60);
	EXPECT(stats.suspensions >= 1 && stats.suspensions <= 2);
}

/* Time of a write of one page at each of the LBAs, beyond what it takes on its own. */
static void a_write_to_another_unit_merges_one(void)
{
	static const struct { uint32_t lba; uint64_t extra_ns; } write[] = {
		{ 0, 0 }, { 1024, 0 }, { 1, 0 },	/* two units are open */
		{ 2048, 7000000 },			/* the one of 1024 is merged */
		{ 3, 0 }, { 1025, 7000000 }, { 2049, 7000000 },
	};
	struct ftl_config config = device_config();
	struct device device;
	size_t i;

	config.unit_pages = 1024;
	config.open_units = 2;
	config.merge_ns = 7000000;
	device_open(&device, &config);
	for (i = 0; i < sizeof(write) / sizeof(write[0]); i++)
		EXPECT(device_write(&device, write[i].lba, 1) ==
		       60000 + 20000 + 5000 + write[i].extra_ns);
	device_close(&device);
}

static void units_that_are_written_in_order_are_not_merged(void)
{
	struct ftl_config config = device_config();
	struct ftl_stats stats;
	struct device device;
	uint32_t lba;

	config.unit_pages = 256;
	config.open_units = 1;
	device_open(&device, &config);
	fill_uniform(memory, 96, 1);
	for (lba = 0; lba + 96 <= 4096; lba += 96)
		device_do(&device, FTL_WRITE, lba, 96, memory);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.unit_merges == 0);
	device_close(&device);
}

static void without_times_everything_is_done_at_once(void)
{
	struct ftl_config config = {
		.capacity_pages = 4096, .spare_percent = 50, .channels = 2,
		.dies_per_channel = 2, .block_pages = 64, .row_pages = 4, .cache_pages = 32,
		.queue_depth = 4, .command_pages = 128, .log_pages = 64,
	};
	struct ftl_cmd *cmd;
	struct device device;

	device_open(&device, &config);
	device.now_ns = 5;
	fill_uniform(memory, 128, 1);
	cmd = device_command(&device, FTL_WRITE, 0, 128, memory);
	device_submit(&device, cmd);
	EXPECT(ftl_take_done(device.ftl) == cmd);
	EXPECT(ftl_next_ns(device.ftl) == FTL_NEVER);
	device_release(&device, cmd);
	device_close(&device);
}

/* The end times of a stream of commands, the core called at events or only when it must be. */
static uint64_t play_stream(bool every_event)
{
	struct ftl_config config = device_config();
	struct device device;
	uint64_t sum = 0;
	uint32_t i;

	config.queue_depth = 64;
	device_open(&device, &config);
	for (i = 0; i < 60; i++) {
		enum ftl_op op = i % 5 == 4 ? FTL_FLUSH : i % 3 ? FTL_READ : FTL_WRITE;
		struct ftl_cmd *cmd;

		fill_uniform(memory, 32, i);
		cmd = device_command(&device, op, i * 37 % 500, op == FTL_FLUSH ? 0 : 1 + i % 30,
				     memory);
		while (every_event && ftl_next_ns(device.ftl) <= i * 300000ull)
			ftl_run(device.ftl, ftl_next_ns(device.ftl));
		device.now_ns = i * 300000ull;
		device_submit(&device, cmd);
	}
	ftl_run(device.ftl, 1000000000000ull);
	for (i = 0; i < 60; i++) {
		struct ftl_cmd *cmd = ftl_take_done(device.ftl);

		if (!cmd)
			return 0;
		sum = sum * 31 + cmd->due_ns + cmd->op;
	}
	device_close(&device);
	return sum;
}

static void a_late_call_changes_no_time(void)
{
	EXPECT(play_stream(true) != 0);
	EXPECT(play_stream(true) == play_stream(false));
}

const struct test timing_tests[] = {
	TEST(a_read_takes_command_cells_channel_link_response),
	TEST(a_cached_or_unwritten_page_needs_no_flash),
	TEST(a_write_is_done_in_the_cache_and_fua_in_the_flash),
	TEST(a_flush_waits_for_every_cached_page),
	TEST(a_write_larger_than_the_cache_waits_for_room),
	TEST(sequential_data_is_read_from_all_dies_at_once),
	TEST(dies_of_one_channel_share_it),
	TEST(read_first_overtakes_queued_programs_and_fifo_does_not),
	TEST(reads_cannot_starve_a_program),
	TEST(the_foreground_overtakes_what_has_not_begun),
	TEST(of_the_same_pages_nothing_overtakes),
	TEST(the_foreground_cannot_starve_the_background),
	TEST(a_discard_takes_time_by_its_size),
	TEST(one_command_at_once_overlaps_with_nothing),
	TEST(a_duplex_link_carries_both_ways_at_once),
	TEST(upper_rows_take_longer),
	TEST(a_program_makes_way_for_a_read_and_goes_on),
	TEST(reads_do_not_suspend_a_program_for_ever),
	TEST(a_write_to_another_unit_merges_one),
	TEST(units_that_are_written_in_order_are_not_merged),
	TEST(without_times_everything_is_done_at_once),
	TEST(a_late_call_changes_no_time),
	{ NULL, NULL },
};
