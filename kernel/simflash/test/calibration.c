// SPDX-License-Identifier: GPL-2.0-only
/*
 * The profiles against the figures the papers give for real devices, in
 * virtual time: exact, and without the host. HOST_NS stands for what the
 * guest's kernel adds to each command at depth 1.
 */
#include <stdlib.h>

#include "check.h"
#include "device.h"
#include "profile.h"

#define HOST_NS 20000
#define AREA_PAGES (64 * 256)

static char memory[32][128 * FTL_PAGE_BYTES];

enum pattern { SEQUENTIAL, RANDOM };

struct load {
	enum ftl_op op;
	enum pattern pattern;
	uint32_t pages;
	uint32_t depth;
	uint32_t commands;
};

static uint32_t next_lba(const struct load *load, uint32_t number, uint64_t *state)
{
	uint32_t slots = AREA_PAGES / load->pages;

	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	if (load->pattern == SEQUENTIAL)
		return number % slots * load->pages;
	return (*state >> 33) % slots * load->pages;
}

static void submit(struct device *device, const struct load *load, uint32_t number,
		   uint64_t *state)
{
	uint32_t lba = next_lba(load, number, state);
	char *buffer = memory[number % 32];

	fill_uniform(buffer, load->pages, number);
	device_submit(device, device_command(device, load->op, lba, load->pages, buffer));
}

/* 10^6 bytes a second, flash work of the last writes included. */
static double mb_s(struct device *device, const struct load *load)
{
	uint64_t start_ns = device->now_ns;
	uint64_t state = 1;
	uint32_t sent = 0;
	struct ftl_cmd *cmd;

	while (sent < load->depth)
		submit(device, load, sent++, &state);
	while ((cmd = device_next(device))) {
		device_release(device, cmd);
		if (sent == load->commands)
			continue;
		device->now_ns += HOST_NS;
		submit(device, load, sent++, &state);
	}
	return (double)load->commands * load->pages * FTL_PAGE_BYTES * 1000 /
	       (device->now_ns - start_ns);
}

static bool open_profile(struct device *device, const char *name)
{
	const struct load fill = { FTL_WRITE, SEQUENTIAL, 128, 1, AREA_PAGES / 128 };
	struct ftl_config config;

	if (!profile_read(name, &config))
		return false;
	device_open(device, &config);
	mb_s(device, &fill);
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
	return true;
}

static double measure(const char *profile, struct load load)
{
	struct device device;
	double rate;

	if (!open_profile(&device, profile))
		return 0;
	rate = mb_s(&device, &load);
	device_close(&device);
	return rate;
}

static void emmc_meets_the_galaxy_s5(void)
{
	EXPECT_NEAR(measure("emmc", (struct load){ FTL_WRITE, SEQUENTIAL, 128, 1, 200 }), 54.5, 5);
	EXPECT_NEAR(measure("emmc", (struct load){ FTL_WRITE, SEQUENTIAL, 128, 2, 200 }), 54.5, 5);
	EXPECT_NEAR(measure("emmc", (struct load){ FTL_WRITE, RANDOM, 1, 1, 2000 }), 10.4, 5);
}

static void random_reads_meet_the_dissertation(void)
{
	EXPECT_NEAR(measure("emmc", (struct load){ FTL_READ, RANDOM, 1, 1, 2000 }), 9, 5);
	EXPECT_NEAR(measure("ufs", (struct load){ FTL_READ, RANDOM, 1, 1, 2000 }), 16, 5);
}

static void ufs_meets_its_maker(void)
{
	EXPECT_NEAR(measure("ufs", (struct load){ FTL_READ, SEQUENTIAL, 128, 1, 400 }), 350, 5);
	EXPECT_NEAR(measure("ufs", (struct load){ FTL_WRITE, SEQUENTIAL, 128, 2, 400 }), 150, 5);
	EXPECT_NEAR(measure("ufs", (struct load){ FTL_READ, RANDOM, 1, 32, 4000 }), 77.8, 15);
	EXPECT_NEAR(measure("ufs", (struct load){ FTL_WRITE, RANDOM, 1, 32, 4000 }), 57.3, 15);
}

static void ufs_reads_sequentially_more_than_twice_as_fast(void)
{
	struct load load = { FTL_READ, SEQUENTIAL, 128, 1, 400 };

	EXPECT(measure("ufs", load) > 2 * measure("emmc", load));
	load.depth = 2;
	EXPECT(measure("ufs", load) > 2 * measure("emmc", load));
}

/* Average number of dies busy while any is. */
static double busy_dies(const char *profile, enum ftl_op op, uint32_t pages)
{
	struct load load = { op, SEQUENTIAL, pages, 1, 4096 / pages };
	struct ftl_stats stats;
	double die_ns = 0, ns = 0;
	struct device device;
	uint32_t dies;

	if (!open_profile(&device, profile))
		return 0;
	ftl_reset_stats(device.ftl);
	mb_s(&device, &load);
	ftl_read_stats(device.ftl, &stats);
	device_close(&device);
	for (dies = 1; dies <= FTL_MAX_DIES; dies++) {
		die_ns += (double)dies * stats.busy_ns[dies];
		ns += stats.busy_ns[dies];
	}
	return die_ns / ns;
}

static void reads_use_all_chips_in_steps(void)
{
	static const struct { const char *profile; double chips; } device[] = {
		{ "emmc", 4 }, { "ufs", 8 },
	};
	size_t i;

	for (i = 0; i < 2; i++) {
		double before = busy_dies(device[i].profile, FTL_READ, 1);
		uint32_t pages;

		EXPECT_NEAR(before, 1, 1);
		for (pages = 2; pages <= 128; pages *= 2) {
			double now = busy_dies(device[i].profile, FTL_READ, pages);

			EXPECT(now >= before * 0.99);
			before = now;
		}
		EXPECT_NEAR(before, device[i].chips, 15);
	}
}

static void writes_use_all_chips(void)
{
	EXPECT_NEAR(busy_dies("emmc", FTL_WRITE, 128), 4, 15);
	EXPECT_NEAR(busy_dies("ufs", FTL_WRITE, 128), 8, 15);
}

const struct test calibration_tests[] = {
	TEST(emmc_meets_the_galaxy_s5),
	TEST(random_reads_meet_the_dissertation),
	TEST(ufs_meets_its_maker),
	TEST(ufs_reads_sequentially_more_than_twice_as_fast),
	TEST(reads_use_all_chips_in_steps),
	TEST(writes_use_all_chips),
	{ NULL, NULL },
};
