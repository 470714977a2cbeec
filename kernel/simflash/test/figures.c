// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "figures.h"
#include "measure.h"

#define SEQ(op, kib, depth, requests, area) { op, SEQUENTIAL, (kib) / 4, depth, requests, area }
#define RAND(op, kib, depth, requests, area) { op, RANDOM, (kib) / 4, depth, requests, area }

/* Sources. */
#define S5 "Galaxy S5, QASIO's slides"
#define DISSERTATION "the dissertation, 2.1.2"
#define SAMSUNG_8GB "Samsung 8 GB, T. Kaiser 2018"
#define EMMC_51 "maker's, eMMC 5.1, 64 GB"
#define UFS_20 "maker's, UFS 2.0"
#define UFS_31 "maker's, UFS 3.1"
#define ULTRA_A1 "SanDisk Ultra A1 32 GB, T. Kaiser 2018"
#define S75 "Lexar S75, acex.com.au 2017"
#define SN550 "maker's, SN550 500 GB"

/* Reasons. */
#define OTHER_PART "another part: the profile is a Galaxy S5, which writes 54.5 MB/s and whose class reads 91 to 217"
#define NO_ROOM "11,000 reads a second in all and 144 us for one alone leave room for no serial part: between both"
#define WRITE_THROUGH "that card takes 1.0 ms for 4 KB, 1.9 for 16 and 8.7 for 128, as if it had no write cache; here a write ends when its last page is in one"
#define HOST_TIME "most of it is the host's 20 us, of which a PC needs less"
#define WHOLE_FSYNC "the source is a whole fsync, from memory; here FLUSH takes two programs of the mean time of all pages, data and map, where a device is free to use its fast pages"

/*
 * Random reads are of an area that the map's cache holds where the source's was small,
 * and of a larger one else.
 */
