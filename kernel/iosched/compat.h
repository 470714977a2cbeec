/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels in public headers. frontrow_abi.h tells which
 * variant the target kernel has.
 */
#ifndef FRONTROW_COMPAT_H
#define FRONTROW_COMPAT_H

#include <linux/hrtimer.h>

/* Initializes a timer of CLOCK_MONOTONIC. */
static inline void frontrow_timer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*expired)(struct hrtimer *))
{
#ifdef FRONTROW_ABI_HAS_HRTIMER_SETUP
	hrtimer_setup(timer, expired, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = expired;
#endif
}

#endif /* FRONTROW_COMPAT_H */
