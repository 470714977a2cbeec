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

/*
 * All is compiled twice. On most kernels the verifier knows the type of what a pointer
 * points at, so that the kernel's memory is read as any other, and functions can be
 * traced. WITHOUT_TYPES is for kernels without BTF of their own, or without a way to
 * trace functions: there are tracepoints, and each read is a call of a helper.
 */
#ifdef WITHOUT_TYPES
#define TRACEPOINT(name) SEC("raw_tp/" #name)
#define GET(pointer, fields...) BPF_CORE_READ(pointer, fields)
#define GET_BITFIELD(pointer, field) BPF_CORE_READ_BITFIELD_PROBED(pointer, field)
#define CURRENT() ((struct task_struct *)bpf_get_current_task())
/* Calls of the kernel's own functions need types. */
#define CAN_TYPE false
#define TYPED(pointer, type) ((type *)(pointer))
#define may_hold_cpu() false
#define bpf_preempt_disable()
#define bpf_preempt_enable()
#else
#define TRACEPOINT(name) SEC("tp_btf/" #name)
#define GET(pointer, fields...) ___arrow((pointer), fields)
#define GET_BITFIELD(pointer, field) BPF_CORE_READ_BITFIELD(pointer, field)
#define CURRENT() ((struct task_struct *)bpf_get_current_task_btf())

/*
 * Gives a pointer of which the verifier knows nothing its type, so that it can be
 * read for a few instructions and not for eighty. Since 6.2.
 */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;
#define CAN_TYPE bpf_ksym_exists(bpf_rdonly_cast)
#define TYPED(pointer, type) \
	((type *)bpf_rdonly_cast((void *)(pointer), bpf_core_type_id_kernel(type)))

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
#endif

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
