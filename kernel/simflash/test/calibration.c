// SPDX-License-Identifier: GPL-2.0-only
/*
 * The profiles against what is said of real devices.
 */
#include <stdlib.h>

#include "check.h"
#include "load.h"

static double measure(const char *profile, const struct load *load)
{
	struct device device;
	double rate;

	if (!load_open(&device, profile, load->area_mib))
		return 0;
	rate = load_mb_s(&device, load);
	device_close(&device);
	return rate;
}

/*
 * Figures of real devices, whose sources are in the profiles. Random reads are of an area
 * that the map's cache holds where the source's was small, and of a larger one else.
 */
static const struct { const char *profile; struct load load; double mb_s; int percent; } figure[] = {
	{ "emmc", { FTL_WRITE, SEQUENTIAL, 128, 1, 400, 128 }, 54.5, 5 },	/* Galaxy S5 */
	{ "emmc", { FTL_WRITE, RANDOM, 1, 1, 4000, 128 }, 10.4, 5 },
	{ "emmc", { FTL_READ, RANDOM, 1, 1, 4000, 1024 }, 9, 5 },	/* seeds/002 2.1.2 */
	{ "emmc-cqe", { FTL_READ, SEQUENTIAL, 128, 1, 400, 128 }, 250, 5 },
	{ "emmc-cqe", { FTL_WRITE, SEQUENTIAL, 128, 1, 400, 128 }, 125, 5 },
	{ "emmc-cqe", { FTL_READ, RANDOM, 1, 32, 4000, 128 }, 45.1, 17 },	/* 11,000 a second */
	{ "emmc-cqe", { FTL_WRITE, RANDOM, 1, 32, 4000, 128 }, 53.2, 15 },	/* 13,000 */
	{ "emmc-cqe", { FTL_READ, RANDOM, 1, 1, 4000, 128 }, 29.8, 18 },
	{ "ufs", { FTL_READ, RANDOM, 1, 1, 4000, 1024 }, 16, 5 },
	{ "ufs", { FTL_READ, RANDOM, 1, 32, 4000, 1024 }, 77.8, 15 },	/* 19,000 */
	{ "ufs", { FTL_WRITE, RANDOM, 1, 32, 4000, 128 }, 57.3, 15 },	/* 14,000 */
	{ "ufs", { FTL_READ, SEQUENTIAL, 128, 1, 400, 128 }, 350, 5 },
	{ "ufs", { FTL_WRITE, SEQUENTIAL, 128, 1, 400, 128 }, 150, 5 },
	{ "ufs3", { FTL_READ, SEQUENTIAL, 128, 16, 2000, 512 }, 2100, 5 },
	{ "ufs3", { FTL_WRITE, SEQUENTIAL, 128, 16, 2000, 512 }, 1200, 10 },
	{ "ufs3", { FTL_WRITE, RANDOM, 1, 32, 4000, 512 }, 287, 15 },	/* 70,000 */
	{ "sd", { FTL_READ, RANDOM, 1, 1, 4000, 128 }, 11.1, 15 },
	{ "sd", { FTL_READ, RANDOM, 4, 1, 2000, 128 }, 27.4, 15 },
	{ "sd", { FTL_READ, SEQUENTIAL, 32, 1, 1000, 128 }, 55.9, 15 },
	{ "sd", { FTL_READ, SEQUENTIAL, 128, 1, 400, 128 }, 64.4, 5 },
	{ "sd", { FTL_WRITE, RANDOM, 1, 1, 4000, 128 }, 3.7, 15 },
	{ "sd", { FTL_WRITE, SEQUENTIAL, 128, 1, 400, 128 }, 17.8, 5 },
	{ "usb-stick", { FTL_READ, RANDOM, 1, 1, 2000, 512 }, 4.14, 15 },
	{ "usb-stick", { FTL_WRITE, RANDOM, 1, 1, 2000, 512 }, 0.58, 15 },
	{ "usb-stick", { FTL_READ, SEQUENTIAL, 128, 1, 400, 128 }, 129, 15 },
	{ "usb-stick", { FTL_WRITE, SEQUENTIAL, 128, 1, 400, 512 }, 97, 15 },
	{ "nvme-dramless", { FTL_READ, RANDOM, 1, 1, 4000, 512 }, 57.5, 15 },
	/* A PC's kernel needs less than LOAD_HOST_NS, which is most of this. */
	{ "nvme-dramless", { FTL_WRITE, RANDOM, 1, 1, 4000, 512 }, 186, 30 },
	{ "nvme-dramless", { FTL_READ, RANDOM, 1, 250, 20000, 512 }, 1229, 15 },	/* 300,000 */
	{ "nvme-dramless", { FTL_WRITE, RANDOM, 1, 250, 20000, 512 }, 983, 15 },	/* 240,000 */
	{ "nvme-dramless", { FTL_READ, SEQUENTIAL, 128, 32, 2000, 512 }, 2400, 5 },
	{ "nvme-dramless", { FTL_WRITE, SEQUENTIAL, 128, 32, 2000, 512 }, 1850, 5 },
};

static void profiles_meet_what_is_said_of_real_devices(void)
{
	bool good = true;
	size_t i;

	for (i = 0; i < sizeof(figure) / sizeof(figure[0]); i++) {
		const struct load *load = &figure[i].load;
		double rate = measure(figure[i].profile, load);
		double off = (rate / figure[i].mb_s - 1) * 100;

		if (off <= figure[i].percent && off >= -figure[i].percent)
			continue;
		good = false;
		fprintf(stderr, "%s: %s %s of %u KB at depth %u: %.1f MB/s, real ones %.1f\n",
			figure[i].profile, load->pattern == RANDOM ? "random" : "sequential",
			load->op == FTL_READ ? "read" : "write", load->pages * 4, load->depth, rate,
			figure[i].mb_s);
	}
	EXPECT(good);
}

/* The rate of the last sixteenth of so much that is written without a rest. */
static double sustained(const char *profile, uint32_t mib)
{
	const struct load part = { FTL_WRITE, SEQUENTIAL, 128, 16, mib / 8, 4096 };
	struct device device;
	double rate = 0;
	int i;

	if (!load_open(&device, profile, 64))
		return 0;
	for (i = 0; i < 16; i++)
		rate = load_mb_s(&device, &part);
	device_close(&device);
	return rate;
}

static void beyond_its_write_buffer_a_device_falls_to_a_fraction(void)
{
	EXPECT_NEAR(sustained("ufs3", 8192), 520, 10);
	EXPECT_NEAR(sustained("nvme-dramless", 12288), 466, 10);
}

/* D. Park's figures of a UFS 2.1 part: over 4 GB reads are as much slower as its map misses. */
static void random_reads_fall_with_the_range(void)
{
	const struct load narrow = { FTL_READ, RANDOM, 1, 1, 4000, 1024 };
	const struct load wide = { FTL_READ, RANDOM, 1, 1, 4000, 4096 };
	double share = measure("ufs", &wide) / measure("ufs", &narrow);

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
	TEST(beyond_its_write_buffer_a_device_falls_to_a_fraction),
	TEST(random_reads_fall_with_the_range),
	TEST(reads_use_all_chips_in_steps),
	TEST(writes_use_all_chips),
	{ NULL, NULL },
};
