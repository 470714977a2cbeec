/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block layer. A request is taken apart when it is issued, after all merging
 * and splitting: its bios, and the page cache pages in them, as runs.
 */
#ifndef IOPRO_BLOCK_H
#define IOPRO_BLOCK_H

#include "calls.h"

/* More pages than in any request; a longer one is counted. */
#define MAX_STEPS 16384

/* REQ_OP_ of the kernel, which are the same in all of them. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_WRITE_ZEROES 9

static __always_inline __u8 io_op(__u32 opf)
{
	/* The first ones have the same numbers. */
	if ((opf & REQ_OP_MASK) <= REQ_OP_DISCARD)
		return opf & REQ_OP_MASK;
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_SECURE_ERASE:
		return IO_SECURE_ERASE;
	case REQ_OP_WRITE_ZEROES:
		return IO_WRITE_ZEROES;
	}
	return IO_OTHER;
}

/* The kernel's numbers change; IoFlags of event.rs do not. */
#define IO_FLAG(opf, name, bit) \
	((opf) >> bpf_core_enum_value(enum req_flag_bits, __REQ_##name) & 1) << (bit)

static __always_inline __u16 io_flags(__u32 opf)
{
	__u16 flags;

	/* Most requests, such as programs' reads, have no other flag. */
	flags = IO_FLAG(opf, SYNC, 0);
	if (opf - ((__u32)flags << bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC)) <=
	    REQ_OP_MASK)
		return flags;
	flags |= IO_FLAG(opf, IDLE, 8) | IO_FLAG(opf, META, 1) |
		IO_FLAG(opf, PRIO, 2) | IO_FLAG(opf, FUA, 3) | IO_FLAG(opf, PREFLUSH, 4) |
		IO_FLAG(opf, RAHEAD, 5) | IO_FLAG(opf, BACKGROUND, 6);
	if (bpf_core_enum_value_exists(enum req_flag_bits, __REQ_SWAP))
		flags |= IO_FLAG(opf, SWAP, 7);
	return flags;
}

static __always_inline void begin_io(struct rec *rec, __u8 kind, __u32 opf)
{
	begin_record(rec, bpf_ktime_get_ns(), kind);
	rec->op = io_op(opf);
	rec->flags = io_flags(opf);
}

static __always_inline __u32 disk_of(struct gendisk *disk)
{
	return disk ? MKDEV(GET(disk, major), GET(disk, first_minor)) : 0;
}

#define STACK_BYTES (1 << 15)	/* at most */

/* What submit_bio_wait() waits for is on its stack. */
static __always_inline void note_own(struct thread *thread, struct bio *bio)
{
	__u64 done = (unsigned long)GET(bio, bi_private);
	__u64 stack = (unsigned long)GET(CURRENT(), stack);

	thread->own_done = done - stack < STACK_BYTES ? done : 0;
	thread->own_opf = GET(bio, bi_opf);
}

/*
 * Of direct I/O most bios become a request and are issued at once. One record tells
 * both then: each record costs its room, the recorder's time and the file's. A bio
 * that was queued is held back until it is issued, and told of before anything else
 * that may happen to it, and before its thread blocks.
 */
static __always_inline void flush_queued(struct cpu *cpu)
{
	struct rec_bio *rec;

	if (!cpu->queued.rec.time_ns)
		return;
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (rec) {
		*rec = cpu->queued;
		SUBMIT(rec);
	}
	cpu->queued.rec.time_ns = 0;
}

/* An interrupt that finds it being changed leaves it alone. */
static __always_inline void tell_queued(struct cpu *cpu)
{
	if (!cpu->queued.rec.time_ns || cpu->holding)
		return;
	cpu->holding = 1;
	barrier();
	flush_queued(cpu);
	barrier();
	cpu->holding = 0;
}

static __always_inline void fill_bio(struct rec_bio *rec, struct bio *bio, __u8 kind)
{
	begin_io(&rec->rec, kind, GET(bio, bi_opf));
	rec->bio = (unsigned long)bio;
	rec->sector = GET(bio, bi_iter.bi_sector);
	rec->bytes = GET(bio, bi_iter.bi_size);
	rec->dev = disk_of(GET(bio, bi_bdev, bd_disk));
}

static __always_inline bool hold_queued(struct cpu *cpu, struct thread *thread, struct bio *bio)
{
	if (!thread->call || !(thread->call_flags & FLAG_DIRECT) || cpu->holding)
		return false;
	cpu->holding = 1;
	barrier();
	flush_queued(cpu);
	fill_bio(&cpu->queued, bio, REC_QUEUE);
	barrier();
	cpu->holding = 0;
	return true;
}

TRACEPOINT(block_bio_queue)
int PROGRAM(bio_queued, struct bio *bio)
{
	struct thread *thread = this_thread();
	struct cpu *cpu = this_cpu();
	struct rec_bio *rec;

	if (thread && cpu) {
		/* What was done to its pages is told first. */
		flush_run(thread);
		note_own(thread, bio);
		if (hold_queued(cpu, thread, bio))
			return 0;
		tell_queued(cpu);
	}
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (!rec)
		return 0;
	fill_bio(rec, bio, REC_QUEUE);
	SUBMIT(rec);
	return 0;
}

/* That it was queued is told before what became of it. */
static __always_inline void submitted(struct bio *bio)
{
	struct cpu *cpu = this_cpu();

	if (cpu && cpu->queued.bio == (unsigned long)bio)
		tell_queued(cpu);
}

static __always_inline int merged(struct bio *bio, __u8 kind)
{
	struct rec_bio *rec;

	submitted(bio);
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (!rec)
		return 0;
	fill_bio(rec, bio, kind);
	SUBMIT(rec);
	return 0;
}

TRACEPOINT(block_bio_backmerge)
int PROGRAM(bio_back_merged, struct bio *bio)
{
	return merged(bio, REC_BACK_MERGE);
}

TRACEPOINT(block_bio_frontmerge)
int PROGRAM(bio_front_merged, struct bio *bio)
{
	return merged(bio, REC_FRONT_MERGE);
}

TRACEPOINT(block_split)
int PROGRAM(bio_split, struct bio *bio, unsigned int rest_sector)
{
	struct cpu *cpu = this_cpu();
	struct rec_split *rec;

	if (cpu)
		tell_queued(cpu);
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (!rec)
		return 0;
	fill_bio(&rec->front, bio, REC_SPLIT);
	rec->parent = (unsigned long)GET(bio, bi_private);
	/* The tracepoint's own argument has lost its upper half. */
	rec->rest_sector = rec->front.sector + (rec->front.bytes >> SECTOR_SHIFT);
	SUBMIT(rec);
	return 0;
}

/* A plug with one request in it held nothing back that matters. */
TRACEPOINT(block_unplug)
int PROGRAM(queue_unplugged, struct request_queue *q, unsigned int depth, bool explicit)
{
	struct rec_plug *rec;

	if (depth < 2)
		return 0;
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_UNPLUG);
	rec->rec.op = explicit;
	rec->dev = disk_of(GET(q, disk));
	rec->requests = depth;
	SUBMIT(rec);
	return 0;
}