const struct figure figures[] = {
	{ "emmc", RATE, SEQ(FTL_WRITE, 512, 1, 400, 128), 54.5, 5, S5, NULL },
	{ "emmc", RATE, RAND(FTL_WRITE, 4, 1, 4000, 128), 10.4, 5, S5, NULL },
	{ "emmc", RATE, RAND(FTL_READ, 4, 1, 4000, 1024), 9, 5, DISSERTATION, NULL },
	{ "emmc", RATE, SEQ(FTL_READ, 128, 1, 800, 128), 118, 15, SAMSUNG_8GB, NULL },
	{ "emmc", RATE, RAND(FTL_READ, 128, 1, 800, 128), 114, 15, SAMSUNG_8GB, NULL },
	{ "emmc", RATE, SEQ(FTL_READ, 1024, 1, 200, 128), 133, 40, SAMSUNG_8GB, OTHER_PART },
	{ "emmc", RATE, RAND(FTL_READ, 1024, 1, 200, 128), 130, 40, SAMSUNG_8GB, OTHER_PART },
	{ "emmc", RATE, SEQ(FTL_WRITE, 1024, 1, 200, 128), 47.6, 15, SAMSUNG_8GB, NULL },
	{ "emmc", RATE, RAND(FTL_WRITE, 1024, 1, 200, 128), 45.7, 20, SAMSUNG_8GB, OTHER_PART },
	{ "emmc", FLUSH_MS, .source = "an insert by WAL on a phone takes 6.4 ms (ATC'13), of which FLUSH is a part" },
	{ "emmc", BESIDE_MS, .source = NULL },

	{ "emmc-cqe", RATE, SEQ(FTL_READ, 512, 1, 400, 128), 250, 5, EMMC_51, NULL },
	{ "emmc-cqe", RATE, SEQ(FTL_WRITE, 512, 1, 400, 128), 125, 5, EMMC_51, NULL },
	{ "emmc-cqe", RATE, RAND(FTL_READ, 4, 32, 4000, 128), 45.1, 17, EMMC_51 ", 11,000 a second", NO_ROOM },
	{ "emmc-cqe", RATE, RAND(FTL_WRITE, 4, 32, 4000, 128), 53.2, 15, EMMC_51 ", 13,000", NULL },
	{ "emmc-cqe", RATE, RAND(FTL_READ, 4, 1, 4000, 128), 29.8, 18, "HS400ES, B. Wang 2019", NO_ROOM },
	{ "emmc-cqe", FLUSH_MS, .source = NULL },
	{ "emmc-cqe", BESIDE_MS, .source = NULL },

	{ "ufs", RATE, RAND(FTL_READ, 4, 1, 4000, 1024), 16, 5, DISSERTATION, NULL },
	{ "ufs", RATE, RAND(FTL_READ, 4, 32, 4000, 1024), 77.8, 15, UFS_20 ", 19,000 a second", NULL },
	{ "ufs", RATE, RAND(FTL_WRITE, 4, 32, 4000, 128), 57.3, 15, UFS_20 ", 14,000", NULL },
	{ "ufs", RATE, SEQ(FTL_READ, 512, 1, 400, 128), 350, 5, UFS_20, NULL },
	{ "ufs", RATE, SEQ(FTL_WRITE, 512, 1, 400, 128), 150, 5, UFS_20, NULL },
	{ "ufs", FLUSH_MS, .real = 1.29, .percent = 50, .source = "fsync on a Galaxy S6, Won et al., FAST'18", .reason = WHOLE_FSYNC },
	{ "ufs", BESIDE_MS, .source = NULL },

	{ "ufs3", RATE, SEQ(FTL_READ, 512, 16, 2000, 512), 2100, 5, UFS_31, NULL },
	{ "ufs3", RATE, SEQ(FTL_WRITE, 512, 16, 2000, 512), 1200, 10, UFS_31, NULL },
	{ "ufs3", RATE, RAND(FTL_WRITE, 4, 32, 4000, 512), 287, 15, UFS_31 ", 70,000", NULL },
	{ "ufs3", RATE, RAND(FTL_READ, 4, 32, 4000, 512), 410, 15, UFS_31 ", 100,000", NULL },
	{ "ufs3", BUFFER_GB, .real = 4, .percent = 15, .source = "\"e.g. 4GB\", criticallink" },
	{ "ufs3", BEYOND_MB_S, .real = 557, .percent = 15, .source = "Kioxia 256 GB, Radxa 2026" },
	{ "ufs3", FLUSH_MS, .source = NULL },
	{ "ufs3", BESIDE_MS, .source = NULL },

	{ "sd", RATE, SEQ(FTL_READ, 4, 1, 4000, 128), 13.3, 15, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_READ, 16, 1, 2000, 128), 30.9, 17, ULTRA_A1, "the card reads ahead, which saves some 40 us" },
	{ "sd", RATE, SEQ(FTL_READ, 128, 1, 1000, 128), 55.9, 15, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_READ, 512, 1, 400, 128), 64.4, 5, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_READ, 1024, 1, 200, 128), 66.1, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_READ, 4, 1, 4000, 128), 11.1, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_READ, 16, 1, 2000, 128), 27.4, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_READ, 128, 1, 1000, 128), 54.5, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_READ, 1024, 1, 200, 128), 65.9, 15, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_WRITE, 4, 1, 4000, 128), 4.1, 15, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_WRITE, 16, 1, 2000, 128), 8.0, 70, ULTRA_A1, WRITE_THROUGH },
	{ "sd", RATE, SEQ(FTL_WRITE, 128, 1, 1000, 128), 14.6, 30, ULTRA_A1, WRITE_THROUGH },
	{ "sd", RATE, SEQ(FTL_WRITE, 512, 1, 400, 128), 17.8, 5, ULTRA_A1, NULL },
	{ "sd", RATE, SEQ(FTL_WRITE, 1024, 1, 200, 128), 16.2, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_WRITE, 4, 1, 4000, 128), 3.7, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_WRITE, 16, 1, 2000, 128), 8.7, 55, ULTRA_A1, WRITE_THROUGH },
	{ "sd", RATE, RAND(FTL_WRITE, 128, 1, 1000, 128), 15.0, 20, ULTRA_A1, WRITE_THROUGH },
	{ "sd", RATE, RAND(FTL_WRITE, 512, 1, 400, 128), 16.7, 15, ULTRA_A1, NULL },
	{ "sd", RATE, RAND(FTL_WRITE, 1024, 1, 200, 128), 17.8, 15, ULTRA_A1, NULL },
	{ "sd", FLUSH_MS, .source = NULL },
	{ "sd", BESIDE_MS, .source = NULL },

	{ "usb-stick", RATE, RAND(FTL_READ, 4, 1, 2000, 512), 4.14, 15, S75, NULL },
	{ "usb-stick", RATE, RAND(FTL_WRITE, 4, 1, 2000, 512), 0.58, 15, S75, NULL },
	{ "usb-stick", RATE, SEQ(FTL_READ, 512, 1, 400, 128), 129, 15, S75, NULL },
	{ "usb-stick", RATE, SEQ(FTL_WRITE, 512, 1, 400, 512), 97, 15, S75, NULL },
	{ "usb-stick", RATE, SEQ(FTL_READ, 1024, 1, 200, 128), 136, 15, S75, NULL },
	{ "usb-stick", RATE, SEQ(FTL_WRITE, 1024, 1, 200, 512), 98, 15, S75, NULL },
	{ "usb-stick", FLUSH_MS, .source = NULL },
	{ "usb-stick", BESIDE_MS, .source = NULL },

	{ "nvme-dramless", RATE, RAND(FTL_READ, 4, 1, 4000, 512), 57.5, 15, "two drives on a Pi 5, J. Geerling 2024", NULL },
	{ "nvme-dramless", RATE, RAND(FTL_WRITE, 4, 1, 4000, 512), 186, 30, "Samsung PM991a on a Pi 5, the same", HOST_TIME },
	{ "nvme-dramless", RATE, RAND(FTL_READ, 4, 250, 20000, 512), 1229, 15, SN550 ", 300,000 a second", NULL },
	{ "nvme-dramless", RATE, RAND(FTL_WRITE, 4, 250, 20000, 512), 983, 15, SN550 ", 240,000", NULL },
	{ "nvme-dramless", RATE, SEQ(FTL_READ, 512, 32, 2000, 512), 2400, 5, SN550, NULL },
	{ "nvme-dramless", RATE, SEQ(FTL_WRITE, 512, 32, 2000, 512), 1850, 5, SN550, NULL },
	{ "nvme-dramless", BUFFER_GB, .real = 7.25, .percent = 15, .source = "SN550 500 GB, Tom's Hardware: 7 to 7.5" },
	{ "nvme-dramless", BEYOND_MB_S, .real = 466, .percent = 15, .source = "SN550 500 GB, Tom's Hardware" },
	{ "nvme-dramless", FLUSH_MS, .real = 0.71, .percent = 15, .source = "fdatasync on a 970 Evo Plus, which has DRAM; of one without none found" },
	{ "nvme-dramless", BESIDE_MS, .source = NULL },
};
const size_t figures_count = sizeof(figures) / sizeof(figures[0]);

/* A long write takes long here, too: a profile's is measured once. */
static const struct long_write *long_write_of(const char *profile)
{
	static struct long_write written;
	static const char *of;

	if (!of || strcmp(of, profile))
		written = measure_long_write(profile);
	of = profile;
	return &written;
}

double figure_measure(const struct figure *figure)
{
	switch (figure->kind) {
	case FLUSH_MS:
		return measure_flush(figure->profile).mean_ms;
	case BESIDE_MS:
		return measure_read_beside_writes(figure->profile).mean_ms;
	case BUFFER_GB:
		return long_write_of(figure->profile)->fast_gb;
	case BEYOND_MB_S:
		return long_write_of(figure->profile)->end_mb_s;
	default:
		return measure_rate(figure->profile, &figure->load);
	}
}

double figure_off_percent(const struct figure *figure, double measured)
{
	return figure->real ? (measured / figure->real - 1) * 100 : 0;
}
