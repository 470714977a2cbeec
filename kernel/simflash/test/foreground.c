// SPDX-License-Identifier: GPL-2.0-only
/* The foreground beside garbage collection: its programs go first, and it has rows of its own. */
#include "suites.h"
#include "../ftl/internal.h"
#include "device.h"
#include "invariants.h"

#define BLOCK_ROWS 8

static char memory[128 * FTL_PAGE_BYTES];

static struct ftl_config foreground_config(void)
{
	struct ftl_config config = device_config();

	config.policy = FTL_FG_AWARE;
	config.channels = 1;
	config.capacity_pages = 1024;
	config.spare_percent = 10;
	config.block_pages = BLOCK_ROWS * 4;
	config.read_command_ns = config.write_command_ns = config.flush_command_ns = 0;
	config.response_ns = 0;
	return config;
}

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % limit;
}

static void overwrite(struct device *device, uint64_t *state, uint32_t writes)
{
	while (writes--)
		device_write(device, random_below(state, device->config.capacity_pages), *state);
}

/* All of it is written, and pages all over it are written again. */
static void open_aged(struct device *device, const struct ftl_config *config, uint64_t *state)
{
	uint32_t lba;

	device_open(device, config);
	for (lba = 0; lba < config->capacity_pages; lba += 32) {
		fill_uniform(memory, 32, lba + 1);
		device_do(device, FTL_WRITE, lba, 32, memory);
	}
	overwrite(device, state, 4000);
	device_drain(device);
}

static struct ftl_cmd *submit(struct device *device, enum ftl_op op, uint32_t lba,
			      uint32_t pages, bool foreground)
{
	struct ftl_cmd *cmd;

	if (op == FTL_WRITE)
		fill_uniform(memory, pages, lba + 1);
	cmd = device_command(device, op, lba, pages, memory);
	if (!cmd)
		return NULL;
	cmd->foreground = foreground;
	device_submit(device, cmd);
	return cmd;
}

static uint64_t until_it_ends(struct device *device, struct ftl_cmd *cmd)
{
	uint64_t start_ns = device->now_ns;
	struct ftl_cmd *done;

	do {
		done = device_next(device);
		device_release(device, done);
	} while (done != cmd);
	return device->now_ns - start_ns;
}

static bool collection_is_urgent(const struct device *device)
{
	const struct ftl_die *die = &device->ftl->die[0];

	return die->collector.busy && die->collector.class != FTL_CLASS_BACKGROUND &&
	       die->serving != &die->collector.operation;
}

/* Rows of the foreground's are to be in flash while urgent collection is queued at the die. */
static uint64_t write_beside_urgent_collection(uint32_t collect_yields, uint64_t seed)
{
	struct ftl_config config = foreground_config();
	struct device device;
	struct ftl_cmd *cmd;
	uint64_t state = seed, took_ns;

	config.collect_yields = collect_yields;
	config.queue_depth = 32;
	open_aged(&device, &config, &state);
	while (!collection_is_urgent(&device)) {
		if (submit(&device, FTL_WRITE, random_below(&state, 1024), 1, false))
			continue;
		cmd = device_next(&device);
		device_release(&device, cmd);
	}
	while (device.in_flight == config.queue_depth)
		device_release(&device, device_next(&device));
	cmd = device_command(&device, FTL_WRITE, 8, 16, memory);
	cmd->fua = cmd->foreground = true;
	device_submit(&device, cmd);
	took_ns = until_it_ends(&device, cmd);
	device_drain(&device);
	ftl_invariant(!broken_invariant(device.ftl));
	device_close(&device);
	return took_ns;
}

static void programs_of_the_foreground_go_before_urgent_collection(void)
{
	uint64_t seed, as_they_come_ns = 0, first_ns = 0;

	for (seed = 1; seed <= 20; seed++) {
		as_they_come_ns += write_beside_urgent_collection(0, seed);
		first_ns += write_beside_urgent_collection(1, seed);
	}
	EXPECT(first_ns < as_they_come_ns);
}