static __always_inline void fill_request(struct rec_request *rec, struct request *rq, __u8 kind)
{
	struct bio *bio = GET(rq, bio);

	begin_io(&rec->rec, kind, GET(rq, cmd_flags));
	rec->request = (unsigned long)rq;
	rec->sector = GET(rq, __sector);
	rec->bytes = GET(rq, __data_len);
	rec->dev = disk_of(GET(rq, q, disk));
	rec->ioprio = bio ? GET(bio, bi_ioprio) : 0;
	rec->reserved = 0;
}

static __always_inline int request_event(struct request *rq, __u8 kind)
{
	struct rec_request *rec = reserve(sizeof(*rec), LOST_BLOCK);

	if (!rec)
		return 0;
	fill_request(rec, rq, kind);
	SUBMIT(rec);
	return 0;
}

TRACEPOINT(block_rq_insert)
int PROGRAM(request_inserted, struct request *rq)
{
	submitted(GET(rq, bio));
	return request_event(rq, REC_INSERT);
}

TRACEPOINT(block_rq_merge)
int PROGRAM(request_merged, struct request *rq)
{
	return request_event(rq, REC_RQ_MERGE);
}

TRACEPOINT(block_rq_requeue)
int PROGRAM(request_requeued, struct request *rq)
{
	return request_event(rq, REC_REQUEUE);
}

