/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests as functions: EXPECT() ends the one it fails in. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct test {
	const char *name;
	void (*run)(void);
};

extern int check_failures;

#define TEST(name) { #name, name }

#define EXPECT(holds)								\
	do {									\
		if (!(holds)) {							\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
			check_failures++;					\
			return;							\
		}								\
	} while (0)

/* `value` within `percent` of `target`. */
#define EXPECT_NEAR(value, target, percent)					\
	do {									\
		double value_ = (value), target_ = (target);			\
										\
		if (value_ < target_ * (1 - (percent) / 100.0) ||		\
		    value_ > target_ * (1 + (percent) / 100.0)) {		\
			fprintf(stderr, "%s:%d: %s is %.2f, not within %d %% of %.2f\n",	\
				__FILE__, __LINE__, #value, value_, (int)(percent), target_); \
			check_failures++;					\
			return;							\
		}								\
	} while (0)

/*
 * Runs every test of @suites, each of which ends with a test without a name; those
 * that @argument names; or after `--without` all others. @before and @after are
 * called around each. The last line printed is "N passed, N failed". Gives the exit
 * code.
 */
int check_run(int arguments, char **argument, const struct test *const *suites,
	      size_t nr_suites, void (*before)(void), void (*after)(void));

#endif
