/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all programs have around them: no other thread on their CPU while they run.
 *
 * Scratch memory of a CPU (paths, the bio that is held back) counts on it; interrupts may
 * come in between. The kernel itself promises it only where it is not preemptible, and for
 * tracepoints before it protected them by SRCU (7.2 does).
 *
 * It skips a program on a CPU on which a thread was preempted in that program (it counts
 * that: Missed). What is left of this is a thread that is preempted just before the first
 * instruction, or with the last, if it was to be preempted meanwhile.
 */
#ifndef IOPRO_PROGRAM_H
#define IOPRO_PROGRAM_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/*
 * A verifier that has this knows which global functions may sleep. Those before it, up to
 * 6.14, accept none without preemption, and have tracepoints that are not preempted.
 */
struct bpf_subprog_info {
	bool might_sleep : 1;
} __attribute__((preserve_access_index));

/* A constant when the programs are loaded: where it is false, the kernel leaves out both calls. */
static __always_inline bool may_hold_cpu(void)
{
	return bpf_core_field_exists(struct bpf_subprog_info, might_sleep) &&
	       bpf_ksym_exists(bpf_preempt_disable);
}

/* As BPF_PROG(); the program is not preempted. */
#define PROGRAM(name, args...)						\
name(unsigned long long *ctx);						\
static __always_inline int name##_held(unsigned long long *ctx);	\
int name(unsigned long long *ctx)					\
{									\
	int result;							\
									\
	if (may_hold_cpu())						\
		bpf_preempt_disable();					\
	result = name##_held(ctx);					\
	if (may_hold_cpu())						\
		bpf_preempt_enable();					\
	return result;							\
}									\
static __always_inline int BPF_PROG(name##_held, ##args)

#endif