/*
 * A request being taken apart: where we are, and the run that is not told yet.
 * It is on the stack, and 6.1 allows 512 bytes for all functions in a row.
 */
struct walk {
	struct rec_request rq;
	struct bio *bio;
	struct bio *next;	/* of the first */
	struct bio_vec *vecs;
	__u64 sector;	/* of what comes next */
	__u32 vec;	/* in vecs */
	__u32 done;	/* bytes of it */
	__u32 left;	/* bytes of the bio */
	__u32 run_bytes;
	bool data;
	bool write;
	bool told;		/* the first run was, and the request with it */
	bool past_first;	/* bio */
	bool over;
	__u8 run_has;
	__u16 run_at;	/* where in its first page it begins */

	struct bio *run_bio;
	__u64 run_sector;
	__u64 run_mapping;
	__u64 run_index;
	struct file_key run_file;
};

__noinline int tell_segment(struct walk *walk)
{
	struct rec_segment *rec;

	if (!walk)
		return 0;
	rec = reserve(sizeof(*rec), LOST_SEGMENTS);
	if (!rec)
		return 0;
	rec->rec = walk->rq.rec;
	rec->rec.kind = REC_SEGMENT;
	rec->rec.op = walk->run_has;
	rec->request = walk->rq.request;
	rec->bio = (unsigned long)walk->run_bio;
	rec->sector = walk->run_sector;
	rec->bytes = walk->run_bytes;
	rec->dev = walk->rq.dev;
	rec->file = walk->run_file;
	rec->index = walk->run_index;
	SUBMIT(rec);
	return 0;
}

__noinline int tell_issue(struct walk *walk)
{
	struct rec_issue *rec;

	if (!walk)
		return 0;
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (!rec)
		return 0;
	rec->rq = walk->rq;
	rec->bio = (unsigned long)walk->run_bio;
	rec->file = walk->run_file;
	rec->index = walk->run_index;
	rec->segment_bytes = walk->run_bytes;
	rec->has = walk->run_has;
	SUBMIT(rec);
	return 0;
}

static __always_inline void end_run(struct walk *walk)
{
	if (!walk->run_bio)
		return;
	if (walk->told)
		tell_segment(walk);
	else
		tell_issue(walk);
	walk->told = true;
	walk->run_bio = NULL;
}

/* Blocks may be smaller than pages, so a run may go on in the page that it is in. */
static __always_inline bool continues(struct walk *walk, __u64 mapping, __u64 index)
{
	return walk->run_bio == walk->bio && walk->run_mapping == mapping && mapping &&
	       index == walk->run_index + ((walk->run_at + walk->run_bytes) >> PAGE_SHIFT);
}