/*
 * The foreground overwrites pages all over a full device, as fast as it can. There are no
 * rows for it but those that collection makes, so collection is not put off for ever. The
 * core's own invariant counts what goes before each of its operations.
 */
static void collection_is_not_put_off_for_ever(void)
{
	struct ftl_config config = foreground_config();
	struct ftl_stats stats;
	struct device device;
	uint64_t state = 3;
	uint32_t sent = 0;
	struct ftl_cmd *cmd;

	config.collect_yields = 1;
	open_aged(&device, &config, &state);
	ftl_reset_stats(device.ftl);
	while (sent < 5000) {
		if (submit(&device, FTL_WRITE, random_below(&state, 1024), 1, true)) {
			sent++;
			continue;
		}
		cmd = device_next(&device);
		EXPECT(cmd);
		if (!cmd)
			break;
		device_release(&device, cmd);
	}
	device_drain(&device);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.commands[FTL_WRITE] == 5000 && !stats.failed);
	EXPECT(stats.collected_blocks > 100);
	EXPECT(stats.collect_passed_over > 100);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

/* The background writes all it can; now and then @rows rows of the foreground's arrive at once. */
static uint64_t rows_beside_the_background(uint32_t front_rows, uint32_t rows, uint32_t *scarce)
{
	struct ftl_config config = foreground_config();
	struct device device;
	struct ftl_cmd *cmd;
	uint64_t state = 5, took_ns = 0;
	uint32_t round;

	config.collect_yields = 1;
	config.front_rows = front_rows;
	config.cache_pages = 64;
	open_aged(&device, &config, &state);
	*scarce = 0;
	for (round = 0; round < 400; round++) {
		while (device.in_flight < 4)
			submit(&device, FTL_WRITE, random_below(&state, 1020), 4, false);
		*scarce += device.ftl->free_rows < 4;
		if (rows && round % 40 == 39) {
			cmd = submit(&device, FTL_WRITE, random_below(&state, 64) * 4, 4 * rows,
				     true);
			took_ns += until_it_ends(&device, cmd);
			continue;
		}
		cmd = device_next(&device);
		device_release(&device, cmd);
	}
	device_drain(&device);
	ftl_invariant(!broken_invariant(device.ftl));
	device_close(&device);
	return took_ns;
}

static void the_last_free_rows_are_the_foregrounds(void)
{
	uint64_t without_ns, with_ns;
	uint32_t without, with;

	without_ns = rows_beside_the_background(0, 2, &without);
	with_ns = rows_beside_the_background(4, 2, &with);
	EXPECT(4 * with_ns < without_ns);
	rows_beside_the_background(0, 0, &without);
	rows_beside_the_background(4, 0, &with);
	EXPECT(2 * with < without);
}

/* Nothing can be collected, and fewer rows are free than the foreground is to have. */
static void nothing_is_held_where_no_space_will_come(void)
{
	struct ftl_config config = foreground_config();
	struct ftl_stats stats;
	struct device device;
	uint32_t lba;

	config.front_rows = 1000000;
	device_open(&device, &config);
	for (lba = 0; lba < config.capacity_pages; lba += 32) {
		fill_uniform(memory, 32, lba + 1);
		device_do(&device, FTL_WRITE, lba, 32, memory);
	}
	device_drain(&device);
	EXPECT(!device.in_flight && !device.ftl->held && !device.ftl->promised_rows);
	ftl_read_stats(device.ftl, &stats);
	EXPECT(stats.commands[FTL_WRITE] == config.capacity_pages / 32 && !stats.failed);
	device_close(&device);
}

/* A device whose write of the background is held; that write. */
static struct ftl_cmd *open_with_a_held_write(struct device *device, struct ftl_config *config,
					      uint64_t *state)
{
	struct ftl_cmd *last = NULL;

	config->front_rows = 12;
	open_aged(device, config, state);
	while (!device->ftl->held) {
		if (device->in_flight < config->queue_depth - 1)
			last = submit(device, FTL_WRITE, 512 + random_below(state, 500), 4, false);
		else
			device_release(device, device_next(device));
	}
	return last;
}

