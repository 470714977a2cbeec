// SPDX-License-Identifier: GPL-2.0-only
/* Runs the tests, each of which has to free what it allocates. */
#include "host.h"
#include "suites.h"

static const struct test *const suites[] = {
	data_tests, timing_tests, mapcache_tests, buffer_tests, space_tests, foreground_tests, hint_tests,
	stream_tests, read_cache_tests, property_tests,
	calibration_tests, unchanged_tests, janus_tests, powercut_tests, mapcut_tests,
	image_tests,
};

static long held_before;

static void before(void)
{
	held_before = host_held;
	host_pages_left = -1;
}

static void after(void)
{
	if (check_failures || host_held == held_before)
		return;
	fprintf(stderr, "%ld allocations are left\n", host_held - held_before);
	check_failures++;
}

int main(int arguments, char **argument)
{
	return check_run(arguments, argument, suites, sizeof(suites) / sizeof(suites[0]),
			 before, after);
}