static __always_inline void begin_run(struct walk *walk, __u64 mapping, __u64 index, __u32 at)
{
	struct thread *thread;
	__u64 host;

	walk->run_bio = walk->bio;
	walk->run_sector = walk->sector;
	walk->run_bytes = 0;
	walk->run_at = at;
	walk->run_mapping = mapping;
	walk->run_index = index;
	walk->run_has = at >> SECTOR_SHIFT << SEGMENT_AT_SHIFT;
	if (!mapping)
		return;
	host = (unsigned long)BPF_CORE_READ((struct address_space *)mapping, host);
	thread = known_thread(this_tid());
	/* In an interrupt the thread's state is not ours to change. */
	if (thread && thread->known_inode == host && thread->known_evictions == evictions) {
		walk->run_file = thread->known_file;
		walk->run_has |= SEGMENT_HAS_PAGES;
	} else if (identify(host, &walk->run_file)) {
		walk->run_has |= SEGMENT_HAS_PAGES;
	}
}

static __always_inline void set_bio(struct walk *walk, struct bio *bio)
{
	walk->bio = bio;
	if (!bio) {
		walk->over = true;
		return;
	}
	walk->vecs = BPF_CORE_READ(bio, bi_io_vec);
	walk->vec = BPF_CORE_READ(bio, bi_iter.bi_idx);
	if (bpf_core_field_exists(struct bvec_iter, bi_bvec_done))
		walk->done = BPF_CORE_READ(bio, bi_iter.bi_bvec_done);
	else
		walk->done = BPF_CORE_READ((struct bio___offset *)bio, bi_iter.bi_offset);
	walk->left = BPF_CORE_READ(bio, bi_iter.bi_size);
	walk->sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
}

/* Most requests have but one bio, and a typed pointer can be read for nothing. */
static __always_inline void set_first_bio(struct walk *walk, struct bio *bio)
{
	if (!bio) {
		walk->over = true;
		return;
	}
	walk->bio = bio;
	walk->next = GET(bio, bi_next);
	walk->vecs = GET(bio, bi_io_vec);
	walk->vec = GET(bio, bi_iter.bi_idx);
	if (bpf_core_field_exists(struct bvec_iter, bi_bvec_done))
		walk->done = GET(bio, bi_iter.bi_bvec_done);
	else
		walk->done = GET((struct bio___offset *)bio, bi_iter.bi_offset);
	walk->left = GET(bio, bi_iter.bi_size);
	walk->sector = GET(bio, bi_iter.bi_sector);
}

static __always_inline void advance(struct walk *walk, __u32 bytes)
{
	struct bio *bio = walk->bio;

	walk->run_bytes += bytes;
	walk->sector += bytes >> SECTOR_SHIFT;
	walk->left -= bytes;
	if (walk->left)
		return;
	if (walk->past_first)
		bio = BPF_CORE_READ(bio, bi_next);
	else
		bio = walk->next;
	walk->past_first = true;
	set_bio(walk, bio);
}

/* The begin of a struct page. */
struct page_head {
	__u8 bytes[40];
};

#define PAGE_FIELD(head, type, field) \
	(*(unsigned long *)&(head).bytes[bpf_core_field_offset(struct type, field) & 0x3f])

static __always_inline unsigned long flags_in(const struct page_head *head)
{
	if (bpf_core_field_exists(struct folio, flags))
		return PAGE_FIELD(*head, folio, flags);
	return PAGE_FIELD(*head, folio___structured, flags);
}

/* The first page of the folio that the page at @page is part of; 0 if it is that itself. */
static __always_inline __u64 first_page(const struct page_head *head, __u64 page)
{
	unsigned long compound;

	if (bpf_core_field_exists(struct page, compound_head))
		compound = PAGE_FIELD(*head, page, compound_head);
	else
		compound = PAGE_FIELD(*head, page___info, compound_info);
	if (!(compound & 1))
		return 0;
	compound--;
	/* A mask's negative is a power of two. No page is at such an address. */
	return -compound & (-compound - 1) ? compound : compound & page;
}

/*
 * The file's mapping that the page belongs to, and where in it; 0 for pages of
 * programs (direct I/O) and of nobody. A program may well do direct I/O with the
 * pages of another mapped file: these are not in transit themselves.
 *
 * Not inlined: the head is off the stack again before the file's name is told.
 */
