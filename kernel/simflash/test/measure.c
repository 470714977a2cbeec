// SPDX-License-Identifier: GPL-2.0-only
#include "measure.h"

#define AREA_PAGES (MEASURE_AREA_MIB * 256)
/* Far from each other, and every page once. */
#define SCATTERED(i) ((i) * 97813u % AREA_PAGES)

#define PART_MIB 256
#define PARTS (12288 / PART_MIB)

static char memory[128 * FTL_PAGE_BYTES];

double measure_rate(const char *profile, const struct load *load)
{
	struct device device;
	double rate;

	if (!load_open(&device, profile, load->area_mib))
		return 0;
	rate = load_mb_s(&device, load);
	device_close(&device);
	return rate;
}

double measure_pieces(const char *profile, uint32_t pieces)
{
	uint32_t pages = 2560 / pieces, gap = AREA_PAGES / pieces;
	struct device device;
	uint64_t start_ns;
	uint32_t i, page, now;

	if (!load_open(&device, profile, MEASURE_AREA_MIB))
		return 0;
	start_ns = device.now_ns;
	for (i = 0; i < pieces; i++) {
		for (page = 0; page < pages; page += now) {
			now = pages - page < 128 ? pages - page : 128;
			device_do(&device, FTL_READ, i * gap + page, now, memory);
			device.now_ns += LOAD_HOST_NS;
		}
	}
	start_ns = device.now_ns - start_ns;
	device_close(&device);
	return (double)pieces * pages * FTL_PAGE_BYTES * 1000 / start_ns;
}

static void add(struct latency *latency, uint64_t took_ns, int of)
{
	latency->mean_ms += took_ns / 1e6 / of;
	if (took_ns / 1e6 > latency->worst_ms)
		latency->worst_ms = took_ns / 1e6;
}

struct latency measure_flush(const char *profile)
{
	struct latency latency = { 0 };
	struct device device;
	int i;

	if (!load_open(&device, profile, MEASURE_AREA_MIB))
		return latency;
	for (i = 0; i < 500; i++) {
		device_write(&device, SCATTERED(i), i + 1);
		add(&latency, device_do(&device, FTL_FLUSH, 0, 0, NULL), 500);
		device.now_ns += LOAD_HOST_NS;
	}
	device_close(&device);
	return latency;
}

struct latency measure_read_beside_writes(const char *profile)
{
	struct latency latency = { 0 };
	uint32_t reads = 0, writes = 0;
	struct ftl_cmd *cmd, *read = NULL;
	struct device device;
	uint64_t sent_ns = 0;

	if (!load_open(&device, profile, MEASURE_AREA_MIB))
		return latency;
	while (reads < 300) {
		if (!read) {
			sent_ns = device.now_ns;
			read = device_command(&device, FTL_READ, SCATTERED(reads), 1, memory);
			device_submit(&device, read);
		}
		while (device.in_flight < device.config.queue_depth && device.in_flight < 32 &&
		       (cmd = device_command(&device, FTL_WRITE, writes++ % 512 * 128, 128, memory)))
			device_submit(&device, cmd);
		cmd = device_next(&device);
		device_release(&device, cmd);
		if (cmd != read)
			continue;
		add(&latency, device.now_ns - sent_ns, 300);
		read = NULL;
		reads++;
	}
	device_drain(&device);
	device_close(&device);
	return latency;
}

/* Where the rate fell under the mean of the first and the last. */
static double fast_gb(const double *rate)
{
	double mean = (rate[0] + rate[PARTS - 1]) / 2;
	int i;

	if (rate[PARTS - 1] > 0.8 * rate[0])
		return 0;
	for (i = 0; rate[i] > mean; i++)
		;
	return i * PART_MIB * 1.048576e-3;
}

struct long_write measure_long_write(const char *profile)
{
	const struct load part = { FTL_WRITE, SEQUENTIAL, 128, 16, PART_MIB * 2, PART_MIB };
	struct long_write written = { 0 };
	struct device device;
	double rate[PARTS];
	int i;

	if (!load_open(&device, profile, PART_MIB))
		return written;
	for (i = 0; i < PARTS; i++)
		rate[i] = load_mb_s(&device, &part);
	device_close(&device);
	written.begin_mb_s = rate[0];
	written.end_mb_s = rate[PARTS - 1];
	written.fast_gb = fast_gb(rate);
	return written;
}
