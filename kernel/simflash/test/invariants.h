/* SPDX-License-Identifier: GPL-2.0-only */
/* What holds in the core between any two calls. */
#ifndef INVARIANTS_H
#define INVARIANTS_H

#include "../ftl/ftl.h"

/* Walks everything; NULL if all invariants hold, else the one that does not. */
const char *broken_invariant(const struct ftl *ftl);

#endif
