/* SPDX-License-Identifier: GPL-2.0-only */
/* The host's memory for the core: counted, and able to run short. */
#ifndef HOST_H
#define HOST_H

#include "../ftl/ftl.h"

/* Pages and arrays that were allocated and not freed. */
extern long host_held;

/* How many more pages can be had; negative: any number. */
extern long host_pages_left;

#endif
