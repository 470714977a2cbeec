/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SUITES_H
#define SUITES_H

#include "check.h"

extern const struct test data_tests[], timing_tests[], space_tests[], property_tests[],
	calibration_tests[], unchanged_tests[], janus_tests[], powercut_tests[],
	mapcache_tests[], foreground_tests[], hint_tests[],
	stream_tests[], read_cache_tests[], buffer_tests[], mapcut_tests[], image_tests[];

#endif
