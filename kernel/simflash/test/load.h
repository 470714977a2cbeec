/* SPDX-License-Identifier: GPL-2.0-only */
/* Loads on a profile's device, in virtual time: exact, and without the host. */
#ifndef LOAD_H
#define LOAD_H

#include "device.h"

/* What a kernel adds to each request at depth 1. */
#define LOAD_HOST_NS 20000

enum pattern { SEQUENTIAL, RANDOM };

struct load {
	enum ftl_op op;
	enum pattern pattern;
	uint32_t pages;		/* of a request: beyond the largest command it goes as several */
	uint32_t depth;
	uint32_t requests;
	uint32_t area_mib;	/* from the device's beginning */
};

/* 10^6 bytes a second, to the last one's end. */
double load_mb_s(struct device *device, const struct load *load);

/*
 * The device of a profile whose first so many MiB were written in order and rested since;
 * false, and a sentence on stderr, if there is no such profile.
 */
bool load_open(struct device *device, const char *profile, uint32_t area_mib);

#endif
