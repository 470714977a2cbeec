/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The page cache: pages added, dirtied, taken for writeback and thrown away, and
 * page faults on mapped files. Adjoining pages that one thread does the same to
 * are one record.
 */
#ifndef IOPRO_PAGES_H
#define IOPRO_PAGES_H

#include "names.h"

/* A run of pages is recorded after this time at the latest. */
#define RUN_NS 1000000

/* folio->_folio_nr_pages is valid for large folios only; since 6.15 it has a shorter name. */
struct folio___large {
	unsigned int _folio_nr_pages;
	unsigned int _nr_pages;
} __attribute__((preserve_access_index));

enum pageflags___head {
	PG_head,
};

__noinline int tell_run(struct thread *thread)
{
	struct rec_pages *rec;

	if (!thread)
		return 0;
	rec = reserve(sizeof(*rec), LOST_PAGES);
	if (rec) {
		begin_record(&rec->rec, bpf_ktime_get_ns(),
			     thread->run_kind | fault_bit(thread));
		rec->begin_ns = thread->run_begin_ns;
		rec->file = thread->run_file;
		rec->index = thread->run_index;
		rec->pages = thread->run_pages;
		rec->reserved = 0;
		SUBMIT(rec);
	}
	thread->run_pages = 0;
	return 0;
}

static __always_inline void flush_run(struct thread *thread)
{
	if (thread->run_pages)
		tell_run(thread);
}

/* Whose page it is; NULL if no file's. The verifier lets no bits of a typed pointer be looked at. */
static __always_inline struct address_space *file_mapping(struct folio *folio)
{
	struct address_space *mapping = BPF_CORE_READ(folio, mapping);

	return (unsigned long)mapping & PAGE_MAPPING_FLAGS ? NULL : mapping;
}

static __always_inline unsigned long folio_flags(struct folio *folio)
{
	if (bpf_core_field_exists(struct folio, flags))
		return GET(folio, flags);
	return GET((struct folio___structured *)folio, flags.f);
}

static __always_inline __u32 pages_of(struct folio *folio)
{
	struct folio___large *large = (void *)folio;
	unsigned long head = 1ul << bpf_core_enum_value(enum pageflags___head, PG_head);

	if (!(folio_flags(folio) & head))
		return 1;
	if (bpf_core_field_exists(large->_folio_nr_pages))
		return GET(large, _folio_nr_pages);
	if (bpf_core_field_exists(large->_nr_pages))
		return GET(large, _nr_pages);
	return 1;
}

static __always_inline int on_folio(struct folio *folio, __u8 kind)
{
	struct address_space *mapping = file_mapping(folio);
	unsigned long index = GET(folio, index);
	struct thread *thread;
	__u32 pages;
	__u64 now;

	if (!mapping)
		return 0;
	thread = this_thread();
	if (!thread)
		return 0;
	pages = pages_of(folio);
	now = bpf_ktime_get_ns();
	if (thread->run_pages && thread->run_kind == kind &&
	    thread->run_mapping == (unsigned long)mapping &&
	    thread->run_index + thread->run_pages == index &&
	    now - thread->run_begin_ns < RUN_NS) {
		thread->run_pages += pages;
		return 0;
	}
	flush_run(thread);
	if (!identify_again(thread, (unsigned long)BPF_CORE_READ(mapping, host),
			    &thread->run_file))
		return 0;
	if (kind == REC_ADDED && !thread->call_added) {
		thread->call_added = true;
		thread->call_added_index = index;
	}
	thread->run_mapping = (unsigned long)mapping;
	thread->run_begin_ns = now;
	thread->run_index = index;
	thread->run_pages = pages;
	thread->run_kind = kind;
	return 0;
}

TRACEPOINT(mm_filemap_add_to_page_cache)
int PROGRAM(page_added, struct folio *folio)
{
	return on_folio(folio, REC_ADDED);
}

TRACEPOINT(writeback_dirty_folio)
int PROGRAM(page_dirtied, struct folio *folio)
{
	return on_folio(folio, REC_DIRTIED);
}

SEC("fexit/folio_clear_dirty_for_io")
int PROGRAM(page_cleaned, struct folio *folio, bool was_dirty)
{
	return was_dirty ? on_folio(folio, REC_CLEANED) : 0;
}

