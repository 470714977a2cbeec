/* SPDX-License-Identifier: GPL-2.0-only */
/* What public sources say of real devices, for the profiles that stand for them. */
#ifndef FIGURES_H
#define FIGURES_H

#include <stddef.h>

#include "load.h"

enum figure_kind {
	RATE,		/* MB/s of a load */
	FLUSH_MS,	/* a FLUSH after a page was written */
	BESIDE_MS,	/* a read of a page beside writes */
	BUFFER_GB,	/* a long write's, until it gets slower */
	BEYOND_MB_S,	/* ... and its rate after that */
};

struct figure {
	const char *profile;
	enum figure_kind kind;
	struct load load;	/* of a RATE */
	double real;		/* 0: no public figure found */
	int percent;		/* how far from it the device may be */
	const char *source;	/* docs/real-devices*.md have the addresses */
	const char *reason;	/* why the device is further from it than 15 % */
};

extern const struct figure figures[];
extern const size_t figures_count;

double figure_measure(const struct figure *figure);
double figure_off_percent(const struct figure *figure, double measured);

#endif