static void a_reader_does_not_hold_writes_for_ever(void)
{
	struct ftl_config config = foreground_config();
	struct ftl_cmd *done, *write, *read = NULL;
	struct device device;
	uint64_t state = 9;
	uint32_t reads = 0;

	write = open_with_a_held_write(&device, &config, &state);
	do {
		if (!read)
			read = submit(&device, FTL_READ, random_below(&state, 400), 1, true);
		done = device_next(&device);
		device_release(&device, done);
		if (done == read) {
			read = NULL;
			reads++;
		}
	} while (done != write && reads < 5000);
	EXPECT(done == write);
	device_drain(&device);
	device_close(&device);
}

static bool is_under_way(const struct device *device, const struct ftl_cmd *cmd)
{
	const struct ftl_cmd *each;

	for (each = device->ftl->arrived.head; each; each = each->next) {
		if (each == cmd)
			return true;
	}
	return false;
}

static void what_does_not_depend_on_a_held_write_passes(void)
{
	static const struct { enum ftl_op op; uint32_t pages; bool foreground; } other[] = {
		{ FTL_READ, 4, false }, { FTL_FLUSH, 0, false }, { FTL_DISCARD, 4, false },
		{ FTL_WRITE, 4, true },
	};
	size_t i;

	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct ftl_config config = foreground_config();
		struct ftl_cmd *write, *cmd;
		struct device device;
		uint64_t state = 11;

		config.queue_depth = 16;
		write = open_with_a_held_write(&device, &config, &state);
		cmd = submit(&device, other[i].op, 16, other[i].pages, other[i].foreground);
		while (cmd && is_under_way(&device, cmd) && is_under_way(&device, write))
			device_release(&device, device_next(&device));
		EXPECT(cmd && !is_under_way(&device, cmd) && is_under_way(&device, write));
		device_drain(&device);
		device_close(&device);
	}
}

static void of_the_same_pages_only_reads_pass_a_held_write(void)
{
	struct ftl_config config = foreground_config();
	struct ftl_cmd *write, *read, *later, *done;
	struct device device;
	uint64_t state = 11, word;

	config.queue_depth = 16;
	write = open_with_a_held_write(&device, &config, &state);
	read = submit(&device, FTL_READ, write->lba, 1, true);
	do {
		done = device_next(&device);
		device_release(&device, done);
	} while (done != read);
	EXPECT(is_under_way(&device, write));
	later = submit(&device, FTL_WRITE, write->lba, 1, true);
	while (is_under_way(&device, write)) {
		EXPECT(is_under_way(&device, later));
		device_release(&device, device_next(&device));
	}
	device_drain(&device);
	device_read(&device, write->lba, &word);
	EXPECT(!broken_invariant(device.ftl));
	device_close(&device);
}

static void without_a_policy_that_knows_the_foreground_they_are_refused(void)
{
	struct ftl_config config = foreground_config();

	config.collect_yields = config.front_rows = 1;
	EXPECT(!ftl_config_error(&config));
	config.policy = FTL_READ_FIRST;
	EXPECT(ftl_config_error(&config));
	config.collect_yields = 0;
	EXPECT(ftl_config_error(&config));
	config.front_rows = 0;
	EXPECT(!ftl_config_error(&config));
}

const struct test foreground_tests[] = {
	TEST(programs_of_the_foreground_go_before_urgent_collection),
	TEST(collection_is_not_put_off_for_ever),
	TEST(the_last_free_rows_are_the_foregrounds),
	TEST(nothing_is_held_where_no_space_will_come),
	TEST(a_reader_does_not_hold_writes_for_ever),
	TEST(what_does_not_depend_on_a_held_write_passes),
	TEST(of_the_same_pages_only_reads_pass_a_held_write),
	TEST(without_a_policy_that_knows_the_foreground_they_are_refused),
	{ NULL, NULL },
};
