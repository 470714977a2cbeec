// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints what each profile's device does, as docs/results/devices.md has it: throughput by
 * size, one command at a time and with a full queue, a file in pieces, FLUSH, reads beside
 * writes, and long writes. Without the guest's kernel, but for LOAD_HOST_NS a command.
 */
#include <stdio.h>
#include <stdlib.h>

#include "load.h"

#define AREA_MIB 1024
#define PAGES_OF_KIB(kib) ((kib) / 4)

static const char *const profile[] = {
	"emmc", "emmc-cqe", "ufs", "ufs3", "sd", "usb-stick", "nvme-dramless",
};
#define PROFILES_COUNT (sizeof(profile) / sizeof(profile[0]))

static const uint32_t size_kib[] = { 4, 8, 16, 32, 64, 128, 256, 512 };
#define SIZES (sizeof(size_kib) / sizeof(size_kib[0]))

static char memory[128 * FTL_PAGE_BYTES];

/* With three digits; what it is written to is used up by the next but eight. */
static const char *digits(double value)
{
	static char text[9][16];
	static int next;
	char *to = text[next++ % 9];

	snprintf(to, sizeof(text[0]), "%.*f", value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, value);
	return to;
}

static void settle(struct device *device)
{
	device_do(device, FTL_FLUSH, 0, 0, NULL);
	device_drain(device);
}

static void open_or_die(struct device *device, const char *name)
{
	if (!load_open(device, name, AREA_MIB))
		exit(EXIT_FAILURE);
}

static void print_sizes(struct device *device, enum ftl_op op, enum pattern pattern,
			uint32_t depth)
{
	size_t i;

	printf("| %s, %s, depth %u", op == FTL_READ ? "read" : "write",
	       pattern == RANDOM ? "random" : "in order", depth);
	for (i = 0; i < SIZES; i++) {
		const struct load load = {
			op, pattern, PAGES_OF_KIB(size_kib[i]), depth, 2000 / (1 + i), AREA_MIB,
		};

		printf(" | %s", digits(load_mb_s(device, &load)));
		settle(device);
	}
	printf(" |\n");
}

static void print_throughput(const char *name)
{
	static const enum ftl_op ops[] = { FTL_READ, FTL_WRITE };
	struct device device;
	uint32_t depth;
	size_t i;

	open_or_die(&device, name);
	printf("\n## %s\n\nMB/s by size, KB:\n\n| |", name);
	for (i = 0; i < SIZES; i++)
		printf(" %u |", size_kib[i]);
	printf("\n|---|");
	for (i = 0; i < SIZES; i++)
		printf("---|");
	printf("\n");
	depth = device.config.queue_depth;
	for (i = 0; i < 2; i++) {
		print_sizes(&device, ops[i], SEQUENTIAL, 1);
		print_sizes(&device, ops[i], RANDOM, 1);
		if (depth > 1)
			print_sizes(&device, ops[i], RANDOM, depth);
	}
	device_close(&device);
}

/* A file of 10 MB in so many pieces all over the area, read once in order, MB/s. */
static double read_pieces(const char *name, uint32_t pieces)
{
	uint32_t pages = 2560 / pieces, gap = AREA_MIB * 256 / pieces;
	struct device device;
	uint64_t start_ns;
	uint32_t i, page, now;

	open_or_die(&device, name);
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

struct latency {
	double mean_us, worst_us;
};

static void add(struct latency *latency, uint64_t took_ns, int of)
{
	latency->mean_us += took_ns / 1000.0 / of;
	if (took_ns / 1000.0 > latency->worst_us)
		latency->worst_us = took_ns / 1000.0;
}

/* Of a FLUSH after one page was written somewhere. */
static struct latency flush_latency(const char *name)
{
	struct latency latency = { 0 };
	struct device device;
	int i;

	open_or_die(&device, name);
	for (i = 0; i < 500; i++) {
		device_write(&device, i * 97813u % (AREA_MIB * 256), i + 1);
		add(&latency, device_do(&device, FTL_FLUSH, 0, 0, NULL), 500);
		device.now_ns += LOAD_HOST_NS;
	}
	device_close(&device);
	return latency;
}

/* Of a random read of a page while writes of 512 KB keep the rest of the queue full. */
static struct latency read_beside_writes(const char *name)
{
	struct latency latency = { 0 };
	uint32_t reads = 0, writes = 0;
	struct ftl_cmd *cmd, *read = NULL;
	struct device device;
	uint64_t sent_ns = 0;

	open_or_die(&device, name);
	while (reads < 300) {
		if (!read) {
			sent_ns = device.now_ns;
			read = device_command(&device, FTL_READ, reads * 97813u % (AREA_MIB * 256),
					      1, memory);
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

/* The rates of the first and the last sixteenth of 12 GiB that are written without a rest. */
static void long_write(const char *name, double *first, double *last)
{
	const struct load part = { FTL_WRITE, SEQUENTIAL, 128, 8, 12288 / 8, 8192 };
	struct load fitting = part;
	struct device device;
	int i;

	open_or_die(&device, name);
	if (fitting.depth > device.config.queue_depth)
		fitting.depth = device.config.queue_depth;
	for (i = 0; i < 16; i++) {
		*last = load_mb_s(&device, &fitting);
		if (!i)
			*first = *last;
	}
	device_close(&device);
}

static void print_rest(const char *name)
{
	struct latency flush = flush_latency(name), read = read_beside_writes(name);
	double whole = read_pieces(name, 1), pieces = read_pieces(name, 10);
	double first = 0, last = 0;

	long_write(name, &first, &last);
	printf("| %s | %s, %s (%+.0f %%) | %s, %s | %s, %s | %s, %s |\n", name, digits(whole),
	       digits(pieces), (pieces / whole - 1) * 100, digits(flush.mean_us / 1000),
	       digits(flush.worst_us / 1000), digits(read.mean_us / 1000),
	       digits(read.worst_us / 1000), digits(first), digits(last));
}

int main(void)
{
	size_t i;

	printf("# The devices\n\n"
	       "What the profiles of `experiments/devices` do, new and without a kernel: made by\n"
	       "`make -C kernel/simflash/test devices`. Where each number of a profile is from, the\n"
	       "profile says; which figures of real devices it is held to, `calibration.c` beside it.\n\n"
	       "| | 10 MB in one piece, in ten, MB/s | FLUSH after a page, mean, worst, ms | random read beside writes, mean, worst, ms | 12 GiB written, begin, end, MB/s |\n"
	       "|---|---|---|---|---|\n");
	for (i = 0; i < PROFILES_COUNT; i++)
		print_rest(profile[i]);
	for (i = 0; i < PROFILES_COUNT; i++)
		print_throughput(profile[i]);
	return 0;
}
