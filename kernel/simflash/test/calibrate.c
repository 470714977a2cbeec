// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints what each profile's device does, as docs/results/devices.md has it: throughput by
 * size, one request at a time and with a full queue, a file in pieces, FLUSH, reads beside
 * writes, long writes, and all that real devices are known to do. Without the guest's kernel, but for LOAD_HOST_NS a request.
 */
#include <stdio.h>
#include <stdlib.h>

#include "figures.h"
#include "measure.h"

#define PAGES_OF_KIB(kib) ((kib) / 4)

static const char *const profile[] = {
	"emmc", "emmc-cqe", "ufs", "ufs3", "sd", "usb-stick", "nvme-dramless",
};
#define PROFILES_COUNT (sizeof(profile) / sizeof(profile[0]))

static const uint32_t size_kib[] = { 4, 8, 16, 32, 64, 128, 256, 512, 1024 };
#define SIZES (sizeof(size_kib) / sizeof(size_kib[0]))

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
	if (!load_open(device, name, MEASURE_AREA_MIB))
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
			op, pattern, PAGES_OF_KIB(size_kib[i]), depth, 2000 / (1 + i), MEASURE_AREA_MIB,
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
		if (depth == 1)
			continue;
		print_sizes(&device, ops[i], SEQUENTIAL, depth);
		print_sizes(&device, ops[i], RANDOM, depth);
	}
	device_close(&device);
}

static void print_rest(const char *name)
{
	struct latency flush = measure_flush(name), read = measure_read_beside_writes(name);
	double whole = measure_pieces(name, 1), pieces = measure_pieces(name, 10);
	struct long_write written = measure_long_write(name);

	printf("| %s | %s, %s (%+.0f %%) | %s, %s | %s, %s | %s, %s", name, digits(whole),
	       digits(pieces), (pieces / whole - 1) * 100, digits(flush.mean_ms),
	       digits(flush.worst_ms), digits(read.mean_ms), digits(read.worst_ms),
	       digits(written.begin_mb_s), digits(written.end_mb_s));
	if (written.fast_gb)
		printf(" after %s GB", digits(written.fast_gb));
	printf(" |\n");
}

static void print_load(const struct load *load)
{
	printf("%s %s of %u KB", load->pattern == RANDOM ? "random" : "sequential",
	       load->op == FTL_READ ? "read" : "write", load->pages * 4);
	if (load->depth > 1)
		printf(" at depth %u", load->depth);
	printf(", MB/s");
}

static void print_figure(const struct figure *figure)
{
	static const char *const what[] = {
		[FLUSH_MS] = "FLUSH after a page, ms",
		[BESIDE_MS] = "random read beside writes, ms",
		[BUFFER_GB] = "written until it gets slower, GB",
		[BEYOND_MB_S] = "written after that, MB/s",
	};
	double measured = figure_measure(figure);

	printf("| %s | ", figure->profile);
	if (figure->kind == RATE)
		print_load(&figure->load);
	else
		printf("%s", what[figure->kind]);
	if (figure->real)
		printf(" | %s | %s | %+.0f %% | ", digits(figure->real), digits(measured),
		       figure_off_percent(figure, measured));
	else
		printf(" | no public figure found | %s | | ", digits(measured));
	printf("%s%s%s |\n", figure->source ? figure->source : "", figure->reason ? ". Off: " : "",
	       figure->reason ? figure->reason : "");
}

static void print_figures(void)
{
	size_t i;

	printf("\n## Against real devices\n\n"
	       "Sources with their addresses are in [real devices](../lab/real-devices.md).\n\n"
	       "| profile | | real | here | off | source |\n|---|---|---|---|---|---|\n");
	for (i = 0; i < figures_count; i++)
		print_figure(&figures[i]);
}

int main(void)
{
	size_t i;

	printf("# The devices\n\n"
	       "What the profiles of `experiments/devices` do, new and without a kernel: made by\n"
	       "`make -C kernel/simflash/test devices`. Where each number of a profile is from, the\n"
	       "profile says. Commands are of 512 KB at most, so a request of 1 MB goes as two.\n\n"
	       "| | 10 MB in one piece, in ten, MB/s | FLUSH after a page, mean, worst, ms | random read beside writes, mean, worst, ms | 12 GiB written, begin, end, MB/s |\n"
	       "|---|---|---|---|---|\n");
	for (i = 0; i < PROFILES_COUNT; i++)
		print_rest(profile[i]);
	print_figures();
	for (i = 0; i < PROFILES_COUNT; i++)
		print_throughput(profile[i]);
	return 0;
}
