/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One ring buffer for each CPU, in memory that the recorder maps.
 *
 * BPF_MAP_TYPE_RINGBUF takes a lock for each record, and an interrupt to wake
 * the reader; together they cost more than all else in a program. Here room is
 * taken with one addition, which an interrupt on the same CPU cannot come
 * between, and the recorder looks when it likes (ring.rs).
 *
 *	head, tail	positions that only grow; tail is the recorder's
 *	record		u64 length, then the record, up to a multiple of eight
 *
 * A length is written last; before that it is 0, as the recorder leaves the
 * memory after it. A ring is cut into segments, since a map's values are limited
 * in size; a record that begins at the end of one goes on in the slack after it.
 */
#ifndef IOPRO_RING_H
#define IOPRO_RING_H

#include "state.h"

#define RING_HEADER_BYTES 8
#define SLACK_BYTES 8192
/* Interrupts may take room between the look at what is left and the taking. */
#define RESERVE_BYTES (2 * SLACK_BYTES)
/* Overwritten by programs.rs. */
#define SEGMENT_BYTES (1 << 16)

struct position {
	__u64 head;
	__u64 head_line[7];	/* each has a cache line */
	__u64 tail;
	__u64 tail_line[7];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct position);
} positions SEC(".maps");

struct segment {
	__u8 bytes[SEGMENT_BYTES + SLACK_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct segment);
} segments SEC(".maps");

/* Room for a record of `size` bytes. Without room it counts a lost event. */
static __always_inline void *reserve(__u32 size, enum lost_kind kind)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct position *position = bpf_map_lookup_elem(&positions, &cpu);
	__u32 shift = settings.segment_shift;
	__u64 taken = ((__u64)size + RING_HEADER_BYTES + 7) & ~7ull;
	struct segment *segment;
	__u64 at;

	if (!position)
		return NULL;
	if (position->head - position->tail + taken + RESERVE_BYTES >
	    (__u64)settings.segments << shift) {
		count_lost(kind);
		return NULL;
	}
	at = __sync_fetch_and_add(&position->head, taken);
	cpu = cpu * settings.segments + ((at >> shift) & (settings.segments - 1));
	segment = bpf_map_lookup_elem(&segments, &cpu);
	if (!segment)
		return NULL;
	/* Positions are multiples of eight, and the verifier is to know it. */
	return &segment->bytes[(at & ((1ull << shift) - 8)) + RING_HEADER_BYTES];
}

/* The exchange keeps what was written before it before it, on all machines. */
static __always_inline void submit(void *rec, __u64 size)
{
	__sync_lock_test_and_set((__u64 *)(rec - RING_HEADER_BYTES), size);
}

#define SUBMIT(r) submit((r), sizeof(*(r)))

#endif
