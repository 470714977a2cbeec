// SPDX-License-Identifier: GPL-2.0
/*
 * Prints docs/results/screen.md: how long a task waits beside others, on each profile's
 * device, under mq-deadline and under Frontrow's policy. Policy and flash core run in
 * this process in virtual time, so all of it takes seconds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "play.h"

#define KIB	(1U << 10)
#define MIB	(1U << 20)
/* Of the device, which is written before each run. */
#define AREA_MIB 128

static const char *const profiles[] = {
	"emmc", "emmc-cqe", "ufs", "ufs3", "sd", "nvme-dramless",
};

struct named_task {
	const char *name;
	struct task task;
	unsigned int goes;
};

/* Of the matrix's workloads those that are requests and little else. */
static const struct named_task fronts[] = {
	{ "small sync", { SYNCS, .bytes = 16 * KIB, .think_us = 1000 }, 100 },
	{ "large sync", { SYNCS, .is_in_order = true, .bytes = 4 * MIB, .think_us = 5000 }, 10 },
	{ "start", { READS, .bytes = 16 * KIB, .depth = 1, .think_us = 200 }, 500 },
	{ "photo", { READS, .is_in_order = true, .bytes = 4 * MIB, .depth = 2, .think_us = 20000 }, 20 },
};

struct load {
	const char *name;
	struct task tasks[PLAY_MOST_TASKS];
	unsigned int nr;
};

static const struct load loads[] = {
	{ "idle", { }, 0 },
	{ "writer", { { WRITES_BACK, .is_in_order = true, .bytes = 512 * KIB } }, 1 },
	{ "random", { { WRITES_BACK, .bytes = 4 * KIB } }, 1 },
	{ "reinstall", { { SYNCS, .is_in_order = true, .bytes = 4 * MIB } }, 1 },
	{ "database", { { SYNCS, .bytes = 16 * KIB } }, 1 },
	{ "backup", { { READS, .is_in_order = true, .bytes = 16 * MIB, .depth = 4 } }, 1 },
	{ "apps-6", {
		{ READS, .bytes = 64 * KIB, .depth = 2, .think_us = 2000 },
		{ READS, .bytes = 16 * KIB, .depth = 1, .think_us = 1000 },
		{ SYNCS, .bytes = 16 * KIB, .think_us = 10000 },
		{ SYNCS, .bytes = 256 * KIB, .think_us = 20000 },
		{ WRITES_BACK, .is_in_order = true, .bytes = 128 * KIB },
		{ WRITES_BACK, .bytes = 4 * KIB },
	  }, 6 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum run { DEADLINE_RUN, UNNAMED_RUN, NAMED_RUN, RUNS };

static struct played run(const char *profile, enum run run, const struct named_task *front,
			 const struct load *load)
{
	static struct disk disk;
	struct scene scene = {
		.front = front->task, .goes = front->goes, .nr_behind = load->nr,
	};
	struct played played;

	memcpy(scene.behind, load->tasks, sizeof(scene.behind));
	if (!disk_open(&disk, profile, AREA_MIB))
		exit(EXIT_FAILURE);
	played = play(&disk, run == DEADLINE_RUN ? MQ_DEADLINE : FRONTROW, run == NAMED_RUN,
		      &scene, AREA_MIB);
	disk_close(&disk);
	return played;
}

static void print_cell(const struct played *played, const struct played *than)
{
	printf(" | %.3g, %.3g", played->mean_ns / 1e6, played->worst_ns / 1e6);
	if (than)
		printf(" (%.2f)", (double)played->mean_ns / than->mean_ns);
}

/* Adds the logarithms of both ratios to @sums. */
static void print_row(const char *profile, const struct named_task *front,
		      const struct load *load, double sums[2])
{
	struct played played[RUNS];
	enum run each;

	printf("| %s | %s", front->name, load->name);
	for (each = 0; each < RUNS; each++) {
		played[each] = run(profile, each, front, load);
		print_cell(&played[each], each ? &played[DEADLINE_RUN] : NULL);
	}
	for (each = UNNAMED_RUN; each < RUNS; each++)
		sums[each - 1] += log((double)played[each].mean_ns /
				      played[DEADLINE_RUN].mean_ns);
	printf(" | %.3g, %.3g, %.3g |\n", played[DEADLINE_RUN].behind_bytes / 1e6,
	       played[UNNAMED_RUN].behind_bytes / 1e6, played[NAMED_RUN].behind_bytes / 1e6);
}

static void print_device(const char *profile)
{
	double sums[2] = { 0 };
	size_t front, load;

	printf("\n## %s\n\n", profile);
	printf("| in front | behind | mq-deadline | frontrow, nobody named | in front | behind, MB/s |\n");
	printf("|---|---|---:|---:|---:|---:|\n");
	for (load = 0; load < COUNT(loads); load++)
		for (front = 0; front < COUNT(fronts); front++)
			print_row(profile, &fronts[front], &loads[load], sums);
	printf("\nGeometric mean of the ratios: %.2f with nobody named, %.2f in front.\n",
	       exp(sums[0] / (COUNT(fronts) * COUNT(loads))),
	       exp(sums[1] / (COUNT(fronts) * COUNT(loads))));
}

static const char head[] =
	"# The policy on the host\n"
	"\n"
	"Frontrow's policy and the emulated flash in one process, in virtual time. [The host's screen](../lab/screen.md)\n"
	"says what a row is, what the screen cannot know, and how well it foretells the guests' matrix.\n"
	"\n"
	"```sh\n"
	"make -C kernel/iosched/test screen                # this page, in five seconds\n"
	"make -C kernel/iosched/test figures DEVICE=emmc   # one device\n"
	"```\n"
	"\n"
	"Mean and worst time of a go in front, in ms; in brackets the mean divided by mq-deadline's. Beside it what was\n"
	"read and written behind under each of the three.\n";

int main(int arguments, char **argument)
{
	size_t i;

	if (arguments < 2)
		fputs(head, stdout);
	for (i = 0; i < COUNT(profiles); i++)
		if (arguments < 2 || !strcmp(argument[1], profiles[i]))
			print_device(profiles[i]);
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