SEC("fentry/truncate_inode_pages_range")
int PROGRAM(pages_truncated, struct address_space *mapping, long long start, long long end)
{
	struct inode *inode = mapping->host;
	struct rec_truncated *rec;
	struct file_key file = {};

	if (!mapping->nrpages || !identify((unsigned long)BPF_CORE_READ(mapping, host), &file))
		return 0;
	rec = reserve(sizeof(*rec), LOST_PAGES);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_TRUNCATED);
	rec->rec.op = !inode->i_nlink;
	rec->file = file;
	rec->from_bytes = start;
	rec->to_bytes = end;
	SUBMIT(rec);
	return 0;
}

SEC("fentry/do_writepages")
int PROGRAM(writeback_begins, struct address_space *mapping, struct writeback_control *wbc)
{
	struct thread *thread = this_thread();

	if (!thread)
		return 0;
	flush_run(thread);
	thread->writeback_begin_ns = bpf_ktime_get_ns();
	thread->writeback_budget = wbc->nr_to_write;
	return 0;
}

SEC("fexit/do_writepages")
int PROGRAM(writeback_ends, struct address_space *mapping, struct writeback_control *wbc)
{
	struct thread *thread = this_thread();
	struct rec_writeback *rec;
	struct file_key file = {};
	__s64 pages;

	if (!thread || !thread->writeback_begin_ns)
		return 0;
	flush_run(thread);
	pages = thread->writeback_budget - wbc->nr_to_write;
	if (pages <= 0 || !identify((unsigned long)BPF_CORE_READ(mapping, host), &file))
		return 0;
	rec = reserve(sizeof(*rec), LOST_PAGES);
	if (rec) {
		begin_record(&rec->rec, bpf_ktime_get_ns(), REC_WRITEBACK);
		rec->rec.op = wbc->sync_mode == WB_SYNC_ALL;
		rec->file = file;
		rec->begin_ns = thread->writeback_begin_ns;
		rec->pages = pages;
		SUBMIT(rec);
	}
	thread->writeback_begin_ns = 0;
	return 0;
}

static __always_inline int fault_begins(struct vm_fault *vmf, __u8 kind)
{
	struct file *file = vmf->vma->vm_file;
	struct thread *thread;
	struct file_key key = {};

	if (!file || !identify((unsigned long)BPF_CORE_READ(file, f_inode), &key))
		return 0;
	thread = this_thread();
	if (!thread)
		return 0;
	flush_run(thread);
	thread->fault_file = key;
	thread->fault = kind;
	thread->fault_begin_ns = bpf_ktime_get_ns();
	thread->fault_offset = (__u64)vmf->pgoff << PAGE_SHIFT;
	return 0;
}

static __always_inline int fault_ends(__u8 kind, __u32 result)
{
	struct thread *thread = known_thread(this_tid());
	struct rec_call *rec;

	if (!thread || thread->fault != kind)
		return 0;
	flush_run(thread);
	thread->fault = 0;
	rec = reserve(sizeof(*rec), LOST_CALLS);
	if (!rec)
		return 0;
	begin_record(&rec->rec, bpf_ktime_get_ns(), REC_CALL_EXIT | REC_IN_FAULT);
	rec->rec.op = kind;
	rec->begin_ns = thread->fault_begin_ns;
	rec->result = result;
	rec->offset_bytes = thread->fault_offset;
	rec->size_bytes = PAGE_SIZE;
	rec->file = thread->fault_file;
	rec->fd = -1;
	rec->has = CALL_HAS_FILE | CALL_HAS_OFFSET | CALL_HAS_SIZE;
	SUBMIT(rec);
	return 0;
}

SEC("fentry/filemap_fault")
int PROGRAM(read_fault_begins, struct vm_fault *vmf)
{
	return fault_begins(vmf, CALL_READ_FAULT);
}

SEC("fexit/filemap_fault")
int PROGRAM(read_fault_ends, struct vm_fault *vmf, unsigned int result)
{
	return fault_ends(CALL_READ_FAULT, result);
}

SEC("fentry/do_page_mkwrite")
int PROGRAM(write_fault_begins, struct vm_fault *vmf)
{
	return fault_begins(vmf, CALL_WRITE_FAULT);
}

/* Linux 6.8 added a second argument; the result follows the last one. */
SEC("fexit/do_page_mkwrite")
int write_fault_ends(__u64 *ctx)
{
	__u64 result = 0;

	bpf_get_func_ret(ctx, &result);
	return fault_ends(CALL_WRITE_FAULT, result);
}

#endif