static __noinline __u64 mapping_of(struct walk *walk, __u64 page, __u64 *index)
{
	unsigned long transit, mapping;
	__u64 offset = 0, first;
	struct page_head head;

	if (bpf_core_field_offset(struct folio, index) > sizeof(head) - sizeof(long))
		return 0;
	bpf_probe_read_kernel(&head, sizeof(head), (void *)page);
	first = first_page(&head, page);
	if (first) {
		offset = (page - first) / bpf_core_type_size(struct page);
		bpf_probe_read_kernel(&head, sizeof(head), (void *)first);
	}
	mapping = PAGE_FIELD(head, folio, mapping);
	if (!mapping || mapping & PAGE_MAPPING_FLAGS)
		return 0;
	*index = PAGE_FIELD(head, folio, index) + offset;
	if (mapping == walk->run_mapping)
		return mapping;
	if (walk->write)
		transit = bpf_core_enum_value(enum pageflags, PG_writeback);
	else
		transit = bpf_core_enum_value(enum pageflags, PG_locked);
	if (flags_in(&head) & 1ul << transit)
		return mapping;
	/* Metadata are written buffer by buffer, without a word in the page's flags. */
	if ((BPF_CORE_READ((struct address_space *)mapping, host, i_mode) & S_IFMT) == S_IFBLK)
		return mapping;
	return 0;
}

/* One page of a request, or all the rest of a bio that is none of the page cache's. */
static long walk_step(__u32 step, struct walk *walk)
{
	struct bio_vec vec = {};
	__u64 mapping = 0, index = 0;
	__u32 at = 0, bytes;

	if (walk->over)
		return 1;
	bytes = walk->left;
	if (walk->data && bytes) {
		if (bpf_probe_read_kernel(&vec, sizeof(vec), walk->vecs + walk->vec))
			return 1;
		at = vec.bv_offset + walk->done;
		mapping = mapping_of(walk, (unsigned long)vec.bv_page + (__u64)(at >> PAGE_SHIFT) *
				     bpf_core_type_size(struct page), &index);
		at &= PAGE_SIZE - 1;
	}
	if (mapping) {
		bytes = PAGE_SIZE - at;
		if (bytes > vec.bv_len - walk->done)
			bytes = vec.bv_len - walk->done;
		if (bytes > walk->left)
			bytes = walk->left;
		if (!bytes)
			return 1;
	}
	if (!continues(walk, mapping, index)) {
		end_run(walk);
		begin_run(walk, mapping, index, at);
	}
	walk->done += bytes;
	if (walk->done >= vec.bv_len) {
		walk->vec++;
		walk->done = 0;
	}
	advance(walk, bytes);
	return 0;
}

/*
 * Whether all there is to say is one bio with the memory of a program. Typed
 * pointers are read for next to nothing, so this way is short.
 */
static __always_inline bool is_plain(struct bio *bio)
{
	unsigned long anonymous = 1ul << bpf_core_enum_value(enum pageflags, PG_swapbacked);
	unsigned long transit = 1ul << bpf_core_enum_value(enum pageflags, PG_writeback) |
				1ul << bpf_core_enum_value(enum pageflags, PG_locked);
	struct page *page;

	if (!bio || GET(bio, bi_next) || GET(bio, bi_iter.bi_idx) ||
	    (GET(bio, bi_opf) & REQ_OP_MASK) > REQ_OP_WRITE)
		return false;
	page = GET(bio, bi_io_vec, bv_page);
	return (folio_flags((struct folio *)page) & (anonymous | transit)) == anonymous;
}

static __always_inline int issue_plain(struct request *rq, struct bio *bio)
{
	struct rec_issue *rec = reserve(__builtin_offsetof(struct rec_issue, file), LOST_BLOCK);

	if (!rec)
		return 0;
	fill_request(&rec->rq, rq, REC_ISSUE);
	rec->bio = (unsigned long)bio;
	rec->segment_bytes = GET(bio, bi_iter.bi_size);
	rec->has = 0;
	submit(rec, __builtin_offsetof(struct rec_issue, file));
	return 0;
}

