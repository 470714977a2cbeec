// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "check.h"

int check_failures;

static bool passes(const struct test *test, void (*before)(void), void (*after)(void))
{
	check_failures = 0;
	before();
	test->run();
	after();
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

int check_run(int arguments, char **argument, const struct test *const *suites,
	      size_t nr_suites, void (*before)(void), void (*after)(void))
{
	bool others = arguments > 1 && !strcmp(argument[1], "--without");
	int names = arguments - 1 - others;
	char **name = argument + 1 + others;
	int passed = 0, failed = 0;
	size_t i;

	for (i = 0; i < nr_suites; i++) {
		const struct test *test;

		for (test = suites[i]; test->name; test++) {
			if (names && is_among(test, names, name) == others)
				continue;
			if (passes(test, before, after))
				passed++;
			else
				failed++;
		}
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
