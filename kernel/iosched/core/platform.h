/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the core needs from where it runs: the kernel's types, arithmetic and ordered
 * trees. The host's tests bring their own (test/platform.h).
 */
#ifndef FRONTROW_PLATFORM_H
#define FRONTROW_PLATFORM_H

#ifdef __KERNEL__

#include <linux/bits.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

#else

#include "../test/platform.h"

#endif

#endif /* FRONTROW_PLATFORM_H */