/* The bio is the same as when it was queued, and so is all that is told of it. */
static __always_inline bool is_held(const struct cpu *cpu, struct request *rq, struct bio *bio)
{
	const struct rec_bio *queued = &cpu->queued;

	return queued->rec.time_ns && queued->bio == (unsigned long)bio &&
	       queued->rec.thread == this_tid() && queued->sector == GET(rq, __sector) &&
	       queued->bytes == GET(rq, __data_len) && queued->rec.op == io_op(GET(rq, cmd_flags)) &&
	       queued->rec.flags == io_flags(GET(rq, cmd_flags));
}

static __always_inline bool issue_held(struct cpu *cpu, struct request *rq, struct bio *bio)
{
	struct rec_bio *queued = &cpu->queued;
	struct rec_direct *rec;
	__u64 now;

	if (!is_held(cpu, rq, bio))
		return false;
	now = bpf_ktime_get_ns();
	/* A virtual machine may stand still for as long as one likes. */
	if ((now - queued->rec.time_ns) >> 32)
		return false;
	rec = reserve(sizeof(*rec), LOST_BLOCK);
	if (rec) {
		rec->rec = queued->rec;
		rec->rec.kind = REC_DIRECT;
		rec->rec.time_ns = now;
		rec->request = (unsigned long)rq;
		rec->bio = (unsigned long)bio;
		rec->sector = queued->sector;
		rec->bytes = queued->bytes;
		rec->dev = queued->dev;
		rec->ioprio = GET(bio, bi_ioprio);
		rec->queued_before_ns = now - queued->rec.time_ns;
		SUBMIT(rec);
	} else {
		/* Two events are. */
		count_lost(LOST_BLOCK);
	}
	queued->rec.time_ns = 0;
	return true;
}

static __always_inline bool was_held(struct request *rq, struct bio *bio)
{
	struct cpu *cpu = this_cpu();
	bool held;

	if (!cpu || cpu->holding)
		return false;
	cpu->holding = 1;
	barrier();
	held = issue_held(cpu, rq, bio);
	barrier();
	cpu->holding = 0;
	return held;
}

static __always_inline int issue_with_pages(struct request *rq)
{
	struct walk walk;

	clear_for_loop(&walk, sizeof(walk));
	fill_request(&walk.rq, rq, REC_ISSUE);
	walk.data = walk.rq.rec.op == IO_READ || walk.rq.rec.op == IO_WRITE;
	walk.write = walk.rq.rec.op == IO_WRITE;
	set_first_bio(&walk, GET(rq, bio));
	bpf_loop(MAX_STEPS, walk_step, &walk, 0);
	end_run(&walk);
	if (!walk.told)
		tell_issue(&walk);
	if (!walk.over)
		count_lost(LOST_LONG_REQUESTS);
	return 0;
}

TRACEPOINT(block_rq_issue)
int PROGRAM(request_issued, struct request *rq)
{
	struct bio *bio = GET(rq, bio);

	if (is_plain(bio) && was_held(rq, bio))
		return 0;
	submitted(bio);
	return is_plain(bio) ? issue_plain(rq, bio) : issue_with_pages(rq);
}

TRACEPOINT(block_rq_complete)
int PROGRAM(request_completed, struct request *rq, __u8 error, unsigned int bytes)
{
	struct rec_complete *rec = reserve(sizeof(*rec), LOST_BLOCK);
	__u32 left;

	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_COMPLETE);
	rec->rec.op = error;
	rec->request = (unsigned long)rq;
	rec->sector = GET(rq, __sector);
	rec->bytes = bytes;
	left = GET(rq, __data_len);
	rec->remaining_bytes = left > bytes ? left - bytes : 0;
	SUBMIT(rec);
	return 0;
}

#endif
