// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs every test, those that are named, or after `--without` all others; the last
 * line is "N passed, N failed".
 */
#include <stdlib.h>

#include "check.h"
#include "host.h"

int check_failures;

static const struct test *const suites[] = {
	data_tests, timing_tests, mapcache_tests, buffer_tests, space_tests, property_tests,
	calibration_tests, unchanged_tests, janus_tests, powercut_tests, mapcut_tests,
	image_tests,
};

static bool passes(const struct test *test)
{
	long held = host_held;

	check_failures = 0;
	host_pages_left = -1;
	test->run();
	if (!check_failures && host_held != held) {
		fprintf(stderr, "%ld allocations are left\n", host_held - held);
		check_failures++;
	}
	printf("%s %s\n", check_failures ? "FAILED" : "ok    ", test->name);
	return !check_failures;
}

static bool is_among(const struct test *test, int names, char **name)
{
	int i;

	for (i = 0; i < names; i++) {
		if (!strcmp(test->name, name[i]))
			return true;
	}
	return false;
}

int main(int arguments, char **argument)
{
	bool others = arguments > 1 && !strcmp(argument[1], "--without");
	int names = arguments - 1 - others;
	char **name = argument + 1 + others;
	int passed = 0, failed = 0;
	size_t i;

	for (i = 0; i < sizeof(suites) / sizeof(suites[0]); i++) {
		const struct test *test;

		for (test = suites[i]; test->name; test++) {
			if (names && is_among(test, names, name) == others)
				continue;
			if (passes(test))
				passed++;
			else
				failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
