// SPDX-License-Identifier: GPL-2.0-only
/*
 * The profiles against what is said of real devices.
 */
#include <stdlib.h>

#include "suites.h"
#include "figures.h"
#include "measure.h"

static bool is_near(const struct figure *figure)
{
	double measured = figure_measure(figure);
	double off = figure_off_percent(figure, measured);

	if (off <= figure->percent && off >= -figure->percent)
		return true;
	fprintf(stderr, "%s, kind %d, %u KB: %.2f, real ones %.2f (%s)\n", figure->profile,
		figure->kind, figure->load.pages * 4, measured, figure->real, figure->source);
	return false;
}

static void profiles_meet_what_is_said_of_real_devices(void)
{
	size_t i;

	for (i = 0; i < figures_count; i++) {
		if (figures[i].real)
			EXPECT(is_near(&figures[i]));
	}
}

static void who_is_far_from_a_real_device_says_why(void)
{
	size_t i;

	for (i = 0; i < figures_count; i++)
		EXPECT(figures[i].percent <= 15 || figures[i].reason);
}

/* D. Park's figures of a UFS 2.1 part: over 4 GB reads are as much slower as its map misses. */
static void random_reads_fall_with_the_range(void)
{
	const struct load narrow = { FTL_READ, RANDOM, 1, 1, 4000, 1024 };
	const struct load wide = { FTL_READ, RANDOM, 1, 1, 4000, 4096 };
	double share = measure_rate("ufs", &wide) / measure_rate("ufs", &narrow);

	EXPECT(share > 0.7 && share < 0.9);
}

static double busy_dies(const char *profile, enum ftl_op op, uint32_t pages)
{
	struct load load = { op, SEQUENTIAL, pages, 1, 4096 / pages, 64 };
	struct ftl_stats stats;
	double die_ns = 0, ns = 0;
	struct device device;
	uint32_t dies;

	if (!load_open(&device, profile, 64))
		return 0;
	ftl_reset_stats(device.ftl);
	load_mb_s(&device, &load);
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
	TEST(profiles_meet_what_is_said_of_real_devices),
	TEST(who_is_far_from_a_real_device_says_why),
	TEST(random_reads_fall_with_the_range),
	TEST(reads_use_all_chips_in_steps),
	TEST(writes_use_all_chips),
	{ NULL, NULL },
};
