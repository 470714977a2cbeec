/* SPDX-License-Identifier: GPL-2.0-only */
/* What a profile's device does, new and alone: 0 if there is no such profile. */
#ifndef MEASURE_H
#define MEASURE_H

#include "load.h"

/* Of the device that measures go over, if they do not say otherwise. */
#define MEASURE_AREA_MIB 1024

struct latency {
	double mean_ms, worst_ms;
};

/* 12 GiB written in order without a rest: the rates of the first and the last 256 MiB. */
struct long_write {
	double begin_mb_s, end_mb_s;
	double fast_gb;		/* written until the rate fell under the mean of both; 0: never */
};

/* MB/s, by a device whose area of the load was written before. */
double measure_rate(const char *profile, const struct load *load);

/* A file of 10 MB in so many pieces all over the area, read once in order, MB/s. */
double measure_pieces(const char *profile, uint32_t pieces);

/* Of a FLUSH after one page was written somewhere. */
struct latency measure_flush(const char *profile);

/* Of a random read of a page while writes of 512 KB keep the rest of the queue full. */
struct latency measure_read_beside_writes(const char *profile);

struct long_write measure_long_write(const char *profile);

#endif
