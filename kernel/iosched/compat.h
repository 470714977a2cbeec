/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in public headers. frontrow_abi.h tells what this
 * one has.
 */
#ifndef FRONTROW_COMPAT_H
#define FRONTROW_COMPAT_H

#include <linux/hrtimer.h>

/* For a timer that is started with relative times. */
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
