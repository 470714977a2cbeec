/* SPDX-License-Identifier: GPL-2.0-only */
/* The profiles of experiments/devices/ as the core takes them. */
#ifndef PROFILE_H
#define PROFILE_H

#include "../ftl/ftl.h"

/* False, and a sentence on stderr, if the file is not there or has an unknown number. */
bool profile_read(const char *name, struct ftl_config *config);

#endif
